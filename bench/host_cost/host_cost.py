"""What the host source costs a program that does nothing but malloc and free, beside heaptrack.

For 1, 2 and 4 threads and stacks 10 and 40 calls deep the same program runs without a tool, under
the agent (native stacks; every block, and sampled every 512 KiB), under heaptrack and, as a library
in a Python process, under memray with native stacks, in turns, so that all meet the same noise.
Prints one JSON object: ns a pair of one thread, the median of the turns and their spread.

    host_cost.py MALLOC_PAIRS AGENT [--memray FOLDER] [--pairs N] [--turns N]

`wall` is what a user waits; `cpu` is the threads' own time, without the waiting for each other, for
heaptrack's lock or, on a busy machine, for a core.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DEPTHS = (10, 40)
THREADS = (1, 2, 4)
KEPT = 500  # blocks alive in each thread


class Bench:
    def __init__(self, program: str, agent: str, memray: str, pairs: int, folder: Path) -> None:
        self.program, self.agent, self.pairs, self.folder = program, agent, pairs, folder
        self.memray_at = memray

    def _numbers(self, threads: int, depth: int) -> list[str]:
        return [str(threads), str(depth), str(self.pairs // threads), str(KEPT)]

    def _words(self, threads: int, depth: int) -> list[str]:
        return [self.program, *self._numbers(threads, depth)]

    def _run(self, words: list[str], env: dict[str, str] | None = None) -> tuple[float, float]:
        done = subprocess.run(
            words,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=True,
        )
        found = re.search(r"^([0-9.]+) ([0-9.]+)$", done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        return float(found[1]), float(found[2])

    def none(self, threads: int, depth: int) -> tuple[float, float]:
        return self._run(self._words(threads, depth))

    def memscope(self, threads: int, depth: int, sample: str = "0") -> tuple[float, float]:
        output = self.folder / "traces"
        config = {
            "mode": "exec",
            "device": "host",
            "call_stack": "c:200",
            "host_sample": sample,
            "output_path": str(output),
        }
        env = {"LD_PRELOAD": self.agent, "MSMEMSCOPE_CONFIG": json.dumps(config)}
        result = self._run(self._words(threads, depth), env)
        assert list(output.rglob("trace.msm")), "the agent recorded nothing"
        shutil.rmtree(output)
        return result

    def sampled(self, threads: int, depth: int) -> tuple[float, float]:
        return self.memscope(threads, depth, str(512 * 1024))

    def heaptrack(self, threads: int, depth: int) -> tuple[float, float]:
        file = self.folder / "heaptrack"
        result = self._run(["heaptrack", "-o", str(file), *self._words(threads, depth)])
        for path in self.folder.glob("heaptrack*"):
            path.unlink()
        return result

    def memray(self, threads: int, depth: int) -> tuple[float, float]:
        file, here = self.folder / "memray.bin", Path(__file__).parent
        library = str(Path(self.program).with_name("libmalloc_pairs.so"))
        words = [sys.executable, "-m", "memray", "run", "--native", "-q", "-f", "-o", str(file)]
        words += [str(here / "in_python.py"), library, *self._numbers(threads, depth)]
        result = self._run(words, {"PYTHONPATH": self.memray_at})
        file.unlink()
        return result

    def compare(self, threads: int, depth: int, turns: int, tools: list[str]) -> dict[str, Any]:
        runs: dict[str, list[tuple[float, float]]] = {tool: [] for tool in tools}
        for _ in range(turns):
            for tool in tools:
                runs[tool].append(getattr(self, tool)(threads, depth))
        result: dict[str, Any] = {"threads": threads, "depth": depth}
        for tool, timings in runs.items():
            for index, kind in enumerate(("wall", "cpu")):
                values = [timing[index] for timing in timings]
                result[f"{tool}_{kind}"] = statistics.median(values)
                result[f"{tool}_{kind}_min"] = min(values)
                result[f"{tool}_{kind}_max"] = max(values)
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("agent")
    parser.add_argument("--memray", default="", help="folder with memray for this interpreter")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of all threads together")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    tools = ["none", "memscope", "sampled"] + (["heaptrack"] if shutil.which("heaptrack") else [])
    tools += ["memray"] if arguments.memray else []
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        bench = Bench(
            arguments.program, arguments.agent, arguments.memray, arguments.pairs, Path(name)
        )
        rows = [
            bench.compare(threads, depth, arguments.turns, tools)
            for threads in THREADS
            for depth in DEPTHS
        ]
    print(json.dumps({"tools": tools, "rows": rows}))


if __name__ == "__main__":
    main()
