"""Command mode: called by the preloaded agent when an unchanged script's Python is about to run.

Importing the package already starts what the launcher asked for; begin() is there for an agent that
finds the package imported before the launcher's settings were.
"""

from __future__ import annotations

from . import _config
from ._session import session


def begin() -> None:
    """Starts as MSMEMSCOPE_CONFIG says. Never raises, once only."""
    try:
        inherited = _config.inherited()
        if inherited is not None and session.agent.available:
            session.begin(inherited)
    except Exception:  # the script is the user's, and about to begin
        pass
