"""What the agent costs a training step, as a ratio with its spread.

Per pair of processes, one without the agent and one with it, both trained and warm: they take turns
of a few steps, each time in another order, while the other side waits. A turn's ratio is the median
step with over the median step without; a pair's is the median over its turns. Several pairs of
processes, as two processes differ by where their memory lies: the mean over pairs, with a 95 %
t-interval. Other tools take turns as further sides where they are asked for (worker.py).

    train_step.py MODEL [--pairs N] [--turns N] [--steps N] [--sides agent,...] [--python EXE]
                        [--memray FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
STUDENT_95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14]


class Worker:
    def __init__(self, python: str, model: str, side: str, path: str) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("worker.py")), model, side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path} if path else None,
        )
        self.about = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"train_step.py: a worker ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, command: str) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def end(self) -> dict[str, Any]:
        answer = self.ask("end")
        self.process.wait()
        return answer


def interval(values: list[float]) -> dict[str, float]:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"ratio": mean, "low": math.nan, "high": math.nan}
    quantile = STUDENT_95[min(len(values) - 2, len(STUDENT_95) - 1)]
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return {"ratio": mean, "low": mean - half, "high": mean + half}


def measure(
    model: str, python: str, sides: list[str], pairs: int, turns: int, steps: int, memray: str
) -> Any:
    order = random.Random(1)
    ratios: dict[str, list[float]] = {side: [] for side in sides}
    base: list[float] = []
    ends: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    about: dict[str, Any] = {}
    for _ in range(pairs):
        workers = {
            side: Worker(python, model, side, memray if side == "memray" else "")
            for side in ["none", *sides]
        }
        about = workers["none"].about
        turn_ratios: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(turns):
            names = list(workers)
            order.shuffle(names)
            medians = {
                name: statistics.median(workers[name].ask(f"run {steps}")["seconds"])
                for name in names
            }
            base.append(medians["none"])
            for side in sides:
                turn_ratios[side].append(medians[side] / medians["none"])
        for side in sides:
            ratios[side].append(statistics.median(turn_ratios[side]))
        for side, worker in workers.items():
            end = worker.end()
            if side in ends:
                ends[side].append(end)
    result: dict[str, Any] = {
        "model": model,
        "step_ms": statistics.median(base) * 1e3,
        "pairs": pairs,
        "turns": turns,
        "steps": steps,
        **about,
    }
    for side in sides:
        result[side] = {**interval(ratios[side]), "ratios": ratios[side]}
    if "agent" in sides:
        events = sum(end["events"] for end in ends["agent"])
        total = pairs * (turns * steps + 5)
        result["events_per_step"] = events / total
        result["dropped"] = sum(end["dropped"] for end in ends["agent"])
        if events:
            result["bytes_per_event"] = sum(end["bytes"] for end in ends["agent"]) / events
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["opbound", "realistic"])
    parser.add_argument("--pairs", type=int, default=5, help="of processes")
    parser.add_argument("--turns", type=int, default=12, help="of each side")
    parser.add_argument("--steps", type=int, default=15, help="of a turn")
    parser.add_argument("--sides", default="idle,agent", help="as in worker.py")
    parser.add_argument("--memray", default="", help="folder with memray for the interpreter")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that trains")
    arguments = parser.parse_args()
    result = measure(
        arguments.model,
        arguments.python,
        arguments.sides.split(","),
        arguments.pairs,
        arguments.turns,
        arguments.steps,
        arguments.memray,
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
