"""The settings of `config()`: their names, what is allowed, what they mean.

Names, aliases and meanings are msMemScope's; the deliberate differences are that a bare `config()`
is allowed, that `device` defaults to `auto`, and that a wrong option raises a ValueError that names
the option, the value and what is allowed. What a later version records is accepted, and one line
says so.

Settings travel to other processes as JSON in MSMEMSCOPE_CONFIG:

    {"mode": "api" | "command" | "exec", "pid": PID OF THE WRITER, SETTING: "TEXT", ...}

`api` is left by start() for children that import msmemscope; `command` is written by the launcher,
which reports itself; with `exec` the launcher became the program, which reports as in `api` mode.
The launcher also knows `suppressions` (a file) and `collect_mode` (`deferred`: wait for start()).
"""

from __future__ import annotations

import json
import os
import re

from ._say import raw_line, say_once

ENVIRONMENT = "MSMEMSCOPE_CONFIG"
RUN_ID = "MSMEMSCOPE_RUN_ID"

ALIASES = {"data_format": "format", "output": "output_path"}
SET_ONCE = ("format", "output_path", "watch")
DEFAULTS = {
    "analysis": "leaks",
    "call_stack": "",
    "device": "auto",
    "events": "alloc,free,launch",
    "format": "",  # no csv or db unless asked for
    "host_sample": "",  # every block
    "level": "op",
    "max_trace_size": "",  # 20 GB, or a tenth of the free space if that is less
    "output_path": "memscopeDumpResults",
    "report_to": "stderr",
    "watch": "",
}

MIN_TRACE_SIZE = 16 << 20
_MAX_LENGTH = 4096  # bytes of a value
_SEPARATOR = re.compile("[,\uff0c]")  # the full-width comma is a separator, too


def _items(value: str) -> list[str]:
    return [item.strip() for item in _SEPARATOR.split(value) if item.strip()]


def _list_of(pattern: str, value: str, empty: bool = False) -> str | None:
    """A comma list whose items all match the pattern; an empty one only where `empty` allows it."""
    items = _items(value)
    if not items:
        return "" if empty and not value.strip() else None
    return ",".join(items) if all(re.fullmatch(pattern, item, re.ASCII) for item in items) else None


def _cleared(value: str | None, what: str) -> str | None:
    """`none` among other items clears them all, with the reference's warning."""
    if value is not None and "none" in _items(value):
        if len(_items(value)) > 1:
            raw_line(
                f"[msmemscope] Warn: 'none' mixed with other {what} types, all "
                f"{'analysis' if what == 'analysis' else 'events'} cleared."
            )
        return "none"
    return value


def _depth_ok(value: str) -> bool:
    return all(int(item.partition(":")[2] or "50") <= 1000 for item in _items(value))


def _check_call_stack(value: str) -> str | None:
    listed = _list_of(r"(c|python)(:\d{1,9})?", value, empty=True)
    return listed if listed is not None and _depth_ok(listed) else None


def _check_analysis(value: str) -> str | None:
    pattern = r"leaks|decompose|inefficient|oom(:([1-9]\d{0,2}|1000))?|none"
    return _cleared(_list_of(pattern, value, empty=True), "analysis")


def _check_device(value: str) -> str | None:
    npu = r"npu(:([12]?\d|3[01]))?"
    cuda = r"cuda(:(\d|[1-9]\d|1[01]\d|12[0-6]))?"
    return _list_of(f"auto|cpu|host|{npu}|{cuda}", value)


def _check_host_sample(value: str) -> str | None:
    """Bytes between two samples, as a number; 0 is every block."""
    match = re.fullmatch(r"(\d{1,10})([KMG]?)(i?B)?", value, re.IGNORECASE)
    if match is None or (match[3] and not match[2] and match[3].upper() != "B"):
        return None
    size = int(match[1]) * 1024 ** "_KMG".index((match[2] or "_").upper())
    return str(size) if size <= 1 << 30 else None


def _check_level(value: str) -> str | None:
    words = {"0": "op", "1": "kernel"}
    for item in _items(value):
        if item in words:
            deprecated(item, words[item])
    return _list_of("op|kernel", ",".join(words.get(item, item) for item in _items(value)))


def _check_events(value: str) -> str | None:
    return _cleared(_list_of("alloc|free|launch|access|traceback|none", value), "event")


def _check_watch(value: str) -> str | None:
    # start[:outid],end[,full-content]: the first comma is needed.
    if not value:
        return value
    parts = _SEPARATOR.split(value)
    good = len(parts) in (2, 3) and bool(parts[1]) and all(len(part) <= 254 for part in parts)
    if len(parts) == 3 and parts[2] != "full-content":
        good = False
    return value if good else None


def _check_path(value: str) -> str | None:
    # Absolute: the program may change its directory.
    return os.path.abspath(value) if value.strip() else None


def _check_report_to(value: str) -> str | None:
    return value if value in ("stderr", "stdout", "none") else _check_path(value)


def _check_format(value: str) -> str | None:
    return value if value in ("csv", "db") else None


def _check_size(value: str) -> str | None:
    """Bytes, as text; "" for the default."""
    if not value:
        return value
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)(i?B)?", value, re.ASCII)
    size = int(match[1]) * 1024 ** ("KMGT".index(match[2]) + 1 if match[2] else 0) if match else 0
    return str(size) if MIN_TRACE_SIZE <= size < 2**62 else None


_CHECKS = {
    "analysis": (_check_analysis, "leaks, decompose, inefficient, oom[:1-1000], none"),
    "call_stack": (_check_call_stack, 'c[:0-1000], python[:0-1000], or "" for none'),
    "device": (_check_device, "auto, cpu, host, npu[:0-31], cuda[:0-126]"),
    "host_sample": (_check_host_sample, "bytes between two samples: 512K, 1G at most; 0 = all"),
    "events": (_check_events, "alloc, free, launch, access, traceback, none"),
    "format": (_check_format, "csv, db"),
    "level": (_check_level, "op, kernel"),
    "max_trace_size": (_check_size, "bytes, with K, M, G or T after the number, 16M at least"),
    "output_path": (_check_path, "a directory's path of at most 4096 bytes"),
    "report_to": (_check_report_to, "stderr, stdout, none, or a file's path"),
    "watch": (_check_watch, "START[:OUTID],END[,full-content]"),
}


class WrongType(ValueError, TypeError):
    """A value that is no string: msMemScope raises a TypeError, we a ValueError as for all."""


def deprecated(old: str, new: str) -> None:
    raw_line(f"[msmemscope] Deprecation: '{old}' is deprecated, use '{new}' instead.")


class Settings:
    """The settings in force; every value is text, as it was given."""

    def __init__(self) -> None:
        self.values: dict[str, str] = dict(DEFAULTS)
        self.given: set[str] = set()  # what the last config() named
        self._once: dict[str, str] = {}  # the set-once keys given so far

    def __getitem__(self, key: str) -> str:
        return self.values[key]

    def analyses(self) -> list[str]:
        return _items(self.values["analysis"])

    def update(self, options: dict[str, object]) -> None:
        """What config(**options) does. Nothing changes where an option is wrong."""
        given: dict[str, str] = {}
        for name, value in options.items():
            key = ALIASES.get(name, name)
            if key not in _CHECKS:
                raise ValueError(
                    f"config(): unknown option {name!r} (value {_shown(value)}); allowed are "
                    + ", ".join(sorted(_CHECKS))
                )
            if key in given:
                raise ValueError(
                    f"config(): {name}={_shown(value)} is {key} a second time; give it once"
                )
            given[key] = _checked(name, key, value)
        for name in options:
            if name in ALIASES:
                deprecated(name, ALIASES[name])
        fresh = dict(DEFAULTS)
        fresh.update(self._once)
        refused = False
        for key, value in given.items():
            if key in self._once and self._once[key] != value:
                refused = True
            else:
                fresh[key] = value
        if refused:
            raw_line('Warn: Config:"format","output_path","watch" can only be set once.')
        self._once.update({k: fresh[k] for k in given if k in SET_ONCE})
        self.values = fresh
        self.given = set(given)
        self._say_what_is_not_recorded(given)

    def adopt(self, inherited: dict[str, str]) -> None:
        """Takes settings from the environment. Their writer has checked them and said what is not
        recorded yet; what is wrong here (another version's) is left out with one line."""
        for key, value in inherited.items():
            key = ALIASES.get(key, key)
            if key not in _CHECKS or value == "" or value == DEFAULTS.get(key):
                continue
            try:
                self.values[key] = _checked(key, key, value)
            except ValueError as error:
                say_once(str(error))
                continue
            if key in SET_ONCE:
                self._once[key] = self.values[key]
            self.given.add(key)

    def _say_what_is_not_recorded(self, given: dict[str, str]) -> None:
        later = [
            f"{key}={item}"
            for key in ("analysis", "level", "events", "watch")
            for item in _later_items(key, given.get(key, ""))
        ]
        if later:
            say_once(f"not recorded yet, a later version will: {', '.join(later)}")


def _later_items(key: str, value: str) -> list[str]:
    if key == "watch":
        return [value] if value else []
    patterns = {
        "analysis": r"decompose|inefficient|oom(:.*)?",
        "level": "kernel",
        "events": "launch|access|traceback",
    }
    if value == DEFAULTS[key]:
        return []
    return [item for item in _items(value) if re.fullmatch(patterns[key], item)]


def _checked(name: str, key: str, value: object) -> str:
    check, allowed = _CHECKS[key]
    what = f"config(): {name}={_shown(value)}"
    # Not isinstance: a class of the program's may say that it is str, and run code of its own.
    if type(value) is not str:
        if not issubclass(type(value), str):
            raise WrongType(
                f"config(): Value for argument '{name}' must be a string (use quotes), not a "
                f"{type(value).__name__}: {_shown(value)}; allowed: {allowed}"
            )
        value = str.__str__(value)
    # Settings go into the environment of children and into the trace.
    if why := _no_setting(value):
        raise ValueError(f"{what} {why}; allowed: {allowed}")
    result = check(value)
    if result is None:
        raise ValueError(f"{what} is not allowed; allowed: {allowed}")
    return result


def _no_setting(value: str) -> str:
    """Why a text can be no path or environment variable; "" where it can."""
    if "\0" in value:
        return "has a NUL character"
    try:
        too_long = len(value) > _MAX_LENGTH or len(os.fsencode(value)) > _MAX_LENGTH
    except UnicodeEncodeError:
        return "has half a character (a lone surrogate)"
    return f"is longer than {_MAX_LENGTH} bytes" if too_long else ""


def _shown(value: object) -> str:
    """A value as an error shows it: on one line, short, whatever the value's own repr() does."""
    try:
        import reprlib  # only here: most programs give no wrong value

        short = reprlib.Repr()
        short.maxstring = short.maxother = 100
        return " ".join(short.repr(value).split())
    except Exception:
        return f"<a {type(value).__name__}>"


class Inherited:
    """What MSMEMSCOPE_CONFIG says."""

    def __init__(self, mode: str, pid: int, settings: dict[str, str]) -> None:
        self.mode = mode
        self.pid = pid
        self.settings = settings


def inherited() -> Inherited | None:
    """The configuration another process left in the environment; None where there is none."""
    text = os.environ.get(ENVIRONMENT)
    if not text:
        return None
    try:
        parsed = json.loads(text)
        if not isinstance(parsed, dict):
            raise ValueError("not an object")
        mode = parsed.pop("mode", "command")
        pid = parsed.pop("pid", 0)
        settings = {k: v for k, v in parsed.items() if isinstance(k, str) and isinstance(v, str)}
        return Inherited(str(mode), pid if isinstance(pid, int) else 0, settings)
    except ValueError as error:
        say_once(f"{ENVIRONMENT} is ignored, it is no JSON object: {error}")
        return None


def leave(settings: Settings, mode: str) -> None:
    """Leaves the configuration in the environment, for children that import msmemscope."""
    values: dict[str, object] = {"mode": mode, "pid": os.getpid()}
    values.update(settings.values)
    values["output_path"] = os.path.abspath(settings["output_path"])
    os.environ[ENVIRONMENT] = json.dumps(values)
