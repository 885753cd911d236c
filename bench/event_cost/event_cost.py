"""What one recorded event costs the program: ns an alloc and a free of a tensor.

Runs in one process: first without the agent, then with it idle (imported, not recording), then
recording. The events come from a stand-in for libc10 (fake_c10.cc), which calls its own reporter
through a slot of its own, as torch's does; each thread has a Python stack of `--depth` frames when
it enters the loop. Prints one JSON object.

With `--native N` the innermost N native frames are recorded, too; then the events of threads
without Python (`plain`) come from N frames further in, so that there are as many.

    event_cost.py LIBC10 [--burst N] [--depth 30] [--native N]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Timing(ctypes.Structure):
    _fields_ = [
        ("alloc_ns", ctypes.c_double),
        ("free_ns", ctypes.c_double),
        ("begin_ns", ctypes.c_double),
        ("end_ns", ctypes.c_double),
        ("cpu_ns", ctypes.c_double),
    ]


def at_depth(depth: int, call: Callable[[], None]) -> None:
    """Calls `call` with `depth` Python frames above it."""
    if depth <= 0:
        call()
    elif depth % 2 == 0:
        at_depth(depth - 1, call)
    else:
        at_depth(depth - 1, call)  # of the same function, at another place


class Bench:
    def __init__(self, library: str, burst: int, depth: int, native: int) -> None:
        self.library = ctypes.CDLL(library)
        size, timing = ctypes.c_size_t, ctypes.POINTER(Timing)
        double = ctypes.POINTER(ctypes.c_double)
        self.library.bench_warm.argtypes = [size, ctypes.c_int, size, size, timing]
        self.library.bench_warm_native.argtypes = [ctypes.c_int, size, size, timing]
        self.library.bench_cold.argtypes = [size, size, timing]
        self.library.bench_cold_native.argtypes = [size, size, timing]
        self.library.bench_worst.argtypes = [size, double, double]
        self.library.bench_warm_native_deep.argtypes = [
            ctypes.c_int,
            ctypes.c_int,
            size,
            size,
            timing,
        ]
        self.burst = burst
        self.depth = depth
        self.native = native
        self.status: Callable[[], dict[str, Any]] = dict
        self.pause = 0.0

    def _deep(self, call: Callable[[], None]) -> None:
        frame, above = sys._getframe(0), 0
        while frame is not None:
            frame, above = frame.f_back, above + 1
        # `call` itself and the innermost at_depth are frames of the stack too.
        at_depth(max(0, self.depth - above - 2), call)

    def _drained(self) -> int:
        """Lets the agent's thread catch up, and tells what was dropped so far."""
        time.sleep(self.pause)
        return int(self.status().get("dropped", 0))

    def warm(self, threads: int, stack: bool, live: int = 64, repeats: int = 9) -> dict[str, float]:
        """A burst of events by each thread; bursts are apart, as an agent's slab is finite and no
        program makes tensors at this rate for long."""
        rounds = max(1, self.burst // (2 * live * threads))
        runs = []
        dropped = self._drained()
        for _ in range(repeats):
            timings = (Timing * threads)()

            def body(index: int, timings: Any = timings) -> None:
                slot = ctypes.pointer(timings[index])
                self._deep(lambda: self.library.bench_warm(index, threads, rounds, live, slot))

            self.library.bench_reset()
            if not stack and self.native:
                self.library.bench_warm_native_deep(self.native, threads, rounds, live, timings)
            elif not stack:
                self.library.bench_warm_native(threads, rounds, live, timings)
            elif threads == 1:
                body(0)
            else:
                workers = [threading.Thread(target=body, args=(i,)) for i in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            self._drained()
            wall = max(t.end_ns for t in timings) - min(t.begin_ns for t in timings)
            runs.append(
                {
                    "alloc_ns": statistics.fmean(t.alloc_ns for t in timings),
                    "free_ns": statistics.fmean(t.free_ns for t in timings),
                    "events_per_s": 2 * rounds * live * threads / wall * 1e9,
                    # What the threads would do together with a core each: contention between
                    # them shows here, the want of cores does not.
                    "events_per_cpu_s": sum(2 * rounds * live / t.cpu_ns for t in timings) * 1e9,
                }
            )
        return {
            **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
            "alloc_ns_min": min(run["alloc_ns"] for run in runs),
            "alloc_ns_max": max(run["alloc_ns"] for run in runs),
            "dropped": self._drained() - dropped,
        }

    def cold(self, pairs: int, touch: int, stack: bool, repeats: int = 5) -> dict[str, float]:
        runs = []
        dropped = self._drained()
        for _ in range(repeats):
            timing = Timing()
            slot = ctypes.pointer(timing)
            if stack:
                self._deep(lambda slot=slot: self.library.bench_cold(pairs, touch, slot))
            else:
                self.library.bench_cold_native(pairs, touch, slot)
            runs.append(timing)
        return {
            "alloc_ns": statistics.median(t.alloc_ns for t in runs),
            "free_ns": statistics.median(t.free_ns for t in runs),
            "alloc_ns_min": min(t.alloc_ns for t in runs),
            "alloc_ns_max": max(t.alloc_ns for t in runs),
            "dropped": self._drained() - dropped,
        }

    def worst_under_fsync(self, folder: Path, pairs: int) -> dict[str, float]:
        """The worst event while another thread writes to the trace's disk and fsyncs."""
        stop = threading.Event()

        def storm() -> None:
            block = os.urandom(1 << 20)
            path = folder / "storm"
            with path.open("wb", buffering=0) as file:
                while not stop.is_set():
                    file.seek(0)
                    for _ in range(8):
                        file.write(block)
                    os.fsync(file.fileno())
            path.unlink()

        worst, p9999 = ctypes.c_double(), ctypes.c_double()
        dropped = self._drained()
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            self._deep(
                lambda: self.library.bench_worst(pairs, ctypes.byref(worst), ctypes.byref(p9999))
            )
        finally:
            stop.set()
            thread.join()
        return {
            "worst_ns": worst.value,
            "p9999_ns": p9999.value,
            "dropped": self._drained() - dropped,
        }

    def all(self, pairs: int, touch: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, stack in (("stack", True), ("plain", False)):
            for threads in (1, 2, 4):
                result[f"{name}_{threads}"] = self.warm(threads, stack)
            result[f"{name}_cold"] = self.cold(pairs, touch, stack)
        return result


def trace_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("trace.msm"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--burst", type=int, default=400_000, help="events of a warm burst")
    parser.add_argument("--pairs", type=int, default=2_000, help="of a cold measurement")
    parser.add_argument("--touch", type=int, default=4 << 20, help="bytes between cold events")
    parser.add_argument("--depth", type=int, default=30, help="frames of the Python stack")
    parser.add_argument("--native", type=int, default=0, help="native frames to record")
    arguments = parser.parse_args()
    bench = Bench(arguments.library, arguments.burst, arguments.depth, arguments.native)
    result: dict[str, Any] = {"depth": arguments.depth, "touch": arguments.touch}

    result["none"] = bench.all(arguments.pairs, arguments.touch)

    import msmemscope
    from msmemscope._session import session

    bench.status = session.agent.status
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        folder = Path(name)
        msmemscope.config(
            output_path=name,
            analysis="none",
            report_to="none",
            call_stack=f"c:{arguments.native}" if arguments.native else "",
        )
        result["idle"] = bench.all(arguments.pairs, arguments.touch)
        msmemscope.start()
        bench.pause = 0.4
        result["recording"] = bench.all(arguments.pairs, arguments.touch)
        result["fsync"] = bench.worst_under_fsync(folder, arguments.burst // 2)
        msmemscope.shutdown()
        result["status"] = session.agent.status()
        recorded = sum(result["status"].get("events", {}).values())
        result["bytes_per_event"] = trace_bytes(folder) / recorded if recorded else None
    print(json.dumps(result))


if __name__ == "__main__":
    main()
