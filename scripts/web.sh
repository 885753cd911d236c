#!/bin/bash
# The viewer's page in web/: installs what package-lock.json pins, once a change of it, and builds,
# checks or tests.
#
#   scripts/web.sh build | lint | test | e2e
set -euo pipefail
cd "$(dirname "$0")/../web"

what=${1:?build, lint, test or e2e}
command -v npm > /dev/null || { echo "web.sh: there is no npm; scripts/setup.sh --web installs it" >&2; exit 1; }

quietly() {  # says what it printed only where it fails
  local log status=0
  log=$(mktemp)
  "$@" > "$log" 2>&1 < /dev/null || status=$?
  [ $status = 0 ] || tail -n 60 "$log" >&2
  rm -f "$log"
  return $status
}

stamp=node_modules/.pins
pins=$(cat package.json package-lock.json | sha256sum)
if [ "$(cat $stamp 2> /dev/null)" != "$pins" ]; then
  echo "web: installing what package-lock.json pins"
  quietly npm ci --no-audit --no-fund
  echo "$pins" > $stamp
fi

build() {
  if [ -e dist/index.html ] && [ -z "$(find src public index.html ./*.config.* ./*.json -newer dist/index.html -print -quit)" ]; then
    return
  fi
  echo "web: building the page"
  quietly npm run build
  touch dist/index.html
}

case $what in
  build) build ;;
  lint) npm run --silent lint ;;
  test) npm --silent test ;;
  e2e) build && npm run --silent e2e ;;
  *) echo "web.sh: unknown word '$what'; allowed: build, lint, test, e2e" >&2; exit 2 ;;
esac
