"""Runs the benchmarks and prints their results as the tables of docs/benchmarks.md.

    run_bench.py [--quick] [--only event_cost,host_cost,analyze,...] [--torch2 PYTHON]

Wants build-bench/ (scripts/build.sh bench) and the package in .venv. Results as JSON go to
build-bench/results.json, the tables to build-bench/benchmarks.md and stdout.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-bench"


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def measure(name: str, *words: str, python: str = sys.executable, site: str = "") -> Any:
    command = [python, str(ROOT / "bench" / name / f"{name}.py"), *words]
    environment = dict(os.environ, **({"PYTHONPATH": site} if site else {}))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"bench: {name} failed")
    return json.loads(done.stdout.strip().splitlines()[-1])


def machine() -> str:
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    load = os.getloadavg()[0]
    return (
        f"{day}, commit {commit}; {model or platform.machine()}, {os.cpu_count()} cores, "
        f"Linux {platform.release()}; load average at the start {load:.1f}."
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def ns(value: float) -> str:
    return f"{value:.0f} ns" if value >= 10 else f"{value:.1f} ns"


def percent(ratio: dict[str, Any]) -> str:
    return f"{ratio['ratio']:.3f} × ({ratio['low']:.3f} to {ratio['high']:.3f})"


def verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def event_tables(result: dict[str, Any]) -> str:
    none, idle, recording = result["none"], result["idle"], result["recording"]
    rows = []
    names = {
        "stack_1": f"{result['depth']}-frame Python stack, 1 thread, warm",
        "stack_2": "the same, 2 threads",
        "stack_4": "the same, 4 threads",
        "stack_cold": f"the same, 1 thread, {result['touch'] >> 20} MiB touched between events",
        "plain_1": "no Python stack, 1 thread, warm",
        "plain_2": "the same, 2 threads",
        "plain_4": "the same, 4 threads",
        "plain_cold": "the same, 1 thread, cold",
    }
    for key, name in names.items():

        def added(mode: dict[str, Any], what: str, key: str = key) -> str:
            return ns(mode[key][what] - none[key][what])

        low = recording[key]["alloc_ns_min"] - none[key]["alloc_ns"]
        high = recording[key]["alloc_ns_max"] - none[key]["alloc_ns"]
        rows.append(
            [
                name,
                f"{added(recording, 'alloc_ns')} ({low:.0f} to {high:.0f})",
                added(recording, "free_ns"),
                added(idle, "alloc_ns"),
                added(idle, "free_ns"),
                f"{recording[key].get('events_per_s', 0) / 1e6:.1f} M" if "cold" not in key else "",
                str(recording[key]["dropped"]),
            ]
        )
    warm = recording["stack_1"]["alloc_ns"] - none["stack_1"]["alloc_ns"]
    cold = recording["stack_cold"]["alloc_ns"] - none["stack_cold"]["alloc_ns"]
    scaling = {
        key: [recording[f"stack_{n}"][key] for n in (1, 2, 4)]
        for key in ("events_per_s", "events_per_cpu_s")
    }
    one, two, four = scaling["events_per_s"]
    cpu_one, cpu_two, cpu_four = scaling["events_per_cpu_s"]
    text = "Added time of one event, median of bursts (lowest to highest):\n\n"
    head = ["event", "alloc", "free", "alloc, idle", "free, idle", "events/s", "dropped"]
    text += table(head, rows)
    text += "\n" + table(
        ["target", "measured", ""],
        [
            ["alloc with a 30-frame stack ≤ 150 ns warm", ns(warm), verdict(warm <= 150)],
            ["≤ 800 ns with 4 MB touched between events", ns(cold), verdict(cold <= 800)],
            [
                "2 threads ≥ 1.8 × the events/s of one",
                f"{two / one:.2f} ×",
                verdict(two >= 1.8 * one),
            ],
            ["4 threads ≥ 0.9 × that", f"{four / two:.2f} ×", verdict(four >= 0.9 * two)],
            [
                "2 threads on a core each ≥ 1.8 × (by CPU time: contention alone)",
                f"{cpu_two / cpu_one:.2f} ×",
                verdict(cpu_two >= 1.8 * cpu_one),
            ],
            [
                "4 threads, by CPU time, of an ideal 4 ×",
                f"{cpu_four / cpu_one:.2f} ×",
                "",
            ],
        ],
    )
    storm = result["fsync"]
    text += (
        f"\nUnder an fsync storm on the trace's disk: worst alloc "
        f"{storm['worst_ns'] / 1e6:.2f} ms, 99.99th percentile {ns(storm['p9999_ns'])}.\n"
    )
    return text


def host_tables(result: dict[str, Any]) -> str:
    """Added time: that of the tool less that of no tool in the same turns."""
    rows, targets = [], []
    for row in result["rows"]:
        name = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}, {row['depth']} deep"
        cells = [name, ns(row["none_wall"])]
        ours = row["memscope_wall"] - row["none_wall"]
        low, high = (row[f"memscope_wall_{end}"] - row["none_wall"] for end in ("min", "max"))
        cells.append(f"+{ns(ours)} ({low:.0f} to {high:.0f})")
        if "heaptrack" in result["tools"]:
            theirs = row["heaptrack_wall"] - row["none_wall"]
            ratio = ours / theirs
            cpu = (row["memscope_cpu"] - row["none_cpu"]) / (row["heaptrack_cpu"] - row["none_cpu"])
            cells += [f"+{ns(theirs)}", f"{ratio:.2f} ×", f"{cpu:.2f} ×"]
            if row["threads"] <= 2:
                target = 0.4 if row["threads"] == 1 else 0.25
                wanted = f"{name}: ≤ {target} × heaptrack's"
                targets.append([wanted, f"{ratio:.2f} ×", verdict(ratio <= target)])
        rows.append(cells)
    head = ["malloc and free", "no tool", "host source", "heaptrack", "ratio", "by CPU time"]
    text = "Wall time of a pair in one thread, added by each tool, median of turns:\n\n"
    text += table(head[: len(rows[0])], rows)
    if targets:
        text += "\n" + table(["target", "measured", ""], targets)
    return text


def train_table(results: list[dict[str, Any]]) -> str:
    targets = {"realistic": 1.03, "opbound": 1.06}
    rows = []
    for result in results:
        target = targets[result["model"]]
        profiler = percent(result["profiler"]) if "profiler" in result else ""
        rows.append(
            [
                f"{result['model']}, PyTorch {result['torch'].split('+')[0]}, "
                f"Python {result['python']}",
                f"{result['step_ms']:.1f} ms",
                f"{result['events_per_step']:.0f}",
                percent(result["agent"]),
                f"≤ {target:.2f} ×",
                verdict(result["agent"]["ratio"] <= target),
                percent(result["idle"]) if "idle" in result else "",
                profiler,
                f"{result['bytes_per_event']:.1f} B" if "bytes_per_event" in result else "",
                str(result["dropped"]),
            ]
        )
    head = [
        "training step",
        "without",
        "events",
        "recording",
        "target",
        "",
        "idle",
        "torch.profiler with stacks",
        "disk an event (target ≤ 8 B)",
        "dropped",
    ]
    return table(head, rows)


def analyze_table(results: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{result['events'] / 1e6:.0f} M",
            f"{result['trace_bytes'] / 1e6:.0f} MB",
            f"{result['wall_s']:.2f} s (at most {result['wall_s_max']:.2f})",
            f"{result['events_per_s'] / 1e6:.1f} M/s",
            f"{result['events_per_cpu_s'] / 1e6:.1f} M/s",
            "≥ 10 M/s",
            verdict(result["events_per_cpu_s"] >= 10e6),
            f"{result['peak_bytes'] / 1e6:.0f} MB",
        ]
        for result in results
    ]
    head = ["events", "trace", "wall", "events/s", "events/s a core", "target", "", "peak memory"]
    return table(head, rows)


def export_tables(result: dict[str, Any]) -> str:
    def row(name: str, kind: str, target: str = "", met: str = "") -> list[str]:
        speed = result[kind]
        return [
            name,
            f"{speed['rows_per_s'] / 1e6:.2f} M ({speed['rows_per_s_min'] / 1e6:.2f} to "
            f"{speed['rows_per_s_max'] / 1e6:.2f})",
            f"{speed['rows_per_cpu_s'] / 1e6:.2f} M",
            target,
            met,
        ]

    ratio = result["db_to_columns"]
    csv_met = verdict(result["csv"]["rows_per_s"] >= 1e6)
    rows = [
        row("trace to csv", "csv", "≥ 1 M rows/s", csv_met),
        row("trace to db", "db", f"≥ 0.6 × SQLite's: {ratio:.2f} ×", verdict(ratio >= 0.6)),
        row("SQLite's INSERT…SELECT of that db", "columns"),
        row(
            "the same where SQLite copies whole records "
            f"(ours is {result['db_to_records']:.2f} × that)",
            "records",
        ),
    ]
    text = f"{result['rows']:,} rows, without stacks; rows/s of wall time (lowest to highest):\n\n"
    text += table(["", "rows/s", "rows/s of CPU time", "target", ""], rows)
    big = result["big"]
    text += f"\n{big['events'] / 1e6:.0f} M events: " + ", ".join(
        f"{kind} in {big[kind]['wall_s']:.1f} s and {big[kind]['peak_bytes'] / 1e6:.0f} MB"
        for kind in ("csv", "db")
    )
    return text + " of memory at most.\n"


def import_table(result: dict[str, Any]) -> str:
    names = {
        "csv": "csv",
        "unordered": "csv, rows in the original's order",
        "db": "db",
        "big": "csv",
    }
    rows = [
        [
            name,
            f"{result[kind]['rows'] / 1e6:.0f} M",
            f"{result[kind]['bytes'] / 1e6:.0f} MB",
            f"{result[kind]['rows_per_s'] / 1e6:.2f} M ({result[kind]['rows_per_s_min'] / 1e6:.2f} "
            f"to {result[kind]['rows_per_s_max'] / 1e6:.2f})",
            f"{result[kind]['rows_per_cpu_s'] / 1e6:.2f} M",
            f"{result[kind]['peak_bytes'] / 1e6:.0f} MB",
        ]
        for kind, name in names.items()
    ]
    head = ["`analyze` of", "rows", "size", "rows/s", "rows/s of CPU time", "peak memory"]
    return table(head, rows)


def view_tables(answer: dict[str, Any]) -> str:
    results = answer["traces"]
    opening = []
    asked: dict[str, list[str]] = {}
    for result in results:
        cold, warm, memory = result["cold"], result["warm"], result["memory"]
        opening.append(
            [
                f"{result['trace_events'] / 1e6:.0f} M events, "
                f"{result['blocks'] / 1e6:.1f} M blocks",
                f"{result['index_bytes'] / 1e6:.0f} MB",
                f"{cold['picture_s']:.2f} s ({cold['cpu_s']:.2f} s of CPU)",
                "≤ 2 s",
                verdict(cold["picture_s"] <= 2),
                f"{warm['picture_s']:.2f} s",
                "≤ 0.5 s",
                verdict(warm["picture_s"] <= 0.5),
                f"{memory['VmHWM'] / 1e6:.0f} MB",
                "≤ 1 GB",
                verdict(memory["VmHWM"] <= 1 << 30),
            ]
        )
        for kind, taken in result["queries"].items():
            row = asked.setdefault(kind, [kind, str(taken["count"])])
            row.append(
                f"{taken['median_s'] * 1e3:.0f} / {taken['p95_s'] * 1e3:.0f} / "
                f"{taken['max_s'] * 1e3:.0f} ms{'' if taken['max_s'] <= 0.2 else ' **(> 200)**'}"
            )
    head = ["trace", "index", "first picture, cold", "target", "", "warm", "target", ""]
    text = table([*head, "memory at most", "target", ""], opening)
    text += "\nQueries of a page of 1920 × 1000, median / 95 % / slowest; target ≤ 200 ms:\n\n"
    names = [f"{result['blocks'] / 1e6:.1f} M blocks" for result in results]
    text += table(["query", "asked", *names], list(asked.values()))
    if "growing" not in answer:
        return text
    rows = [
        [
            f"{run['events'] / 1e6:.1f} M events",
            f"{run['period_median_s']:.2f} s (at most {run['period_max_s']:.2f})",
            "≤ 1 s",
            verdict(run["period_max_s"] <= 1),
            f"{run['lag_median_s']:.2f} s (at most {run['lag_max_s']:.2f})",
        ]
        for run in answer["growing"]
    ]
    head = ["a run being written", "made anew every", "target", "", "a step is there after"]
    text += "\nA page asks once a second whether there is a newer index.\n\n" + table(head, rows)
    return text + browser_table(answer.get("browser"))


def browser_table(result: dict[str, Any] | None) -> str:
    if result is None:
        return "\nNo browser was measured: web/node_modules or Chromium is missing.\n"

    def opening(name: str, target: float) -> list[str]:
        one = result[name]
        parts = f"server {one['server']:.0f}, tab {one['tab']:.0f}, page {one['page']:.0f} ms"
        return [
            f"first picture, {name}",
            f"{one['all'] / 1e3:.2f} s ({parts})",
            f"≤ {target:g} s",
            verdict(one["all"] <= target * 1e3),
        ]

    def moving(name: str, kind: str) -> list[str]:
        one = result[kind]
        # Frames come at multiples of 16.7 ms: two of them are the target.
        return [
            f"frames while {name}, 95 % (worst)",
            f"{one['p95']:.1f} ms ({one['worst']:.1f} ms)",
            "≤ 33 ms",
            verdict(one["p95"] < 34),
        ]

    rows = [
        opening("cold", 2),
        opening("warm", 0.5),
        moving("panning", "pan"),
        moving("zooming", "zoom"),
        [
            "JavaScript heap",
            f"{result['heap'] / 1e6:.0f} MB",
            "≤ 200 MB",
            verdict(result["heap"] <= 200e6),
        ],
    ]
    text = "\nIn Chromium, headless, without a GPU; from the start of the command on:\n\n"
    return text + table(["10 M events, 5 M blocks", "measured", "target", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="to see that it runs; no numbers")
    parser.add_argument(
        "--only", default="event_cost,host_cost,train_step,analyze,export,import,view"
    )
    parser.add_argument("--torch2", default="", help="train on this interpreter's PyTorch too")
    parser.add_argument("--site", default="", help="folder with msmemscope for --torch2")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    quick = arguments.quick
    results: dict[str, Any] = {"machine": machine()}
    text = f"Measured {results['machine']}\n"
    if quick:
        text += "\n**A quick run: these numbers mean nothing.**\n"

    if "event_cost" in wanted:
        say("event cost (a minute)")
        words = ["--burst", "100000", "--pairs", "200"] if quick else []
        libc10 = str(BUILD / "event_cost" / "libc10.so")
        results["event_cost"] = measure("event_cost", libc10, *words)
        text += "\n## An event\n\n" + event_tables(results["event_cost"])

    if "host_cost" in wanted:
        say("host cost (a minute)")
        words = ["--pairs", "20000", "--turns", "2"] if quick else []
        program, agent = BUILD / "host_cost" / "malloc_pairs", BUILD / "libmsmemscope_agent.so"
        results["host_cost"] = measure("host_cost", str(program), str(agent), *words)
        text += "\n## malloc and free\n\n" + host_tables(results["host_cost"])

    if "train_step" in wanted:
        results["train_step"] = []
        pythons = [(sys.executable, "")]
        if arguments.torch2:
            pythons.append((arguments.torch2, arguments.site))
        for python, site in pythons:
            for model, steps in (("realistic", 4), ("opbound", 20)):
                say(f"training step, {model}, {python} (minutes)")
                words = ["--pairs", "2", "--turns", "2"] if quick else []
                sides = "idle,agent,profiler"
                result = measure(
                    "train_step", model, "--steps", str(steps), "--sides", sides,
                    "--python", python, *words, site=site,
                )  # fmt: skip
                results["train_step"].append(result)
        text += "\n## A training step\n\n" + train_table(results["train_step"])

    if "analyze" in wanted:
        say("analyze (a minute)")
        words = ["--events", "100000,1000000", "--repeats", "2"] if quick else []
        command, synth = str(BUILD / "msmemscope"), str(BUILD / "msmemscope-synth")
        results["analyze"] = measure("analyze", command, synth, *words)
        text += "\n## Analysis\n\n" + analyze_table(results["analyze"])

    if "export" in wanted:
        say("export (a minute)")
        words = ["--events", "100000", "--big", "200000", "--repeats", "2"] if quick else []
        command, synth = str(BUILD / "msmemscope"), str(BUILD / "msmemscope-synth")
        results["export"] = measure("export", command, synth, *words)
        text += "\n## Export\n\n" + export_tables(results["export"])

    if "import" in wanted:
        say("import (minutes)")
        words = ["--events", "100000", "--big", "200000", "--repeats", "2"] if quick else []
        command, synth = str(BUILD / "msmemscope"), str(BUILD / "msmemscope-synth")
        results["import"] = measure("import", command, synth, *words)
        text += "\n## Import\n\n" + import_table(results["import"])

    if "view" in wanted:
        say("view (a minute)")
        words = ["--scale", "0.02", "--turns", "8"] if quick else []
        command, synth = str(BUILD / "msmemscope"), str(BUILD / "msmemscope-synth")
        results["view"] = measure("view", command, synth, *words)
        text += "\n## The viewer's server\n\n" + view_tables(results["view"])

    BUILD.mkdir(exist_ok=True)
    (BUILD / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (BUILD / "benchmarks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
