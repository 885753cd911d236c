"""Forks in awkward places: the program neither hangs nor loses a child."""

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from conftest import count_events

pytest.importorskip("torch")

QUIET = "msmemscope.config(analysis='none', report_to='none')"


def test_the_first_tensor_may_come_in_a_call_back_around_fork(
    run_hostile: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    # Python calls `before` call-backs in reverse: these run while ours has run already.
    done = run_hostile(
        f"""
        import os, torch
        def tensor(): torch.zeros(100)
        os.register_at_fork(before=tensor, after_in_parent=tensor, after_in_child=tensor)
        import msmemscope
        {QUIET}
        msmemscope.start()
        pid = os.fork()
        if pid == 0:
            torch.zeros(100)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    # One trace a process, though the child had a tensor before our own call-back.
    assert len(list(tmp_path.glob("memscopeDumpResults/run-*/*/trace.msm"))) == 2


def test_a_package_loaded_twice_does_not_hang_a_fork(run_hostile: Callable[..., Any]) -> None:
    done = run_hostile(
        f"""
        import importlib, os, sys, torch, msmemscope
        importlib.reload(msmemscope)
        for name in [name for name in sys.modules if name.startswith("msmemscope")]:
            del sys.modules[name]
        import msmemscope
        {QUIET}
        msmemscope.start()
        torch.zeros(100)
        pid = os.fork()
        if pid == 0:
            torch.zeros(100)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def test_threads_fork_while_others_allocate_and_start_and_stop(
    run_hostile: Callable[..., Any],
) -> None:
    done = run_hostile(
        f"""
        import os, threading, warnings
        import torch, msmemscope
        warnings.simplefilter("ignore")  # of threads at fork
        {QUIET}
        msmemscope.start()
        ended, codes = threading.Event(), []
        def allocate():
            while not ended.is_set(): torch.zeros(3000)
        def start_and_stop():
            while not ended.is_set():
                msmemscope.stop()
                msmemscope.start()
        def fork():
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    torch.ones(50)
                    os._exit(7)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        others = [threading.Thread(target=t) for t in (allocate, allocate, start_and_stop)]
        forks = [threading.Thread(target=fork) for _ in range(3)]
        for thread in others + forks: thread.start()
        for thread in forks: thread.join()
        ended.set()
        for thread in others: thread.join()
        print(codes == [7] * 60)
        """
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


OS_EXIT = f"""
    import os, signal, torch, msmemscope
    {QUIET}
    msmemscope.start()
    torch.zeros(100)
    for child in range(60):
        pid = os.fork()
        if pid == 0:
            kept = [torch.zeros(10) for _ in range(1000 + child)]
            if child == 3: os.kill(os.getpid(), signal.SIGKILL)
            os._exit(7)
        os.waitpid(pid, 0)
"""


def test_children_that_end_without_an_exit_leave_no_slab_and_every_event(
    run_hostile: Callable[..., Any], build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    done = run_hostile(OS_EXIT)
    assert (done.returncode, done.stderr) == (0, "")
    traces = [path.parent for path in tmp_path.glob("memscopeDumpResults/run-*/*/trace.msm")]
    assert len(traces) == 61
    counted = sorted(count_events(build, trace)["allocs"] for trace in traces)
    assert counted[1:] == [1000 + child for child in range(60)]  # [0] is the parent's
    assert all(count_events(build, trace)["damage"] == 0 for trace in traces)
    assert list(tmp_path.glob("memscopeDumpResults/run-*/*/hot.slab")) == []


def test_workers_that_come_and_go_do_not_fill_the_disk_meanwhile(
    run_hostile: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    done = run_hostile(
        OS_EXIT.replace("import os,", "import glob, time, os,")
        + """
    slabs = lambda: len(glob.glob("memscopeDumpResults/run-*/*/hot.slab"))
    deadline = time.monotonic() + 40
    torch.zeros(100)
    while slabs() > 1 and time.monotonic() < deadline:
        msmemscope.step()  # the agent's thread comes back after a fork with a step
        time.sleep(0.1)
    print(slabs())
    """
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), "but the parent's own"


def test_workers_that_live_until_the_interpreter_ends_leave_no_slab(
    run_hostile: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    # torch has imported multiprocessing before us, so that its atexit function, which ends the
    # workers, comes after ours.
    done = run_hostile(
        f"""
        import multiprocessing.util, os, time, torch, msmemscope
        {QUIET}
        msmemscope.start()
        torch.zeros(100)
        def work(queue):
            torch.zeros(100)
            queue.put(1)
            time.sleep(600)
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        worker = context.Process(target=work, args=(queue,), daemon=True)
        worker.start()
        queue.get()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("memscopeDumpResults/run-*/*/trace.msm"))) == 2
    assert list(tmp_path.glob("memscopeDumpResults/run-*/*/hot.slab")) == []


def test_the_launcher_seals_what_a_killed_program_left(
    run_command: Callable[..., Any], build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    program = "import os, torch; torch.zeros(10); torch.zeros(20); os.kill(os.getpid(), 9)"
    done = run_command("--report-to=none", sys.executable, "-c", program)
    assert done.returncode == -9, done.stderr
    (trace,) = tmp_path.glob("memscopeDumpResults/run-*/*/")
    assert not (trace / "hot.slab").exists()
    found = count_events(build, trace)
    assert (found["allocs"], found["damage"]) == (2, 0)
    (summary,) = json.loads(run_command("info", "--json", trace).stdout)["inputs"]
    assert (summary["ended"], summary["complete"]) == ("killed", True)
