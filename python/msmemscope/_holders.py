"""Who holds the blocks under suspicion, and the line that put them there.

For each group of suspect blocks (the blocks of one line): the Python tensors that lie in them, the
container they have in common, the path to it from a module, class, closure or live frame, and,
where exactly one statement of the user's source can be it, the statement that stores. What has no
holder may be kept by an autograd graph, whose root is looked for (_graph), or by cycles that nobody
reaches (_cycles). All of it goes into the trace as holder records, one a block, with the cause
where one is proven.

Takes at most about two seconds, runs no user code and changes nothing; what cannot be found is left
out, never guessed.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, ModuleType
from typing import Any

from ._agent import RECORD_HOLDER, RECORD_SOURCE, Agent
from ._cycles import Link, closing, find_cycle
from ._graph import Graphs
from ._kept_at import file_of, kept_at, name_of, user_files
from ._referrers import Found, LiveLocals, Step, Walk, local_values
from ._statements import Statement
from ._stores import cause_of, decorated, is_lru
from ._tensors import tensors_in

SECONDS = 2.0
SAMPLES = 5
MAX_GROUPS = 64
MAX_RECORDS = 20_000
MAX_SOURCE = 1 << 20
_FORWARD_DEPTH = 5
_NOT_INTO = (type, ModuleType)  # they lead everywhere


@dataclass
class Group:
    """A group of suspect blocks, as `analyze --suspects` names it."""

    births: dict[int, int]  # address -> when it was made, ns since the epoch
    frames: list[tuple[str, str]] = field(default_factory=list)  # (file, function) of its stack


@dataclass
class Keeper:
    """What keeps blocks: the record's strings, and the statement."""

    top: Any  # the container; None for a cycle
    root: str
    path: list[dict[str, object]]
    text: str
    statement: Statement | None
    cause: str = ""
    graph: bool = False  # graphs that it keeps keep blocks


@dataclass
class Held:
    """A block that is kept."""

    keeper: Keeper
    address: int
    birth: int
    node: str | None  # the type of the tensor's grad_fn
    inside: bool = False  # by a graph, not by itself


def find_holders(groups: Sequence[dict[str, Any]], agent: Agent) -> int:
    """Writes the holder records of the groups; the number written."""
    parsed = [group for group in map(_group, groups[:MAX_GROUPS]) if group.births]
    search = _Search([address for group in parsed for address in group.births])
    if not search.tensors:
        return 0
    for group in parsed:
        search.look_for(group)
    return search.write(agent)


class _Search:
    """One question's walk: what was found for one group may answer the next."""

    def __init__(self, addresses: list[int]) -> None:
        self._deadline = time.monotonic() + SECONDS
        self.tensors, places = tensors_in(addresses)
        self._at: dict[int, list[int]] = {}  # address -> positions in `tensors`
        for position, place in enumerate(places):
            self._at.setdefault(place, []).append(position)
        self._live = LiveLocals()
        self._graphs: Graphs | None = None
        self._keepers: list[Keeper] = []
        self._held: list[Held] = []
        self._sources: list[str] = []  # files whose text the agent may not have
        self._hidden = False  # blocks without a Python tensor: C++ alone keeps them

    def look_for(self, group: Group) -> None:
        present = [address for address in group.births if address in self._at]
        self._hidden = self._hidden or 2 * len(present) < len(group.births)
        if not present or time.monotonic() > self._deadline:
            return
        if self._known(group, present):
            return
        samples = [
            [self.tensors[p] for p in self._at[address]] for address in _spread(present, SAMPLES)
        ]
        found = Walk(samples, {id(self.tensors)}, self._live, self._deadline).run()
        if found is not None:
            keeper = self._keeper(found, group)
            self._hold(keeper, group, _reachable(keeper.top, self._wanted(present)))
        elif not self._in_graph(group, present, samples):
            own = [self.tensors, self._graphs.tensors] if self._graphs else [self.tensors]
            cycle = find_cycle(samples, own, self._live, self._deadline)
            if cycle is not None:
                self._hold(self._cycle(cycle, group), group, present)

    def _wanted(self, present: list[int]) -> dict[int, int]:
        return {id(self.tensors[p]): address for address in present for p in self._at[address]}

    def _known(self, group: Group, present: list[int]) -> bool:
        """Whether a container that was found before holds most of them, too."""
        wanted = self._wanted(present)
        for keeper in self._keepers:
            held = [] if keeper.top is None else _reachable(keeper.top, wanted)
            if 2 * len(held) > len(present):
                self._hold(keeper, group, held)
                return True
        return False

    def _in_graph(self, group: Group, present: list[int], samples: list[list[Any]]) -> bool:
        if self._graphs is None:
            self._graphs = Graphs(self._deadline)
        roots = [self._graphs.roots_of(sample) for sample in samples]
        keepers = [[root for of_one in sample for root in of_one] for sample in roots]
        if not any(keepers):
            return False
        keeper = self._keeper_of(keepers)
        if keeper is None:
            own = {id(self._graphs.tensors), id(self._graphs.__dict__), id(self.tensors)}
            own |= {id(one) for one in roots} | {id(one) for sample in roots for one in sample}
            own |= {id(one) for one in keepers} | {id(keepers)}
            found = Walk([k for k in keepers if k], own, self._live, self._deadline).run()
            if found is None:
                return False
            keeper = self._keeper(found, group)
        keeper.graph = True
        # Of one line: what holds for the samples holds for the others, but the roots among them.
        roots_here = _reachable(keeper.top, self._wanted(present))
        self._hold(keeper, group, roots_here)
        others = set(present).difference(roots_here)
        self._hold(keeper, group, [a for a in present if a in others], inside=True)
        return True

    def _keeper_of(self, roots: list[list[Any]]) -> Keeper | None:
        """The container found before that holds a root of most of the samples."""
        for keeper in self._keepers:
            if keeper.top is None:
                continue
            held = _reachable(keeper.top, {id(root): id(root) for one in roots for root in one})
            kept = set(held)
            if 2 * sum(any(id(root) in kept for root in one) for one in roots) > len(roots):
                return keeper
        return None

    def _keeper(self, found: Found, group: Group) -> Keeper:
        top, steps = _container(found)
        name, kind = name_of(steps)
        statement = decorated(top) if is_lru(top) else kept_at(found, steps, group.frames)
        keeper = Keeper(
            top,
            found.root,
            [_step_json(step) for step in found.steps],
            _readable(found),
            statement,
            cause_of(top, name, kind == "attr", statement),
        )
        self._add(keeper, group)
        return keeper

    def _cycle(self, links: list[Link], group: Group) -> Keeper:
        files = user_files(
            [file_of(link.owner) for link in links] + [file for file, _ in group.frames]
        )
        named = {(link.kind, link.name): link for link in links}
        keeper = Keeper(
            None,
            "class",
            [_step_json(Step(kind, name, link.value)) for (kind, name), link in named.items()],
            "unreachable: "
            + ", ".join(f"{_type_name(link.owner)}.{link.name}" for link in named.values()),
            closing(links, files),
            "cycle",
        )
        self._add(keeper, group)
        return keeper

    def _add(self, keeper: Keeper, group: Group) -> None:
        self._keepers.append(keeper)
        statement = keeper.statement
        if statement and all(file != statement.file for file, _ in group.frames):
            self._sources.append(statement.file)

    def _hold(
        self, keeper: Keeper, group: Group, addresses: list[int], inside: bool = False
    ) -> None:
        for address in addresses:
            node = _grad_fn_type(self.tensors[self._at[address][0]])
            self._held.append(Held(keeper, address, group.births[address], node, inside))

    def write(self, agent: Agent) -> int:
        for file in dict.fromkeys(self._sources):
            _keep_source(file, agent)
        for held in self._held[:MAX_RECORDS]:
            keeper, statement = held.keeper, held.keeper.statement
            cause, path = keeper.cause, keeper.path
            if held.inside:
                cause = "retained_graph"
                node = held.node or ""
                path = [*path, {"kind": "ref", "name": "grad_fn", "type": node, "len": None}]
            elif held.node is not None and (keeper.graph or self._hidden):
                cause = "retained_graph"  # it keeps a graph, and what graphs keep has piled up
            strings = (
                keeper.root,
                json.dumps(path),
                statement.file if statement else "",
                statement.function if statement else "",
                keeper.text,
                cause,
            )
            lines = (statement.line, statement.end_line) if statement else (0, 0)
            agent.record(RECORD_HOLDER, (held.address, held.birth, *lines), strings)
        return len(self._held[:MAX_RECORDS])


def _grad_fn_type(tensor: Any) -> str | None:
    """The type of the node that made a tensor; None where there is none: no graph hangs on it."""
    try:
        node = tensor.grad_fn
    except Exception:  # as in _graph
        return None
    return None if node is None else type(node).__name__


def _keep_source(path: str, agent: Agent) -> None:
    """Puts a source file into the trace whose frames the agent has not seen."""
    if os.environ.get("MSMEMSCOPE_SOURCE") == "0":
        return
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_SOURCE + 1)
    except OSError:
        return
    if len(text) <= MAX_SOURCE:
        agent.record(RECORD_SOURCE, (0,), (path, text))


def _group(group: dict[str, Any]) -> Group:
    births = {
        block["addr"]: block["birth"] if isinstance(block.get("birth"), int) else 0
        for block in group.get("blocks") or []
        if isinstance(block, dict) and isinstance(block.get("addr"), int)
    }
    frames = [group.get("site"), *(group.get("stack") or [])]
    return Group(
        births,
        [
            (os.path.realpath(frame["file"]), str(frame.get("function") or ""))
            for frame in frames
            if isinstance(frame, dict) and isinstance(frame.get("file"), str)
        ],
    )


def _spread(items: list[int], count: int) -> list[int]:
    """`count` of the items, evenly spread, first and last among them."""
    if len(items) <= count:
        return items
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]


# -- the container and what is in it ---------------------------------------------------------------


def _container(found: Found) -> tuple[Any, list[Step]]:
    """The object that piles up, and the steps down to it: of the containers whose items lead to
    samples (step.name "*") the innermost that leads to all of them; else what has the tensor under
    one key; else the tensor itself."""
    steps = found.steps
    for i, step in enumerate(steps):
        if is_lru(step.value) and step.samples == found.samples:
            return step.value, steps[: i + 1]  # the dict in it is its own affair
    piles = [i for i in range(1, len(steps)) if (steps[i].kind, steps[i].name) == ("item", "*")]
    if piles:
        # One sample alone cannot tell a pile from the tuples in it.
        shared = [i for i in piles if steps[i - 1].samples == found.samples > 1]
        index = shared[-1] if shared else piles[0]
        return steps[index - 1].value, steps[:index]
    if len(steps) > 1 and steps[-1].kind in ("item", "ref"):
        steps = steps[:-1]
    return steps[-1].value, steps


def _reachable(top: Any, wanted: dict[int, int]) -> list[int]:
    """Addresses of the wanted objects (by id) that `top` is or leads to."""
    if id(top) in wanted:
        return [wanted[id(top)]]
    seen = {id(top)}
    addresses: dict[int, None] = {}
    level = [top]
    for _ in range(_FORWARD_DEPTH):
        following: list[Any] = []
        for child in _referents(level):
            key = id(child)
            if key in seen:
                continue
            seen.add(key)
            if key in wanted:
                addresses[wanted[key]] = None
            elif gc.is_tracked(child) and not issubclass(type(child), _NOT_INTO):
                following.append(child)
        if not following or len(seen) > 500_000:
            break
        level = following
    return list(addresses)


def _referents(things: list[Any]) -> list[Any]:
    """What they refer to; of functions and frames only what they captured, not their globals."""
    plain: list[Any] = []
    captured: list[Any] = []
    for thing in things:
        if type(thing) is FunctionType:
            captured += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        elif type(thing) is FrameType:
            captured += local_values(thing)
        else:
            plain.append(thing)
    return captured + gc.get_referents(*plain)


# -- text ------------------------------------------------------------------------------------------


def _length(value: Any) -> int | None:
    for base in (list, dict, set, tuple, frozenset):
        if issubclass(type(value), base):
            return int(base.__len__(value))
    if type(value).__name__ == "deque" and type(value).__module__ == "collections":
        return len(value)
    return None


def _step_json(step: Step) -> dict[str, object]:
    return {
        "kind": step.kind,
        "name": step.name,
        "type": _type_name(step.value),
        "len": _length(step.value),
    }


def _type_name(thing: Any) -> str:
    kind = type(thing)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _readable(found: Found) -> str:
    """As one would write it: __main__.trainer.history[*]"""
    text = found.where if found.root in ("module", "class") else f"{found.where}()"
    for step in found.steps:
        if step.kind == "item":
            text += (
                f"[{step.name}]" if step.name == "*" or step.name.isdigit() else f"[{step.name!r}]"
            )
        elif step.name:
            text += f".{step.name}"
    return text
