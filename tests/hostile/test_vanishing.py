"""Directories that cannot be written to, or that go away while the program runs."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import RunBoth

# Allocates through the stand-in for libc10 (1), removes what is named (2), and goes on.
WORK = """
import ctypes, pathlib, shutil, sys, time
library = ctypes.CDLL(sys.argv[1])
library.fake_c10_new.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def allocate(count):
    for i in range(count): library.fake_c10_new(4096 + 16 * i, 64)
allocate(1000)
for path in list(pathlib.Path().glob(sys.argv[2])):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
allocate(100_000)  # more than a slot
time.sleep(1.2)  # the agent's thread looks after its files once a second
allocate(1000)
print("unharmed")
"""
VICTIMS = {
    "the output": "traced",
    "the run": "traced/run-*",
    "the process": "traced/run-*/*",
    "the slab": "traced/run-*/*/hot.slab",
    "the log": "traced/run-*/*/trace.msm",
}


def work(build: pathlib.Path, tmp_path: pathlib.Path, victim: str) -> list[object]:
    (tmp_path / "work.py").write_text(WORK)
    return [sys.executable, "work.py", build / "hostile" / "libc10.so", victim]


@pytest.mark.parametrize("what", VICTIMS)
def test_files_removed_while_the_program_runs(
    what: str, run_both: RunBoth, build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    if what in ("the run", "the process") and not full:
        pytest.skip("in full only")
    pair = run_both(*work(build, tmp_path, VICTIMS[what]))
    assert (pair.traced.returncode, pair.traced.stdout) == (0, "unharmed\n")
    if what == "the slab":  # everything was in the log by the end
        assert pair.counts()[0]["allocs"] == 102_000
    else:
        assert pair.counts() == []


@pytest.fixture
def read_only(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory that nobody may write to, root included where we are root."""
    place = tmp_path / "read-only"
    place.mkdir()
    if os.geteuid() != 0:
        place.chmod(0o500)
        yield place
        place.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_read_only_directory(
    run_both: RunBoth, build: pathlib.Path, tmp_path: pathlib.Path, read_only: pathlib.Path
) -> None:
    pair = run_both(*work(build, tmp_path, "nothing"), output=f"{read_only.name}/out")
    assert (pair.traced.returncode, pair.traced.stdout) == (0, "unharmed\n")
    (line,) = [line for line in pair.said() if "cannot make" in line]
    assert line.endswith("; the program goes on untraced")
    assert str(read_only) in line
