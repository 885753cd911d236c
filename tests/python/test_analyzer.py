"""msmemscope.analyzer: the original's names, what it prints, and what is returned."""

from __future__ import annotations

import inspect
import os
import sqlite3
from pathlib import Path
from typing import Any, Optional

import msmemscope
import pytest
from dump_rows import Dump
from msmemscope.analyzer import (
    InefficientAnalyzer,
    InefficientConfig,
    LeaksAnalyzer,
    LeaksConfig,
)
from msmemscope.analyzer.base import BaseConfig

pytestmark = pytest.mark.usefixtures("command")


def rounds() -> Dump:
    """Marks A, B, C, D. From A to B: 1 (HAL, 1 MiB) and 2 (PTA) leak, 3 (HAL) is freed before C, 4
    (HAL) after it; from B to C: 5 (HAL) leaks."""
    dump = Dump().mark("other").mark("round")  # rows 1 and 2
    dump.layer = "HAL"
    dump.malloc(0x1000, 1 << 20)  # row 3
    dump.layer = "PTA"
    dump.malloc(0x2000, 512)  # 4
    dump.layer = "HAL"
    dump.malloc(0x3000, 8).malloc(0x4000, 1 << 19)  # 5, 6
    dump.mark("round").free(0x3000, 8).malloc(0x5000, 64)  # 7, 8, 9
    dump.mark("round").free(0x4000, 1 << 19)  # 10, 11
    return dump.mark("round")  # 12


def early() -> Dump:
    """0x1000 is allocated before 0x2000 is freed and first used after it; 0x3000 is used, then
    0x4000 is allocated, then 0x3000 is freed."""
    dump = Dump().malloc(0x2000, 8).malloc(0x1000, 4096).free(0x2000, 8).access(0x1000)
    dump.malloc(0x3000, 16, owner="PTA@ops").access(0x3000)
    return dump.malloc(0x4000, 8).free(0x3000, 16)


# -- names ----------------------------------------------------------------------------------------


def test_names_arguments_and_defaults_are_the_original_s() -> None:
    assert msmemscope.list_analyzers() == ["leaks", "inefficient"]
    assert msmemscope.get_analyzer_config("leaks") == {
        "config_class": "LeaksConfig",
        "parameters": ["input_path", "mstx_info", "start_index"],
    }
    assert msmemscope.get_analyzer_config("inefficient") == {
        "config_class": "InefficientConfig",
        "parameters": ["input_path", "mem_size", "inefficient_type", "idle_threshold"],
    }

    def positional(function: Any) -> dict[str, Any]:
        return {
            name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        }

    empty = inspect.Parameter.empty
    assert positional(msmemscope.check_leaks) == {
        "input_path": empty,
        "mstx_info": empty,
        "start_index": empty,
    }
    assert positional(msmemscope.check_inefficient) == {
        "input_path": empty,
        "mem_size": 0,
        "inefficient_type": None,
        "idle_threshold": 3000,
    }


def test_an_unknown_analyzer_is_a_value_error() -> None:
    says = r"Unknown analyzer type: gaps. Available types are \['leaks', 'inefficient'\]"
    with pytest.raises(ValueError, match=says):
        msmemscope.analyze("gaps")
    with pytest.raises(ValueError, match=says):
        msmemscope.get_analyzer_config("gaps")


# -- leaks ----------------------------------------------------------------------------------------


def test_leaks_between_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rounds().csv(tmp_path / "dump.csv")
    results = msmemscope.check_leaks(str(path), "round", 0)
    assert len(results) == 1
    result = results[0]
    assert (result.device, result.start_index, result.at_end) == ("0", 0, False)
    assert [(leak.event_type, leak.addr, leak.size, leak.index) for leak in result.leaks] == [
        ("HAL", 0x1000, 1 << 20, 3),
        ("PTA", 0x2000, 512, 4),
        ("HAL", 0x4000, 1 << 19, 6),
    ]
    assert (result.bytes, result.blocks) == ((1 << 20) + 512 + (1 << 19), 3)
    assert capsys.readouterr().out == (
        "INFO: Starting to analyze data for device 0...\n"
        "\n"
        "Leak Analysis Results for the Custom Range:\n"
        "====== ERROR: Detected memory leaks on device 0 ======\n"
        "Direct Hal memory leak of 1.0 Mb(s) at 0x0000000000001000 in Index 3.\n"
        "Direct Pta memory leak of 0.00048828125 Mb(s) at 0x0000000000002000 in Index 4.\n"
        "Direct Hal memory leak of 0.5 Mb(s) at 0x0000000000004000 in Index 6.\n"
    )


def test_leaks_in_a_db_are_those_of_the_csv(tmp_path: Path) -> None:
    from_csv = msmemscope.check_leaks(str(rounds().csv(tmp_path / "a.csv")), "round", 0)
    from_db = msmemscope.check_leaks(str(rounds().db(tmp_path / "a.db")), "round", 0)
    assert from_db == from_csv


def test_no_leaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = Dump()
    dump.layer = "HAL"
    dump.mark("round").malloc(0x1000, 8).mark("round").free(0x1000, 8).mark("round")
    results = msmemscope.check_leaks(str(dump.csv(tmp_path / "dump.csv")), "round", 0)
    assert [result.leaks for result in results] == [[]]
    assert "No hal memory leaks detected on device 0.\n" in capsys.readouterr().out


def test_of_several_processes_each_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = Dump()
    dump.layer = "HAL"
    for dump.pid in ("7", "8"):
        dump.mark("round").malloc(0x1000, 8).mark("round").mark("round")
    # A row that tells no device is of none.
    dump.device = "N/A"
    dump.mark("round")
    results = msmemscope.check_leaks(str(dump.csv(tmp_path / "dump.csv")), "round", 0)
    assert [(result.device, result.pid, result.blocks) for result in results] == [
        ("0", 7, 1),
        ("0", 8, 1),
    ]
    out = capsys.readouterr().out
    assert "INFO: Starting to analyze data for device 0 of process 7...\n" in out
    assert "====== ERROR: Detected memory leaks on device 0 of process 8 ======\n" in out
    assert "device npu" not in out


def test_every_mark_may_begin_a_round(tmp_path: Path) -> None:
    path = rounds().csv(tmp_path / "dump.csv")
    results = msmemscope.check_leaks(str(path), "round", 0, all_marks=True)
    # From C to D 4 is freed and nothing allocated; after D there is nothing.
    assert [[leak.addr for leak in result.leaks] for result in results] == [
        [0x1000, 0x2000, 0x4000],
        [0x5000],
        [],
        [],
    ]
    assert [result.at_end for result in results] == [False, False, True, True]


def test_too_few_marks_and_an_index_out_of_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = Dump().mark("round").malloc(0x1000, 8).mark("round").csv(tmp_path / "few.csv")
    assert msmemscope.check_leaks(str(few), "round", 0) == []
    assert "ERROR: Device 0 has fewer than 3 data points" in capsys.readouterr().out
    path = rounds().csv(tmp_path / "dump.csv")
    assert msmemscope.check_leaks(str(path), "round", 2) == []
    assert "INFO: start_index 2 is out of range" in capsys.readouterr().out


def test_devices_are_told_apart(tmp_path: Path) -> None:
    dump = Dump()
    dump.layer = "HAL"
    for _ in range(3):
        for dump.device in ("0", "1"):
            dump.mark("round")
            if len(dump.rows) == 2:
                dump.malloc(0x1000, 8)  # on device 1, after its A
    results = msmemscope.check_leaks(str(dump.csv(tmp_path / "dump.csv")), "round", 0)
    assert [(result.device, result.blocks) for result in results] == [("0", 0), ("1", 1)]


def test_analyze_by_name_and_by_class(tmp_path: Path) -> None:
    path = str(rounds().csv(tmp_path / "dump.csv"))
    results = msmemscope.check_leaks(path, "round", 1)
    assert [leak.addr for leak in results[0].leaks] == [0x5000]
    by_name = msmemscope.analyze("leaks", input_path=path, mstx_info="round", start_index=1)
    assert by_name == results
    config = LeaksConfig(input_path=path, mstx_info="round", start_index=1)
    assert LeaksAnalyzer().analyze(config) == results


# -- inefficient ----------------------------------------------------------------------------------


def attrs(path: Path) -> dict[int, str]:
    """The Attr of each MALLOC row, by address."""
    if path.suffix == ".db":
        db = sqlite3.connect(path)
        rows = db.execute('SELECT "Ptr", "Attr" FROM memscope_dump WHERE "Event" = \'MALLOC\'')
        found = {int(ptr, 16): attr for ptr, attr in rows}
        db.close()
        return found
    found = {}
    for line in path.read_text().splitlines():
        cells = line.split(",", 9)
        if cells[1] == "MALLOC":
            found[int(cells[8], 16)] = cells[9]
    return found


def test_a_failure_leaves_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "memscope_dump_1.csv"
    path.write_text("neither,this,nor,that\n")
    with pytest.raises(ValueError, match="neither a trace"):
        msmemscope.check_inefficient(str(path))
    assert not (tmp_path / "inefficient").exists()


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_inefficient_blocks_are_marked_in_a_copy(tmp_path: Path, kind: str) -> None:
    path = getattr(early(), kind)(tmp_path / f"memscope_dump_1.{kind}")
    before = path.read_bytes()
    result = msmemscope.check_inefficient(str(path))
    assert path.read_bytes() == before
    output = tmp_path / "inefficient" / path.name
    assert Path(result.output_path) == output
    assert (result.blocks, result.accesses, result.found, result.bytes) == (4, 2, 2, 4112)
    assert result.by_type == {
        "early_allocation": 1,
        "late_deallocation": 1,
        "temporary_idleness": 0,
    }
    assert [(block.addr, block.size, block.types) for block in result.largest] == [
        (0x1000, 4096, ("early_allocation",)),
        (0x3000, 16, ("late_deallocation",)),
    ]
    marked = attrs(output)
    assert [addr for addr, attr in marked.items() if "inefficient_type" in attr] == [
        0x1000,
        0x3000,
    ]
    quote = '"' if kind == "db" else ""
    pair = f"{quote}inefficient_type{quote}:{quote}late_deallocation{quote}}}"
    assert pair in marked[0x3000]
    # A second run, over its own result, changes nothing.
    again = msmemscope.check_inefficient(str(output), output_path=str(tmp_path / f"2.{kind}"))
    assert again.found == 2
    assert attrs(tmp_path / f"2.{kind}") == marked


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_the_input_is_changed_when_asked(tmp_path: Path, kind: str) -> None:
    path = getattr(early(), kind)(tmp_path / f"memscope_dump_1.{kind}")
    result = msmemscope.check_inefficient(str(path), in_place=True)
    assert result.output_path == str(path)
    assert "early_allocation" in attrs(path)[0x1000]
    assert sorted(os.listdir(tmp_path)) == [path.name]
    first = path.read_bytes()
    msmemscope.check_inefficient(str(path), in_place=True)
    assert path.read_bytes() == first


@pytest.mark.parametrize("way", ["itself", "dots", "link", "hard link", "default"])
def test_the_input_is_not_changed_unasked(tmp_path: Path, way: str) -> None:
    path = early().csv(tmp_path / "memscope_dump_1.csv")
    before = path.read_bytes()
    other = tmp_path / "other.csv"
    output: Optional[str] = str(other)
    if way == "itself":
        output = str(path)
    elif way == "dots":
        output = f"{tmp_path}/../{tmp_path.name}/{path.name}"
    elif way == "link":
        other.symlink_to(path)
    elif way == "hard link":
        other.hardlink_to(path)
    else:
        output = None
        (tmp_path / "inefficient").symlink_to(".")
    with pytest.raises(ValueError, match="is the input itself"):
        msmemscope.check_inefficient(str(path), output_path=output)
    assert path.read_bytes() == before


def test_results_of_another_run_are_kept(tmp_path: Path) -> None:
    path = early().csv(tmp_path / "memscope_dump_1.csv")
    msmemscope.check_inefficient(str(path), in_place=True, inefficient_type="early_allocation")
    assert "late_deallocation" not in path.read_text()
    msmemscope.check_inefficient(str(path), in_place=True, inefficient_type=["late_deallocation"])
    assert "early_allocation" in attrs(path)[0x1000]
    assert "late_deallocation" in attrs(path)[0x3000]


def test_small_blocks_and_other_types_are_left_out(tmp_path: Path) -> None:
    path = str(early().csv(tmp_path / "memscope_dump_1.csv"))
    assert msmemscope.check_inefficient(path, mem_size=17).found == 1
    assert msmemscope.check_inefficient(path, 0, "temporary_idleness").found == 0
    assert msmemscope.check_inefficient(path, 0, ["early_allocation"]).found == 1


def test_the_threshold_of_idleness(tmp_path: Path) -> None:
    dump = Dump().malloc(0x1000, 8).access(0x1000)
    for _ in range(4):
        dump.op("other")
    path = str(dump.access(0x1000).csv(tmp_path / "memscope_dump_1.csv"))
    # The uses are 5 calls apart.
    assert msmemscope.check_inefficient(path, idle_threshold=5).found == 0
    assert msmemscope.check_inefficient(path, idle_threshold=4).found == 1


def test_what_is_said_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = early().csv(tmp_path / "memscope_dump_1.csv")
    config = InefficientConfig(input_path=str(path), output_path=str(tmp_path / "out.csv"))
    InefficientAnalyzer().analyze(config)
    assert capsys.readouterr().out == (
        f"INFO: Connected to {path}\n"
        f"INFO: {path} read successfully\n"
        f"INFO: Connecting to {tmp_path}/out.csv to write results\n"
        f"INFO: All results have been successfully written to {tmp_path}/out.csv\n"
    )


# -- what is wrong --------------------------------------------------------------------------------


def test_what_an_input_must_be(tmp_path: Path) -> None:
    path = rounds().csv(tmp_path / "dump.csv")
    with pytest.raises(FileNotFoundError):
        msmemscope.check_leaks(str(tmp_path / "missing.csv"), "round", 0)
    with pytest.raises(FileNotFoundError):
        msmemscope.check_leaks(str(tmp_path), "round", 0)
    with pytest.raises(ValueError, match="longer than 4096"):
        msmemscope.check_leaks("x" * 5000 + ".csv", "round", 0)
    with pytest.raises(ValueError, match=r"must end in .csv or .db"):
        msmemscope.check_leaks(str(path.rename(tmp_path / "dump.txt")), "round", 0)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(ValueError, match="empty"):
        msmemscope.check_leaks(str(empty), "round", 0)
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"SQLite format 3\0" + b"\xff" * 2000)
    with pytest.raises(ValueError):
        msmemscope.check_inefficient(str(noise))


def test_what_the_arguments_of_check_leaks_must_be(tmp_path: Path) -> None:
    path = str(rounds().csv(tmp_path / "dump.csv"))
    with pytest.raises(TypeError, match="mstx_info"):
        msmemscope.check_leaks(path, 3, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mstx_info"):
        msmemscope.check_leaks(path, "  ", 0)
    for index in (-1, "0", 1.0):
        with pytest.raises(ValueError, match="start_index"):
            msmemscope.check_leaks(path, "round", index)  # type: ignore[arg-type]
    assert msmemscope.check_leaks(path, "round", True)  # a bool is an int


def test_what_the_arguments_of_check_inefficient_must_be(tmp_path: Path) -> None:
    path = str(early().csv(tmp_path / "memscope_dump_1.csv"))
    for size in (-1, "0", 1.5):
        with pytest.raises(ValueError, match="mem_size"):
            msmemscope.check_inefficient(path, mem_size=size)  # type: ignore[arg-type]
    for types in ("idle", [], ["early_allocation", "idle"], 3):
        with pytest.raises(ValueError, match="inefficient_type"):
            msmemscope.check_inefficient(path, inefficient_type=types)  # type: ignore[arg-type]
    for threshold in (0, -3, "3000"):
        with pytest.raises(ValueError, match="idle_threshold"):
            msmemscope.check_inefficient(path, idle_threshold=threshold)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="in_place and output_path"):
        msmemscope.check_inefficient(path, in_place=True, output_path="x.csv")
    with pytest.raises(ValueError, match="output_path is empty"):
        msmemscope.check_inefficient(path, output_path="")
    other = tmp_path / "model.pt"
    other.write_text("mine")
    with pytest.raises(ValueError, match=r"output_path must end in \.csv"):
        msmemscope.check_inefficient(path, output_path=str(other))
    assert other.read_text() == "mine"


def test_an_analyzer_wants_its_own_config(tmp_path: Path) -> None:
    path = str(rounds().csv(tmp_path / "dump.csv"))
    for analyzer, name in ((LeaksAnalyzer(), "Leaks"), (InefficientAnalyzer(), "Inefficient")):
        for config in (None, path, BaseConfig(path)):
            with pytest.raises(TypeError, match=f"config must be of {name}Config"):
                analyzer.analyze(config)  # type: ignore[attr-defined]


def test_damaged_rows_are_said_and_the_good_ones_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rounds().csv(tmp_path / "dump.csv")
    lines = path.read_text().splitlines()
    lines.insert(5, "99,MALLOC,HAL,N/A,not a time,7,7,0,0x9,{size:8},,")
    path.write_text("\n".join(lines) + "\n")
    results = msmemscope.check_leaks(str(path), "round", 0)
    assert [leak.index for leak in results[0].leaks] == [3, 4, 6]
    assert "WARN: " in capsys.readouterr().out
