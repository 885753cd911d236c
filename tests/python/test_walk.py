"""The raw frame walk agrees with CPython, on every interpreter that is found.

Looked for: the one that runs the tests, Debian's, pyenv's, those that came with the PyTorches in
the cache, and any in MEMSCOPE_TEST_PYTHONS (paths, colon-separated). None is left out silently: a
run lists what was found, and what cannot be used says why.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from msmemscope import _locate

SCRIPT = Path(__file__).with_name("walk_script.py")
OLDEST, NEWEST = (3, 9), (3, 14)

# Prints "3 13 2 0": version, and whether the build has no GIL.
TELL_VERSION = """
import sys, sysconfig
print(*sys.version_info[:3], int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: tuple[int, int, int]
    free_threaded: bool
    problem: str  # "" if it can be used

    def __str__(self) -> str:
        number = ".".join(map(str, self.version)) + ("t" if self.free_threaded else "")
        return f"{number}-{self.path}"


def environment() -> dict[str, str]:
    # The tests' own interpreter may have been given paths that mean nothing to another one.
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MSMEMSCOPE"))}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment(), check=False
    )


def candidates() -> list[str]:
    cache = os.environ.get("MSMEMSCOPE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "msmemscope"
    )
    paths = [sys.executable]
    paths += sorted(glob.glob("/usr/bin/python3.[0-9]")) + sorted(
        glob.glob("/usr/bin/python3.[0-9][0-9]")
    )
    paths += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
    for ready in sorted(glob.glob(os.path.join(cache, "*", "ready"))):
        paths += Path(ready).read_text(encoding="utf-8").splitlines()[:1]
    paths += [p for p in os.environ.get("MEMSCOPE_TEST_PYTHONS", "").split(":") if p]
    return paths


def look_at(path: str) -> Interpreter:
    try:
        told = run(path, "-c", TELL_VERSION)
        major, minor, micro, no_gil = map(int, told.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Interpreter(path, (0, 0, 0), False, f"does not run: {error}")
    known = OLDEST <= (major, minor) <= NEWEST
    return Interpreter(
        path, (major, minor, micro), bool(no_gil), "" if known else "not among CPython 3.9 to 3.14"
    )


def interpreters() -> list[Interpreter]:
    seen = {}
    for path in candidates():
        seen.setdefault(os.path.realpath(path), path)
    return [look_at(path) for path in seen.values()]


FOUND = interpreters()


def agent() -> str:
    library = _locate.library()
    assert library is not None, "the agent is not built; run 'make install'"
    return library


def test_lists_the_interpreters(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\ninterpreters found for the frame walk:")
        for one in FOUND:
            print(f"  {one}{' (' + one.problem + ')' if one.problem else ''}")
    assert any(not one.problem for one in FOUND)


@pytest.mark.parametrize("interpreter", FOUND, ids=str)
def test_raw_walk_equals_the_public_one(interpreter: Interpreter) -> None:
    if interpreter.problem:
        pytest.skip(f"{interpreter.path}: {interpreter.problem}")
    result = run(interpreter.path, str(SCRIPT), agent())
    said = result.stdout + result.stderr
    if interpreter.free_threaded:
        assert result.returncode == 3, said
        assert "free-threaded" in said
        return
    assert result.returncode == 0, said
    assert result.stdout.startswith("walks "), said
    assert result.stdout.rstrip().endswith("differences 0"), said
    assert result.stderr == ""
