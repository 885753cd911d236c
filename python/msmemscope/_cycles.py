"""Blocks that nothing keeps but unreachable Python cycles.

Proven as the collector proves it, without collecting: everything that leads to the blocks is
gathered by its referrers, and each of those objects' reference counts must be accounted for by the
others. A reference from anywhere else, a running function's variable or a C extension's, leaves a
count that is not, and then nothing is said.
"""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from ._referrers import LiveLocals, edge, referrers_of
from ._statements import Statement, parse, storing

MAX_OBJECTS = 1_000
_ROOTS = (ModuleType, type)


@dataclass
class Link:
    """A named reference inside a cycle."""

    kind: str  # attr cell
    name: str
    owner: Any  # what refers
    value: Any


def find_cycle(
    samples: Sequence[Sequence[Any]],
    own: Sequence[Sequence[Any]],
    live: LiveLocals,
    deadline: float,
) -> list[Link] | None:
    """The named references of the cycles that keep the samples; None where that is not proven.
    `own` are the caller's lists that hold the samples."""
    things = [thing for sample in samples for thing in sample]
    count = len(things)
    if not things or not _gather(things, samples, own, live, deadline):
        return None
    if not _all_accounted_for(things, [*samples, *own], count):
        return None
    return _links(things)


def _gather(
    things: list[Any],
    samples: Sequence[Sequence[Any]],
    own: Sequence[Sequence[Any]],
    live: LiveLocals,
    deadline: float,
) -> bool:
    """Adds what leads to the things; False where that does not end, or ends at a root."""
    known = {id(thing) for thing in things}
    ours = {id(things), id(samples), id(own), *map(id, samples), *map(id, own)}
    begin = 0
    while begin < len(things):
        if len(things) > MAX_OBJECTS or time.monotonic() > deadline:
            return False
        level = things[begin:]
        begin = len(things)
        ours.add(id(level))
        found = referrers_of(level)
        ours.add(id(found))
        for parent in found:
            if id(parent) in known or id(parent) in ours:
                continue
            kind = type(parent)
            if kind is FrameType and not live.is_over(parent):
                if str(parent.f_globals.get("__name__", "")).startswith("msmemscope"):
                    continue  # its variables are ours, and are given up below
                return False
            if issubclass(kind, _ROOTS) or (kind is dict and "__builtins__" in parent):
                return False
            if id(parent) in live.names:
                return False
            known.add(id(parent))
            things.append(parent)
    return True


def _all_accounted_for(things: list[Any], own: Sequence[Sequence[Any]], samples: int) -> bool:
    """Whether the things refer to each other and nobody else refers to them. The first `samples`
    must be referred to: C++ keeps tensors without any reference that can be seen."""
    place = {id(thing): at for at, thing in enumerate(things)}
    inside = [0] * len(things)
    for at in range(len(things)):
        for key in map(id, gc.get_referents(things[at])):
            if key in place:
                inside[place[key]] += 1
    if any(count == 0 for count in inside[:samples]):
        return False
    held = Counter(key for mine in own for key in map(id, mine))
    probe = [object()]
    alone = sys.getrefcount(probe[0])  # of something that one list holds
    return all(
        sys.getrefcount(things[at]) - alone == inside[at] + held[id(things[at])]
        for at in range(len(things))
    )


def _links(things: list[Any]) -> list[Link]:
    """The references among the things that lie on a cycle."""
    place = {id(thing): at for at, thing in enumerate(things)}
    below = [
        [place[id(child)] for child in gc.get_referents(thing) if id(child) in place]
        for thing in things
    ]
    links: list[Link] = []
    for at, thing in enumerate(things):
        for child in below[at]:
            if not _leads(below, child, at):
                continue
            kind, name = edge(thing, things[child])
            owner = thing
            if type(thing) is dict:  # of an object
                owner = next(
                    (one for one in things if _dict_is(one, thing)),
                    thing,
                )
                kind = "attr" if owner is not thing else kind
            elif type(thing) is CellType:
                kind, owner = "cell", next((one for one in things if _has_cell(one, thing)), thing)
                name = _cell_name(owner, thing)
            if kind in ("attr", "cell") and name.isidentifier():
                links.append(Link(kind, name, owner, things[child]))
    return links


def _leads(below: list[list[int]], start: int, end: int) -> bool:
    seen = {start}
    level = [start]
    while level:
        if end in level:
            return True
        level = [one for at in level for one in below[at] if one not in seen]
        seen.update(level)
    return False


def _dict_is(thing: Any, names: dict[Any, Any]) -> bool:
    try:
        return object.__getattribute__(thing, "__dict__") is names
    except AttributeError:
        return False


def _has_cell(thing: Any, cell: Any) -> bool:
    return type(thing) is FunctionType and any(one is cell for one in thing.__closure__ or ())


def _cell_name(function: Any, cell: Any) -> str:
    if type(function) is not FunctionType:
        return ""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    return next((name for name, one in cells if one is cell), "")


# -- the line that closes it -----------------------------------------------------------------------


def closing(links: Sequence[Link], files: Sequence[str]) -> Statement | None:
    """The statement that closes the cycle: the one that makes one of its references, or, of several
    in one function, the last."""
    found: list[Statement] = []
    for name, kind in {(link.name, link.kind) for link in links}:
        for file in files:
            for statement in _making(file, name, kind):
                if statement not in found:
                    found.append(statement)
    if not found or len({(one.file, one.function) for one in found}) != 1:
        return None
    return max(found, key=lambda one: one.line)


def _making(file: str, name: str, kind: str) -> list[Statement]:
    parsed = parse(file)
    if parsed is None:
        return []
    statements = storing(file, name, attribute=kind == "attr")
    tree, lines = parsed
    for function, node in _with_functions(tree):
        if _makes(node, name, kind):
            end = node.end_lineno or node.lineno
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                end = node.lineno
            text = " ".join(line.strip() for line in lines[node.lineno - 1 : end])
            statement = Statement(file, node.lineno, end, function, text)
            if all((one.file, one.line) != (file, node.lineno) for one in statements):
                statements.append(statement)
    return statements


def _with_functions(tree: ast.Module) -> list[tuple[str, ast.stmt]]:
    """Each statement with the qualified name of the function it is in."""
    found: list[tuple[str, ast.stmt]] = []
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        where, node = waiting.pop()
        inner = where
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = f"{where}{node.name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            inner = f"{where}{node.name}."
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                found.append((inner.removesuffix(".<locals>.").rstrip(".") or "<module>", child))
            waiting.append((inner, child))
    return found


def _mentions(value: ast.expr) -> bool:
    """Whether a variable is in it: beside the names of what is called."""
    callees = {id(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Name) and id(node) not in callees for node in ast.walk(value))


def _makes(node: ast.stmt, name: str, kind: str) -> bool:
    if kind == "cell" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name == name
    targets: list[ast.expr]
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return False
    if node.value is None or not _mentions(node.value):
        return False  # self.parent = None, self.children = [] close nothing
    for target in targets:
        for one in ast.walk(target):
            if kind == "attr" and isinstance(one, ast.Attribute) and one.attr == name:
                return True
            if kind == "cell" and isinstance(one, ast.Name) and one.id == name:
                return True
    return False
