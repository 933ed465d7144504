"""The callables of one worker: content to slot, and the handles that are live.

Identical content shares one slot and counts its handles; a slot is free again when the last handle is dropped.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

from _task_interface import MAX_REGISTERED_CALLABLE_IDS, ChipCallable

from .callable_identity import (
    CHIP_CALLABLE,
    LOCAL_CHIP,
    CallableHandle,
    build_chip_callable_descriptor,
    compute_callable_hashid,
)
from .errors import ArgumentTypeError, StateError, UnknownHandleError

__all__ = ["CallableRegistry", "RegisteredCallable"]

_handle_ids = itertools.count(1)  # unique in the process, so that a foreign handle never looks like one of ours


class RegisteredCallable:
    """One content in one slot."""

    __slots__ = ("callable", "digest", "hashid", "references", "slot_id")

    def __init__(self, chip: ChipCallable, hashid: str, digest: bytes, slot_id: int) -> None:
        self.callable = chip
        self.hashid = hashid
        self.digest = digest
        self.slot_id = slot_id
        self.references = 0


class CallableRegistry:
    """Slots of chip callables. Threads: any; one lock, held while a callable is installed or removed.

    install(slot, callable) and remove(slot) do the device's part. If install raises, nothing is registered.
    free_slots() names the slots that may be used, lowest first.
    """

    def __init__(
        self,
        target: tuple[str, str, str],  # arch, platform, runtime: part of every identity
        install: Callable[[int, ChipCallable], None],
        remove: Callable[[int], None],
        is_free: Callable[[int], bool],
    ) -> None:
        self._target = target
        self._install = install
        self._remove = remove
        self._is_free = is_free
        self._lock = threading.RLock()
        self._by_content: dict[bytes, RegisteredCallable] = {}
        self._by_handle: dict[int, tuple[RegisteredCallable, tuple[Any, ...]]] = {}

    def register(self, chip: ChipCallable) -> CallableHandle:
        if not isinstance(chip, ChipCallable):
            raise ArgumentTypeError(
                f"register() takes a ChipCallable at this level, not {type(chip).__name__}; "
                "build one with ChipCallable.build()"
            )
        blob = bytes(chip)
        content = hashlib.sha256(blob).digest()
        with self._lock:
            entry = self._by_content.get(content)
            if entry is None:
                entry = self._new_entry(chip, blob)
                self._install(entry.slot_id, chip)
                self._by_content[content] = entry
            entry.references += 1
            return self._new_handle(entry)

    def unregister(self, handle: CallableHandle, before_removal: Callable[[int], None]) -> None:
        """before_removal(slot) is called when this is the last handle of its slot, before the slot is emptied."""
        with self._lock:
            entry = self.resolve(handle)
            if entry.references == 1:
                before_removal(entry.slot_id)
                self._remove(entry.slot_id)
                self._by_content = {k: v for k, v in self._by_content.items() if v is not entry}
            entry.references -= 1
            del self._by_handle[handle._handle_id]  # type: ignore[arg-type]

    def resolve(self, handle: object) -> RegisteredCallable:
        """TypeError for no handle, KeyError for a foreign or dropped one, RuntimeError for an altered one."""
        if not isinstance(handle, CallableHandle):
            hint = (
                "; pass what register() returned for it" if isinstance(handle, ChipCallable) or callable(handle) else ""
            )
            raise ArgumentTypeError(f"expected a CallableHandle, not {type(handle).__name__}{hint}")
        found = self._by_handle.get(handle._handle_id)  # type: ignore[arg-type]
        if found is None:
            if handle._owner_id is not None and handle._owner_id is not self:
                raise UnknownHandleError(f"{handle} does not belong to this worker; register its callable here")
            raise UnknownHandleError(f"{handle} is not live: it was unregistered, or did not come from register()")
        entry, fields = found
        if fields != _fields(handle):
            raise StateError(f"CALLABLE_HANDLE_MUTATED: {handle} was changed after register() returned it")
        return entry

    def entries(self) -> list[RegisteredCallable]:
        with self._lock:
            return list(self._by_content.values())

    def _new_entry(self, chip: ChipCallable, blob: bytes) -> RegisteredCallable:
        taken = {entry.slot_id for entry in self._by_content.values()}
        slot = next((s for s in range(MAX_REGISTERED_CALLABLE_IDS) if s not in taken and self._is_free(s)), None)
        if slot is None:
            raise StateError(
                f"LOCAL_SLOT_EXHAUSTED: MAX_REGISTERED_CALLABLE_IDS={MAX_REGISTERED_CALLABLE_IDS} different callables "
                "are registered; unregister one first"
            )
        signature = [chip.sig(i).value for i in range(chip.sig_count)]
        descriptor = build_chip_callable_descriptor(*self._target, blob, signature)
        hashid = compute_callable_hashid(descriptor)
        return RegisteredCallable(chip, hashid, hashlib.sha256(descriptor).digest(), slot)

    def _new_handle(self, entry: RegisteredCallable) -> CallableHandle:
        handle = CallableHandle(entry.hashid, CHIP_CALLABLE, LOCAL_CHIP)
        handle._owner_id = self
        handle._handle_id = next(_handle_ids)
        self._by_handle[handle._handle_id] = (entry, _fields(handle))
        return handle


def _fields(handle: CallableHandle) -> tuple[Any, ...]:
    return (handle.hashid, handle.kind, handle.target_namespace, handle._digest, id(handle._owner_id))
