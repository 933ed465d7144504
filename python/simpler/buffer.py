"""Buffers: named backings of memory, and the tensors that are views of them.

A Buffer knows who made the memory, how a consumer reaches it and what it may be used for. Buffers of device memory also
act as their address: int(buffer), comparison with integers, format(buffer, "x").
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Sequence
from typing import Any

from _task_interface import (
    OWNER_INSTANCE_ID_BYTES,
    AccessMode,
    AddressSpace,
    BackendKind,
    BufferDescriptor,
    CanonicalIdentity,
    DataType,
    Tensor,
    _buffer_info,
    _intern_worker_path,
    _worker_path_for_id,
)

from .errors import ArgumentError

__all__ = [
    "AccessMode",
    "AddressSpace",
    "BackendKind",
    "Buffer",
    "BufferDescriptor",
    "CanonicalIdentity",
    "Tensor",
    "create_host_shared_buffer",
    "host_ptr_nbytes",
    "intern_worker_path",
    "mint_owner_instance_id",
    "re_export",
    "row_major_strides",
    "worker_path_for_id",
    "wrap_device_malloc",
    "wrap_fork_inherited",
    "wrap_vmm_window",
]


def mint_owner_instance_id() -> bytes:
    """A random id of one worker incarnation."""
    return os.urandom(OWNER_INSTANCE_ID_BYTES)


def intern_worker_path(path: str) -> int:
    """A number for a worker's path in the tree; valid in this process, 0 for ""."""
    return _intern_worker_path(path)


def worker_path_for_id(path_id: int) -> str:
    """The path, or '<path#N>' for a number that another process minted."""
    return _worker_path_for_id(path_id)


def row_major_strides(shapes: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a dense row-major tensor."""
    strides, step = [], 1
    for extent in reversed(tuple(shapes)):
        strides.append(step)
        step *= max(int(extent), 1)
    return tuple(reversed(strides))


@dataclasses.dataclass(eq=False)
class Buffer:
    """One backing of memory.

    Lifetime: host shared memory lives until close() (which also removes its name); device memory until its worker frees
    it. After either, no new views can be made.
    """

    identity: CanonicalIdentity
    address_space: AddressSpace
    access: AccessMode
    backend_kind: BackendKind
    nbytes: int
    body: bytes = b""
    owner_worker_path_id: int = 0
    shm: Any = None  # multiprocessing.shared_memory.SharedMemory of a host shared buffer
    base: int = 0  # address in this process, or on the device
    owner_worker_id: int = 0
    closed: bool = False
    unlinked: bool = False

    def __post_init__(self) -> None:
        self._descriptor: BufferDescriptor | None = None
        self._closing = threading.Lock()

    def to_descriptor(self) -> BufferDescriptor:
        """What travels to consumers; ValueError once the buffer is closed."""
        if self.closed:
            raise ArgumentError(f"buffer {self.identity.buffer_id} is closed; no views of it can be made")
        if self._descriptor is None:
            self._descriptor = BufferDescriptor(
                self.identity,
                self.address_space,
                self.access,
                self.backend_kind,
                self.nbytes,
                self.body,
                self.owner_worker_path_id,
            )
        return self._descriptor

    def tensor(
        self,
        shapes: Sequence[int],
        dtype: DataType | int,
        strides: Sequence[int] | None = None,
        byte_offset: int = 0,
    ) -> Tensor:
        """A view. strides are in elements and default to row-major; ValueError if it does not fit."""
        steps = row_major_strides(shapes) if strides is None else strides
        return Tensor(self.to_descriptor(), byte_offset, shapes, steps, dtype, self)

    def close(self) -> None:
        """Unmaps and removes host shared memory. Idempotent; what failed is tried again by the next call.

        BufferError if views of `shm.buf` are alive; the name is removed even then.
        """
        with self._closing:
            self.closed = True
            if self.shm is None:
                return
            try:
                self.shm.close()
            finally:
                if not self.unlinked:
                    try:
                        self.shm.unlink()
                    except FileNotFoundError:
                        pass  # somebody removed the name already: that is all we want
                    self.unlinked = True

    # ---- as an address ----

    def __int__(self) -> int:
        return self.base

    def __index__(self) -> int:
        return self.base

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Buffer):
            return self.identity == other.identity
        if isinstance(other, int):
            return self.base == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.base)  # equal to the address, so it must hash like it

    def __format__(self, spec: str) -> str:
        return format(self.base, spec) if spec else repr(self)


# ---- constructors ----


def create_host_shared_buffer(
    nbytes: int,
    owner_instance_id: bytes,
    buffer_id: int,
    owner_worker_path: str = "",
    generation: int = 1,
    access: AccessMode = AccessMode.READWRITE,
) -> Buffer:
    """New zeroed shared memory of this host; ValueError if nbytes is not positive."""
    if nbytes <= 0:
        raise ArgumentError(f"nbytes is {nbytes}; a buffer has at least 1 byte")
    from multiprocessing.shared_memory import SharedMemory

    shm = SharedMemory(create=True, size=nbytes)
    return Buffer(
        CanonicalIdentity(owner_instance_id, buffer_id, generation),
        AddressSpace.HOST,
        access,
        BackendKind.POSIX_SHM,
        nbytes,
        body=shm.name.lstrip("/").encode(),
        owner_worker_path_id=intern_worker_path(owner_worker_path),
        shm=shm,
        base=_buffer_info(shm.buf)[0],
    )


def _at_address(
    space: AddressSpace,
    backend: BackendKind,
    address: int,
    nbytes: int,
    identity: CanonicalIdentity,
    access: AccessMode,
    path: str,
    worker_id: int = 0,
) -> Buffer:
    buffer = Buffer(
        identity,
        space,
        access,
        backend,
        nbytes,
        body=int(address).to_bytes(8, "little"),
        owner_worker_path_id=intern_worker_path(path),
        base=int(address),
        owner_worker_id=worker_id,
    )
    buffer.to_descriptor()  # refuses impossible combinations now
    return buffer


def wrap_fork_inherited(
    data_ptr: int,
    nbytes: int,
    owner_instance_id: bytes,
    buffer_id: int,
    owner_worker_path: str = "",
    generation: int = 1,
    access: AccessMode = AccessMode.READ,
    backend_kind: BackendKind = BackendKind.FORK_COW,
) -> Buffer:
    """Host memory that children inherit at the same address."""
    identity = CanonicalIdentity(owner_instance_id, buffer_id, generation)
    return _at_address(AddressSpace.HOST, backend_kind, data_ptr, nbytes, identity, access, owner_worker_path)


def wrap_device_malloc(
    device_ptr: int,
    nbytes: int,
    owner_instance_id: bytes,
    buffer_id: int,
    owner_worker_path: str = "",
    generation: int = 1,
    access: AccessMode = AccessMode.READWRITE,
    owner_worker_id: int = 0,
) -> Buffer:
    """Device memory of one chip."""
    identity = CanonicalIdentity(owner_instance_id, buffer_id, generation)
    return _at_address(
        AddressSpace.DEVICE,
        BackendKind.DEVICE_MALLOC,
        device_ptr,
        nbytes,
        identity,
        access,
        owner_worker_path,
        owner_worker_id,
    )


def wrap_vmm_window(
    device_ptr: int,
    nbytes: int,
    owner_instance_id: bytes,
    buffer_id: int,
    owner_worker_path: str = "",
    generation: int = 1,
    access: AccessMode = AccessMode.READWRITE,
    owner_worker_id: int = 0,
) -> Buffer:
    """A part of a communication domain's window on one chip."""
    identity = CanonicalIdentity(owner_instance_id, buffer_id, generation)
    return _at_address(
        AddressSpace.DEVICE,
        BackendKind.VMM_WINDOW,
        device_ptr,
        nbytes,
        identity,
        access,
        owner_worker_path,
        owner_worker_id,
    )


def re_export(descriptor: BufferDescriptor) -> Buffer:
    """A Buffer with a received descriptor's identity, for passing it on; this process does not map it."""
    buffer = Buffer(
        descriptor.identity,
        descriptor.address_space,
        descriptor.access,
        descriptor.backend_kind,
        descriptor.nbytes,
        body=descriptor.body,
        owner_worker_path_id=descriptor.owner_worker_path_id,
    )
    buffer._descriptor = descriptor
    return buffer


def host_ptr_nbytes(obj: Any) -> tuple[int, int]:
    """(address, bytes) of a torch-like tensor or a writable buffer; TypeError if it is read-only."""
    if all(hasattr(obj, name) for name in ("data_ptr", "numel", "element_size")):
        return obj.data_ptr(), obj.numel() * obj.element_size()
    from .host_array import host_bytes

    memory = host_bytes(obj, need_write=True)
    return memory.address, memory.nbytes
