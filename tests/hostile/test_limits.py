"""Limits and vanished directories: one line, no report, the program goes on unharmed."""

import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

LIMITS = {
    # 64 MiB of slab are too many; CPython ignores SIGXFSZ, a program may not.
    "file size": """
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, 10 << 20))
    """,
    "descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_ends_tracing_with_one_line(run_hostile: Callable[..., Any], limit: str) -> None:
    done = run_hostile(
        f"""
        import os, resource, signal, torch, msmemscope
        msmemscope.start()
        exec({textwrap.dedent(LIMITS[limit])!r})
        kept = [torch.zeros(100) for _ in range(100)]
        print(len(kept), flush=True)
        """
    )
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("msmemscope: recording: cannot make /")
    assert lines[0].endswith("; the program goes on untraced")


def test_a_log_that_cannot_grow_leaves_what_it_lacks_in_the_slab(
    run_hostile: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    done = run_hostile(
        """
        import resource, signal, torch, msmemscope
        msmemscope.config(analysis="none", report_to="none")
        msmemscope.start()
        kept = [torch.zeros(100)]
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        for _ in range(50_000): torch.zeros(100)
        print("unharmed", flush=True)
        """
    )
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
    assert done.stderr.startswith("msmemscope: recording: cannot write to /"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert len(list(tmp_path.glob("memscopeDumpResults/run-*/*/hot.slab"))) == 1


def test_start_where_the_current_directory_is_gone(run_hostile: Callable[..., Any]) -> None:
    done = run_hostile(
        """
        import os, torch
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
        import msmemscope
        msmemscope.start()
        torch.zeros(100)
        msmemscope.stop()
        print("unharmed")
        """
    )
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
    assert done.stderr.startswith("msmemscope: nothing is recorded: "), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_sub_interpreter_does_not_end_the_recording(run_hostile: Callable[..., Any]) -> None:
    done = run_hostile(
        """
        import torch, msmemscope
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        msmemscope.config(analysis="none", report_to="none")
        msmemscope.start()
        torch.zeros(100)
        other = interpreters.create("legacy") if hasattr(interpreters, "exec") else (
            interpreters.create(isolated=False))
        interpreters.run_string(other, "import msmemscope; msmemscope.start(); msmemscope.stop()")
        interpreters.destroy(other)
        from msmemscope._session import session
        print(session.agent.status()["recording"])
        """
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
