"""Growth that the program declares, or the user lists, is suppressed and never a verdict."""

from __future__ import annotations

import subprocess

import pytest
from conftest import RunChild

pytestmark = pytest.mark.torch

GROWS = """
    import torch
    import msmemscope

    history = []

    def remember():
        history.append(torch.ones(64, 1024))

    msmemscope.config(report_to="none")
    {declared}
    msmemscope.start()
    for _ in range(40):
        remember()
        msmemscope.step()
    msmemscope.stop()
"""


def test_what_the_program_expects_is_suppressed(run_python: RunChild) -> None:
    declared = 'msmemscope.expect_growth("*.py:remember"); msmemscope.expect_growth("*:other")'
    diagnosis = run_python(GROWS.format(declared=declared)).ok().analyze()
    assert [verdict["cause"] for verdict in diagnosis["verdicts"]] == ["none"]
    (suppressed,) = diagnosis["suppressed"]
    assert suppressed["cause"] == "leak"
    assert suppressed["site"]["function"] == "remember"


def test_what_a_file_lists_is_suppressed(run_python: RunChild, command: str) -> None:
    child = run_python(GROWS.format(declared="")).ok()
    assert child.analyze()["verdicts"][0]["cause"] == "leak"
    listed = child.directory / "expected"
    listed.write_text("# ours\n\n*:remember\n")
    diagnosis = child.analyze("memscopeDumpResults", "--suppressions", str(listed))
    assert [verdict["cause"] for verdict in diagnosis["verdicts"]] == ["none"]
    results = child.directory / "memscopeDumpResults"
    for options, status in ((["--suppressions", listed], 0), ([], 1)):
        judged = subprocess.run(
            [command, "analyze", "--fail-on", "leak", "--report-to", "none", *options, results],
            check=False,
        )
        assert judged.returncode == status
