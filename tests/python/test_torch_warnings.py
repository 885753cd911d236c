"""`python -W error`: CPython 3.12 and newer warn of threads at a fork, and ours shall be none."""

from __future__ import annotations

import pytest
from conftest import RunChild

pytestmark = pytest.mark.torch

# torch's own import may warn: the filter comes after it.
PROGRAM = """
    import os, sys, warnings
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    if len(sys.argv) > 1:
        import msmemscope
        msmemscope.config(report_to="none")
        msmemscope.start()
    kept = [torch.empty(100) for _ in range(100)]
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            torch.empty(10)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        kept.append(torch.empty(100))
    data = TensorDataset(torch.arange(64.0))
    loader = DataLoader(data, batch_size=8, num_workers=2)
    for _ in range(2):
        print(sum(float(batch[0].sum()) for batch in loader))
"""
SAID = "7\n7\n7\n2016.0\n2016.0\n"  # 0 + 1 + ... + 63


@pytest.mark.parametrize("mode", ["command", "api"])
def test_a_fork_and_a_data_loader_warn_of_nothing(
    mode: str, command: str, run_python: RunChild
) -> None:
    alone = run_python(PROGRAM).ok()
    assert alone.stdout == SAID
    if mode == "api":
        child = run_python(PROGRAM, "api").ok()
    else:
        child = run_python(PROGRAM, prefix=[command, "--report-to=none", "--"]).ok()
    assert child.stdout == SAID
    assert child.stderr == alone.stderr
    assert child.processes(), "and it was recorded"


def test_w_error_from_the_first_line_on(command: str, run_python: RunChild) -> None:
    program = """
        import os
        pid = os.fork()
        if pid == 0: os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    child = run_python(
        program, prefix=[command, "--report-to=none", "--"], options=["-W", "error"]
    ).ok()
    assert (child.stdout, child.stderr) == ("7\n", "")
