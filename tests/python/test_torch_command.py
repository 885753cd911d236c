"""Command mode: an unchanged script, run by the command."""

from __future__ import annotations

import multiprocessing

import pytest
from conftest import RunChild

pytestmark = pytest.mark.torch

LEAK = """
    import torch

    kept = []

    def leak(step):
        block = torch.full((64, 1024), float(step))
        kept.append(block)

    def main():
        model = torch.nn.Linear(32, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(60):
            loss = model(torch.randn(8, 32)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            leak(step)
        print("trained", len(kept))

    if __name__ == "__main__":
        main()
"""


def leak_line() -> int:
    return next(n for n, line in enumerate(LEAK.splitlines()) if "torch.full" in line) + 1


def kept_line() -> int:
    return next(n for n, line in enumerate(LEAK.splitlines()) if "kept.append" in line) + 1


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"], ["-S", "-B"]], ids=str)
def test_an_unchanged_script_is_traced(
    options: list[str], command: str, run_python: RunChild
) -> None:
    program = LEAK
    if "-S" in options:  # torch lies where only site would look
        program = f"""
    import sys
    sys.path[:] = {__import__("sys").path!r}
{LEAK}"""
    child = run_python(
        program, prefix=[command, "--output-path=out", "--report-to=none", "--"], options=options
    ).ok()
    assert child.stdout == "trained 60\n"
    assert len(child.processes("out")) == 1


def test_the_diagnosis_of_an_unchanged_script(command: str, run_python: RunChild) -> None:
    child = run_python(LEAK, prefix=[command, "--output-path=out", "--"]).ok()
    assert child.stdout == "trained 60\n"
    assert "program.py" in child.stderr
    result = child.analyze("out")
    assert result["steps"]["source"] == "optimizer"
    assert result["steps"]["count"] == 60
    (verdict,) = result["verdicts"]
    assert verdict["cause"] == "leak"
    assert verdict["site"]["function"] == "leak"
    assert verdict["site"]["line"] == leak_line()
    assert verdict["kept_at"] is not None
    assert verdict["kept_at"]["line"] == kept_line()
    assert verdict["holders"][0]["root"] == "module"


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_status_is_passed_on(code: int, command: str, run_python: RunChild) -> None:
    child = run_python(
        f"import torch, sys; torch.empty(3); sys.exit({code})",
        prefix=[command, "--report-to=none", "--"],
    )
    assert child.returncode == code


CHILDREN = """
    import multiprocessing, sys

    def work(queue):
        import torch
        kept = [torch.empty(10) for _ in range(20)]
        queue.put("msmemscope" in sys.modules)

    if __name__ == "__main__":
        import torch
        x = torch.empty(100)
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        print(process.exitcode)
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_are_reached(method: str, command: str, run_python: RunChild) -> None:
    child = run_python(
        CHILDREN, method, prefix=[command, "--output-path=out", "--report-to=none", "--"]
    ).ok()
    assert child.stdout == "True\n0\n"
    assert len(child.processes("out")) == 2
    assert len({path.parent for path in child.processes("out")}) == 1


def test_a_subprocess_is_reached(command: str, run_python: RunChild) -> None:
    child = run_python(
        """
        import subprocess, sys, torch
        torch.empty(3)
        subprocess.run([sys.executable, "-c", "import torch; torch.empty(3)"], check=True)
        """,
        prefix=[command, "--output-path=out", "--report-to=none", "--"],
    ).ok()
    assert child.stderr == ""
    assert len(child.processes("out")) == 2


def test_a_script_that_uses_the_api_works_under_the_command(
    command: str, run_python: RunChild
) -> None:
    child = run_python(
        """
        import msmemscope, torch
        msmemscope.start()
        for _ in range(3):
            torch.empty(5)
            msmemscope.step()
        msmemscope.stop()
        """,
        prefix=[command, "--output-path=out", "--report-to=none", "--"],
    ).ok()
    assert child.stderr == ""
    assert len(child.processes("out")) == 1


def test_disabled_the_command_only_runs_the_program(command: str, run_python: RunChild) -> None:
    child = run_python(
        "import torch; torch.empty(3); print('ran')",
        prefix=[command, "--output-path=out", "--"],
        env={"MSMEMSCOPE_DISABLE": "1"},
    ).ok()
    assert (child.stdout, child.stderr) == ("ran\n", "")
    assert child.processes("out") == []
