"""Snapshots of a made-up caching allocator, in every form that PyTorch's recorders have had.

Written from the description of the format alone, and with Python's own pickle: what it says is what
the reader under test has to find. The allocator is a simple one (first fit, in segments of 2 and
20 MiB): a reader must not care how a pool chooses its blocks.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MIB = 1 << 20
CUDA_BASE = 0x7F1200000000
NPU_BASE = 0x12C041800000

Entry = dict[str, Any]


def frame(line: int, name: str = "step") -> dict[str, Any]:
    return {"filename": "/home/me/train.py", "name": name, "line": line}


# Frames are shared by identity, as the recorders share them.
STACKS = [[frame(line), frame(90, "main")] for line in range(10, 20)]


@dataclass
class Block:
    addr: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[Any] = field(default_factory=list)


@dataclass
class Segment:
    addr: int
    size: int
    stream: int
    expandable: bool
    frames: list[Any]
    blocks: list[Block]

    @property
    def large(self) -> bool:
        return self.size > 2 * MIB


class Pool:
    """One device's allocator, which writes down what it does."""

    def __init__(self, device: int = 0, npu: bool = False, expandable: bool = False) -> None:
        self.device = device
        self.npu = npu
        self.expandable = expandable
        self.next_addr = (NPU_BASE if npu else CUDA_BASE) + device * (1 << 36)
        self.segments: list[Segment] = []
        self.trace: list[Entry] = []
        self.time_us = 1_700_000_000_000_000

    def note(self, action: str, addr: int, size: int, stream: int, frames: list[Any]) -> Entry:
        entry: Entry = {"action": action, "addr": addr, "size": size, "stream": stream}
        entry["frames"] = frames
        if not self.npu:
            self.time_us += 3
            entry["time_us"] = self.time_us
        self.trace.append(entry)
        return entry

    def rounded(self, size: int) -> int:
        size += 32 if self.npu else 0
        return max(512, (size + 511) // 512 * 512)

    def alloc(self, size: int, stack: int = 0, stream: int = 0) -> int:
        need = self.rounded(size)
        frames = STACKS[stack]
        large = need > MIB
        for segment in self.segments:
            if segment.large != large or segment.stream != stream:
                continue
            for place, block in enumerate(segment.blocks):
                if block.state == "inactive" and block.size >= need:
                    return self.take(segment, place, size, need, frames)
        total = max(20 * MIB, (need + 2 * MIB - 1) // (2 * MIB) * 2 * MIB) if large else 2 * MIB
        addr = self.next_addr
        self.next_addr += total + 4 * MIB
        whole = Block(addr, total)
        segment = Segment(addr, total, stream, self.expandable, frames, [whole])
        self.segments.append(segment)
        action = "segment_map" if self.expandable else "segment_alloc"
        self.note(action, addr, total, stream, frames)
        return self.take(segment, 0, size, need, frames)

    def take(self, segment: Segment, place: int, size: int, need: int, frames: list[Any]) -> int:
        block = segment.blocks[place]
        if block.size > need:
            segment.blocks.insert(place + 1, Block(block.addr + need, block.size - need))
        block.size, block.requested = need, size
        block.state, block.frames = "active_allocated", frames
        self.note("alloc", block.addr, size, segment.stream, frames)
        return block.addr

    def find(self, addr: int) -> tuple[Segment, int]:
        for segment in self.segments:
            for place, block in enumerate(segment.blocks):
                if block.addr == addr and block.state != "inactive":
                    return segment, place
        raise KeyError(addr)

    def free(self, addr: int, pending: bool = False) -> None:
        """Pending: as a block that another stream still uses."""
        segment, place = self.find(addr)
        block = segment.blocks[place]
        self.note("free_requested", addr, block.requested, segment.stream, block.frames)
        block.state = "active_pending_free"
        if not pending:
            self.complete(addr)

    def complete(self, addr: int) -> None:
        segment, place = self.find(addr)
        block = segment.blocks[place]
        self.note("free_completed", addr, block.requested, segment.stream, block.frames)
        block.state, block.frames = "inactive", []
        blocks = segment.blocks
        if place + 1 < len(blocks) and blocks[place + 1].state == "inactive":
            block.size += blocks.pop(place + 1).size
        if place > 0 and blocks[place - 1].state == "inactive":
            blocks[place - 1].size += blocks.pop(place).size

    def empty_cache(self) -> None:
        for segment in list(self.segments):
            if len(segment.blocks) == 1 and segment.blocks[0].state == "inactive":
                action = "segment_unmap" if segment.expandable else "segment_free"
                self.note(action, segment.addr, segment.size, segment.stream, [])
                self.segments.remove(segment)

    def oom(self, size: int) -> None:
        entry = self.note("oom", 0, size, 0, STACKS[3])
        del entry["addr"]
        entry["device_free"] = 12345

    # -- what is there ------------------------------------------------------------------------

    def blocks(self) -> list[Block]:
        return [block for segment in self.segments for block in segment.blocks]

    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def allocated(self) -> int:
        return sum(b.size for b in self.blocks() if b.state == "active_allocated")

    def active(self) -> int:
        return sum(b.size for b in self.blocks() if b.state != "inactive")

    def requested(self) -> int:
        return sum(b.requested for b in self.blocks() if b.state != "inactive")

    def as_segments(self) -> list[dict[str, Any]]:
        return [
            {
                "device": self.device,
                "address": segment.addr,
                "total_size": segment.size,
                "allocated_size": sum(
                    b.size for b in segment.blocks if b.state == "active_allocated"
                ),
                "active_size": sum(b.size for b in segment.blocks if b.state != "inactive"),
                "requested_size": sum(b.requested for b in segment.blocks if b.state != "inactive"),
                "stream": segment.stream,
                "segment_type": "large" if segment.large else "small",
                "segment_pool_id": (0, 0),
                "is_expandable": segment.expandable,
                "frames": segment.frames,
                "blocks": [
                    {
                        "address": b.addr,
                        "size": b.size,
                        "requested_size": b.requested,
                        "state": b.state,
                        "frames": b.frames,
                    }
                    for b in segment.blocks
                ],
            }
            for segment in sorted(self.segments, key=lambda segment: segment.addr)
        ]


def churn(pool: Pool, seed: int, operations: int = 400) -> None:
    """Allocations and frees at random; a few stay."""
    chosen = random.Random(seed)
    live: list[int] = []
    pending: list[int] = []
    for _ in range(operations):
        what = chosen.random()
        if what < 0.55 or not live:
            size = chosen.choice([7, 500, 512, 4000, 70_000, MIB, MIB + 1, 3 * MIB, 11 * MIB])
            live.append(pool.alloc(size, chosen.randrange(10), chosen.choice([0, 0, 0, 77])))
        elif what < 0.9:
            pool.free(live.pop(chosen.randrange(len(live))))
        elif what < 0.95:
            pending.append(live.pop(chosen.randrange(len(live))))
            pool.free(pending[-1], pending=True)
        elif pending:
            pool.complete(pending.pop(0))
        else:
            pool.empty_cache()


def snapshot(*pools: Pool, ring: int | None = None) -> dict[str, Any]:
    """As `_snapshot()` gives it; `ring` keeps the last so many entries of each device."""
    devices = 1 + max(pool.device for pool in pools)
    traces: list[list[Entry]] = [[] for _ in range(devices)]
    segments = []
    for pool in pools:
        traces[pool.device] = pool.trace if ring is None else pool.trace[-ring:]
        segments += pool.as_segments()
    whole: dict[str, Any] = {"segments": segments, "device_traces": traces}
    if not pools[0].npu:
        whole["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": pools[0].expandable,
            "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)},
        }
        whole["external_annotations"] = []
    return whole


# -- writing -------------------------------------------------------------------------------------


def as_torch_pickles(value: object) -> bytes:
    """As torch's C++ writer does it: protocol 2, BINPUT, all items of a list between one MARK and
    its APPENDS, even where there is none."""
    out = io.BytesIO()
    memo: dict[str, int] = {}
    count = 0

    def put() -> None:
        nonlocal count
        out.write(b"q" + bytes([count]) if count < 256 else b"r" + count.to_bytes(4, "little"))
        count += 1

    def write(item: object) -> None:
        if isinstance(item, bool):
            out.write(b"\x88" if item else b"\x89")
        elif isinstance(item, int):
            if -(1 << 31) <= item < 1 << 31:
                out.write(b"J" + item.to_bytes(4, "little", signed=True))
            else:
                out.write(b"\x8a\x08" + item.to_bytes(8, "little", signed=True))
        elif isinstance(item, float):
            out.write(pickle.dumps(item, 2)[2:-1])
        elif isinstance(item, str):
            if item in memo:
                index = memo[item]
                short = index < 256
                out.write(b"h" + bytes([index]) if short else b"j" + index.to_bytes(4, "little"))
                return
            text = item.encode()
            out.write(b"X" + len(text).to_bytes(4, "little") + text)
            memo[item] = count
            put()
        elif isinstance(item, tuple):
            out.write(b"(")
            for each in item:
                write(each)
            out.write(b"t")
            put()
        elif isinstance(item, list):
            out.write(b"]")
            put()
            out.write(b"(")
            for each in item:
                write(each)
            out.write(b"e")
        elif isinstance(item, dict):
            out.write(b"}")
            put()
            out.write(b"(")
            for key, each in item.items():
                write(key)
                write(each)
            out.write(b"u")
        else:
            raise TypeError(item)

    out.write(b"\x80\x02")
    write(value)
    out.write(b".")
    return out.getvalue()


FORMS = ["protocol2", "protocol3", "protocol4", "protocol5", "torch", "gzip", "json", "padded"]


def write(path: Path, whole: object, form: str = "protocol4") -> Path:
    if form.startswith("protocol"):
        path.write_bytes(pickle.dumps(whole, int(form[-1])))
    elif form == "torch":
        path.write_bytes(as_torch_pickles(whole))
    elif form == "gzip":
        path.write_bytes(gzip.compress(pickle.dumps(whole, 4)))
    elif form == "json":
        path.write_text(json.dumps(whole))
    else:
        path.write_bytes(pickle.dumps(whole, 4) + bytes(100))
    return path


class PlainUnpickler(pickle.Unpickler):
    """Data only."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name}")


def read_plainly(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        whole: dict[str, Any] = PlainUnpickler(file).load()
    return whole
