#!/bin/bash
# Runs every fuzzer for so many seconds, from the seeds in tests/fuzz/<name>/ where there are any.
# What a fuzzer finds is left in build-fuzz/findings/, and the run fails.
#
#   scripts/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
mapfile -t names < <(git ls-files -co --exclude-standard 'src/*_fuzzer.cc' | sed 's|.*/||; s|\.cc$||' | sort)
[ ${#names[@]} -gt 0 ] || { echo "fuzz: no fuzzer found under src/" >&2; exit 1; }
scripts/build.sh fuzz "${names[@]}"
mkdir -p build-fuzz/findings
for name in "${names[@]}"; do
  corpus=build-fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [ ! -d "tests/fuzz/$name" ] || seeds=("tests/fuzz/$name")
  # Seeds written by a generator, where the fuzzer's test leaves some.
  echo "fuzz: $name for $seconds s"
  log=build-fuzz/$name.log
  if ! UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build-fuzz/"$name" -max_total_time="$seconds" \
      -rss_limit_mb=512 -malloc_limit_mb=256 -timeout=10 -print_final_stats=1 \
      -artifact_prefix=build-fuzz/findings/"$name"- "$corpus" "${seeds[@]}" > "$log" 2>&1; then
    tail -40 "$log" >&2
    echo "fuzz: $name failed; the input is in build-fuzz/findings/" >&2
    exit 1
  fi
  awk -v name="$name" '/number_of_executed_units/ { runs = $2 } /cov:/ { cov = $0; sub(/.*cov: /, "", cov); sub(/ .*/, "", cov) }
       END { printf "fuzz: %s: %s inputs, %s edges covered, nothing found\n", name, runs, cov }' "$log"
done
