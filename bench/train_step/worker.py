"""A training process that does as it is told: one of the sides of train_step.py.

Builds a model, then reads commands from stdin, one a line, and answers each with a line of JSON:

    run N     train N steps; {"seconds": [...]} of each
    events    {"events": recorded so far, "dropped": ...}
    end       stops recording; {"bytes": of the trace on disk, "events": ..., "dropped": ...}

    worker.py MODEL SIDE     MODEL: opbound, realistic
                             SIDE: none, idle, agent, profiler, profiler_memory, memray

profiler is torch.profiler with memory and stacks, profiler_memory the same without stacks, memray
its tracker over everything, without native stacks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Training:
    """Small layers, so that a step is many operators (opbound), or large ones (realistic)."""

    def __init__(self, kind: str) -> None:
        torch.manual_seed(0)
        if kind == "opbound":
            width, heads, inner, layers, self.shape = 32, 2, 64, 8, (2, 8)
        else:
            width, heads, inner, layers, self.shape = 128, 4, 512, 4, (4, 64)
        layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.1, batch_first=True)
        self.width = width
        self.model = nn.Sequential(
            nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            if "enable_nested_tensor" in nn.TransformerEncoder.__init__.__code__.co_varnames
            else nn.TransformerEncoder(layer, layers),
            nn.Linear(width, 1),
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def step(self) -> None:
        batch = torch.randn(*self.shape, self.width)
        loss = nn.functional.mse_loss(self.model(batch).mean(dim=(1, 2)), batch.mean(dim=(1, 2)))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def operators(training: Training) -> int:
    """Operators of one step, by torch's own profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.step()
    return sum(event.count for event in profile.key_averages() if event.key.startswith("aten::"))


def main() -> None:
    kind, side = sys.argv[1:3]
    training = Training(kind)
    agent: Any = None
    tools = contextlib.ExitStack()
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR"))
    if side in ("idle", "agent"):
        import msmemscope
        from msmemscope._session import session

        agent = session.agent
        msmemscope.config(output_path=folder.name, analysis="none", report_to="none")
        if side == "agent":
            msmemscope.start()
    if side == "memray":
        import memray

        tools.enter_context(memray.Tracker(str(Path(folder.name) / "memray.bin")))
    for _ in range(5):
        training.step()

    def counts() -> dict[str, int]:
        status = agent.status() if agent else {}
        return {
            "events": sum(status.get("events", {}).values()),
            "dropped": int(status.get("dropped", 0)),
        }

    def run(steps: int) -> list[float]:
        times = []
        profiler: Any = contextlib.nullcontext()
        if side in ("profiler", "profiler_memory"):
            profiler = torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU],
                profile_memory=True,
                with_stack=side == "profiler",
            )
        with profiler:
            for _ in range(steps):
                begin = time.perf_counter()
                training.step()
                times.append(time.perf_counter() - begin)
        return times

    answer: dict[str, Any] = {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "threads": torch.get_num_threads(),
    }
    if side == "none":
        answer["operators"] = operators(training)
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "run":
            print(json.dumps({"seconds": run(int(rest[0]))}), flush=True)
        elif word == "events":
            print(json.dumps(counts()), flush=True)
        elif word == "end":
            answer = counts()
            if agent:
                import msmemscope

                msmemscope.shutdown()
                traces = list(Path(folder.name).rglob("trace.msm"))
                answer["bytes"] = sum(path.stat().st_size for path in traces)
            print(json.dumps(answer), flush=True)
            break
    tools.close()
    folder.cleanup()


if __name__ == "__main__":
    main()
