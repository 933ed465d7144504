"""Environment variables that are read once."""

from __future__ import annotations

import os

__all__ = ["ensure", "get"]

_cache: dict[str, str] = {}


def get(name: str) -> str | None:
    """The value that ensure() found earlier, else None. Does not look at the environment."""
    return _cache.get(name)


def ensure(name: str) -> str:
    """The variable's value, remembered from the first call; OSError if it is unset or empty."""
    if name not in _cache:
        value = os.environ.get(name)
        if not value:
            raise OSError(f"environment variable is not set: {name}")
        _cache[name] = value
    return _cache[name]
