"""Synthetic runs, and `msmemscope convert`."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(synth: Path, where: Path, *options: str) -> Path:
    """A run of synthetic traces."""
    done = subprocess.run(
        [synth, "-o", where, *options], check=True, capture_output=True, text=True
    )
    return Path(done.stdout.strip())


def convert(command: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, "convert", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
