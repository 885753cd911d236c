"""Leaks between marks: what is allocated from mark A to mark B and not freed by mark C.

The original looks at the driver's memory (HAL) in a csv. This looks at all layers, in csv and db,
and with `all_marks` at every mark as an A; the end of the input stands for marks that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .base import BaseAnalyzer, BaseConfig, ask_command, checked, whole_number

_MIB = 1048576
_HAL = "HAL"


@dataclass(frozen=True)
class Leak:
    """A block that was not freed in time."""

    event_type: str  # HAL, PTA, ATB, ... as in the file
    addr: int
    size: int  # bytes
    index: Optional[int]  # the ID of its MALLOC row
    time_ns: int  # of its allocation


@dataclass(frozen=True)
class LeaksResult:
    """One A, B, C on one device. `leaks` lists 100,000 at most; bytes and blocks count all."""

    device: str  # as in the file: "0", "cpu"
    start_index: int  # of A
    at_end: bool  # C, or B and C, is the end of the input
    bytes: int
    blocks: int
    leaks: list[Leak] = field(default_factory=list)
    pid: Optional[int] = None  # of the process, where the file tells


@dataclass
class LeaksConfig(BaseConfig):
    """input_path: a csv or db; mstx_info: the marks' text; start_index: which of them is A."""

    mstx_info: str
    start_index: int
    all_marks: bool = False

    def validate(self) -> None:
        super().validate()
        if not isinstance(self.mstx_info, str):
            raise TypeError(f"mstx_info must be a string, not {type(self.mstx_info).__name__}")
        if not self.mstx_info.strip():
            raise ValueError("mstx_info must not be blank")
        self.start_index = whole_number(self.start_index, "start_index", 0)


class LeaksAnalyzer(BaseAnalyzer[LeaksConfig]):
    """Prints the original's lines and returns a LeaksResult for each device and A, B, C."""

    def analyze(self, config: LeaksConfig) -> list[LeaksResult]:
        config = checked(config, LeaksConfig)
        arguments = ["--mark", config.mstx_info, "--start", str(config.start_index)]
        if config.all_marks:
            arguments.append("--all")
        answer = ask_command("offline-leaks", *arguments, "--", config.input_path)
        results: list[LeaksResult] = []
        several = len({device["pid"] for device in answer["devices"]}) > 1
        for device in answer["devices"]:
            results += _device_results(device, config, several)
        return results


def _device_results(
    device: Mapping[str, Any], config: LeaksConfig, several: bool
) -> list[LeaksResult]:
    """`several`: the file has more than one process, so that a device alone does not tell which."""
    name, marks = device["device"], device["marks"]
    if several:
        name = f"{name} of process {device['pid']}"
    print(f"INFO: Starting to analyze data for device {name}...")
    results = [
        LeaksResult(
            device=device["device"],
            start_index=window["index"],
            at_end=window["at_end"],
            bytes=window["bytes"],
            blocks=window["blocks"],
            leaks=[Leak(**leak) for leak in window["leaks"]],
            pid=device["pid"],
        )
        for window in device["windows"]
    ]
    if not results:
        if marks < 3 and not config.all_marks:
            print(
                f"ERROR: Device {name} has fewer than 3 data points: {marks} marks "
                f"{config.mstx_info!r}"
            )
        else:
            print(
                f"INFO: start_index {config.start_index} is out of range on device {name}: "
                f"{marks} marks {config.mstx_info!r}"
            )
    for result in results:
        _print_result(result, name)
    return results


def _print_result(result: LeaksResult, device: str) -> None:
    print("\nLeak Analysis Results for the Custom Range:")
    if result.leaks:
        print(f"====== ERROR: Detected memory leaks on device {device} ======")
    for leak in result.leaks:
        print(
            f"Direct {leak.event_type.capitalize()} memory leak of {leak.size / _MIB} Mb(s) at "
            f"{leak.addr:#018x} in Index {leak.index}."
        )
    if not any(leak.event_type == _HAL for leak in result.leaks):
        print(f"No hal memory leaks detected on device {device}.")
    if result.blocks > len(result.leaks):
        print(f"INFO: {result.blocks - len(result.leaks)} more are not listed.")


def check_leaks(
    input_path: str, mstx_info: str, start_index: int, *, all_marks: bool = False
) -> list[LeaksResult]:
    """Leaks from mark `start_index` to the next one, if they are alive at the one after that.

    Prints them as msMemScope does and returns them. all_marks: every mark from `start_index` on
    begins such a round, and the end of the input stands for the marks that the last ones lack.
    """
    return LeaksAnalyzer().analyze(LeaksConfig(input_path, mstx_info, start_index, all_marks))
