"""`msmemscope convert`, and the csv or db that a run asks for: files as Python's own readers take
them.

The traces are synthetic, with known answers, or recorded from a small program.
"""

from __future__ import annotations

import csv
import json
import re
import signal
import sqlite3
import stat
import subprocess
import time
from pathlib import Path

import pytest
from conftest import RunChild
from converting import convert, make

HEADER = [
    "ID",
    "Event",
    "Event Type",
    "Name",
    "Timestamp(ns)",
    "Process Id",
    "Thread Id",
    "Device Id",
    "Ptr",
    "Attr",
    "Call Stack(Python)",
    "Call Stack(C)",
]
TREE = re.compile(
    r"msmemscope_\d+_\d{14}_ascend/device_(cpu|\d+)/dump/memscope_dump_\d{14}\.(csv|db)"
)

Row = dict[str, str]


def csv_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        assert reader.fieldnames == HEADER
        return list(reader)


def csv_attr(row: Row) -> dict[str, str]:
    text = row["Attr"]
    if not text:
        return {}
    assert text[0] == "{"
    assert text[-1] == "}"
    return dict(item.split(":", 1) for item in text[1:-1].split(","))


def db_rows(path: Path) -> list[Row]:
    connection = sqlite3.connect(path)
    try:
        return [
            {name: str(value) for name, value in zip(HEADER, row)}
            for row in connection.execute("SELECT * FROM memscope_dump")
        ]
    finally:
        connection.close()


def test_csv_and_db_say_the_same(command: str, synth: Path, tmp_path: Path) -> None:
    run = make(synth, tmp_path / "runs", "--steps", "10", "--leak", "leak:4096", "--marks")
    for name in ("a.csv", "a.db"):
        done = convert(command, run, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert f"wrote {tmp_path / name}" in done.stderr
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    from_csv, from_db = csv_rows(tmp_path / "a.csv"), db_rows(tmp_path / "a.db")
    assert len(from_csv) == len(from_db) > 100
    for a, b in zip(from_csv, from_db):
        assert csv_attr(a) == json.loads(b["Attr"])
        for column in HEADER:
            if column != "Attr" and a[column] != "NA":
                assert a[column] == b[column]
    times = [int(row["Timestamp(ns)"]) for row in from_csv]
    assert times == sorted(times)
    assert [int(row["ID"]) for row in from_csv] == list(range(1, len(from_csv) + 1))


def test_the_originals_check_holds(command: str, synth: Path, tmp_path: Path) -> None:
    """What its smoke test asks: allocation ids pair up, and the running total is the sum."""
    run = make(synth, tmp_path / "runs", "--steps", "20", "--threads", "3", "--devices", "cpu")
    assert convert(command, run, "-o", tmp_path / "a.csv").returncode == 0
    live: dict[str, tuple[str, int]] = {}
    total = 0
    for row in csv_rows(tmp_path / "a.csv"):
        if row["Event"] not in ("MALLOC", "FREE"):
            continue
        attr = csv_attr(row)
        assert attr["addr"] == row["Ptr"]
        size = int(attr["size"])
        if row["Event"] == "MALLOC":
            assert attr["allocation_id"] not in live
            live[attr["allocation_id"]] = (row["Ptr"], size)
            total += size
        else:
            assert live.pop(attr["allocation_id"]) == (row["Ptr"], size)
            total -= size
        assert int(attr["total"]) == total


def test_devices_and_processes_have_files_of_their_own(
    command: str, synth: Path, tmp_path: Path
) -> None:
    run = make(
        synth, tmp_path / "runs", "--steps", "5", "--processes", "2", "--devices", "cpu,npu:0,npu:1"
    )
    done = convert(command, run, "-o", f"{tmp_path}/out/", "--format", "db")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "out").rglob("*.*"))
    assert len(files) == 6
    pids = set()
    for file in files:
        match = TREE.fullmatch(str(file.relative_to(tmp_path / "out")))
        assert match
        rows = db_rows(file)
        devices = {row["Device Id"] for row in rows}
        assert devices - {"N/A"} == {match[1]}
        assert {row["Event"] for row in rows if row["Device Id"] == "N/A"} == {"SYSTEM"}
        assert sum(row["Event Type"] == "START_TRACE" for row in rows) == 1
        pids.add(rows[0]["Process Id"])
        for directory in file.relative_to(tmp_path).parents:
            assert stat.S_IMODE((tmp_path / directory).stat().st_mode) == 0o700
    assert len(pids) == 2
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_file_holds_one_process_and_one_device(command: str, synth: Path, tmp_path: Path) -> None:
    run = make(
        synth, tmp_path / "runs", "--steps", "3", "--processes", "2", "--devices", "cpu,cuda:0"
    )
    done = convert(command, run, "-o", tmp_path / "a.csv")
    assert done.returncode == 2
    assert "2 inputs and a file holds one process" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    one = next(path for path in run.iterdir() if path.is_dir())
    done = convert(command, one, "-o", tmp_path / "a.csv")
    assert done.returncode == 2
    assert "2 devices (cpu, cuda:0)" in done.stderr
    assert "--device" in done.stderr
    done = convert(command, one, "-o", tmp_path / "a.csv", "--device", "cuda:0")
    assert done.returncode == 0, done.stderr
    assert {row["Device Id"] for row in csv_rows(tmp_path / "a.csv")} == {"0", "N/A"}
    done = convert(command, one, "-o", tmp_path / "b.csv", "--device", "cuda:9")
    assert done.returncode == 2
    assert "nothing of cuda:9, only of cpu, cuda:0" in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.csv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "x.pickle"], "cannot be written yet"),
        (
            ["-o", "x.txt"],
            '-o is "x.txt"; allowed: FILE.csv, FILE.db, FILE.json.gz, or a directory',
        ),
        (["-o", "no/such/x.csv"], "there is no directory no/such"),
        ([], "say where to write"),
        (["-o", "x.csv", "--steps", "5:2"], '--steps is "5:2"'),
        (["-o", "x.csv", "--steps", "0:2"], '--steps is "0:2"; allowed: A:B, two steps with 1 <='),
        (["-o", "x.csv", "--steps", "99:100"], "has 3 steps"),
        (["-o", "x.csv", "--device", "gpu"], '--device is "gpu"'),
        (["-o", "x.csv", "--compat", "25"], '--compat is "25"'),
        (["-o", "x.csv", "--call-stack", "java"], "invalid call-stack depth"),
        (["-o", "x.csv", "--events", "all"], "invalid event trace type"),
        (["-o", "x.csv", "--format", "db"], '--format is "db"'),
        (["-o", "x.csv", "--wrong"], "--wrong"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    command: str,
    synth: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = make(synth, tmp_path / "runs", "--steps", "3")
    done = convert(command, run, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("x.*"))


def test_an_input_is_never_replaced(command: str, synth: Path, tmp_path: Path) -> None:
    run = make(synth, tmp_path / "runs", "--steps", "3")
    assert convert(command, run, "-o", tmp_path / "a.csv").returncode == 0
    before = (tmp_path / "a.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    for target in ("a.csv", "link.csv"):
        done = convert(command, tmp_path / "a.csv", "-o", tmp_path / target)
        assert done.returncode == 2
        assert "is the input itself" in done.stderr
    assert (tmp_path / "a.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["a.csv", "a.db", "tree/"])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    command: str, synth: Path, tmp_path: Path, name: str
) -> None:
    """Played by `ulimit -f`, in blocks of 1 KiB."""
    run = make(synth, tmp_path / "runs", "--steps", "30")
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        ["bash", "-c", f'ulimit -f 64; exec "$0" convert {run} -o {tmp_path}/out/{name}', command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"msmemscope: cannot write {tmp_path}/out/{name}")
    assert done.stderr.endswith(": File too large\n")
    assert len(done.stderr.splitlines()) == 1
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["a.csv", "a.db"])
def test_a_signal_leaves_nothing(command: str, synth: Path, tmp_path: Path, name: str) -> None:
    run = make(synth, tmp_path / "runs", "--events", "1000000")
    (tmp_path / "out").mkdir()
    process = subprocess.Popen([command, "convert", run, "-o", tmp_path / "out" / name])
    while not list((tmp_path / "out").iterdir()):
        assert process.poll() is None
        time.sleep(0.001)
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert not list((tmp_path / "out").iterdir())


HOSTILE = [
    'say "hi"',
    "a,b;c",
    "two\nlines",
    "=1+2",
    "+cmd|' /C calc'!A0",
    "@sum",
    "-1",
    "内存，泄漏 🧠",
    "back\\slash",
    '{a:b},"c":1}',
    " blanks ",
    "'; DROP TABLE memscope_dump; --",
    "tab\tbell\x07",
    "x" * 5000,
    '"quoted"',
    "x\n9,FREE,PTA,N/A,1764753365727896900,7,7,0,0x1,,,\ny",
    'x",1764753365727896900,7,7,0,N/A,,,\n9,MSTX,Mark,"forged',
]


def test_hostile_labels_come_through_both_formats(command: str, tmp_path: Path) -> None:
    """As names of marks and of operators, and as owners, by way of a csv that Python wrote."""
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for k, label in enumerate(HOSTILE):
            address = f"0x{0x1000 * (k + 1):016x}"
            attr = {"allocation_id": str(k + 1), "addr": address, "size": "8", "owner": label}
            text = ",".join(
                f"{key}:{json.dumps(value) if key == 'owner' else value}"
                for key, value in attr.items()
            )
            at = 1764753365727896900 + 10 * k
            ours = [at, 7, 7, 0]
            writer.writerow([3 * k, "MALLOC", "PTA", "N/A", *ours, address, f"{{{text}}}", "", ""])
            writer.writerow([3 * k + 1, "MSTX", "Mark", label, *ours, "N/A", "", "", ""])
            writer.writerow([3 * k + 2, "OP_LAUNCH", "ATEN_START", label, *ours, "N/A", "", "", ""])
    for name in ("a.csv", "a.db"):
        done = convert(command, tmp_path / "in.csv", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    from_db = db_rows(tmp_path / "a.db")
    for rows in (csv_rows(tmp_path / "a.csv"), from_db):
        # In a db a text with quotes around it has two more: readers take off what 26.0 puts there.
        in_db = [f'"{label}"' if label[0] == label[-1] == '"' else label for label in HOSTILE]
        expected = in_db if rows is from_db else HOSTILE
        assert [row["Name"] for row in rows if row["Event"] == "MSTX"] == expected
        assert [row["Name"] for row in rows if row["Event"] == "OP_LAUNCH"] == HOSTILE
    owners = [json.loads(row["Attr"])["owner"] for row in from_db if row["Event"] == "MALLOC"]
    assert owners == HOSTILE


def test_a_dump_converts_into_itself(command: str, synth: Path, tmp_path: Path) -> None:
    """csv -> db -> csv: the same rows. The trace has owners, marks and two threads."""
    run = make(
        synth, tmp_path / "runs", "--steps", "12", "--threads", "2", "--owners", "--marks",
        "--devices", "npu:0",
    )  # fmt: skip
    assert convert(command, run, "-o", tmp_path / "a.csv").returncode == 0
    assert convert(command, tmp_path / "a.csv", "-o", tmp_path / "b.db").returncode == 0
    assert convert(command, tmp_path / "b.db", "-o", tmp_path / "c.csv").returncode == 0
    first, last = csv_rows(tmp_path / "a.csv"), csv_rows(tmp_path / "c.csv")
    assert len(first) == len(last)
    for a, b in zip(first, last):
        assert a == b


LABELS = """
    import msmemscope
    import torch
    msmemscope.config(format={format!r}, call_stack="python:3")
    msmemscope.start()
    keep = []
    for k in range(10):
        keep.append(torch.ones(1000))
        msmemscope.step()
    msmemscope.stop()
"""


@pytest.mark.torch
@pytest.mark.parametrize("format", ["csv", "db"])
def test_stop_leaves_the_dump(run_python: RunChild, format: str) -> None:
    child = run_python(LABELS.format(format=format)).ok()
    results = child.directory / "memscopeDumpResults"
    files = [path for path in results.rglob("memscope_dump_*") if path.is_file()]
    assert [path.suffix for path in files] == [f".{format}"]
    assert TREE.fullmatch(str(files[0].relative_to(results)))
    rows = csv_rows(files[0]) if format == "csv" else db_rows(files[0])
    assert sum(row["Event Type"] == "STEP" for row in rows) == 10
    kept = [row for row in rows if row["Event"] == "MALLOC" and "size" in row["Attr"]]
    assert len(kept) >= 10
    assert max(len(row["Call Stack(Python)"].splitlines()) for row in rows) <= 3
    assert any("program.py(8): <module>" in row["Call Stack(Python)"] for row in kept)
    assert child.stdout == ""
    assert "not recorded yet" not in child.stderr
    assert f"wrote {files[0]}" in child.stderr


@pytest.mark.torch
def test_the_launcher_leaves_the_dump_of_every_process(run_python: RunChild, command: str) -> None:
    child = run_python(
        """
        import multiprocessing
        import torch

        def work():
            return [torch.ones(1000) for _ in range(10)]

        if __name__ == "__main__":
            kept = work()
            process = multiprocessing.get_context("spawn").Process(target=work)
            process.start()
            process.join()
        """,
        prefix=(command, "--format", "csv"),
    ).ok()
    results = child.directory / "memscopeDumpResults"
    files = [path for path in results.rglob("memscope_dump_*") if path.is_file()]
    assert len(files) == len(child.processes()) == 2
    for file in files:
        rows = csv_rows(file)
        assert sum(row["Event"] == "MALLOC" for row in rows) >= 10
        assert {row["Call Stack(Python)"] for row in rows} == {""}  # nobody asked for stacks
    assert child.stdout == ""
