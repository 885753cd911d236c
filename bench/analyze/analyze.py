"""How fast the command reads, replays and diagnoses a trace: events a second and memory.

    analyze.py MSMEMSCOPE SYNTH [--events N,N] [--repeats N]

Makes synthetic traces of a job with a leak, then times `msmemscope analyze --json` on each, as a
whole process. Live blocks are the same for all sizes, so memory should be too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def run(command: list[str]) -> tuple[float, float, int, bytes]:
    """Wall seconds, CPU seconds, peak resident bytes and stdout of one process."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"analyze.py: {command[0]} ended with {process.returncode}")
        out.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read()


def measure(analyze: str, synth: str, events: int, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        made = subprocess.run(
            [synth, "-o", name, "--events", str(events), "--steps", "300", "--threads", "4",
             "--depth", "30", "--scratch-sites", "1000", "--leak", "leak:1048576"],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        size = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file())
        runs = [run([analyze, "analyze", "--json", made]) for _ in range(repeats)]
    verdicts = json.loads(runs[0][3])["verdicts"]
    if [verdict["cause"] for verdict in verdicts] != ["leak"]:
        raise SystemExit(f"analyze.py: expected one leak, got {verdicts}")
    return {
        "events": events,
        "trace_bytes": size,
        "wall_s": statistics.median(wall for wall, _, _, _ in runs),
        "wall_s_max": max(wall for wall, _, _, _ in runs),
        "cpu_s": statistics.median(cpu for _, cpu, _, _ in runs),
        "peak_bytes": max(peak for _, _, peak, _ in runs),
        "events_per_s": events / statistics.median(wall for wall, _, _, _ in runs),
        "events_per_cpu_s": events / statistics.median(cpu for _, cpu, _, _ in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("analyze")
    parser.add_argument("synth")
    parser.add_argument("--events", default="1000000,10000000")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    sizes = [int(word) for word in arguments.events.split(",")]
    results = [
        measure(arguments.analyze, arguments.synth, size, arguments.repeats) for size in sizes
    ]
    print(json.dumps(results))


if __name__ == "__main__":
    sys.exit(main())
