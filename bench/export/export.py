"""How fast the command writes csv and db, beside what SQLite itself does, and in how much memory.

    export.py MSMEMSCOPE SYNTH [--events N] [--big N] [--repeats N]

A synthetic trace is converted to csv and to db, as whole processes and without stacks. Then SQLite
copies the db's table into a new file with one statement of its own, INSERT INTO ... SELECT, in two
ways: as records (both tables have the same columns, so it copies them as they are) and column by
column. All in turns, so that a busy moment hits all. Memory is the peak of the process that
converts --big events.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Wall seconds, CPU seconds, peak resident bytes.
Cost = tuple[float, float, int]


def run(command: list[str]) -> Cost:
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"export.py: {command} ended with {process.returncode}: {said}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def copy(source: Path, target: Path, select: str) -> Cost:
    """SQLite's own INSERT...SELECT, in a process of its own; only the statement is timed."""
    target.unlink(missing_ok=True)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        connection = sqlite3.connect(target, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("ATTACH ? AS source", (str(source),))
        (sql,) = connection.execute(
            "SELECT sql FROM source.sqlite_master WHERE name = 'memscope_dump'"
        ).fetchone()
        connection.execute(sql)
        begin, cpu = time.perf_counter(), time.process_time()
        connection.execute(f"INSERT INTO memscope_dump {select}")
        took = (time.perf_counter() - begin, time.process_time() - cpu, 0)
        os.write(writer, json.dumps(took).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    wall, cpu, _ = json.loads(text)
    return wall, cpu, 0


def rows_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM memscope_dump").fetchone()
    connection.close()
    return int(count)


def make(synth: str, where: str, events: int) -> str:
    return subprocess.run(
        [synth, "-o", where, "--run-id", str(events), "--events", str(events), "--steps", "300",
         "--threads", "4", "--depth", "30", "--scratch-sites", "1000", "--leak", "leak:1048576"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def speed(rows: int, costs: list[Cost]) -> dict[str, float]:
    return {
        "rows_per_s": rows / statistics.median(wall for wall, _, _ in costs),
        "rows_per_s_max": rows / min(wall for wall, _, _ in costs),
        "rows_per_s_min": rows / max(wall for wall, _, _ in costs),
        "rows_per_cpu_s": rows / statistics.median(cpu for _, cpu, _ in costs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command")
    parser.add_argument("synth")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--big", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        here = Path(name)
        made = make(arguments.synth, name, arguments.events)
        csv, db, copied = here / "a.csv", here / "a.db", here / "copy.db"

        def convert(trace: str, target: Path) -> Cost:
            words = ["convert", trace, "-o", str(target), "--call-stack", "none"]
            return run([arguments.command, *words])

        costs: dict[str, list[Cost]] = {"csv": [], "db": [], "records": [], "columns": []}
        for _ in range(arguments.repeats):
            costs["csv"].append(convert(made, csv))
            costs["db"].append(convert(made, db))
            everything = "SELECT * FROM source.memscope_dump"
            costs["records"].append(copy(db, copied, everything))
            # Any condition, and SQLite no longer copies records whole.
            costs["columns"].append(copy(db, copied, f"{everything} WHERE rowid > 0"))
        rows = rows_of(db)
        ratios = [
            copy_wall / db_wall
            for (db_wall, _, _), (copy_wall, _, _) in zip(costs["db"], costs["columns"])
        ]
        result: dict[str, Any] = {
            "events": arguments.events,
            "rows": rows,
            "csv_bytes": csv.stat().st_size,
            "db_bytes": db.stat().st_size,
            **{kind: speed(rows, cost) for kind, cost in costs.items()},
            "db_to_columns": statistics.median(ratios),
            "db_to_records": statistics.median(
                copy_wall / db_wall
                for (db_wall, _, _), (copy_wall, _, _) in zip(costs["db"], costs["records"])
            ),
            "big": {"events": arguments.big},
        }
        big = make(arguments.synth, name, arguments.big)
        for kind, target in (("csv", csv), ("db", db)):
            wall, _, peak = convert(big, target)
            result["big"][kind] = {"wall_s": wall, "peak_bytes": peak}
    print(json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
