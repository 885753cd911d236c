"""What the offline analyzers share: checking the input, and asking the command."""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .. import _locate
from .._report import clean_environment

MAX_PATH = 4096
SUFFIXES = (".csv", ".db")


@dataclass
class BaseConfig:
    """What every analyzer takes. `validate()` raises for what is wrong; analyze() calls it."""

    input_path: str

    def validate(self) -> None:
        path = self.input_path
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"input_path must be a path, not {type(path).__name__}")
        path = self.input_path = os.fspath(path)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"File not found: {path}") from None
        except (OSError, ValueError) as error:  # too long a name, a NUL in it
            if len(path) > MAX_PATH:
                raise ValueError(f"input_path is longer than {MAX_PATH} characters") from None
            raise FileNotFoundError(f"File not found: {path!r} ({error})") from None
        if status.st_uid != os.getuid():
            print(f"WARN: {path} belongs to another user")
        if not os.path.isfile(path):
            raise FileNotFoundError(f"Not a file: {path}")
        if not os.access(path, os.R_OK):
            raise PermissionError(f"No permission to read {path}")
        if len(path) > MAX_PATH:
            raise ValueError(f"input_path is longer than {MAX_PATH} characters")
        if not path.endswith(SUFFIXES):
            raise ValueError(f"input_path must end in .csv or .db, not {os.path.basename(path)!r}")


Config = TypeVar("Config", bound=BaseConfig)


class BaseAnalyzer(ABC, Generic[Config]):
    """An offline analysis: analyze(config) prints what it finds and returns it."""

    @abstractmethod
    def analyze(self, config: Config) -> Any: ...


def checked(config: object, kind: type[Config]) -> Config:
    """`config`, if it is one of `kind` and every value in it will do."""
    if not isinstance(config, kind):
        raise TypeError(f"config must be of {kind.__name__}, not {type(config).__name__}")
    config.validate()
    return config


def whole_number(value: object, name: str, least: int) -> int:
    """`value`, if it is an int of at least `least`; bools are ints."""
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
    return int(value)


def ask_command(*arguments: str) -> dict[str, Any]:
    """What a verb of the command answers as JSON. Its one line of error becomes a ValueError."""
    binary = _locate.command()
    if binary is None:
        raise RuntimeError(
            f"the command {_locate.COMMAND} is not beside the package; install it, or name its "
            "build directory in MSMEMSCOPE_BUILD_DIR"
        )
    done = subprocess.run(  # our own binary
        [binary, *arguments],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode("utf-8", "replace").strip()
    prefix = f"{_locate.COMMAND}: "
    if done.returncode != 0 and not done.stdout:
        raise ValueError(said.removeprefix(prefix) if said else "the command failed")
    for line in said.splitlines():  # what could not be read of the input
        print(f"WARN: {line.removeprefix(prefix)}")
    answer = json.loads(done.stdout)
    if not isinstance(answer, dict):
        raise ValueError("the command's answer is no object")
    return answer
