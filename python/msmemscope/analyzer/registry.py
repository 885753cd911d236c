"""The analyzers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .inefficient import check_inefficient
from .leaks import check_leaks

_CHECKS: dict[str, Callable[..., Any]] = {"leaks": check_leaks, "inefficient": check_inefficient}
_CONFIGS: dict[str, tuple[str, list[str]]] = {
    "leaks": ("LeaksConfig", ["input_path", "mstx_info", "start_index"]),
    "inefficient": (
        "InefficientConfig",
        ["input_path", "mem_size", "inefficient_type", "idle_threshold"],
    ),
}


def list_analyzers() -> list[str]:
    """The names that analyze() takes."""
    return list(_CHECKS)


def _known(analyzer_type: str) -> str:
    if analyzer_type not in _CHECKS:
        raise ValueError(
            f"Unknown analyzer type: {analyzer_type}. Available types are {list_analyzers()}"
        )
    return analyzer_type


def get_analyzer_config(analyzer_type: str) -> dict[str, Any]:
    """{"config_class": the name of its config, "parameters": what analyze() takes for it}."""
    config_class, parameters = _CONFIGS[_known(analyzer_type)]
    return {"config_class": config_class, "parameters": list(parameters)}


def analyze(analyzer_type: str, **kwargs: Any) -> Any:
    """check_leaks(**kwargs) or check_inefficient(**kwargs), by name."""
    return _CHECKS[_known(analyzer_type)](**kwargs)
