"""Optimizer steps: each noticed once, nothing changed, compiled code left alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import RunChild

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

Seen = list[tuple[int, int, str]]


class Recording:
    on = True


@pytest.fixture
def seen() -> Iterator[Seen]:
    from msmemscope._steps import OptimizerSteps

    steps: Seen = []
    Recording.on = True
    original = torch.optim.Optimizer.__dict__["_optimizer_step_code"]
    patch = OptimizerSteps(
        torch, lambda: Recording.on, lambda serial, count, name: steps.append((serial, count, name))
    )
    assert patch.install()
    yield steps
    patch.remove()
    assert torch.optim.Optimizer.__dict__["_optimizer_step_code"] is original


def parameter() -> Any:
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    return p


def test_every_optimizer_has_its_own_serial_and_count(seen: Seen) -> None:
    adam = torch.optim.Adam([parameter()])
    sgd = torch.optim.SGD([parameter()], lr=0.1)
    adam.step()
    sgd.step()
    adam.step()
    assert seen == [(1, 1, "Adam"), (2, 1, "SGD"), (1, 2, "Adam")]


def test_an_optimizer_from_before_the_patch_is_noticed() -> None:
    from msmemscope._steps import OptimizerSteps

    sgd = torch.optim.SGD([parameter()], lr=0.1)
    steps: Seen = []
    patch = OptimizerSteps(torch, lambda: True, lambda *step: steps.append(step))
    patch.install()
    sgd.step()
    patch.remove()
    sgd.step()
    assert steps == [(1, 1, "SGD")]


def test_a_subclass_that_calls_super_steps_once(seen: Seen) -> None:
    class Clipped(torch.optim.SGD):  # type: ignore[misc,name-defined]
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    torch.optim.SGD([parameter()], lr=0.1)  # so that SGD.step is wrapped in every version
    clipped = Clipped([parameter()], lr=0.1)
    clipped.step()
    clipped.step()
    assert seen == [(1, 1, "Clipped"), (1, 2, "Clipped")]


def test_an_optimizer_inside_another_s_step_counts_for_itself(seen: Seen) -> None:
    inner = torch.optim.SGD([parameter()], lr=0.1)

    class Outer(torch.optim.SGD):  # type: ignore[misc,name-defined]
        def step(self, closure: Any = None) -> Any:
            inner.step()
            return super().step(closure)

    Outer([parameter()], lr=0.1).step()
    assert sorted(seen) == [(1, 1, "SGD"), (2, 1, "Outer")]


def test_a_scheduler_a_closure_and_lbfgs(seen: Seen) -> None:
    sgd = torch.optim.SGD([parameter()], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(sgd, 1)
    sgd.step()
    schedule.step()
    p = parameter()
    lbfgs = torch.optim.LBFGS([p], max_iter=3)

    def closure() -> Any:
        lbfgs.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    lbfgs.step(closure)
    assert seen == [(1, 1, "SGD"), (2, 1, "LBFGS")]


def test_nothing_counts_while_not_recording(seen: Seen) -> None:
    sgd = torch.optim.SGD([parameter()], lr=0.1)
    Recording.on = False
    sgd.step()
    Recording.on = True
    sgd.step()
    assert seen == [(1, 1, "SGD")]


def test_an_error_in_our_own_code_never_reaches_the_program() -> None:
    from msmemscope._steps import OptimizerSteps

    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    patch = OptimizerSteps(torch, lambda: True, broken)
    patch.install()
    try:
        torch.optim.SGD([parameter()], lr=0.1).step()
    finally:
        patch.remove()


def test_optimizers_are_not_kept_alive(seen: Seen) -> None:
    sgd = torch.optim.SGD([parameter()], lr=0.1)
    sgd.step()
    gone = weakref.ref(sgd)
    del sgd
    gc.collect()
    assert gone() is None
    again = torch.optim.SGD([parameter()], lr=0.1)
    again.step()
    assert seen == [(1, 1, "SGD"), (2, 1, "SGD")], "an id used again is another optimizer"


def test_a_copied_optimizer_is_another_one(seen: Seen) -> None:
    import copy

    sgd = torch.optim.SGD([parameter()], lr=0.1)
    sgd.step()
    copy.deepcopy(sgd).step()
    assert [step[0] for step in seen] == [1, 2]
    assert not [name for name in vars(sgd) if "memscope" in name]


def test_a_patch_over_ours_stays(seen: Seen) -> None:
    from msmemscope._steps import OptimizerSteps

    original = torch.optim.Optimizer.__dict__["_optimizer_step_code"]
    patch = OptimizerSteps(torch, lambda: True, lambda *_: None)
    assert patch.install(), "a second one finds the first and stands down"
    assert torch.optim.Optimizer.__dict__["_optimizer_step_code"] is original
    patch.remove()
    assert torch.optim.Optimizer.__dict__["_optimizer_step_code"] is original


COMPILED = """
    import sys
    if sys.argv[1] == "watched":
        import msmemscope
        msmemscope.config(report_to="none", output_path="out")
        msmemscope.start()
    import torch
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter

    torch.manual_seed(0)
    counter = CompileCounter()

    def loss_of(x, w):
        return torch.nn.functional.gelu(x @ w).pow(2).mean()

    compiled = torch.compile(loss_of, backend=counter, fullgraph=True)
    w = torch.nn.Parameter(torch.randn(16, 16))
    optimizer = torch.optim.SGD([w], lr=0.1)

    @torch.compile(backend=counter)
    def optimize():
        optimizer.step()

    for step in range(12):
        x = torch.randn(4 + step % 3, 16)
        loss = compiled(x, w)
        loss.backward()
        optimize() if step % 2 else optimizer.step()
        optimizer.zero_grad()
        if sys.argv[1] == "watched":
            msmemscope.step()
    print(repr(loss.item()), repr(w.sum().item()))
    print("frames", counter.frame_count, "ops", counter.op_count)
    print("stats", dict(torch._dynamo.utils.counters["stats"]))
    print("recompiles", len(torch._dynamo.utils.counters["recompiles"]))
    print("breaks", sum(torch._dynamo.utils.counters["graph_break"].values()))
"""


@pytest.mark.skipif(
    int(torch.__version__.split(".")[0]) < 2, reason="torch.compile came with torch 2"
)
def test_compiled_code_is_the_same_with_and_without_us(run_python: RunChild) -> None:
    alone = run_python(COMPILED, "alone").ok()
    watched = run_python(COMPILED, "watched").ok()
    assert watched.stdout == alone.stdout
    assert watched.said() == []
