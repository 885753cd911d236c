"""How fast the command reads msMemScope's csv and db: rows a second and memory.

    import.py MSMEMSCOPE SYNTH [--events N] [--big N] [--repeats N]

Makes a synthetic trace of a job with a leak, converts it, and times `msmemscope analyze --json` on
csv, db, and the csv with its rows in the order the original writes them: a block's when it is
freed. All must give the verdict of the trace. Live blocks are the same however many rows there are,
so memory should be too: a larger csv shows that.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
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
            raise SystemExit(f"import.py: {command[:2]} ended with {process.returncode}")
        out.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read()


def shuffle(source: Path, target: Path) -> int:
    """Rows of blocks that live in the order of their frees; the number of rows."""
    rows = 0
    mallocs: dict[tuple[str, str], list[str]] = {}
    with source.open(newline="") as given, target.open("w", newline="") as made:
        reader, writer = csv.reader(given), csv.writer(made)
        writer.writerow(next(reader))
        for row in reader:
            rows += 1
            key = (row[2], row[8])
            if row[1] == "MALLOC":
                mallocs[key] = row
                continue
            if row[1] == "FREE" and key in mallocs:
                writer.writerow(mallocs.pop(key))
            writer.writerow(row)
        writer.writerows(mallocs.values())
    return rows


def leak_of(report: bytes) -> tuple[str, str, int, int]:
    verdicts = json.loads(report)["verdicts"]
    if len(verdicts) != 1:
        raise SystemExit(f"import.py: expected one verdict, got {verdicts}")
    site = verdicts[0]["site"]
    return verdicts[0]["cause"], site["file"], site["line"], verdicts[0]["bytes_total"]


def synthesize(synth: str, where: Path, events: int) -> str:
    # Stacks of three frames: with thirty a row is 3 KB, and the disk is what is measured.
    return subprocess.run(
        [synth, "-o", str(where), "--events", str(events), "--steps", "300", "--threads", "4",
         "--depth", "3", "--scratch-sites", "1000", "--leak", "leak:1048576"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def convert(tool: str, trace: str, target: Path) -> None:
    words = ["--call-stack", "python:3", "-q", "-o", str(target)]
    subprocess.run([tool, "convert", trace, *words], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msmemscope")
    parser.add_argument("synth")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--big", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    tool = arguments.msmemscope
    results: dict[str, Any] = {"events": arguments.events}

    def measure(path: Path, rows: int, repeats: int, wanted: tuple[str, str, int, int]) -> Any:
        runs = [run([tool, "analyze", "--json", str(path)]) for _ in range(repeats)]
        found = leak_of(runs[0][3])
        if found != wanted:
            raise SystemExit(f"import.py: {path.name} gives {found}, the trace {wanted}")
        walls = [wall for wall, _, _, _ in runs]
        return {
            "rows": rows,
            "bytes": path.stat().st_size,
            "rows_per_s": rows / statistics.median(walls),
            "rows_per_s_min": rows / max(walls),
            "rows_per_s_max": rows / min(walls),
            "rows_per_cpu_s": rows / statistics.median(cpu for _, cpu, _, _ in runs),
            "peak_bytes": max(peak for _, _, peak, _ in runs),
        }

    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        root = Path(name)
        trace = synthesize(arguments.synth, root, arguments.events)
        wanted = leak_of(run([tool, "analyze", "--json", trace])[3])
        files = {kind: root / f"memscope_dump_{i}.{kind}" for i, kind in enumerate(("csv", "db"))}
        for path in files.values():
            convert(tool, trace, path)
        files["unordered"] = root / "memscope_dump_3.csv"
        rows = shuffle(files["csv"], files["unordered"])
        for kind, path in files.items():
            results[kind] = measure(path, rows, arguments.repeats, wanted)
            path.unlink()
        trace = synthesize(arguments.synth, root / "big", arguments.big)
        wanted = leak_of(run([tool, "analyze", "--json", trace])[3])
        path = root / "memscope_dump_4.csv"
        convert(tool, trace, path)
        results["big"] = measure(path, arguments.big, 1, wanted)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
