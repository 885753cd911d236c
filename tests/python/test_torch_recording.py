"""The real agent on the real torch: whatever the order of imports, threads, restarts, children."""

from __future__ import annotations

import multiprocessing
import sys

import pytest
from conftest import RunChild

pytestmark = pytest.mark.torch

# What the programs share: counted() is the number of tensor allocations recorded so far.
HELPERS = """
    import os, sys, threading, time
    def counted():
        from msmemscope._session import session
        events = session.agent.status()["events"]
        return events["alloc"] + events["pool_alloc"]
    def quiet(**options):
        import msmemscope
        msmemscope.config(report_to="none", **options)
"""


def program(body: str) -> str:
    import textwrap

    return textwrap.dedent(HELPERS) + textwrap.dedent(body)


ORDERS = {
    "msmemscope first": "import msmemscope, torch; quiet(); msmemscope.start()",
    "torch first": "import torch, msmemscope; quiet(); msmemscope.start()",
    "torch after start": "import msmemscope; quiet(); msmemscope.start(); import torch",
    "torch in a function after start": (
        "import msmemscope; quiet(); msmemscope.start(); torch = __import__('torch')"
    ),
    "torch through another package": (
        "import msmemscope; quiet(); msmemscope.start(); from torch import nn; import torch"
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_every_tensor_is_seen_in_any_order_of_imports(order: str, run_python: RunChild) -> None:
    child = run_python(
        program(
            f"""
            {ORDERS[order]}
            before = counted()
            kept = [torch.empty(1000) for _ in range(100)]
            print(counted() - before)
            """
        )
    ).ok()
    assert child.stdout == "100\n"
    assert child.stderr == ""
    assert len(child.processes()) == 1


def test_steps_come_from_step_and_from_optimizers(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, torch
            from msmemscope._session import session
            quiet()
            steps = []
            original = session.agent.step
            session.agent.step = lambda *a: (steps.append(a), original(*a))
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1)
            msmemscope.step(); optimizer.step()          # not recording: nothing
            msmemscope.start()
            optimizer.step(); msmemscope.step(); optimizer.step(); msmemscope.step()
            msmemscope.stop()
            msmemscope.step(); optimizer.step()
            msmemscope.start()
            msmemscope.step()
            print(steps)
            """
        )
    ).ok()
    assert child.stdout.strip() == "[(4, 1, 1, 'SGD'), (1, 1), (4, 2, 1, 'SGD'), (1, 2), (1, 3)]"


def test_start_and_stop_again_and_again(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, torch
            from msmemscope._session import session
            quiet()
            for _ in range(50):
                msmemscope.start(); msmemscope.start()
                kept = torch.empty(100)
                del kept
                msmemscope.stop(); msmemscope.stop()
                outside = torch.empty(100)
            print(counted(), session.agent.status()["recording"])
            """
        )
    ).ok()
    assert child.stdout == "50 False\n"
    assert len(child.processes()) == 1, "one trace a process"


def test_shutdown_restores_every_slot(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, torch
            from msmemscope._session import session
            quiet()
            msmemscope.start()
            x = torch.empty(10)
            patched = session.agent.status()["slots_patched"]
            msmemscope.shutdown()
            status = session.agent.status()
            print(status["slots_restored"] == patched > 0, status["slots_left"])
            before = counted()
            y = torch.empty(10)
            print(counted() - before)
            """
        )
    ).ok()
    assert child.stdout == "True 0\n0\n"


THREADS = """
    import msmemscope, torch
    from msmemscope._session import session
    quiet()
    msmemscope.start()
    if sys.argv[1] == "after":
        torch.empty(50)
    before = counted()
    def work():
        for _ in range(500):
            torch.empty(50)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    status = session.agent.status()
    print(counted() - before, sum(status["events"].values()) - before + status["dropped"])
    msmemscope.stop()
"""


def test_threads(run_python: RunChild) -> None:
    child = run_python(program(THREADS), "after").ok()
    assert child.stdout.split()[0] == "2000"


def test_threads_that_race_for_the_first_event_are_counted_to_the_last_one(
    run_python: RunChild,
) -> None:
    child = run_python(program(THREADS), "first").ok()
    assert child.stdout.split()[1] == "4000", "recorded or dropped, never lost"


DAEMONS = """
    if len(sys.argv) > 1:
        quiet()
        import msmemscope
        msmemscope.start()
    import torch
    def work():
        while True:
            torch.empty(50)
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
    print("end")
"""


def test_daemon_threads_inside_torch_end_as_they_do_without_us(run_python: RunChild) -> None:
    # With some versions that is an abort: the interpreter unwinds them through C++ frames.
    alone = run_python(program(DAEMONS))
    watched = run_python(program(DAEMONS), "watched")
    assert (watched.returncode, watched.stdout) == (alone.returncode, "end\n")


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise SystemExit(3)"])
def test_the_exit_status_is_the_program_s(end: str, run_python: RunChild) -> None:
    child = run_python(
        program(f"import msmemscope, torch; quiet(); msmemscope.start(); torch.empty(3); {end}")
    )
    assert child.returncode == 3
    assert child.stderr == ""


def test_an_exception_is_the_program_s(run_python: RunChild) -> None:
    child = run_python(
        program("import msmemscope, torch; quiet(); msmemscope.start(); torch.empty(3)\n1 / 0")
    )
    assert child.returncode == 1
    assert child.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert child.said() == []


def test_an_unwritable_directory_is_one_line(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, torch
            quiet(output_path="/proc/nowhere")
            msmemscope.start()
            print(sum(torch.ones(3)).item())
            msmemscope.step()
            msmemscope.stop()
            """
        )
    ).ok()
    assert child.stdout == "3.0\n"
    assert len(child.said()) == 1, child.stderr
    assert "/proc/nowhere" in child.stderr


def test_python_m(run_python: RunChild) -> None:
    child = run_python(
        "import runpy; runpy.run_module('other', run_name='__main__')",
        files={
            "other.py": program(
                """
                import msmemscope, torch
                quiet()
                msmemscope.start()
                before = counted()
                x = torch.empty(10)
                print(counted() - before)
                """
            )
        },
    ).ok()
    assert child.stdout == "1\n"


FORK = """
    import msmemscope, torch
    quiet()
    msmemscope.start()
    x = torch.empty(100)
    pid = os.fork()
    if pid == 0:
        before = counted()
        kept = [torch.empty(10) for _ in range(20)]
        print("child", counted() - before, flush=True)
        sys.exit(0)
    os.waitpid(pid, 0)
    before = counted()
    y = torch.empty(10)
    print("parent", counted() - before)
"""


def test_a_fork_goes_on_as_its_parent(run_python: RunChild) -> None:
    child = run_python(program(FORK)).ok()
    assert child.stdout == "child 20\nparent 1\n"
    assert child.stderr == ""
    assert len(child.processes()) == 2, "one trace a process"


CHILDREN = """
    import msmemscope
    import multiprocessing

    def work(queue):
        import torch
        before = counted()
        kept = [torch.empty(10) for _ in range(20)]
        queue.put(counted() - before)

    if __name__ == "__main__":
        import torch
        quiet()
        msmemscope.start()
        x = torch.empty(100)
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        print(process.exitcode)
        msmemscope.stop()
        print("MSMEMSCOPE_CONFIG" in os.environ, "LD_PRELOAD" in os.environ)
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_of_multiprocessing_are_traced(method: str, run_python: RunChild) -> None:
    child = run_python(program(CHILDREN), method).ok()
    assert child.stdout == "20\n0\nFalse False\n"
    assert child.stderr == ""
    assert len(child.processes()) == 2
    assert len({path.parent for path in child.processes()}) == 1, "one run"
    left = [str(slab) for path in child.processes() for slab in path.glob("hot.slab")]
    assert left == [], "every process came to a clean end"


def test_a_subprocess_that_does_not_import_us_is_not_touched(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, subprocess, torch
            quiet()
            msmemscope.start()
            x = torch.empty(3)
            code = "import sys, torch; torch.empty(3); print('msmemscope' in sys.modules)"
            subprocess.run([sys.executable, "-c", code], check=True)
            """
        )
    ).ok()
    assert child.stdout == "False\n"
    assert len(child.processes()) == 1


def test_data_loader_workers(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope, torch
            from torch.utils.data import DataLoader, TensorDataset
            if __name__ == "__main__":
                quiet()
                msmemscope.start()
                data = TensorDataset(torch.arange(64.0))
                loader = DataLoader(data, batch_size=8, num_workers=2)
                print(sum(float(batch[0].sum()) for _ in range(2) for batch in loader))
            """
        )
    ).ok()
    assert child.stdout == f"{2.0 * sum(range(64))}\n"
    assert child.said() == []
    assert len(child.processes()) >= 1


def test_nothing_is_left_behind_where_nothing_was_recorded(run_python: RunChild) -> None:
    child = run_python("import msmemscope, torch; msmemscope.start(); msmemscope.stop()").ok()
    assert child.stderr == ""
    assert child.processes() == []


def test_tensors_from_before_are_seeded_as_preexisting(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import torch
            old = [torch.empty(100) for _ in range(7)]
            import msmemscope
            from msmemscope._session import session
            quiet()
            msmemscope.start()
            print(session.agent.status()["live_blocks"])
            del old
            print(session.agent.status()["live_blocks"])
            """
        )
    ).ok()
    before, after = map(int, child.stdout.split())
    assert before - after == 7


@pytest.mark.skipif(sys.version_info < (3, 9), reason="not supported")
def test_python_stacks_are_on(run_python: RunChild) -> None:
    child = run_python(
        program(
            """
            import msmemscope
            from msmemscope._session import session
            quiet()
            msmemscope.start()
            def innermost():
                return session.agent.python_stack_text()
            print(session.agent.status()["python_stacks"])
            print(innermost().count("innermost"))
            """
        )
    ).ok()
    assert child.stdout == "True\n1\n"
