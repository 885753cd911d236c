"""`msmemscope report`: one page as a file, whatever the input and wherever it goes. What the page
shows is tested in a browser (tests/web/report.test.ts)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from dump_rows import Dump

PAGE = """<!doctype html><title>MemScope</title>
<script type="application/json" id="msmemscope-report"></script>
<script type="module">go()</script>"""


@pytest.fixture
def web(tmp_path: Path) -> Path:
    directory = tmp_path / "web"
    directory.mkdir()
    (directory / "index.html").write_text("<!doctype html>")
    (directory / "report.html").write_text(PAGE)
    return directory


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return (
        Dump()
        .malloc(0x1000, 4096)
        .malloc(0x2000, 512)
        .free(0x1000, 4096)
        .csv(tmp_path / "dump.csv")
    )


def report(command: str, web: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, "report", "--no-cache", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "MSMEMSCOPE_WEB_DIR": str(web)},
    )


def data_of(page: Path) -> Any:
    text = page.read_text()
    begin = text.index('id="msmemscope-report">') + len('id="msmemscope-report">')
    return json.loads(text[begin : text.index("</script>", begin)])


def test_the_page_is_whole_and_its_owners_alone(
    command: str, web: Path, dump: Path, tmp_path: Path
) -> None:
    done = report(command, web, dump, "-o", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"wrote {tmp_path / 'out.html'}" in done.stderr
    assert stat.S_IMODE((tmp_path / "out.html").stat().st_mode) == 0o600
    data = data_of(tmp_path / "out.html")
    session = next(a["json"] for a in data["answers"] if a["name"] == "session")
    assert session["pools"][0]["peak"]["bytes"] == 4608
    rows = next(a["json"]["rows"] for a in data["answers"] if a["name"] == "blocks")
    assert [row[2] for row in rows] == [4096, 512]
    assert data["facts"]["left_out"] == []
    done = report(command, web, dump, "-o", tmp_path / "out.html", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_redaction_reaches_every_part(command: str, web: Path, dump: Path, tmp_path: Path) -> None:
    done = report(command, web, dump, "-o", tmp_path / "out.html", "--redact", "paths,host")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in (tmp_path / "out.html").read_text()
    assert data_of(tmp_path / "out.html")["facts"]["redacted"] == ["paths", "host"]


def test_what_is_there_stays_where_it_must(
    command: str, web: Path, dump: Path, tmp_path: Path
) -> None:
    before = dump.read_bytes()
    done = report(command, web, dump, "-o", dump)
    assert done.returncode == 2
    assert "inputs are never changed" in done.stderr
    assert dump.read_bytes() == before
    # A link stays, what it leads to is replaced; a directory and a full device are errors.
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "link.html").symlink_to("old.html")
    assert report(command, web, dump, "-o", tmp_path / "link.html").returncode == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "old.html").read_text().startswith("<!doctype html>")
    assert "it is a directory" in report(command, web, dump, "-o", tmp_path).stderr
    done = report(command, web, dump, "-o", "/dev/full")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say where to write"),
        (["-o", "x.html", "--redact", "names"], "allowed: paths, arguments, host, source, all"),
        (["-o", "x.html", "--max-size", "5k"], '--max-size is "5k"; allowed: 1M to 100M'),
        (["-o", "no/such/x.html"], "No such file or directory"),
        (["-o", "x.html", "--wrong"], "--wrong"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    command: str,
    web: Path,
    dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = report(command, web, dump, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.html").exists()


def test_without_its_page_it_says_what_to_do(command: str, dump: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "index.html").write_text("")
    done = report(command, tmp_path / "empty", dump, "-o", tmp_path / "x.html")
    assert done.returncode == 2
    assert "MSMEMSCOPE_WEB_DIR" in done.stderr
    (tmp_path / "empty" / "report.html").write_text("<p>another page</p>")
    done = report(command, tmp_path / "empty", dump, "-o", tmp_path / "x.html")
    assert done.returncode == 2
    assert "it has no place for the answers" in done.stderr


def test_nothing_readable_is_one_line(command: str, web: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("no,dump\n")
    done = report(command, web, tmp_path / "broken.csv", "-o", tmp_path / "x.html")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.html").exists()
