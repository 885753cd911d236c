"""Programs that close descriptors which they did not open: ours goes, theirs stay whole."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")


def test_a_daemon_that_closes_everything_keeps_its_files_and_its_trace(
    run_hostile: Callable[..., Any],
) -> None:
    done = run_hostile(
        """
        import os, torch, msmemscope
        msmemscope.config(analysis="none", report_to="none")
        msmemscope.start()
        kept = [torch.zeros(100)]
        os.closerange(3, 1000)
        files = [os.open(f"file{i}", os.O_RDWR | os.O_CREAT) for i in range(200)]
        for _ in range(20_000):  # many slots, so that the log is written to
            torch.zeros(100)
        pid = os.fork()  # the child lets go of its parent's log
        if pid == 0:
            torch.zeros(100)
            for file in files: os.fstat(file)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        msmemscope.stop()
        msmemscope.shutdown()
        print(sum(os.fstat(file).st_size for file in files))
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_the_log_does_not_become_stdin_stdout_or_stderr(run_hostile: Callable[..., Any]) -> None:
    done = run_hostile(
        """
        import os, torch, msmemscope
        msmemscope.config(analysis="none", report_to="none")
        msmemscope.start()
        os.close(0)
        kept = [torch.zeros(100)]
        print(os.open("mine", os.O_RDWR | os.O_CREAT))
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
