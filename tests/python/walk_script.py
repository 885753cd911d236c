"""Compares the agent's raw frame walk with ``sys._getframe`` over every kind of frame.

Run by ``test_walk.py`` under each interpreter found::

    python walk_script.py PATH_OF_THE_AGENT

Needs nothing but the standard library and works on CPython 3.9 and newer. Prints one line,
``walks N differences 0``, and exits 0 where every stack agreed; 3 where the agent keeps the walk
off on this interpreter (with its reason).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import ctypes
import functools
import gc
import operator
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from types import CodeType, FrameType
from typing import Any, Callable

TEXT_SIZE = 1 << 20
ROUNDS_OF_CHURN = 2000


class Agent(ctypes.Structure):
    """The table of ``msmemscope_agent()``, as ``src/capture/agent_api.h`` has it."""

    _fields_ = [
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("agent_version", ctypes.c_void_p),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("configure", ctypes.c_void_p),
        ("install", ctypes.c_void_p),
        ("refresh", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("stop", ctypes.c_void_p),
        ("shutdown", ctypes.c_void_p),
        ("exiting", ctypes.c_void_p),
        ("step", ctypes.c_void_p),
        ("record", ctypes.c_void_p),
        ("python_stacks_on", ctypes.PYFUNCTYPE(ctypes.c_int)),
        ("python_finalizing", ctypes.CFUNCTYPE(None)),
        (
            "python_stack_text",
            ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t),
        ),
    ]


def load_agent(path: str) -> Agent:
    library = ctypes.PyDLL(path)
    library.msmemscope_agent.restype = ctypes.POINTER(Agent)
    agent = library.msmemscope_agent().contents
    assert isinstance(agent, Agent)
    assert agent.version == 1
    return agent


agent = load_agent(sys.argv[1])
raw_text = agent.python_stack_text
walks = 0
differences: list[str] = []
buffers = threading.local()


# Code objects know their qualified name from 3.11 on.
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"


def function_name(code: CodeType) -> str:
    return str(getattr(code, NAME))


def public_chain(frame: FrameType | None) -> list[str]:
    lines = []
    while frame is not None:
        code = frame.f_code
        lines.append(f"{code.co_filename}:{frame.f_lineno or 0}:{function_name(code)}")
        frame = frame.f_back
    return lines


def show(text: str) -> str:
    # What was no UTF-8 to begin with is replaced.
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def compare(kind: str, size: int, buffer: Any, expected: list[str]) -> None:
    global walks
    walks += 1
    raw = buffer.raw[:size].decode("utf-8").splitlines()
    public = [show(line) for line in expected]
    if raw == public:
        return
    for depth, pair in enumerate(zip(raw, public)):
        if pair[0] != pair[1]:
            differences.append(f"{kind}: frame {depth}: raw {pair[0]!r}, public {pair[1]!r}")
            return
    differences.append(f"{kind}: raw has {len(raw)} frames, public has {len(public)}")


def probe(kind: str, *_: object) -> int:
    if not hasattr(buffers, "text"):
        buffers.text = ctypes.create_string_buffer(TEXT_SIZE)
    b = buffers.text
    # One line, so that this frame's own line is the same in both.
    size, expected = raw_text(b, TEXT_SIZE), public_chain(sys._getframe())  # fmt: skip
    compare(kind, size, b, expected)
    return 1


# --- Kinds of frame --------------------------------------------------------------------------


def plain() -> None:
    probe("plain")


def nested() -> None:
    def middle() -> None:
        def inner() -> None:
            probe("nested")

        inner()

    middle()


def long_statement() -> None:
    total = sum(
        [
            probe("long statement"),
            probe(
                "long statement, second line",
            ),
        ]
    )
    assert total == 2


def recursion(depth: int = 900) -> None:
    if depth == 0:
        probe("recursion")
    else:
        recursion(depth - 1)


def generator() -> None:
    def numbers() -> Iterator[int]:
        for _ in range(3):
            yield probe("generator")

    assert sum(numbers()) == 3
    assert sum(probe("generator expression") for _ in range(2)) == 2


def delegating_generator() -> None:
    def leaf() -> Iterator[int]:
        received = yield probe("yield from")
        yield probe(f"yield from, sent {received}")

    def root() -> Iterator[int]:
        yield from leaf()

    made: Any = root()
    next(made)
    made.send("something")
    made.close()


def closed_generator() -> None:
    def thrown() -> Iterator[None]:
        try:
            yield
        except ValueError:
            probe("generator, thrown into")
        try:
            yield
        finally:
            probe("generator, closed")

    made: Any = thrown()
    next(made)
    made.throw(ValueError())
    made.close()
    # Thrown into before it began: its frame never runs a line.
    fresh: Any = thrown()
    with contextlib.suppress(KeyError):
        fresh.throw(KeyError())


def coroutine() -> None:
    async def leaf() -> None:
        probe("coroutine")
        await asyncio.sleep(0)
        probe("coroutine, after await")

    async def root() -> None:
        await leaf()
        await asyncio.gather(leaf(), leaf())

    asyncio.run(root())


def async_generator() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield probe("async generator")
        await asyncio.sleep(0)
        yield probe("async generator, after await")

    async def root() -> None:
        async for _ in numbers():
            probe("async for")
        assert [n async for n in numbers()] == [1, 1]

    asyncio.run(root())


def async_with() -> None:
    class Manager:
        async def __aenter__(self) -> None:
            probe("__aenter__")

        async def __aexit__(self, *details: object) -> None:
            probe("__aexit__")

    async def root() -> None:
        async with Manager():
            probe("async with")

    asyncio.run(root())


def comprehensions() -> None:
    assert [probe("list comprehension") for _ in range(2)] == [1, 1]
    assert {probe("set comprehension") for _ in range(2)} == {1}
    assert {n: probe("dict comprehension") for n in range(2)} == {0: 1, 1: 1}
    assert [[probe("nested comprehension") for _ in range(2)] for _ in range(2)]


def lambdas() -> None:
    (lambda: probe("lambda"))()
    (lambda run: run())(
        lambda: probe("lambda within lambda"),
    )


def decorators() -> None:
    def twice(function: Callable[[], None]) -> Callable[[], None]:
        probe("decorating")

        @functools.wraps(function)
        def wrapper() -> None:
            function()
            function()

        return wrapper

    @twice
    def decorated() -> None:
        probe("decorated")

    decorated()


def executed() -> None:
    exec("probe('exec')\n\n\nprobe('exec, line 4')", {"probe": probe})
    assert eval("probe('eval') + \\\n probe('eval, line 2')", {"probe": probe}) == 2
    code = compile("def f():\n  probe('compiled')\nf()", "no/such file <of mine>.py", "exec")
    exec(code, {"probe": probe})


def class_bodies() -> None:
    class Outer:
        probe("class body")

        class Inner:
            probe("inner class body")

        def __init_subclass__(cls) -> None:
            probe("__init_subclass__")

    class Derived(Outer):
        pass

    class Meta(type):
        def __call__(cls, *arguments: Any) -> Any:
            probe("metaclass")
            return super().__call__(*arguments)

    class Made(metaclass=Meta):
        def __new__(cls) -> Made:
            probe("__new__")
            return super().__new__(cls)

        def __init__(self) -> None:
            probe("__init__")

    Made()
    Derived()


def finalizers() -> None:
    class Dying:
        def __del__(self) -> None:
            probe("__del__")

    Dying()
    held = Dying()
    del held

    def returns() -> None:
        kept = Dying()  # noqa: F841  dies as the frame is cleared

    returns()

    class Cycle(Dying):
        def __init__(self) -> None:
            self.me = self

    Cycle()
    gc.collect()

    def cells() -> Callable[[], Any]:
        # Cells are made before the first line runs: a collection there meets incomplete frames.
        a, b, c = Cycle(), Cycle(), Cycle()
        return lambda: (a, b, c)

    old = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(20):
            cells()
            sum(n for n in range(2))
    finally:
        gc.set_threshold(*old)
    gc.collect()


def descriptors() -> None:
    class Object:
        @property
        def value(self) -> int:
            return probe("property")

        @value.setter
        def value(self, _: int) -> None:
            probe("property setter")

        @classmethod
        def of_class(cls) -> None:
            probe("classmethod")

        @staticmethod
        def static() -> None:
            probe("staticmethod")

        def __getattr__(self, name: str) -> int:
            return probe("__getattr__")

        def __getitem__(self, _: object) -> int:
            return probe("__getitem__")

        def __call__(self) -> int:
            return probe("__call__")

        def __iter__(self) -> Iterator[int]:
            probe("__iter__")
            return iter([1])

        def __add__(self, _: object) -> int:
            return probe("__add__")

        def __eq__(self, _: object) -> bool:
            return bool(probe("__eq__"))

        def __hash__(self) -> int:
            return probe("__hash__")

        def __repr__(self) -> str:
            return str(probe("__repr__"))

    one: Any = Object()
    one.value = one.value
    one.of_class()
    one.static()
    assert one.missing + one[1] + one() == 3
    assert list(one) == [1]
    assert (one + one, one == 0, {one: 1}[one], f"{one!r}") == (1, True, 1, "1")


def call_backs() -> None:
    assert sorted([2, 1], key=lambda n: probe("sorted") * n) == [1, 2]
    assert list(map(lambda n: probe("map") * n, [1, 2])) == [1, 2]  # noqa: C417  the point
    assert list(filter(lambda n: probe("filter"), [1])) == [1]
    assert functools.partial(probe, "partial")() == 1
    assert functools.reduce(lambda a, b: a + probe("reduce"), [0, 1, 2]) == 2

    def order(a: int, b: int) -> int:
        return probe("cmp_to_key") * (a - b)

    assert sorted([2, 1], key=functools.cmp_to_key(order)) == [1, 2]
    assert re.sub("a", lambda match: str(probe("re.sub")), "a") == "1"
    assert operator.methodcaller("go")(type("Go", (), {"go": lambda self: probe("method")})()) == 1

    @functools.lru_cache(maxsize=100)
    def cached(n: int) -> int:
        return probe("lru_cache") + (cached(n - 1) if n else 0)

    assert cached(3) == 4

    class Copied:
        def __deepcopy__(self, memo: object) -> Copied:
            probe("__deepcopy__")
            return self

    copy.deepcopy([Copied()])


def foreign_call_backs() -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

    def call_back(n: int) -> int:
        return probe("ctypes") + n

    assert kind(call_back)(1) == 2

    compare_kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
    )

    def order(a: Any, b: Any) -> int:
        # The C library's qsort runs without the GIL; ctypes takes it for us.
        probe("qsort")
        return int(a[0]) - int(b[0])

    values = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(values, 3, ctypes.sizeof(ctypes.c_int), compare_kind(order))
    assert list(values) == [1, 2, 3]


def exceptions() -> None:
    def raising() -> None:
        try:
            raise ValueError("first")
        except ValueError as error:
            probe("except")
            raise RuntimeError("second") from error
        finally:
            probe("finally")

    try:
        raising()
    except RuntimeError:
        probe("except, outside")
    else:
        raise AssertionError
    for n in range(2):
        try:
            if n:
                continue
            probe("loop with finally")
        finally:
            probe("finally, on the way out")


def with_statements() -> None:
    @contextlib.contextmanager
    def managed() -> Iterator[None]:
        probe("contextmanager, before")
        try:
            yield
        finally:
            probe("contextmanager, after")

    with managed(), contextlib.ExitStack() as stack:
        stack.callback(probe, "ExitStack")
        probe("with")


def imported_names() -> None:
    module: Any = type(sys)("walk_script_module")
    exec("def __getattr__(name):\n    return probe('module __getattr__')", vars(module))
    vars(module)["probe"] = probe
    assert module.missing == 1


def odd_names() -> None:
    for file in ("Zeichen-ä.py", "文件.py", "\U0001f600.py", "\udcff.py", "x" * 600, ""):
        code = compile("def naïve_λ():\n    return probe('odd names')\nnaïve_λ()", file, "exec")
        exec(code, {"probe": probe})


def many_lines() -> None:
    # Far from the first line, and with code longer than 255 bytes on a line.
    text = (
        "def f():\n"
        + "\n" * 5000
        + "    a = 0\n"
        + "    a = a + "
        + "a + " * 400
        + "probe('far')\n"
    )
    exec(compile(text + "f()\n", "<far>", "exec"), {"probe": probe})
    text = "def f(n):\n  if n:\n" + "    n += 1\n" * 3000 + "  probe('long')\nf(0)\nf(1)\n"
    exec(compile(text, "<long>", "exec"), {"probe": probe})


def match_and_walrus() -> None:
    if (n := probe("walrus")) and n == 1:
        pass
    assert (probe("conditional") if n else 0) == 1
    if sys.version_info >= (3, 10):
        text = "match probe('match'):\n  case 1 if probe('guard'):\n    probe('case')\n"
        exec(compile(text, "<match>", "exec"), {"probe": probe})


def traced() -> None:
    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        plain()
        generator()
    finally:
        sys.settrace(old)


def threads() -> None:
    def work() -> None:
        for _ in range(50):
            recursion(20)
            nested()
            generator()

    started = [threading.Thread(target=work) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def code_churn() -> None:
    # Each round's code dies and leaves its memory to the next: a cache by address alone would
    # answer with a dead function's name or line.
    for n in range(ROUNDS_OF_CHURN):
        name = f"churned_{n}"
        lines = "\n" * (n % 50)
        scope = {"probe": probe}
        text = f"{lines}def {name}():\n    probe('code churn')\n{name}()"
        exec(compile(text, f"<churn {n % 7}>", "exec"), scope)


KINDS = [
    plain,
    nested,
    long_statement,
    recursion,
    generator,
    delegating_generator,
    closed_generator,
    coroutine,
    async_generator,
    async_with,
    comprehensions,
    lambdas,
    decorators,
    executed,
    class_bodies,
    finalizers,
    descriptors,
    call_backs,
    foreign_call_backs,
    exceptions,
    with_statements,
    imported_names,
    odd_names,
    many_lines,
    match_and_walrus,
    traced,
    threads,
    code_churn,
]


def main() -> int:
    modules, state = set(sys.modules), sys.exc_info()
    if agent.python_stacks_on() != 0:
        print("off:", agent.last_error().decode())
        return 3
    assert set(sys.modules) == modules, "the check imports nothing"
    assert sys.exc_info() == state, "the check leaves no exception"
    assert agent.python_stacks_on() == 0, "asking again changes nothing"
    for kind in KINDS:
        kind()
    # Once more, with everything warm: specialised instructions, reused frames, the JIT if any.
    for _ in range(20):
        for kind in KINDS[:-2]:
            kind()
    for difference in differences[:20]:
        print(difference)
    agent.python_finalizing()
    buffer = ctypes.create_string_buffer(16)
    assert raw_text(buffer, 16) == 0, "no walk after finalizing"
    print(f"walks {walks} differences {len(differences)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
