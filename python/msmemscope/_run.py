"""Which run this process belongs to, and which place it has in it."""

from __future__ import annotations

import os
import time

from . import _config

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def rank() -> int | None:
    for name in _RANK_VARIABLES:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return None


def run_id() -> str:
    """MSMEMSCOPE_RUN_ID; else, under a launcher of ranks, start time and pid of the parent, which
    all ranks of a node share; else time and pid of this process. Left in the environment, so that
    children write into the same run."""
    given = os.environ.get(_config.RUN_ID, "")
    if given:
        return given
    if "RANK" in os.environ:
        parent = os.getppid()
        made = f"{_stamp(_start_time(parent))}-{parent}"
    else:
        made = f"{_stamp(time.time())}-{os.getpid()}"
    os.environ[_config.RUN_ID] = made
    return made


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))


def _start_time(pid: int) -> float:
    """When a process started, seconds since the epoch (proc(5): field 22 of stat, in ticks since
    boot; btime of /proc/stat is when that was)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as stat:
            boot = next(int(line.split()[1]) for line in stat if line.startswith("btime"))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return 0.0
