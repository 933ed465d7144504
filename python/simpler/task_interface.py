"""The vocabulary of tasks: element types, tensors, arguments, callables, run options.

The types live in the compiled extension; this module gathers them and adds what is plain Python.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from enum import IntEnum
from typing import Any

from _task_interface import (
    CHIP_TENSOR_ADDRESS_SPACE_OFFSET,
    CHIP_TENSOR_STRIDE_BYTES,
    CONTINUOUS_TENSOR_MAX_DIMS,
    DEFAULT_HEAP_RING_SIZE,
    DEFAULT_LOG_THRESHOLD,
    HOST_STRACE_ENABLED,
    MAILBOX_ERROR_MSG_SIZE,
    MAILBOX_FRAME_SIZE,
    MAILBOX_OFF_ERROR_MSG,
    MAILBOX_PREPARATION_DISPOSITION_VALUES,
    MAILBOX_SIZE,
    MAILBOX_STATE_VALUES,
    MAX_REGISTERED_CALLABLE_IDS,
    MAX_RING_DEPTH,
    MAX_SCOPE_DEPTH,
    MAX_TENSOR_DIMS,
    OWNER_INSTANCE_ID_BYTES,
    PTO_PIPELINE_MAX_DEPTH,
    RUNTIME_ENV_RING_COUNT,
    AccessMode,
    AddressSpace,
    ArgDirection,
    BackendKind,
    BufferDescriptor,
    CallConfig,
    CanonicalIdentity,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipTensor,
    ContinuousTensor,
    CoreCallable,
    DataType,
    RuntimeEnv,
    RunTiming,
    TaskArgs,
    TaskState,
    Tensor,
    TensorArgType,
    WorkerType,
    arg_direction_name,
    get_dtype_name,
    get_element_size,
    materialize_task_args,
    read_args_from_blob,
)

from .buffer import Buffer
from .callable_identity import CallableHandle
from .chip_worker import ChipWorker
from .errors import ArgumentTypeError

__all__ = [
    "CHIP_TENSOR_ADDRESS_SPACE_OFFSET",
    "CHIP_TENSOR_STRIDE_BYTES",
    "CONTINUOUS_TENSOR_MAX_DIMS",
    "DEFAULT_HEAP_RING_SIZE",
    "DEFAULT_LOG_THRESHOLD",
    "HOST_STRACE_ENABLED",
    "MAILBOX_ERROR_MSG_SIZE",
    "MAILBOX_FRAME_SIZE",
    "MAILBOX_OFF_ERROR_MSG",
    "MAILBOX_PREPARATION_DISPOSITION_VALUES",
    "MAILBOX_SIZE",
    "MAILBOX_STATE_VALUES",
    "MAX_REGISTERED_CALLABLE_IDS",
    "MAX_RING_DEPTH",
    "MAX_SCOPE_DEPTH",
    "MAX_TENSOR_DIMS",
    "OWNER_INSTANCE_ID_BYTES",
    "PTO_PIPELINE_MAX_DEPTH",
    "RUNTIME_ENV_RING_COUNT",
    "AccessMode",
    "AddressSpace",
    "ArgDirection",
    "BackendKind",
    "Buffer",
    "BufferDescriptor",
    "CallConfig",
    "CallableHandle",
    "CanonicalIdentity",
    "ChipCallable",
    "ChipDomainContext",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "ChipWorker",
    "CommBufferSpec",
    "ContinuousTensor",
    "CoreCallable",
    "DataType",
    "RemoteAddressSpace",
    "RunTiming",
    "RuntimeEnv",
    "TaskArgs",
    "TaskState",
    "Tensor",
    "TensorArgType",
    "WorkerType",
    "arg_direction_name",
    "get_dtype_name",
    "get_element_size",
    "materialize_task_args",
    "read_args_from_blob",
    "scalar_to_uint64",
]

_UINT64_MASK = (1 << 64) - 1


def scalar_to_uint64(value: Any) -> int:
    """The 64-bit pattern of a scalar argument.

    A Python float or c_float becomes its 32 single-precision bits, c_double its 64 bits; other ctypes scalars and
    integers are taken modulo 2**64, so negative ones wrap.
    """
    if isinstance(value, (float, ctypes.c_float)):
        number = value if isinstance(value, float) else value.value
        return struct.unpack("<I", ctypes.c_float(number))[0]  # c_float rounds like C does; overflow gives infinity
    if isinstance(value, ctypes.c_double):
        return struct.unpack("<Q", value)[0]
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
        if isinstance(value, bytes):  # c_char
            value = value[0]
        if value is None:  # a null pointer
            value = 0
    if hasattr(value, "__index__"):
        return int(value.__index__()) & _UINT64_MASK
    if hasattr(value, "__float__"):  # NumPy and torch scalars
        return scalar_to_uint64(float(value))
    raise ArgumentTypeError(f"a scalar must be an integer, a float or a ctypes scalar, not {type(value).__name__}")


@dataclasses.dataclass
class CommBufferSpec:
    """One named part of a communication domain's window."""

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclasses.dataclass
class ChipDomainContext:
    """One chip's view of a communication domain."""

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffers: dict[str, Buffer]

    @property
    def buffer_ptrs(self) -> dict[str, int]:
        """Device addresses of the buffers, by name."""
        return {name: buffer.base for name, buffer in self.buffers.items()}


class RemoteAddressSpace(IntEnum):
    """Where a remote buffer's bytes are."""

    HOST_INLINE = 1
    REMOTE_DEVICE = 2
    REMOTE_WINDOW = 3
    UB_LDST = 4
