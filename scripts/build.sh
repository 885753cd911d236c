#!/bin/bash
# Configures and builds one of the build directories. Configures anew only where a setting differs,
# so that a second call costs what ninja needs to see that nothing changed.
#
#   scripts/build.sh build|asan|tsan|fuzz|bench [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

flavour=${1:?which build}
shift
settings=(-DCMAKE_BUILD_TYPE=RelWithDebInfo)
case $flavour in
  build) dir=build settings+=(-DMEMSCOPE_TESTS=ON) ;;
  asan) dir=build-asan settings=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1
                                 -DMEMSCOPE_SANITIZE=address,undefined) ;;
  tsan) dir=build-tsan settings=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1
                                 -DMEMSCOPE_SANITIZE=thread) ;;
  fuzz) dir=build-fuzz settings=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1
                                 -DCMAKE_CXX_COMPILER=clang++-14 -DMEMSCOPE_TESTS=OFF
                                 -DMEMSCOPE_FUZZ=ON -DMEMSCOPE_SANITIZE=address,undefined) ;;
  bench) dir=build-bench settings=(-DCMAKE_BUILD_TYPE=Release -DMEMSCOPE_TESTS=OFF
                                   -DMEMSCOPE_BENCH=ON) ;;
  *) echo "build.sh: unknown build '$flavour'; allowed: build, asan, tsan, fuzz, bench" >&2; exit 2 ;;
esac

# A compiler cache, where there is one, serves every checkout alike.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

echo "build: $dir ${*:+($*)}"
# The package's own build (scripts/install.sh) shares build/ and leaves other settings in its cache.
wanted="${settings[*]}"
if [ "$(cat $dir/settings 2> /dev/null)" != "$wanted" ] || [ ! -e $dir/build.ninja ]; then
  cmake -S . -B $dir -G Ninja "${settings[@]}" > $dir.log 2>&1 || { cat $dir.log >&2; rm -f $dir.log; exit 1; }
  rm -f $dir.log
  echo "$wanted" > $dir/settings
fi
log=$(mktemp)
ninja -C $dir -j"${JOBS:-$(nproc)}" "$@" > "$log" 2>&1 || { grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | head -100 >&2; rm -f "$log"; exit 1; }
rm -f "$log"
