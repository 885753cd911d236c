"""Where the hostile programs are built, and how hostile Python programs are run."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

# What starts a shell's background job, or nohup, may ignore SIGINT; every child would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
