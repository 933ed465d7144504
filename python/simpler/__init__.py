"""Runtime for task graphs on many-core accelerators.

Importing this package loads nothing but logging: the compiled extension and the worker come with the first use of
``simpler.Worker`` or ``simpler.task_interface``.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._log import DEFAULT_THRESHOLD, NUL, TIMING, get_current_config, get_logger

__all__ = [
    "DEFAULT_THRESHOLD",
    "NUL",
    "TIMING",
    "Worker",
    "comm_endpoints",
    "get_current_config",
    "get_logger",
    "task_interface",
]

_LAZY_MODULES = ("comm_endpoints", "task_interface")


def __getattr__(name: str) -> Any:
    if name == "Worker":
        return importlib.import_module(f"{__name__}.worker").Worker
    if name in _LAZY_MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as missing:
            if missing.name == f"{__name__}.{name}":
                raise AttributeError(f"simpler.{name} is not part of this version") from None
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
