"""What the agent takes of the program's memory (design, "Never grow")."""

import json
import pathlib
import subprocess

import pytest
from conftest import outside

MIB = 1024  # kilobytes
COUNTS = (10_000, 100_000, 1_000_000)


# Blocks of a few hundred bytes, of 32, and of which each has pages of its own.
@pytest.mark.parametrize(
    ("apart", "counts"), [(544, (*COUNTS, 4_000_000)), (32, COUNTS), (8192, COUNTS)]
)
def test_the_agents_memory(
    build: pathlib.Path, tmp_path: pathlib.Path, apart: int, counts: tuple[int, ...]
) -> None:
    done = subprocess.run(
        [
            str(build / "hostile" / "memory_use"),
            str(build / "libmsmemscope_agent.so"),
            str(tmp_path / "out"),
            str(apart),
            *map(str, counts),
        ],
        env=outside(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kilobytes = json.loads(done.stdout)
    # 64 MiB of slab, a file that is deleted at the clean end.
    assert 60 * MIB <= kilobytes["slab"] <= 65 * MIB
    assert kilobytes["slab_at_end"] == 0
    assert not list((tmp_path / "out").glob("run-*/*/hot.slab"))
    # 8 MiB of tables, touched as they are used; lane 0's buffer, zstd's context, the library.
    assert kilobytes["traced"] - kilobytes["before"] <= (8 + 6) * MIB
    # 512 KiB for the first 28 thousand blocks; then a block takes 18.3 bytes of a table that is
    # filled to seven tenths at least and grows by half (src/capture/shadow_map.h): 40 at the most.
    assert [count for count, _ in kilobytes["blocks"]] == list(counts)
    for count, taken in kilobytes["blocks"]:
        assert 18 * count <= taken * 1024 <= max(40 * count, 768 * 1024) + 64 * 1024, (
            f"{count} blocks"
        )
