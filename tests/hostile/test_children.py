"""Every kind of child is followed, whatever environment it is given, and leaves nothing behind."""

import os
import pathlib
import stat
import subprocess
import time
from typing import Any

import pytest
from conftest import RunBoth, count_events, outside

WHOLE = {"frees": 0, "dropped": 0, "steps": 0, "damage": 0}


def of(allocs: int) -> dict[str, int]:
    return {"allocs": allocs, **WHOLE}


def one_run(output: pathlib.Path) -> None:
    """All processes are in one run's directory, and their slabs are gone."""
    (run,) = output.iterdir()
    assert run.name.startswith("run-")
    for process in run.iterdir():
        assert sorted(path.name for path in process.iterdir()) == ["meta.json", "trace.msm"]


# How the children come, how many of them, the parent's own allocations. Each child makes 20.
WAYS = {
    "fork": (5, 10),
    "vfork": (5, 10 + 5),  # the parent goes on after each
    "vfork that fails": (0, 10 + 5),
    "spawn": (2 * 5, 10),
    # execve, execvpe, execle, execv, execvp, execl, execlp, fexecve, execveat, vfork, posix_spawn
    "exec with nothing": (11, 10),
    "exec with own environment": (1, 10),
    "exec disabled": (0, 10),
}


@pytest.mark.parametrize("way", WAYS)
def test_children_are_followed(way: str, run_both: RunBoth, build: pathlib.Path) -> None:
    children, own = WAYS[way]
    pair = run_both(build / "hostile" / "children", way, 5)
    assert pair.traced.stdout == "done\n"
    assert pair.counts() == sorted([of(own), *[of(20)] * children], key=lambda e: e["allocs"])
    one_run(pair.output)


def test_a_child_of_vfork_that_allocates_makes_no_trace_in_its_parents_memory(
    run_both: RunBoth, build: pathlib.Path
) -> None:
    pair = run_both(build / "hostile" / "children", "vfork that allocates", 5)
    *parent, a, b, c, d, e = pair.counts()
    assert [a, b, c, d, e] == [of(20)] * 5
    # The parent's own 4; of the 5 made in its name between vfork() and exec those that came when it
    # had a lane (after its first) are recorded, and the others counted.
    assert [(one["allocs"], one["dropped"], one["damage"]) for one in parent] == [(4 + 3, 2, 0)]
    one_run(pair.output)


def test_forks_while_other_threads_allocate(
    run_both: RunBoth, build: pathlib.Path, full: bool
) -> None:
    forks = 200 if full else 60
    pair = run_both(build / "hostile" / "children", "fork under load", forks, seconds=300)
    assert pair.traced.stdout == "done\n"
    counts = pair.counts()
    assert counts[:-1] == [of(20)] * forks
    assert counts[-1]["damage"] == 0
    one_run(pair.output)


def test_forks_not_made_by_python_do_not_fill_the_disk(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """200 children of a C program, each with a slab of 8 MiB, are swept while it runs."""
    process = subprocess.Popen(
        [
            *(build / "msmemscope", "--report-to=none", "-o", tmp_path / "out", "--"),
            *(build / "hostile" / "children", "fork", "200"),
        ],
        env=outside(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    most = seen = 0
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        most = max(most, len(list(tmp_path.glob("out/run-*/*/hot.slab"))))
        seen = len(list(tmp_path.glob("out/run-*/*")))
        time.sleep(0.01)
    assert process.wait(timeout=10) == 0
    assert len(list(tmp_path.glob("out/run-*/*/trace.msm"))) == 201
    assert seen > 100, "looked at while they came"
    # 64 new ones are swept at once, a few more come meanwhile.
    assert most < 100, f"{most} slabs at once"
    counts = [count_events(build, path.parent) for path in tmp_path.glob("out/run-*/*/trace.msm")]
    assert sorted(each["allocs"] for each in counts) == [10] + [20] * 200
    one_run(tmp_path / "out")


def test_helpers_by_the_thousand_leave_nothing_behind(
    run_both: RunBoth, build: pathlib.Path, full: bool
) -> None:
    pair = run_both(build / "hostile" / "children", "helpers", 2000 if full else 300, seconds=300)
    assert pair.counts() == [of(10)]
    one_run(pair.output)


@pytest.mark.parametrize("how", ["outlive", "daemon"])
def test_a_child_outlives_its_parent_and_the_launcher(
    how: str, build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    done = subprocess.run(
        [
            *(build / "msmemscope", "--report-to=none", "-o", tmp_path / "out", "--"),
            *(build / "hostile" / "children", how, tmp_path / "said"),
        ],
        env=outside(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    deadline = time.monotonic() + 30
    traces: list[pathlib.Path] = []
    while time.monotonic() < deadline:
        traces = sorted(path.parent for path in tmp_path.glob("out/run-*/*/trace.msm"))
        if (tmp_path / "said").exists() and not list(tmp_path.glob("out/run-*/*/hot.slab")):
            break
        time.sleep(0.05)
    assert (tmp_path / "said").read_text() == "done"
    assert sorted(count_events(build, trace)["allocs"] for trace in traces) == [10, 20]
    one_run(tmp_path / "out")


def children_of(info: list[dict[str, Any]]) -> list[str]:
    return [child["how"] for process in info for child in process["children"]]


@pytest.fixture
def untraceable(tmp_path: pathlib.Path) -> dict[str, pathlib.Path]:
    """A static program and, where we may make one, one with another user's rights."""
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    static = tmp_path / "static"
    compiler = os.environ.get("CC", "cc")
    made = subprocess.run(
        [compiler, "-static", "-o", static, source], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"{compiler} cannot link a static program here")
    programs = {"is statically linked": static}
    if os.geteuid() == 0:
        other = tmp_path / "other"
        subprocess.run([compiler, "-o", other, source], check=True)
        os.chown(other, 12345, 12345)
        other.chmod(0o755 | stat.S_ISUID)
        programs["runs with other rights than the user's"] = other
    return programs


def test_info_lists_programs_that_cannot_be_traced(
    run_both: RunBoth, build: pathlib.Path, untraceable: dict[str, pathlib.Path]
) -> None:
    # Before the run has a directory, after, and again and again.
    programs = " && ".join(str(path) for path in untraceable.values())
    work = f"'{build / 'hostile' / 'endings'}' return"
    pair = run_both("sh", "-c", f"{programs} && {work} && {programs} && {programs} && {work}")
    assert sorted(children_of(pair.info())) == sorted(
        f"{path}, which {why}" for why, path in untraceable.items()
    )
    text = subprocess.run(
        [build / "msmemscope", "info", pair.output], capture_output=True, text=True, check=True
    ).stdout
    assert "which is statically linked" in " ".join(text.split())


def test_a_run_without_a_trace_leaves_no_list(
    run_both: RunBoth, untraceable: dict[str, pathlib.Path]
) -> None:
    pair = run_both("sh", "-c", f"'{untraceable['is statically linked']}'; true")
    assert not pair.output.exists()


@pytest.fixture
def other_libc(tmp_path: pathlib.Path) -> pathlib.Path:
    """A program whose loader (a script's interpreter will do) is not glibc's, and says what it is
    given to preload. A loader of that kind refuses to run with a library that it cannot load."""
    source = tmp_path / "say.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(void) { const char* p = getenv("LD_PRELOAD"); puts(p ? p : "none"); }\n'
    )
    program = tmp_path / "say"
    loader = tmp_path / "ld-musl-x86_64.so.1"
    real = next(pathlib.Path("/lib64").glob("ld-linux*"), None) or next(
        pathlib.Path("/lib").glob("ld-linux*")
    )
    loader.symlink_to(real)
    subprocess.run(["cc", "-o", program, source, f"-Wl,--dynamic-linker={loader}"], check=True)
    return program


def test_a_program_with_another_c_library_gets_no_preload(
    run_both: RunBoth, other_libc: pathlib.Path
) -> None:
    # Both by the launcher and by a shell that has the agent.
    assert run_both(other_libc, output="a").traced.stdout == "none\n"
    assert run_both("sh", "-c", f"{other_libc}; true", output="b").traced.stdout == "none\n"


def test_env_i_and_python_that_clears_its_environment(
    run_both: RunBoth, build: pathlib.Path
) -> None:
    worker = build / "hostile" / "children"
    program = (
        "import os, subprocess, sys\n"
        f"worker = {str(worker)!r}\n"
        "print(subprocess.run([worker, 'work', '20'], env={}).returncode)\n"
        "print(subprocess.run(['env', '-i', worker, 'work', '20']).returncode)\n"
        "print(subprocess.run([worker, 'work', '20'], env={}, close_fds=False).returncode)\n"
        "sys.stdout.flush()\n"
        "os.environ.clear()\n"
        "os.execv(worker, [worker, 'work', '20'])\n"
    )
    pair = run_both("python3", "-c", program)
    assert (pair.traced.stdout, pair.traced.returncode) == ("7\n7\n7\n", 7)
    assert pair.counts() == [of(20)] * 4
    one_run(pair.output)
