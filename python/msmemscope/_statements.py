"""Which statements of a source file store something under a name.

    leak_store.append(tensor)          name: leak_store, how: grow
    self.history[step] = loss          name: history,    how: grow
    seen = torch.cat([seen, batch])    name: seen,       how: rebind

Only the text is looked at. Aliases are not followed: a caller that finds no statement, or several,
does not know, and says so.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

GROW_METHODS = frozenset(
    (
        "__setitem__",
        "add",
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "push",
        "put",
        "put_nowait",
        "setdefault",
        "update",
    )
)
_MAX_SOURCE = 4 << 20


@dataclass(frozen=True)
class Statement:
    file: str
    line: int
    end_line: int
    function: str  # qualified as co_qualname is; "<module>" outside functions
    text: str  # on one line


def parse(path: str) -> tuple[ast.Module, list[str]] | None:
    """A Python source file as a tree and its lines; None where it cannot be had."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_SOURCE + 1)
        if len(data) > _MAX_SOURCE:
            return None
        return ast.parse(data, path), data.decode("utf-8", "replace").splitlines()
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def storing(
    path: str, name: str, attribute: bool = False, module_level: bool = False
) -> list[Statement]:
    """The statements of a file that put something into what `name` names: a variable, or with
    `attribute` an attribute of anything; with `module_level` not the variables of that name that
    functions have for themselves."""
    parsed = parse(path)
    if parsed is None:
        return []
    tree, lines = parsed
    finder = _Finder(name, attribute, module_level)
    try:
        finder.visit(tree)
    except RecursionError:
        return []
    return [_statement(path, lines, node, where) for node, where in finder.found]


def _statement(path: str, lines: list[str], node: ast.stmt, function: str) -> Statement:
    end = node.end_lineno or node.lineno
    text = " ".join(line.strip() for line in lines[node.lineno - 1 : end])
    return Statement(path, node.lineno, end, function, text)


class _Finder(ast.NodeVisitor):
    """Walks statements, knowing the function they are in."""

    def __init__(self, name: str, attribute: bool, module_level: bool) -> None:
        self._name = name
        self._attribute = attribute
        self._module_level = module_level
        self._hidden = [False]  # of each function: whether the name is a variable of its own
        self._scopes: list[tuple[str, bool]] = []  # name, whether a function
        self.found: list[tuple[ast.stmt, str]] = []

    def _function(self) -> str:
        parts: list[str] = []
        for name, is_function in self._scopes:
            parts.append(name)
            if is_function:
                parts.append("<locals>")
        if not self._scopes or not self._scopes[-1][1]:
            return parts[-1] if parts else "<module>"
        return ".".join(parts[:-1])

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scopes.append((node.name, not isinstance(node, ast.ClassDef)))
        own = None if isinstance(node, ast.ClassDef) else _own_variable(node, self._name)
        self._hidden.append(self._hidden[-1] if own is None else own)
        self.generic_visit(node)
        self._hidden.pop()
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._scope(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope(node)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and self._stores(node):
            self.found.append((node, self._function()))
        super().visit(node)

    def _stores(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            return any(self._assigns(target, node.value) for target in node.targets)
        if isinstance(node, ast.AugAssign):
            return self._is_named(node.target) or (
                isinstance(node.target, ast.Subscript) and self._is_named(_base(node.target))
            )
        if isinstance(node, ast.AnnAssign):
            return node.value is not None and self._assigns(node.target, node.value)
        return any(self._grows(call) for call in _calls_of(node))

    def _assigns(self, target: ast.expr, value: ast.expr) -> bool:
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._assigns(element, value) for element in target.elts)
        if isinstance(target, ast.Subscript):  # name[...] = value
            return self._is_named(_base(target))
        if self._is_named(target):  # name = something made from name
            return any(self._is_named(node) for node in ast.walk(value))
        return any(self._grows(node) for node in ast.walk(value) if isinstance(node, ast.Call))

    def _grows(self, call: ast.Call) -> bool:
        function = call.func
        return (
            isinstance(function, ast.Attribute)
            and function.attr in GROW_METHODS
            and self._is_named(_base(function.value))
        )

    def _is_named(self, node: ast.AST) -> bool:
        if self._attribute:
            return isinstance(node, ast.Attribute) and node.attr == self._name
        # A module's variable may also be reached as module.name.
        visible = not (self._module_level and self._hidden[-1])
        return (isinstance(node, ast.Name) and node.id == self._name and visible) or (
            isinstance(node, ast.Attribute)
            and node.attr == self._name
            and isinstance(node.value, ast.Name)
            and node.value.id not in ("self", "cls")
        )


def _own_variable(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool | None:
    """Whether a function has a variable `name` of its own; None where the name is the enclosing
    scope's."""
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    if any(parameter.arg == name for parameter in parameters):
        return True
    binds = None
    inside: list[ast.AST] = list(node.body)
    while inside:
        one = inside.pop()
        if isinstance(one, ast.Global) and name in one.names:
            return False
        if isinstance(one, ast.Nonlocal) and name in one.names:
            return None
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue  # scopes of their own
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store):
            binds = True
        inside.extend(ast.iter_child_nodes(one))
    return binds


def _base(node: ast.expr) -> ast.expr:
    """What a chain of [..], .setdefault(..) and .get(..) starts from."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("setdefault", "get")
        ):
            node = node.func.value
        else:
            return node


def _calls_of(node: ast.stmt) -> list[ast.Call]:
    """The calls that belong to a statement itself, not to statements inside it."""
    own: list[ast.AST] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            own.extend(ast.walk(child))
        elif isinstance(child, ast.withitem):
            own.extend(ast.walk(child.context_expr))
    return [call for call in own if isinstance(call, ast.Call)]
