"""The ranks of a job are one run: torchrun's, and those that somebody starts by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Child, RunChild

pytestmark = pytest.mark.torch

RANK = """
    import os, torch
    import torch.distributed as dist
    if os.environ.get("USE_API"):
        import msmemscope
        msmemscope.config(report_to="none")
        msmemscope.start()
    # Through a file, for Debian's newer PyTorch has a TCP store that it cannot use (libuv).
    store = f"file://{os.getcwd()}/store-{os.getppid()}"
    place = {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
    dist.init_process_group("gloo", init_method=store, **place)
    kept = [torch.ones(1000) for _ in range(20)]
    total = torch.ones(3) * (dist.get_rank() + 1)
    dist.all_reduce(total)
    with open(f"said-{dist.get_rank()}", "w") as said:
        said.write(str(total.tolist()))
    dist.barrier()
    dist.destroy_process_group()
"""
TORCHRUN = """
    import torch.distributed as dist
    if "use_libuv" in (dist.TCPStore.__doc__ or "") + (dist.TCPStore.__init__.__doc__ or ""):
        class Store(dist.TCPStore):
            def __init__(self, *words, **named):
                super().__init__(*words, **{"use_libuv": False, **named})
        dist.TCPStore = Store
    from torch.distributed.run import main
    main(["--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=0", "rank.py"])
"""
BY_HAND = """
    import os, subprocess, sys
    def start(rank):
        place = {"RANK": str(rank), "WORLD_SIZE": "2"}
        return subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, **place})
    sys.exit(max(rank.wait() for rank in [start(0), start(1)]))
"""


@pytest.fixture(autouse=True)
def _needs_gloo() -> None:
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this PyTorch is built without torch.distributed or gloo")


def info(command: str, child: Child) -> list[dict[str, Any]]:
    done = subprocess.run(
        [command, "info", "--json", str(child.directory / "memscopeDumpResults")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    inputs: list[dict[str, Any]] = json.loads(done.stdout)["inputs"]
    return inputs


@pytest.mark.parametrize("mode", ["command", "api"])
@pytest.mark.parametrize("starter", ["torchrun", "by hand"])
def test_two_ranks(starter: str, mode: str, command: str, run_python: RunChild) -> None:
    def run(prefix: list[str], env: dict[str, str]) -> Child:
        return run_python(
            TORCHRUN if starter == "torchrun" else BY_HAND,
            prefix=prefix,
            files={"rank.py": RANK},
            env={"OMP_NUM_THREADS": "1", **env},
        )

    if starter == "torchrun" and run([], {}).returncode != 0:
        pytest.skip("torchrun of this PyTorch does not work on this Python")
    by_command = mode == "command"
    child = run(
        [command, "--report-to=none", "--"] if by_command else [],
        {} if by_command else {"USE_API": "1"},
    )
    child.ok()
    for rank in range(2):
        assert (child.directory / f"said-{rank}").read_text() == "[3.0, 3.0, 3.0]"
    runs = {path.parent for path in child.processes()}
    assert len(runs) == 1, "one run"
    ranks = {one["process"]["rank"]: one for one in info(command, child)}
    for rank in range(2):
        assert ranks[rank]["events"]["alloc"] >= 21, "20 kept, one to reduce"
        assert ranks[rank]["ended"] == "exit"
        (trace,) = [path for path in child.processes() if f"-{rank}-" in Path(path).name]
        meta = json.loads((trace / "meta.json").read_text())
        assert (meta["rank"], meta["pid"]) == (rank, ranks[rank]["process"]["pid"])
        assert not (trace / "hot.slab").exists()
