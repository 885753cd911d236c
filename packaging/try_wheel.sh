#!/bin/bash
# Installs the wheel of packaging/wheel.sh as a user would: into a fresh virtual environment, with no
# compiler and nothing else to be found on the PATH. Runs the demo there, as a script that uses the
# package and under the command, and wants the leak's line from both.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp examples/memory_leak_demo.py "$place"
# The interpreter that .venv was made from: it has a PyTorch.
python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
"$python" -m venv --system-site-packages "$place/venv"
"$place"/venv/bin/python -m pip install --disable-pip-version-check --quiet --no-index dist/msmemscope-*.whl

want() {  # name, then the command
  local name=$1
  shift
  (cd "$place" && exec env -i PATH="$place/venv/bin" HOME="$place" "$@") > "$place/$name.log" 2>&1 ||
    { cat "$place/$name.log" >&2; echo "try_wheel: the demo failed $name" >&2; exit 1; }
  grep -q 'memory_leak_demo.py:26' "$place/$name.log" ||
    { cat "$place/$name.log" >&2; echo "try_wheel: no verdict $name" >&2; exit 1; }
  echo "try_wheel: the demo's leak is named $name"
}
want 'in a script' python memory_leak_demo.py --output run
want 'under the command' msmemscope python memory_leak_demo.py --no-api
