"""The command, run beside the program: suspects for the holder walk, the report, the csv or db.

Children get an environment without the agent, so that the tool never traces itself. Nothing here
raises: a diagnosis that cannot be made is one line on stderr.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from . import _config, _locate
from ._say import say_once

SUSPECTS_SECONDS = 5.0
REPORT_SECONDS = 60.0
DUMP_SECONDS = 2.0


def clean_environment() -> dict[str, str]:
    environment = dict(os.environ)
    for name in ("LD_PRELOAD", _config.ENVIRONMENT):
        environment.pop(name, None)
    environment["MSMEMSCOPE_DISABLE"] = "1"
    return environment


def _command(*arguments: str) -> list[str] | None:
    binary = _locate.command()
    if binary is None:
        say_once(f"no diagnosis: the command {_locate.COMMAND} is not beside the agent")
        return None
    return [binary, *arguments]


def suspects(process_directory: str) -> list[dict[str, Any]]:
    """The suspect groups of a process's trace: [{id, site, blocks: [{addr, size, birth}]}]."""
    command = _command("analyze", "--suspects", process_directory)
    if command is None:
        return []
    try:
        done = subprocess.run(  # our own binary
            command,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SUSPECTS_SECONDS,
            check=False,
        )
        groups = json.loads(done.stdout).get("groups", []) if done.returncode == 0 else []
    except (OSError, ValueError, AttributeError, subprocess.SubprocessError):
        return []
    return [group for group in groups if isinstance(group, dict)]


class Report:
    """`msmemscope analyze RUN`, started now and waited for at exit."""

    def __init__(self, run_directory: str, report_to: str, options: Sequence[str] = ()) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._again = f"`msmemscope analyze {run_directory}` makes it"
        if report_to == "none":
            return
        command = _command("analyze", *options, run_directory)
        if command is None:
            return
        try:
            with _target(report_to) as target:
                self._process = subprocess.Popen(  # our own binary
                    command,
                    env=clean_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=target,
                )
        except OSError as error:
            say_once(f"no report: {error}; {self._again}")

    def wait(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            seconds = f"{REPORT_SECONDS:.0f} s"
            say_once(f"the report took longer than {seconds} and was given up; {self._again}")
            return
        except KeyboardInterrupt:  # the user does not want to wait
            process.kill()
            process.wait()
        if process.returncode in (-signal.SIGINT, -signal.SIGKILL):  # Ctrl-C reaches both
            say_once(f"the report was interrupted; {self._again}")


class Dump:
    """`msmemscope convert`: the csv or db that was asked for. Small ones are there when stop()
    returns; large ones are made meanwhile and waited for at exit."""

    def __init__(self, inputs: Sequence[str], output: str, options: Sequence[str]) -> None:
        self._again = f"`msmemscope convert {inputs[0]} -o {output}/` makes it"
        self._process: subprocess.Popen[bytes] | None = None
        command = _command("convert", *inputs, *options, "-o", os.path.join(output, ""))
        if command is None:
            return
        try:
            self._process = subprocess.Popen(  # our own binary; it says on stderr what it wrote
                command,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        except OSError as error:
            say_once(f"no dump: {error}; {self._again}")

    def wait(self, seconds: float | None = None) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return  # goes on
        except KeyboardInterrupt:  # the user does not want to wait
            self._process.terminate()
            self._process.wait()
            say_once(f"the dump was interrupted; {self._again}")
        self._process = None


class _target:
    """The report's stdout: our stderr or stdout, or a file."""

    def __init__(self, report_to: str) -> None:
        self._report_to = report_to
        self._opened: int | None = None

    def __enter__(self) -> int:
        if self._report_to in ("stderr", "stdout"):
            stream = sys.stderr if self._report_to == "stderr" else sys.stdout
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                pass
            return 2 if self._report_to == "stderr" else 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._opened = os.open(self._report_to, flags, 0o600)
        return self._opened

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            os.close(self._opened)
