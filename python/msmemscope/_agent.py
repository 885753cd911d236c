"""The agent as Python sees it: a ctypes binding of src/capture/agent_api.h.

`load()` gives the process's one agent: the preloaded copy in command mode, else the package's own
library. Where there is none, or MSMEMSCOPE_DISABLE=1 is set, it gives an inert `Agent` whose
functions do nothing, so that a program that uses the API runs unharmed.

Functions marked [GIL] in the header are called with the GIL held, all others without it.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _locate

TABLE_VERSION = 1

# Numbers of src/trace/record_table.h.
RECORD_CONFIG = 27
RECORD_SOURCE = 28
RECORD_HOLDER = 48
STEP_API = 1
STEP_OPTIMIZER = 4


class AgentError(Exception):
    """A call of the agent failed; the message is one line for the user."""


class Agent:
    """The inert agent, and the interface of the real one."""

    available = False
    preloaded = False
    reason = ""  # why nothing is recorded, for the user

    def version(self) -> str:
        return ""

    def configure(self, key: str, value: str) -> None:
        pass

    def install(self) -> None:
        pass

    def refresh(self) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def exiting(self) -> None:
        pass

    def step(self, source: int, index: int, optimizer: int = 0, name: str = "") -> None:
        pass

    def record(self, kind: int, numbers: Sequence[int], strings: Sequence[str]) -> None:
        pass

    def python_stacks_on(self) -> bool:
        return False

    def python_finalizing(self) -> None:
        pass

    def python_stack_text(self) -> str:
        return ""

    def fork_before(self) -> None:
        pass

    def fork_after_parent(self) -> None:
        pass

    def fork_after_child(self) -> None:
        pass

    def preexisting(self, address: int, size: int, where: int) -> None:
        pass

    def status(self) -> dict[str, Any]:
        return {}

    def stop_at_exit(self) -> None:
        pass


_STRING = ctypes.c_char_p
_INT = ctypes.c_int
_SIZE = ctypes.c_size_t
_U64 = ctypes.c_uint64

# The table's functions in order: name, holds the GIL, result, arguments.
_FUNCTIONS: tuple[tuple[str, bool, Any, tuple[Any, ...]], ...] = (
    ("agent_version", False, _STRING, ()),
    ("last_error", False, _STRING, ()),
    ("configure", False, _INT, (_STRING, _STRING)),
    ("install", False, _INT, ()),
    ("refresh", False, _INT, ()),
    ("start", False, _INT, ()),
    ("stop", False, _INT, ()),
    ("shutdown", False, _INT, ()),
    ("exiting", False, _INT, ()),
    ("step", False, _INT, (ctypes.c_uint32, _U64, _U64, _STRING)),
    (
        "record",
        False,
        _INT,
        (
            ctypes.c_uint32,
            ctypes.POINTER(_U64),
            _SIZE,
            ctypes.POINTER(_STRING),
            ctypes.POINTER(_SIZE),
            _SIZE,
        ),
    ),
    ("python_stacks_on", True, _INT, ()),
    ("python_finalizing", False, None, ()),
    ("python_stack_text", True, _SIZE, (ctypes.c_void_p, _SIZE)),
    ("fork_before", False, None, ()),
    ("fork_after_parent", False, None, ()),
    ("fork_after_child", False, None, ()),
    ("preexisting", False, _INT, (_U64, _U64, ctypes.c_uint32)),
    ("status", False, _SIZE, (ctypes.c_void_p, _SIZE)),
    ("stop_at_exit", False, _INT, ()),
)


class _Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name, _, _, _ in _FUNCTIONS),
    ]


class NativeAgent(Agent):
    """The agent behind a `msmemscope_agent_v1` table."""

    available = True

    def __init__(self, library: ctypes.CDLL, preloaded: bool) -> None:
        entry = library.msmemscope_agent
        entry.restype = ctypes.POINTER(_Table)
        entry.argtypes = ()
        pointer = entry()
        if not pointer:
            raise AgentError("the agent stands down (another copy of it is at work)")
        table = pointer.contents
        if table.version != TABLE_VERSION or table.size < ctypes.sizeof(_Table):
            raise AgentError(
                f"the agent's interface is version {table.version} of {table.size} bytes, "
                f"this package needs version {TABLE_VERSION} of {ctypes.sizeof(_Table)}: "
                "reinstall msmemscope"
            )
        self.preloaded = preloaded
        self._library = library  # keeps it loaded
        self._call: dict[str, Callable[..., Any]] = {}
        for name, holds_gil, result, arguments in _FUNCTIONS:
            make = ctypes.PYFUNCTYPE if holds_gil else ctypes.CFUNCTYPE
            self._call[name] = make(result, *arguments)(getattr(table, name))
        self._step = self._call["step"]

    def _checked(self, name: str, *arguments: Any) -> None:
        if self._call[name](*arguments) != 0:
            message: bytes = self._call["last_error"]() or b""
            raise AgentError(message.decode("utf-8", "replace") or f"{name} failed")

    def _text(self, name: str) -> str:
        size = 4096
        while True:
            buffer = ctypes.create_string_buffer(size)
            needed = int(self._call[name](buffer, size))
            if needed < size:
                return buffer.raw[:needed].decode("utf-8", "replace")
            size = needed + 1024  # it may have grown between the two calls

    def version(self) -> str:
        text: bytes = self._call["agent_version"]() or b""
        return text.decode("utf-8", "replace")

    def configure(self, key: str, value: str) -> None:
        self._checked("configure", os.fsencode(key), os.fsencode(value))

    def install(self) -> None:
        self._checked("install")

    def refresh(self) -> None:
        self._checked("refresh")

    def start(self) -> None:
        self._checked("start")

    def stop(self) -> None:
        self._checked("stop")

    def shutdown(self) -> None:
        self._checked("shutdown")

    def exiting(self) -> None:
        self._checked("exiting")

    def step(self, source: int, index: int, optimizer: int = 0, name: str = "") -> None:
        self._step(source, index, optimizer, name.encode("utf-8", "replace") if name else None)

    def record(self, kind: int, numbers: Sequence[int], strings: Sequence[str]) -> None:
        texts = [text.encode("utf-8", "surrogateescape") for text in strings]
        self._checked(
            "record",
            kind,
            (_U64 * len(numbers))(*numbers),
            len(numbers),
            (_STRING * len(texts))(*texts),
            (_SIZE * len(texts))(*(len(text) for text in texts)),
            len(texts),
        )

    def python_stacks_on(self) -> bool:
        return bool(self._call["python_stacks_on"]() == 0)

    def python_finalizing(self) -> None:
        self._call["python_finalizing"]()

    def python_stack_text(self) -> str:
        return self._text("python_stack_text")

    def fork_before(self) -> None:
        self._call["fork_before"]()

    def fork_after_parent(self) -> None:
        self._call["fork_after_parent"]()

    def fork_after_child(self) -> None:
        self._call["fork_after_child"]()

    def preexisting(self, address: int, size: int, where: int) -> None:
        self._checked("preexisting", address, size, where)

    def status(self) -> dict[str, Any]:
        parsed = json.loads(self._text("status") or "{}")
        return parsed if isinstance(parsed, dict) else {}

    def stop_at_exit(self) -> None:
        self._checked("stop_at_exit")


def _preloaded() -> ctypes.CDLL | None:
    whole_process = ctypes.CDLL(None)
    return whole_process if hasattr(whole_process, "msmemscope_agent") else None


def _in_main_interpreter() -> bool:
    """The agent is one a process; a sub-interpreter's end must not be the end of its recording."""
    api = ctypes.PyDLL(None)
    try:
        current, main = api.PyInterpreterState_Get, api.PyInterpreterState_Main
    except AttributeError:
        return True
    current.restype = main.restype = ctypes.c_void_p
    return bool(current() == main())


def load() -> Agent:
    """The process's agent; an inert one that knows the reason where there can be none."""
    inert = Agent()
    if os.environ.get("MSMEMSCOPE_DISABLE", "") not in ("", "0"):
        inert.reason = "MSMEMSCOPE_DISABLE is set"
        return inert
    if not _in_main_interpreter():
        inert.reason = "this is a sub-interpreter: only the main one is watched"
        return inert
    try:
        library = _preloaded()
        if library is not None:
            return NativeAgent(library, preloaded=True)
        path = _locate.library()
        if path is None:
            place = os.environ.get("MSMEMSCOPE_BUILD_DIR") or "the package"
            raise AgentError(f"{_locate.LIBRARY} is not in {place}")
        return NativeAgent(ctypes.CDLL(path), preloaded=False)
    except Exception as error:  # whatever it is, the program goes on without us
        inert.reason = " ".join(str(error).split())
        return inert
