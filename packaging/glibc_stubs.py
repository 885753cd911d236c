#!/usr/bin/env python3
"""Makes link-time stand-ins for glibc's libraries that end at one version of glibc.

    glibc_stubs.py DIRECTORY 2.28

A program linked against them asks for no symbol, and no version of a symbol, that this glibc does
not have, and so runs on it and on all later ones; what is newer fails to link. They are made from
this machine's own libraries, which keep every older version of each symbol. libpthread and libdl,
whose functions glibc 2.34 moved into libc, are there by name only: a program names them, so that an
older glibc loads them, and finds the functions by their version, whichever library has them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# Those that glibc names in every program's DT_NEEDED: soname, and the name the linker is asked for.
LIBRARIES = {"libc.so.6": "libc.so", "libm.so.6": "libm.so"}
BY_NAME_ONLY = {"libpthread.so.0": "libpthread.so", "libdl.so.2": "libdl.so"}


class Symbol(NamedTuple):
    name: str
    version: str  # "GLIBC_2.2.5"
    kind: str  # readelf's: FUNC, IFUNC, OBJECT, TLS
    size: int  # bytes


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def exported(library: Path, newest: tuple[int, ...]) -> list[Symbol]:
    """Each symbol at its newest version that is at most `newest`."""
    listing = subprocess.run(
        ["readelf", "--wide", "--dyn-syms", library], check=True, capture_output=True, text=True
    ).stdout
    row = re.compile(
        r"\s*\d+: [0-9a-f]+ +(\d+|0x[0-9a-f]+) (FUNC|IFUNC|OBJECT|TLS) +(?:GLOBAL|WEAK) +\S+ "
        r"+(\S+) ([^@\s]+)@@?(GLIBC_[\d.]+)$"
    )
    found: dict[str, Symbol] = {}
    for line in listing.splitlines():
        match = row.match(line)
        if match is None or match[3] in ("UND", "ABS"):
            continue
        symbol = Symbol(match[4], match[5], match[2], int(match[1], 0))
        if as_numbers(symbol.version) > newest:
            continue
        known = found.get(symbol.name)
        if known is None or as_numbers(known.version) < as_numbers(symbol.version):
            found[symbol.name] = symbol
    return sorted(found.values())


def assembly(symbols: list[Symbol]) -> str:
    lines: list[str] = []
    kinds = {"FUNC": "function", "IFUNC": "function", "OBJECT": "object", "TLS": "tls_object"}
    sections = {"OBJECT": ".bss", "TLS": '.section .tbss,"awT",%nobits'}
    for symbol in symbols:
        size = symbol.size if symbol.kind in sections else 1
        lines += [
            sections.get(symbol.kind, ".text"),
            f".globl {symbol.name}",
            f".type {symbol.name}, %{kinds[symbol.kind]}",
            f".size {symbol.name}, {size}",
            f"{symbol.name}: .skip {size}",
        ]
    return "\n".join(lines) + "\n"


def version_script(symbols: list[Symbol]) -> str:
    names: dict[str, list[str]] = {}
    for symbol in symbols:
        names.setdefault(symbol.version, []).append(symbol.name)
    nodes: list[str] = []
    before = ""
    for version in sorted(names, key=as_numbers):
        nodes.append(f"{version} {{ global: {'; '.join(names[version])}; }} {before};")
        before = version
    nodes[0] = nodes[0].replace("}", "local: *; }")
    return "\n".join(nodes) + "\n"


def link(directory: Path, soname: str, *inputs: str) -> Path:
    stub = directory / soname
    subprocess.run(
        ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-o", stub, *inputs], check=True
    )
    return stub


def make(directory: Path, newest: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    system = Path(
        subprocess.run(
            ["cc", "-print-file-name=libc.so.6"], check=True, capture_output=True, text=True
        ).stdout.strip()
    ).parent
    for soname, asked in LIBRARIES.items():
        symbols = exported(system / soname, as_numbers(newest))
        source, script = directory / f"{soname}.s", directory / f"{soname}.map"
        source.write_text(assembly(symbols))
        script.write_text(version_script(symbols))
        stub = link(directory, soname, str(source), f"-Wl,--version-script={script}")
        if soname == "libc.so.6":
            # As glibc's own libc.so: atexit and its like are linked in, TLS is the loader's.
            nonshared = system / "libc_nonshared.a"
            loader = next(system.glob("ld-linux-*.so.*"))
            (directory / asked).write_text(f"GROUP ( {stub} {nonshared} AS_NEEDED ( {loader} ) )\n")
        else:
            (directory / asked).unlink(missing_ok=True)
            (directory / asked).symlink_to(soname)
    for soname, asked in BY_NAME_ONLY.items():
        link(directory, soname, "-xassembler", "/dev/null")
        (directory / asked).unlink(missing_ok=True)
        (directory / asked).symlink_to(soname)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: glibc_stubs.py DIRECTORY VERSION")
    make(Path(sys.argv[1]).absolute(), sys.argv[2])
