"""The loader's answers are the program's own, and every library is watched."""

import pathlib

from conftest import RunBoth


def test_libraries_loaded_in_every_way(run_both: RunBoth, build: pathlib.Path) -> None:
    pair = run_both(build / "hostile" / "loads", build / "hostile")
    lines = pair.traced.stdout.splitlines()
    assert "by a name that only another's RUNPATH knows: not found" in lines
    assert "by that other: 1" in lines
    assert "interposers: 2" in lines
    assert "in a namespace of its own: yes" in lines
    # One of each of the four ways of dlopen() (RTLD_DEEPBIND is one), one by RUNPATH, one by the
    # program itself, which keeps its block.
    assert pair.counts() == [{"allocs": 6, "frees": 5, "dropped": 0, "steps": 0, "damage": 0}]
