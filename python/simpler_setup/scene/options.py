"""Options that the stand-alone runner and the pytest plugin share: one row each.

A row is usable by argparse and by pytest alike. Values are checked while parsing, so both front ends refuse the same
texts. The older spelling of an option is a second flag of its row.
"""

from __future__ import annotations

import argparse
from typing import Any, Callable, NamedTuple

from ..parallel_scheduler import device_range_to_list
from ..platforms import PLATFORMS, RUNTIMES
from .selection import MANUAL_MODES


class Option(NamedTuple):
    """Flags and the keyword arguments of argparse's add_argument. Short flags belong to the stand-alone runner."""

    flags: tuple[str, ...]
    settings: dict[str, Any]


def whole_number(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """An argparse type: an integer within limits."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest or (highest is not None and value > highest):
            limits = f"from {lowest} to {highest}" if highest is not None else f"of at least {lowest}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {limits}")
        return value

    return parse


def parse_devices(text: str) -> list[int]:
    """Device ids of a `--device` value; ValueError when it is empty or not a list of ranges."""
    ids = device_range_to_list(text)
    if not ids:
        raise ValueError("--device names no device; use 0, 0-3 or 0,2-4")
    return ids


def parse_max_parallel(text: str) -> int | None:
    """A `--max-parallel` value: None for auto, else at least 1."""
    if text == "auto":
        return None
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ValueError(f"--max-parallel must be 'auto' or a whole number of at least 1, got {text!r}")
    return value


def _row(*flags: str, **settings: Any) -> Option:
    return Option(flags, settings)


_LEVEL = whole_number(0, 4)

OPTIONS = (
    _row("-p", "--platform", choices=list(PLATFORMS), help="where the scenes run"),
    _row("-d", "--device", default="0", metavar="SPEC", help="device ids: 0, 0-7 or 0,2-4 (default 0)"),
    _row("--case", action="append", metavar="SEL", help="Case, Class::Case or Class::; may be repeated"),
    _row("--manual", choices=MANUAL_MODES, default="exclude", help="what to do with manual cases (default exclude)"),
    _row("--runtime", choices=list(RUNTIMES), help="only scenes of this runtime"),
    _row("--rounds", type=whole_number(1), default=1, metavar="N", help="run each case N times"),
    _row("--skip-golden", action="store_true", default=False, help="do not compare with golden values"),
    _row("--enable-chip-swimlane", "--enable-l2-swimlane", nargs="?", const=4, default=0, type=_LEVEL, metavar="LEVEL",
         help="record task times; level 1 to 4 (alone: 4)"),
    _row("--dump-args", "--dump-tensor", nargs="?", const=1, default=0, type=whole_number(0, 3), metavar="LEVEL",
         help="dump task arguments: 1 marked ones, 2 all, 3 all records with marked payload (alone: 1)"),
    _row("--enable-pmu", nargs="?", const=2, default=0, type=whole_number(0), metavar="EVENT",
         help="count core events; event type (alone: 2, pipe utilisation)"),
    _row("--enable-dep-gen", action="store_true", default=False, help="record the dependency graph"),
    _row("--enable-scope-stats", action="store_true", default=False, help="record memory use per scope"),
    _row("--enable-swimlane-overhead", action="store_true", default=False, help="report scheduling overhead too"),
    _row("--max-parallel", default="auto", metavar="N", help="child processes at once, or 'auto'"),
    _row("--sanitizer", default="none", metavar="NAME", help="asan, ubsan, tsan, or a list such as address,undefined"),
    _row("--no-tile-checks", action="store_true", default=False,
         help="kernels for a simulator do not check the operands of their tile instructions"),
    _row("--sim-clusters", type=whole_number(1), metavar="N", help="clusters that a simulated chip has"),
    _row("--sim-threads", type=whole_number(1), metavar="N", help="threads that a simulator uses"),
    _row("-c", "--pto-isa-commit", metavar="COMMIT", help="ignored: the tile library is bundled"),
    _row("--clone-protocol", metavar="NAME", help="ignored: the tile library is bundled"),
)  # fmt: skip


def dest(option: Option) -> str:
    """The attribute name that argparse gives the option."""
    return next(flag for flag in option.flags if flag.startswith("--"))[2:].replace("-", "_")


def ignored_options(lookup: Callable[[str], Any]) -> list[str]:
    """Warnings for options that are accepted for older command lines only. `lookup` takes an attribute name."""
    rows = [option for option in OPTIONS if option.settings.get("help", "").startswith("ignored")]
    return [f"--{dest(r).replace('_', '-')} is {r.settings['help']}" for r in rows if lookup(dest(r)) is not None]


def set_tile_checks(platform: str, off: bool) -> list[str]:
    """Puts `--no-tile-checks` into effect for this process; returns warnings."""
    from ..kernel_compiler import KernelCompiler

    KernelCompiler._tile_checks = not off
    if off and platform and not platform.endswith("sim"):
        return [f"--no-tile-checks has no effect on {platform}: it is not a simulator"]
    return []


def worker_settings(platform: str, clusters: int | None, threads: int | None) -> tuple[dict[str, int], list[str]]:
    """(Worker keywords, warnings) of the simulator options."""
    given = {name: value for name, value in (("sim_clusters", clusters), ("sim_threads", threads)) if value is not None}
    if given and not platform.endswith("sim"):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        return {}, [f"{names} has no effect on {platform}: it is not a simulator"]
    return given, []
