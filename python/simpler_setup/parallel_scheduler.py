"""Running child processes that need devices: strict first in, first out, each with devices of its own.

A child leads a process group of its own, so that whatever it started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Callable

from .platforms import builds_for_host

_MAX_DEVICE_ID = 65535  # a larger one is a slip of the keyboard, and its range would fill the memory
_TERM_GRACE_S = 2.0  # a child that is told to end gets this long before it is killed


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def device_range_to_list(spec: str) -> list[int]:
    """Sorted distinct ids of "0", "0-3" or "0,2-4,7"; [] for "". ValueError for anything else."""
    ids = set()
    for part in filter(None, (piece.strip() for piece in str(spec).split(","))):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)) or (dash and int(last) < int(first)):
            raise ValueError(f"device list {spec!r}: {part!r} is neither an id nor a rising range such as 0-3")
        if int(last or first) > _MAX_DEVICE_ID:
            raise ValueError(f"device list {spec!r}: {part!r} goes past {_MAX_DEVICE_ID}, the largest device id")
        ids.update(range(int(first), int(last or first) + 1))
    return sorted(ids)


def format_device_range(ids: Sequence[int]) -> str:
    """The inverse: "0-3" for a gapless run of several ids, else a comma list."""
    ordered = sorted(set(ids))
    if len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}-{ordered[-1]}"
    return ",".join(map(str, ordered))


def default_max_parallel(platform: str, device_ids: Sequence[int]) -> int:
    """Children at once: one per device, on a simulator no more than CPUs; at least 1."""
    limit = len(device_ids)
    if builds_for_host(platform):
        try:
            cpus = len(os.sched_getaffinity(0))
        except AttributeError:
            cpus = os.cpu_count() or 1
        limit = min(limit, cpus)
    return max(1, limit)


@dataclass
class Job:
    """One child process. `build_cmd` gets the ids of its devices and returns the argument list.

    A child that is still there after `timeout_s` seconds is killed.
    """

    label: str
    device_count: int
    build_cmd: Callable[[list[int]], list[str]]
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    nodeid: str | None = None
    timeout_s: float | None = None


@dataclass
class JobResult:
    """How a job ended. `output` holds stdout and stderr in the order they were written.

    `returncode` is the negative signal number of a child that a signal ended.
    """

    label: str
    returncode: int
    device_ids: list[int]
    output: str
    duration_s: float
    nodeid: str | None = None


#: Processes that run_jobs has running now: pid -> label. Read by time-out handlers.
_active_state: dict[int, str] = {}


@dataclass
class _Running:
    job: Job
    ids: list[int]
    child: subprocess.Popen[str]
    started: float

    @property
    def deadline(self) -> float:
        return self.started + self.job.timeout_s if self.job.timeout_s else float("inf")


def run_jobs(
    jobs: Sequence[Job],
    device_ids: Sequence[int],
    *,
    max_parallel: int | None = None,
    fail_fast: bool = False,
    poll_interval_s: float = 0.1,
    on_job_done: Callable[[JobResult], None] | None = None,
) -> list[JobResult]:
    """Run the jobs and return their results in the order they ended.

    Jobs start in their order; one that waits for devices holds back the ones behind it. `fail_fast` starts nothing more
    after a failure and lets running children finish. If an exception leaves this function (Ctrl-C, too), running
    children are ended. ValueError before anything starts when a job needs more devices than there are. Nothing polls:
    `poll_interval_s` is accepted for older callers.
    """
    del poll_interval_s
    for job in jobs:
        if job.device_count > len(device_ids):
            raise ValueError(
                f"job {job.label!r} needs {job.device_count} devices, but there are {len(device_ids)}: "
                f"{format_device_range(device_ids) or 'none'}"
            )
    if max_parallel is not None and max_parallel < 1:
        raise ValueError(f"max_parallel must be at least 1, got {max_parallel}")
    pending, free = list(jobs), list(device_ids)
    running: dict[int, _Running] = {}
    ended: queue.Queue[tuple[int, str]] = queue.Queue()
    results: list[JobResult] = []
    try:
        while pending or running:
            while pending and pending[0].device_count <= len(free) and len(running) < (max_parallel or len(jobs)):
                job = pending.pop(0)
                ids, free = free[: job.device_count], free[job.device_count :]
                child = _start(job, ids, ended)
                running[child.pid] = _Running(job, ids, child, time.monotonic())
                _active_state[child.pid] = job.label
                print(f"[scheduler] START {job.label} pid={child.pid} devices={ids}", flush=True)
            pid, output = _next_end(running, ended)
            one = running.pop(pid)
            _active_state.pop(pid, None)
            free += one.ids
            seconds = time.monotonic() - one.started
            result = JobResult(one.job.label, one.child.returncode, one.ids, output, seconds, one.job.nodeid)
            results.append(result)
            if on_job_done is not None:
                on_job_done(result)
            if fail_fast and result.returncode != 0:
                pending.clear()
    finally:
        _end([one.child for one in running.values()])
        for pid in running:
            _active_state.pop(pid, None)
    return results


def _next_end(running: Mapping[int, _Running], ended: queue.Queue[tuple[int, str]]) -> tuple[int, str]:
    """(pid, output) of the next child that ends; children that are past their time are killed meanwhile."""
    overdue: set[int] = set()
    while True:
        waiting = {pid: one.deadline for pid, one in running.items() if pid not in overdue}
        deadline = min(waiting.values(), default=float("inf"))
        try:
            pid, output = ended.get(timeout=None if deadline == float("inf") else max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            for late in [pid for pid, at in waiting.items() if at <= time.monotonic()]:
                overdue.add(late)
                _signal_group(late, signal.SIGKILL)
            continue
        if pid in overdue:
            output += f"\n[scheduler] killed {running[pid].job.label}: no end after {running[pid].job.timeout_s:g} s\n"
        return pid, output


def _start(job: Job, ids: list[int], ended: queue.Queue[tuple[int, str]]) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        job.build_cmd(ids),
        cwd=job.cwd,
        env=dict(job.env) if job.env is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    pieces: list[str] = []

    def read() -> None:  # the only reader of the pipe
        assert child.stdout is not None
        with child.stdout:
            pieces.append(child.stdout.read())

    def collect() -> None:  # wakes the scheduler when the child is gone
        with contextlib.suppress(ChildProcessError):  # it was reaped when everything was ended
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            _signal_group(child.pid, signal.SIGKILL)  # what it left behind would keep the pipe open
        child.wait()
        reader.join()
        ended.put((child.pid, "".join(pieces)))

    reader = threading.Thread(target=read, name=f"output of {job.label}", daemon=True)
    reader.start()
    threading.Thread(target=collect, name=f"job {job.label}", daemon=True).start()
    return child


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _end(children: Sequence[subprocess.Popen[str]]) -> None:
    """End children and what they started; at once when interrupted a second time."""
    for child in children:
        _signal_group(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + _TERM_GRACE_S
    try:
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for child in children:
            _signal_group(child.pid, signal.SIGKILL)
            child.wait()
