"""How fast the viewer's server opens a trace and answers.

    view.py MSMEMSCOPE SYNTH [--events N,N] [--turns N]

Makes synthetic traces of a job with a leak whose temporaries have lifetimes of all lengths, opens
each with an empty and with a warm cache, and asks what the page asks: the first picture, random
windows of the block graph in every order, curves, trees, tables. Times are of wall and of the
server's CPU; the page's own work is not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 1920, 1000


class Viewer:
    """A running `msmemscope view` and its clock, which starts with it."""

    def __init__(self, command: str, run: str, cache: str) -> None:
        self.begin = time.perf_counter()
        environment = dict(os.environ, XDG_CACHE_HOME=cache)
        self.process = subprocess.Popen(
            [command, "view", "--no-browser", run],
            stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise SystemExit(f"view.py: the viewer ended with {self.process.wait()}")

    def get(self, query: str) -> bytes:
        with urllib.request.urlopen(f"{self.url}api/{query}") as answer:
            body: bytes = answer.read()
            return body

    def json(self, query: str) -> Any:
        return json.loads(self.get(query))

    def wait(self, done: Any, seconds: float = 300) -> None:
        while not done(status := self.json("status")):
            if status["state"] == "failed" or time.perf_counter() - self.begin > seconds:
                raise SystemExit(f"view.py: {status}")
            time.sleep(0.005)

    def elapsed(self) -> float:
        return time.perf_counter() - self.begin

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> dict[str, int]:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = dict(re.findall(r"(VmHWM|RssAnon|RssFile):\s+(\d+) kB", text))
        return {name: int(value) * 1024 for name, value in found.items()}

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(30) != 0:
            raise SystemExit("view.py: the viewer did not end well")


def first_picture(viewer: Viewer) -> dict[str, float]:
    viewer.wait(lambda status: status["state"] == "ready")
    indexed = viewer.elapsed()
    session = viewer.json("session")
    opening = session["opening"]
    pool, t0, t1 = opening["pool"], opening["t0"], opening["t1"]
    viewer.get(f"lines?series=allocated:{pool}&t0={t0}&t1={t1}&width={WIDTH}")
    viewer.get(f"lanes?input=0&t0={t0}&t1={t1}&width={WIDTH}")
    viewer.get(graph(pool, t0, t1, opening["order"], opening["colour"]))
    picture, cpu = viewer.elapsed(), viewer.cpu()
    viewer.wait(lambda status: status["diagnosis"] != "running")
    return {
        "index_s": indexed, "picture_s": picture, "cpu_s": cpu, "diagnosis_s": viewer.elapsed()
    }  # fmt: skip


def graph(pool: int, t0: int, t1: int, order: str, colour: str, more: str = "") -> str:
    return (
        f"graph?pool={pool}&t0={t0}&t1={t1}&width={WIDTH}&height={HEIGHT}"
        f"&order={order}&colour={colour}{more}"
    )


def queries(session: dict[str, Any], turns: int) -> list[tuple[str, str]]:
    """(kind, query): each asked once, so that no answer comes from memory."""
    chance = random.Random(7)
    pool = max(session["pools"], key=lambda pool: pool["events"])
    number, begin, end, peak = pool["id"], pool["begin"], pool["end"], pool["peak"]["bytes"]
    asked = []
    for order in ("alloc", "site", "lifetime"):
        asked.append((f"graph, whole run, {order}", graph(number, begin, end + 1, order, "site")))
    whole = graph(number, begin, end + 2, "lifetime", "site", "&detail=exact")
    asked.append(("graph, whole run, exact", whole))
    for _ in range(turns):
        span = int((end - begin) / 10 ** chance.uniform(0, 4)) + 1000
        t0 = begin + int((end - begin - span) * chance.random())
        height = int(peak / 10 ** chance.uniform(0, 2)) + 1
        m0 = int((peak - height) * chance.random())
        order = chance.choice(["alloc", "site", "lifetime"])
        colour = chance.choice(["site", "size", "age", "step"])
        window = f"&m0={m0}&m1={m0 + height}"
        asked.append(("graph, windows", graph(number, t0, t0 + span, order, colour, window)))
        series = f"allocated:{number}"
        asked.append(("lines", f"lines?series={series}&t0={t0}&t1={t0 + span}&width={WIDTH}"))
    for turn in range(turns // 4 + 1):
        t = begin + (end - begin) * (turn + 1) // (turns // 4 + 2)
        for by in ("owner", "stack", "stack_inverted"):
            asked.append(("composition", f"composition?pool={number}&by={by}&t={t}"))
        asked.append(("composition", f"composition?pool={number}&by=site&t={t}&base={begin}"))
        asked.append(("compare", f"compare?a={number}@{t}&b={number}@end"))
        asked.append(("locate", f"locate?pool={number}&t={t}&bytes={peak // 3}&order=lifetime"))
        asked.append(("block", f"block?pool={number}&block={1 + turn * 1000}"))
        for sort in ("size:desc", "lifetime:desc", "site,size:desc"):
            where = f"%5B%7B%22op%22%3A%22alive_at%22%2C%22value%22%3A{t}%7D%5D"
            asked.append(("blocks, filtered", f"blocks?pool={number}&where={where}&sort={sort}"))
        asked.append(("sites", f"sites?pool={number}&t1={t}"))
    for sort in ("size:desc", "lifetime:desc", "address", "end:desc", "site,size:desc"):
        asked.append(("blocks, all sorted", f"blocks?pool={number}&sort={sort}"))
    for sort in ("size:desc", "thread"):
        asked.append(("events, all sorted", f"events?pool={number}&sort={sort}"))
    return asked


def measure(command: str, run: str, name: str, turns: int) -> dict[str, Any]:
    cache = str(Path(name) / "cache")
    Path(cache).mkdir(exist_ok=True)
    viewer = Viewer(command, run, cache)
    cold = first_picture(viewer)
    viewer.end()
    viewer = Viewer(command, run, cache)
    warm = first_picture(viewer)
    session = viewer.json("session")
    times: dict[str, list[tuple[float, float, int]]] = {}
    # What is made once for a pool (orders, colours) is made by the first who asks.
    pool = max(session["pools"], key=lambda pool: pool["events"])["id"]
    for colour in ("site", "size", "age", "step"):
        viewer.get(f"legend?pool={pool}&colour={colour}")
    for order in ("alloc", "site", "lifetime"):
        viewer.get(f"place?pool={pool}&block=1&order={order}")
    for kind, query in queries(session, turns):
        begin, cpu = time.perf_counter(), viewer.cpu()
        size = len(viewer.get(query))
        times.setdefault(kind, []).append((time.perf_counter() - begin, viewer.cpu() - cpu, size))
    memory = viewer.memory()
    viewer.end()

    def summary(taken: list[tuple[float, float, int]]) -> dict[str, float]:
        wall = sorted(item[0] for item in taken)
        return {
            "count": len(wall),
            "median_s": statistics.median(wall),
            "p95_s": wall[min(len(wall) - 1, int(len(wall) * 0.95))],
            "max_s": wall[-1],
            "cpu_s": statistics.mean(item[1] for item in taken),
            "bytes": max(item[2] for item in taken),
        }

    return {
        "events": sum(pool["events"] for pool in session["pools"]),
        "blocks": sum(pool["blocks"] for pool in session["pools"]),
        "trace_bytes": sum(path.stat().st_size for path in Path(run).rglob("*") if path.is_file()),
        "index_bytes": sum(path.stat().st_size for path in Path(cache).rglob("*")
                           if path.is_file()),
        "cold": cold,
        "warm": warm,
        "memory": memory,
        "queries": {kind: summary(taken) for kind, taken in times.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msmemscope")
    parser.add_argument("synth")
    parser.add_argument("--events", default="2000000,10000000")
    parser.add_argument("--turns", type=int, default=60)
    arguments = parser.parse_args()
    results = []
    for events in (int(word) for word in arguments.events.split(",")):
        with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
            run = subprocess.run(
                [arguments.synth, "-o", name, "--events", str(events), "--steps", "1000",
                 "--threads", "4", "--depth", "20", "--scratch-sites", "200", "--layers", "100",
                 "--scratch-alive", "20000", "--owners", "--leak", "leak:1048576:8"],
                check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip
            results.append(measure(arguments.msmemscope, run, name, arguments.turns))
    print(json.dumps(results))


if __name__ == "__main__":
    sys.exit(main())
