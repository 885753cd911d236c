"""Which Python tensors lie in which blocks: one pass over the collector's objects.

No user code runs: types are looked at, never asked (isinstance would call `__class__`), and tensor
subclasses' __torch_function__ is off meanwhile. Nothing is collected, imported or allocated on a
device. A tensor that refuses is passed over.

A tensor whose Python object nobody refers to any more may live on in C++, which then owns the
Python object (torch/csrc/autograd/python_variable.cpp, "PyObject preservation"). The collector
still shows such objects; having taken a reference to one, the ownership must be turned round, as
_fix_weakref() does for weak references, or torch warns when the tensor dies first.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

_NOT_REAL = frozenset({"FakeTensor", "FunctionalTensor"})  # asking these for memory is an error


def tensor_test(torch: Any) -> Any:
    """A function that says whether an object's type is a tensor's, by the type alone."""
    tensor = torch.Tensor
    known: dict[int, bool] = {}
    get_mro = type.__dict__["__mro__"].__get__

    def is_tensor(thing: object) -> bool:
        kind = type(thing)
        answer = known.get(id(kind))
        if answer is None:
            answer = tensor in get_mro(kind) and kind.__name__ not in _NOT_REAL
            known[id(kind)] = answer
        return answer

    return is_tensor


def without_torch_function(torch: Any) -> Any:
    for name in ("DisableTorchFunctionSubclass", "DisableTorchFunction"):
        make = getattr(torch._C, name, None)
        if make is not None:
            return make()
    return nullcontext()


def ownership_taker(torch: Any) -> Any:
    """A function that turns the ownership of a tensor's Python object round.

    Before torch 2.0 _fix_weakref() keeps the reference that it takes, so that the tensor would
    never die; a tensor without memory of our own shows which one this is, and the reference is
    given back."""
    fix = getattr(torch.Tensor, "_fix_weakref", None)
    if fix is None:
        return _nothing
    probe = _empty_tensor(torch)
    before = sys.getrefcount(probe)
    fix(probe)
    kept = sys.getrefcount(probe) - before
    if kept == 0:
        return fix
    # A prototype of our own: ctypes.pythonapi's functions are everybody's.
    give_back = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))
    for _ in range(kept):
        give_back(probe)
    if kept != 1:
        return _nothing

    def take_over(tensor: Any) -> None:
        fix(tensor)
        give_back(tensor)

    return take_over


def _empty_tensor(torch: Any) -> Any:
    """Of the CPU, whatever the default device is; no dispatch mode of the program's sees it."""
    disable = getattr(torch._C, "_DisableTorchDispatch", None)
    guard = None if disable is None else disable()  # as long as it lives
    try:
        return torch.FloatTensor()
    finally:
        del guard


def _nothing(tensor: Any) -> None:
    pass


def storage_address(torch: Any) -> Any:
    """A function from a tensor to its storage's address, 0 where it has none."""
    to_storage = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
    is_cow = getattr(torch._C, "_is_cow_tensor", None)  # its address would be a copy's
    take_over = ownership_taker(torch)

    def address(tensor: Any) -> int:
        try:
            take_over(tensor)
            if is_cow is not None and is_cow(tensor):
                return 0
            return int(to_storage(tensor).data_ptr())
        except Exception:
            return 0

    return address


def tensors_in(addresses: Iterable[int]) -> tuple[list[Any], list[int]]:
    """The Python tensors whose storage begins at one of the addresses, and at which."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return [], []
    wanted = frozenset(addresses)
    is_tensor = tensor_test(torch)
    tensors: list[Any] = []
    places: list[int] = []
    with without_torch_function(torch):
        address = storage_address(torch)
        for candidate in [thing for thing in gc.get_objects() if is_tensor(thing)]:
            place = address(candidate)
            if place in wanted:
                tensors.append(candidate)
                places.append(place)
    return tensors, places


# src/core/where.h: layers and c10::DeviceType numbers.
_LAYER_POOL, _LAYER_TENSOR = 1, 2
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xpu": 12, "npu": 20}
_NO_INDEX = 127


def _where(device: Any) -> int | None:
    number = _DEVICE_TYPES.get(device.type)
    if number is None:
        return None
    layer = _LAYER_TENSOR if number == 0 else _LAYER_POOL
    index = _NO_INDEX if number == 0 or device.index is None else device.index
    return layer << 12 | number << 7 | index


def all_storages() -> list[tuple[int, int, int]]:
    """Address, bytes and place (Where::packed) of the storages of all Python tensors."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return []
    is_tensor = tensor_test(torch)
    to_storage = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
    found: dict[int, tuple[int, int, int]] = {}
    with without_torch_function(torch):
        address = storage_address(torch)
        for tensor in [thing for thing in gc.get_objects() if is_tensor(thing)]:
            place = address(tensor)
            if place and place not in found:
                where = _where(tensor.device)
                if where is not None:
                    found[place] = (place, int(to_storage(tensor).nbytes()), where)
    return list(found.values())
