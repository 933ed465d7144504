"""Memory of a level-2 worker: device allocations, host shared buffers, host arrays as tensors, copies."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from _task_interface import (
    AccessMode,
    AddressSpace,
    BackendKind,
    ChipStorageTaskArgs,
    DataType,
    TaskArgs,
    Tensor,
    _bind_task_args,
)

from .buffer import (
    Buffer,
    create_host_shared_buffer,
    mint_owner_instance_id,
    row_major_strides,
    wrap_device_malloc,
    wrap_fork_inherited,
)
from .chip_worker import ChipWorker
from .errors import ArgumentError, ArgumentTypeError, StateError
from .host_array import HostBytes, describe, host_bytes, origin_of, storage_of

__all__ = ["WorkerMemory"]

_MEMO_LIMIT = 4096  # remembered host storages; forgetting one only means that a later view gets another identity


class WorkerMemory:
    """Buffers and copies of one worker. Threads: any; one lock for the tables, none is held during a copy.

    A copy or free waits for runs in flight that name the memory, so that copies and runs happen in program order.
    """

    def __init__(self, chip: ChipWorker) -> None:
        self._chip = chip
        self._owner = mint_owner_instance_id()
        self._lock = threading.Lock()
        self._next_id = 1
        self._device: dict[int, Buffer] = {}  # by base address
        self._shared: dict[Any, Buffer] = {}  # by identity
        self._storages: dict[tuple[int, int, bool], Buffer] = {}

    def _mint_id(self) -> int:
        with self._lock:
            self._next_id += 1
            return self._next_id - 1

    # ---- device memory ----

    def malloc(self, nbytes: int) -> Buffer:
        if nbytes <= 0:
            raise ArgumentError(f"nbytes is {nbytes}; an allocation has at least 1 byte")
        address = self._chip.malloc(nbytes)
        buffer = wrap_device_malloc(address, nbytes, self._owner, self._mint_id())
        with self._lock:
            self._device[address] = buffer
        return buffer

    def free(self, memory: Buffer | int) -> None:
        buffer = self._device_buffer(memory)
        self._settle(buffer.base, buffer.nbytes)
        with self._lock:
            if self._device.pop(buffer.base, None) is not buffer:
                raise ArgumentError(f"device memory 0x{buffer.base:x} is already free")
        buffer.closed = True
        self._chip.free(buffer.base)

    def copy_to(self, dst: Buffer | int, src: Any, size: int | None) -> None:
        source = self._host_side(src, size, need_write=False)
        self._chip.copy_to(self._device_side(dst, source.nbytes), source.address, source.nbytes)

    def copy_from(self, dst: Any, src: Buffer | int, size: int | None) -> None:
        target = self._host_side(dst, size, need_write=True)
        self._chip.copy_from(target.address, self._device_side(src, target.nbytes), target.nbytes)

    def _device_buffer(self, memory: Buffer | int) -> Buffer:
        """The live allocation that starts at an address or is a Buffer; ValueError if there is none."""
        if isinstance(memory, Buffer):
            if memory.address_space != AddressSpace.DEVICE:
                raise ArgumentError("the buffer is host memory; this call needs device memory from malloc()")
            if self._device.get(memory.base) is not memory:
                raise ArgumentError(f"the device buffer at 0x{memory.base:x} was freed, or belongs to another worker")
            return memory
        if isinstance(memory, bool) or not hasattr(memory, "__index__"):
            raise ArgumentTypeError(f"expected a device Buffer or its address, not {type(memory).__name__}")
        buffer = self._device.get(int(memory))
        if buffer is None:
            raise ArgumentError(f"0x{int(memory):x} is not the start of a live device allocation of this worker")
        return buffer

    def _device_side(self, memory: Buffer | int, nbytes: int) -> int:
        """The device address of one end of a copy, after runs that use it. Addresses may lie inside an allocation."""
        if isinstance(memory, Buffer):
            address = self._device_buffer(memory).base
            if nbytes > memory.nbytes:
                raise ArgumentError(f"the host side has {nbytes} bytes, the device buffer only {memory.nbytes}")
        elif isinstance(memory, bool) or not hasattr(memory, "__index__"):
            raise ArgumentTypeError(f"the device side must be a Buffer or an address, not {type(memory).__name__}")
        else:
            address = int(memory)  # the runner checks it against its allocations
        self._settle(address, nbytes)
        return address

    def _host_side(self, memory: Any, size: int | None, *, need_write: bool) -> HostBytes:
        if isinstance(memory, Buffer):
            if memory.address_space != AddressSpace.HOST:
                raise ArgumentError("both sides of the copy are device memory; one side must be host memory")
            if memory.closed or not memory.base:
                raise ArgumentError(f"host buffer {memory.identity.buffer_id} is closed, or not mapped in this process")
            if need_write and memory.access == AccessMode.READ:
                raise ArgumentError("the host buffer grants READ only, but this call writes into it")
            found = HostBytes(memory.base, memory.nbytes, True, memory)
        elif isinstance(memory, int) and not isinstance(memory, bool):
            if size is None:
                raise ArgumentTypeError("a host address needs a size: copy(dst, src, size)")
            found = HostBytes(memory, size, True, None)
        else:
            found = host_bytes(memory, need_write=need_write)
        if size is None:
            return found
        if size < 0 or size > found.nbytes:
            raise ArgumentError(f"size is {size}; the host side has {found.nbytes} bytes")
        return found._replace(nbytes=size)

    def _settle(self, address: int, nbytes: int) -> None:
        pipeline = self._chip._pipeline
        if pipeline is not None and not pipeline.idle():
            for run in pipeline.users_of_memory(address, address + max(nbytes, 1)):
                run.settle()

    # ---- host shared buffers ----

    def create_buffer(self, nbytes: int) -> Buffer:
        if nbytes <= 0:
            raise ArgumentError(f"nbytes is {nbytes}; a buffer has at least 1 byte")
        buffer = create_host_shared_buffer(nbytes, self._owner, self._mint_id())
        with self._lock:
            self._shared[buffer.identity] = buffer
        return buffer

    def release_buffer(self, buffer: Buffer) -> None:
        """RuntimeError while a run in flight names it. A second release does nothing."""
        if not isinstance(buffer, Buffer):
            raise ArgumentTypeError(f"expected a Buffer from create_buffer(), not {type(buffer).__name__}")
        if buffer.backend_kind != BackendKind.POSIX_SHM:
            raise ArgumentError(
                f"a {buffer.backend_kind.name} buffer did not come from create_buffer(); use free() for device memory"
            )
        pipeline = self._chip._pipeline
        if pipeline is not None and not buffer.closed:
            for run in pipeline.users_of_memory(buffer.base, buffer.base + buffer.nbytes):
                if not run.settle(0.0):
                    raise StateError(
                        f"buffer {buffer.identity.buffer_id} is named by a run in flight; wait for the run first"
                    )
        with self._lock:
            self._shared.pop(buffer.identity, None)
        buffer.close()

    # ---- host arrays ----

    def make_tensor_arg(
        self, array: Any, shapes: Sequence[int] | None, dtype: DataType | int | None, strides: Sequence[int] | None
    ) -> Tensor:
        if shapes is None or dtype is None:
            described = describe(array)
            shapes = described.shape if shapes is None else shapes
            dtype = described.dtype if dtype is None else dtype
        # With explicit strides the array itself may have gaps.
        memory = host_bytes(array) if strides is None else origin_of(array)
        shapes = tuple(shapes)
        steps = row_major_strides(shapes) if strides is None else tuple(strides)
        base, nbytes = storage_of(array, memory.address, memory.nbytes)
        backing = self._backing(base, nbytes, memory.writable)
        return Tensor(backing.to_descriptor(), memory.address - base, shapes, steps, dtype, memory.owner)

    def _backing(self, base: int, nbytes: int, writable: bool) -> Buffer:
        """The identity of a host storage: all views of one storage share it."""
        key = (base, nbytes, writable)
        backing = self._storages.get(key)
        if backing is None:
            access = AccessMode.READWRITE if writable else AccessMode.READ
            backing = wrap_fork_inherited(
                base, nbytes, self._owner, self._mint_id(), access=access, backend_kind=BackendKind.FORK_SHM
            )
            with self._lock:
                if len(self._storages) >= _MEMO_LIMIT:
                    self._storages.clear()
                self._storages[key] = backing
        return backing

    # ---- arguments of a run ----

    def bind(self, args: TaskArgs) -> ChipStorageTaskArgs:
        """Arguments with addresses."""
        resolved = None
        for descriptor in args._unresolved():
            buffer = self._shared.get(descriptor.identity)
            if buffer is None:
                raise ArgumentError(
                    f"buffer {descriptor.identity.buffer_id} was released, or was made by another worker; "
                    "its memory is unknown here"
                )
            resolved = resolved or {}
            resolved[descriptor.identity] = (buffer.base, descriptor.address_space)
        return _bind_task_args(args, resolved)

    def close(self) -> None:
        """Forgets device memory (the chip frees it) and closes shared buffers. The first failure is raised last."""
        with self._lock:
            device, shared = list(self._device.values()), list(self._shared.values())
            self._device.clear()
            self._storages.clear()
        for buffer in device:
            buffer.closed = True
        failure: BaseException | None = None
        for buffer in shared:
            try:
                buffer.close()
            except BufferError as still_viewed:
                failure = failure or still_viewed
            else:
                with self._lock:
                    self._shared.pop(buffer.identity, None)
        if failure is not None:
            raise failure
