"""Unusual ways into the allocator and out of it: what is recorded is what happened."""

import pathlib

import pytest
from conftest import RunBoth

WAYS = [
    "exceptions",
    "longjmps",
    "coroutines",
    "an allocator that allocates",
    "threads that end inside",
]


@pytest.mark.parametrize("way", WAYS)
def test_what_happened_is_recorded(way: str, run_both: RunBoth, build: pathlib.Path) -> None:
    pair = run_both(build / "hostile" / "jumps", way)
    said = pair.traced.stdout.split()
    assert len(said) == 4, "allocs N frees N"
    (events,) = pair.counts()
    assert events == {
        "allocs": int(said[1]),
        "frees": int(said[3]),
        "dropped": 0,
        "steps": 0,
        "damage": 0,
    }


@pytest.mark.parametrize("way", ["signals", "signals on another stack"])
def test_a_signal_handler_that_allocates(way: str, run_both: RunBoth, build: pathlib.Path) -> None:
    pair = run_both(build / "hostile" / "jumps", way)
    (events,) = pair.counts()
    # The 500,001 of the program, and those of the handler's that came outside of the allocator.
    handled = events["allocs"] - 500_001
    assert handled > 0, "signals came, and most find the program outside of the allocator"
    assert events["frees"] == 500_001 + handled
    assert (events["dropped"], events["damage"]) == (0, 0)
