"""What happens once torch is there: the agent looks at its libraries, optimizer steps are noticed,
and one self-check shows that tensors are seen.

torch is never imported from here. If it is loaded already we act at once, else at the end of its
import. A device is never touched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._agent import Agent
from ._import_hook import ImportWatch
from ._say import say_once
from ._steps import OnStep, OptimizerSteps

_TORCH = "torch"
_OPTIMIZER = "torch.optim.optimizer"


def _finished(name: str) -> bool:
    """Whether the module is imported to its end (not merely begun)."""
    module = sys.modules.get(name)
    if module is None:
        return False
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)


class TorchGlue:
    def __init__(self, agent: Agent, recording: Callable[[], bool], on_step: OnStep) -> None:
        self._agent = agent
        self._recording = recording
        self._on_step = on_step
        self._steps: OptimizerSteps | None = None
        self._watch: ImportWatch | None = None
        self._checked = False
        self._seeded = False
        self._torch_came_first = _TORCH in sys.modules

    def attach(self) -> None:
        """Acts on what is loaded and waits for what is not. Cheap and harmless to repeat."""
        missing = [name for name in (_OPTIMIZER, _TORCH) if not _finished(name)]
        if missing and self._watch is None:
            self._watch = ImportWatch(missing, self._on_import)
            self._watch.install()
        if not missing:
            self._leave_import()
        if _TORCH in sys.modules:
            self._agent.refresh()
        if not missing:
            self._notice_steps()

    def detach(self) -> None:
        self._leave_import()
        if self._steps is not None:
            self._steps.remove()
            self._steps = None

    def _leave_import(self) -> None:
        if self._watch is not None:
            self._watch.remove()
            self._watch = None

    def _on_import(self, name: str) -> None:
        try:
            if name == _TORCH:
                self._agent.refresh()
            # Not before torch is whole: what is asked for there (torch.compiler) comes last.
            if name == _TORCH or _finished(_TORCH):
                self._notice_steps()
        except Exception as error:  # torch's import must not fail because of us
            say_once(f"torch is not fully watched: {error}")

    def _notice_steps(self) -> None:
        torch = sys.modules.get(_TORCH)
        if torch is None or _OPTIMIZER not in sys.modules or self._steps is not None:
            return
        steps = OptimizerSteps(torch, self._recording, self._on_step)
        if steps.install():
            self._steps = steps
        else:
            say_once(
                "this torch's Optimizer has no _optimizer_step_code: optimizer steps are not "
                "noticed; call msmemscope.step() once a step"
            )

    def self_check(self) -> None:
        """Makes one small CPU storage, once, and looks whether the agent saw it. Done at start(),
        or after the first step where torch came later: no tensors, no trace."""
        if self._checked or not _finished(_TORCH):
            return
        self._checked = True
        torch: Any = sys.modules[_TORCH]
        make = getattr(torch, "UntypedStorage", None)
        if make is None:  # before 1.13
            return
        before = _tensor_events(self._agent.status())
        storage = make(64)  # no operator: neither dispatch modes nor default devices see it
        after = _tensor_events(self._agent.status())
        del storage
        if before and before == after:
            say_once(
                f"torch {getattr(torch, '__version__', '?')} is loaded but its CPU tensors are not "
                "seen: they will be missing from the diagnosis (`msmemscope info` has details)"
            )

    def seed(self) -> None:
        """Tells the agent, once, of the tensors that torch made before the hooks came."""
        if self._seeded:
            return
        self._seeded = True
        if self._torch_came_first and _finished(_TORCH):
            from ._tensors import all_storages

            for address, size, where in all_storages():
                self._agent.preexisting(address, size, where)


def _tensor_events(status: dict[str, Any]) -> tuple[str, ...]:
    """What in the agent's status moves with a tensor; empty where it does not say."""
    return tuple(repr(status[key]) for key in ("live_blocks", "events") if key in status)
