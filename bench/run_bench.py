"""Runs the benchmarks and prints their results as the tables of docs/benchmarks.md.

    run_bench.py [--quick] [--only event_cost,host_cost,analyze,...] [--torch2 PYTHON]
                 [--trace-events N]

Wants build-bench/ (scripts/build.sh bench) and the package in .venv; fetches the tools that it
measures beside it (scripts/bench_tools.sh). What issue 4 asks for, side by side, in one run:

    run_bench.py --only host_cost,host_python,host_trace,train_step

Results as JSON go to
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

from tables import (
    analyze_table,
    event_tables,
    export_tables,
    host_tables,
    import_table,
    python_table,
    trace_table,
    train_table,
    view_tables,
)

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


def memray_folder() -> str:
    """The folder to put on PYTHONPATH; empty where memray cannot be had."""
    tools = [str(ROOT / "scripts" / "bench_tools.sh"), sys.executable]
    done = subprocess.run(tools, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="to see that it runs; no numbers")
    parser.add_argument(
        "--only",
        default="event_cost,host_cost,host_python,host_trace,train_step,analyze,export,import,view",
    )
    parser.add_argument("--torch2", default="", help="train on this interpreter's PyTorch too")
    parser.add_argument("--site", default="", help="folder with msmemscope for --torch2")
    parser.add_argument("--trace-events", type=int, default=10_000_000, help="of host_trace")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    quick = arguments.quick
    results: dict[str, Any] = {"machine": machine()}
    text = f"Measured {results['machine']}\n"
    if quick:
        text += "\n**A quick run: these numbers mean nothing.**\n"

    peers = {"host_cost", "host_python", "host_trace", "train_step"} & set(wanted)
    memray = memray_folder() if peers else ""
    with_memray = ["--memray", memray] if memray else []

    if "event_cost" in wanted:
        say("event cost (a minute)")
        words = ["--burst", "100000", "--pairs", "200"] if quick else []
        libc10 = str(BUILD / "event_cost" / "libc10.so")
        results["event_cost"] = measure("event_cost", libc10, *words)
        text += "\n## An event\n\n" + event_tables(results["event_cost"])

    if "host_cost" in wanted:
        say("host cost (minutes)")
        words = ["--pairs", "20000", "--turns", "2"] if quick else []
        words += with_memray
        program, agent = BUILD / "host_cost" / "malloc_pairs", BUILD / "libmsmemscope_agent.so"
        results["host_cost"] = measure("host_cost", str(program), str(agent), *words)
        text += "\n## malloc and free\n\n" + host_tables(results["host_cost"])

    command = str(Path(sys.executable).with_name("msmemscope"))
    if "host_python" in wanted:
        say("Python that allocates (minutes)")
        words = ["--rounds", "1", "--turns", "1"] if quick else []
        results["host_python"] = measure("host_python", command, *words, *with_memray)
        text += "\n## Python that allocates\n\n" + python_table(results["host_python"])

    if "host_trace" in wanted:
        say("a long host trace (minutes)")
        words = ["--events", "200000" if quick else str(arguments.trace_events), *with_memray]
        program = str(BUILD / "host_cost" / "malloc_pairs")
        results["host_trace"] = measure("host_trace", program, command, *words)
        text += "\n## A long host trace\n\n" + trace_table(results["host_trace"])

    if "train_step" in wanted:
        results["train_step"] = []
        pythons = [(sys.executable, "")]
        if arguments.torch2:
            pythons.append((arguments.torch2, arguments.site))
        for python, site in pythons:
            for model, steps in (("realistic", 3), ("opbound", 20)):
                say(f"training step, {model}, {python} (minutes)")
                words = ["--pairs", "2", "--turns", "2"] if quick else ["--pairs", "4"]
                sides = "idle,agent,profiler,profiler_memory"
                if memray and not site:
                    sides += ",memray"
                    words += with_memray
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
