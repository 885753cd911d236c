"""Tells when a module has been imported, without importing it and without being noticed.

A finder at the front of sys.meta_path asks the other finders for the module's spec, as importlib
would have, and gives that very spec back. The spec's loader gets an `exec_module` of its own for
one call: it takes itself away, executes the module as always, then tells. So importlib sees its own
spec, loader and module; a spec that is only looked at (importlib.util.find_spec) changes nothing;
importlib.reload finds no trace of us once the module is there, for the finder then goes away.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatch:
    """Calls `told(name)` once for each of `names`, at the end of its import."""

    def __init__(self, names: Sequence[str], told: Callable[[str], None]) -> None:
        self._waiting = set(names)
        self._told = told
        self._searching = threading.local()

    def install(self) -> None:
        if self._waiting and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        self._waiting.clear()
        self._leave()

    def _leave(self) -> None:
        # Not list.remove: it would compare with ==, which is other finders' code.
        for index, finder in enumerate(sys.meta_path):
            if finder is self:
                del sys.meta_path[index]
                return

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname not in self._waiting or getattr(self._searching, "on", False):
            return None
        self._searching.on = True
        try:
            spec = self._ask_others(fullname, path, target)
        finally:
            self._searching.on = False
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader, fullname)
        return spec

    def _ask_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None

    def _wrap(self, loader: Any, fullname: str) -> None:
        own = getattr(loader, "__dict__", None)
        if own is None or "exec_module" in own or not hasattr(loader, "exec_module"):
            return

        def exec_module(module: ModuleType) -> None:
            own.pop("exec_module", None)
            loader.exec_module(module)
            if module.__name__ == fullname:
                self._done(fullname)

        # A loader that admits no attribute stays as it is; start() looks again.
        own["exec_module"] = exec_module

    def _done(self, fullname: str) -> None:
        if fullname in self._waiting:
            self._waiting.discard(fullname)
            if not self._waiting:
                self._leave()
            self._told(fullname)
