"""The host source: every malloc and mmap is told of, and the program does not notice."""

import json
import pathlib
import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT, outside

HOST, TENSOR = "4", "2"  # src/core/where.h
ALLOCATORS = {
    "glibc": None,
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}


@pytest.fixture(params=ALLOCATORS)
def preload(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment that brings the allocator."""
    library = ALLOCATORS[request.param]
    if library is None:
        return {}
    for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"):
        path = pathlib.Path(directory) / library
        if path.exists():
            return {"LD_PRELOAD": str(path)}
    pytest.skip(f"{library} is not installed")


def run(*words: object, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        env={**outside(), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def traces(output: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path.parent for path in output.rglob("trace.msm"))


def events(build: pathlib.Path, output: pathlib.Path, layer: str = HOST) -> list[str]:
    (trace,) = traces(output)
    done = run(build / "hostile" / "print_events", trace, layer, env={})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# What host_ways does, in its order. A part of a mapping that stays is a block anew.
MALLOCS = """
    alloc 1001, free 1001, alloc 1503, free 1503, alloc 1, free 1
"""
ALIGNED = """
    alloc 3001, free 3001, alloc 3072, free 3072, alloc 3003, free 3003, alloc 3004, free 3004,
    alloc 3005, free 3005
"""
RESIZED = """
    alloc 2001, free 2001, alloc 2002, free 2002, undo 2002, free 2002,
    alloc 2100, free 2100, undo 2100, free 2100
"""
OPERATORS = """
    alloc 4001, free 4001, alloc 4002, free 4002, alloc 4003, free 4003, alloc 4032, free 4032,
    alloc 4005, free 4005
"""
MAPPINGS = """
    alloc 20480, free 20480, alloc 8192, alloc 8192, free 8192, alloc 4096,
    free 4096, undo 4096,
    free 8192, free 4096,
    alloc 24576, free 24576, alloc 8192, alloc 8192, alloc 8192, free 8192, free 8192, free 8192
"""
REMAPPED = """
    alloc 12288, free 12288, alloc 2867200,
    free 2867200, undo 2867200,
    free 2867200, alloc 8192,
    alloc 40960, free 8192, free 40960, alloc 32768, alloc 8192,
    free 8192, free 32768
"""


def words(text: str) -> list[str]:
    return " ".join(text.split()).strip(" ,").split(", ")


def test_every_way_to_get_memory_is_one_event_and_every_way_to_give_it_back(
    build: pathlib.Path, tmp_path: pathlib.Path, preload: dict[str, str]
) -> None:
    program = build / "hostile" / "host_ways"
    done = run(program, build / "libmsmemscope_agent.so", tmp_path, env=preload)
    assert done.returncode == 0, f"line {done.returncode} (modulo 128) of host_ways.cc"
    said = events(build, tmp_path)
    assert (said[0], said[-1]) == ("alloc 33554432", "free 33554432")
    # The exception of the operator new that fails is allocated inside it: its free is nobody's.
    told = [line for line in said[1:-1] if line != "free ?"]
    assert said.count("free ?") <= 1
    expected = [
        line
        for part in (MALLOCS, ALIGNED, RESIZED, OPERATORS, MAPPINGS, REMAPPED)
        for line in words(part)
    ]
    if "jemalloc" in preload.get("LD_PRELOAD", ""):  # has no pvalloc
        expected = [line for line in expected if not line.endswith(" 3005")]
    # Parts that one call takes away together are told of in no order of their own.
    for at, line in enumerate(expected):
        if told[at : at + 1] != [line] and sorted(told[at : at + 2]) == sorted(
            expected[at : at + 2]
        ):
            told[at : at + 2] = expected[at : at + 2]
    assert told == expected


def test_a_malloc_inside_a_tensors_event_belongs_to_it(
    build: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    program = build / "hostile" / "host_nested"
    done = run(program, build / "libmsmemscope_agent.so", tmp_path, env={})
    assert done.returncode == 0, done.stderr
    assert events(build, tmp_path, TENSOR) == ["alloc 6000", "free 6000"]
    # The tensor's memory itself is malloc's too: the host layer holds the tensors'.
    large = 32 << 20
    assert events(build, tmp_path) == [
        *(f"alloc {large}", "alloc 6001", "free 6001"),
        *("free ?", f"free {large}"),  # the first is the nested one's
    ]


def test_threads_that_allocate_in_every_way_are_counted_to_the_last_block(
    build: pathlib.Path, tmp_path: pathlib.Path, preload: dict[str, str], full: bool
) -> None:
    rounds = 500_000 if full else 20_000
    done = run(
        build / "hostile" / "host_mix",
        build / "libmsmemscope_agent.so",
        tmp_path,
        4,
        rounds,
        env=preload,
    )
    assert done.returncode == 0, done.stderr
    status, counted = (json.loads(line) for line in done.stdout.splitlines())
    assert status["dropped"] == 0
    assert (status["events"]["alloc"], status["events"]["free"]) == (
        counted["allocs"],
        counted["frees"],
    )
    (trace,) = traces(tmp_path)
    told = run(build / "hostile" / "count_events", trace, env={}).stdout
    assert told.startswith(f"allocs {counted['allocs']} frees {counted['frees']} dropped 0 ")
    checked = run(build / "hostile" / "check_live", tmp_path, env={})
    assert checked.returncode == 0, checked.stdout + checked.stderr


def both_ways(
    build: pathlib.Path, output: pathlib.Path, *program: object, env: dict[str, str]
) -> None:
    """Runs it alone and traced: exit status and output are the same to the byte."""
    alone = run(*program, env=env)
    traced = run(
        build / "msmemscope",
        "--device=host",
        "--report-to=none",
        f"--output-path={output}",
        "--",
        *program,
        env={**env, "MSMEMSCOPE_BUILD_DIR": str(build), "PYTHONPATH": str(ROOT / "python")},
    )
    assert (traced.returncode, traced.stdout) == (alone.returncode, alone.stdout), traced.stderr
    assert traced.stderr == alone.stderr
    assert alone.returncode == 0


@pytest.mark.parametrize("mode", ["signal", "fork", "plugin"])
def test_the_program_does_not_notice(
    build: pathlib.Path, tmp_path: pathlib.Path, preload: dict[str, str], mode: str
) -> None:
    plugin = build / "hostile" / "libhost_plugin.so"
    both_ways(build, tmp_path, build / "hostile" / "host_storm", mode, plugin, env=preload)
    made = traces(tmp_path)
    if mode == "signal":  # two hundred thousand of its own, besides the handler's
        assert events(build, tmp_path).count("alloc 333") >= 20
    # In `fork`, every second child of twenty allocates enough for a trace of its own.
    assert len(made) == (11 if mode == "fork" else 1)
    for trace in made:
        told = run(build / "hostile" / "count_events", trace, env={}).stdout
        assert " dropped 0 " in told
        assert told.endswith("damage 0\n")


@pytest.mark.parametrize(("mebibytes", "count"), [(15, 0), (17, 1)])
def test_a_trace_is_made_only_for_sixteen_mebibytes_alive(
    build: pathlib.Path, tmp_path: pathlib.Path, mebibytes: int, count: int
) -> None:
    both_ways(build, tmp_path, build / "hostile" / "host_storm", "hold", mebibytes, env={})
    assert len(traces(tmp_path)) == count
    if count == 0:
        assert not list(tmp_path.iterdir()), "nothing is left behind"
        return
    said = events(build, tmp_path)
    told = run(build / "msmemscope", "info", tmp_path, env={}).stdout
    assert "resident at the end" in told
    # What came before the trace is seeded into it.
    assert said.count("seed 1048576") + said.count("alloc 1048576") == mebibytes


PYTHON_PROGRAM = """\
    import json, zlib
    rows = [{"name": f"n{i}", "value": [i * 0.5] * (i % 50)} for i in range(20000)]
    text = json.dumps(rows)
    kept = bytearray(20 << 20)
    print(len(text), zlib.crc32(text.encode()), len(json.loads(text)), len(kept))
"""


def test_a_python_program_without_torch_has_its_lines_recorded(
    build: pathlib.Path, tmp_path: pathlib.Path, preload: dict[str, str]
) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PYTHON_PROGRAM))
    output = tmp_path / "out"
    both_ways(build, output, sys.executable, script, env=preload)
    (trace,) = traces(output)
    done = run(build / "hostile" / "print_stacks", trace, (20 << 20) + 1, env={})
    assert done.stdout.splitlines() == ["py <module>:4"]
