"""What kind of store a container is: a log, a cache looked up by key, or something with a bound.

    seen[key] = value    after    if key in seen / seen.get(key) / seen[key]     a cache
    deque(maxlen=60), lru_cache(maxsize=128)                                     has a bound
    history.pop(0)  beside  len(history) and  history.append(x)                  has a bound

The objects themselves are asked only where no user code can run; the rest is read from the source.
"""

from __future__ import annotations

import ast
from collections import deque
from types import FunctionType
from typing import Any

from ._statements import Statement, parse

CACHE = "unbounded_cache"
BOUNDED = "none"  # the contract's word for what is healthy
_TAKE_OUT = frozenset(("pop", "popitem", "popleft", "clear", "remove", "move_to_end"))


def is_lru(thing: Any) -> bool:
    kind = type(thing)
    return kind.__name__ == "_lru_cache_wrapper" and kind.__module__ == "functools"


def cause_of(container: Any, name: str, attribute: bool, storing: Statement | None) -> str:
    """A cause of the contract that the container shows by itself or by its source; "" none."""
    if is_lru(container):
        return CACHE if container.cache_info().maxsize is None else BOUNDED
    kinds = type(container).__mro__
    if deque in kinds and _maxlen(container) is not None:
        return BOUNDED
    function = _function_of(storing) if storing and name else None
    if function is None or storing is None:
        return ""
    named = _Named(name, attribute)
    if any(named.is_taken_out(node) for node in ast.walk(function)) and any(
        named.is_measured(node) for node in ast.walk(function)
    ):
        return BOUNDED
    if dict in kinds and any(
        named.is_looked_up(node) and node.lineno <= storing.end_line
        for node in ast.walk(function)
        if isinstance(node, ast.expr)
    ):
        return CACHE
    return ""


def decorated(container: Any) -> Statement | None:
    """The function that an lru_cache keeps the results of: from its decorators to its header."""
    function = object.__getattribute__(container, "__dict__").get("__wrapped__")
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    parsed = parse(code.co_filename)
    if parsed is None:
        return None
    tree, lines = parsed
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        if first == code.co_firstlineno and node.name == code.co_name:
            end = max(node.lineno, min(one.lineno for one in node.body) - 1)
            text = " ".join(line.strip() for line in lines[first - 1 : end])
            return Statement(code.co_filename, node.lineno, end, node.name, text)
    return None


def _maxlen(container: Any) -> int | None:
    length: int | None = deque.maxlen.__get__(container)
    return length


def _function_of(statement: Statement) -> ast.AST | None:
    """The innermost function the statement is in; None for a module's own code."""
    parsed = parse(statement.file)
    if parsed is None:
        return None
    found: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in ast.walk(parsed[0]):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= statement.line <= (node.end_lineno or 0)
            and (found is None or node.lineno > found.lineno)
        ):
            found = node
    return found


class _Named:
    """What is done with a variable, or an attribute of anything, of a name."""

    def __init__(self, name: str, attribute: bool) -> None:
        self._name = name
        self._attribute = attribute

    def is_taken_out(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Delete):
            return any(
                isinstance(target, ast.Subscript) and self._is(target.value)
                for target in node.targets
            )
        return self._is_method(node, _TAKE_OUT)

    def is_measured(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "len"
            and len(node.args) == 1
            and self._is(node.args[0])
        )

    def is_looked_up(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return any(
                isinstance(how, (ast.In, ast.NotIn)) and self._is(what)
                for how, what in zip(node.ops, node.comparators)
            )
        if isinstance(node, ast.Subscript):
            return isinstance(node.ctx, ast.Load) and self._is(node.value)
        return self._is_method(node, frozenset(("get", "setdefault")))

    def _is_method(self, node: ast.AST, names: frozenset[str]) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in names
            and self._is(node.func.value)
        )

    def _is(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr == self._name
        return not self._attribute and isinstance(node, ast.Name) and node.id == self._name
