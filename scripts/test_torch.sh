#!/bin/bash
# Runs the Python tests under the PyTorch of another Debian suite (scripts/fetch_torch2.sh). The
# package is the very files that .venv has: it is the same for every Python.
#
#   scripts/test_torch.sh trixie|testing|sid [PYTEST ARGS...]
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?which suite}
shift
python=$(scripts/fetch_torch2.sh "$suite")
purelib=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
site=$PWD/build-site
rm -rf "$site"
mkdir -p "$site/bin"
ln -s "$purelib/msmemscope" "$site/msmemscope"
for info in "$purelib"/msmemscope-*.dist-info; do ln -s "$info" "$site/"; done
ln -s "$PWD/.venv/bin/msmemscope" "$site/bin/msmemscope"
"$python" -c 'import torch, sys; print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}")'
# The tests run `python` and `msmemscope` by these names.
ln -s "$python" "$site/bin/python3"
PYTHONPATH=$site PATH=$site/bin:$PATH exec "$python" -m pytest tests/python -p no:cacheprovider "$@"
