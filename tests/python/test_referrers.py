"""The walk from objects up to what keeps them, on plain Python objects."""

from __future__ import annotations

import gc
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
from msmemscope._referrers import Found, LiveLocals, Walk


class Thing:
    """Stands for a tensor: tracked by the collector, referred to by identity."""

    def __init__(self) -> None:
        self.me: list[int] = []


class Owner:
    def __init__(self) -> None:
        self.history: Any = []


class Slotted:
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: list[Any] = []


module_list: list[Any] = []
module_dict: dict[str, Any] = {}
module_deque: deque[Any] = deque()
module_owner = Owner()
module_slotted = Slotted()
module_value: Any = None


class Registry:
    seen: list[Any] = []


@pytest.fixture(autouse=True)
def _empty() -> None:
    global module_value
    module_list.clear()
    module_dict.clear()
    module_deque.clear()
    module_owner.history = []
    module_slotted.kept = []
    Registry.seen = []
    module_value = None


def walk(things: list[Any]) -> Found | None:
    samples = [[thing] for thing in things]
    del thing_list(things)[:]
    return Walk(samples, set(), LiveLocals(), time.monotonic() + 5).run()


def thing_list(things: list[Any]) -> list[Any]:
    return things


def path(found: Found | None) -> list[tuple[str, str]]:
    assert found is not None
    return [(step.kind, step.name) for step in found.steps]


def fill(put: Callable[[int, Thing], object], count: int = 5) -> list[Any]:
    things = []
    for number in range(count):
        thing = Thing()
        put(number, thing)
        things.append(thing)
    return things


def test_a_module_level_list() -> None:
    found = walk(fill(lambda _, thing: module_list.append(thing)))
    assert found is not None
    assert (found.root, found.where) == ("module", __name__)
    assert path(found) == [("global", "module_list"), ("item", "*")]
    assert found.samples == 5


def test_a_list_in_a_dict() -> None:
    module_dict["losses"] = []
    found = walk(fill(lambda _, thing: module_dict["losses"].append(thing)))
    assert path(found) == [("global", "module_dict"), ("item", "losses"), ("item", "*")]


def test_dicts_in_a_list() -> None:
    found = walk(fill(lambda n, thing: module_list.append({"step": n, "loss": thing})))
    assert path(found) == [("global", "module_list"), ("item", "*"), ("item", "loss")]


def test_a_dict_by_step() -> None:
    found = walk(fill(lambda n, thing: module_dict.__setitem__(f"step {n}", thing)))
    assert path(found)[0] == ("global", "module_dict")
    assert path(found)[1][0] == "item"


def test_a_default_dict_in_a_deque() -> None:
    def put(_: int, thing: Thing) -> None:
        entry: defaultdict[str, list[Any]] = defaultdict(list)
        entry["x"].append(thing)
        module_deque.append(entry)

    found = walk(fill(put))
    assert path(found)[:2] == [("global", "module_deque"), ("item", "*")]


def test_an_attribute_of_a_global_object() -> None:
    found = walk(fill(lambda _, thing: module_owner.history.append(thing)))
    assert path(found) == [("global", "module_owner"), ("attr", "history"), ("item", "*")]


def test_an_attribute_whose_dict_was_made() -> None:
    assert vars(module_owner)  # makes the __dict__ where attributes lie inline
    found = walk(fill(lambda _, thing: module_owner.history.append(thing)))
    assert path(found) == [("global", "module_owner"), ("attr", "history"), ("item", "*")]


def test_a_slot() -> None:
    found = walk(fill(lambda _, thing: module_slotted.kept.append(thing)))
    assert path(found) == [("global", "module_slotted"), ("attr", "kept"), ("item", "*")]


def test_a_class_attribute() -> None:
    found = walk(fill(lambda _, thing: Registry.seen.append(thing)))
    assert found is not None
    assert (found.root, found.where) == ("class", f"{__name__}.Registry")
    assert path(found) == [("attr", "seen"), ("item", "*")]


def _closure() -> Callable[[Any], None]:
    captured: list[Any] = []

    def hook(value: Any) -> None:
        captured.append(value)

    return hook


def test_a_closure_cell() -> None:
    hook = _closure()
    module_dict["hook"] = hook
    found = walk(fill(lambda _, thing: hook(thing)))
    assert found is not None
    assert (found.root, found.where) == ("closure", "_closure.<locals>.hook")
    assert path(found) == [("cell", "captured"), ("item", "*")]


def _with_default(value: Any, kept: list[Any] = []) -> None:  # noqa: B006 - that is the problem
    kept.append(value)


def test_a_mutable_default_argument() -> None:
    found = walk(fill(lambda _, thing: _with_default(thing)))
    assert found is not None
    assert found.where == "_with_default"
    assert path(found) == [("local", "kept"), ("item", "*")]


def test_a_local_of_a_live_frame() -> None:
    losses: list[Any] = []
    found = walk(fill(lambda _, thing: losses.append(thing)))
    assert found is not None
    # The lambda closes over it, too: cell or local, the name is the same.
    assert found.root in ("frame", "closure")
    assert path(found)[0][1] == "losses"


def test_a_local_that_nothing_closes_over() -> None:
    losses = []
    for _ in range(5):
        losses.append(Thing())
    found = walk(list(losses))
    assert found is not None
    assert found.root == "frame"
    assert found.where.endswith("test_a_local_that_nothing_closes_over")
    assert path(found) == [("local", "losses"), ("item", "*")]


def test_the_newest_one_s_variable_is_no_answer() -> None:
    global module_value
    things = fill(lambda _, thing: module_list.append(thing))
    module_value = things[-1]
    assert path(walk(things))[0] == ("global", "module_list")


def test_one_sample_held_directly() -> None:
    global module_value
    module_value = Thing()
    assert path(walk([module_value])) == [("global", "module_value")]


def test_what_nothing_holds_in_common_is_not_guessed() -> None:
    # Each in a frame-less cycle of its own: only unreachable garbage holds it.
    things = []
    for _ in range(5):
        thing = Thing()
        thing.me = [thing]  # type: ignore[list-item]
        things.append(thing)
    ids = [id(thing) for thing in things]
    del thing, things
    samples = [[obj] for obj in gc.get_objects() if id(obj) in ids and type(obj) is Thing]
    assert len(samples) == 5
    assert Walk(samples, set(), LiveLocals(), time.monotonic() + 5).run() is None


def _raise_with(number: int, thing: Any) -> None:
    try:
        _fail(thing)
    except RuntimeError as error:
        module_list.append(error)


def _fail(kept: Any) -> None:
    raise RuntimeError("bad sample")


def test_exceptions_whose_tracebacks_keep_the_locals() -> None:
    found = walk(fill(_raise_with))
    assert found is not None
    assert found.root == "module"
    assert path(found)[:2] == [("global", "module_list"), ("item", "*")]
    # error -> traceback -> frame -> thing: of the frames on the way any will do.
    assert path(found)[-1][0] == "local"
    assert [step.samples for step in found.steps][:2] == [5, 1]


def test_a_list_of_closures() -> None:
    found = walk(fill(lambda _, thing: module_list.append(lambda: thing)))
    assert path(found)[:2] == [("global", "module_list"), ("item", "*")]


def test_a_local_of_a_generator_that_waits() -> None:
    def batches() -> Any:
        past = []
        while True:
            past.append(Thing())
            yield past[-1]

    module_dict["source"] = batches()
    found = walk([next(module_dict["source"]) for _ in range(5)])
    assert found is not None
    assert found.where.endswith("batches")
    assert path(found) == [("local", "past"), ("item", "*")]


def test_a_list_in_an_object_in_a_list_of_one() -> None:
    # As a logging handler that keeps its records: log.handlers[0].records[*]
    module_list.append(Owner())
    module_list[0].history = []
    found = walk(fill(lambda _, thing: module_list[0].history.append(thing)))
    assert found is not None
    steps = [(step.kind, step.name, step.samples) for step in found.steps]
    assert steps == [
        ("global", "module_list", 5),
        ("item", "*", 5),
        ("attr", "history", 5),
        ("item", "*", 1),
    ]


def test_locals_do_not_live_longer_for_having_been_looked_at() -> None:
    def worker() -> int:
        value = Thing()
        before = sys.getrefcount(value)
        LiveLocals()
        return sys.getrefcount(value) - before

    assert worker() == 0


def test_a_dict_that_locals_gave_the_user_is_left_alone() -> None:
    value = Thing()
    mine = locals()
    LiveLocals()
    assert mine["value"] is value


def test_it_ends_at_its_deadline() -> None:
    things = fill(lambda _, thing: module_list.append(thing))
    samples = [[thing] for thing in things]
    things.clear()
    started = time.monotonic()
    Walk(samples, set(), LiveLocals(), started - 1).run()
    assert time.monotonic() - started < 5
