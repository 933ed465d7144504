"""Step-by-step control of runs on one chip: prepare, launch, poll, wait, finalize, each under a pipeline lease.

For tests and tools; programs use Worker.submit(). A lease names one of two pipeline slots and a generation, which only
grows. The second run may be prepared while the first one executes, and launched when the first one is finalized.
"""

from __future__ import annotations

import itertools
import threading
from enum import Enum
from typing import Any

from _task_interface import CallConfig, ChipStorageTaskArgs

from .errors import ArgumentError, StateError, failure_phrase

__all__ = ["NativeRunToken", "NativeRuns"]


class _Phase(Enum):
    PREPARED = "prepared"
    LAUNCHED = "launched"
    REAPED = "reaped"  # known to have ended, outputs not yet written
    GONE = "finalized"


class NativeRunToken:
    """Names one prepared run. run_epoch is unique in the process."""

    __slots__ = ("_args", "_phase", "_run", "dispatch_id", "generation", "run_epoch", "run_id", "slot_id")

    def __init__(self, slot_id: int, generation: int, run: int, args: Any, run_id: int, dispatch_id: int) -> None:
        self.slot_id = slot_id
        self.generation = generation
        self.run_epoch = next(_epochs)
        self.run_id = run_id
        self.dispatch_id = dispatch_id
        self._run = run
        self._args = args
        self._phase = _Phase.PREPARED

    def __repr__(self) -> str:
        return f"<NativeRunToken slot={self.slot_id} generation={self.generation} {self._phase.value}>"


_epochs = itertools.count(1)


class NativeRuns:
    """The tokens of one chip. Threads: any; calls are serialised except while waiting."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._lock = threading.RLock()
        self._by_slot: dict[int, NativeRunToken] = {}
        self._generations: dict[int, int] = {}

    def outstanding(self) -> bool:
        return bool(self._by_slot)

    def prepare(
        self,
        callable_slot: int,
        args: ChipStorageTaskArgs,
        slot_id: int,
        generation: int,
        config: CallConfig,
        run_id: int = 0,
        dispatch_id: int = 0,
    ) -> NativeRunToken:
        with self._lock:
            if not 0 <= slot_id < self._native.pipeline_depth:
                raise ArgumentError(f"pipeline slot is {slot_id}; allowed: 0 to {self._native.pipeline_depth - 1}")
            if generation < 1:
                raise ArgumentError(f"lease generation is {generation}; generations count from 1")
            newest = self._generations.get(slot_id, 0)
            if generation < newest:
                raise StateError(
                    f"lease generation is stale: slot {slot_id} is at {newest}, the lease has {generation}"
                )
            if slot_id in self._by_slot:
                raise StateError(f"pipeline slot {slot_id} already owns an unfinished native run; finalize it first")
            for other in self._by_slot.values():
                if other._phase is _Phase.PREPARED:
                    raise StateError(
                        "preparing a second run requires an active predecessor: launch the run of pipeline slot "
                        f"{other.slot_id} first"
                    )
            kept = args._snapshot()
            run = self._native.prepare_run(callable_slot, kept, config)
            self._generations[slot_id] = generation  # a failed prepare does not use the generation up
            token = NativeRunToken(slot_id, generation, run, kept, run_id, dispatch_id)
            self._by_slot[slot_id] = token
            return token

    def launch(self, token: NativeRunToken) -> None:
        with self._lock:
            self._expect(token, _Phase.PREPARED)
            for other in self._by_slot.values():
                if other is not token and other._phase is not _Phase.PREPARED:
                    raise StateError(
                        f"{failure_phrase('launch_native_run', -1)}: the run of pipeline slot {other.slot_id} owns the "
                        "runner until it is finalized"
                    )
            self._native.launch_run(token._run)
            token._phase = _Phase.LAUNCHED

    def poll(self, token: NativeRunToken) -> bool:
        with self._lock:
            self._expect(token, _Phase.LAUNCHED, _Phase.REAPED)
            if token._phase is _Phase.LAUNCHED and self._native.poll_run(token._run):
                token._phase = _Phase.REAPED
            return token._phase is _Phase.REAPED

    def wait(self, token: NativeRunToken) -> None:
        with self._lock:
            self._expect(token, _Phase.LAUNCHED, _Phase.REAPED)
        self._native.wait_run(token._run)  # without the lock: it may take long
        with self._lock:
            if token._phase is _Phase.LAUNCHED:
                token._phase = _Phase.REAPED

    def finalize(self, token: NativeRunToken) -> Any:
        """Writes the outputs and frees the slot; raises the run's failure. None, no timing, if never launched."""
        with self._lock:
            self._expect(token, _Phase.PREPARED, _Phase.LAUNCHED, _Phase.REAPED)
            launched = token._phase is not _Phase.PREPARED
            if launched:
                self._native.wait_run(token._run)
            token._phase = _Phase.GONE
            del self._by_slot[token.slot_id]
            try:
                return self._native.finalize_run(token._run)
            except RuntimeError:
                if launched:
                    raise
                return None  # giving a prepared run back is no failure
            finally:
                token._args = None

    def abandon_all(self) -> None:
        """Finalizes what is left, for the end of the chip."""
        for token in list(self._by_slot.values()):
            try:
                self.finalize(token)
            except RuntimeError:
                pass  # its owner had the chance to hear of it

    def _expect(self, token: NativeRunToken, *phases: _Phase) -> None:
        if token._phase is _Phase.GONE:
            raise StateError(f"{token} is stale or already finalized")
        if token._phase not in phases or self._by_slot.get(token.slot_id) is not token:
            raise StateError(f"{token}: the token is stale or used in the wrong phase")
