#!/bin/bash
# clang-format, clang-tidy, ruff, mypy, eslint and tsc over the checkout. Changes nothing. TIDY_ALL=1: clang-tidy
# looks at tests and benchmarks too.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {
  local name=$1 status=0
  shift
  echo "lint: $name"
  "$@" || status=$?
  [ $status = 0 ] || failed+=("$name")
}

format() {
  git ls-files -co --exclude-standard -- '*.h' '*.c' '*.cc' | xargs -r clang-format-14 --dry-run -Werror
}
tidy() {
  local log
  log=$(mktemp)
  # Configured, never built: clang-tidy needs the compile commands only, fuzzers and benches too.
  cmake -S . -B build-lint -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DMEMSCOPE_TESTS=ON \
    -DMEMSCOPE_BENCH=ON -DMEMSCOPE_FUZZ=ON > "$log" 2>&1 || { cat "$log" >&2; return 1; }
  rm -f "$log"
  .venv/bin/python scripts/tidy.py build-lint ${TIDY_ALL:+--all}
}
shell() {
  local status=0
  while read -r file; do
    bash -n "$file" || status=1
  done < <(git ls-files -co --exclude-standard -- 'scripts/*.sh' 'packaging/*.sh' .ci/run)
  return $status
}

step 'shell syntax' shell
step clang-format format
step ruff .venv/bin/ruff check --quiet .
step 'ruff format' .venv/bin/ruff format --check --quiet .
step 'mypy --strict' .venv/bin/mypy --strict python/msmemscope packaging
step 'eslint and tsc' scripts/web.sh lint
step clang-tidy tidy

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint: failed:'
  printf ' %s;' "${failed[@]}"
  echo
  exit 1
fi
echo 'lint: clean'
