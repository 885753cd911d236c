"""Tensors that only an autograd graph keeps, and the tensors that keep the graph.

`losses.append(loss)` keeps loss, loss keeps its graph, the graph keeps the activations of its step:
those have no Python reference to follow. But each activation knows the node that made it
(`grad_fn`), and the nodes a root leads to are `next_functions`: where the one is among the others,
the root keeps it. Nothing is unpacked, so no hook of a saved tensor runs.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any

from ._tensors import ownership_taker, tensor_test, without_torch_function

MAX_NODES = 2_000  # of one root's graph
MAX_ROOTS = 20_000


class Graphs:
    """The graphs of all live Python tensors, looked at on demand."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._torch: Any = sys.modules["torch"]
        is_tensor = tensor_test(self._torch)
        with without_torch_function(self._torch):
            found = [thing for thing in gc.get_objects() if is_tensor(thing)]
            take_over = ownership_taker(self._torch)
            self.tensors: list[Any] = []
            for tensor in found[:MAX_ROOTS]:
                take_over(tensor)
                if _node(tensor) is not None:
                    self.tensors.append(tensor)

    def roots_of(self, kept: list[Any]) -> list[list[Any]]:
        """For each of the tensors, the other tensors whose graphs lead to it."""
        with without_torch_function(self._torch):
            makers = [_node(tensor) for tensor in kept]
            places = {id(maker): at for at, maker in enumerate(makers) if maker is not None}
            own = {id(tensor) for tensor in kept}
            roots: list[list[Any]] = [[] for _ in kept]
            for tensor in self.tensors:
                if time.monotonic() > self._deadline:
                    break
                if id(tensor) in own or not places:
                    continue
                for at in self._reached(_node(tensor), places):
                    roots[at].append(tensor)
            return roots

    def _reached(self, start: Any, places: dict[int, int]) -> set[int]:
        reached: set[int] = set()
        nodes = {id(start): start}  # holds the nodes, so that no id is used twice
        level = [start]
        while level and len(nodes) < MAX_NODES:
            following = []
            for node in level:
                if id(node) in places:
                    reached.add(places[id(node)])
                for after, _ in _next(node):
                    if after is not None and id(after) not in nodes:
                        nodes[id(after)] = after
                        following.append(after)
            level = following
        return reached


def _node(tensor: Any) -> Any:
    try:
        return tensor.grad_fn
    except Exception:  # a view whose base was changed in place, a tensor of a user's own making
        return None


def _next(node: Any) -> Any:
    try:
        return node.next_functions
    except Exception:
        return ()
