"""A trace under a small disk budget gives the diagnosis that the whole one gives."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Child, RunChild

pytestmark = pytest.mark.torch

STEPS = 4000

# 640,000 events a process: some 1.5 MB of log. A tensor of 4 KiB stays in every second step.
LEAK = f"""
    import os, sys, time
    import torch

    kept = []

    def leak(step):
        block = torch.empty(1024)
        kept.append(block)

    def work():
        for size in range(80):
            torch.empty(64 * (size + 1))

    def main(step_over):
        child = -1
        for step in range(1, {STEPS} + 1):
            work()
            if step % 2 == 0:
                leak(step)
            step_over()
            if step % 4 == 0:
                time.sleep(0.003)
            if step == 1000 and "fork" in sys.argv:
                child = os.fork()
        if child > 0:
            os.waitpid(child, 0)
"""
IN_API_MODE = """
    import msmemscope
    msmemscope.config(report_to="none")
    msmemscope.start()
    main(msmemscope.step)
    msmemscope.stop()
"""
# The optimizer's steps are the steps. Not where the process waits for its child: an optimizer that
# rests in the last quarter of a run gives no steps.
IN_COMMAND_MODE = """
    import msmemscope
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1)
    main(msmemscope.step if "fork" in sys.argv else optimizer.step)
"""
SMALL = {"MSMEMSCOPE_MAX_TRACE_SIZE": "1M"}  # the option takes 16M at least


def wait_for_folds(child: Child, output: str) -> None:
    """The last fold may go on when the program is over: then its draft is there."""
    until = time.monotonic() + 60
    while list((child.directory / output).glob("run-*/*/fold.tmp")) and time.monotonic() < until:
        time.sleep(0.05)


def inputs_of(command: str, directory: Path) -> list[dict[str, Any]]:
    shown = subprocess.run(
        [command, "info", "--json", directory], capture_output=True, text=True, check=True
    )
    inputs: list[dict[str, Any]] = json.loads(shown.stdout)["inputs"]
    return inputs


def known(frame: dict[str, Any]) -> dict[str, Any]:
    """Without what depends on the moment: whether the file was written just before the start."""
    return {key: value for key, value in frame.items() if key != "inferred"}


def answer(report: dict[str, Any]) -> dict[str, Any]:
    """What the user acts on: how much of what grows, since when, by which line."""
    numbers = ("cause", "confidence", "bytes_total", "bytes_per_step", "blocks")
    steps = ("first_step", "last_step", "processes")
    return {
        "steps": report["steps"],
        "layers": report["layers"],
        "verdicts": [
            {key: verdict[key] for key in numbers + steps}
            | {"site": known(verdict["site"]), "stack": list(map(known, verdict["stack"]))}
            for verdict in report["verdicts"]
        ],
    }


@pytest.mark.parametrize("mode", ["api", "command"])
@pytest.mark.parametrize("forks", [False, True], ids=["alone", "forks"])
def test_a_leak_is_the_same_with_and_without_folding(
    mode: str, forks: bool, command: str, run_python: RunChild
) -> None:
    program = LEAK + (IN_API_MODE if mode == "api" else IN_COMMAND_MODE)
    arguments = ["fork"] if forks else []

    def run(output: str, env: dict[str, str]) -> Child:
        prefix = [command, f"--output-path={output}", "--report-to=none", "--"]
        named = program.replace('report_to="none"', f'report_to="none", output_path="{output}"')
        child = run_python(
            named, *arguments, prefix=prefix if mode == "command" else (), env=env
        ).ok()
        wait_for_folds(child, output)
        return child

    whole = run("whole", {})
    folded = run("folded", SMALL)
    assert folded.said() == []
    for summary in inputs_of(command, whole.directory / "whole"):
        assert summary["folded"] is None
    inputs = inputs_of(command, folded.directory / "folded")
    assert len(inputs) == (2 if forks else 1)
    for summary in inputs:
        assert summary["folded"]["steps"] >= 100
        assert summary["dropped"] == {}
        assert summary["damage"] == []

    expected = answer(whole.analyze("whole"))
    assert answer(folded.analyze("folded")) == expected
    [leak] = expected["verdicts"]
    assert leak["cause"] == "leak"
    assert leak["bytes_per_step"] == pytest.approx(2048 * len(inputs), rel=0.01)
    assert "torch.empty(1024)" in leak["site"]["text"]

    # Folded steps cannot be told apart any more.
    past = inputs[0]["folded"]["steps"]
    refused = subprocess.run(
        [command, "analyze", "--steps=2:3", folded.directory / "folded"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "are folded (disk budget)" in line
    assert f"ask for steps from {past + 1} on" in line or forks

    # Nor are there events of them to write; what is alive is written.
    trace = inputs[0]["path"]
    converted = subprocess.run(
        [command, "convert", trace, "-o", folded.directory / "rows.csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert converted.returncode == 0
    assert f"(steps 1 to {past:,}) are folded (disk budget)" in converted.stderr
