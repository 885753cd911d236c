"""How a process ended, as the trace says it: stop, exit, killed."""

from __future__ import annotations

import pytest
from conftest import RunChild

pytestmark = pytest.mark.torch

QUIET = 'msmemscope.config(report_to="none")'

ENDINGS = {
    "stop": f"""
        import msmemscope, torch
        {QUIET}
        msmemscope.start()
        torch.empty(5)
        msmemscope.stop()
    """,
    "exit": f"""
        import msmemscope, torch
        {QUIET}
        msmemscope.start()
        torch.empty(5)
    """,
    "killed": f"""
        import msmemscope, os, torch
        {QUIET}
        msmemscope.start()
        torch.empty(5)
        os._exit(0)
    """,
    # What ended the last recording counts.
    "exit, after a stop": f"""
        import msmemscope, torch
        {QUIET}
        msmemscope.start()
        torch.empty(5)
        msmemscope.stop()
        msmemscope.start()
        torch.empty(5)
    """,
    "exit, by an exception": f"""
        import msmemscope, torch
        {QUIET}
        msmemscope.start()
        torch.empty(5)
        raise SystemExit("as it was meant")
    """,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_in_api_mode(ending: str, run_python: RunChild) -> None:
    child = run_python(ENDINGS[ending])
    (process,) = child.analyze()["inputs"]
    assert process["ended"] == ending.partition(",")[0]


@pytest.mark.parametrize(
    ("program", "ended"),
    [
        ("import torch; torch.empty(5)", "exit"),
        ("import torch; torch.empty(5); raise SystemExit(3)", "exit"),
        ("import torch; torch.empty(5); 1 / 0", "exit"),
        ("import os, torch; torch.empty(5); os._exit(0)", "killed"),
        ("import msmemscope, torch; torch.empty(5); msmemscope.stop()", "stop"),
    ],
)
def test_in_command_mode(program: str, ended: str, command: str, run_python: RunChild) -> None:
    child = run_python(program, prefix=[command, "--report-to=none", "--"])
    (process,) = child.analyze()["inputs"]
    assert process["ended"] == ended
    assert process["complete"]


def test_holders_are_found_at_an_exit_too(command: str, run_python: RunChild) -> None:
    child = run_python(
        """
        import torch
        kept = []
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(60):
            kept.append(torch.zeros(100_000))
            model(torch.zeros(4)).sum().backward()
            optimizer.step()
        """,
        prefix=[command, "--report-to=none", "--"],
    ).ok()
    result = child.analyze()
    assert result["inputs"][0]["ended"] == "exit"
    assert result["verdicts"][0]["kept_at"]["line"] == 7
