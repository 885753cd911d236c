"""Libraries that come and go while everything else happens too."""

import json
import pathlib
import subprocess

import pytest


@pytest.mark.parametrize(("plugin", "threads"), [("storm", 1), ("busy", 64)])
def test_nothing_breaks_while_libraries_come_and_go(
    build: pathlib.Path, tmp_path: pathlib.Path, full: bool, plugin: str, threads: int
) -> None:
    hostile = build / "hostile"
    done = subprocess.run(
        [
            str(hostile / "dlopen_storm"),
            str(build / "libmsmemscope_agent.so"),
            str(tmp_path),
            str(hostile / f"lib{plugin}_plugin.so"),  # a busy one's constructors allocate
            "5000" if full else "500",
            str(threads),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["slots_patched"] == 0, "every slot is restored at shutdown"
    assert status["slots_restored"] > 0
    assert status["slots_left"] == 0
