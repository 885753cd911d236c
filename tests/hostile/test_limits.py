"""Limits and vanished directories: one line, no report, the program goes on unharmed."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
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


FULL_LOG = """
    import resource, signal, sys, time, torch, msmemscope
    msmemscope.config(report_to="none", analysis="none")
    msmemscope.start()
    kept = [torch.zeros(100)]
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    for _ in range(50_000): torch.zeros(100)
    time.sleep(1.5)
    print("unharmed", flush=True)
"""


def analyzed(build: pathlib.Path, *words: object) -> Any:
    done = subprocess.run([build / "msmemscope", *words], capture_output=True, check=True)
    return json.loads(done.stdout)


def test_a_log_that_cannot_grow_leaves_what_it_lacks_in_the_slab_and_says_so(
    run_hostile: Callable[..., Any], build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    done = run_hostile(FULL_LOG)
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
    assert done.stderr.startswith("msmemscope: recording: cannot write to /"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert len(list(tmp_path.glob("memscopeDumpResults/run-*/*/hot.slab"))) == 1

    output = tmp_path / "memscopeDumpResults"
    result = analyzed(build, "analyze", "--json", output)
    assert [one["complete"] for one in result["inputs"]] == [False]
    assert [one["ended"] for one in result["inputs"]] == ["exit"], "recorded behind the gap"
    (gap,) = result["dropped"]["gaps"]
    assert "cannot write to /" in gap["reason"]
    assert "File too large" in gap["reason"]
    assert gap["to_ns"] - gap["from_ns"] > 1e9, "until the end"
    text = subprocess.run(
        [build / "msmemscope", "analyze", output], capture_output=True, text=True, check=True
    ).stdout
    assert "incomplete" in text
    assert "File too large" in " ".join(text.split())
    (summary,) = analyzed(build, "info", "--json", output)["inputs"]
    assert summary["complete"] is False
    assert summary["damage"] == []
    assert any("cannot write to /" in notice["why"] for notice in summary["notices"])


def test_what_the_agent_itself_could_not_write_is_in_the_slab_too(
    run_hostile: Callable[..., Any], build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    # A setting, recorded by the program's first step, goes through the agent's own lane.
    done = run_hostile(
        FULL_LOG.replace("for _ in range(50_000): torch.zeros(100)", "")
        + """
    msmemscope.stop()
    from msmemscope._session import session
    session.agent.record(27, (), ("said", "after " * 2000))
    session.agent.record(27, (), ("also", "then"))
    """
    )
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
    (summary,) = analyzed(build, "info", "--json", tmp_path / "memscopeDumpResults")["inputs"]
    assert summary["settings"]["also"] == "then", done.stderr
    assert summary["settings"]["said"] == "after " * 2000
    assert summary["damage"] == []


def test_the_launcher_says_why_there_is_no_trace(run_command: Callable[..., Any]) -> None:
    program = "import torch; torch.zeros(10); print('unharmed')"
    done = run_command("-o", "/proc/nowhere", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (0, "unharmed\n")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("msmemscope: nothing was recorded: cannot make /proc/nowhere"), last
    assert "made no tensor" not in done.stderr


@pytest.fixture
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file system with room for a slab and little more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={(64 << 20) + (300 << 10)}", "none", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=False)


def test_a_disk_that_is_full_from_the_start(
    run_command: Callable[..., Any], small_disk: pathlib.Path
) -> None:
    (small_disk / "filler").write_bytes(bytes(2 << 20))
    program = "import torch; torch.zeros(10); print('unharmed')"
    done = run_command("-o", small_disk / "out", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (0, "unharmed\n")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("msmemscope: nothing was recorded: cannot make "), last
    assert "No space left on device" in last
    assert sorted(path.name for path in small_disk.rglob("*")) == ["filler", "out"]


def test_a_disk_that_fills_up(
    run_command: Callable[..., Any], build: pathlib.Path, small_disk: pathlib.Path
) -> None:
    program = """
import torch
kept = []
for step in range(3000):
    exec(f"def f{step}(): kept.append(torch.zeros(step + 100))")  # stacks that do not compress away
    eval(f"f{step}")()
for _ in range(300_000): torch.zeros(100)
print('unharmed')
"""
    done = run_command("-o", small_disk / "out", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (0, "unharmed\n")
    assert "No space left on device" in done.stderr
    assert "incomplete" in done.stderr, done.stderr
    result = analyzed(build, "analyze", "--json", small_disk / "out")
    assert [one["complete"] for one in result["inputs"]] == [False]
    assert len(result["dropped"]["gaps"]) == 1


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


def test_no_descriptors_are_left_when_the_report_is_due(run_hostile: Callable[..., Any]) -> None:
    done = run_hostile(
        """
        import resource, torch, msmemscope
        msmemscope.start()
        kept = []
        for _ in range(60):
            kept.append(torch.zeros(100_000))
            msmemscope.step()
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        msmemscope.stop()
        print("unharmed", flush=True)
        """
    )
    assert (done.returncode, done.stdout) == (0, "unharmed\n"), done.stderr
    lines = done.stderr.splitlines()
    assert any("no report: " in line and "makes it" in line for line in lines), done.stderr
    assert all(line.startswith("msmemscope: ") for line in lines), done.stderr


@pytest.mark.parametrize("option", ["output_path", "report_to"])
def test_a_relative_path_where_the_current_directory_is_gone(
    run_hostile: Callable[..., Any], option: str
) -> None:
    done = run_hostile(
        f"""
        import os, torch, msmemscope
        here = os.getcwd()
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
        msmemscope.config({option}="relative")
        msmemscope.start()
        torch.zeros(100)
        msmemscope.stop()
        os.chdir(here)
        msmemscope.start()  # the wish is still not fulfilled
        msmemscope.config(report_to="none")
        msmemscope.start()
        torch.zeros(100)
        msmemscope.stop()
        print(os.listdir(here))
        """
    )
    assert (done.returncode, done.stdout) == (0, "['memscopeDumpResults']\n"), done.stderr
    assert done.stderr.startswith("msmemscope: nothing is recorded: config(): "), done.stderr
    assert done.stderr.count("\n") == 1
