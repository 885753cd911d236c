"""Python that allocates a lot: what host_python.py measures the tools with.

    workload.py KIND ROUNDS      KIND: json, numpy, interpreter

Prints one JSON object: the seconds, wall and CPU time of this process's own thread, of ROUNDS
rounds after a first one. The work of a round is the same each time.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def json_round() -> int:
    """A document of some thousand small values, written and read."""
    rows = [
        {"id": i, "name": f"row {i}", "values": [i * 0.5 + k for k in range(8)], "tags": ["a", "b"]}
        for i in range(2000)
    ]
    text = json.dumps(rows)
    return len(json.loads(text)) + len(text)


def numpy_round() -> int:
    """Temporaries of some kilobytes, as expressions over small arrays make them."""
    import numpy as np

    total = 0
    for size in range(100, 1300):
        a = np.arange(size, dtype=np.float64)
        b = np.sqrt(a * 2.0 + 1.0) - a / (a + 1.0)
        total += int(b[b > 0.5].sum() > 0) + np.concatenate([a, b]).size
    return total


class Task:
    """A node of the interpreter benchmark: objects that call and replace each other."""

    def __init__(self, kind: int, queue: list[Any]) -> None:
        self.kind, self.queue, self.seen = kind, queue, {}

    def run(self, packet: dict[str, Any]) -> dict[str, Any] | None:
        self.seen[packet["id"] % 64] = packet
        if packet["hops"] == 0:
            return None
        return {"id": packet["id"] * 31 % 9973, "hops": packet["hops"] - 1, "data": [packet["id"]]}


def interpreter_round() -> int:
    """Packets handed on between tasks: calls, dicts and small lists, no library."""
    queue: list[Any] = []
    tasks = [Task(kind, queue) for kind in range(6)]
    done = 0
    for start in range(400):
        packet: dict[str, Any] | None = {"id": start, "hops": 40, "data": []}
        while packet is not None:
            packet = tasks[packet["id"] % 6].run(packet)
            done += 1
    return done


def main() -> None:
    kind, rounds = sys.argv[1], int(sys.argv[2])
    work = {"json": json_round, "numpy": numpy_round, "interpreter": interpreter_round}[kind]
    # Enough for the agent to make its trace (16 MiB), and all of it there before the clock starts.
    kept = bytearray(20 << 20)
    work()
    wall, cpu = time.perf_counter(), time.thread_time()
    check = sum(work() for _ in range(rounds))
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "check": check + len(kept)}))


if __name__ == "__main__":
    main()
