"""More threads, one after another, than the agent has lanes for at once."""

import json
import pathlib
import subprocess


def test_threads_born_and_dead_by_the_thousand_lose_no_event(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    threads = 1_000_000 if full else 20_000
    done = subprocess.run(
        [
            str(build / "hostile" / "thread_churn"),
            str(build / "libmsmemscope_agent.so"),
            str(tmp_path),
            str(threads),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["dropped"] == 0
    assert status["events"]["alloc"] == threads, "each thread of the recording made one tensor"
    assert status["events"]["free"] == threads
