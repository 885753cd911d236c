"""`msmemscope convert ... -o FILE.json.gz`: read back as any reader of trace events would."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from converting import convert, make
from dump_rows import Dump

Event = dict[str, Any]


def events_of(path: Path) -> list[Event]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    events: list[Event] = trace["traceEvents"]
    for event in events:
        assert event["ph"] in "MCXibe"
        assert isinstance(event["pid"], int)
        if event["ph"] != "M":
            assert event["ts"] >= 0
    return events


def test_every_number_of_a_small_run(command: str, tmp_path: Path) -> None:
    # Rows a microsecond apart. 4096 B, then 1024 B beside it; the first goes; 8192 B come and stay.
    dump = Dump().malloc(0x1000, 4096).malloc(0x2000, 1024).free(0x1000, 4096)
    dump.malloc(0x3000, 8192)
    out = tmp_path / "out.json.gz"
    done = convert(command, dump.csv(tmp_path / "dump.csv"), "-o", out)
    assert done.returncode == 0, done.stderr
    assert f"wrote {out}" in done.stderr
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    events = events_of(out)
    curve = [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert curve == [(0, 4096), (1, 5120), (2, 1024), (3, 9216)]
    assert {e["name"] for e in events if e["ph"] == "C"} == {"npu:0 pool allocated"}
    begins = {e["id"]: e for e in events if e["ph"] == "b"}
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    blocks = [
        (e["args"]["bytes"], e["args"]["address"], e["ts"], ends[i]["ts"])
        for i, e in begins.items()
    ]
    # The largest first; what is alive lasts to the end.
    assert blocks == [
        (8192, "0x3000", 3, 3),
        (4096, "0x1000", 0, 2),
        (1024, "0x2000", 1, 3),
    ]
    assert [e["args"].get("freed") for e in begins.values()] == [
        "not by the end",
        None,
        "not by the end",
    ]


def test_steps_phases_marks_and_samples(command: str, synth: Path, tmp_path: Path) -> None:
    run = make(synth, tmp_path / "runs", "--steps", "10", "--marks", "--counters", "--leak", "l:64")
    out = tmp_path / "out.json.gz"
    done = convert(command, run, "-o", out, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    events = events_of(out)
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    steps = [e for e in slices if e["tid"] == tracks["steps"]]
    assert [e["name"] for e in steps] == [f"step {k}" for k in range(1, 11)]
    for one, other in zip(steps, steps[1:]):
        assert one["ts"] + one["dur"] == pytest.approx(other["ts"], abs=0.002)
    phases = {e["name"] for e in slices if e["tid"] == tracks["phases"]}
    assert phases >= {"forward", "backward", "optimizer"}
    assert sum(e["ph"] == "b" and e["cat"] == "mark" for e in events) == 10
    rss = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["name"].endswith("rss")]
    assert len(rss) == 10
    sites = {e["name"] for e in events if e["ph"] == "b" and e["cat"] == "block"}
    assert any(name.split(":")[0].endswith(".py") for name in sites)


def test_all_ranks_on_one_time_axis(command: str, synth: Path, tmp_path: Path) -> None:
    run = make(synth, tmp_path / "runs", "--steps", "5", "--processes", "2")
    out = tmp_path / "out.json.gz"
    assert convert(command, run, "-o", out).returncode == 0
    names = {e["pid"]: e["args"]["name"] for e in events_of(out) if e["name"] == "process_name"}
    assert len(names) == 2
    assert all("rank" in name for name in names.values())


def test_the_size_is_bounded_and_what_is_missing_is_said(
    command: str, synth: Path, tmp_path: Path
) -> None:
    run = make(synth, tmp_path / "runs", "--steps", "50", "--events", "400000")
    out = tmp_path / "out.json.gz"
    done = convert(command, run, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "smaller blocks" in done.stderr
    events = events_of(out)
    for name in {e["name"] for e in events if e["ph"] == "C"}:
        # 4,000 pieces of time, a peak and a last value each.
        assert sum(e["name"] == name for e in events) <= 8_001
    assert sum(e["ph"] == "b" for e in events) == 2_000
    assert out.stat().st_size < 2_000_000


def test_inputs_and_devices_are_not_replaced(command: str, tmp_path: Path) -> None:
    dump = Dump().malloc(0x1000, 4096).csv(tmp_path / "dump.json.gz")
    before = dump.read_bytes()
    done = convert(command, dump, "-o", dump)
    assert done.returncode == 2
    assert "inputs are never changed" in done.stderr
    assert dump.read_bytes() == before
    done = convert(command, dump, "-o", tmp_path / "x.json.gz", "--steps", "1:2")
    assert done.returncode == 2
    assert "--steps is for csv and db" in done.stderr
    assert not (tmp_path / "x.json.gz").exists()
