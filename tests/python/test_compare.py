"""`msmemscope compare` and `msmemscope --compare`, on dumps and on runs."""

from __future__ import annotations

import csv
import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from dump_rows import Dump

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads((ROOT / "docs/compare.schema.json").read_text())
REAL = ROOT.parent / "shared/data/memscope"


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def compared(command: str, *arguments: object) -> dict[str, Any]:
    done = run(command, "compare", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(parsed)
    for name in ("sites", "owners", "operators"):  # each adds up to the total
        rows = [*parsed[name]["rows"], parsed[name]["rest"]]
        for what in ("bytes", "blocks"):
            assert (
                sum(row["difference"][what] for row in rows)
                == (parsed["total"]["difference"][what])
            )
    return parsed


def base() -> Dump:
    """mm keeps 512 bytes until add is over; relu keeps 64."""
    dump = Dump().op("mm", ("malloc", 0xA000, 512)).op("add").free(0xA000, 512)
    return dump.op("relu", ("malloc", 0xB000, 64))


def new() -> Dump:
    """mm's tensor is 1024, randn keeps 4096, and relu frees what it allocates."""
    dump = Dump().op("mm", ("malloc", 0xA000, 1024)).op("randn", ("malloc", 0xC000, 4096))
    dump.op("add").free(0xA000, 1024)
    return dump.op("relu", ("malloc", 0xB000, 64), ("free", 0xB000, 64))


# -- the original's comparison --------------------------------------------------------------------

HEADER = [
    ["", "", "", "Base", "Compare"],
    [
        "Event",
        "Name",
        "Device Id",
        "Allocated Memory(byte)",
        "Allocated Memory(byte)",
        "Diff Memory(byte)",
    ],
]


def dumps_compared(
    command: str, tmp_path: Path, one: Path, other: Path, *options: str
) -> list[list[str]]:
    done = run(command, "--compare", "--input-path", f"{one},{other}", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.splitlines()[-1])
    assert (tmp_path / path).parent == tmp_path / "memscopeDumpResults/compare"
    assert path.name.startswith("memory_compare_")
    assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o600
    with open(tmp_path / path, newline="") as file:
        rows = list(csv.reader(file))
    (tmp_path / path).unlink()
    assert rows[:2] == HEADER
    return rows[2:]


def test_true_deltas_of_each_operator(command: str, tmp_path: Path) -> None:
    one, other = base().csv(tmp_path / "a.csv"), new().csv(tmp_path / "b.csv")
    assert dumps_compared(command, tmp_path, one, other) == [
        ["OP_LAUNCH", "mm", "0", "512", "1024", "512"],
        ["OP_LAUNCH", "randn", "0", "N/A", "4096", "4096"],
        ["OP_LAUNCH", "add", "0", "0", "0", "0"],
        ["OP_LAUNCH", "relu", "0", "64", "0", "-64"],
    ]


def test_as_the_original_the_size_of_the_next_row(command: str, tmp_path: Path) -> None:
    # base: after mm and add comes the FREE of 512, after relu nothing. new: after mm comes randn's
    # MALLOC of 4096, after randn and add the FREE of 1024, after relu nothing.
    one, other = base().csv(tmp_path / "a.csv"), new().csv(tmp_path / "b.csv")
    assert dumps_compared(command, tmp_path, one, other, "--compat=26.0") == [
        ["OP_LAUNCH", "mm", "0", "512", "4096", "3584"],
        ["OP_LAUNCH", "randn", "0", "N/A", "1024", "1024"],
        ["OP_LAUNCH", "add", "0", "512", "1024", "512"],
        ["OP_LAUNCH", "relu", "0", "0", "0", "0"],
    ]


def test_a_db_is_compared_as_the_csv(command: str, tmp_path: Path) -> None:
    one, other = base().db(tmp_path / "a.db"), new().csv(tmp_path / "b.csv")
    rows = dumps_compared(command, tmp_path, one, other)
    assert [row[1] for row in rows] == ["mm", "randn", "add", "relu"]
    assert [row[5] for row in rows] == ["512", "4096", "0", "-64"]


def test_kernels(command: str, tmp_path: Path) -> None:
    one = Dump().malloc(1, 8).kernel("MatMul").kernel("Add").csv(tmp_path / "a.csv")
    other = Dump().malloc(1, 24).kernel("MatMul").csv(tmp_path / "b.csv")
    assert dumps_compared(command, tmp_path, one, other, "--level=kernel") == [
        ["KERNEL_LAUNCH", "MatMul", "0", "8", "24", "16"],
        ["KERNEL_LAUNCH", "Add", "0", "0", "N/A", "0"],
    ]


def test_without_operators_it_fails_in_one_line(command: str, tmp_path: Path) -> None:
    one = Dump().malloc(1, 8).csv(tmp_path / "a.csv")
    done = run(command, "--compare", "--input-path", f"{one},{one}", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Memory comparison failed!" in done.stderr
    assert not (tmp_path / "memscopeDumpResults").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason="the original's example files are not here")
def test_a_word_too_many_is_wrong_use(command: str, tmp_path: Path) -> None:
    one = base().csv(tmp_path / "a.csv")
    done = run(command, "--compare", "--input-path", f"{one},{one}", "extra", cwd=tmp_path)
    assert done.returncode == 2
    assert '--compare runs no program, but "extra" is given' in done.stderr
    assert not (tmp_path / "memscopeDumpResults").exists()


def test_an_empty_output_is_the_default(command: str, tmp_path: Path) -> None:
    one = base().csv(tmp_path / "a.csv")
    assert dumps_compared(command, tmp_path, one, one, "-o", "")


def test_the_original_s_example(command: str, tmp_path: Path) -> None:
    """44 rows, 7 of them not 0, as msMemScope 26.0 has them. The program keeps a tensor of
    4,000,256 bytes, copied to the device, in each of two steps: docs/compare.md says why the
    original's rows are not the copies."""
    one, other = REAL / "compare_baseline.csv", REAL / "compare_leaks.csv"
    rows = dumps_compared(command, tmp_path, one, other, "--compat=26.0")
    aten, profiler = "torch._ops.aten.", "torch._ops.profiler."
    assert len(rows) == 44
    assert [row[1:] for row in rows if row[5] != "0"] == [
        [aten + "_foreach_add_.List", "0", "1536", "4000256", "3998720"],
        [profiler + "_record_function_exit._RecordFunction", "0", "1536", "4000256", "3998720"],
        [aten + "randn.default", "0", "N/A", "4000256", "4000256"],
        [aten + "_to_copy.default", "0", "N/A", "1536", "1536"],
        [aten + "_foreach_add_.List", "0", "0", "4000256", "4000256"],
        [profiler + "_record_function_exit._RecordFunction", "0", "0", "4000256", "4000256"],
        [aten + "randn.default", "0", "N/A", "4000256", "4000256"],
    ]
    true = dumps_compared(command, tmp_path, one, other)
    assert len(true) == 44
    assert [row[1:] for row in true if row[5] != "0"] == [
        [aten + "_to_copy.default", "0", "N/A", "4000256", "4000256"],
        [aten + "_to_copy.default", "0", "N/A", "4000256", "4000256"],
    ]
    # A step's operators that keep something: addmm 1536, mse_loss 512, ones_like 512,
    # mse_loss_backward 1536, mm 512, sum 512; two steps.
    assert sum(int(row[3]) for row in true if row[3] != "N/A") == 2 * 5120
    # What NEW holds more are the two tensors.
    document = compared(command, one, other)
    assert document["total"]["difference"]["bytes"] == 2 * 4000256
    assert document["operators"]["rows"][0]["operator"] == aten + "_to_copy.default"
    assert document["operators"]["rows"][0]["difference"] == {"bytes": 2 * 4000256, "blocks": 2}


@pytest.mark.skipif(not REAL.is_dir(), reason="the original's example files are not here")
def test_a_file_of_two_processes_and_two_devices(command: str, tmp_path: Path) -> None:
    """The original's smoke test expects 12 lines for its pair of such files, 6 kernels on each of
    two devices; one of the pair is here, against itself."""
    path = REAL / "old_format_step1.csv"
    rows = dumps_compared(command, tmp_path, path, path, "--level=kernel", "--compat=26.0")
    assert [row[:3] for row in rows] == [
        ["KERNEL_LAUNCH", "N/A", device] for device in ("0", "1") for _ in range(6)
    ]
    assert {row[5] for row in rows} == {"0"}


# -- compare --------------------------------------------------------------------------------------


def test_by_operator_and_owner(command: str, tmp_path: Path) -> None:
    one = base().csv(tmp_path / "a.csv")
    dump = new()
    dump.malloc(0xD000, 100, owner="PTA@model@weight")
    other = dump.csv(tmp_path / "b.csv")
    document = compared(command, one, other)
    # base holds relu's 64; new holds randn's 4096 and the weight's 100.
    assert document["total"]["base"] == {"bytes": 64, "blocks": 1}
    assert document["total"]["new"] == {"bytes": 4196, "blocks": 2}
    operators = {row["operator"]: row["difference"] for row in document["operators"]["rows"]}
    assert operators == {
        "randn": {"bytes": 4096, "blocks": 1},
        None: {"bytes": 100, "blocks": 1},
        "relu": {"bytes": -64, "blocks": -1},
    }
    owners = {row["owner"]: row["difference"]["bytes"] for row in document["owners"]["rows"]}
    assert owners == {"PTA@model@weight": 100, None: 4032}
    done = run(command, "compare", one, other)
    assert "NEW holds 4.04 KiB more than BASE at its end; 99 % of it is allocated in randn." in (
        done.stdout.replace("\n", " ")
    )
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout


def test_top_keeps_the_sum(command: str, tmp_path: Path) -> None:
    one, other = base().csv(tmp_path / "a.csv"), new().csv(tmp_path / "b.csv")
    document = compared(command, one, other, "--top", 1)
    assert [row["operator"] for row in document["operators"]["rows"]] == ["randn"]
    assert document["operators"]["rest"]["rows"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.csv"], "two inputs are needed"),
        (["a.csv", "missing.csv"], "missing.csv"),
        (["a.csv@step=0", "a.csv"], "step=0"),
        (["a.csv@step=3", "a.csv"], "has no steps"),
        (["a.csv", "a.csv", "--steps", "5:2"], "5:2"),
        (["a.csv", "a.csv", "--top", "0"], '"0"'),
        (["a.csv", "a.csv", "--layer", "cloud"], "cloud"),
        (["a.csv", "a.csv", "--device", "tpu"], "tpu"),
        (["a.csv@rank=1", "a.csv"], "no process of rank 1"),
        (["a.csv", "a.csv", "--colour"], "--colour"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    command: str, tmp_path: Path, arguments: list[str], says: str
) -> None:
    base().csv(tmp_path / "a.csv")
    done = run(command, "compare", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_the_schema_is_strict_and_shares_analyze_s_definitions() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    analyze = json.loads((ROOT / "docs/analyze.schema.json").read_text())["$defs"]
    for name in ("count", "layer", "input", "process", "frame"):
        assert SCHEMA["$defs"][name] == analyze[name], name


@pytest.mark.torch
def test_two_steps_of_a_run(command: str, run_python: Any) -> None:
    child = run_python(
        """
        import torch, msmemscope
        store = []
        msmemscope.config(report_to="none")
        msmemscope.start()
        for step in range(6):
            x = torch.empty(1 << 20, dtype=torch.uint8)
            store.append(x)
            y = torch.empty(1 << 18, dtype=torch.uint8)
            msmemscope.step()
        msmemscope.stop()
        """
    ).ok()
    run_directory = child.directory / "memscopeDumpResults"
    document = compared(command, f"{run_directory}@step=2", f"{run_directory}@step=5")
    # Steps 3, 4 and 5 each add one x of 1 MiB; y is replaced.
    assert document["total"]["difference"] == {"bytes": 3 << 20, "blocks": 3}
    row = document["sites"]["rows"][0]
    assert row["site"]["text"] == "x = torch.empty(1 << 20, dtype=torch.uint8)"
    assert row["base"] == {"bytes": 2 << 20, "blocks": 2}
    assert row["new"] == {"bytes": 5 << 20, "blocks": 5}
    done = run(command, "compare", f"{run_directory}@step=2", f"{run_directory}@step=5")
    assert (
        "NEW holds 3.00 MiB more at the end of step 5 than BASE at the end of step 2; 100 % of it "
        "is allocated at "
    ) in done.stdout.replace("\n", " ")


@pytest.mark.torch
def test_the_same_program_in_another_directory(
    command: str, run_python: Any, tmp_path: Path
) -> None:
    program = """
        import sys, torch, msmemscope
        msmemscope.config(report_to="none", output_path=sys.argv[1])
        msmemscope.start()
        kept = [torch.empty(1 << 20, dtype=torch.uint8) for _ in range(int(sys.argv[2]))]
        msmemscope.stop()
    """
    first = run_python(program, str(tmp_path / "one"), "1").ok()
    script = first.directory / "program.py"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = script.rename(elsewhere / "program.py")
    done = run_python(
        f"""
        import runpy, sys
        sys.argv = [{str(moved)!r}, {str(tmp_path / "two")!r}, "3"]
        runpy.run_path({str(moved)!r}, run_name="__main__")
        """
    )
    done.ok()
    document = compared(command, tmp_path / "one", tmp_path / "two")
    row = document["sites"]["rows"][0]
    assert row["base"] == {"bytes": 1 << 20, "blocks": 1}
    assert row["new"] == {"bytes": 3 << 20, "blocks": 3}
