"""Ctrl-C, Ctrl-Z, SIGTERM and closed pipes at every moment of a run: the program's death is passed
on, nobody is left behind, no traceback of ours, no half of a report.

The report is made to last by a stderr that nobody reads: what it writes there waits.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msmemscope import _locate

RECORD = "import torch\ntorch.zeros(100)\n"
# Fills stderr, a pipe that nobody reads: what is written to it from then on waits.
CLOG = """
import fcntl, os
flags = fcntl.fcntl(2, fcntl.F_GETFL)
fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)
try:
    while True: os.write(2, b"." * 512)
except BlockingIOError:
    pass
fcntl.fcntl(2, fcntl.F_SETFL, flags)
"""
INTERRUPTED = b"the report was interrupted; `msmemscope analyze "


def clean(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MSMEMSCOPE_")}
    for name in ("RANK", "LD_PRELOAD"):
        environment.pop(name, None)
    environment.update(extra or {})
    return environment


def processes_of(group: int) -> set[int]:
    """Who lives in a process group, zombies aside."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


def wait_until(condition: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


class Job:
    """A command on a terminal of its own, its stderr a pipe that is read at the end only."""

    def __init__(self, words: Sequence[str], directory: Path, env: Mapping[str, str]) -> None:
        self._terminal, its_end = pty.openpty()
        self._process = subprocess.Popen(
            words,
            cwd=directory,
            env=clean(env),
            stdin=its_end,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(its_end)
        self.pid = self._process.pid

    def control_c(self) -> None:
        os.write(self._terminal, b"\x03")

    def said(self, line: bytes) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == line

    def end(self, seconds: float = 60) -> tuple[int, bytes]:
        _, err = self._process.communicate(timeout=seconds)
        return self._process.returncode, err

    def nobody_is_left(self) -> None:
        wait_until(lambda: processes_of(self.pid) == set(), 10)

    def kill(self) -> None:
        for pid in processes_of(self.pid):
            os.kill(pid, signal.SIGKILL)
        os.close(self._terminal)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    jobs: list[Job] = []

    def start_job(*words: str, env: Mapping[str, str] | None = None) -> Job:
        jobs.append(Job(words, tmp_path, env or {}))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.kill()


def python(command: str, program: str, *options: str) -> list[str]:
    return [command, *options, sys.executable, "-c", program]


# -- the launcher, while the program runs ----------------------------------------------------------


def test_sigterm_is_the_programs_and_its_death_is_ours(start: object, command: str) -> None:
    program = RECORD + "print('ready', flush=True)\nimport time\ntime.sleep(600)"
    job: Job = start(*python(command, program))  # type: ignore[operator]
    job.said(b"ready\n")
    os.kill(job.pid, signal.SIGTERM)
    status, err = job.end()
    assert status == -signal.SIGTERM
    assert b"the process was killed" in err, "a report all the same"
    job.nobody_is_left()


STUBBORN = (
    RECORD
    + """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("once", flush=True)
    time.sleep(600)
"""
)


def test_control_c_once_and_twice(start: object, command: str) -> None:
    job: Job = start(*python(command, STUBBORN))  # type: ignore[operator]
    job.said(b"ready\n")
    job.control_c()
    job.said(b"once\n")
    job.control_c()
    status, err = job.end()
    assert status == -signal.SIGINT
    # The program's own, of two interrupts; none in a file of ours.
    assert err.count(b"Traceback") == 2
    assert b"python/msmemscope/" not in err
    assert b"MemScope" in err, "the report was not what was interrupted"
    job.nobody_is_left()


# -- the launcher, while the report is made --------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("status", [0, 7])
@pytest.mark.parametrize("whom", ["the terminal's jobs", "the launcher"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_report_and_the_status_stays(
    start: object, command: str, name: str, whom: str, status: int
) -> None:
    program = RECORD + CLOG + f"print('ready', flush=True)\nos._exit({status})"
    job: Job = start(*python(command, program))  # type: ignore[operator]
    job.said(b"ready\n")
    wait_until(lambda: len(processes_of(job.pid)) == 2 and blocked_in_write(job.pid))
    if whom == "the terminal's jobs" and name == "SIGINT":
        job.control_c()
    else:
        kill = os.kill if whom == "the launcher" else os.killpg
        kill(job.pid, getattr(signal, name))
    wait_until(lambda: len(processes_of(job.pid)) == 1)  # before there is room in the pipe
    got, err = job.end()
    assert got == status
    assert err.rstrip(b"\n").endswith(b"makes it"), err[-300:]
    assert INTERRUPTED in err
    assert b"MemScope" not in err, "no half of it"
    job.nobody_is_left()


def blocked_in_write(group: int) -> bool:
    """Somebody of the group waits for room in a pipe."""
    for pid in processes_of(group):
        try:
            if Path(f"/proc/{pid}/wchan").read_text() in ("pipe_write", "anon_pipe_write"):
                return True
        except OSError:
            pass
    return False


@pytest.mark.torch
def test_control_z_while_the_report_is_made_and_fg(command: str, tmp_path: Path) -> None:
    """bash stops the job on Ctrl-Z, and continues it; the report is whole afterwards."""
    script = tmp_path / "program.py"
    script.write_text(RECORD + "print('rea' + 'dy', flush=True)")
    job = tmp_path / "job.sh"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The report waits for a reader of the pipe.
    job.write_text(
        f"set -m\n{command} {sys.executable} {script} 2>{fifo}\n"
        "echo sta''tus $?\nfg >/dev/null\necho en''ded $?\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve("/bin/bash", ["/bin/bash", str(job)], clean())
    try:
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        filler = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(filler, b"." * 512)
        except BlockingIOError:
            pass
        os.close(filler)
        read_until(terminal, b"ready")
        wait_until(lambda: any(blocked_in_write(group) for group in groups_of_session(pid)))
        os.write(terminal, b"\x1a")
        read_until(terminal, b"status 148")  # 128 + SIGTSTP, as bash counts
        os.set_blocking(reader, True)
        got = b""
        while part := os.read(reader, 65536):
            got += part
        read_until(terminal, b"ended 0")
        assert got.count(b"MemScope") == 1
        assert b"interrupted" not in got
        os.waitpid(pid, 0)
    finally:
        os.close(terminal)


def groups_of_session(session: int) -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.add(int(fields[2]))
    return found


def read_until(fd: int, text: bytes, seconds: float = 60) -> bytes:
    got = b""
    deadline = time.monotonic() + seconds
    while text not in got and time.monotonic() < deadline:
        ready, _, _ = select.select([fd], [], [], 0.1)
        if ready:
            try:
                got += os.read(fd, 4096)
            except OSError:
                break
    assert text in got, got
    return got


# -- closed pipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--call-stack=c:5",)], ids=["quiet", "with a note"])
def test_a_closed_stderr_changes_nothing_for_the_program(
    start: object, command: str, options: tuple[str, ...]
) -> None:
    program = "import sys; sys.stdin.read(); print('ran', flush=True); sys.exit(7)"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        python(command, program, *options),
        env=clean(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=write,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stdout) == (7, b"ran\n")


@pytest.mark.torch
def test_head_that_has_seen_enough(command: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    # Not print(): what is left in Python's buffer would at times make its status 120.
    script.write_text(RECORD + "import os\nwhile True: os.write(1, b'x' * 100 + b'\\n')")
    shell = f"{command} --report-to=none {sys.executable} {script} | head -n 1; "
    done = subprocess.run(
        ["/bin/bash", "-c", shell + "echo ${PIPESTATUS[0]}"],
        cwd=tmp_path,
        env=clean(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # The program's own end: an exception it did not catch.
    assert done.stdout.splitlines() == ["x" * 100, "1"]
    assert "BrokenPipeError" in done.stderr
    assert "python/msmemscope/" not in done.stderr


@pytest.mark.torch
@pytest.mark.parametrize("verb", ["analyze", "info"])
def test_verbs_into_a_pipe_that_is_closed(command: str, tmp_path: Path, verb: str) -> None:
    program = python(command, RECORD, "--report-to=none")
    subprocess.run(program, cwd=tmp_path, env=clean(), timeout=60, check=True)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [command, verb, "memscopeDumpResults"],
        cwd=tmp_path,
        env=clean(),
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b""), "as any tool"


# -- API mode: the program reports, another process of its makes the report ------------------------


@pytest.fixture
def slow_command(tmp_path: Path, command: str) -> str:
    """A build directory whose command takes for ever."""
    build = tmp_path / "build"
    build.mkdir()
    library = _locate.library()
    assert library is not None
    shutil.copy(library, build)
    (build / "msmemscope").write_text("#!/bin/sh\necho asked >&2\nexec sleep 600\n")
    (build / "msmemscope").chmod(0o755)
    return str(build)


API = """
import os, torch, msmemscope
msmemscope.start()
torch.zeros(100)
print("ready", flush=True)
"""


@pytest.mark.torch
@pytest.mark.parametrize("whom", ["the group", "the program"])
def test_control_c_while_the_program_waits_for_its_report(
    start: object, slow_command: str, whom: str
) -> None:
    job: Job = start(  # type: ignore[operator]
        sys.executable, "-c", API, env={"MSMEMSCOPE_BUILD_DIR": slow_command}
    )
    job.said(b"ready\n")
    wait_until(lambda: len(processes_of(job.pid)) == 2)
    time.sleep(0.3)  # until it waits
    kill = os.killpg if whom == "the group" else os.kill
    kill(job.pid, signal.SIGINT)
    status, err = job.end(20)
    assert status == 0, "the program had ended well"
    assert b"Traceback" not in err
    assert err.endswith(b"makes it\n")
    assert INTERRUPTED in err
    job.nobody_is_left()


@pytest.mark.torch
def test_a_control_c_at_the_end_leaves_a_whole_trace(
    start: object, slow_command: str, command: str, tmp_path: Path
) -> None:
    """While the suspects are asked for: before the trace is closed."""
    program = API.replace("torch.zeros(100)", "kept = []") + (
        "for _ in range(20):\n    kept.append(torch.zeros(100_000))\n    msmemscope.step()\n"
    )
    job: Job = start(  # type: ignore[operator]
        sys.executable, "-c", program, env={"MSMEMSCOPE_BUILD_DIR": slow_command}
    )
    job.said(b"ready\n")
    wait_until(lambda: len(processes_of(job.pid)) == 2)
    os.killpg(job.pid, signal.SIGINT)
    _, err = job.end(20)
    assert b"Traceback" not in err
    (run,) = tmp_path.glob("memscopeDumpResults/run-*/*/")
    assert not (run / "hot.slab").exists()
    shown = subprocess.run([command, "info", "--json", run], capture_output=True, check=True)
    assert json.loads(shown.stdout)["inputs"][0]["ended"] == "exit"
    job.nobody_is_left()
