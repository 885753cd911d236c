#!/bin/bash
# Makes this machine able to build, test and run: installs the Debian packages that are missing (as
# root), and makes .venv with the pinned Python tools. Quick and silent but for one line when there
# is nothing to do.
#
#   scripts/setup.sh          what `make demo` needs: build, package, a PyTorch
#   scripts/setup.sh --web    also what builds the viewer's page
#   scripts/setup.sh --dev    also what tests, lint and benchmarks need, the page's included
set -euo pipefail
cd "$(dirname "$0")/.."

dev=0 web=0
for word in "$@"; do
  case $word in
    --dev) dev=1 web=1 ;;
    --web) web=1 ;;
    *) echo "setup.sh: unknown word '$word'; allowed: --dev, --web" >&2; exit 2 ;;
  esac
done

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# package                what for
base_packages=(
  cmake                # build
  ninja-build          # build
  g++                  # build: C++20
  libzstd-dev          # compression of the trace; static in the agent
  libfmt-dev           # formatting
  libsqlite3-dev       # msMemScope's db files
  zlib1g-dev           # pictures in a report, traces for Perfetto
  libdw-dev            # native symbols: DWARF and ELF (libelf and liblzma come with it)
  libbz2-dev           # sections that libdw unpacks
  libcli11-dev         # command line
  nlohmann-json3-dev   # small JSON
  robin-map-dev        # flat hash maps
  libboost-dev         # the viewer's HTTP server: Beast and Asio, headers only
  python3-venv         # .venv
)
dev_packages=(
  ccache               # builds again in seconds what it has seen, in any checkout
  libgtest-dev         # C++ tests
  libgmock-dev         # C++ tests
  clang-14             # fuzzers (libFuzzer)
  libclang-rt-14-dev   # the fuzzers' run time
  clang-format-14      # lint
  clang-tidy-14        # lint
  libbenchmark-dev     # benchmarks of the rooms
  libpython3-dev       # benchmark of an event under a Python stack
  patchelf             # the second PyTorch's interpreter
  xz-utils             # unpacking it
  gdb                  # hostile tests: a program that is traced and debugged
  libjemalloc2         # hostile tests: other allocators
  libtcmalloc-minimal4 # hostile tests: other allocators
  libmimalloc2.0       # hostile tests: other allocators
  python3-gevent       # hostile tests: threads that are none
)

# The PyTorch that is importable, else Debian's.
has_torch() { "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None or sys.version_info < (3, 9))' 2> /dev/null; }
python=
for candidate in ${MSMEMSCOPE_PYTHON:-} "$(command -v python3 || true)" /usr/bin/python3; do
  if [ -n "$candidate" ] && has_torch "$candidate"; then
    python=$("$candidate" -c 'import sys; print(sys.executable)')
    break
  fi
done
if [ -z "$python" ]; then
  python=/usr/bin/python3
  base_packages+=(python3-torch)  # the PyTorch that the demo trains with
fi

packages=("${base_packages[@]}")
[ $dev = 0 ] || packages+=("${dev_packages[@]}")
# Node and Chromium may have come by other ways than Debian's packages.
if [ $web = 1 ]; then
  command -v node > /dev/null || packages+=(nodejs)  # builds the viewer's page
  command -v npm > /dev/null || packages+=(npm)      # brings its libraries
fi
if [ $dev = 1 ]; then
  command -v "${CHROMIUM:-chromium}" > /dev/null || packages+=(chromium)  # browser tests
fi

# --- Debian packages -----------------------------------------------------------------------------
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2> /dev/null |
            awk '$2 == "installed" { print $1 }' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx -- "$package" <<< "$installed" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get > /dev/null || fail "these Debian packages are missing and there is no apt-get: ${missing[*]}"
  sudo=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
      sudo=(sudo)
    else
      fail "not root, and these Debian packages are missing; install them first: apt-get install ${missing[*]}"
    fi
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  log=$(mktemp)
  install() {
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
      -y -qq --no-install-recommends install "${missing[@]}" > "$log" 2>&1 < /dev/null
  }
  # A new machine has no package lists, an old one stale ones: `update` only where it is needed. It
  # may fail for somebody else's repository and still have brought what we want.
  install || {
    say "refreshing the package lists"
    "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -qq update > "$log.update" 2>&1 < /dev/null || true
    install || { tail -n 20 "$log.update" "$log" >&2; fail "apt-get could not install: ${missing[*]}"; }
  }
  rm -f "$log" "$log.update"
fi

# --- .venv ---------------------------------------------------------------------------------------
has_torch "$python" || fail "$python has no PyTorch although python3-torch is installed"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ -e .venv ] && ! { [ -x .venv/bin/python ] && .venv/bin/python -c '' 2> /dev/null &&
                       [ "$(cat .venv/made-from 2> /dev/null)" = "$python $version" ]; }; then
  say ".venv is broken or of another Python: making it anew"
  rm -rf .venv
fi
if [ ! -e .venv ]; then
  say "making .venv from $python (Python $version)"
  "$python" -m venv --system-site-packages .venv || fail "$python -m venv failed: is python3-venv installed?"
  echo "$python $version" > .venv/made-from
fi

# pip only where the pins changed since it last ran.
pip_install() {  # file stamp
  local stamp=.venv/pins-$2 want
  want=$(sha256sum < "$1")
  [ "$(cat "$stamp" 2> /dev/null)" != "$want" ] || return 0
  say "installing the Python tools of $1"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 3 -r "$1" ||
    fail "pip could not install $1"
  echo "$want" > "$stamp"
}
pip_install requirements-build.txt build
[ $dev = 0 ] || pip_install requirements-dev.txt dev

torch=$(.venv/bin/python -c 'import torch; print(torch.__version__, "from", torch.__path__[0])')
say "ready: Python $version, PyTorch $torch"
