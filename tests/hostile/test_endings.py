"""Programs that end in every way there is: as without us, and with everything in the trace."""

import pathlib

import pytest
from conftest import RunBoth

# How it ends: its exit status (or the signal, negative), what the trace says of the end, and
# allocations beyond the 1,000 that all of them make.
ENDINGS = {
    "return": (0, "exit", 0),
    "exit": (3, "exit", 0),
    "_exit": (4, "killed", 0),
    "quick_exit": (5, "killed", 0),
    "abort": (-6, "killed", 0),
    "uncaught": (-6, "killed", 0),
    "terminate": (-6, "killed", 0),
    "segv": (-11, "killed", 0),
    "term": (-15, "killed", 0),
    "kill": (-9, "killed", 0),
    "stack overflow": (-11, "killed", 0),
    "stack overflow, a handler without a stack": (-11, "killed", 0),
    "stack overflow, handled": (3, "killed", 0),
    "exit by a thread": (6, "exit", 0),
    # glibc calls exit(0) in the last thread: our own must not be the one that keeps it waiting.
    "main thread first": (0, "exit", 0),
    "allocate at exit": (8, "exit", 1),
    "late": (0, "exit", 1),
    "exit in an exit function": (9, "killed", 0),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_program_ends_as_it_does_alone(how: str, run_both: RunBoth, build: pathlib.Path) -> None:
    status, ended, more = ENDINGS[how]
    pair = run_both(build / "hostile" / "endings", how)
    assert pair.traced.returncode == status
    (events,) = pair.counts()
    assert events == {"allocs": 1000 + more, "frees": 500, "dropped": 0, "steps": 0, "damage": 0}
    (process,) = pair.info()
    assert process["ended"] == ended
    assert not list(pair.output.glob("run-*/*/hot.slab"))
    # What the agent said before its first event is in the trace, too.
    assert [notice["what"] for notice in process["notices"]] == ["device memory of torch"]


def test_an_exit_while_other_threads_allocate(run_both: RunBoth, build: pathlib.Path) -> None:
    pair = run_both(build / "hostile" / "endings", "exit while others allocate")
    assert pair.traced.returncode == 7
    (events,) = pair.counts()
    assert events["damage"] == 0
    assert events["allocs"] + events["dropped"] >= 1004, "each of four threads at least once"
    (process,) = pair.info()
    assert process["ended"] == "exit"
