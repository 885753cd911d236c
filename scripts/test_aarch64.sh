#!/bin/bash
# Builds for AArch64 with Debian's cross compiler and runs the tests of what is not the same on every
# machine (core, trace, replay, the agent's parts) and hostile programs with the whole agent under
# QEMU's user emulation, with pages of 4 KiB and, where this QEMU can, of 64 KiB.
#
#   scripts/test_aarch64.sh         needs g++-12-aarch64-linux-gnu and qemu-user
#
# Libraries for AArch64 are Debian's own, fetched once into the cache and installed nowhere. QEMU has
# no vdso (older ones) and no membarrier of this kind: the tests that ask for them skip.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "test_aarch64: $*" >&2; exit 1; }
compiler=aarch64-linux-gnu-g++-12
command -v "$compiler" > /dev/null || fail "no $compiler; install g++-12-aarch64-linux-gnu"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || fail "no qemu-aarch64; install qemu-user"

cache=${MSMEMSCOPE_CACHE:-$HOME/.cache/msmemscope}/aarch64
root=$cache/root
if [ ! -e "$root/done" ]; then
  mkdir -p "$cache/state/lists/partial" "$cache/archives/partial" "$root"
  apt=(apt-get -qq -o "Dir::State=$cache/state" -o "Dir::Cache=$cache" -o Dir::State::status=/dev/null
       -o APT::Architecture=arm64 -o APT::Architectures::=arm64)
  "${apt[@]}" update
  (cd "$cache" && "${apt[@]}" download libzstd-dev libgtest-dev libgmock-dev libfmt-dev libfmt9 robin-map-dev \
    nlohmann-json3-dev)
  for package in "$cache"/*.deb; do dpkg -x "$package" "$root"; done
  rm -f "$cache"/*.deb
  touch "$root/done"
fi

build=build-aarch64
cat > "$cache/toolchain.cmake" << TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER $compiler)
set(CMAKE_FIND_ROOT_PATH $root/usr /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_FLAGS_INIT "-isystem $root/usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L$root/usr/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-L$root/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR $qemu;-L;/usr/aarch64-linux-gnu)
TOOLCHAIN
tests=(core_test trace_test replay_test capture_test)
programs=(pass_around start_stop thread_churn dlopen_storm storm_plugin busy_plugin check_pairs)
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_TOOLCHAIN_FILE="$cache/toolchain.cmake" > /dev/null
ninja -C $build -j"${JOBS:-$(nproc)}" msmemscope_agent "${tests[@]}" "${programs[@]}"

run=("$qemu" -L /usr/aarch64-linux-gnu)
pages=("")
"${run[@]}" -p 65536 $build/core_test --gtest_filter=None > /dev/null 2>&1 && pages+=(65536)
for size in "${pages[@]}"; do
  for test in "${tests[@]}"; do
    echo "test_aarch64: $test${size:+, pages of $size}"
    "${run[@]}" ${size:+-p "$size"} "$build/$test" --gtest_brief=1
  done
done
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
hostile() {  # program arguments...
  echo "test_aarch64: $*"
  rm -rf "$output/out" && mkdir "$output/out"
  "${run[@]}" "$build/hostile/$1" $build/libmsmemscope_agent.so "$output/out" "${@:2}" > /dev/null
}
hostile pass_around 20000
hostile start_stop 20
hostile thread_churn 200
hostile dlopen_storm $build/hostile/libstorm_plugin.so 20 1
