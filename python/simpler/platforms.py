"""The platforms and runtimes that workers accept: one row each."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from typing import NamedTuple

from .errors import ArgumentError, ArgumentTypeError

__all__ = [
    "PLATFORMS",
    "RUNTIMES",
    "Platform",
    "emulated_vendor",
    "nearest",
    "platform_named",
    "runtime_named",
    "why_sizes_are_ignored",
]


class Platform(NamedTuple):
    name: str
    arch: str
    simulated: bool
    max_clusters: int  # clusters of the full chip


PLATFORMS: dict[str, Platform] = {
    row.name: row
    for row in (
        Platform("a2a3", "a2a3", False, 24),
        Platform("a2a3sim", "a2a3", True, 24),
        Platform("a5", "a5", False, 36),
        Platform("a5sim", "a5", True, 36),
    )
}
RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")


def emulated_vendor() -> str | None:
    """The folder of the libraries that emulate a board, from SIMPLER_EMULATED_VENDOR; None without."""
    return os.environ.get("SIMPLER_EMULATED_VENDOR") or None


def why_sizes_are_ignored() -> str:
    """Why options that size the simulator have no effect on a platform that is none."""
    if emulated_vendor() is None:
        return "it is not a simulator"
    return "the sizes of an emulated board are those of SIMPLER_SIM_CLUSTERS and SIMPLER_SIM_THREADS"


def nearest(name: str, known: Iterable[str]) -> str:
    """' (did you mean ...?)' when something similar exists, else ''."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _choose(what: str, value: object, known: Iterable[str]) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} must be a str, not {type(value).__name__}")
    known = list(known)
    if value not in known:
        raise ArgumentError(f"unknown {what} {value!r}{nearest(value, known)}; supported: {', '.join(known)}")
    return value


def platform_named(name: object) -> Platform:
    return PLATFORMS[_choose("platform", name, PLATFORMS)]


def runtime_named(name: object) -> str:
    return _choose("runtime", name, RUNTIMES)
