"""The command: dispatch, options, and the launcher as a parent that nobody notices.

What a program does is never changed by the launcher: its status, its signals, its descriptors.
Errors are one line on stderr and status 2.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READY = "print('ready', flush=True)\n"


def clean(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MSMEMSCOPE_")}
    for name in ("RANK", "LD_PRELOAD"):
        environment.pop(name, None)
    environment.update(extra or {})
    return environment


class Command:
    def __init__(self, binary: str, directory: Path) -> None:
        self.binary = binary
        self.directory = directory

    def run(
        self, *words: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.binary, *words],
            cwd=self.directory,
            env=clean(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.binary, *words],
            cwd=self.directory,
            env=clean(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seen_by_program(
        self, *options: str, env: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The environment a launched program has."""
        done = self.run(*options, "--", "env", "-0", env=env)
        assert done.returncode == 0, done.stderr
        return dict(item.split("=", 1) for item in done.stdout.split("\0") if "=" in item)


@pytest.fixture
def cli(command: str, tmp_path: Path) -> Command:
    return Command(command, tmp_path)


def one_line(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("msmemscope: ")
    return lines[0]


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no program to run"),
        (["--"], "no program to run"),
        (["--bogus", "true"], "unrecognized command --bogus"),
        (["--steps=0", "true"], 'invalid steps input. --steps is "0"'),
        (["--device", "gpu", "true"], 'invalid device. --device is "gpu"'),
        (["--analysis", "oom:0", "true"], "invalid OOM top-K value '0', valid range is [1, 1000]."),
        (["--level"], "--level"),
        (["--compare", "true"], "Please use compare command with correct input paths!"),
        (["--input-path", "a,b", "--compare"], "Memory comparison failed! a: No such file"),
        (["view", "x"], "x: No such file or directory"),
        (["compare", "a", "b"], "a: No such file or directory"),
        (["report", "x"], "report: say where to write: -o FILE.html"),
        (["convert", "x"], "say where to write: -o FILE.csv, -o FILE.db or -o DIR/"),
        (["-q", "analyze", "x"], "analyze is a verb and comes first"),
        (["analyze"], "no input"),
        (["analyze", "--steps", "3", "x"], '--steps is "3"'),
        (["analyze", "--steps", "5:3", "x"], '--steps is "5:3"'),
        (["analyze", "--device", "gpu", "x"], '--device is "gpu"'),
        (["analyze", "--top", "0", "x"], '--top is "0"'),
        (["analyze", "--fail-on", "bug", "x"], '--fail-on is "bug"'),
        (["analyze", "--nope", "x"], "--nope"),
        (["analyze", "/no/such/place"], "/no/such/place"),
        (["analyze", "."], "."),
        (["info", "/no/such/place"], "/no/such/place"),
        (["info", "/etc/passwd"], "/etc/passwd"),
        (["info"], "no input"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(cli: Command, words: list[str], says: str) -> None:
    assert says in one_line(cli.run(*words), 2)


def test_a_pickle_of_something_else_is_refused(cli: Command) -> None:
    (cli.directory / "snapshot.pickle").write_bytes(b"\x80\x02}.")
    assert "neither segments nor" in one_line(cli.run("analyze", "snapshot.pickle"), 2)


@pytest.mark.parametrize(
    "words",
    [
        ["-h"],
        ["--help"],
        ["analyze", "--help"],
        ["info", "-h"],
        ["compare", "-h"],
        ["convert", "-h"],
        ["report", "-h"],
        ["view", "-h"],
    ],
)
def test_help_is_on_stdout_and_fits(cli: Command, words: list[str]) -> None:
    done = cli.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_version(cli: Command) -> None:
    assert re.match(r"MemScope \d+\.\d+\.\d+\n", cli.run("-V").stdout)


# -- help and manual say the same ------------------------------------------------------------------


def options_of(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.mark.parametrize("verb", [[], ["analyze"], ["info"]])
def test_every_option_is_in_help_and_manual(cli: Command, verb: list[str]) -> None:
    shown = {
        option
        for line in cli.run(*verb, "--help").stdout.splitlines()
        if re.match(r"  -", line)
        for option in options_of(line.split("  ")[1])
    }
    manual = (ROOT / "docs/cli.md").read_text()
    heading = f"## `msmemscope {verb[0]}" if verb else "## `msmemscope [options]"
    section = manual[manual.index(heading) :].split("\n## ", 1)[0]
    documented = {
        option
        for row in re.findall(r"^\| (`-[^|]*)\|", section, re.MULTILINE)
        for option in options_of(row)
    }
    assert shown == documented


# -- the program's environment ---------------------------------------------------------------------


def test_the_program_gets_the_agent_and_its_settings(cli: Command) -> None:
    seen = cli.seen_by_program("--device=cpu", "-o", "out", "--report-to=none")
    assert seen["LD_PRELOAD"].endswith("libmsmemscope_agent.so")
    assert os.path.isfile(seen["LD_PRELOAD"])
    assert os.path.isfile(os.path.join(seen["MSMEMSCOPE_PYTHONPATH"], "msmemscope/__init__.py"))
    assert re.fullmatch(r"\d{8}-\d{6}-\d+", seen["MSMEMSCOPE_RUN_ID"])
    assert json.loads(seen["MSMEMSCOPE_CONFIG"]) == {
        "mode": "command",
        "device": "cpu",
        "output_path": str(cli.directory / "out"),
        "command": os.path.realpath(cli.binary),
        "report_to": "none",
    }


def test_what_the_user_preloads_stays_behind_us(cli: Command) -> None:
    agent = cli.seen_by_program()["LD_PRELOAD"]
    libm = next(p for p in Path("/lib").rglob("libm.so.6"))
    seen = cli.seen_by_program(env={"LD_PRELOAD": f"{libm} {agent}"})
    assert seen["LD_PRELOAD"] == f"{agent}:{libm}"


def test_a_run_id_given_is_kept(cli: Command) -> None:
    assert cli.seen_by_program(env={"MSMEMSCOPE_RUN_ID": "mine"})["MSMEMSCOPE_RUN_ID"] == "mine"


def test_ranks_of_one_launcher_share_a_run(cli: Command) -> None:
    first = cli.seen_by_program(env={"RANK": "0"})["MSMEMSCOPE_RUN_ID"]
    second = cli.seen_by_program(env={"RANK": "1"})["MSMEMSCOPE_RUN_ID"]
    assert first == second
    assert first.endswith(f"-{os.getpid()}")


def test_disabled_means_untouched(cli: Command) -> None:
    seen = cli.seen_by_program(env={"MSMEMSCOPE_DISABLE": "1"})
    assert "LD_PRELOAD" not in seen
    assert "MSMEMSCOPE_CONFIG" not in seen


def test_exec_leaves_no_parent_and_lets_the_program_report(cli: Command) -> None:
    process = cli.start("--exec", "--report-to=r.txt", "sh", "-c", "echo $$; env; exit 4")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert out.splitlines()[0] == str(process.pid)
    config = json.loads(re.search(r"^MSMEMSCOPE_CONFIG=(.*)$", out, re.MULTILINE)[1])  # type: ignore[index]
    assert config["mode"] == "exec"
    assert config["report_to"] == str(cli.directory / "r.txt")
    assert err == ""


# -- the program's end -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 2, 77, 255])
def test_the_exit_status_is_passed_on(cli: Command, status: int) -> None:
    assert cli.run("sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGABRT", "SIGSEGV", "SIGINT", "SIGHUP"])
def test_the_childs_death_is_ours(cli: Command, name: str) -> None:
    number = getattr(signal, name)
    die = f"os.kill(os.getpid(), {int(number)})"
    if name == "SIGINT":  # Python would make an exception of it
        die = f"signal.signal({int(number)}, signal.SIG_DFL); {die}"
    done = cli.run(sys.executable, "-c", f"import os, signal; {die}")
    assert done.returncode == -number
    assert not list(cli.directory.glob("core*"))


def test_a_program_that_is_not_there(cli: Command) -> None:
    assert "no such program on PATH" in one_line(cli.run("no-such-program"), 127)
    assert "no such program" in one_line(cli.run("./no-such-program"), 127)


def test_a_program_that_cannot_be_run(cli: Command) -> None:
    (cli.directory / "text").write_text("hello")
    assert "cannot be run: Permission denied" in one_line(cli.run("./text"), 126)
    bad = cli.directory / "bad"
    bad.write_text("#!/no/such/interpreter\n")
    bad.chmod(0o755)
    assert "its interpreter" in one_line(cli.run("./bad"), 127)


def test_a_program_named_like_a_verb(cli: Command) -> None:
    program = cli.directory / "analyze"
    program.write_text("#!/bin/sh\necho the program $*\n")
    program.chmod(0o755)
    path = f"{cli.directory}:{os.environ['PATH']}"
    done = cli.run("--", "analyze", "--json", env={"PATH": path})
    assert (done.returncode, done.stdout) == (0, "the program --json\n")


def test_options_of_the_program_are_its_own(cli: Command) -> None:
    done = cli.run("--device=cpu", "echo", "--device", "gpu", "-V", "--", "--steps=")
    assert done.stdout == "--device gpu -V -- --steps=\n"


# -- signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_signals_reach_the_program_once(cli: Command, name: str) -> None:
    program = (
        "import signal, sys, time\ncount = 0\n"
        "def got(*_):\n    global count\n    count += 1\n"
        f"signal.signal(signal.{name}, got)\n{READY}"
        "deadline = time.time() + 30\n"
        "while not count and time.time() < deadline: time.sleep(0.01)\n"
        "time.sleep(0.2)\nsys.exit(40 + count)"
    )
    process = cli.start(sys.executable, "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert process.returncode == 41


def test_the_program_does_not_outlive_a_killed_launcher(cli: Command) -> None:
    process = cli.start(
        sys.executable, "-c", f"import os, time\nprint(os.getpid())\n{READY}time.sleep(60)"
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.02)
    pytest.fail("the program lives on")


def test_dispositions_and_mask_are_the_programs_own(cli: Command) -> None:
    show = (
        "import signal\nprint(sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
        " [int(s) for s in (signal.SIGCHLD, signal.SIGTERM, signal.SIGTSTP)"
        " if signal.getsignal(s) != signal.SIG_DFL])"
    )
    assert cli.run(sys.executable, "-c", show).stdout == "[] []\n"


def read_until(fd: int, text: bytes, seconds: float = 30) -> bytes:
    got = b""
    deadline = time.monotonic() + seconds
    while text not in got and time.monotonic() < deadline:
        ready, _, _ = select.select([fd], [], [], 0.1)
        if ready:
            try:
                got += os.read(fd, 4096)
            except OSError:
                break
    assert text in got, got
    return got


def on_terminal(words: Sequence[str], directory: Path) -> tuple[int, int]:
    """(pid, terminal) of a session leader that runs the words."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.execve(words[0], list(words), clean())
    return pid, terminal


def test_control_c_reaches_the_program_once_and_ends_both(cli: Command) -> None:
    program = (
        "import signal, sys, time\ncount = 0\n"
        "def got(*_):\n    global count\n    count += 1\n"
        f"signal.signal(signal.SIGINT, got)\n{READY}"
        "deadline = time.time() + 30\n"
        "while not count and time.time() < deadline: time.sleep(0.01)\n"
        "time.sleep(0.2)\nsys.exit(40 + count)"
    )
    pid, terminal = on_terminal([cli.binary, sys.executable, "-c", program], cli.directory)
    try:
        read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 41
    finally:
        os.close(terminal)


def test_control_z_stops_both_and_fg_continues(cli: Command) -> None:
    shell = cli.directory / "job.sh"
    shell.write_text(
        "set -m\n"
        f"{cli.binary} {sys.executable} -c"
        ' \'import time; print(*"ready", sep="", flush=True); time.sleep(1)\'\n'
        "echo sto''pped $?\nfg >/dev/null\necho sta''tus $?\n"
    )
    pid, terminal = on_terminal(["/bin/bash", str(shell)], cli.directory)
    try:
        read_until(terminal, b"ready")
        time.sleep(0.1)
        os.write(terminal, b"\x1a")
        read_until(terminal, b"stopped 148")  # 128 + SIGTSTP, as bash counts
        read_until(terminal, b"status 0")
        os.waitpid(pid, 0)
    finally:
        os.close(terminal)


# -- what is left ----------------------------------------------------------------------------------


def test_nothing_recorded_is_said_and_nothing_is_made(cli: Command) -> None:
    done = cli.run("true")
    assert "nothing was recorded: true made no tensor" in one_line(done, 0)
    assert list(cli.directory.iterdir()) == []


def test_a_static_program_is_said_to_be_untraceable(cli: Command) -> None:
    source = cli.directory / "s.c"
    source.write_text("int main(void) { return 3; }\n")
    binary = cli.directory / "s"
    built = subprocess.run(
        ["cc", "-static", "-o", binary, source], capture_output=True, check=False
    )
    if built.returncode != 0:
        pytest.skip("no static libc here")
    assert "is statically linked" in one_line(cli.run("./s"), 3)


def test_report_to_none_is_silent(cli: Command) -> None:
    done = cli.run("--report-to", "none", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_comes_later_is_one_line(cli: Command) -> None:
    done = cli.run("--report-to=none", "--call-stack", "c:5,python", "--events=access", "true")
    assert "not recorded yet" in one_line(done, 0)
    assert "access" in done.stderr
    assert "c:5" not in done.stderr


# -- on synthetic traces ---------------------------------------------------------------------------


@pytest.fixture
def synthetic(synth: Path, tmp_path: Path) -> Path:
    """A run with a leak of 64 KiB a step, whose answer is known."""
    output = tmp_path / "runs"
    words = ["-o", str(output), "--steps", "60", "--leak", "bag:65536"]
    subprocess.run([synth, *words], check=True, capture_output=True, timeout=60)
    return output


def test_info_says_what_is_there(cli: Command, synthetic: Path) -> None:
    done = cli.run("info", str(synthetic))
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("recorded", "complete", "trace"):
        assert word in done.stdout
    parsed = json.loads(cli.run("info", "--json", str(synthetic)).stdout)
    assert parsed["schema"] == 1
    assert parsed["inputs"][0]["events"]["step"] == 60


def test_analyze_finds_the_known_leak(cli: Command, synthetic: Path) -> None:
    done = cli.run("analyze", "--fail-on", "leak", str(synthetic))
    assert done.returncode == 1, done.stderr
    assert "LEAK" in done.stdout
    assert "+64.0 KiB per step" in done.stdout
    assert cli.run("analyze", "--fail-on", "cycle,peak", str(synthetic)).returncode == 0


def test_a_report_file_is_whole_and_private(cli: Command, synthetic: Path) -> None:
    target = cli.directory / "report.json"
    done = cli.run("analyze", "--json", "--report-to", str(target), str(synthetic))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(target.read_text())["schema"] == 1
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_damage_in_many_places_is_one_line(cli: Command, synthetic: Path) -> None:
    (log,) = synthetic.rglob("trace.msm")
    data = bytearray(log.read_bytes())
    for at in range(2000, len(data), len(data) // 8):
        data[at] ^= 0x10
    log.write_bytes(data)
    done = cli.run("analyze", "--json", str(log))
    assert done.returncode == 2
    assert re.fullmatch(
        r"msmemscope: .*trace\.msm at offset \d+: .* \(and \d+ more, see msmemscope info\)\n",
        done.stderr,
    )
    assert json.loads(done.stdout)["inputs"][0]["complete"] is False


def test_analyze_never_changes_its_input(cli: Command, synthetic: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {
            str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(synthetic.rglob("*"))
        }

    before = state()
    cli.run("analyze", str(synthetic))
    cli.run("info", str(synthetic))
    assert state() == before


# -- a real program --------------------------------------------------------------------------------

LEAKY = """
import torch
store = []
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    store.append(torch.randn(64, 1024))
"""


@pytest.mark.torch
@pytest.mark.parametrize("mode", [[], ["--exec"]])
def test_a_leaky_program_is_diagnosed(cli: Command, mode: list[str]) -> None:
    (cli.directory / "leaky.py").write_text(LEAKY)
    done = cli.run(*mode, "--analysis=leaks", "--report-to=r.txt", sys.executable, "leaky.py")
    assert (done.returncode, done.stdout) == (0, "")
    report = (cli.directory / "r.txt").read_text()
    assert "MemScope  leaky.py  ·  40 steps  ·  cpu" in report
    assert "+256 KiB per step, 1 block per step" in report
    assert "allocated  leaky.py:10" in report
    assert stat.S_IMODE((cli.directory / "r.txt").stat().st_mode) == 0o600
    if not mode:
        assert "====== ERROR: Detected memory leaks on device cpu ======" in report


@pytest.mark.torch
def test_a_killed_program_is_diagnosed_all_the_same(cli: Command) -> None:
    ending = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (cli.directory / "leaky.py").write_text(LEAKY + ending)
    done = cli.run(sys.executable, "leaky.py")
    assert done.returncode == -signal.SIGKILL
    assert "LEAK" in done.stderr
    assert "the process was killed" in done.stderr
