"""Programs killed at random moments: nothing whose hook returned is missing.

20 kills: 8 of the demo, 12 of a program whose four threads do nothing but allocate; 200 in full.
"""

import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time

import pytest
from conftest import count_events, outside

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEMO = ROOT / "examples" / "memory_leak_demo.py"


def start(build: pathlib.Path, directory: pathlib.Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        HERE / "kill_run.py",
        build / "hostile" / "libcount_hooks.so",
        directory / "counter",
        directory / "out",
        DEMO,
    ]
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_every_event_whose_hook_returned_survives_sigkill(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    pytest.importorskip("torch")
    kills = int(os.environ.get("MEMSCOPE_KILLS", "50" if full else "8"))
    random_moment = random.Random(20260101)
    for kill in range(kills):
        directory = tmp_path / str(kill)
        directory.mkdir()
        process = start(build, directory)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "counting\n", (process.stderr.read() if process.stderr else "") + line
        time.sleep(random_moment.uniform(0.0, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            continue  # it was done before the kill came
        counted_allocs, counted_frees = struct.unpack("QQ", (directory / "counter").read_bytes())
        traces = list((directory / "out").glob("run-*/*"))
        if not traces:  # killed before the first event
            assert (counted_allocs, counted_frees) == (0, 0)
            continue
        (trace,) = traces
        found = count_events(build, trace)
        # An event may be in the trace whose hook had not returned to the counter yet: one a thread.
        assert found["dropped"] == 0
        assert found["damage"] == 0
        assert 0 <= found["allocs"] - counted_allocs <= 8, (kill, found, counted_allocs)
        assert 0 <= found["frees"] - counted_frees <= 8, (kill, found, counted_frees)
        analyzed = subprocess.run(
            [build / "msmemscope", "analyze", "--json", trace],
            capture_output=True,
            text=True,
            check=True,
        )
        diagnosis = json.loads(analyzed.stdout)
        causes = [verdict["cause"] for verdict in diagnosis["verdicts"]]
        warmup = diagnosis["steps"]["warmup_until"]
        judged = warmup is not None and diagnosis["steps"]["count"] - warmup >= 8
        assert diagnosis["inputs"][0]["ended"] == "killed"
        assert causes == ["none"] if not judged else set(causes) <= {"leak", "none"}
        print(kill, found, diagnosis["steps"]["count"], causes)


def test_four_threads_under_load_killed(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    random_moment = random.Random(20260102)
    for kill in range(150 if full else 12):
        output, counter = tmp_path / f"out{kill}", tmp_path / f"counts{kill}"
        command = [build / "msmemscope", "--report-to=none", "-o", output, "--"]
        command += [build / "hostile" / "under_load", counter]
        process = subprocess.Popen(
            [str(part) for part in command],
            env=outside(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "counting\n"
        (meta,) = output.glob("run-*/*/meta.json")
        time.sleep(random_moment.uniform(0.0, 0.5))
        os.kill(json.loads(meta.read_text())["pid"], signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        counted = struct.unpack("8Q", counter.read_bytes())
        found = count_events(build, meta.parent)
        assert (found["dropped"], found["damage"]) == (0, 0)
        # A call may not have returned to the counter yet: one a thread.
        assert 0 <= found["allocs"] - sum(counted[:4]) <= 4, (kill, found, counted)
        assert 0 <= found["frees"] - sum(counted[4:]) <= 4, (kill, found, counted)
        assert found["allocs"] - found["frees"] <= 4 * 100
        assert not (meta.parent / "hot.slab").exists(), "the launcher has sealed it"
