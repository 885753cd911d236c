"""Who holds the blocks under suspicion, and the line that put them there.

For each group of suspect blocks: the Python tensors that lie in them, the container they have in
common, the path to it from a module, class, closure or live frame, and, where exactly one statement
of the user's source can be it, the statement that stores. All of it goes into the trace as holder
records, one a block.

Takes at most about a second, runs no user code and changes nothing; what cannot be found is left
out, never guessed.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, ModuleType
from typing import Any

from ._agent import RECORD_HOLDER, RECORD_SOURCE, Agent
from ._graph import Graphs
from ._referrers import Found, LiveLocals, Step, Walk, local_values
from ._statements import Statement, storing
from ._tensors import tensors_in

SECONDS = 1.0
SAMPLES = 5
MAX_GROUPS = 16
MAX_RECORDS = 20_000
MAX_SOURCE = 1 << 20
_FORWARD_DEPTH = 5
_NOT_INTO = (type, ModuleType)  # they lead everywhere


@dataclass
class Group:
    """A group of suspect blocks, as `analyze --suspects` names it."""

    births: dict[int, int]  # address -> when it was made, ns since the epoch
    frames: list[tuple[str, str]] = field(default_factory=list)  # (file, function) of its stack


def find_holders(groups: Sequence[dict[str, Any]], agent: Agent) -> int:
    """Writes the holder records of the groups; the number written."""
    deadline = time.monotonic() + SECONDS
    parsed = [group for group in map(_group, groups[:MAX_GROUPS]) if group.births]
    tensors, places = tensors_in(address for group in parsed for address in group.births)
    if not tensors:
        return 0
    at: dict[int, list[int]] = {}  # address -> positions in `tensors`
    for position, place in enumerate(places):
        at.setdefault(place, []).append(position)
    live = LiveLocals()
    written = 0
    for group in parsed:
        if time.monotonic() > deadline or written >= MAX_RECORDS:
            break
        written += _find_group(group, tensors, at, live, deadline, agent)
    return written


def _find_group(
    group: Group,
    tensors: list[Any],
    at: dict[int, list[int]],
    live: LiveLocals,
    deadline: float,
    agent: Agent,
) -> int:
    present = [address for address in group.births if address in at]
    if not present:
        return 0
    samples = [[tensors[p] for p in at[address]] for address in _spread(present, SAMPLES)]
    found = Walk(samples, {id(tensors)}, live, deadline).run()
    if found is not None:
        top, steps = _container(found)
        held = _reachable(top, {id(tensors[p]): a for a in present for p in at[a]})
    else:
        graphs = Graphs(deadline)
        roots = [graphs.roots_of(sample) for sample in samples]
        keepers = [[root for of_one in sample for root in of_one] for sample in roots]
        own = {id(graphs.tensors), id(graphs.__dict__), id(tensors)}
        own |= {id(sample) for sample in roots} | {id(one) for sample in roots for one in sample}
        found = Walk([k for k in keepers if k], own | {id(keepers)}, live, deadline).run()
        if found is None:
            return 0
        top, steps = _container(found)
        held = present  # of one site: what holds for the samples holds for the others
    statement = _kept_at(found, steps, group)
    strings = (
        found.root,
        json.dumps([_step_json(step) for step in found.steps]),
        statement.file if statement else "",
        statement.function if statement else "",
        _readable(found),
        "",
    )
    lines = (statement.line, statement.end_line) if statement else (0, 0)
    if statement and all(file != statement.file for file, _ in group.frames):
        _keep_source(statement.file, agent)
    for address in held[:MAX_RECORDS]:
        agent.record(RECORD_HOLDER, (address, group.births[address], *lines), strings)
    return len(held[:MAX_RECORDS])


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


# -- the storing statement -------------------------------------------------------------------------


def _kept_at(found: Found, steps: list[Step], group: Group) -> Statement | None:
    name, kind = _name_of(steps)
    if not name:
        return None
    attribute = kind == "attr"
    candidates: list[Statement] = []
    for file in _files(found, steps, group):
        for statement in storing(file, name, attribute, kind == "global"):
            if statement not in candidates:
                candidates.append(statement)
    if found.root in ("frame", "closure") and not attribute:
        # A local name means something in its own function (and those inside it) only.
        own = _base_function(found.where)
        candidates = [c for c in candidates if _base_function(c.function) == own]
    if len(candidates) == 1:
        return candidates[0]
    on_stack = [
        c
        for c in candidates
        if any(
            os.path.realpath(c.file) == file and c.function.rpartition(".")[2] == _last(function)
            for file, function in group.frames
        )
    ]
    return on_stack[0] if len(on_stack) == 1 else None


def _base_function(qualified: str) -> str:
    return qualified.partition(".<locals>")[0]


def _last(function: str) -> str:
    return function.rpartition(".")[2]


def _name_of(steps: list[Step]) -> tuple[str, str]:
    """The innermost name on the way to the container, and the kind of its step."""
    for step in reversed(steps):
        if step.kind in ("attr", "global", "local", "cell") and step.name.isidentifier():
            return step.name, step.kind
    return "", ""


def _files(found: Found, steps: list[Step], group: Group) -> list[str]:
    """Source files that may hold the storing statement: of the root's owner, of the classes on the
    path, of the allocating stack. The user's own only, and none newer than this process."""
    owners = [found.file]
    for step in steps:
        module = sys.modules.get(str(getattr(type(step.value), "__module__", "")))
        owners.append(getattr(module, "__file__", None))
    owners.extend(file for file, _ in group.frames)
    files: dict[str, None] = {}
    for owner in owners:
        if isinstance(owner, str) and owner.endswith(".py"):
            path = os.path.abspath(owner)
            if _is_user(path) and not _is_newer(path):
                files[os.path.realpath(path)] = None
    return list(files)


_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {
        sysconfig.get_paths().get("stdlib", ""),
        sysconfig.get_paths().get("platstdlib", ""),
        os.path.dirname(os.path.abspath(__file__)),
    }
    if path
)


def _is_user(path: str) -> bool:
    real = os.path.realpath(path)
    inside = f"{os.sep}site-packages{os.sep}" in real or f"{os.sep}dist-packages{os.sep}" in real
    return not inside and not real.startswith(_LIBRARIES)


def _is_newer(path: str) -> bool:
    """Whether the file was changed after this process began: its lines may be others by now."""
    try:
        return os.stat(path).st_mtime > os.stat(f"/proc/{os.getpid()}").st_ctime
    except OSError:
        return True


# -- text ------------------------------------------------------------------------------------------


def _length(value: Any) -> int | None:
    for base in (list, dict, set, tuple, frozenset):
        if issubclass(type(value), base):
            return int(base.__len__(value))
    if type(value).__name__ == "deque" and type(value).__module__ == "collections":
        return len(value)
    return None


def _step_json(step: Step) -> dict[str, object]:
    kind = type(step.value)
    return {
        "kind": step.kind,
        "name": step.name,
        "type": kind.__name__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__name__}",
        "len": _length(step.value),
    }


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
