"""Runs every program of the zoo under the command and compares the diagnosis with its header.

    tests/zoo/run_zoo.py [NAME...] [--jobs N] [--keep DIR]

A program's docstring says what is right, written before anyone looked at what the analyzers say:

    cause: leak                      one of the contract's causes; alternatives (a | b) where the
                                     specific one needs evidence that is not recorded yet;
                                     `leak; cycle` for two problems at once
    layer: tensor
    allocated: marked                a line that ends in `# <- allocated`
    kept: marked                     a line that ends in `# <- kept`; none: kept_at must be null
    options: --device=host           of the command, where the defaults do not record it
    source: NAME.c                   the file beside the program in which `allocated` is marked

Of two problems the second one's lines end in `# <- allocated 2` and `# <- kept 2`. Right means:
each cause once and nothing else; its site is a marked line, and so is its kept_at.
A healthy program (cause: none) must yield `none` alone. Exits 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
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
class Problem:
    causes: list[str]
    allocated: set[int]
    kept: set[int]


@dataclass
class Expected:
    problems: list[Problem]  # none: healthy
    layer: str
    options: list[str]
    source: Path  # of the marked lines that allocate


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
        if separator and key in ("cause", "layer", "allocated", "kept", "options", "source"):
            fields[key] = value.strip()
    allocating = path.with_name(fields.get("source", path.name))
    marks: dict[tuple[str, int], set[int]] = {}
    for number, line in enumerate(allocating.read_text().splitlines(), start=1):
        for what, which in re.findall(
            r"# <- (allocated|kept) ?(\d?)", line.replace(" <-", " # <-")
        ):
            marks.setdefault((what, int(which or 1)), set()).add(number)
    problems = [
        Problem(
            [cause.strip() for cause in causes.split("|")],
            marks.get(("allocated", which), set()),
            marks.get(("kept", which), set()),
        )
        for which, causes in enumerate(fields["cause"].split(";"), start=1)
        if causes.strip() != "none"
    ]
    return Expected(
        problems, fields.get("layer", ""), fields.get("options", "").split(), allocating
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
    causes = [verdict["cause"] for verdict in verdicts]
    if not expected.problems:
        return [] if causes == ["none"] else [f"verdicts are {', '.join(causes)}"]
    if len(causes) != len(expected.problems):
        return [f"verdicts are {', '.join(causes)}"]
    # Whichever verdict fits a problem best is its.
    wrong = []
    left = list(verdicts)
    for problem in expected.problems:
        reasons, verdict = min(
            ((reasons_against(path, problem, expected, v), v) for v in left),
            key=lambda pair: len(pair[0]),
        )
        left.remove(verdict)
        wrong += reasons
    return wrong


def reasons_against(
    path: Path, problem: Problem, expected: Expected, verdict: dict[str, Any]
) -> list[str]:
    wrong = []
    if verdict["cause"] not in problem.causes:
        wrong.append(f"cause is {verdict['cause']}")
    if verdict["layer"] != expected.layer:
        wrong.append(f"layer is {verdict['layer']}")
    if not on_line(verdict["site"], expected.source, problem.allocated):
        wrong.append(f"allocated is {shown(verdict['site'])}")
    kept = verdict["kept_at"]
    if not (on_line(kept, path, problem.kept) if problem.kept else kept is None):
        wrong.append(f"kept is {shown(verdict['kept_at'])}")
    return wrong


def run(path: Path, keep: Path | None) -> Outcome:
    expected = expectation(path)
    command = find_command()
    with tempfile.TemporaryDirectory(prefix="zoo-") as temporary:
        directory = (keep or Path(temporary)) / path.stem
        directory.mkdir(parents=True, exist_ok=True)
        traced = subprocess.run(
            [command, "--output-path", str(directory), "--report-to", "none"]
            + [*expected.options, "--", sys.executable, str(path)],
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
    accused = sum(not outcome.expected.problems and bool(outcome.wrong) for outcome in outcomes)
    print(
        f"\nzoo: {good} of {len(outcomes)} right ({100 * good / len(outcomes):.0f} %), "
        f"{accused} healthy accused"
    )
    return 0 if good == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
