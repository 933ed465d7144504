"""Running scene classes in this process, one case after the other, on one worker per runtime."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..session_alarm import time_limit
from . import runs
from .declarations import unsupported_reason
from .verdicts import Report
from .workers import close_soon, close_worker, open_worker


def label_of(cls: Any, case: dict[str, Any]) -> str:
    return f"{cls.__name__}::{case['name']}"


class InlineRun:
    """Scene classes of one runtime. `keywords` go to `run_class_cases`; a case may take `timeout_s` seconds."""

    def __init__(
        self,
        platform: str,
        worker: WorkerSlot,
        report: Report,
        keywords: dict[str, Any],
        *,
        timeout_s: float,
        exit_first: bool,
    ):
        self._platform, self._worker, self._report, self._keywords = platform, worker, report, keywords
        self._timeout_s, self._exit_first = timeout_s, exit_first

    def run(self, cls: Any, cases: Sequence[dict[str, Any]]) -> bool:
        """Run cases of a class; False when nothing more shall run."""
        reason = unsupported_reason(cls)
        if reason is not None:
            for case in cases:
                self._report.skipped(label_of(cls, case), reason)
            return True
        inst, callable_obj, refused = cls(), None, None
        try:
            callable_obj = inst.build_callable(self._platform)
        except Exception as error:
            refused = error
        for case in cases:
            if not self._run_case(inst, callable_obj, case, refused) and self._exit_first:
                return False
        return True

    def _run_case(self, inst: Any, callable_obj: Any, case: dict[str, Any], refused: Exception | None) -> bool:
        label, report = label_of(type(inst), case), self._report
        report.start(label)
        try:
            if refused is not None:
                raise refused
            with time_limit(self._timeout_s, label, lambda text: report.give_up(label, text)):
                runs.run_class_cases(
                    self._worker.get(), inst, [case], callable_obj=callable_obj, sub_handles={}, **self._keywords
                )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit in a test, or pytest.skip
            if type(error).__name__ == "Skipped":
                report.skipped(label, str(error))
                return True
            report.failed_with(label, error)
            if not isinstance(error, AssertionError):
                self._worker.close()  # the next case gets a worker that did not fail
            return False
        report.passed(label)
        return True


class WorkerSlot:
    """A level-2 worker that is made when it is first needed and again after it was closed."""

    def __init__(self, platform: str, runtime: str, device: int, settings: dict[str, int]):
        self._keywords = {"platform": platform, "runtime": runtime, "device_id": device, **settings}
        self._worker: Any = None

    def get(self) -> Any:
        if self._worker is None:
            self._worker = open_worker(**self._keywords)
        return self._worker

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            close_worker(worker, _warn)

    def close_soon(self) -> bool:
        """Close it within moments; False when it is too busy for that."""
        worker, self._worker = self._worker, None
        return worker is None or close_soon(worker)


def _warn(text: str) -> None:
    print(f"WARNING: {text}", file=sys.stderr, flush=True)
