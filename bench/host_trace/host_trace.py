"""A long host trace: its size, and how long it is until it says something, beside others.

malloc_pairs records it under the agent, under heaptrack and, as a library in a Python process,
under memray with native stacks; then each tool's quickest report is made of it: `msmemscope
analyze`, `heaptrack_print`, `memray stats`. Prints one JSON object: bytes an event, seconds, CPU
seconds and peak memory of recording and report. Once each: the figures are large.

    host_trace.py MALLOC_PAIRS MSMEMSCOPE [--memray FOLDER] [--events N] [--kept N]

heaptrack's recording includes its interpreter, which runs beside the program.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DEPTH = 10


def run(words: list[str], folder: Path, path: str = "") -> dict[str, float]:
    """Wall and CPU seconds of a process and its children, and the largest one's memory."""
    env = {**os.environ, "PYTHONPATH": path} if path else None
    begin = time.monotonic()
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(words, env=env, cwd=folder, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        print((folder / "said").read_text(errors="replace")[-2000:], file=sys.stderr)
        raise SystemExit(f"host_trace.py: {words[0]} ended with {status}")
    return {
        "wall_s": time.monotonic() - begin,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def size_of(files: list[Path]) -> int:
    assert files, "nothing was recorded"
    return sum(file.stat().st_size for file in files)


def memscope(arguments: argparse.Namespace, numbers: list[str], folder: Path) -> dict[str, Any]:
    output = folder / "traces"
    words = [arguments.msmemscope, "--device=host", "--call-stack=c:200", "--report-to=none"]
    record = run([*words, f"--output-path={output}", "--", arguments.program, *numbers], folder)
    size = size_of(list(output.rglob("trace*.msm")))
    report = run([arguments.msmemscope, "analyze", "--json", str(output)], folder)
    shutil.rmtree(output)
    return {"record": record, "report": report, "bytes": size}


def heaptrack(arguments: argparse.Namespace, numbers: list[str], folder: Path) -> dict[str, Any]:
    words = ["heaptrack", "-o", str(folder / "heap"), arguments.program, *numbers]
    record = run(words, folder)
    files = list(folder.glob("heap*"))
    report = run(["heaptrack_print", str(files[0])], folder)
    size = size_of(files)
    for file in files:
        file.unlink()
    return {"record": record, "report": report, "bytes": size}


def memray(arguments: argparse.Namespace, numbers: list[str], folder: Path) -> dict[str, Any]:
    file = folder / "memray.bin"
    program = str(Path(__file__).parent.parent / "host_cost" / "in_python.py")
    library = str(Path(arguments.program).with_name("libmalloc_pairs.so"))
    words = [sys.executable, "-m", "memray"]
    record = run(
        [*words, "run", "--native", "-q", "-o", str(file), program, library, *numbers],
        folder,
        arguments.memray,
    )
    report = run([*words, "stats", str(file)], folder, arguments.memray)
    return {"record": record, "report": report, "bytes": size_of([file])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("msmemscope", help="the command")
    parser.add_argument("--memray", default="", help="folder with memray for this interpreter")
    parser.add_argument("--events", type=int, default=10_000_000, help="allocs and frees")
    parser.add_argument("--kept", type=int, default=20_000, help="blocks alive at a time")
    arguments = parser.parse_args()
    numbers = ["1", str(DEPTH), str(arguments.events // 2), str(arguments.kept)]
    result: dict[str, Any] = {"events": arguments.events, "kept": arguments.kept}
    with tempfile.TemporaryDirectory(dir=os.environ.get("MSMEMSCOPE_BENCH_DIR")) as name:
        folder = Path(name)
        result["memscope"] = memscope(arguments, numbers, folder)
        if shutil.which("heaptrack"):
            result["heaptrack"] = heaptrack(arguments, numbers, folder)
        if arguments.memray:
            result["memray"] = memray(arguments, numbers, folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
