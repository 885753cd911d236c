"""Where the hostile programs are built, and how hostile Python programs are run."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import pytest

# What started pytest (nohup, a shell's background job, a service) may ignore or block signals, and
# every child would, too. A handler is not inherited: here they stay ignored, there they are not.
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own doing
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = "msmemscope: "  # begins each of the tool's lines


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build tree with the agent and the hostile programs."""
    path = pathlib.Path(os.environ.get("MSMEMSCOPE_BUILD_DIR", ROOT / "build"))
    assert (path / "hostile" / "pass_around").exists(), f"not built: {path}/hostile"
    return path


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether everything is to be run (make test-full), or a short version."""
    return os.environ.get("MEMSCOPE_TEST_FULL") == "1"


def outside() -> dict[str, str]:
    """The environment without anything of ours."""
    return {k: v for k, v in os.environ.items() if not k.startswith("MSMEMSCOPE_")}


RunHostile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_hostile(build: pathlib.Path, tmp_path: pathlib.Path) -> RunHostile:
    """Runs a Python program that uses the package; one that hangs fails."""

    def run(
        program: str, *, seconds: float = 60, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = outside()
        environment["PYTHONPATH"] = str(ROOT / "python")
        environment["MSMEMSCOPE_BUILD_DIR"] = str(build)
        environment.update(variables)
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run


@pytest.fixture
def run_command(build: pathlib.Path, tmp_path: pathlib.Path) -> RunHostile:
    """Runs the command."""

    def run(*words: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(build / "msmemscope"), *map(str, words)],
            cwd=tmp_path,
            env=outside(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run


@dataclasses.dataclass
class Pair:
    """A program's run without the agent, and its run under the command."""

    build: pathlib.Path
    output: pathlib.Path
    plain: subprocess.CompletedProcess[str]
    traced: subprocess.CompletedProcess[str]

    def said(self) -> list[str]:
        """The tool's own lines on stderr."""
        return [line for line in self.traced.stderr.splitlines() if line.startswith(OURS)]

    def processes(self) -> list[pathlib.Path]:
        """Directories of the processes that have a trace."""
        return sorted(path.parent for path in self.output.glob("run-*/*/trace.msm"))

    def counts(self) -> list[dict[str, int]]:
        """What each of the traces holds, by its number of allocations."""
        found = [count_events(self.build, trace) for trace in self.processes()]
        return sorted(found, key=lambda events: events["allocs"])

    def info(self) -> list[dict[str, Any]]:
        done = subprocess.run(
            [self.build / "msmemscope", "info", "--json", self.output],
            env=outside(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        inputs: list[dict[str, Any]] = json.loads(done.stdout)["inputs"]
        return inputs


def count_events(build: pathlib.Path, trace: pathlib.Path) -> dict[str, int]:
    shown = subprocess.run(
        [build / "hostile" / "count_events", trace], capture_output=True, text=True, check=True
    ).stdout.split()
    return dict(zip(shown[::2], map(int, shown[1::2]), strict=True))


RunBoth = Callable[..., Pair]


@pytest.fixture
def run_both(build: pathlib.Path, tmp_path: pathlib.Path) -> RunBoth:
    """Runs a program alone and under the command, and asserts that nobody could tell the two apart:
    stdout, stderr but for the tool's own lines, exit status or signal."""

    def run(
        *command: object,
        seconds: float = 60,
        options: Sequence[str] = (),
        output: str = "traced",
        **variables: str,
    ) -> Pair:
        words = [str(word) for word in command]
        prefix = [str(build / "msmemscope"), "--report-to=none", "-o", str(tmp_path / output)]

        def one(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                words,
                cwd=tmp_path,
                env={**outside(), **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )

        pair = Pair(build, tmp_path / output, one(words), one([*prefix, *options, "--", *words]))
        others = [line for line in pair.traced.stderr.splitlines(True) if not line.startswith(OURS)]
        assert pair.traced.stdout == pair.plain.stdout
        assert "".join(others) == pair.plain.stderr
        assert pair.traced.returncode == pair.plain.returncode
        return pair

    return run
