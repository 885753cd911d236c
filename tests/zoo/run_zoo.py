"""Runs every program of the zoo under the command and compares the diagnosis with its header.

    tests/zoo/run_zoo.py [NAME...] [--jobs N] [--keep DIR]

A program's docstring says what is right, written before anyone looked at what the analyzers say:

    cause: leak | retained_graph     one of the contract's causes; alternatives where the specific
                                     one needs evidence that is not recorded yet
    layer: tensor
    allocated: marked                a line that ends in `# <- allocated`
    kept: marked                     a line that ends in `# <- kept`

Right means: the cause, once and nothing else; the site is a marked line, and so is kept_at.
A healthy program (cause: none) must yield `none` alone. Exits 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = 300


@dataclass
class Expected:
    causes: list[str]
    layer: str
    allocated: set[int]
    kept: set[int]


@dataclass
class Outcome:
    name: str
    expected: Expected
    wrong: list[str]
    found: str


def expectation(path: Path) -> Expected:
    source = path.read_text()
    fields = {}
    for line in (ast.get_docstring(ast.parse(source)) or "").splitlines():
        key, separator, value = line.partition(":")
        if separator and key in ("cause", "layer", "allocated", "kept"):
            fields[key] = value.strip()
    lines = list(enumerate(source.splitlines(), start=1))
    return Expected(
        [cause.strip() for cause in fields["cause"].split("|")],
        fields.get("layer", ""),
        {number for number, line in lines if "# <-" in line and "<- allocated" in line},
        {number for number, line in lines if "# <-" in line and "<- kept" in line},
    )


def find_command() -> str:
    build = os.environ.get("MSMEMSCOPE_BUILD_DIR")
    if build:
        return str(Path(build).resolve() / "msmemscope")
    beside = Path(sys.executable).with_name("msmemscope")
    return str(beside) if beside.exists() else "msmemscope"


def on_line(frame: dict[str, Any] | None, path: Path, allowed: set[int]) -> bool:
    if not frame or not frame.get("file") or not frame.get("line"):
        return False
    lines = range(frame["line"], (frame.get("end_line") or frame["line"]) + 1)
    return Path(frame["file"]).resolve() == path and any(line in allowed for line in lines)


def shown(frame: dict[str, Any] | None) -> str:
    return f"{Path(frame['file'] or '?').name}:{frame['line']}" if frame else "-"


def judge(path: Path, expected: Expected, result: dict[str, Any]) -> list[str]:
    verdicts = result["verdicts"]
    wrong = []
    causes = [verdict["cause"] for verdict in verdicts]
    if len(causes) != 1 or causes[0] not in expected.causes:
        wrong.append(f"verdicts are {', '.join(causes)}")
    if expected.causes == ["none"] or not verdicts:
        return wrong
    first = verdicts[0]
    if first["cause"] in expected.causes:
        if first["layer"] != expected.layer:
            wrong.append(f"layer is {first['layer']}")
        if not on_line(first["site"], path, expected.allocated):
            wrong.append(f"allocated is {shown(first['site'])}")
        if not on_line(first["kept_at"], path, expected.kept):
            wrong.append(f"kept is {shown(first['kept_at'])}")
    return wrong


def run(path: Path, keep: Path | None) -> Outcome:
    expected = expectation(path)
    command = find_command()
    with tempfile.TemporaryDirectory(prefix="zoo-") as temporary:
        directory = (keep or Path(temporary)) / path.stem
        directory.mkdir(parents=True, exist_ok=True)
        traced = subprocess.run(
            [command, "--output-path", str(directory), "--report-to", "none", "--"]
            + [sys.executable, str(path)],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if traced.returncode != 0:
            return Outcome(path.stem, expected, [f"exit {traced.returncode}: {traced.stderr}"], "")
        analyzed = subprocess.run(
            [command, "analyze", "--json", str(directory)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if analyzed.returncode != 0:
            return Outcome(path.stem, expected, [f"analyze: {analyzed.stderr.strip()}"], "")
        result = json.loads(analyzed.stdout)
        found = "; ".join(
            f"{v['cause']} {v['confidence']:.2f} {shown(v['site'])} -> {shown(v['kept_at'])}"
            for v in result["verdicts"]
        )
        return Outcome(path.stem, expected, judge(path, expected, result), found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs to run; all if none is named")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="leave the traces in this directory")
    arguments = parser.parse_args()
    paths = sorted(PROGRAMS.glob("*.py"))
    if arguments.names:
        paths = [path for path in paths if path.stem in arguments.names]
    if not paths:
        print("no such program", file=sys.stderr)
        return 2
    keep = arguments.keep.resolve() if arguments.keep else None
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda path: run(path, keep), paths))
    width = max(len(outcome.name) for outcome in outcomes)
    for outcome in outcomes:
        right = "right" if not outcome.wrong else "WRONG"
        print(f"{right}  {outcome.name:{width}}  {outcome.found}")
        for reason in outcome.wrong:
            print(f"       {'':{width}}  {reason}")
    good = sum(not outcome.wrong for outcome in outcomes)
    accused = sum(
        outcome.expected.causes == ["none"] and bool(outcome.wrong) for outcome in outcomes
    )
    print(
        f"\nzoo: {good} of {len(outcomes)} right ({100 * good / len(outcomes):.0f} %), "
        f"{accused} healthy accused"
    )
    return 0 if good == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
