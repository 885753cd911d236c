"""Where the agent's library and the command lie: in the package, or in a build tree.

MSMEMSCOPE_BUILD_DIR names a CMake build directory and wins, so that the package runs from a
checkout without being installed.
"""

from __future__ import annotations

import os
import sys

LIBRARY = "libmsmemscope_agent.so"
COMMAND = "msmemscope"

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _first_file(*candidates: str) -> str | None:
    return next((path for path in candidates if os.path.isfile(path)), None)


def library() -> str | None:
    """Absolute path of the agent, or None where there is none."""
    build = os.environ.get("MSMEMSCOPE_BUILD_DIR")
    if build:
        return _first_file(os.path.join(os.path.abspath(build), LIBRARY))
    return _first_file(os.path.join(_PACKAGE, "lib", LIBRARY))


def command() -> str | None:
    """Absolute path of the command's binary, or None where there is none."""
    build = os.environ.get("MSMEMSCOPE_BUILD_DIR")
    if build:
        return _first_file(os.path.join(os.path.abspath(build), COMMAND))
    return _first_file(os.path.join(_PACKAGE, "bin", COMMAND))


def is_command() -> bool:
    """Whether this process is `msmemscope …` or `python -m msmemscope …`: it becomes the binary at
    once, and there is nothing to watch."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # while the package is imported for it
        return COMMAND in getattr(sys, "orig_argv", [])
    return os.path.basename(program) == COMMAND
