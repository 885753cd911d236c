"""Dispatch modes and tensor subclasses of the program's, active where ours would make a tensor."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize("raises", [False, True])
def test_a_dispatch_mode_sees_the_programs_operators_only(
    run_hostile: Callable[..., Any], raises: bool
) -> None:
    done = run_hostile(
        f"""
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
        import msmemscope
        msmemscope.config(report_to="none")
        operators = []
        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                operators.append(str(function))
                if {raises}: raise RuntimeError("no operators here")
                return function(*args, **(kwargs or {{}}))
        class Refusing(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                raise RuntimeError("no functions here")
        kept = [torch.zeros(100_000).as_subclass(Refusing)]
        with Mode():
            msmemscope.start()
        for _ in range(40):
            kept.append(torch.zeros(100_000))
            msmemscope.step()
        with Mode():
            msmemscope.stop()
        print(operators)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
