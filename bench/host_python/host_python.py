"""What the host source costs Python that allocates a lot, beside memray.

The same program (workload.py) runs without a tool, under the agent and under memray, each with
Python stacks alone and with native ones, in turns. Twice: as Python is, whose own allocator asks
malloc for little, and with PYTHONMALLOC=malloc, where every object is a malloc. Prints one JSON
object: ms of the program's own rounds, wall and CPU time of its thread, median of the turns.

    host_python.py MSMEMSCOPE [--memray FOLDER] [--rounds N] [--turns N] [--python EXE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

KINDS = ("json", "numpy", "interpreter")
WORKLOAD = str(Path(__file__).with_name("workload.py"))


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.python, self.command = arguments.python, arguments.msmemscope
        self.memray_at, self.rounds = arguments.memray, arguments.rounds
        self.folder = folder

    def _run(self, words: list[str], kind: str, env: dict[str, str]) -> tuple[float, float]:
        done = subprocess.run(
            [*words, WORKLOAD, kind, str(self.rounds)],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        found = json.loads(next(line for line in done.stdout.splitlines() if '"wall"' in line))
        return found["wall"] * 1e3, found["cpu"] * 1e3

    def none(self, kind: str, env: dict[str, str]) -> tuple[float, float]:
        return self._run([self.python], kind, env)

    def _memscope(self, stacks: str, kind: str, env: dict[str, str]) -> tuple[float, float]:
        output = self.folder / "traces"
        words = [self.command, "--device=host", f"--call-stack={stacks}", "--report-to=none"]
        result = self._run([*words, f"--output-path={output}", "--", self.python], kind, env)
        assert list(output.rglob("trace.msm")), "the agent recorded nothing"
        shutil.rmtree(output)
        return result

    def memscope(self, kind: str, env: dict[str, str]) -> tuple[float, float]:
        return self._memscope("python:1000", kind, env)

    def memscope_native(self, kind: str, env: dict[str, str]) -> tuple[float, float]:
        return self._memscope("c:1000,python:1000", kind, env)

    def memray(self, kind: str, env: dict[str, str], *more: str) -> tuple[float, float]:
        file = self.folder / "memray.bin"
        path = os.pathsep.join(filter(None, [self.memray_at, os.environ.get("PYTHONPATH", "")]))
        words = [self.python, "-m", "memray", "run", *more, "-q", "-f", "-o", str(file)]
        result = self._run(words, kind, {**env, "PYTHONPATH": path})
        file.unlink()
        return result

    def memray_native(self, kind: str, env: dict[str, str]) -> tuple[float, float]:
        return self.memray(kind, env, "--native")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msmemscope", help="the command")
    parser.add_argument("--memray", default="", help="folder with memray for the interpreter")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    tools = ["none", "memscope", "memscope_native"]
    if arguments.memray:
        tools += ["memray", "memray_native"]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        bench = Bench(arguments, Path(name))
        for allocator in ("pymalloc", "malloc"):
            for kind in KINDS:
                env = {"PYTHONMALLOC": allocator}
                runs: dict[str, list[tuple[float, float]]] = {tool: [] for tool in tools}
                for _ in range(arguments.turns):
                    for tool in tools:
                        runs[tool].append(getattr(bench, tool)(kind, env))
                row: dict[str, Any] = {"kind": kind, "allocator": allocator}
                for tool, timings in runs.items():
                    for index, what in enumerate(("wall", "cpu")):
                        row[f"{tool}_{what}"] = statistics.median(time[index] for time in timings)
                rows.append(row)
    print(json.dumps({"tools": tools, "rows": rows, "rounds": arguments.rounds}))


if __name__ == "__main__":
    main()
