#!/bin/bash
# Fetches the tools that `make bench` measures beside MemScope: heaptrack (Debian's package) and
# memray, into the cache, for the interpreter it is given. Prints the folder to put on PYTHONPATH;
# nothing where memray cannot be had. Nothing of the project depends on them.
#
#   scripts/bench_tools.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:-.venv/bin/python}
say() { echo "bench tools: $*" >&2; }

if ! command -v heaptrack > /dev/null; then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install heaptrack \
    > /dev/null 2>&1 < /dev/null || say "no heaptrack: its columns will be missing"
fi

cache=${MSMEMSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/msmemscope}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
folder=$cache/bench-python$version
wanted=$(sha256sum < requirements-bench.txt)
if [ "$(cat "$folder/pins" 2> /dev/null)" != "$wanted" ]; then
  rm -rf "$folder"
  if ! "$python" -m pip install --quiet --disable-pip-version-check --retries 3 --only-binary :all: \
    --target "$folder" -r requirements-bench.txt >&2; then
    say "no memray: its columns will be missing"
    exit 0
  fi
  echo "$wanted" > "$folder/pins"
fi
echo "$folder"
