"""The same programs with malloc and mmap recorded too: still nobody can tell the two runs apart."""

import pathlib

import pytest
from conftest import RunBoth

PROGRAMS = {
    "endings": [
        *("return", "_exit", "abort", "uncaught", "segv", "stack overflow"),
        *("stack overflow, handled", "exit by a thread", "exit while others allocate"),
        *("main thread first", "allocate at exit", "late", "exit in an exit function"),
    ],
    "jumps": [
        *("exceptions", "longjmps", "signals", "signals on another stack", "coroutines"),
        *("an allocator that allocates", "threads that end inside"),
    ],
    "children": ["fork", "fork under load", "vfork", "spawn", "exec with nothing", "helpers"],
    "loads": [""],
}
# In `make test`: one of each subject, what is most likely to go wrong.
SHORT = {"exit while others allocate", "uncaught", "signals", "longjmps", "fork under load", ""}
ALL = [(program, how) for program, ways in PROGRAMS.items() for how in ways]


@pytest.mark.parametrize(("program", "how"), ALL, ids=lambda word: word or "all")
def test_with_the_host_source(
    program: str, how: str, run_both: RunBoth, build: pathlib.Path, full: bool
) -> None:
    if not full and how not in SHORT:
        pytest.skip("in full only")
    hostile = build / "hostile"
    words = [hostile] if program == "loads" else [how, *(["5"] if program == "children" else [])]
    pair = run_both(hostile / program, *words, options=["--device=auto,host"])
    counts = pair.counts()
    assert counts
    assert all(events["damage"] == 0 for events in counts)
    if "while" not in how and "load" not in how:  # faster than a trace is written
        assert all(events["dropped"] == 0 for events in counts)
