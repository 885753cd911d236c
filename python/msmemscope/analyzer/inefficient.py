"""Memory that is held while it is not needed: allocated early, freed late, or idle in between.

The original writes what it finds into its input. This writes a copy, `inefficient/` beside the
input with the same file name (which MindStudio Insight insists on), and the input only when asked.
A second run finds and writes the same: results that are there already are kept, each once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional, Union

from .base import BaseAnalyzer, BaseConfig, ask_command, checked, whole_number

TYPES = ("early_allocation", "late_deallocation", "temporary_idleness")
DIRECTORY = "inefficient"


@dataclass(frozen=True)
class InefficientBlock:
    """A block, and what is wrong with it."""

    event_type: str  # PTA, ATB
    device: str
    addr: int
    size: int  # bytes
    time_ns: int  # of its allocation
    types: tuple[str, ...]


@dataclass(frozen=True)
class InefficientResult:
    """What was found. `largest` lists 1,000 blocks at most, by size."""

    output_path: str  # where the results were written
    blocks: int  # looked at
    accesses: int  # uses of blocks in the input; without any there is nothing to find
    found: int  # blocks with at least one type
    bytes: int  # of them
    by_type: dict[str, int]  # blocks of each type
    largest: list[InefficientBlock] = field(default_factory=list)


@dataclass
class InefficientConfig(BaseConfig):
    """mem_size: blocks smaller than this many bytes are left out; inefficient_type: one or a list
    of the three, None for all; idle_threshold: calls between two uses that are too many."""

    mem_size: int = 0
    inefficient_type: Optional[Union[str, Sequence[str]]] = None
    idle_threshold: int = 3000
    output_path: Optional[str] = None
    in_place: bool = False

    def types(self) -> list[str]:
        if self.inefficient_type is None:
            return list(TYPES)
        if isinstance(self.inefficient_type, str):
            return [self.inefficient_type]
        return list(self.inefficient_type)

    def target(self) -> str:
        """The file that is written."""
        if self.in_place:
            return self.input_path
        if self.output_path is not None:
            return os.fspath(self.output_path)
        directory, name = os.path.split(os.path.abspath(self.input_path))
        return os.path.join(directory, DIRECTORY, name)

    def validate(self) -> None:
        super().validate()
        if self.in_place and self.output_path is not None:
            raise ValueError("in_place and output_path do not go together; give one of them")
        if self.output_path == "":
            raise ValueError("output_path is empty; give the name of a file, or leave it out")
        suffix = os.path.splitext(self.input_path)[1]
        if not self.target().endswith(suffix):
            raise ValueError(
                f"output_path must end in {suffix} as its input does, not "
                f"{os.path.basename(self.target())!r}"
            )
        if self.in_place and not os.access(self.input_path, os.W_OK):
            raise PermissionError(f"No permission to write {self.input_path}")
        self._keep_input()
        self.mem_size = whole_number(self.mem_size, "mem_size", 0)
        chosen = self.inefficient_type
        if chosen is not None and not isinstance(chosen, (str, list, tuple, set, frozenset)):
            raise ValueError(f"inefficient_type must be a string or a list, not {chosen!r}")
        wanted = self.types()
        if not wanted or any(item not in TYPES for item in wanted):
            raise ValueError(f"inefficient_type must be of {', '.join(TYPES)}, not {chosen!r}")
        self.idle_threshold = whole_number(self.idle_threshold, "idle_threshold", 1)

    def _keep_input(self) -> None:
        """The input is changed with in_place only, whatever links lead to it."""
        target = self.target()
        if self.in_place or not os.path.exists(target):
            return
        if os.path.samefile(target, self.input_path):
            raise ValueError(
                f"{target} is the input itself, which changes only with in_place=True; "
                "give another output_path"
            )

    def make_directory(self) -> Optional[str]:
        """The directory for the results, if it had to be made."""
        if self.in_place or self.output_path is not None:
            return None
        directory = os.path.dirname(self.target())
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            if os.path.isdir(directory):
                return None
            raise PermissionError(
                f"{directory} is there and is no directory; give output_path"
            ) from None
        except OSError as error:
            raise PermissionError(
                f"{directory} cannot be made for the results ({error.strerror}); give output_path"
            ) from None
        return directory


class InefficientAnalyzer(BaseAnalyzer[InefficientConfig]):
    """Writes the results to a file, prints how far it is, and returns what was found."""

    def analyze(self, config: InefficientConfig) -> InefficientResult:
        config = checked(config, InefficientConfig)
        target = config.target()
        print(f"INFO: Connected to {config.input_path}")
        arguments = [
            "--mem-size",
            str(config.mem_size),
            "--types",
            ",".join(config.types()),
            "--idle-threshold",
            str(config.idle_threshold),
            "--output",
            target,
        ]
        made = config.make_directory()
        try:
            answer = ask_command("offline-inefficient", *arguments, "--", config.input_path)
        except BaseException:
            if made is not None:
                os.rmdir(made)  # nothing is in it: results appear whole or not at all
            raise
        print(f"INFO: {config.input_path} read successfully")
        print(f"INFO: Connecting to {target} to write results")
        result = InefficientResult(
            output_path=target,
            blocks=answer["blocks"],
            accesses=answer["accesses"],
            found=answer["found"],
            bytes=answer["bytes"],
            by_type=dict(answer["by_type"]),
            largest=[
                InefficientBlock(**{**block, "types": tuple(block["types"])})
                for block in answer["largest"]
            ],
        )
        if result.accesses == 0:
            print("INFO: The input has no ACCESS rows; record with --events=access to find any")
        print(f"INFO: All results have been successfully written to {target}")
        return result


def check_inefficient(
    input_path: str,
    mem_size: int = 0,
    inefficient_type: Optional[Union[str, Sequence[str]]] = None,
    idle_threshold: int = 3000,
    *,
    output_path: Optional[str] = None,
    in_place: bool = False,
) -> InefficientResult:
    """Finds blocks that are allocated early, freed late, or idle for more than `idle_threshold`
    calls, and writes `inefficient_type` into their MALLOC rows: in a copy, by default in the
    directory `inefficient` beside the input, or with in_place=True in the input itself."""
    config = InefficientConfig(
        input_path, mem_size, inefficient_type, idle_threshold, output_path, in_place
    )
    return InefficientAnalyzer().analyze(config)
