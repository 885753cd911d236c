"""Optimizer steps, noticed without the user's doing.

torch calls `optimizer._optimizer_step_code()` at the end of each `Optimizer.step` (an empty method
kept for torch's profiler, in every release from 1.13 to the newest), so replacing that one class
attribute sees existing and new optimizers, subclasses, schedulers and GradScaler alike.

 * Where a subclass calls super().step(), both steps end; only the outermost is counted.
 * Under torch.compile the replacement does what the original does, and nothing else.
 * Optimizers are numbered from 1 in the order of their first step; nothing is stored on them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

# Told at each step while recording: the optimizer's serial, its own count of steps, its class.
OnStep = Callable[[int, int, str], None]

_MAX_FRAMES = 200  # how far out an enclosing step of the same optimizer is looked for


class _Counters:
    """Serial and step count of each live optimizer, by identity."""

    def __init__(self) -> None:
        self._by_id: dict[int, list[Any]] = {}  # id -> [weak reference, serial, count]
        self._serials = 0

    def next_step(self, optimizer: object) -> tuple[int, int]:
        key = id(optimizer)
        entry = self._by_id.get(key)
        if entry is None:
            self._serials += 1
            entry = [self._watch(optimizer, key), self._serials, 0]
            self._by_id[key] = entry
        entry[2] += 1
        return entry[1], entry[2]

    def _watch(self, optimizer: object, key: int) -> object:
        by_id = self._by_id
        try:
            return weakref.ref(optimizer, lambda _: by_id.pop(key, None))
        except TypeError:  # a class with __slots__ and no __weakref__
            return None


def _is_inner(optimizer: object, wrapper: FrameType) -> bool:
    """Whether `wrapper`, torch's frame around a step, runs inside another step of the optimizer."""
    code = wrapper.f_code
    frame = wrapper.f_back
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        if frame.f_code is code:
            values = frame.f_locals
            arguments = values.get("args")
            first = arguments[0] if arguments else values.get("self", values.get("obj"))
            if first is optimizer:
                return True
        frame = frame.f_back
    return False


class _NoDynamo:
    """While entered, TorchDynamo leaves the frames of this thread alone: a step that runs eagerly
    inside a compiled region must not have our functions compiled."""

    def __init__(self, torch: Any) -> None:
        module = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        self._set = getattr(module, "set_eval_frame", None)
        self._skip = getattr(module, "skip_code", None)

    def never_compile(self, function: Any) -> None:
        if self._skip is not None:
            self._skip(function.__code__)

    def call(self, action: Callable[[Any, FrameType], None], step: Any, frame: FrameType) -> None:
        if self._set is None:
            action(step, frame)
            return
        before = self._set(None)
        try:
            action(step, frame)
        finally:
            self._set(before)


def _compiling_test(torch: Any) -> Callable[[], bool]:
    """torch.compiler.is_compiling where there is one (2.1 and later)."""
    test = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return test if callable(test) else lambda: False


class OptimizerSteps:
    """The patch. `install()` puts it in, `remove()` takes it out if it is still ours."""

    def __init__(self, torch: Any, recording: Callable[[], bool], on_step: OnStep) -> None:
        self._optimizer_class: Any = sys.modules["torch.optim.optimizer"].Optimizer
        self._original: Any = None
        self._replacement: Any = None
        self._is_compiling = _compiling_test(torch)
        self._recording = recording
        self._on_step = on_step
        self._no_dynamo = _NoDynamo(torch)

    def install(self) -> bool:
        """False where this torch has no such method: then steps are not noticed."""
        original = self._optimizer_class.__dict__.get("_optimizer_step_code")
        if not callable(original):
            return False
        if getattr(original, "_msmemscope", False):
            return True
        counters = _Counters()
        is_compiling = self._is_compiling
        recording = self._recording
        on_step = self._on_step

        def note(optimizer: Any, wrapper: FrameType) -> None:
            if recording() and not _is_inner(optimizer, wrapper):
                serial, count = counters.next_step(optimizer)
                on_step(serial, count, type(optimizer).__name__)

        call_outside_dynamo = self._no_dynamo.call

        def _optimizer_step_code(self: Any) -> None:
            if is_compiling():
                return original(self)  # type: ignore[no-any-return]
            original(self)
            try:
                call_outside_dynamo(note, self, sys._getframe(1))
            except Exception:  # the step is the program's, the count only ours
                pass

        self._no_dynamo.never_compile(_optimizer_step_code)
        self._no_dynamo.never_compile(_NoDynamo.call)
        _optimizer_step_code.__doc__ = original.__doc__
        _optimizer_step_code._msmemscope = True  # type: ignore[attr-defined]
        self._original = original
        self._replacement = _optimizer_step_code
        self._optimizer_class._optimizer_step_code = _optimizer_step_code
        return True

    def remove(self) -> None:
        current = self._optimizer_class.__dict__.get("_optimizer_step_code")
        if self._replacement is not None and current is self._replacement:
            self._optimizer_class._optimizer_step_code = self._original
        self._replacement = None
