"""Host memory that leaks is named by function, file and line; what comes and goes is not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import RunChild

OPTIONS = ("--device=host", "--call-stack=c:50,python:50", "--report-to", "none")

LIBRARY = """\
#include <stdlib.h>
#include <string.h>

static void *remember(size_t size) {
  void *block = malloc(size);
  if (block) memset(block, 1, size);
  return block;
}

int use(size_t size) {
  void *scratch = malloc(size);
  void *kept = remember(size);
  if (scratch) memset(scratch, 2, size);
  free(scratch);
  return kept != NULL;
}
"""
MALLOC_LINE = 5

CALLER = """
    import ctypes
    import sys

    import msmemscope

    library = ctypes.CDLL(sys.argv[1])
    library.use.argtypes = [ctypes.c_size_t]
    msmemscope.start()
    for _ in range(40):
        assert library.use(512 * 1024)
        msmemscope.step()
    msmemscope.stop()
"""


def compiled(tmp_path: Path, *flags: str) -> Path:
    source = tmp_path / "leaky.c"
    source.write_text(LIBRARY)
    library = tmp_path / "libleaky.so"
    command = ["cc", "-O1", "-fno-inline", "-fPIC", "-shared", *flags]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


def one_verdict(result: dict[str, Any]) -> dict[str, Any]:
    assert [v["cause"] for v in result["verdicts"]] == ["host_leak"], result["verdicts"]
    verdict: dict[str, Any] = result["verdicts"][0]
    assert verdict["layer"] == "host"
    assert verdict["evidence"]["kind"] == "native"
    assert verdict["kept_at"] is None
    return verdict


def test_a_malloc_of_an_extension_is_named_by_function_file_and_line(
    command: str, run_python: RunChild, tmp_path: Path
) -> None:
    library = compiled(tmp_path, "-g")
    done = run_python(CALLER, str(library), prefix=(command, *OPTIONS)).ok()
    verdict = one_verdict(done.analyze())
    site = verdict["site"]
    assert site["kind"] == "native"
    assert site["function"] == "remember"
    assert site["file"] == str(tmp_path / "leaky.c")
    assert site["line"] == MALLOC_LINE
    assert site["module"] == str(library)
    assert site["user"] is True
    # 512 KiB in each of 40 steps, but for the first few, which are warm-up.
    assert 30 * 2**19 <= verdict["bytes_total"] <= 40 * 2**19
    assert verdict["bytes_per_step"] == pytest.approx(2**19, rel=0.05)
    assert "leaky.c:5" in verdict["advice"]
    # Innermost first, with the Python line that called it.
    functions = [frame["function"] for frame in verdict["stack"]]
    assert functions[:2] == ["remember", "use"]
    assert "program.py" in {Path(f["file"]).name for f in verdict["stack"] if f["file"]}


def test_on_another_machine_the_library_is_found_under_sysroot_or_debug_path(
    command: str, run_python: RunChild, tmp_path: Path
) -> None:
    library = compiled(tmp_path, "-g", "-Wl,--build-id=sha1")
    done = run_python(CALLER, str(library), prefix=(command, *OPTIONS)).ok()
    elsewhere = tmp_path / "copied"
    inside = elsewhere / library.relative_to("/")
    inside.parent.mkdir(parents=True)
    library.rename(inside)
    # It is not where it was: the Python line is the best there is.
    site = one_verdict(done.analyze())["site"]
    assert site["kind"] == "python"
    for option in ("--sysroot", str(elsewhere)), ("--debug-path", str(inside.parent)):
        site = one_verdict(done.analyze("memscopeDumpResults", *option))["site"]
        assert (site["function"], site["line"]) == ("remember", MALLOC_LINE)


def test_without_debug_data_the_python_line_is_named(
    command: str, run_python: RunChild, tmp_path: Path
) -> None:
    library = compiled(tmp_path)
    done = run_python(CALLER, str(library), prefix=(command, *OPTIONS)).ok()
    verdict = one_verdict(done.analyze())
    assert verdict["site"]["kind"] == "python"
    assert verdict["site"]["text"] == "assert library.use(512 * 1024)"
    assert verdict["stack"][1]["function"] == "use", "the dynamic symbol is known"


def test_a_numpy_array_that_is_kept_is_named_by_its_python_line(
    command: str, run_python: RunChild
) -> None:
    pytest.importorskip("numpy")
    program = """
        import numpy as np

        import msmemscope

        history = []

        def step(generator):
            noise = generator.random((64, 1024))
            history.append(noise * 2)
            return noise.sum()

        msmemscope.start()
        generator = np.random.default_rng(0)
        for _ in range(40):
            step(generator)
            msmemscope.step()
        msmemscope.stop()
    """
    done = run_python(program, prefix=(command, *OPTIONS)).ok()
    verdict = one_verdict(done.analyze())
    assert verdict["site"]["kind"] == "python"
    assert verdict["site"]["text"] == "history.append(noise * 2)"
    assert "history" in verdict["advice"]


def test_host_memory_that_comes_and_goes_is_none(command: str, run_python: RunChild) -> None:
    pytest.importorskip("numpy")
    program = """
        import json

        import numpy as np

        import msmemscope

        def step(generator):
            values = generator.random((256, 512))
            text = json.dumps(values[:20].tolist())
            return json.loads(text), values @ values.T

        msmemscope.start()
        generator = np.random.default_rng(0)
        for _ in range(40):
            result = step(generator)
            msmemscope.step()
        msmemscope.stop()
    """
    done = run_python(program, prefix=(command, *OPTIONS)).ok()
    assert [v["cause"] for v in done.analyze()["verdicts"]] == ["none"]


# -- sampled --------------------------------------------------------------------------------------

SAMPLED = (*OPTIONS, "--host-sample=16K")

# 512 KiB a step in 128 blocks: 32 samples of 16 KiB.
SMALL_BLOCKS = CALLER.replace("range(40)", "range(60)").replace(
    "assert library.use(512 * 1024)", "for _ in range(128): assert library.use(4096)"
)


def test_a_leak_is_measured_by_samples_of_it(
    command: str, run_python: RunChild, tmp_path: Path
) -> None:
    library = compiled(tmp_path, "-g")
    done = run_python(SMALL_BLOCKS, str(library), prefix=(command, *SAMPLED)).ok()
    verdict = one_verdict(done.analyze())
    assert (verdict["site"]["function"], verdict["site"]["line"]) == ("remember", MALLOC_LINE)
    evidence = verdict["evidence"]
    assert evidence["sampled_every_bytes"] == 16 * 1024
    # Of about 1,850 samples: 2.3 % is one standard error. What is stated is at least 1.96 of them;
    # three halves of that are missed once in a few thousand runs.
    error = evidence["bytes_per_step_error"]
    assert 0 < error < 0.15 * 2**19
    assert abs(verdict["bytes_per_step"] - 2**19) <= 1.5 * error
    total = evidence["bytes_total_error"]
    steps = evidence["steps"]
    assert abs(verdict["bytes_total"] - steps * 2**19) <= 2**19 + 2.5 * total
    assert abs(verdict["blocks"] - steps * 128) <= 128 + 2.5 * total / 4096
    # What the frees of blocks that were not sampled left: nothing.
    info = subprocess.run(
        [command, "info", done.directory / "memscopeDumpResults"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "sampled, every 16.0 KiB" in info.stdout
    assert "unknown" not in info.stdout
    # As csv it is the same finding.
    csv = done.directory / "as.csv"
    subprocess.run(
        [command, "convert", done.directory / "memscopeDumpResults", "-o", csv],
        capture_output=True,
        timeout=60,
        check=True,
    )
    read_back = one_verdict(done.analyze(str(csv)))
    for key in ("bytes_total", "bytes_per_step", "blocks"):
        assert read_back[key] == verdict[key]
    assert read_back["evidence"]["bytes_total_error"] == pytest.approx(total)


def test_what_is_replaced_is_no_leak_however_its_samples_fall(
    command: str, run_python: RunChild
) -> None:
    """A store that is full, whose every entry is replaced once, in blocks below a sample each."""
    program = """
        import collections

        import msmemscope

        store = collections.deque(maxlen=6000)
        msmemscope.start()
        for i in range(12000):
            store.append(bytearray(8000))
            if i >= 6000 and i % 100 == 99:
                msmemscope.step()
        msmemscope.stop()
    """
    done = run_python(program, prefix=(command, *OPTIONS, "--host-sample=512K")).ok()
    result = done.analyze()
    (verdict,) = result["verdicts"]
    assert verdict["cause"] == "none"
    assert result["suspects"] == []
    evidence = verdict["evidence"]
    assert evidence["sampled_every_bytes"] == 512 * 1024
    # 16 samples are the least that says anything.
    assert evidence["detection_limit_bytes_per_step"] >= 16 * 512 * 1024 / 60
    (host,) = [layer for layer in result["layers"] if layer["layer"] == "host"]
    # 48 MB, give or take what is said.
    error = evidence["layer_peak_error_bytes"]
    assert 4 * 2**20 < error < 16 * 2**20
    assert abs(host["allocated"]["peak"] - 48e6) < 16e6 + 2.5 * error


@pytest.mark.parametrize("option", ["--sysroot", "--debug-path"])
def test_a_directory_that_is_none_is_said(option: str, command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [command, "analyze", option, str(tmp_path / "nowhere"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert option in done.stderr
    assert "nowhere" in done.stderr
