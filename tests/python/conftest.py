"""What the Python tests share: a recorded stand-in for the agent, and child interpreters.

The package is imported here with MSMEMSCOPE_DISABLE set, so that pytest itself is never watched;
whatever needs the real agent runs in a child.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# What started pytest (nohup, a shell's background job, a service) may ignore or block signals, and
# every child would, too. A handler is not inherited: here they stay ignored, there they are not.
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own doing
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)
signal.signal(signal.SIGINT, signal.default_int_handler)

_OUTSIDE = {k: v for k, v in os.environ.items() if not k.startswith("MSMEMSCOPE_")}
_OUTSIDE.update({k: v for k, v in os.environ.items() if k == "MSMEMSCOPE_BUILD_DIR"})
os.environ["MSMEMSCOPE_DISABLE"] = "1"

from msmemscope import _locate  # noqa: E402
from msmemscope._agent import Agent  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        skip = pytest.mark.skip(reason="torch is not importable")
        for item in items:
            if "torch" in item.keywords:
                item.add_marker(skip)


class FakeAgent(Agent):
    """Notes what it is called with; `statuses` is what status() says."""

    available = True

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.statuses: dict[str, Any] = {"directory": ""}

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def records(self, kind: int) -> list[tuple[Sequence[int], Sequence[str]]]:
        return [call[2:] for call in self.calls if call[0] == "record" and call[1] == kind]

    def configure(self, key: str, value: str) -> None:
        self.calls.append(("configure", key, value))

    def install(self) -> None:
        self.calls.append(("install",))

    def refresh(self) -> None:
        self.calls.append(("refresh",))

    def start(self) -> None:
        self.calls.append(("start",))

    def stop(self) -> None:
        self.calls.append(("stop",))

    def shutdown(self) -> None:
        self.calls.append(("shutdown",))

    def exiting(self) -> None:
        self.calls.append(("exiting",))

    def step(self, source: int, index: int, optimizer: int = 0, name: str = "") -> None:
        self.calls.append(("step", source, index, optimizer, name))

    def record(self, kind: int, numbers: Sequence[int], strings: Sequence[str]) -> None:
        self.calls.append(("record", kind, tuple(numbers), tuple(strings)))

    def python_stacks_on(self) -> bool:
        self.calls.append(("python_stacks_on",))
        return True

    def python_finalizing(self) -> None:
        self.calls.append(("python_finalizing",))

    def status(self) -> dict[str, Any]:
        return self.statuses


@pytest.fixture
def fake_agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MSMEMSCOPE_CONFIG", "MSMEMSCOPE_RUN_ID", "RANK"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


class Child:
    """A finished child process."""

    def __init__(self, done: subprocess.CompletedProcess[str], directory: Path) -> None:
        self.returncode = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        self.directory = directory

    def ok(self) -> Child:
        assert self.returncode == 0, f"exit {self.returncode}\n{self.stdout}\n{self.stderr}"
        return self

    def said(self) -> list[str]:
        """Our own lines on stderr."""
        return [line for line in self.stderr.splitlines() if "msmemscope" in line]

    def processes(self, output: str = "memscopeDumpResults") -> list[Path]:
        """Directories of the processes that made a trace."""
        return sorted((self.directory / output).glob("run-*/*/"))

    def analyze(self, output: str = "memscopeDumpResults", *options: str) -> dict[str, Any]:
        """`msmemscope analyze --json` of the newest run."""
        binary = _locate.command()
        assert binary is not None, "the command is not built"
        done = subprocess.run(
            [binary, "analyze", "--json", *options, str(self.directory / output)],
            env=_OUTSIDE,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed


RunChild = Callable[..., Child]


@pytest.fixture
def run_python(tmp_path: Path) -> RunChild:
    """Runs a program in a fresh interpreter, in an empty directory. `prefix` comes before the
    interpreter (the command); `options` are the interpreter's; `files` are written beside it."""

    def run(
        program: str,
        *arguments: str,
        prefix: Sequence[str] = (),
        options: Sequence[str] = (),
        files: dict[str, str] | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 240,
    ) -> Child:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(textwrap.dedent(text))
        done = subprocess.run(
            [*prefix, sys.executable, *options, str(script), *arguments],
            cwd=tmp_path,
            env={**_OUTSIDE, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Child(done, tmp_path)

    return run


@pytest.fixture
def command() -> str:
    binary = _locate.command()
    assert binary is not None, "the command is not built"
    return binary


@pytest.fixture
def synth(command: str) -> Path:
    """msmemscope-synth, which is built beside the command or in build/, and never installed."""
    for directory in (Path(command).parent, ROOT / "build"):
        if (directory / "msmemscope-synth").is_file():
            return directory / "msmemscope-synth"
    pytest.skip("the generator of traces is not built")
