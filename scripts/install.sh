#!/bin/bash
# Builds the package (agent, command, Python) and installs it into .venv. Shares build/ with
# `make build`, and does nothing where no source is newer than the last install.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=.venv/installed
inputs=(src python CMakeLists.txt pyproject.toml requirements-build.txt)
[ ! -e web/dist ] || inputs+=(web/dist)
if [ -e $stamp ] && [ -z "$(find "${inputs[@]}" -newer $stamp ! -name '*_test.cc' ! -name '*_fuzzer.cc' \
                              ! -path '*/__pycache__*' \( -type f -o -type d \) -print -quit)" ]; then
  echo "install: up to date"
  exit 0
fi
echo "install: building the package into .venv (the first time takes a minute or two)"
started=$(mktemp)  # what changes while we build is not installed yet
rm -f build/settings
log=$(mktemp)
export CC=${CC:-cc} CXX=${CXX:-c++} CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # as in build.sh
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} .venv/bin/python -m pip install --disable-pip-version-check \
  --no-build-isolation --no-deps --no-index --force-reinstall \
  --config-settings=build-dir=build --config-settings=install.strip=false . \
  > "$log" 2>&1 < /dev/null || { tail -60 "$log" >&2; rm -f "$log"; exit 1; }
rm -f "$log"
mv "$started" $stamp
echo "install: .venv/bin/msmemscope and the package are ready ($((SECONDS)) s)"
