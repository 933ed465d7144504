"""The package's logger and its ladder of levels.

The threshold is the effective level of the logger "simpler", read when a worker is initialised. No environment variable
changes it.
"""

from __future__ import annotations

import logging

__all__ = [
    "DEFAULT_THRESHOLD",
    "LADDER",
    "LOGGER_NAME",
    "NUL",
    "TIMING",
    "get_current_config",
    "get_logger",
    "parse_level",
]

LOGGER_NAME = "simpler"
TIMING = 25
NUL = 60  # above every message: silence
DEFAULT_THRESHOLD = TIMING
LADDER = (logging.DEBUG, logging.INFO, TIMING, logging.WARNING, logging.ERROR, NUL)

_NAMES = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "timing": TIMING,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "nul": NUL,
    "null": NUL,
}
_NAMES.update({f"v{i}": 15 + i for i in range(10)})  # finer steps of INFO that older programs name


def _register_level_names() -> None:
    """logging and pytest find levels by name, pytest through attributes of the logging module."""
    for name, level in (("TIMING", TIMING), ("NUL", NUL)):
        logging.addLevelName(level, name)
        setattr(logging, name, level)
    logging.NULL = NUL  # type: ignore[attr-defined]
    for i in range(10):
        logging.addLevelName(15 + i, f"V{i}")
        setattr(logging, f"V{i}", 15 + i)
    logging.addLevelName(logging.INFO, "INFO")  # V5 is INFO; messages keep the usual name


def get_logger() -> logging.Logger:
    """The logger "simpler"."""
    return logging.getLogger(LOGGER_NAME)


def get_current_config() -> int:
    """The threshold now: the logger's effective level, rounded up to the ladder."""
    level = get_logger().getEffectiveLevel()
    return next((step for step in LADDER if level <= step), NUL)


def parse_level(level: int | str) -> int:
    """A level as number or name (any case); ValueError for an unknown name."""
    if isinstance(level, int):
        return level
    try:
        return _NAMES[level.lower()]
    except KeyError:
        raise ValueError(f"unknown log level {level!r}; known: {', '.join(_NAMES)}") from None


_register_level_names()
if get_logger().level == logging.NOTSET:
    get_logger().setLevel(DEFAULT_THRESHOLD)
