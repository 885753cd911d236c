#!/bin/bash
# Runs the demo in a folder of its own, so that the results of several runs lie side by side and the
# checkout stays clean.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/demo
mkdir -p $out
.venv/bin/python examples/memory_leak_demo.py --output "$PWD/$out" "$@"
