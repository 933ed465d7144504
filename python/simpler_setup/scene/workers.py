"""Opening and closing the level-2 workers of both front ends."""

from __future__ import annotations

from typing import Any, Callable


def open_worker(**settings: Any) -> Any:
    """An initialised `Worker(level=2, **settings)`; nothing stays behind when it cannot be initialised."""
    from simpler.worker import Worker

    worker = Worker(level=2, **settings)
    try:
        worker.init()
    except BaseException:
        worker.close()
        raise
    return worker


def close_worker(worker: Any, warn: Callable[[str], None]) -> None:
    """Close a worker. A failed run may be told once more when its worker closes; that is only a warning here."""
    try:
        worker.close()
    except RuntimeError as error:
        warn(f"closing the worker: {error}")
