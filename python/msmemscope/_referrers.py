"""From objects up to what keeps them: a bounded breadth-first walk over gc.get_referrers.

It starts from a few samples of one group and looks for a root (a module's global, a class, a
closure, a local of a live frame) that leads to most of them: what a whole group has in common is
what piles it up, while a variable that holds the newest one only is no answer.

 * Bounded: by a deadline, by depth, by the objects followed a level.
 * No side effects: nothing is collected; `__dict__`s are only read where they exist already or
   belong to an object on the answer's path; a snapshot of a frame's locals is emptied again.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass
from types import CellType, FrameType, FunctionType, GeneratorType, ModuleType, TracebackType
from typing import Any

MAX_DEPTH = 14
MAX_WIDTH = 48
_CO_OPTIMIZED = 1
_PRIORITY = ("module", "class", "closure", "frame", "traceback", "autograd")


@dataclass
class Step:
    """One step of a path from a root down to a tensor."""

    kind: str  # global local attr item cell ref
    name: str
    value: Any  # what the step leads to
    samples: int = 0  # how many of the samples it leads to


@dataclass
class Found:
    root: str
    where: str  # the module, class or function at the root
    file: str | None  # of the code that owns the root, if known
    steps: list[Step]
    samples: int  # how many of the samples it leads to


class LiveLocals:
    """Names of the local variables of all live frames but our own."""

    def __init__(self) -> None:
        self.names: dict[int, list[tuple[FrameType, str]]] = {}
        self.frames: set[int] = set()  # ids of all live frames, ours among them
        if sys.gettrace() is not None:
            return  # reading locals would undo a debugger's changes
        frame: FrameType | None = None
        for innermost in sys._current_frames().values():
            frame = innermost
            for _ in range(500):
                if frame is None:
                    break
                self.frames.add(id(frame))
                if not _is_ours(frame) and frame.f_code.co_flags & _CO_OPTIMIZED:
                    self._read(frame)
                frame = frame.f_back
        # One of them was our own: a frame that refers to itself would keep its callers' locals.
        del innermost, frame

    def is_over(self, frame: FrameType) -> bool:
        """Whether its call has ended, and only a traceback or a generator keeps it."""
        return bool(self.frames) and id(frame) not in self.frames and not _is_ours(frame)

    def _read(self, frame: FrameType) -> None:
        values = frame.f_locals
        for name in list(values):
            self.names.setdefault(id(values[name]), []).append((frame, name))
        if type(values) is dict and sys.getrefcount(values) <= _SNAPSHOT_ALONE:
            values.clear()


# Before 3.13 `frame.f_locals` is a snapshot that the frame keeps, and with it the values. Where
# nobody else has it (the frame, our variable, and the argument of getrefcount), it is emptied; the
# interpreter fills it again whenever it is asked for.
_SNAPSHOT_ALONE = 3


def _locals(frame: Any) -> dict[str, Any]:
    """A frame's local variables; none for a module's or a class's body."""
    if type(frame) is not FrameType or not frame.f_code.co_flags & _CO_OPTIMIZED:
        return {}
    values = frame.f_locals
    copy = {name: values[name] for name in list(values)}
    if type(values) is dict and sys.getrefcount(values) <= _SNAPSHOT_ALONE:
        values.clear()
    return copy


def local_values(frame: FrameType) -> list[Any]:
    return list(_locals(frame).values())


def _local_name(frame: Any, value: Any) -> str:
    """The local variable of a frame that is `value`; "" where there is none."""
    return next((name for name, one in _locals(frame).items() if one is value), "")


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("msmemscope")


def referrers_of(things: list[Any]) -> list[Any]:
    """What refers to them, but for the tuple of the question itself: from CPython 3.13 on
    gc.get_referrers makes one of its own, and shows it."""
    mark = object()
    found = gc.get_referrers(*things, mark)
    # No comprehension: its closure would be a cell that refers to the mark.
    for at in range(len(found) - 1, -1, -1):
        if type(found[at]) is tuple and found[at] and found[at][-1] is mark:
            del found[at]
    return found


class Walk:
    """One group's walk. `ignored` are ids of the caller's own containers."""

    def __init__(
        self, samples: list[list[Any]], ignored: set[int], live: LiveLocals, deadline: float
    ) -> None:
        self._samples = len(samples)
        self._own = ignored | {id(samples), *(id(sample) for sample in samples)}
        self._live = live
        self._deadline = deadline
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if ModuleType in type(module).__mro__:  # the first name wins: __main__, not __mp_main__
                self._modules.setdefault(id(module.__dict__), name)
        self._objects: dict[int, Any] = {}
        self._reached: dict[int, frozenset[int]] = {}  # object -> samples it leads to
        self._down: dict[int, int] = {}  # object -> the object below, on the way to a sample
        self._own |= {id(self._objects), id(self.__dict__)}
        self._roots: list[tuple[int, str, int, Any]] = []  # level, root, child id, what it is
        for number, sample in enumerate(samples):
            for thing in sample:
                self._objects[id(thing)] = thing
                self._reached[id(thing)] = self._reached.get(id(thing), frozenset()) | {number}

    def run(self) -> Found | None:
        if not self._samples:
            return None
        frontier = list(self._objects)
        majority = self._samples // 2 + 1
        for level in range(MAX_DEPTH):
            self._look_at_frames(frontier, level)
            parents = self._parents(frontier)
            frontier = self._climb(parents, frontier, level)
            best = self._best()
            if best is not None and len(self._reached[best[2]]) >= majority:
                return self._describe(best)
            if not frontier or time.monotonic() > self._deadline:
                break
        return None

    def _parents(self, frontier: list[int]) -> list[Any]:
        things = [self._objects[key] for key in frontier]
        self._own.add(id(things))
        found = referrers_of(things)
        self._own.add(id(found))
        return found

    def _climb(self, parents: list[Any], frontier: list[int], level: int) -> list[int]:
        below = frozenset(frontier)
        fresh: list[int] = []
        for parent in parents:
            key = id(parent)
            if key in self._own or (key in self._objects and key not in below):
                continue
            if type(parent) is FrameType and not self._live.is_over(parent):
                continue  # live frames are looked at by their locals
            children = [id(c) for c in gc.get_referents(parent) if id(c) in below]
            if not children:
                continue
            root = self._root_of(parent, children)
            if root is not None:
                self._roots.extend((level, root, child, parent) for child in set(children))
                # One closure, generator or traceback each: what piles up is further out.
                if root not in ("closure", "frame", "traceback"):
                    continue
            if key in self._objects:
                continue
            self._objects[key] = parent
            self._reached[key] = frozenset().union(*(self._reached[c] for c in children))
            self._down[key] = max(children, key=lambda c: len(self._reached[c]))
            fresh.append(key)
        fresh.sort(key=lambda k: -len(self._reached[k]))
        return fresh[:MAX_WIDTH]

    def _root_of(self, parent: Any, children: list[int]) -> str | None:
        kind = type(parent)
        if kind is dict:
            if id(parent) in self._modules or "__builtins__" in parent:
                return "module"
            return None
        if issubclass(kind, type):
            return "class"
        if kind is FunctionType:
            return "closure"
        if kind is GeneratorType or kind.__name__ in ("coroutine", "async_generator"):
            return "frame"
        if kind is TracebackType:
            return "traceback"
        if issubclass(kind, ModuleType):
            return "module"
        return None

    def _look_at_frames(self, frontier: list[int], level: int) -> None:
        for key in frontier:
            names = self._live.names.get(key)
            if names:  # the outermost: the others were handed it
                self._roots.append((level, "frame", key, names[-1]))

    def _best(self) -> tuple[int, str, int, Any] | None:
        if not self._roots:
            return None
        return min(
            self._roots,
            key=lambda r: (-len(self._reached[r[2]]), _PRIORITY.index(r[1]), r[0]),
        )

    # -- the answer --------------------------------------------------------------------------------

    def _chain(self, key: int) -> list[Any]:
        chain = [self._objects[key]]
        while key in self._down:
            key = self._down[key]
            chain.append(self._objects[key])
        return chain

    def _describe(self, root: tuple[int, str, int, Any]) -> Found:
        _, kind, key, holder = root
        chain = self._chain(key)
        where, file, steps = _first_steps(kind, holder, chain, self._modules)
        above: Any = chain[0]
        index = 1
        while index < len(chain):
            thing = chain[index]
            if type(thing) is dict and index + 1 < len(chain) and _dict_of(above) is thing:
                thing = chain[index + 1]  # obj -> obj.__dict__ -> value is one step
                index += 1
                steps.append(Step("attr", key_of(chain[index - 1], thing), thing))
            else:
                step_kind, name = edge(above, thing)
                steps.append(Step(step_kind, name, thing))
            above = thing
            index += 1
        for step in steps:
            step.samples = len(self._reached.get(id(step.value), ()))
        return Found(kind, where, file, _plain(steps), len(self._reached[key]))


def _first_steps(
    kind: str, holder: Any, chain: list[Any], modules: dict[int, str]
) -> tuple[str, str | None, list[Step]]:
    """What is at the root, its file, and the step from it to the chain's first object."""
    child = chain[0]
    if kind == "module":
        names = holder if type(holder) is dict else object.__getattribute__(holder, "__dict__")
        where = modules.get(id(names)) or str(names.get("__name__", "?"))
        file = names.get("__file__")
        step = Step("global", key_of(names, child), child)
        return where, file if type(file) is str else None, [step]
    if kind == "class":
        module = str(getattr(sys.modules.get(holder.__module__), "__file__", "") or "")
        where = f"{holder.__module__}.{holder.__qualname__}"
        if type(child) is dict and len(chain) > 1 and "__module__" in child:
            value = chain.pop(1)  # type -> its dict -> value is one step
            chain[0] = value
            return where, module or None, [Step("attr", key_of(child, value), value)]
        return where, module or None, [Step("ref", "", child)]
    if kind == "closure":
        code = holder.__code__
        if type(child) is tuple and child is holder.__closure__ and len(chain) > 2:
            cell, value = chain[1], chain[2]
            position = next((i for i, c in enumerate(child) if c is cell), -1)
            name = code.co_freevars[position] if position >= 0 else "?"
            del chain[:2]
            return holder.__qualname__, code.co_filename, [Step("cell", name, value)]
        if type(child) is tuple and child is holder.__defaults__ and len(chain) > 1:
            value = chain.pop(1)
            chain[0] = value
            position = next((i for i, c in enumerate(child) if c is value), 0)
            names = code.co_varnames[: code.co_argcount][-len(child) :]
            return holder.__qualname__, code.co_filename, [Step("local", names[position], value)]
        return holder.__qualname__, code.co_filename, [Step(*edge(holder, child), child)]
    if kind == "frame":
        if type(holder) is tuple:
            frame, name = holder
            code = frame.f_code
            return _qualified(code), code.co_filename, [Step("local", name, child)]
        code = getattr(holder, "gi_code", None) or getattr(holder, "cr_code", None)
        where = _qualified(code) if code is not None else type(holder).__name__
        frame = getattr(holder, "gi_frame", None) or getattr(holder, "cr_frame", None)
        name = _local_name(frame, child)
        return where, getattr(code, "co_filename", None), [Step("local", name, child)]
    return type(holder).__name__, None, [Step("ref", "", child)]


def _plain(steps: list[Step]) -> list[Step]:
    """A torch module's members as its user writes them: model.seen, not model._buffers["seen"]."""
    plain: list[Step] = []
    for step in steps:
        if (
            step.kind == "item"
            and plain
            and plain[-1].kind == "attr"
            and plain[-1].name in ("_buffers", "_parameters", "_modules")
        ):
            plain[-1] = Step("attr", step.name, step.value, step.samples)
        else:
            plain.append(step)
    return plain


def _qualified(code: Any) -> str:
    return str(getattr(code, "co_qualname", None) or code.co_name)


def _dict_of(thing: Any) -> Any:
    """The `__dict__` an object has at hand, without making one or asking user code."""
    try:
        if any(type(r) is dict for r in gc.get_referents(thing)):
            return object.__getattribute__(thing, "__dict__")
    except Exception:
        return None
    return None


def key_of(names: dict[Any, Any], value: Any) -> str:
    """The key of a dict under which a value lies, as text; "*" where it has no plain one."""
    for key, candidate in list(dict.items(names)):
        if candidate is value:
            return str(key) if type(key) in (str, int, float, bool) else "*"
    return "*"


def edge(parent: Any, child: Any) -> tuple[str, str]:
    """Kind and name of the step from an object to one it refers to."""
    kind = type(parent)
    if issubclass(kind, dict):
        return "item", key_of(parent, child)
    if issubclass(kind, (list, tuple, set, frozenset)) or kind.__name__ == "deque":
        return "item", "*"
    if kind.__name__ == "_lru_cache_wrapper" and kind.__module__ == "functools":
        return "item", "*"  # a kept result; the wrapped function is in its __dict__
    if kind is CellType:
        return "cell", ""
    if kind is FrameType:
        return "local", _local_name(parent, child)
    return _attribute(parent, child)


def _attribute(parent: Any, child: Any) -> tuple[str, str]:
    try:
        for base in type(parent).__mro__:
            for name, member in list(vars(base).items()):
                if (
                    type(member).__name__ == "member_descriptor"
                    and member.__get__(parent, type(parent)) is child
                ):
                    return "attr", name
    except Exception:  # an unset slot, an odd metaclass: no slot holds it
        pass
    try:  # inline values (3.11 and later): the object refers to its attributes itself
        values = object.__getattribute__(parent, "__dict__")
        if type(values) is dict:
            name = key_of(values, child)
            if name != "*":
                return "attr", name
    except Exception:  # no __dict__
        pass
    return "ref", ""
