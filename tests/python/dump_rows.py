"""Small dumps of msMemScope, written by hand: rows a microsecond apart, as csv or db."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

COLUMNS = [
    "ID",
    "Event",
    "Event Type",
    "Name",
    "Timestamp(ns)",
    "Process Id",
    "Thread Id",
    "Device Id",
    "Ptr",
    "Attr",
    "Call Stack(Python)",
    "Call Stack(C)",
]
START = 1764753083000000000


class Dump:
    """Rows in the order of their calls; `device` and `layer` hold for those that follow."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.attrs: list[dict[str, str]] = []
        self.device = "0"
        self.layer = "PTA"
        self.pid = "7"

    def _row(self, event: str, kind: str, name: str, ptr: str, attr: dict[str, str]) -> None:
        number = len(self.rows) + 1
        time = START + number * 1000
        self.rows.append(
            [str(number), event, kind, name, str(time), self.pid, "7", self.device, ptr, "", "", ""]
        )
        self.attrs.append(attr)

    def malloc(self, addr: int, size: int, **attr: str) -> Dump:
        ptr = f"{addr:#018x}"
        self._row("MALLOC", self.layer, "N/A", ptr, {"addr": ptr, "size": str(size), **attr})
        return self

    def free(self, addr: int, size: int) -> Dump:
        ptr = f"{addr:#018x}"
        self._row("FREE", self.layer, "N/A", ptr, {"addr": ptr, "size": str(size)})
        return self

    def access(self, addr: int, size: int = 8) -> Dump:
        ptr = f"{addr:#018x}"
        attr = {"addr": ptr, "size": str(size), "type": self.layer}
        self._row("ACCESS", "READ", "op", ptr, attr)
        return self

    def op(self, name: str, *rows: tuple[str, int, int]) -> Dump:
        """An ATen operator; rows are ("malloc" or "free", addr, size) inside it."""
        self._row("OP_LAUNCH", "ATEN_START", name, "N/A", {})
        for what, addr, size in rows:
            getattr(self, what)(addr, size)
        self._row("OP_LAUNCH", "ATEN_END", name, "N/A", {})
        return self

    def kernel(self, name: str) -> Dump:
        self._row("KERNEL_LAUNCH", "KERNEL_LAUNCH", name, "N/A", {})
        return self

    def mark(self, text: str) -> Dump:
        self._row("MSTX", "Mark", text, "N/A", {})
        return self

    def csv(self, path: Path) -> Path:
        lines = [",".join(COLUMNS)]
        for row, attr in zip(self.rows, self.attrs):
            cells = list(row)
            if row[1] == "MSTX":
                cells[3] = f'"{row[3]}"'
            if attr:
                cells[9] = '"{' + ",".join(f"{k}:{v}" for k, v in attr.items()) + '}"'
            lines.append(",".join(cells))
        path.write_text("\n".join(lines) + "\n")
        return path

    def db(self, path: Path) -> Path:
        with sqlite3.connect(path) as db:
            columns = ", ".join(
                f'"{name}" {"INTEGER" if name in ("ID", "Timestamp(ns)") else "TEXT"}'
                for name in COLUMNS
            )
            db.execute(f"CREATE TABLE memscope_dump ({columns})")
            db.executemany(
                f"INSERT INTO memscope_dump VALUES ({','.join('?' * len(COLUMNS))})",
                list(self._db_rows()),
            )
        db.close()
        return path

    def _db_rows(self) -> Iterable[list[str]]:
        for row, attr in zip(self.rows, self.attrs):
            cells = list(row)
            cells[9] = "{" + ",".join(f'"{k}":"{v}"' for k, v in attr.items()) + "}"
            if row[1] == "MSTX":
                cells[3] = f'"{row[3]}"'
            yield cells
