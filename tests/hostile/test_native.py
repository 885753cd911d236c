"""Native stacks: right while libraries take each other's place, and merged with Python's."""

import itertools
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT, outside


def stacks_of(build: pathlib.Path, output: pathlib.Path, size: int) -> list[list[str]]:
    """Of every block of that size its stack, innermost frame first, without build-ids."""
    (trace,) = [path.parent for path in output.glob("run-*/*/trace.msm")]
    done = subprocess.run(
        [str(build / "hostile" / "print_stacks"), str(trace), str(size)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        [frame.partition("@")[0] for frame in line.split(" | ")]
        for line in done.stdout.splitlines()
    ]


def test_a_library_is_never_taken_for_the_one_before_it(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    hostile = build / "hostile"
    rounds = 5000 if full else 400
    done = subprocess.run(
        [
            str(hostile / "native_storm"),
            str(build / "libmsmemscope_agent.so"),
            str(tmp_path),
            str(hostile / "libstorm_plugin.so"),
            str(rounds),
            "62",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for copy in range(4):
        stacks = stacks_of(build, tmp_path, 4000 + copy)
        assert len(stacks) == rounds // 2
        whole = [stack for stack in stacks if "missing" not in stack[-1]]
        for stack in whole:
            plugins = [frame.partition("+")[0] for frame in stack if "plugin" in frame]
            assert plugins == [f"c plugin{copy}.so"]
            assert stack[0].startswith("c libc10.so+")
            assert stack[-1].startswith("c libc.so.6+"), "to where the thread begins"
        # While the other loading thread unloads something there are no native frames.
        assert len(whole) > 0
    deepest = max(stacks_of(build, tmp_path, 64), key=len)
    assert sum("native_storm+" in frame for frame in deepest) >= 62


MERGED = """\
import sys, msmemscope
msmemscope.config(output_path=sys.argv[1], call_stack=sys.argv[2], analysis="none")
import torch
def inner(x):
    return torch.empty(123456 // 4)
def by_sort(v):
    return inner(v).numel()
class Caller:
    def __call__(self):
        return sorted([2, 1], key=by_sort)
def main():
    caller = Caller()
    caller()
msmemscope.start()
main()
msmemscope.stop()
"""


def merged(build: pathlib.Path, output: pathlib.Path, call_stack: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MERGED, str(output), call_stack],
        env={**outside(), "PYTHONPATH": str(ROOT / "python"), "MSMEMSCOPE_BUILD_DIR": str(build)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not recorded yet" not in done.stderr
    stacks = stacks_of(build, output, 123456)
    assert len(stacks) == 2
    return stacks[0]


PYTHON = ["py inner:5", "py by_sort:7", "py Caller.__call__:10", "py main:13", "py <module>:15"]


@pytest.mark.torch
def test_the_loops_of_the_interpreter_become_what_they_run(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("torch")
    stack = merged(build, tmp_path, "c:200,python")
    assert [frame for frame in stack if frame.startswith("py ")] == PYTHON
    assert not any("msmemscope" in frame for frame in stack)
    assert not any("missing" in frame for frame in stack)
    # torch below inner() and by_sort(), which one loop runs (from CPython 3.11 on); sorted() below
    # Caller.__call__; and what started the program above <module>.
    kinds = [kind for kind, _ in itertools.groupby(frame[:2] for frame in stack)]
    assert kinds[0] == "c "
    assert kinds[-1] == "c "
    assert kinds.count("py") >= 3
    at = stack.index("py inner:5")
    assert any("libtorch" in frame for frame in stack[:at])
    assert not any("libtorch" in frame for frame in stack[at:])
    if sys.version_info >= (3, 11):
        assert stack[at + 1] == "py by_sort:7"
    # sorted() calls by_sort from C.
    assert stack[stack.index("py by_sort:7") + 1].startswith("c ")
    assert stack[stack.index("py Caller.__call__:10") - 1].startswith("c ")


@pytest.mark.torch
def test_only_so_many_native_frames_are_kept_and_all_of_pythons(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("torch")
    stack = merged(build, tmp_path, "c:3,python:1")
    assert [frame[:2] for frame in stack[:3]] == ["c "] * 3
    assert stack[3:] == PYTHON


@pytest.mark.torch
def test_none_are_recorded_unless_asked_for(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    assert merged(build, tmp_path, "python:5") == PYTHON
