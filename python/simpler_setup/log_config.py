"""Log levels by name and the console handler of the stand-alone programs."""

from __future__ import annotations

import logging
import sys

from simpler import _log  # importing it registers the level names with logging

LOG_LEVEL_CHOICES = ["debug", "info", "timing", "warn", "error", "null", *(f"v{i}" for i in range(10))]
DEFAULT_LOG_LEVEL = "timing"


def parse_level(level: str | int | None) -> int:
    """The number of a level: an int passes, an unknown name becomes the default."""
    try:
        return _log.parse_level(DEFAULT_LOG_LEVEL if level is None else level)
    except ValueError:
        return _log.parse_level(DEFAULT_LOG_LEVEL)


def configure_logging(level: str | int | None = DEFAULT_LOG_LEVEL) -> None:
    """Set the threshold of logger "simpler"; give the root logger a stderr handler if it has none."""
    _log.get_logger().setLevel(parse_level(level))
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
        root.addHandler(handler)
