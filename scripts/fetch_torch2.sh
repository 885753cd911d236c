#!/bin/bash
# Fetches a PyTorch >= 2.6 with a Python of its own into the cache, from a newer Debian suite than
# the one this machine runs, and prints the path of its interpreter. Nothing is installed
# system-wide: apt only resolves and downloads, into a private state; the packages are unpacked into
# a folder, and the interpreter is pointed at the C library that lies beside it.
#
#   scripts/fetch_torch2.sh          trixie: Python 3.13, PyTorch 2.6
#   scripts/fetch_torch2.sh sid      unstable: whatever is newest; --refresh fetches it anew
set -euo pipefail

suite=trixie refresh=0
for word in "$@"; do
  case $word in
    --refresh) refresh=1 ;;
    trixie | sid | forky | testing) suite=$word ;;
    *) echo "fetch_torch2.sh: unknown word '$word'; allowed: trixie, testing, forky, sid, --refresh" >&2; exit 2 ;;
  esac
done

say() { echo "torch2: $*" >&2; }
fail() { echo "torch2: $*" >&2; exit 1; }

cache=${MSMEMSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/msmemscope}
top=$cache/torch2-$suite
root=$top/root
ready=$top/ready       # holds the interpreter's path; written last
layout=7               # raise to have every cache made anew
[ "$refresh" = 0 ] || rm -f "$ready"
if [ -s "$ready" ] && [ "$(sed -n 2p "$ready")" = "layout $layout" ]; then
  sed -n 1p "$ready"
  exit 0
fi

for tool in apt-get dpkg-deb patchelf flock; do
  command -v $tool > /dev/null || fail "$tool is missing; run 'make setup' first"
done
mkdir -p "$top"
exec 9> "$top/lock"
flock 9  # two test runs at once: the second waits, then finds it ready
if [ -s "$ready" ] && [ "$(sed -n 2p "$ready")" = "layout $layout" ]; then
  sed -n 1p "$ready"
  exit 0
fi

# The mirror is the one this machine's own Debian comes from.
mirror=$(apt-get indextargets --format '$(SITE) $(REPO_URI) $(ORIGIN) $(COMPONENT)' \
           'Created-By: Packages' 2> /dev/null |
         awk '$3 == "Debian" && $4 == "main" && $2 !~ /security/ { print $2; exit }')
if [ -z "$mirror" ]; then  # ORIGIN is known only after an update: read the sources themselves
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
             2> /dev/null | grep -v '^ *#' |
           grep -oE '[a-z+]+:/[^ ]*/debian/?( |$)' | head -1 | tr -d ' ')
fi
[ -n "$mirror" ] || fail "no Debian mirror in this machine's apt sources"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2> /dev/null || echo "$(uname -m)-linux-gnu")
state=$top/apt
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/preferences.d"
: > "$state/status"
: > "$state/preferences"
signed=''
[ ! -e $keyring ] || signed="[signed-by=$keyring] "
echo "deb $signed$mirror $suite main" > "$state/sources.list"
# A file and not options: apt.conf.d of the machine stays out of it except for proxies and the like.
cat > "$state/apt.conf" << CONF
Dir::State "$state";
Dir::State::status "$state/status";
Dir::State::lists "$state/lists";
Dir::Cache "$state/cache";
Dir::Cache::archives "$state/cache/archives";
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "$state/preferences";
Dir::Etc::preferencesparts "$state/preferences.d";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Get::AllowUnauthenticated "false";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
APT::Update::Post-Invoke "";
APT::Update::Post-Invoke-Success "";
DPkg::Pre-Install-Pkgs "";
CONF
export APT_CONFIG=$state/apt.conf

say "resolving python3-torch of Debian $suite"
apt-get update -qq > "$top/apt.log" 2>&1 || { tail -5 "$top/apt.log" >&2; fail "suite $suite cannot be read from $mirror"; }
# pytest and what the tests import come as packages too, for that Python; the last three are what
# torch.compile needs to build its kernels.
packages=(python3-torch python3-numpy python3-pytest python3-hypothesis python3-jsonschema
          libpython3-dev libtorch-dev python3-setuptools)
apt-get install -y --download-only --no-install-recommends "${packages[@]}" > "$top/apt.log" 2>&1 ||
  { tail -15 "$top/apt.log" >&2; fail "python3-torch cannot be resolved in $suite"; }
debs=("$state"/cache/archives/*.deb)
[ -e "${debs[0]}" ] || fail "nothing was downloaded (see $top/apt.log)"

say "unpacking ${#debs[@]} packages"
rm -rf "$root" && mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/usr/sbin"
for name in bin lib lib64 sbin; do ln -s "usr/$name" "$root/$name"; done  # merged /usr
# Not needed to import torch, and a good part of the size.
for deb in "${debs[@]}"; do
  case ${deb##*/} in
    perl* | gcc-* | g++-* | cpp-* | binutils* | *-doc_* | libgcc-*-dev* | libstdc++-*-dev* | linux-libc-dev* | libc6-dev*) continue ;;
  esac
  dpkg-deb --fsys-tarfile "$deb" |
    tar -x -C "$root" --no-same-owner --keep-directory-symlink \
      --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' \
      --exclude='./usr/share/info' --exclude='*.a' ||
    fail "cannot unpack ${deb##*/}"
done

# What update-alternatives would have linked: for each name the most capable provider there is.
lib=$root/usr/lib/$triplet
for name in libblas.so.3 liblapack.so.3; do
  for provider in openblas-pthread openblas-openmp openblas-serial blas lapack; do
    if [ -e "$lib/$provider/$name" ]; then
      ln -sf "$provider/$name" "$lib/$name"
      break
    fi
  done
done

# An interpreter one can run: its own loader and libraries, found from the executable itself, so
# that sys.executable is real and subprocess, spawn and forkserver work with no environment set.
python=$(cd "$root/usr/bin" && ls python3.* 2> /dev/null | grep -E '^python3\.[0-9]+$' | sort -V | tail -1)
[ -n "$python" ] || fail "no interpreter among the packages"
python=$root/usr/bin/$python
loader=$(find -L "$root/lib64" "$lib" -maxdepth 1 -name 'ld-linux*.so.*' | head -1)
[ -n "$loader" ] || fail "no dynamic loader among the packages"
# The executable's DT_RPATH serves every library that it loads, unless that library has a RUNPATH:
# those are folded into the executable's and then blanked, which changes no library's layout.
declare -A seen=()
rpath=
add_dir() {
  local dir
  dir=$(realpath -q "$1") || return 0
  if [ -d "$dir" ] && [[ $dir == "$real_root"* ]] && [ -z "${seen[$dir]:-}" ]; then
    seen[$dir]=1 rpath=$rpath:$dir
  fi
}
real_root=$(realpath "$root")
add_dir "$lib"
while read -r file; do
  runpath=$(patchelf --print-rpath "$file" 2> /dev/null) || continue
  [ -n "$runpath" ] || continue
  IFS=: read -ra dirs <<< "$runpath"
  for dir in "${dirs[@]}"; do
    dir=${dir//\$ORIGIN/${file%/*}}
    add_dir "${dir//\$\{ORIGIN\}/${file%/*}}"
    [[ $dir != /usr/* ]] || add_dir "$root$dir"
  done
  patchelf --remove-rpath "$file"
done < <(find "$root/usr/lib" -type f -name '*.so*' ! -name '*.py' -size +4k)
rpath=${rpath#:}
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$rpath" "$python"
ln -sf "${python##*/}" "$root/usr/bin/python3"

# pyconfig.h includes the real one as <triplet/pythonX.Y/pyconfig.h>, meant for /usr/include.
ln -sfn "../$triplet" "$root/usr/include/${python##*/}/$triplet"

say "checking"
version=$(cd / && env -u PYTHONPATH -u PYTHONHOME "$python" - << 'CHECK'
import os, subprocess, sys
import torch
torch.zeros(1)
assert os.path.realpath(sys.executable).startswith(os.path.realpath(sys.prefix)), (sys.executable, sys.prefix)
out = subprocess.run([sys.executable, "-c", "import torch; print(float(torch.ones(2, 2).mm(torch.ones(2, 2))[0, 0]))"],
                     capture_output=True, text=True, check=True).stdout.strip()
assert out == "2.0", out
root = os.path.realpath(sys.prefix + "/..")
foreign = sorted({line.split()[-1] for line in open("/proc/self/maps")
                  if ".so" in line and not os.path.realpath(line.split()[-1]).startswith(root)})
assert not foreign, f"libraries from outside the folder: {foreign}"
print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
CHECK
) || fail "the interpreter in $root does not run torch"
printf '%s\nlayout %s\n%s\n' "$python" "$layout" "$version" > "$ready"
rm -rf "$state/cache"
say "$version"
echo "$python"
