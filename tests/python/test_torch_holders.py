"""Who holds the blocks, and the line that put them there, on real tensors."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import textwrap
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import FakeAgent

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

HOLDER, SOURCE = 48, 28
Program = Callable[[str], Any]


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Program:
    """Makes a module from source, older than this process, and calls its `run(count)`."""

    def make(source: str, name: str = "user_program") -> Any:
        path = tmp_path / f"{name}.py"
        path.write_text("import torch\n" + textwrap.dedent(source))
        os.utime(path, (time.time() - 10**6,) * 2)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        request.addfinalizer(lambda: sys.modules.pop(name, None))
        spec.loader.exec_module(module)
        return module

    return make


def address(tensor: Any) -> int:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    return int(storage.data_ptr())


class Result:
    def __init__(self, agent: FakeAgent) -> None:
        self.records = agent.records(HOLDER)
        self.sources = agent.records(SOURCE)
        self.addresses = sorted(numbers[0] for numbers, _ in self.records)
        self.root = self.records[0][1][0] if self.records else ""
        self.path: list[dict[str, Any]] = json.loads(self.records[0][1][1]) if self.records else []
        self.line, self.end_line = self.records[0][0][2:4] if self.records else (0, 0)
        self.file, self.function, self.text = self.records[0][1][2:5] if self.records else ("",) * 3
        self.causes = {strings[5] for _, strings in self.records}


def find(module: Any, tensors: list[Any], agent: FakeAgent, function: str = "run") -> Result:
    """Walks for the blocks of the tensors. The caller's own list is emptied first."""
    from msmemscope._holders import find_holders

    blocks = [{"addr": address(t), "size": 8, "birth": n + 1} for n, t in enumerate(tensors)]
    tensors.clear()
    site = {"file": module.__file__, "function": function, "line": 1}
    find_holders([{"id": "x", "site": site, "blocks": blocks}], agent)
    return Result(agent)


def steps(result: Result) -> list[tuple[str, str]]:
    return [(step["kind"], step["name"]) for step in result.path]


def line_of(module: Any, text: str) -> int:
    source = Path(module.__file__).read_text().splitlines()
    (found,) = [n for n, line in enumerate(source, start=1) if text in line]
    return found


def test_a_module_level_list(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        leak_store = []
        def run(count):
            for _ in range(count):
                tensor = torch.zeros(8)
                leak_store.append(tensor)
        """
    )
    module.run(30)
    tensors = list(module.leak_store)
    expected = sorted(address(t) for t in tensors)
    result = find(module, tensors, fake_agent)
    assert result.root == "module"
    assert steps(result) == [("global", "leak_store"), ("item", "*")]
    assert result.path[0]["type"] == "list"
    assert result.path[0]["len"] == 30
    assert result.addresses == expected, "one record a block"
    assert all(numbers[1] > 0 for numbers, _ in result.records), "with the block's birth"
    assert result.file == module.__file__
    assert result.line == result.end_line == line_of(module, "leak_store.append")
    assert result.function == "run"
    assert result.text == "user_program.leak_store[*]"


def test_losses_with_their_graphs(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        losses = []
        w = torch.ones(4, requires_grad=True)
        def run(count):
            for _ in range(count):
                loss = (w * 2).sum()
                losses.append(loss)
        """
    )
    module.run(10)
    result = find(module, list(module.losses), fake_agent)
    assert steps(result)[0] == ("global", "losses")
    assert result.line == line_of(module, "losses.append")


def test_the_history_of_an_object(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        class Meter:
            def __init__(self):
                self.values = []
            def update(self, value):
                self.values.append(value)
        meter = Meter()
        def run(count):
            for _ in range(count):
                meter.update(torch.zeros(8))
        """
    )
    module.run(10)
    result = find(module, list(module.meter.values), fake_agent)
    assert steps(result) == [("global", "meter"), ("attr", "values"), ("item", "*")]
    assert (result.function, result.line) == ("Meter.update", line_of(module, "values.append"))


def test_two_statements_and_one_on_the_stack(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        store = []
        def run(count):
            for _ in range(count):
                store.append(torch.zeros(8))
        def other():
            store.append(None)
        """
    )
    module.run(10)
    result = find(module, list(module.store), fake_agent, function="run")
    assert result.line == line_of(module, "store.append(torch")


def test_two_statements_and_no_telling_is_left_open(
    program: Program, fake_agent: FakeAgent
) -> None:
    module = program(
        """
        store = []
        def make():
            return torch.zeros(8)
        def run(count):
            for _ in range(count):
                store.append(make())
        def other():
            store.append(None)
        """
    )
    module.run(10)
    result = find(module, list(module.store), fake_agent, function="make")
    assert result.root == "module"
    assert (result.line, result.file, result.function) == (0, "", "")


def test_an_alias_is_left_open(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        store = []
        def run(count):
            target = store
            for _ in range(count):
                target.append(torch.zeros(8))
        """
    )
    module.run(10)
    result = find(module, list(module.store), fake_agent)
    assert result.path
    assert result.line == 0


def test_a_tensor_that_grows(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        seen = torch.zeros(0)
        def run(count):
            global seen
            for _ in range(count):
                seen = torch.cat([seen, torch.ones(8)])
        """
    )
    module.run(10)
    result = find(module, [module.seen], fake_agent)
    assert steps(result) == [("global", "seen")]
    assert result.line == line_of(module, "torch.cat")


def test_a_tensor_that_grows_as_an_attribute(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(0))
            def forward(self, x):
                self.seen = torch.cat([self.seen, x])
                return x
        model = Model()
        def run(count):
            for _ in range(count):
                model(torch.ones(8))
        """
    )
    module.run(10)
    result = find(module, [module.model.seen], fake_agent, function="Model.forward")
    assert steps(result) == [("global", "model"), ("attr", "seen")]
    assert result.line == line_of(module, "torch.cat")


def test_a_view_holds_its_storage(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        rows = {}
        def run(count):
            for number in range(count):
                rows[number] = torch.zeros(8, 8)[3]
        """
    )
    module.run(10)
    result = find(module, list(module.rows.values()), fake_agent)
    assert steps(result)[0] == ("global", "rows")
    assert result.line == line_of(module, "rows[number]")
    assert len(result.records) == 10


def test_a_local_of_a_running_function(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        def run(count, then):
            history = []
            for _ in range(count):
                history.append(torch.zeros(8))
            return then(history)
        """
    )
    result: Result = module.run(10, lambda history: find(module, list(history), fake_agent))
    assert result.root == "frame"
    assert steps(result) == [("local", "history"), ("item", "*")]
    assert result.line == line_of(module, "history.append")


def test_the_source_of_a_holder_off_the_stack_is_kept(
    program: Program, fake_agent: FakeAgent
) -> None:
    keeper = program("store = []\ndef keep(x):\n    store.append(x)\n", "keeper")
    maker = program(
        """
        import keeper
        def run(count):
            for _ in range(count):
                keeper.keep(torch.zeros(8))
        """,
        "maker",
    )
    maker.run(10)
    result = find(maker, list(keeper.store), fake_agent)
    assert result.file == keeper.__file__
    assert result.line == line_of(keeper, "store.append")
    assert [strings[0] for _, strings in result.sources] == [keeper.__file__]
    assert "store.append" in result.sources[0][1][1]


def test_a_file_changed_since_has_no_lines(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        "store = []\ndef run(count):\n    for _ in range(count):\n"
        "        store.append(torch.zeros(8))\n"
    )
    module.run(5)
    os.utime(module.__file__)
    result = find(module, list(module.store), fake_agent)
    assert result.path
    assert result.line == 0


def test_freed_blocks_have_no_holder(program: Program, fake_agent: FakeAgent) -> None:
    module = program("")
    tensors = [torch.zeros(1000) for _ in range(3)]
    assert find(module, tensors, fake_agent).records == []


def test_nothing_of_the_user_s_runs(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        touched = []
        class Liar:
            @property
            def __class__(self):
                touched.append("class")
                return torch.Tensor
            def __getattribute__(self, name):
                touched.append(name)
                raise RuntimeError
            def __eq__(self, other):
                touched.append("eq")
                return NotImplemented
            def __hash__(self):
                return 1
            def __len__(self):
                touched.append("len")
                raise RuntimeError
            def __repr__(self):
                touched.append("repr")
                raise RuntimeError
        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                touched.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})
        store = {}
        def run(count):
            for number in range(count):
                holder = object.__new__(Liar)
                store[holder if number == 0 else f"step {number}"] = [
                    holder, torch.zeros(8).as_subclass(Sub)
                ]
        """
    )
    module.run(6)
    tensors = [pair[1].as_subclass(torch.Tensor) for pair in module.store.values()]
    module.touched.clear()
    counts = gc.get_count()[2]
    result = find(module, tensors, fake_agent)
    assert gc.get_count()[2] >= counts, "nothing was collected"
    assert module.touched == []
    assert steps(result)[0] == ("global", "store")


def test_what_was_looked_at_dies_as_before(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        store = []
        w = torch.ones(4, requires_grad=True)
        def run(count):
            for _ in range(count):
                store.append((w.exp() * w).sum())
        """
    )
    module.run(10)
    gone = [weakref.ref(tensor) for tensor in module.store]
    find(module, list(module.store), fake_agent)
    module.store.clear()
    assert [reference() for reference in gone] == [None] * 10


def test_activations_that_only_a_kept_loss_s_graph_holds(
    program: Program, fake_agent: FakeAgent
) -> None:
    module = program(
        """
        losses = []
        addresses = []
        w = torch.ones(64, requires_grad=True)
        def run(count, address):
            for _ in range(count):
                hidden = w.exp()
                addresses.append(hidden)
                losses.append((hidden * hidden).sum())
        """
    )
    module.run(10, address)
    hidden = list(module.addresses)
    module.addresses.clear()
    result = find(module, hidden, fake_agent)
    assert steps(result) == [("global", "losses"), ("item", "*"), ("ref", "grad_fn")]
    assert result.line == line_of(module, "losses.append")
    assert len(result.records) == 10
    assert result.causes == {"retained_graph"}


def test_a_kept_root_is_told_from_what_its_graph_keeps(
    program: Program, fake_agent: FakeAgent
) -> None:
    from msmemscope._holders import find_holders

    module = program(
        """
        losses = []
        hidden = []
        def run(count):
            w = torch.ones(64, requires_grad=True)
            for _ in range(count):
                h = w.exp()
                hidden.append(h)
                losses.append((h * h).sum())
        """
    )
    module.run(10)
    groups = []
    for function, tensors in (("forward", module.hidden), ("run", module.losses)):
        blocks = [{"addr": address(t), "size": 8, "birth": n + 1} for n, t in enumerate(tensors)]
        site = {"file": module.__file__, "function": function, "line": 1}
        groups.append({"site": site, "blocks": blocks})
    module.hidden.clear()
    find_holders(groups, fake_agent)
    result = Result(fake_agent)
    assert len(result.records) == 20
    assert result.causes == {"retained_graph"}
    kinds = [json.loads(strings[1])[-1]["kind"] for _, strings in result.records]
    assert kinds == ["ref"] * 10 + ["item"] * 10, "hidden by the graph, losses by the list"


def test_a_kept_root_alone_proves_no_graph(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        outputs = []
        def run(count):
            w = torch.ones(64, requires_grad=True)
            for _ in range(count):
                outputs.append(w * 2)
        """
    )
    module.run(10)
    result = find(module, list(module.outputs), fake_agent)
    assert result.causes == {""}


CYCLES = {
    "a link to itself": (
        """
        class Node:
            def __init__(self, value):
                self.value = value
                self.other = self
        def run(count):
            for _ in range(count):
                Node(torch.zeros(8))
        """,
        "self.other = self",
    ),
    "parent and child": (
        """
        class Node:
            def __init__(self):
                self.parent = None
                self.children = []
                self.value = torch.zeros(8)
        def run(count):
            for _ in range(count):
                top, leaf = Node(), Node()
                leaf.parent = top
                top.children.append(leaf)
        """,
        "top.children.append(leaf)",
    ),
    "a function that calls itself": (
        """
        def make():
            tensor = torch.zeros(8)
            def inner(depth):
                return tensor if depth == 0 else inner(depth - 1)
            inner(1)
        def run(count):
            for _ in range(count):
                make()
        """,
        "def inner(depth):",
    ),
}


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def made_by(run: Callable[[int], Any]) -> list[Any]:
    old = {id(thing) for thing in gc.get_objects() if type(thing) is torch.Tensor}
    run(10)
    return [t for t in gc.get_objects() if type(t) is torch.Tensor and id(t) not in old]


@pytest.mark.parametrize("name", CYCLES)
def test_what_only_unreachable_cycles_keep(
    program: Program, fake_agent: FakeAgent, no_collection: None, name: str
) -> None:
    source, closed = CYCLES[name]
    module = program(source)
    made = made_by(module.run)
    count = len(made)
    result = find(module, made, fake_agent)
    assert result.causes == {"cycle"}
    assert len(result.records) == count
    assert result.line == line_of(module, closed)
    gc.collect()
    assert made_by(lambda _: None) == [], "the walk keeps none of it"


def test_what_c_alone_keeps_is_no_cycle(
    program: Program, fake_agent: FakeAgent, no_collection: None
) -> None:
    # The graph keeps the inputs, and they their Python objects, which nothing refers to.
    module = program(
        """
        losses = []
        def run(count):
            w = torch.ones(8, requires_grad=True)
            for _ in range(count):
                losses.append((torch.ones(8) * w).sum())
        """
    )
    made = [tensor for tensor in made_by(module.run) if tensor.dim() and not tensor.requires_grad]
    result = find(module, made, fake_agent)
    assert "cycle" not in result.causes


@pytest.mark.parametrize("how", ["global", "local", "c"])
def test_a_cycle_that_somebody_reaches_is_no_garbage(
    program: Program, fake_agent: FakeAgent, no_collection: None, how: str
) -> None:
    module = program(
        """
        kept = []
        class Node:
            def __init__(self, how):
                self.value = torch.zeros(8)
                self.other = self
                if how == "global":
                    kept.append(self)
        def run(count, how, then):
            nodes = [Node(how) for _ in range(count)]
            if how == "c":
                import ctypes
                for node in nodes:
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(node))
            if how != "local":
                nodes = None
            return then()
        """
    )
    old = {id(thing) for thing in gc.get_objects() if type(thing) is torch.Tensor}

    def ask() -> Result:
        made = [t for t in gc.get_objects() if type(t) is torch.Tensor and id(t) not in old]
        assert len(made) == 10
        return find(module, made, fake_agent)

    result: Result = module.run(10, how, ask)
    assert "cycle" not in result.causes


STORES = {
    "lru_cache": (
        """
        import functools
        @functools.lru_cache(maxsize=None)
        def table(n):
            return torch.zeros(8)
        def run(count):
            for n in range(count):
                table(n)
        """,
        "unbounded_cache",
        "def table(",
    ),
    "lru_cache of tuples": (
        """
        import functools
        @functools.lru_cache(maxsize=None)
        def table(n):
            return n, torch.zeros(8)
        def run(count):
            for n in range(count):
                table(n)
        """,
        "unbounded_cache",
        "def table(",
    ),
    "lru_cache of two arguments": (
        """
        import functools
        @functools.lru_cache(maxsize=None)
        def table(n, length):
            return torch.zeros(length)
        def run(count):
            for n in range(count):
                table(n, 8)
        """,
        "unbounded_cache",
        "def table(",
    ),
    "lru_cache with a size": (
        """
        import functools
        @functools.lru_cache(maxsize=100)
        def table(n):
            return torch.zeros(8)
        def run(count):
            for n in range(count):
                table(n)
        """,
        "none",
        "def table(",
    ),
    "a memo": (
        """
        memo = {}
        def table(n):
            if n not in memo:
                memo[n] = torch.zeros(8)
            return memo[n]
        def run(count):
            for n in range(count):
                table(n)
        """,
        "unbounded_cache",
        "memo[n] = torch",
    ),
    "a memo of an object": (
        """
        class Tables:
            def __init__(self):
                self.known = {}
            def get(self, n):
                found = self.known.get(n)
                if found is None:
                    found = self.known[n] = torch.zeros(8)
                return found
        tables = Tables()
        def run(count):
            for n in range(count):
                tables.get(n)
        """,
        "unbounded_cache",
        "found = self.known[n]",
    ),
    "a log by step": (
        """
        log = {}
        def run(count):
            for n in range(count):
                log[n] = torch.zeros(8)
            return [log[n] for n in range(count)]
        """,
        "",
        "log[n] = torch",
    ),
    "a deque with a length": (
        """
        from collections import deque
        recent = deque(maxlen=60)
        def run(count):
            for n in range(count):
                recent.append(torch.zeros(8))
        """,
        "none",
        "recent.append",
    ),
    "a list that is cut": (
        """
        recent = []
        def run(count):
            for n in range(count):
                recent.append(torch.zeros(8))
                if len(recent) > 60:
                    recent.pop(0)
        """,
        "none",
        "recent.append",
    ),
}


@pytest.mark.parametrize("name", STORES)
def test_what_kind_of_store_it_is(program: Program, fake_agent: FakeAgent, name: str) -> None:
    source, cause, kept = STORES[name]
    module = program(source)
    result = find(module, made_by(module.run), fake_agent, function="table")
    assert len(result.records) == 10
    assert result.causes == {cause}
    assert result.line == line_of(module, kept)


def test_tensors_that_only_an_autograd_graph_keeps_come_to_no_harm(
    program: Program, fake_agent: FakeAgent, capfd: pytest.CaptureFixture[str]
) -> None:
    module = program(
        """
        losses = []
        w = torch.ones(4, requires_grad=True)
        def run(count):
            for _ in range(count):
                hidden = w.exp()  # saved for backward: C++ keeps it when the variable is gone
                losses.append((hidden * hidden).sum())
        """
    )
    module.run(10)
    find(module, list(module.losses), fake_agent)
    module.losses[0].backward()
    assert module.w.grad is not None
    module.losses.clear()
    gc.collect()
    assert "live PyObject" not in capfd.readouterr().err


def test_it_is_quick_among_many_objects(program: Program, fake_agent: FakeAgent) -> None:
    module = program(
        """
        ballast = [[n] for n in range(400_000)]
        store = []
        def run(count):
            for _ in range(count):
                store.append({"loss": torch.zeros(8)})
        """
    )
    module.run(200)
    tensors = [entry["loss"] for entry in module.store]
    started = time.monotonic()
    result = find(module, tensors, fake_agent)
    assert time.monotonic() - started < 60, "a second on a machine of its own"
    assert len(result.records) == 200
    assert steps(result) == [("global", "store"), ("item", "*"), ("item", "loss")]


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (
            """
            errors = []
            def work():
                tensor = torch.zeros(8)
                raise RuntimeError("bad sample")
            def run(count):
                for _ in range(count):
                    try:
                        work()
                    except RuntimeError as error:
                        errors.append(error)
            """,
            "errors.append(error)",
        ),
        (
            """
            callbacks = []
            def add():
                tensor = torch.zeros(8)
                callbacks.append(lambda: tensor)
            def run(count):
                for _ in range(count):
                    add()
            """,
            "callbacks.append(lambda: tensor)",
        ),
        (
            """
            def batches():
                past = []
                while True:
                    past.append(torch.zeros(8))
                    yield past[-1]
            source = batches()
            def run(count):
                for _ in range(count):
                    next(source)
            """,
            "past.append(torch.zeros(8))",
        ),
        (
            """
            import logging
            class Memory(logging.Handler):
                def __init__(self):
                    super().__init__()
                    self.records = []
                def emit(self, record):
                    self.records.append(record)
            log = logging.Logger("user")
            log.addHandler(Memory())
            def run(count):
                for _ in range(count):
                    log.info("batch %s", torch.zeros(8))
            """,
            "self.records.append(record)",
        ),
    ],
    ids=["traceback", "closure", "generator", "log"],
)
def test_what_holds_tensors_out_of_sight(
    program: Program, fake_agent: FakeAgent, source: str, kept: str
) -> None:
    module = program(source)
    old = {id(thing) for thing in gc.get_objects() if type(thing) is torch.Tensor}
    module.run(10)
    made = [t for t in gc.get_objects() if type(t) is torch.Tensor and id(t) not in old]
    expected = sorted(address(t) for t in made)
    assert len(expected) == 10
    result = find(module, made, fake_agent)
    assert result.addresses == expected
    assert result.line == line_of(module, kept)


def test_a_variable_of_a_function_is_not_the_module_s(
    program: Program, fake_agent: FakeAgent
) -> None:
    # Both statements rebind an `h`; the one on the stack is the function's own.
    module = program(
        """
        h = []
        def step(h):
            h = [*h, torch.zeros(8)]
            return h
        for _ in range(10):
            h = step(h)
        """
    )
    tensors = list(module.h)
    result = find(module, tensors, fake_agent, function="step")
    assert result.text.startswith("user_program.h")
    assert result.line == line_of(module, "h = step(h)")
