#!/bin/bash
# All tests, one stage after the other; a failing stage does not hide the ones after it. Ends with a
# table of stages and times, and a non-zero status if any failed.
#
#   scripts/test.sh            what fits in 12 minutes on two cores
#   scripts/test.sh --full     everything
set -uo pipefail
cd "$(dirname "$0")/.."

full=0
for word in "$@"; do
  case $word in
    --full) full=1 ;;
    *) echo "test.sh: unknown word '$word'; allowed: --full" >&2; exit 2 ;;
  esac
done

names=() results=() times=()
stage() {  # name command...
  local name=$1 begin=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  names+=("$name") times+=($((SECONDS - begin)))
  if [ $status = 0 ]; then results+=(ok); else results+=("FAILED ($status)"); fi
}

make=(make --no-print-directory)

[ $full = 0 ] || export MEMSCOPE_TEST_FULL=1  # the tests read it: more rounds, larger inputs

[ $full = 0 ] || stage "lint of tests too" env TIDY_ALL=1 "${make[@]}" lint
stage 'C++ tests' "${make[@]}" test-cpp
stage "Python tests on .venv's PyTorch" "${make[@]}" test-python
stage 'Python tests on the second PyTorch' "${make[@]}" test-torch2
[ $full = 0 ] || stage 'Python tests on the newest PyTorch' "${make[@]}" test-torch-newest
stage "the viewer's page" "${make[@]}" test-web
stage 'the wheel' "${make[@]}" test-wheel
stage 'zoo' "${make[@]}" zoo
stage 'fuzzers' "${make[@]}" fuzz FUZZ_SECONDS=$((full ? 300 : 20))
stage 'sanitizers' "${make[@]}" sanitize

printf '\n== summary\n'
failed=0
for i in "${!names[@]}"; do
  printf '%6d s  %-12s %s\n' "${times[i]}" "${results[i]}" "${names[i]}"
  [ "${results[i]}" = ok ] || failed=$((failed + 1))
done
printf 'stages: %d passed, %d failed\n' $((${#names[@]} - failed)) $failed
[ $failed = 0 ]
