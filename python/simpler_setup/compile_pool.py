"""How many compilers run at once, and running a list of compile jobs that way.

One budget per process bounds the running compilers, however many threads ask: a slot is held only while a compiler
process runs, so nested use cannot deadlock.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Callable, TypeVar

T = TypeVar("T")
_MOST = 16  # more compilers at once only fight for memory bandwidth

_lock = threading.Lock()
_budget: int | None = None
_slots: threading.BoundedSemaphore | None = None


def default_workers() -> int:
    """CPUs of this process's affinity mask, at most 16, shared fairly between pytest-xdist workers."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:
        cpus = os.cpu_count() or 1
    peers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    return max(1, min(_MOST, cpus) // max(1, int(peers) if peers.isdigit() else 1))


def current_compile_workers() -> int:
    """The budget of this process."""
    with _lock:
        return _budget or default_workers()


@contextlib.contextmanager
def compile_worker_budget(workers: int) -> Iterator[None]:
    """Within the block, at most `workers` compilers run at once. ValueError below 1."""
    if workers < 1:
        raise ValueError(f"compile workers must be at least 1, got {workers}")
    global _budget, _slots
    with _lock:
        before = (_budget, _slots)
        _budget, _slots = workers, threading.BoundedSemaphore(workers)
    try:
        yield
    finally:
        with _lock:
            _budget, _slots = before


@contextlib.contextmanager
def compile_slot() -> Iterator[None]:
    """Hold one place of the budget; waits until one is free."""
    global _slots
    with _lock:
        if _slots is None:
            _slots = threading.BoundedSemaphore(_budget or default_workers())
        slots = _slots
    with slots:
        yield


def run_all(jobs: Iterable[Callable[[], T]]) -> list[T]:
    """Results of the jobs in their order, run on as many threads as the budget allows.

    Every job ends before this returns; the first failure, in job order, is raised. When interrupted, jobs that have not
    started are dropped.
    """
    todo = list(jobs)
    if len(todo) == 1:
        return [todo[0]()]
    with ThreadPoolExecutor(max_workers=max(1, current_compile_workers()), thread_name_prefix="compile") as pool:
        futures = [pool.submit(job) for job in todo]
        try:
            wait(futures)
        except BaseException:  # Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]
