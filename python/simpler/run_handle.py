"""Runs in flight on one chip: the handle of one run, and the pipeline that keeps their order."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Any

from _task_interface import CallConfig, ChipCallable, ChipStorageTaskArgs, RunTiming, _writes_host_memory_of

from ._log import get_logger
from .errors import ArgumentError, ArgumentTypeError, WaitTimeoutError

__all__ = ["RunHandle", "RunPipeline", "seconds_from"]

PREPARED_INCOMPATIBLE = -3  # code of a run that cannot be prepared beside the one that executes


def seconds_from(timeout: float | None) -> float | None:
    """A checked time-out; ValueError if it is negative or not finite."""
    if timeout is None:
        return None
    if not isinstance(timeout, (int, float)):
        raise ArgumentTypeError(f"timeout must be a number of seconds or None, not {type(timeout).__name__}")
    if not math.isfinite(timeout) or timeout < 0:
        raise ArgumentError(f"timeout is {timeout}; it must be a finite number of seconds, not negative, or None")
    return float(timeout)


class RunHandle:
    """One submitted run.

    It executes when the run before it is finalized, which anybody's waiting for either of them does. Lifetime: the run
    goes on without its handle. Arrays named by its arguments stay alive until the run is finalized:
    when anybody waits for it, when a later submission needs its place, or when the worker closes. Its outputs are
    written then. Threads: any number may wait; all get the same outcome.
    """

    def __init__(
        self, pipeline: RunPipeline, run: int, slot: int, chip: ChipCallable, args: ChipStorageTaskArgs
    ) -> None:
        self._pipeline = pipeline
        self._native = pipeline.native
        self._run = run
        self._slot = slot
        self._chip = chip
        self._args: ChipStorageTaskArgs | None = args
        self._finalizing = threading.Lock()
        self._launched = False
        self._finished = False
        self._seen = False  # somebody was told the outcome
        self._error: BaseException | None = None
        self._timing: RunTiming | None = None

    @property
    def done(self) -> bool:
        """Whether the run has ended, well or not. Does not wait for it."""
        return self._finished or self._ended(0.0)

    @property
    def timing(self) -> RunTiming | None:
        """Durations, once the run was waited for and succeeded."""
        return self._timing

    def wait(self, timeout: float | None = None) -> None:
        """Until the run has ended and its outputs are written; raises its failure. TimeoutError after `timeout` s."""
        limit = seconds_from(timeout)
        if not self._finished:
            if not self._ended(limit):
                raise WaitTimeoutError(
                    f"the run has not ended within {limit:g} s; it goes on, and can be waited for again"
                )
            self._finalize()
        self._seen = True
        if self._error is not None:
            raise self._error.with_traceback(None)

    def result(self, timeout: float | None = None) -> None:
        """The same as wait()."""
        self.wait(timeout)

    def _launch(self) -> None:
        try:
            self._native.launch_run(self._run)
        except Exception as failure:
            self._error = failure
        self._launched = True

    def settle(self, limit: float | None = None) -> bool:
        """Waits and finalizes without raising the run's failure; False if `limit` seconds passed."""
        if not self._finished:
            if not self._ended(limit):
                return False
            self._finalize()
        return True

    def _ended(self, limit: float | None) -> bool:
        deadline = None if limit is None else time.monotonic() + limit
        while not self._launched and not self._finished:
            older = self._pipeline.before(self)
            if older is None:
                continue  # it is being launched
            if not older.settle(limit if deadline is None else _left(deadline)):
                return False
            older._finalize()  # if another thread does, until it is done with that
        if self._error is not None:
            return True  # it could not be launched
        try:
            return self._native.wait_run(self._run, limit if deadline is None else _left(deadline))
        except (KeyError, RuntimeError) as failure:
            with self._finalizing:  # another thread may just have finalized it: then the native run is gone
                if not self._finished:
                    self._error = self._error or failure  # the device failed: the run is over too
            return True

    def _finalize(self) -> None:
        with self._finalizing:
            if self._finished:
                return
            try:
                self._timing = self._native.finalize_run(self._run)
            except Exception as failure:
                self._error = self._error or failure
            self._finished = True
            self._args = None
            self._pipeline.forget(self)

    def __del__(self) -> None:
        if getattr(self, "_error", None) is not None and not self._seen:
            get_logger().warning("a run failed and nobody waited for it: %s", self._error)

    def __repr__(self) -> str:
        state = "running" if not self._finished else "failed" if self._error is not None else "succeeded"
        return f"<RunHandle {self._run} {state}>"


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


class RunPipeline:
    """The runs that are between submission and finalization, oldest first. They execute in that order, one at a time:
    while one executes the next one is prepared, and it is launched when the first one is finalized.

    Threads: submissions are serialised; everything else may overlap. At most `native.pipeline_depth` runs are in
    flight: one more submission first finalizes the oldest, whose outcome stays with its handle.
    """

    def __init__(self, native: Any) -> None:
        self.native = native
        self.last_timing: RunTiming | None = None
        self._submitting = threading.RLock()
        self._launching = threading.Lock()  # never held while waiting
        self._in_flight: deque[RunHandle] = deque()

    def submit(self, slot: int, chip: ChipCallable, args: ChipStorageTaskArgs, config: CallConfig) -> RunHandle:
        with self._submitting:
            while len(self._in_flight) >= self.native.pipeline_depth:
                self._in_flight[0].settle()
            # Inputs are read now and outputs written at finalization, so a run that touches memory which an older one
            # still has to write must come after that.
            for older in list(self._in_flight):
                running = older._args
                if running is not None and _writes_host_memory_of(running, older._chip, args):
                    older.settle()
            self._launch_oldest()  # if another thread is about to: only beside a launched run another one is prepared
            run = self._prepare(slot, args, config)
            handle = RunHandle(self, run, slot, chip, args)
            self._in_flight.append(handle)
            self._launch_oldest()
            if handle._error is not None:
                handle._finalize()  # gives the prepared run back; the launch's own failure is what the caller sees
                handle._seen = True
                raise handle._error
            return handle

    def _prepare(self, slot: int, args: ChipStorageTaskArgs, config: CallConfig) -> int:
        try:
            return self.native.prepare_run(slot, args, config)
        except RuntimeError as failure:
            if getattr(failure, "code", None) != PREPARED_INCOMPATIBLE or not self._in_flight:
                raise
        for older in list(self._in_flight):  # it cannot be prepared beside another run: then after it
            older.settle()
        return self.native.prepare_run(slot, args, config)

    def _launch_oldest(self) -> None:
        with self._launching:
            if self._in_flight and not self._in_flight[0]._launched:
                self._in_flight[0]._launch()

    def before(self, handle: RunHandle) -> RunHandle | None:
        """The run that must be finalized before this one is launched."""
        with self._launching:
            older = self._in_flight[0] if self._in_flight else None
            return None if older is handle else older

    def forget(self, handle: RunHandle) -> None:
        if handle._timing is not None:
            self.last_timing = handle._timing
        try:
            self._in_flight.remove(handle)
        except ValueError:
            pass
        self._launch_oldest()

    def idle(self) -> bool:
        return not self._in_flight

    def settle_users_of_slot(self, slot: int) -> None:
        for handle in list(self._in_flight):
            if handle._slot == slot:
                handle.settle()

    def users_of_memory(self, begin: int, end: int) -> list[RunHandle]:
        """Runs in flight whose arguments name an address in [begin, end)."""
        return [h for h in list(self._in_flight) if (args := h._args) is not None and args._names_memory(begin, end)]

    def drain(self, limit: float) -> None:
        """Finalizes everything; TimeoutError if something still runs after `limit` seconds."""
        deadline = time.monotonic() + limit
        for handle in list(self._in_flight):
            if not handle.settle(_left(deadline)):
                raise WaitTimeoutError(
                    f"a run has not ended within {limit:g} s; nothing was torn down, close() can be called again"
                )
