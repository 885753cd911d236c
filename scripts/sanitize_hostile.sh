#!/bin/bash
# Hostile programs with the whole agent in them, all built with AddressSanitizer and
# UndefinedBehaviorSanitizer in build-asan/: a report of theirs ends a program with another status
# than its own. Left out is what the sanitizers do not allow: RTLD_DEEPBIND, stack overflow, children
# without ASAN_OPTIONS, deadly signals.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$PWD/build-asan/hostile agent=$PWD/build-asan/libmsmemscope_agent.so
# The agent comes before the sanitizer's own library in preloading; what is alive at exit is no leak.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
count=0

run() {  # status command...
  local wanted=$1 status=0
  shift
  rm -rf "$output/out" && mkdir "$output/out"
  timeout -k 5 300 "$@" > "$output/said" 2>&1 || status=$?
  if [ $status != "$wanted" ] || grep -qE 'ERROR: AddressSanitizer|runtime error:' "$output/said"; then
    echo "sanitize: '$*' ended with $status instead of $wanted" >&2
    tail -n 60 "$output/said" >&2
    exit 1
  fi
  count=$((count + 1))
}
by_api() { run 0 "$programs/$1" "$agent" "$output/out" "${@:2}"; }
by_preload() {  # status program arguments...
  run "$1" env "MSMEMSCOPE_CONFIG={\"mode\":\"command\",\"output_path\":\"$output/out\"}" \
    MSMEMSCOPE_RUN_ID=asan "LD_PRELOAD=$agent" "$programs/$2" "${@:3}"
}

by_api pass_around 100000
by_api start_stop 200
by_api thread_churn 4000
by_api dlopen_storm "$programs/libstorm_plugin.so" 100 1
by_api dlopen_storm "$programs/libbusy_plugin.so" 100 64
by_preload 0 endings return
by_preload 3 endings exit
by_preload 4 endings _exit
by_preload 6 endings 'exit by a thread'
by_preload 0 endings 'main thread first'
by_preload 8 endings 'allocate at exit'
by_preload 0 endings late
for way in exceptions longjmps signals coroutines 'an allocator that allocates' 'threads that end inside'; do
  by_preload 0 jumps "$way"
done
for way in fork vfork spawn helpers; do
  by_preload 0 children "$way" 20
done
echo "sanitize: $count hostile programs under ASan and UBSan: nothing found"
