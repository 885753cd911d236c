"""Runs clang-tidy over a build directory's compile commands, a process a core.

A file whose text, headers, command and configuration are those of its last clean run is skipped, so
that a second run costs seconds.

    scripts/tidy.py BUILD_DIR [--all | FILE...]

Without --all the product alone is looked at; tests and benchmarks take as long again.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

TIDY = "clang-tidy-14"
ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(
    os.environ.get("MSMEMSCOPE_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "msmemscope"
)


def own_inputs(command: list[str], directory: str) -> list[Path]:
    """The file and the headers of this checkout that it includes; system headers do not count."""
    args = []
    skip = False
    for word in command:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word != "-c":
            args.append(word)
    done = subprocess.run(
        [*args, "-MM"], cwd=directory, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return []
    names = done.stdout.replace("\\\n", " ").split(":", 1)[1].split()
    return sorted({(Path(directory) / name).resolve() for name in names})


def fingerprint(command: list[str], directory: str, config: bytes) -> str | None:
    inputs = own_inputs(command, directory)
    if not inputs:
        return None
    # The same for every checkout: a fresh clone need not check again what is clean.
    digest = hashlib.sha256(config + "\0".join(command).replace(str(ROOT), "").encode())
    for path in inputs:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def check(entry: dict[str, str], build: Path, stamps: Path, config: bytes) -> tuple[str, bool, str]:
    name = os.path.relpath(entry["file"], ROOT)
    command = shlex.split(entry["command"])
    mark = fingerprint(command, entry["directory"], config)
    stamp = stamps / mark if mark else None
    if stamp and stamp.exists():
        return name, True, ""
    done = subprocess.run(
        [TIDY, "--quiet", "-p", str(build), entry["file"]],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        if stamp:
            stamp.touch()
        return name, True, ""
    errors = [line for line in done.stderr.splitlines() if "warnings generated" not in line]
    return name, False, "\n".join([done.stdout.strip(), *errors]).strip()


def is_product(path: Path) -> bool:
    inside = path.resolve().relative_to(ROOT)
    return inside.parts[0] == "src" and not path.stem.endswith(("_test", "_fuzzer", "_bench"))


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    everything = "--all" in sys.argv[2:]
    wanted = {Path(name).resolve() for name in sys.argv[2:] if name != "--all"}
    stamps = CACHE / "tidy"
    stamps.mkdir(parents=True, exist_ok=True)
    config = (ROOT / ".clang-tidy").read_bytes()
    entries = {
        entry["file"]: entry
        for entry in json.loads((build / "compile_commands.json").read_text())
        if Path(entry["file"]).resolve() in wanted
        or (not wanted and (everything or is_product(Path(entry["file"]))))
    }
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, entry, build, stamps, config) for entry in entries.values()]
        for job in concurrent.futures.as_completed(jobs):
            name, clean, text = job.result()
            if not clean:
                failed += 1
                print(f"clang-tidy: {name}\n{text}", flush=True)
    print(f"clang-tidy: {len(entries) - failed} files clean, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
