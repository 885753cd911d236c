#!/bin/bash
# C++ tests under AddressSanitizer with UndefinedBehaviorSanitizer; the tests of the agent's parts,
# which share memory between threads, under ThreadSanitizer, and with MEMSCOPE_TEST_FULL=1 the hostile
# programs with the whole agent in them.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/scripts/tsan.supp

scripts/build.sh asan
echo "sanitize: C++ tests under ASan and UBSan"
ctest --test-dir build-asan --output-on-failure -j"$jobs"

full=${MEMSCOPE_TEST_FULL:-0}
programs=(pass_around start_stop thread_churn)
targets=(capture_test)
[ "$full" != 1 ] || targets+=(msmemscope_agent "${programs[@]}")
scripts/build.sh tsan "${targets[@]}"
# TSan's shadow memory and a well mixed address space do not go together everywhere.
plain=(setarch -R)
"${plain[@]}" true 2> /dev/null || plain=()
echo "sanitize: tests of the agent's parts under TSan"
"${plain[@]}" build-tsan/capture_test --gtest_brief=1

[ "$full" = 1 ] || exit 0
scripts/sanitize_hostile.sh
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
rounds=(200000 300 400)
for i in "${!programs[@]}"; do
  program=${programs[i]}
  echo "sanitize: $program under TSan"
  mkdir "$output/$program"
  "${plain[@]}" "build-tsan/hostile/$program" build-tsan/libmsmemscope_agent.so "$output/$program" \
    "${rounds[i]}" > /dev/null
done
