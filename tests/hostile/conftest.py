"""Where the hostile programs are built."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build tree with the agent and the hostile programs."""
    path = pathlib.Path(os.environ.get("MSMEMSCOPE_BUILD_DIR", ROOT / "build"))
    assert (path / "hostile" / "pass_around").exists(), f"not built: {path}/hostile"
    return path


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether everything is to be run (make test-full), or a short version."""
    return os.environ.get("MEMSCOPE_TEST_FULL") == "1"
