"""msmemscope: why does this AI process use more and more memory, and which line is to blame?

    import msmemscope

    msmemscope.config(analysis="leaks")
    msmemscope.start()
    for batch in loader:
        train(batch)
        msmemscope.step()  # optional: optimizer.step() is noticed without it
    msmemscope.stop()      # the diagnosis on stderr, the results in a directory

Importing it puts the hooks in (no LD_PRELOAD, no device, not even torch is needed) and records
nothing until start(). MSMEMSCOPE_DISABLE=1 turns everything off.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ._session import session as _session
from ._version import __version__

if TYPE_CHECKING:
    from .analyzer import (
        analyze,
        check_inefficient,
        check_leaks,
        get_analyzer_config,
        list_analyzers,
    )

__all__ = [
    "__version__",
    "analyze",
    "check_inefficient",
    "check_leaks",
    "config",
    "expect_growth",
    "get_analyzer_config",
    "list_analyzers",
    "shutdown",
    "start",
    "step",
    "stop",
]

# Offline analysis: imported when it is used, for programs that are watched never use it.
_ANALYZER = frozenset(
    ("analyze", "check_inefficient", "check_leaks", "get_analyzer_config", "list_analyzers")
)

# Names of msMemScope's API that are not there yet. They are not faked: using one says so.
_LATER = frozenset(
    (
        "RecordFunction",
        "TakeSnapshot",
        "cleanup_framework_hooks",
        "describe",
        "enable_npu_sanitizer",
        "init_framework_hooks",
        "take_snapshot",
        "tracer",
        "watcher",
    )
)


def config(*args: object, **options: str) -> None:
    """Sets what is recorded and where it goes. Every value is a string.

    device       auto (default), cpu, npu[:N], cuda[:N], host, or a comma list; host is malloc and
                 mmap: "auto,host"
    host_sample  of host memory a block every so many bytes, scaled up: 512K; 0 (default): all
    analysis     leaks (default), decompose, inefficient, oom[:K], none, or a comma list
    call_stack   c[:DEPTH], python[:DEPTH], or a comma list; Python stacks are always recorded
    level        op (default), kernel; events: alloc, free, launch, access, traceback, none
    output_path  where runs go, memscopeDumpResults by default (once)
    format       csv, db: also write msMemScope's files (once); watch: START,END[,full-content]
    max_trace_size  500M, 10G: disk of a process's trace; what is older is folded
    report_to    stderr (default), stdout, none, or a file for the diagnosis

    Options not given go back to their defaults, except those marked `once`.
    """
    if args:
        raise TypeError("config() takes no positional arguments")
    _session.config(dict(options))


def start() -> None:
    """Begins to record; harmless while recording."""
    _session.start()


def stop() -> None:
    """Ends recording and diagnoses. The report is made by another process, waited for at exit."""
    _session.stop()


def step() -> None:
    """Ends a step. Nothing while not recording."""
    _session.step()


def shutdown() -> None:
    """Stops, and takes every hook out again."""
    _session.shutdown()


def expect_growth(pattern: str) -> None:
    """Declares growth that is meant: a glob on FILE:FUNCTION of the allocating line or on the
    owner. What matches is reported as suppressed, never as a verdict."""
    _session.expect_growth(pattern)


def __getattr__(name: str) -> object:
    if name in _ANALYZER:
        from . import analyzer

        return getattr(analyzer, name)
    if name in _LATER:
        message = f"msmemscope.{name} comes with a later version (this is {__version__})"
        # `from msmemscope import x` would hide an AttributeError's text behind its own.
        if sys._getframe(1).f_code.co_name == "_handle_fromlist":
            raise ImportError(message, name=__name__)
        raise AttributeError(message)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Where the agent has brought us into a program that knows nothing of us, the spec says so.
_session.arrive(getattr(__spec__, "loader_state", None))
