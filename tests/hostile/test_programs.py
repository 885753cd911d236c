"""Python programs beside other tools and in awkward corners: as without us, and recorded."""

import ctypes.util
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import RunBoth, outside

pytest.importorskip("torch")

# Endings that run no atexit, and one that comes from the depths of the interpreter.
ENDINGS = {
    "os._exit": ("os._exit(5)", 5),
    "os.abort": ("os.abort()", -6),
    "recursion": (
        "def down(n): return down(n + 1)\n"
        "try: down(0)\n"
        "except RecursionError: print('caught', flush=True); os._exit(6)",
        6,
    ),
    "exit in a thread": (
        "import threading\nt = threading.Thread(target=lambda: os._exit(7)); t.start(); t.join()",
        7,
    ),
}
ALLOCATE = "kept = [torch.empty(100) for _ in range(1000)]\n"


@pytest.mark.parametrize("how", ENDINGS)
def test_endings_of_the_interpreter(how: str, run_both: RunBoth) -> None:
    end, status = ENDINGS[how]
    program = "import os, resource, torch\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    pair = run_both(sys.executable, "-c", f"{program}{ALLOCATE}{end}")
    assert pair.traced.returncode == status
    (events,) = pair.counts()
    assert (events["allocs"], events["dropped"], events["damage"]) == (1000, 0, 0)


def test_beside_a_profiler_tracemalloc_and_an_allocator_that_throws(run_both: RunBoth) -> None:
    program = """
        import faulthandler, gc, sys, tracemalloc
        import torch
        from torch.profiler import profile
        faulthandler.enable()
        tracemalloc.start(25)
        for _ in range(100):
            try:
                torch.empty(1 << 60)
            except RuntimeError as error:
                last = str(error)[:60]
        print(last)
        model = torch.nn.Linear(16, 16)
        with profile(profile_memory=True, with_stack=True, record_shapes=True) as prof:
            for _ in range(5):
                model(torch.ones(4, 16)).sum().backward()
        # How often it saw each, and their bytes, are not the same from run to run without us.
        print(sorted({row.key for row in prof.key_averages() if row.key.startswith("aten::")}))
        print(tracemalloc.is_tracing(), len(tracemalloc.take_snapshot().traces) > 0)
        print(sum(float(p.grad.sum()) for p in model.parameters()) != 0)
        """
    pair = run_both(sys.executable, "-c", textwrap.dedent(program))
    assert pair.traced.returncode == 0, pair.traced.stderr
    (events,) = pair.counts()
    assert events["allocs"] > 20, "5 rounds of 4 or more"
    assert (events["dropped"], events["damage"]) == (0, 0)


ALLOCATORS = ["jemalloc", "tcmalloc_minimal", "mimalloc"]


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_beside_another_allocator(allocator: str, run_both: RunBoth) -> None:
    library = ctypes.util.find_library(allocator)
    if library is None:
        pytest.skip(f"lib{allocator} is not installed")
    program = f"import torch\n{ALLOCATE}kept[500:] = []\nprint(sum(len(k) for k in kept))"
    pair = run_both(sys.executable, "-c", program, LD_PRELOAD=library)
    assert pair.traced.stdout == "50000\n"
    (events,) = pair.counts()
    assert (events["allocs"], events["dropped"], events["damage"]) == (1000, 0, 0)


def test_a_debugger_sees_the_program_through_our_hooks(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    inside = "c10::ProfiledCPUMemoryReporter::New"
    command = ["gdb", "-q", "-nx", "-batch"]
    for order in (
        "set debuginfod enabled off",
        "start",
        f"tbreak fake_c10.cc:{inside}",
        "continue",
        "bt",
        "finish",
        "continue",
    ):
        command += ["-ex", order]
    done = subprocess.run(
        [
            *(str(build / "msmemscope"), "--report-to=none", "-o", str(tmp_path / "out"), "--"),
            *(*command, "--args", str(build / "hostile" / "endings"), "exit"),
        ],
        env=outside(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "ptrace: Operation not permitted" in done.stdout + done.stderr:
        pytest.skip("nothing may be debugged here")
    assert done.returncode == 0, done.stderr
    frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert inside in frames[0], done.stdout
    assert "fake_c10_new" in frames[2], "behind our hook"
    assert " main " in frames[-1]
    assert "exited with code 03" in done.stdout
    traces = list((tmp_path / "out").glob("run-*/*/trace.msm"))
    assert len(traces) == 1


GREENLETS = """
    import greenlet, torch
    def work(number):
        kept = []
        for i in range(50):
            kept.append(torch.empty(number + 1))
            main.switch()
        return len(kept)
    main = greenlet.getcurrent()
    workers = [greenlet.greenlet(work) for _ in range(20)]
    done = []
    while workers:
        for number, worker in enumerate(list(workers)):
            result = worker.switch(number) if not worker else worker.switch()
            if worker.dead:
                workers.remove(worker)
                done.append(result)
    print(done)
    """


def test_greenlets(run_both: RunBoth, build: pathlib.Path) -> None:
    pytest.importorskip("greenlet", reason="greenlet is not installed: make setup-dev brings it")
    pair = run_both(
        sys.executable, "-c", textwrap.dedent(GREENLETS), options=["--call-stack=c:20,python"]
    )
    assert pair.traced.stdout == f"{[50] * 20}\n", pair.traced.stderr
    (events,) = pair.counts()
    assert events == {"allocs": 1000, "frees": 1000, "dropped": 0, "steps": 0, "damage": 0}


def test_gevent(run_both: RunBoth) -> None:
    pytest.importorskip("gevent", reason="gevent is not installed")
    program = """
        from gevent import monkey
        monkey.patch_all()
        import gevent, threading, torch
        def work(number):
            kept = []
            for i in range(50):
                kept.append(torch.empty(number + 1))
                gevent.sleep(0)
            return len(kept)
        jobs = [gevent.spawn(work, n) for n in range(20)]
        gevent.joinall(jobs)
        thread = threading.Thread(target=work, args=(3,))
        thread.start(); thread.join()
        print([job.value for job in jobs])
        """
    pair = run_both(sys.executable, "-c", textwrap.dedent(program))
    assert pair.traced.stdout == f"{[50] * 20}\n", pair.traced.stderr
    (events,) = pair.counts()
    assert events["allocs"] == 1050
