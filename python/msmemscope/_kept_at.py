"""The statement of the user's source that stores what a walk found, and the files it may be in.

Exactly one statement must be it: of those that store under the container's name, the only one, or
the only one in a function of the allocating stack. A file that was changed after this process
began is not looked at: its lines may be others by now.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from ._referrers import Found, Step
from ._statements import Statement, storing


def kept_at(found: Found, steps: list[Step], frames: Sequence[tuple[str, str]]) -> Statement | None:
    name, kind = name_of(steps)
    if not name:
        return None
    attribute = kind == "attr"
    candidates: list[Statement] = []
    for file in _files(found, steps, frames):
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
            for file, function in frames
        )
    ]
    return on_stack[0] if len(on_stack) == 1 else None


def _base_function(qualified: str) -> str:
    return qualified.partition(".<locals>")[0]


def _last(function: str) -> str:
    return function.rpartition(".")[2]


def name_of(steps: list[Step]) -> tuple[str, str]:
    """The innermost name on the way to the container, and the kind of its step."""
    for step in reversed(steps):
        if step.kind in ("attr", "global", "local", "cell") and step.name.isidentifier():
            return step.name, step.kind
    return "", ""


def _files(found: Found, steps: list[Step], frames: Sequence[tuple[str, str]]) -> list[str]:
    """Source files that may hold the storing statement: of the root's owner, of the classes on the
    path, of the allocating stack. The user's own only, and none newer than this process."""
    owners = [found.file, *(file_of(step.value) for step in steps)]
    return user_files([*owners, *(file for file, _ in frames)])


def file_of(thing: Any) -> str | None:
    """Of the class of an object; of a function its own."""
    if type(thing) is FunctionType:
        return thing.__code__.co_filename
    module = sys.modules.get(str(getattr(type(thing), "__module__", "")))
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


def user_files(owners: Sequence[str | None]) -> list[str]:
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
