"""What `import msmemscope` gives, without torch and without an agent."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msmemscope
import pytest
from conftest import ROOT, RunChild

LATER = [
    "take_snapshot",
    "TakeSnapshot",
    "RecordFunction",
    "tracer",
    "watcher",
    "init_framework_hooks",
    "cleanup_framework_hooks",
    "enable_npu_sanitizer",
    "describe",
]


def test_names() -> None:
    assert sorted(msmemscope.__all__) == sorted(
        [
            *("config", "start", "stop", "step", "shutdown", "expect_growth", "__version__"),
            *("analyze", "check_inefficient", "check_leaks"),
            *("get_analyzer_config", "list_analyzers"),
        ]
    )


def test_the_version_is_the_build_s() -> None:
    text = (ROOT / "CMakeLists.txt").read_text()
    built = re.search(r"project\(msmemscope VERSION ([0-9.]+)", text)
    project = re.search(
        r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert built
    assert project
    assert msmemscope.__version__ == built.group(1) == project.group(1)


@pytest.mark.parametrize("name", LATER)
def test_a_name_of_a_later_version_says_so(name: str) -> None:
    with pytest.raises(AttributeError, match=f"msmemscope.{name} comes with a later version"):
        getattr(msmemscope, name)
    with pytest.raises(ImportError, match=f"msmemscope.{name} comes with a later version"):
        exec(f"from msmemscope import {name}")
    assert not hasattr(msmemscope, name)


def test_an_unknown_name_is_unknown() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'stat'"):
        msmemscope.stat  # noqa: B018


def test_config_takes_keywords_only() -> None:
    with pytest.raises(TypeError, match=r"^config\(\) takes no positional arguments$"):
        msmemscope.config("leaks")


def test_expect_growth_takes_a_pattern() -> None:
    with pytest.raises(TypeError):
        msmemscope.expect_growth(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="glob"):
        msmemscope.expect_growth(" ")


def test_disabled_everything_can_be_called_and_nothing_happens(run_python: RunChild) -> None:
    child = run_python(
        """
        import msmemscope
        msmemscope.config(analysis="leaks")
        msmemscope.start()
        msmemscope.step()
        msmemscope.expect_growth("*:cache")
        msmemscope.stop()
        msmemscope.shutdown()
        print("done")
        """,
        env={"MSMEMSCOPE_DISABLE": "1"},
    ).ok()
    assert child.stdout == "done\n"
    assert child.said() == ["msmemscope: nothing is recorded: MSMEMSCOPE_DISABLE is set"]
    assert child.processes() == []


def test_a_missing_library_is_one_line_and_no_error(run_python: RunChild, tmp_path: Path) -> None:
    child = run_python(
        "import msmemscope; msmemscope.start(); msmemscope.start(); msmemscope.stop(); print(1)",
        env={"MSMEMSCOPE_BUILD_DIR": str(tmp_path)},
    ).ok()
    assert child.stdout == "1\n"
    assert len(child.said()) == 1
    assert "libmsmemscope_agent.so is not in" in child.stderr


def test_a_damaged_library_is_one_line_and_no_error(run_python: RunChild, tmp_path: Path) -> None:
    (tmp_path / "libmsmemscope_agent.so").write_bytes(b"\x7fELF nonsense")
    child = run_python(
        "import msmemscope; msmemscope.start(); print(1)",
        env={"MSMEMSCOPE_BUILD_DIR": str(tmp_path)},
    ).ok()
    assert child.stdout == "1\n"
    assert len(child.said()) == 1


def test_the_import_is_light_and_silent(run_python: RunChild) -> None:
    child = run_python(
        """
        import sys
        before = set(sys.modules)
        import msmemscope
        new = set(sys.modules) - before
        heavy = new & {"torch", "numpy", "subprocess", "ast", "typing_extensions", "asyncio",
                       "multiprocessing", "inspect", "linecache", "logging"}
        assert not heavy, heavy
        """
    ).ok()
    assert child.stdout == child.stderr == ""


def test_python_m_hands_over_to_the_command(run_python: RunChild, tmp_path: Path) -> None:
    binary = tmp_path / "msmemscope"
    binary.write_text('#!/bin/sh\necho "command: $@"\nexit 7\n')
    binary.chmod(0o755)
    import subprocess

    from conftest import _OUTSIDE

    done = subprocess.run(
        [sys.executable, "-m", "msmemscope", "analyze", "a b"],
        env={**_OUTSIDE, "MSMEMSCOPE_BUILD_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "command: analyze a b\n")
    binary.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "msmemscope"],
        env={**_OUTSIDE, "MSMEMSCOPE_BUILD_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
