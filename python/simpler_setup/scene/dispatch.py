"""Stand-alone runs over several devices: the classes are spread over child processes, one device each.

A child gets the exact cases to run, so that a selector which names a case of one class cannot fail another's child. A
child that crashes, hangs or is killed costs the case that it was in; its other cases are run in a new child. Children
end when their dispatcher ends, however that happens.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from ..parallel_scheduler import Job, JobResult, run_jobs
from .inline import label_of
from .verdicts import FAILED, JOURNAL_VARIABLE, Journal, Report

#: (class, its selected cases)
Plan = Sequence[tuple[Any, Sequence[dict[str, Any]]]]

_START_S = 120.0  # what a child gets to start, to import and to compile, above the time of its cases
_PR_SET_PDEATHSIG = 1
_DISPATCHER_VARIABLE = "SIMPLER_DISPATCHER_PID"


def follow_dispatcher() -> bool:
    """In a child: end with the dispatcher, and end in order on SIGTERM. False in any other process."""
    if JOURNAL_VARIABLE not in os.environ:
        return False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        os.kill(int(os.environ.get(_DISPATCHER_VARIABLE, os.getpid())), 0)
    except ProcessLookupError:  # it died while this process started
        raise SystemExit("the dispatcher is gone: nothing was run") from None
    return True


def describe_exit(code: int) -> str:
    """The end of a process in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


@dataclass
class Dispatcher:
    """Runs plans in children. `command` makes the command line of a child from its plan and its devices."""

    command: Callable[[Plan, list[int]], list[str]]
    ids: Sequence[int]
    max_parallel: int
    report: Report
    timeout_s: float
    exit_first: bool
    show_commands: bool

    def run(self, runtime: str, plan: Plan) -> None:
        """Run the chip-level classes of one runtime; verdicts go to the report, output comes as children end."""
        children = self._children(plan)
        print(f"\n=== L2 Runtime: {runtime}  [fanout n={children}] ===", flush=True)
        while plan:
            plan = self._round(plan)
            if plan and self.exit_first and self.report.failed:
                return
            if plan:
                cases = sum(len(cases) for _, cases in plan)
                print(f"[scheduler] {cases} cases that a lost child left undone go to new children", flush=True)

    def _children(self, plan: Plan) -> int:
        return max(1, min(self.max_parallel, len(self.ids), len(plan)))

    def _round(self, plan: Plan) -> Plan:
        """Run a plan once; returns what lost children left undone."""
        children = self._children(plan)
        parts = {f"L2 {self._names(plan[i::children])}": list(plan[i::children]) for i in range(children)}
        undone: list[tuple[Any, list[dict[str, Any]]]] = []
        with tempfile.TemporaryDirectory(prefix="simpler-dispatch-") as folder:
            journals = {label: Path(folder) / str(index) for index, label in enumerate(parts)}
            jobs = [self._job(label, part, journals[label]) for label, part in parts.items()]

            def done(result: JobResult) -> None:
                print(result.output, end="" if result.output.endswith("\n") else "\n")
                undone.extend(self._account(result, parts[result.label], journals[result.label]))

            run_jobs(jobs, list(self.ids), max_parallel=children, fail_fast=self.exit_first, on_job_done=done)
        return undone

    @staticmethod
    def _names(part: Plan) -> str:
        return ",".join(cls.__name__ for cls, _ in part)

    def _job(self, label: str, part: Plan, journal: Path) -> Job:
        def build(devices: list[int]) -> list[str]:
            command = self.command(part, devices)
            if self.show_commands:
                print(f"[scheduler] + {shlex.join(command)}", flush=True)
            return command

        cases = sum(len(cases) for _, cases in part)
        limit = _START_S + cases * (self.timeout_s + 10.0) if self.timeout_s else None
        env = {**os.environ, JOURNAL_VARIABLE: str(journal), _DISPATCHER_VARIABLE: str(os.getpid())}
        return Job(label, 1, build, env=env, timeout_s=limit)

    def _account(self, result: JobResult, part: Plan, journal: Path) -> list[tuple[Any, list[dict[str, Any]]]]:
        """Take over what a child did; returns the cases that it did not get to because it died."""
        ended, running = Journal.read(journal)
        self.report.adopt(ended)
        known = {verdict.label for verdict in ended}
        left = [(cls, case) for cls, cases in part for case in cases if label_of(cls, case) not in known]
        failed = any(verdict.outcome == FAILED for verdict in ended)
        how = describe_exit(result.returncode)
        verdict = "PASSED" if result.returncode == 0 and not left else f"FAILED (rc={result.returncode})"
        print(f"{result.label} on {result.device_ids} in {result.duration_s:.1f} s: {verdict}", flush=True)
        if running is not None:
            self.report.lost(running, f"its process ended with {how}; the output is above")
            left = [(cls, case) for cls, case in left if label_of(cls, case) != running]
        elif left and not ended and result.returncode < 0:
            self.report.lost(label_of(*left[0]), f"its process ended with {how} before it started")
            del left[0]
        elif left and not ended:  # it cannot even start: another child could not either
            for cls, case in left:
                self.report.lost(label_of(cls, case), f"its process ended with {how} before it started")
            return []
        elif not left and not failed and result.returncode != 0:
            self.report.lost(result.label, f"its process ended with {how} after its last case")
        if self.exit_first and self.report.failed:
            return []
        classes: dict[Any, list[dict[str, Any]]] = {}
        for cls, case in left:
            classes.setdefault(cls, []).append(case)
        return list(classes.items())
