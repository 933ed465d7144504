"""One registration per worker and scene class.

Keyed by the worker object and the exact class, so neither a new worker nor a subclass meets a foreign handle. A worker
takes a limited number of callables, so the least recently used registrations are given back.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

_KEPT = 32  # per worker; half of what a worker can register

_by_worker: WeakKeyDictionary[Any, OrderedDict[Any, tuple[Any, Any]]] = WeakKeyDictionary()


def _belongs(worker: Any, handle: Any) -> bool:
    """Whether a live registration of this worker stands behind the handle."""
    resolve = getattr(worker, "_resolve_handle", None)
    if resolve is None:
        return True
    try:
        resolve(handle)
    except (KeyError, RuntimeError, TypeError):
        return False
    return True


def handle_for(worker: Any, owner: Any, callable_obj: Any) -> Any:
    """The handle to run `callable_obj` of a test object on a worker.

    A handle that the test put on its own class (or object) as `_st_l2_handle` is used if it belongs to the worker.
    """
    cls = type(owner)
    explicit = vars(owner).get("_st_l2_handle") or vars(cls).get("_st_l2_handle")
    if explicit is not None and _belongs(worker, explicit):
        return explicit
    kept = _by_worker.setdefault(worker, OrderedDict())
    known = kept.get(cls)
    if known is not None and known[0] is callable_obj:
        kept.move_to_end(cls)
        return known[1]
    if known is not None:
        _give_back(worker, kept.pop(cls)[1])
    while len(kept) >= _KEPT:
        _give_back(worker, kept.popitem(last=False)[1][1])
    handle = worker.register(callable_obj)
    kept[cls] = (callable_obj, handle)
    return handle


def _give_back(worker: Any, handle: Any) -> None:
    with contextlib.suppress(KeyError):  # the test unregistered it itself
        worker.unregister(handle)
