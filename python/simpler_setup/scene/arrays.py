"""Torch tensors, NumPy arrays and other host arrays, seen alike. Imports neither torch nor NumPy by itself."""

from __future__ import annotations

import copy
import sys
from typing import Any

from ..errors import SceneError

MAX_DIMS = 5


class ArrayError(SceneError):
    """A value cannot be passed as a tensor; the text names the tensor."""


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def dtype_name(value: Any) -> str:
    """float32, int8, ... of a torch tensor or a NumPy array."""
    return str(value.dtype).replace("torch.", "")


def view(name: str, value: Any, *, writable: bool = True) -> Any:
    """Address, shape and DataType of a tensor's memory (a `simpler.host_array.HostArray`).

    `writable` says that the run writes it: read-only memory is then refused. ArrayError when it cannot be used as is.
    """
    from simpler.host_array import describe

    try:
        seen = describe(value)
    except (ValueError, TypeError, BufferError) as error:
        raise ArrayError(f"tensor {name!r}: {error}") from error
    if len(seen.shape) > MAX_DIMS:
        raise ArrayError(
            f"tensor {name!r} has {len(seen.shape)} dimensions, shape {seen.shape}; at most {MAX_DIMS} fit; reshape it"
        )
    if writable and not seen.writable:
        raise ArrayError(f"tensor {name!r} is read-only, but the run writes it; pass a writable copy")
    return seen


def as_array(name: str, value: Any) -> Any:
    """The value itself when it is a torch tensor or a NumPy array, else a NumPy view of it."""
    if is_torch(value):
        return value
    try:
        import numpy
    except ImportError:
        given = type(value).__name__
        raise ArrayError(f"tensor {name!r} is a {given}; install NumPy, or use a torch tensor") from None
    try:
        if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
            return numpy.from_dlpack(value)
        return numpy.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise ArrayError(f"tensor {name!r} is a {type(value).__name__}, which is not an array: {error}") from error


def clone(value: Any) -> Any:
    """A copy with memory of its own."""
    if is_torch(value):
        return value.detach().clone()
    return value.copy() if hasattr(value, "copy") else copy.deepcopy(value)


def assign(target: Any, source: Any) -> None:
    """Overwrite the memory of `target` with `source`, a clone of it."""
    if is_torch(target):
        target.copy_(source)
    else:
        as_array("target", target)[...] = as_array("source", source)
