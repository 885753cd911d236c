"""docs/analyze.schema.json: strict, and true of what `analyze --json` prints."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/analyze.schema.json").read_text())


def errors(document: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(document)]


FRAME = {
    "file": "/app/train.py",
    "line": 41,
    "end_line": 41,
    "function": "train",
    "module": "__main__",
    "kind": "python",
    "user": True,
    "inferred": False,
    "text": "x = torch.randn(3)",
}

LEAK = {
    "id": "3f9a1c20",
    "cause": "leak",
    "layer": "tensor",
    "device": "cpu",
    "processes": [0],
    "confidence": 0.98,
    "bytes_total": 304087040,
    "bytes_per_step": 1048576.0,
    "bytes_per_second": None,
    "blocks": 290,
    "first_step": 11,
    "last_step": 300,
    "site": FRAME,
    "kept_at": None,
    "sites": [{"site": FRAME, "bytes": 304087040, "blocks": 290}],
    "stack": [FRAME],
    "holders": [
        {
            "root": "module",
            "path": [{"kind": "global", "name": "store", "type": "list", "len": None}],
            "blocks": 290,
            "bytes": 304087040,
            "text": "__main__.store[...]",
        }
    ],
    "owner": None,
    "evidence": {"anything": [1, 2]},
    "advice": "Clear the list.",
}

DIAGNOSIS: dict[str, Any] = {
    "schema": 1,
    "tool": "msmemscope 0.1.0",
    "inputs": [
        {
            "path": "/run/host-x-7",
            "kind": "trace",
            "process": {"host": "host", "rank": None, "pid": 7, "argv0": "train.py"},
            "ended": "exit",
            "complete": True,
            "dropped": 0,
            "agent": "0.1.0",
        }
    ],
    "devices": ["cpu", "cuda:0"],
    "steps": {"source": "api", "count": 300, "first": 1, "last": 300, "warmup_until": 10},
    "layers": [
        {
            "input": 0,
            "device": "cpu",
            "layer": "tensor",
            "allocated": {"start": 0, "peak": 5, "end": 3},
            "reserved": None,
            "bytes_per_step": None,
        }
    ],
    "dropped": {
        "events": 0,
        "ambiguous": 0,
        "gaps": [{"input": 0, "from_ns": 1, "to_ns": 2, "reason": "killed"}],
    },
    "verdicts": [LEAK],
    "suspects": [],
    "suppressed": [],
}


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_diagnosis_of_the_contract_is_valid() -> None:
    assert errors(DIAGNOSIS) == []


def test_every_object_is_strict() -> None:
    """Each key is required, and no other is allowed, but in evidence."""

    def walk(node: Any, path: str) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item, path)
        if not isinstance(node, dict):
            return
        if node.get("type") == "object" and path != "evidence":
            assert node["additionalProperties"] is False, path
            assert sorted(node["required"]) == sorted(node["properties"]), path
        for key, value in node.items():
            walk(value, key)

    walk(SCHEMA["$defs"], "")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["schema"], 2),
        (["verdicts"], []),
        (["steps", "source"], "guess"),
        (["inputs", 0, "kind"], "log"),
        (["inputs", 0, "process", "rank"], -1),
        (["devices"], ["cpu", "cpu"]),
        (["verdicts", 0, "cause"], "bug"),
        (["verdicts", 0, "confidence"], 1.5),
        (["verdicts", 0, "bytes_total"], 1.5),
        (["verdicts", 0, "site", "line"], 0),
        (["verdicts", 0, "site", "kind"], "java"),
        (["verdicts", 0, "sites"], [LEAK["sites"][0]] * 11),  # type: ignore[index]
        (["verdicts", 0, "holders", 0, "root"], "nobody"),
        (["verdicts", 0, "advice"], None),
        (["verdicts", 0, "extra"], 1),
    ],
)
def test_what_breaks_the_contract_is_refused(where: list[Any], value: Any) -> None:
    broken = copy.deepcopy(DIAGNOSIS)
    node = broken
    for key in where[:-1]:
        node = node[key]
    node[where[-1]] = value
    assert errors(broken) != []


def test_none_carries_its_detection_limit() -> None:
    healthy = copy.deepcopy(DIAGNOSIS)
    none = healthy["verdicts"][0]
    none.update(cause="none", bytes_total=0, site=None, evidence={"steps": 290})
    assert errors(healthy) != []
    none["evidence"]["detection_limit_bytes_per_step"] = 2150.4
    assert errors(healthy) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--steps", "60", "--leak", "bag:65536"],
        ["--steps", "60"],
        ["--steps", "3"],
        ["--steps", "40", "--leak", "bag:65536", "--processes", "2"],
    ],
)
def test_what_the_command_prints_is_valid(
    command: str, synth: Path, tmp_path: Path, options: list[str]
) -> None:
    output = str(tmp_path / "runs")
    subprocess.run([synth, "-o", output, *options], check=True, capture_output=True, timeout=60)
    done = subprocess.run(
        [command, "analyze", "--json", output],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert errors(json.loads(done.stdout)) == []
