"""The preloaded agent brings the package into a Python that has never heard of it.

The package here is a stand-in that says when it was begun, and in which process.
"""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

BEGIN = """
import os, sys
def begin():
    where = str(__import__("pathlib").Path(__file__).parents[1])
    os.write(2, f"BEGUN {os.getpid()} {where in sys.path}\\n".encode())
"""
SPAWN = """
import multiprocessing, sys
import importlib.util
def f(x):
    importlib.util.find_spec("torch")
    return x + 1
if __name__ == "__main__":
    importlib.util.find_spec("torch")
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(f, [1]))
"""
# Whoever asks for torch has it in mind: that is what we wait for. Here nobody needs to have it.
ASK = "import importlib.util; importlib.util.find_spec('torch')"
SHOW = f"{ASK}\nprint('ran', __name__)"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(build: pathlib.Path, tmp_path: pathlib.Path) -> Run:
    package = tmp_path / "package" / "msmemscope"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_inject.py").write_text(BEGIN)
    (tmp_path / "show.py").write_text(SHOW)
    (tmp_path / "spawn.py").write_text(SPAWN)
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "__main__.py").write_text(SHOW)

    def run_python(
        arguments: Sequence[str], begin: str = BEGIN, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        (package / "_inject.py").write_text(begin)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MSMEMSCOPE_")}
        environment.update(
            LD_PRELOAD=str(build / "libmsmemscope_agent.so"),
            MSMEMSCOPE_CONFIG='{"mode": "command"}',
            MSMEMSCOPE_PYTHONPATH=str(package.parent),
        )
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run_python


def begun(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The processes that were begun, each with its own sys.path left alone."""
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith("BEGUN")]
    assert all(line[2] == "False" for line in lines), "sys.path was touched"
    return [line[1] for line in lines]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show.py"],
        ["-I", "show.py"],
        ["-E", "-S", "show.py"],
        ["-X", "dev", "-W", "error", "show.py"],  # CPython's debug allocators come after us
        ["-c", SHOW],
        ["-m", "module"],
        ["module"],
        ["-"],
    ],
    ids=" ".join,
)
def test_however_python_is_started(run: Run, arguments: list[str]) -> None:
    done = run(arguments, stdin=SHOW)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran __main__\n"
    assert len(begun(done)) == 1
    assert done.stderr.count("\n") == 1, "nothing but the stand-in's own line"


def test_a_program_without_torch_pays_for_nothing(run: Run) -> None:
    done = run(["-c", "import json, sys; print('msmemscope' in sys.modules)"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_asking_again_begins_nothing_again_and_leaves_no_finder(run: Run) -> None:
    program = f"import sys; before = [type(f).__name__ for f in sys.meta_path]\n{ASK}\n{ASK}\n"
    done = run(["-c", program + "print(before, [type(f).__name__ for f in sys.meta_path])"])
    assert done.stdout.count("WaitForTorch") == 1, "only before"
    assert len(begun(done)) == 1


def test_what_we_do_at_exit_comes_last_however_late_torch_comes(run: Run) -> None:
    begin = BEGIN + "    __import__('msmemscope').__spec__.loader_state.append(last)\n"
    begin += "def last():\n    os.write(1, b'last\\n')\n"
    program = "import atexit, os\natexit.register(os.write, 1, b'the program\\n')\n" + ASK
    done = run(["-c", program], begin=begin)
    assert (done.returncode, done.stdout) == (0, "the program\nlast\n"), done.stderr


def test_an_import_of_the_package_gets_this_one(run: Run, tmp_path: pathlib.Path) -> None:
    program = "import msmemscope; print(msmemscope.__file__, msmemscope.__spec__.loader_state)"
    done = run(["-c", program])
    assert done.stdout == f"{tmp_path}/package/msmemscope/__init__.py []\n", done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_are_reached(run: Run, method: str) -> None:
    done = run(["spawn.py", method])
    assert done.stdout == "[2]\n", done.stderr
    # The parent, the worker (or the server it is forked from), and Python's resource tracker.
    processes = begun(done)
    assert len(processes) >= 2
    assert len(set(processes)) == len(processes), "once in each"


def test_the_exit_status_is_the_programs_own(run: Run) -> None:
    assert run(["-c", "raise SystemExit(3)"]).returncode == 3


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        ("def begin():\n    raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("def begin():\n    raise SystemExit(5)", "SystemExit: 5"),
        ("def begin(:", "SyntaxError: "),
        ("", "AttributeError: "),
        ("import no_such_module_at_all", "ModuleNotFoundError: "),
    ],
)
def test_an_error_of_ours_never_reaches_the_program(run: Run, begin: str, reason: str) -> None:
    done = run(["show.py"], begin=begin)
    assert (done.returncode, done.stdout) == (0, "ran __main__\n")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("msmemscope: this program is not traced: ")
    assert reason in done.stderr


def test_a_ctrl_c_that_arrives_meanwhile_is_the_programs(run: Run) -> None:
    done = run(["show.py"], begin="def begin():\n    raise KeyboardInterrupt")
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode != 0
    assert "this program is not traced" not in done.stderr


def test_a_program_without_python_is_left_alone(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", "echo ran"],
        env={
            **os.environ,
            "LD_PRELOAD": str(build / "libmsmemscope_agent.so"),
            "MSMEMSCOPE_CONFIG": '{"mode": "command"}',
            "MSMEMSCOPE_PYTHONPATH": str(tmp_path),
            "MSMEMSCOPE_DISABLE": "0",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
