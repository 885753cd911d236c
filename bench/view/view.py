"""How fast the viewer's server opens a trace and answers.

    view.py MSMEMSCOPE SYNTH [--cases NAME,NAME] [--turns N] [--scale SHARE]
            [--no-growing] [--no-browser]

Makes synthetic traces of a job with a leak whose temporaries have lifetimes of all lengths, opens
each with an empty and with a warm cache, and asks what the page asks: the first picture, random
windows of the block graph in every order, curves, trees, tables. Times are of wall and of the
server's CPU; the page's own work is not in them. That follows: `npm run frames` in web/, the page
in Chromium on the largest but one of the cases.

Then follows a run while it is being written (wants torch and the package): how often the index is
made anew, and how long after a step's end the step is in it.
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

# Name: allocs and frees, accesses of each block. All are events of the trace.
CASES = {
    "10m-1m": (2_000_000, 8),  # 10 M events, 1 M blocks
    "10m-5m": (10_000_000, 0),  # 10 M events, 5 M blocks
    "100m-50m": (100_000_000, 0),
}

# A run that is being written: what has been allocated is kept, a line on stdin is a step more.
GROWING = """
import sys, torch, msmemscope
msmemscope.config(output_path=sys.argv[1], report_to="none")
msmemscope.start()
kept = []
for _ in range(int(sys.argv[2])):
    torch.empty(16)
msmemscope.step()
print("ready", flush=True)
for line in sys.stdin:
    kept.append(torch.ones(1 << 16))
    for _ in range(2000):
        torch.empty(16)
    msmemscope.step()
    print("done", flush=True)
msmemscope.stop()
"""


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
    viewer.get(f"sites?pool={pool}")  # as the page does, once the picture is there
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
    time.sleep(2)  # somebody looks at it; what was made is kept meanwhile
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


def synthesize(synth: str, name: str, events: int, accesses: int) -> str:
    return subprocess.run(
        [synth, "-o", name, "--events", str(events), "--steps", "1000", "--threads", "4",
         "--depth", "20", "--scratch-sites", "200", "--layers", "100", "--scratch-alive", "20000",
         "--accesses", str(accesses), "--owners", "--leak", "leak:1048576:8"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def browser(synth: str, build: str, scale: float) -> dict[str, Any] | None:
    """The page's own numbers, by `npm run frames` in web/; None where it cannot be run."""
    web = Path(__file__).resolve().parents[2] / "web"
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not (web / "node_modules").exists() or not Path(chromium).exists():
        return None
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        run = synthesize(synth, name, int(CASES["10m-5m"][0] * scale), 0)
        done = subprocess.run(
            ["npm", "run", "--silent", "frames"], cwd=web, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, MSMEMSCOPE_BUILD_DIR=build, MSMEMSCOPE_INPUT=run), check=False,
        )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if line.startswith('{"cold"')]
    if done.returncode != 0 or not found:
        raise SystemExit("view.py: npm run frames failed")
    result: dict[str, Any] = json.loads(found[-1])
    return result


def growing(command: str, before: int, steps: int) -> dict[str, Any]:
    """Follows a run that holds `before` allocations already, for so many steps."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        run = str(Path(name) / "run")
        program = subprocess.Popen(
            [sys.executable, "-c", GROWING, run, str(before)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=name,
        )  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        if program.stdout.readline().strip() != "ready":
            raise SystemExit("view.py: the program did not begin")
        viewer = Viewer(command, run, str(Path(name) / "cache"))
        viewer.wait(lambda status: status["state"] == "ready")
        lags: list[float] = []
        for step in range(2, steps + 2):
            program.stdin.write("go\n")
            program.stdin.flush()
            program.stdout.readline()
            ended = time.perf_counter()
            while sum(one["steps"] for one in viewer.json("session")["inputs"]) < step:
                if time.perf_counter() - ended > 60:
                    raise SystemExit("view.py: a step did not appear")
                time.sleep(0.01)
            lags.append(time.perf_counter() - ended)
        # How often it is made anew while the program never rests.
        times = [time.perf_counter()]
        last = viewer.json("status")["generation"]
        end = times[0] + 8
        while time.perf_counter() < end:
            program.stdin.write("go\n")
            program.stdin.flush()
            program.stdout.readline()
            now = viewer.json("status")["generation"]
            if now != last:
                times.append(time.perf_counter())
            last = now
            time.sleep(0.02)
        periods = sorted(b - a for a, b in zip(times, times[1:], strict=False))
        events = sum(one["events"] for one in viewer.json("session")["inputs"])
        viewer.end()
        program.stdin.close()
        program.wait(60)
        lags.sort()
        return {
            "events": events,
            "lag_median_s": statistics.median(lags),
            "lag_max_s": lags[-1],
            "period_median_s": statistics.median(periods),
            "period_max_s": periods[-1],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msmemscope")
    parser.add_argument("synth")
    parser.add_argument("--cases", default="10m-1m,10m-5m", help=", ".join(CASES))
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--scale", type=float, default=1, help="of the cases' events")
    parser.add_argument("--no-growing", action="store_true")
    parser.add_argument("--no-browser", action="store_true")
    arguments = parser.parse_args()
    results = []
    for case in arguments.cases.split(","):
        events, accesses = CASES[case]
        events = int(events * arguments.scale)
        with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
            run = synthesize(arguments.synth, name, events, accesses)
            result = measure(arguments.msmemscope, run, name, arguments.turns)
            result["trace_events"] = events + events // 2 * accesses
            results.append(result)
    answer: dict[str, Any] = {"traces": results}
    if not arguments.no_growing:
        sizes = [int(size * arguments.scale) for size in (50_000, 2_000_000)]
        answer["growing"] = [growing(arguments.msmemscope, size, 12) for size in sizes]
    if not arguments.no_browser:
        build = str(Path(arguments.msmemscope).resolve().parent)
        answer["browser"] = browser(arguments.synth, build, arguments.scale)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
