"""What the package says to the user: single lines, on stderr only, never an exception."""

from __future__ import annotations

import sys

_said: set[str] = set()


def say(text: str) -> None:
    """Prints one line, `msmemscope: text`."""
    raw_line(f"msmemscope: {text}")


def say_once(text: str) -> None:
    """As say(), but the same text only once a process."""
    if text not in _said:
        _said.add(text)
        say(text)


def raw_line(line: str) -> None:
    """Prints a line as it is. A closed or missing stderr is not an error of the program's."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except Exception:  # nothing is worth disturbing the program for
        pass
