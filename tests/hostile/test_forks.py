"""Forks in awkward places: the program neither hangs nor loses a child."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

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
