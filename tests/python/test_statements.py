"""Which statements store something under a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmemscope._statements import storing


def lines(tmp_path: Path, source: str, name: str, attribute: bool = False) -> list[int]:
    path = tmp_path / "source.py"
    path.write_text(source)
    return [statement.line for statement in storing(str(path), name, attribute)]


@pytest.mark.parametrize(
    "statement",
    [
        "store.append(x)",
        "store.extend([x])",
        "store.appendleft(x)",
        "store.add(x)",
        "store.insert(0, x)",
        "store.update({k: x})",
        "store.setdefault(k, []).append(x)",
        "store.get(k).append(x)",
        "store[k] = x",
        "store[k][j] = x",
        "store[k].append(x)",
        "store[k] += [x]",
        "store += [x]",
        "store = torch.cat([store, x])",
        "store = store + [x]",
        "y = store[k] = x",
        "store[k], y = x, 1",
        "store: list = [*store, x]",
        "y = store.setdefault(k, x)",
        "module.store.append(x)",
        "return store.append(x)",
        "if store.append(x): pass",
    ],
)
def test_these_store(tmp_path: Path, statement: str) -> None:
    source = f"store = []\ndef f(x, k, j):\n    global store\n    {statement}\n"
    assert lines(tmp_path, source, "store") == [4]


@pytest.mark.parametrize(
    "statement",
    [
        "store = []",
        "store = x",
        "y = store",
        "y = store[k]",
        "store.clear()",
        "store.pop()",
        "del store[k]",
        "other.append(store)",
        "self.store.append(x)",
        "storey.append(x)",
        "# store.append(x)",
        "'store.append(x)'",
    ],
)
def test_these_do_not(tmp_path: Path, statement: str) -> None:
    assert lines(tmp_path, f"def f(self, x, k):\n    {statement}\n    pass\n", "store") == []


def test_an_attribute_of_anything(tmp_path: Path) -> None:
    source = """\
class Meter:
    def __init__(self):
        self.history = []
    def update(self, value):
        self.history.append(value)
def log(meter, value):
    meter.history[-1] = value
    history.append(value)
"""
    assert lines(tmp_path, source, "history", attribute=True) == [5, 7]
    assert lines(tmp_path, source, "history") == [7, 8], "meter may be a module"


def test_where_a_statement_stands(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(
        """\
class Trainer:
    def run(self):
        def hook(x):
            store.append(
                x,
            )
        return hook
"""
    )
    (found,) = storing(str(path), "store", attribute=False)
    assert (found.line, found.end_line) == (4, 6)
    assert found.function == "Trainer.run.<locals>.hook"
    assert found.text == "store.append( x, )"


@pytest.mark.parametrize("content", [b"def f(:\n", b"\0", b"\xff\xfe\xfa"])
def test_what_cannot_be_parsed_has_no_statements(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "source.py"
    path.write_bytes(content)
    assert storing(str(path), "store", False) == []
    assert storing(str(tmp_path / "missing.py"), "store", False) == []


def test_a_module_s_variable_is_not_a_function_s_own_of_that_name(tmp_path: Path) -> None:
    source = """\
h = start()
def step(h):
    h = rnn(x, h)
    return h
def other():
    h = []
    h.append(1)
    def inner():
        h.append(2)
def rebind():
    global h
    h = rnn(x, h)
def use():
    h.append(3)
h = step(h)
"""
    path = tmp_path / "source.py"
    path.write_text(source)
    found = storing(str(path), "h", module_level=True)
    assert [statement.line for statement in found] == [12, 14, 15]
