"""Torch tensors (and other arrays) as the runtime's tensors."""

from __future__ import annotations

from typing import Any

from .scene import arrays


def torch_dtype_to_datatype(dtype: Any) -> Any:
    """The DataType of a torch dtype; KeyError when there is none."""
    from simpler.host_array import datatype_named

    try:
        return datatype_named(str(dtype).rpartition(".")[2])
    except ValueError as error:
        raise KeyError(str(error)) from None


def make_chip_tensor_arg(tensor: Any) -> Any:
    """A ChipTensor over a CPU tensor's memory, which must outlive its use.

    ValueError for an unsupported dtype, another device, or a tensor that is not contiguous.
    """
    from simpler.task_interface import ChipTensor

    seen = arrays.view("tensor", tensor, writable=False)
    return ChipTensor.make(data=seen.address, shapes=seen.shape, dtype=seen.dtype)


def make_tensor_arg(*args: Any) -> Any:
    """`make_tensor_arg(worker, tensor)`: a wire tensor that the worker can pass on.
    `make_tensor_arg(tensor)`: the older form, a ChipTensor over its memory.
    """
    if len(args) == 1:
        return make_chip_tensor_arg(args[0])
    if len(args) != 2:
        raise TypeError(f"make_tensor_arg takes (worker, tensor) or (tensor), got {len(args)} arguments")
    worker, tensor = args
    seen = arrays.view("tensor", tensor, writable=False)
    return worker.make_tensor_arg(tensor, shapes=seen.shape, dtype=seen.dtype.value)
