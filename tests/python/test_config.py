"""config(): names, aliases, what is allowed, what a call resets."""

from __future__ import annotations

import json
import os

import pytest
from msmemscope import _config, _say
from msmemscope._config import DEFAULTS, Settings


@pytest.fixture(autouse=True)
def _say_again() -> None:
    _say._said.clear()


def test_bare_config_is_allowed_and_means_the_defaults() -> None:
    settings = Settings()
    settings.update({})
    assert settings.values == DEFAULTS
    assert settings["device"] == "auto"


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [("512K", "524288"), ("512kib", "524288"), ("4096", "4096"), ("1G", str(1 << 30)), ("0", "0")],
)
def test_host_memory_is_sampled_by_bytes(given: str, bytes_: str) -> None:
    settings = Settings()
    settings.update({"device": "auto,host", "host_sample": given})
    assert settings["host_sample"] == bytes_


@pytest.mark.parametrize("given", ["-1", "2G", "many", "1X", "512KX"])
def test_a_sampling_distance_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="host_sample"):
        Settings().update({"host_sample": given})


def test_each_call_resets_what_it_does_not_name() -> None:
    settings = Settings()
    settings.update({"analysis": "none", "call_stack": "python:5"})
    settings.update({"device": "cpu"})
    assert (settings["analysis"], settings["call_stack"]) == ("leaks", "")
    assert settings["device"] == "cpu"


def test_format_output_path_and_watch_are_set_once(
    capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]
) -> None:
    settings = Settings()
    settings.update({"output_path": str(tmp_path), "format": "csv"})
    settings.update({"analysis": "leaks"})
    assert settings["output_path"] == str(tmp_path), "not reset by a later call"
    assert "Warn" not in capsys.readouterr().err
    settings.update({"output_path": "/elsewhere", "format": "csv"})
    captured = capsys.readouterr()
    assert settings["output_path"] == str(tmp_path)
    assert 'Warn: Config:"format","output_path","watch" can only be set once.' in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("alias", "name", "value"), [("data_format", "format", "db"), ("output", "output_path", "/x")]
)
def test_aliases_work_and_say_that_they_are_deprecated(
    alias: str, name: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings()
    settings.update({alias: value})
    assert settings[name] == value
    line = f"[msmemscope] Deprecation: '{alias}' is deprecated, use '{name}' instead."
    captured = capsys.readouterr()
    assert line in captured.err.splitlines()
    assert captured.out == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"analysis": "leek"}, ["analysis", "'leek'", "leaks", "decompose"]),
        ({"analysis": "oom:0"}, ["oom:0", "1-1000"]),
        ({"analysis": "oom:1001"}, ["oom:1001"]),
        ({"call_stack": "c:1001"}, ["call_stack", "c:1001", "0-1000"]),
        ({"call_stack": "ruby"}, ["ruby", "python"]),
        ({"device": "npu:32"}, ["device", "npu:32", "0-31"]),
        ({"device": ""}, ["device", "auto"]),
        ({"events": "alloc,fre"}, ["events", "alloc,fre", "free"]),
        ({"level": "2"}, ["level", "'2'", "kernel"]),
        ({"format": "xls"}, ["format", "xls", "csv", "db"]),
        ({"output_path": " "}, ["output_path"]),
        ({"watch": "start"}, ["watch", "START"]),
        ({"anlysis": "leaks"}, ["anlysis", "'leaks'", "analysis"]),
        ({"steps": "1"}, ["steps"]),
    ],
)
def test_a_wrong_option_names_option_value_and_what_is_allowed(
    options: dict[str, object], words: list[str]
) -> None:
    settings = Settings()
    with pytest.raises(ValueError) as raised:
        settings.update(options)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert settings.values == DEFAULTS, "nothing changes"


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"analysis": "leaks，decompose"}, "leaks,decompose"),  # noqa: RUF001 - full width
        ({"analysis": " leaks , oom:1000 "}, "leaks,oom:1000"),
        ({"analysis": ""}, ""),
        ({"call_stack": "c:10,python:5"}, "c:10,python:5"),
        ({"call_stack": ""}, ""),
        ({"device": "npu:31,cpu,cuda:7"}, "npu:31,cpu,cuda:7"),
        ({"level": "0,1"}, "op,kernel"),
        ({"events": "none"}, "none"),
    ],
)
def test_lists(options: dict[str, object], kept: str) -> None:
    settings = Settings()
    settings.update(options)
    assert settings[next(iter(options))] == kept


def test_none_among_others_clears_them(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    settings.update({"analysis": "leaks,none"})
    assert settings["analysis"] == "none"
    assert "'none' mixed with other analysis types, all analysis cleared." in (
        capsys.readouterr().err
    )


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class Pretender:
    """Says that it is a string."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return str


NOT_STRINGS: list[object] = [
    None,
    True,
    5,
    2.5,
    float("nan"),
    b"leaks",
    ["leaks"],
    {"leaks": ["leaks"]},
    ("leaks",),
    [[[["leaks"]]]] * 10_000,
    object(),
    Hostile(),
    Pretender(),
    str,
]


@pytest.mark.parametrize("key", sorted(DEFAULTS))
@pytest.mark.parametrize("value", NOT_STRINGS, ids=lambda value: type(value).__name__)
def test_a_value_that_is_no_string_is_refused(key: str, value: object) -> None:
    settings = Settings()
    with pytest.raises(ValueError) as raised:
        settings.update({"analysis": "none", key: value})
    message = str(raised.value)
    assert f"Value for argument '{key}' must be a string (use quotes)" in message
    assert f"not a {type(value).__name__}" in message
    assert "; allowed: " in message
    assert "\n" not in message
    assert len(message) < 400
    assert isinstance(raised.value, TypeError), "as msMemScope's own"
    assert settings.values == DEFAULTS, "nothing changes"


@pytest.mark.parametrize("key", sorted(DEFAULTS))
@pytest.mark.parametrize(
    "value",
    ["x" * 5000, "\u20ac" * 2000, "leaks\0", "\0", "\ud800", "alloc," * 100_000, "/" * 10_000_000],
    ids=["long", "many bytes", "NUL", "only NUL", "half a character", "long list", "huge"],
)
def test_a_text_that_cannot_be_a_setting_is_refused(key: str, value: str) -> None:
    settings = Settings()
    with pytest.raises(ValueError) as raised:
        settings.update({key: value})
    message = str(raised.value)
    assert message.startswith(f"config(): {key}='")
    assert "; allowed: " in message
    assert len(message) < 400
    message.encode()
    assert settings.values == DEFAULTS


@pytest.mark.parametrize("value", ["oom:\u0663", "npu:\u0661", "c:\u0661"])
def test_digits_are_ascii_digits(value: str) -> None:
    for key in ("analysis", "device", "call_stack"):
        with pytest.raises(ValueError):
            Settings().update({key: value})


def test_a_string_of_a_class_of_its_own_counts_by_its_text() -> None:
    class Text(str):
        def __str__(self) -> str:
            raise RuntimeError("no")

    settings = Settings()
    settings.update({"analysis": Text("none")})
    assert settings["analysis"] == "none"
    assert type(settings["analysis"]) is str


def test_one_option_by_both_its_names_is_refused() -> None:
    settings = Settings()
    with pytest.raises(ValueError, match="second time"):
        settings.update({"format": "csv", "data_format": "db"})
    assert settings.values == DEFAULTS


def test_what_comes_later_is_accepted_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    options: dict[str, object] = {"call_stack": "c:10,python:5", "analysis": "leaks,decompose"}
    settings.update(dict(options))
    settings.update(dict(options))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["msmemscope: not recorded yet, a later version will: analysis=decompose"]


def test_defaults_are_not_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    Settings().update({"events": "alloc,free,launch", "call_stack": "python"})
    assert capsys.readouterr().err == ""


def test_a_path_is_taken_from_where_the_program_is_now(tmp_path: os.PathLike[str]) -> None:
    settings = Settings()
    settings.update({"output_path": "here", "report_to": "report.txt"})
    assert settings["output_path"] == os.path.join(os.getcwd(), "here")
    assert settings["report_to"] == os.path.join(os.getcwd(), "report.txt")


def test_settings_go_to_children_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    settings.update({"device": "cpu", "report_to": "none"})
    _config.leave(settings, "api")
    written = json.loads(os.environ["MSMEMSCOPE_CONFIG"])
    assert written["mode"] == "api"
    assert written["pid"] == os.getpid()
    found = _config.inherited()
    assert found is not None
    child = Settings()
    child.adopt(found.settings)
    assert child["device"] == "cpu"
    assert child["report_to"] == "none"
    assert os.path.isabs(child["output_path"])


@pytest.mark.parametrize("text", ["{", "[]", "3", '"x"'])
def test_a_damaged_environment_is_ignored_with_a_line(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSMEMSCOPE_CONFIG", text)
    assert _config.inherited() is None
    assert "MSMEMSCOPE_CONFIG is ignored" in capsys.readouterr().err


def test_an_unknown_setting_of_another_version_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = Settings()
    settings.adopt({"hologram": "on", "device": "gpu9", "analysis": "none"})
    assert settings["analysis"] == "none"
    assert settings["device"] == "auto"
    assert "gpu9" in capsys.readouterr().err
