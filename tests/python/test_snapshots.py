"""Memory snapshots of PyTorch as inputs of every verb: sums, histories, hostile files."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from snapshots import FORMS, MIB, Entry, Pool, churn, read_plainly, snapshot, write

REAL = sorted((ROOT.parent / "shared" / "data" / "snapshot").glob("*.pickle"))


def run(command: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


def info(command: str, path: Path) -> dict[str, Any]:
    done = run(command, "info", "--json", path)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    assert len(parsed["inputs"]) == 1
    told: dict[str, Any] = parsed["inputs"][0]
    # What the simulator makes of it has tests of its own.
    models = [pool.pop("model") for pool in told["pools"]]
    told["models"] = models
    assert told["kind"] == "snapshot"
    return told


def analyze(command: str, path: Path) -> dict[str, Any]:
    done = run(command, "analyze", "--json", path)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def pool_of(device: str, pool: Pool, ring: int | None = None) -> dict[str, Any]:
    """What info has to say of it."""
    return {
        "device": device,
        "segments": len(pool.segments),
        "blocks": sum(b.state == "active_allocated" for b in pool.blocks()),
        "reserved": pool.reserved(),
        "allocated": pool.allocated(),
        "active": pool.active(),
        "requested": pool.requested(),
        "workspace": 0,
        "entries": len(pool.trace if ring is None else pool.trace[-ring:]),
        "older": 0,
    }


def older_than(trace: list[Entry], used: set[int]) -> int:
    """How many blocks were there when these entries begin: those alive at the end that no entry
    allocated, and those that an entry frees without another having allocated them."""
    born: set[int] = set()
    before: set[int] = set()
    for entry in trace:
        if entry["action"] == "alloc":
            born.add(entry["addr"])
        elif entry["action"] in ("free_requested", "free_completed"):
            if entry["addr"] not in born:
                before.add(entry["addr"])
            elif entry["action"] == "free_completed":
                born.discard(entry["addr"])
    return len(before | (used - born))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_sums(command: str, tmp_path: Path, form: str) -> None:
    pool = Pool()
    churn(pool, 1)
    path = write(tmp_path / "memory.pickle", snapshot(pool), form)
    told = info(command, path)
    assert told["pools"] == [pool_of("cuda:0", pool)]
    assert told["complete"]
    assert told["damage"] == []
    # First fit is not what PyTorch's allocator does: the model says that it is none of this one.
    assert told["models"][0].startswith("does not fit: ")
    layers = analyze(command, path)["layers"]
    assert [layer["layer"] for layer in layers] == ["pool"]
    assert layers[0]["allocated"]["end"] == pool.allocated()
    assert layers[0]["reserved"]["end"] == pool.reserved()


@pytest.mark.parametrize(
    ("npu", "expandable"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_sums_of_every_kind_of_pool(
    command: str, tmp_path: Path, npu: bool, expandable: bool
) -> None:
    for seed in range(5):
        pool = Pool(npu=npu, expandable=expandable)
        churn(pool, seed)
        path = write(tmp_path / "memory.pickle", snapshot(pool))
        assert info(command, path)["pools"] == [pool_of("npu:0" if npu else "cuda:0", pool)]
        layer = analyze(command, path)["layers"][0]
        assert layer["allocated"]["end"] == pool.allocated()
        assert layer["reserved"]["end"] == pool.reserved()


def test_devices_are_kept_apart(command: str, tmp_path: Path) -> None:
    first, third = Pool(0), Pool(2)
    churn(first, 3)
    churn(third, 4)
    path = write(tmp_path / "memory.pickle", snapshot(first, third))
    assert info(command, path)["pools"] == [pool_of("cuda:0", first), pool_of("cuda:2", third)]
    assert analyze(command, path)["devices"] == ["cuda:0", "cuda:2"]


def test_what_the_ring_has_lost_is_shown(command: str, tmp_path: Path) -> None:
    """Sums stay exact however little of the history is left."""
    pool = Pool()
    churn(pool, 5)
    for ring in (1, 10, 100, 300):
        path = write(tmp_path / "memory.pickle", snapshot(pool, ring=ring))
        told = info(command, path)
        older = told["pools"][0].pop("older")
        expected = pool_of("cuda:0", pool, ring)
        del expected["older"]
        assert told["pools"] == [expected]
        used = {b.addr for b in pool.blocks() if b.state != "inactive"}
        assert older == older_than(pool.trace[-ring:], used)
        assert not told["complete"]
        layer = analyze(command, path)["layers"][0]
        assert layer["allocated"]["end"] == pool.allocated()
        assert layer["reserved"]["end"] == pool.reserved()


def test_a_state_without_a_history(command: str, tmp_path: Path) -> None:
    pool = Pool()
    churn(pool, 6)
    for whole in (snapshot(pool, ring=0) | {"device_traces": []}, snapshot(pool)["segments"]):
        path = write(tmp_path / "memory.pickle", whole)
        told = info(command, path)
        assert told["pools"][0]["allocated"] == pool.allocated()
        assert told["pools"][0]["entries"] == 0
        assert not told["complete"]
        layer = analyze(command, path)["layers"][0]
        assert layer["allocated"]["end"] == pool.allocated()
        assert layer["reserved"]["end"] == pool.reserved()


def test_every_verb_takes_a_snapshot(command: str, tmp_path: Path) -> None:
    base, new = Pool(), Pool()
    churn(base, 7)
    churn(new, 7)
    kept = new.alloc(30 * MIB, stack=4)
    new.oom(8 << 30)
    before = write(tmp_path / "base.pickle", snapshot(base))
    after = write(tmp_path / "new.pickle", snapshot(new))
    assert kept != 0
    compared = run(command, "compare", "--json", before, after)
    assert compared.returncode == 0, compared.stderr
    assert "train.py" in compared.stdout
    for suffix in (".csv", ".db", ".json.gz"):
        done = run(command, "convert", after, "-o", tmp_path / f"out{suffix}")
        assert done.returncode == 0, done.stderr
    # What was converted has the same blocks.
    again = analyze(command, tmp_path / "out.csv")
    assert again["layers"][0]["allocated"]["end"] == new.allocated()
    page = run(command, "report", after, "-o", tmp_path / "report.html")
    assert page.returncode in (0, 2), page.stderr  # 2 where the page is not built
    assert run(command, "info", after).returncode == 0


@pytest.mark.skipif(not REAL, reason="the shared data is not there")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_files_add_up(command: str, path: Path) -> None:
    whole = read_plainly(path)
    blocks = [b for s in whole["segments"] for b in s["blocks"]]
    used = [b for b in blocks if b["state"] == "active_allocated"]
    told = info(command, path)
    assert told["damage"] == []
    assert " 2899 of 2899 addresses reproduced" in told["models"][0]
    assert told["models"][0][0].isdigit()
    assert told["pools"] == [
        {
            "device": "npu:0",
            "segments": len(whole["segments"]),
            "blocks": len(used),
            "reserved": sum(s["total_size"] for s in whole["segments"]),
            "allocated": sum(b["size"] for b in used),
            "active": sum(s["active_size"] for s in whole["segments"]),
            "requested": sum(b["requested_size"] for b in used),
            "workspace": 0,
            "entries": len(whole["device_traces"][0]),
            "older": older_than(whole["device_traces"][0], {b["address"] for b in used}),
        }
    ]
    layer = analyze(command, path)["layers"][0]
    assert layer["allocated"]["end"] == sum(b["size"] for b in used)
    assert layer["reserved"]["end"] == sum(s["total_size"] for s in whole["segments"])


class Runs:
    """What a pickle can do to whoever loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_in_a_file_is_run(command: str, tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    whole = {"segments": [], "device_traces": [[{"action": Runs(made)}]]}
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps(whole, protocol))
    for verb in ("info", "analyze"):
        done = run(command, verb, path)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert str(path) in done.stderr
        assert "Python code" in done.stderr
    assert not made.exists()


HOSTILE = {
    "system": b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00trueR.",
    "eval": b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
    "nested": b"\x80\x04" + b"](" * 100_000 + b".",
    "bomb": b"\x80\x04]\x94" + b"".join(b"](h%c" % i + b"h%ce" % i + b"\x94" for i in range(40)),
    "frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}\x94.",
    "odd": b"\x80\x04}(\x8c\x08segmentsu.",
    "key": b"\x80\x04}(K\x01K\x02u.",
    "self": b"\x80\x04}(\x8c\x08segments]\x94h\x00au.",
    "text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fshort.",
    "memo": b"\x80\x02Nr\xff\xff\xff\xff.",
    "cut": pickle.dumps({"segments": [], "device_traces": []}, 4)[:-9],
    "no stop": b"\x80\x04}",
    "other": pickle.dumps({"weights": [1, 2]}, 4),
    "zip": b"PK\x03\x04" + bytes(100),
    "json": b'{"segments": [{"address": 1',
    "deep json": b'{"segments": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_in_one_line(command: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.pickle"
    path.write_bytes(HOSTILE[name])
    # A gigabyte of address space is enough for any of them.
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 1048576; exec "$@"', "bash", command, "analyze", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(f"msmemscope: {path}: ")
