"""Threads that fight over one address, and recording that starts and stops under load."""

import json
import pathlib
import subprocess


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=900, check=False
    )


def test_four_threads_passing_one_address_are_paired_as_they_were(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    passes = 10_000_000 if full else 500_000
    agent = build / "libmsmemscope_agent.so"
    done = run(build / "hostile" / "pass_around", agent, tmp_path, passes)
    assert done.returncode == 0, done.stderr
    checked = run(build / "hostile" / "check_pairs", tmp_path)
    print(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_after_thousands_of_starts_and_stops_what_looks_alive_is_alive(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool
) -> None:
    rounds = 10_000 if full else 200
    agent = build / "libmsmemscope_agent.so"
    done = run(build / "hostile" / "start_stop", agent, tmp_path, rounds)
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["slots_patched"] == 0, "every slot is restored at shutdown"
    assert status["slots_restored"] > 0
    assert status["slots_left"] == 0
    checked = run(build / "hostile" / "check_live", tmp_path)
    print(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr
