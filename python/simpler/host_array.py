"""Arrays of other libraries as host memory: address, shape, element type.

NumPy arrays, torch tensors, anything with __dlpack__ or the buffer protocol. Nothing is copied; the array must be on
the CPU and C-contiguous.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

from _task_interface import DataType, _buffer_info, _dlpack_info, get_element_size

from .errors import ArgumentError, ArgumentTypeError

__all__ = ["HostArray", "HostBytes", "datatype_named", "describe", "host_bytes", "origin_of", "storage_of"]


class HostArray(NamedTuple):
    address: int
    shape: tuple[int, ...]
    dtype: DataType
    writable: bool
    owner: Any  # keeps the memory alive


class HostBytes(NamedTuple):
    address: int
    nbytes: int
    writable: bool
    owner: Any


# Names as NumPy, ml_dtypes and torch spell them.
_BY_NAME = {
    "float32": DataType.FLOAT32,
    "float16": DataType.FLOAT16,
    "bfloat16": DataType.BFLOAT16,
    "int8": DataType.INT8,
    "int16": DataType.INT16,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "uint8": DataType.UINT8,
    "uint16": DataType.UINT16,
    "uint32": DataType.UINT32,
    "uint64": DataType.UINT64,
    "float8_e4m3fn": DataType.FP8E4M3FN,
    "float8_e8m0fnu": DataType.FP8E8M0,
    "float4_e2m1fn_x2": DataType.FP4E2M1,
    "float4_e2m1fn": DataType.FP4E2M1,
}

# Format characters of the buffer protocol whose size does not depend on the machine, by size for those that do.
_BY_FORMAT = {
    "f": DataType.FLOAT32,
    "e": DataType.FLOAT16,
    "b": DataType.INT8,
    "B": DataType.UINT8,
    "c": DataType.UINT8,
    "h": DataType.INT16,
    "H": DataType.UINT16,
}
_SIGNED = {4: DataType.INT32, 8: DataType.INT64}
_UNSIGNED = {4: DataType.UINT32, 8: DataType.UINT64}
_KDL_CPU_DEVICES = (1, 3)  # DLPack: plain and page-locked host memory


def datatype_named(name: str) -> DataType:
    """The DataType of a NumPy or torch type name; ValueError if there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ArgumentError(f"arrays of type {name} have no DataType; supported: {', '.join(_BY_NAME)}") from None


def describe(array: Any) -> HostArray:
    """Address, shape (a scalar counts as one element) and type; ValueError or TypeError if the array cannot be used."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _from_torch(array)
    if hasattr(array, "__array_interface__"):
        return _from_numpy(array)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array)
    try:
        view = memoryview(array)
    except TypeError:
        raise ArgumentTypeError(
            f"{type(array).__name__} is not a tensor; accepted: Tensor (buffer.tensor(...), "
            "worker.make_tensor_arg(...)), ChipTensor, a NumPy array, a torch tensor, an object with __dlpack__ or the "
            "buffer protocol"
        ) from None
    return _from_buffer(view)


def host_bytes(source: Any, *, need_write: bool = False) -> HostBytes:
    """The bytes of an array or buffer of any type, for copies."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(source, torch.Tensor):
        _check_torch(source)
        result = HostBytes(source.data_ptr(), source.numel() * source.element_size(), True, source)
    elif hasattr(source, "__array_interface__"):
        _check_numpy(source)
        address, read_only = source.__array_interface__["data"]
        result = HostBytes(address, source.nbytes, not read_only, source)
    elif hasattr(source, "__dlpack__"):
        array = _from_dlpack(source)
        result = HostBytes(
            array.address, math.prod(array.shape) * get_element_size(array.dtype), array.writable, array.owner
        )
    else:
        try:
            view = memoryview(source)
        except TypeError:
            raise ArgumentTypeError(
                f"{type(source).__name__} is no host memory; accepted: a NumPy array, a torch tensor, "
                "a bytes-like object, an object with __dlpack__, or a Buffer from create_buffer()"
            ) from None
        _check_contiguous(view.c_contiguous, "buffer", "bytes(...)")
        result = HostBytes(*_buffer_info(view), view)
    if need_write and not result.writable:
        raise ArgumentTypeError(f"{type(source).__name__} is read-only, but this call writes into it")
    return result


def origin_of(array: Any) -> HostBytes:
    """Where an array begins, contiguous or not; nbytes reaches to its last element, gaps included."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        if array.device.type != "cpu":
            _check_torch(array)
        extent = 1 + sum((n - 1) * step for n, step in zip(array.shape, array.stride()))
        return HostBytes(array.data_ptr(), extent * array.element_size(), True, array)
    if hasattr(array, "__array_interface__") and hasattr(array, "strides"):
        if any(step < 0 for step in array.strides):
            raise ArgumentError("the array has negative strides; pass np.ascontiguousarray(array)")
        address, read_only = array.__array_interface__["data"]
        extent = array.itemsize + sum((n - 1) * step for n, step in zip(array.shape, array.strides))
        return HostBytes(address, extent, not read_only, array)
    return host_bytes(array)


def storage_of(array: Any, address: int, nbytes: int) -> tuple[int, int]:
    """(address, bytes) of the allocation that an array is a view of; [address, address + nbytes) if that is unknown."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        storage = array.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    root = array
    while hasattr(getattr(root, "base", None), "__array_interface__"):
        root = root.base
    if root is not array and root.flags.c_contiguous:
        return root.__array_interface__["data"][0], root.nbytes
    return address, nbytes


def _check_contiguous(contiguous: bool, what: str, remedy: str) -> None:
    if not contiguous:
        raise ArgumentError(
            f"the {what} is not C-contiguous; pass {remedy}, and copy the result back if the run writes it"
        )


def _check_torch(tensor: Any) -> None:
    if tensor.device.type != "cpu":
        raise ArgumentError(f"the tensor is on device {tensor.device}; pass a CPU tensor, for example tensor.cpu()")
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"the tensor has layout {tensor.layout}; pass a dense one, for example tensor.to_dense()")
    _check_contiguous(tensor.is_contiguous(), "tensor", "tensor.contiguous()")


def _from_torch(tensor: Any) -> HostArray:
    _check_torch(tensor)
    dtype = datatype_named(str(tensor.dtype).rpartition(".")[2])
    return HostArray(tensor.data_ptr(), tuple(tensor.shape) or (1,), dtype, True, tensor)


def _check_numpy(array: Any) -> None:
    _check_contiguous(array.flags.c_contiguous, "array", "np.ascontiguousarray(array)")


def _from_numpy(array: Any) -> HostArray:
    if not hasattr(array, "flags"):  # a foreign object that only exports the interface
        import numpy as np

        array = np.asarray(array)
    _check_numpy(array)
    if not array.dtype.isnative:
        raise ArgumentError(f"the array has byte order {array.dtype.byteorder!r}; convert it to the machine's own")
    address, read_only = array.__array_interface__["data"]
    return HostArray(address, array.shape or (1,), datatype_named(array.dtype.name), not read_only, array)


def _from_dlpack(array: Any) -> HostArray:
    device, _ = array.__dlpack_device__()
    if device not in _KDL_CPU_DEVICES:
        raise ArgumentError(f"the array is on DLPack device type {int(device)}; copy it to the CPU first")
    address, shape, strides, dtype, _, writable, owner = _dlpack_info(array)
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        _check_contiguous(extent == 1 or stride == expected, "array", "a contiguous copy")
        expected *= extent
    return HostArray(address, shape or (1,), dtype, writable, owner)


def _from_buffer(view: memoryview) -> HostArray:
    _check_contiguous(view.c_contiguous, "buffer", "a contiguous copy")
    letter = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!")
    if letter in _BY_FORMAT:
        dtype = _BY_FORMAT[letter]
    elif letter in ("i", "l", "q", "n") and view.itemsize in _SIGNED:
        dtype = _SIGNED[view.itemsize]
    elif letter in ("I", "L", "Q", "N") and view.itemsize in _UNSIGNED:
        dtype = _UNSIGNED[view.itemsize]
    else:
        raise ArgumentError(
            f"buffers of format {view.format!r} have no DataType; supported: float, half and integer formats"
        )
    address, _, writable = _buffer_info(view)
    return HostArray(address, tuple(view.shape) or (1,), dtype, writable, view)
