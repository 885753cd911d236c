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


def test_a_value_that_is_no_string_is_a_type_error() -> None:
    with pytest.raises(TypeError) as raised:
        Settings().update({"call_stack": 5})
    assert str(raised.value) == "Value for argument 'call_stack' must be a string (use quotes)"


def test_what_comes_later_is_accepted_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    options: dict[str, object] = {"call_stack": "c:10,python:5", "analysis": "leaks,decompose"}
    settings.update(dict(options))
    settings.update(dict(options))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "msmemscope: not recorded yet, a later version will: call_stack=c:10, analysis=decompose"
    ]


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
