"""Offline analysis of msMemScope's dumps, with the names of the original.

    import msmemscope

    msmemscope.check_leaks("memscope_dump_1.csv", mstx_info="round", start_index=0)
    msmemscope.check_inefficient("memscope_dump_1.db", mem_size=1 << 20)

or, with the classes:

    from msmemscope.analyzer import LeaksAnalyzer, LeaksConfig

    results = LeaksAnalyzer().analyze(LeaksConfig("memscope_dump_1.csv", "round", 0))

What is found is printed as the original prints it, and returned as data. The work is done by the
command, in another process: a dump of any size takes no memory here.
"""

from __future__ import annotations

from .base import BaseAnalyzer, BaseConfig
from .inefficient import (
    InefficientAnalyzer,
    InefficientBlock,
    InefficientConfig,
    InefficientResult,
    check_inefficient,
)
from .leaks import Leak, LeaksAnalyzer, LeaksConfig, LeaksResult, check_leaks
from .registry import analyze, get_analyzer_config, list_analyzers

__all__ = [
    "BaseAnalyzer",
    "BaseConfig",
    "InefficientAnalyzer",
    "InefficientBlock",
    "InefficientConfig",
    "InefficientResult",
    "Leak",
    "LeaksAnalyzer",
    "LeaksConfig",
    "LeaksResult",
    "analyze",
    "check_inefficient",
    "check_leaks",
    "get_analyzer_config",
    "list_analyzers",
]
