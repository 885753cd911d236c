#!/bin/bash
# C++ tests under AddressSanitizer with UndefinedBehaviorSanitizer, and the tests of the agent's
# parts, which share memory between threads, under ThreadSanitizer (MEMSCOPE_TEST_FULL=1: the loader's
# own locks, which it cannot see, still need sorting out before every run can ask for it).
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/scripts/tsan.supp

scripts/build.sh asan
echo "sanitize: C++ tests under ASan and UBSan"
ctest --test-dir build-asan --output-on-failure -j"$jobs"

[ "${MEMSCOPE_TEST_FULL:-0}" = 1 ] || exit 0
scripts/build.sh tsan capture_test
echo "sanitize: capture tests under TSan"
ctest --test-dir build-tsan --output-on-failure -j"$jobs"
