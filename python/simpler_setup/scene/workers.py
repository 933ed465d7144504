"""Opening and closing the level-2 workers of both front ends."""

from __future__ import annotations

from typing import Any, Callable

_PATIENCE_S = 0.5  # what an interrupted process grants a worker; one with a stalled kernel would take its time-out


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


def close_soon(worker: Any) -> bool:
    """Close a worker of an interrupted process. False when a run is still in flight: end the process by `os._exit`."""
    try:
        worker.close(timeout_s=_PATIENCE_S)
    except TimeoutError:
        return False
    except RuntimeError:
        pass  # the run that was interrupted failed
    return True
