"""Options that the stand-alone runner and the pytest plugin share: one row each.

A row is usable by argparse and by pytest alike. Values are checked while parsing, so both front ends refuse the same
texts. The older spelling of an option is a second flag of its row.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, NoReturn

from simpler.platforms import why_sizes_are_ignored

from .. import pto_isa, sanitizers
from ..errors import nearest, unknown_name
from ..parallel_scheduler import device_range_to_list
from ..platforms import PLATFORMS, RUNTIMES, builds_for_host
from . import runs
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


def one_of(what: str, allowed: Iterable[str], convert: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """An argparse type: one of some names; the error lists them and names the nearest."""
    names = list(allowed)

    def parse(text: str) -> Any:
        if text not in names:
            raise argparse.ArgumentTypeError(unknown_name(what, text, names))
        return convert(text)

    return parse


def seconds(text: str) -> float:
    """An argparse type: a time in seconds, 0 included."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds; use 0 for no limit")
    return value


class HelpfulParser(argparse.ArgumentParser):
    """An argument parser whose complaints are short, and name the nearest option or choice."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}{did_you_mean(message, self._known_flags())}\n"
                     f"{self.prog} --help lists what there is\n")  # fmt: skip

    def _known_flags(self) -> list[str]:
        flags = [flag for action in self._actions for flag in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                flags += [flag for parser in action.choices.values() for flag in parser._known_flags()]
        return flags


def did_you_mean(message: str, known_flags: Iterable[str]) -> str:
    """What to add to argparse's complaint about an unknown option or choice; "" when nothing is near."""
    choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    if choice:
        guess = nearest(choice.group(1), [name.strip("' ") for name in choice.group(2).split(",")])
        return f"; did you mean {guess!r}?" if guess else ""
    found = re.match(r"unrecognized arguments: (.*)", message)
    flags = [word.split("=")[0] for word in found.group(1).split() if word.startswith("-")] if found else []
    long_flags = [name for name in known_flags if name.startswith("--")]
    guesses = [(flag, nearest(flag, long_flags)) for flag in flags]
    return "".join(f"; did you mean {guess} instead of {flag}?" for flag, guess in guesses if guess)


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
_PLATFORM = one_of("platform", PLATFORMS)
_RUNTIME = one_of("runtime", RUNTIMES)
_MANUAL = one_of("manual mode", MANUAL_MODES)


def _names(allowed: Iterable[str]) -> str:
    return "{" + ",".join(allowed) + "}"


OPTIONS = (
    _row("-p", "--platform", type=_PLATFORM, metavar=_names(PLATFORMS), help="where the scenes run"),
    _row("-d", "--device", default="0", metavar="SPEC", help="device ids: 0, 0-7 or 0,2-4 (default 0)"),
    _row("--case", action="append", metavar="SEL", help="Case, Class::Case or Class::; may be repeated"),
    _row("--manual", type=_MANUAL, metavar=_names(MANUAL_MODES), default="exclude",
         help="what to do with manual cases (default exclude)"),
    _row("--runtime", type=_RUNTIME, metavar=_names(RUNTIMES), help="only scenes of this runtime"),
    _row("--rounds", type=whole_number(1), default=1, metavar="N", help="run each case N times"),
    _row("--skip-golden", action="store_true", default=False, help="do not compare with golden values"),
    _row("--save-mismatch", action="store_true", default=False,
         help="save output and golden values of a case that differs below outputs/"),
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
    _row("-c", "--pto-isa-commit", metavar="COMMIT",
         help="compile kernels against this commit of the vendor's tile library instead of the bundled one"),
    _row("--clone-protocol", type=one_of("protocol", pto_isa.PROTOCOLS), metavar=_names(pto_isa.PROTOCOLS),
         help="how --pto-isa-commit fetches it (default https)"),
)  # fmt: skip

#: What a dispatcher sets for each child itself.
_OF_EACH_CHILD = ("platform", "device", "case", "manual", "runtime", "max_parallel")


def dest(option: Option) -> str:
    """The attribute name that argparse gives the option."""
    return next(flag for flag in option.flags if flag.startswith("--"))[2:].replace("-", "_")


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def forwarded(chosen: argparse.Namespace) -> list[str]:
    """The options of a stand-alone run that its children need as well."""
    words: list[str] = []
    for option in OPTIONS:
        name = dest(option)
        value = getattr(chosen, name)
        if name in _OF_EACH_CHILD or value == option.settings.get("default"):
            continue
        words += [flag_of(name)] if value is True else [flag_of(name), str(value)]
    words += ["--log-level", chosen.log_level, "--timeout", f"{chosen.timeout:g}"]
    return words + [flag_of(name) for name in ("exitfirst", "verbose") if getattr(chosen, name)]


def apply(platform: str, lookup: Callable[[str], Any], program: str) -> list[str]:
    """Put the options that hold for the whole process into effect; returns warnings.

    `lookup` takes an attribute name. ValueError or OSError when an option cannot be followed.
    """
    notes = set_tile_checks(platform, bool(lookup("no_tile_checks")))
    notes += set_sanitizer(str(lookup("sanitizer") or "none"), program)
    runs.save_mismatches(bool(lookup("save_mismatch")))
    commit, protocol = lookup("pto_isa_commit"), lookup("clone_protocol")
    pto_isa.select(None)
    if commit:
        pto_isa.select(pto_isa.fetch(commit, protocol or "https"))
    elif protocol:
        notes.append("--clone-protocol has no effect without --pto-isa-commit: the tile library is bundled")
    return notes


def show_commands(every: bool) -> None:
    """Let the compiler commands of this process be shown; `every`: also those whose result is in the cache."""
    from ..kernel_compiler import KernelCompiler

    KernelCompiler._shown = "all" if every else "run"


def set_tile_checks(platform: str, off: bool) -> list[str]:
    """Puts `--no-tile-checks` into effect for this process; returns warnings."""
    if off or compiler_loaded():
        from ..kernel_compiler import KernelCompiler

        KernelCompiler._tile_checks = not off
    if off and platform and not builds_for_host(platform):
        return [f"--no-tile-checks has no effect on {platform}: it is not a simulator"]
    return []


def compiler_loaded() -> bool:
    """Whether settings of an earlier session in this process may have to be undone."""
    return "simpler_setup.kernel_compiler" in sys.modules


def set_sanitizer(preset: str, program: str) -> list[str]:
    """Puts `--sanitizer` into effect; returns warnings. ValueError says how to start `program` when its library is not
    loaded, or how to build the runtime that it needs.
    """
    tokens = sanitizers.resolve(preset)
    library = sanitizers.preload_lib(tokens)
    if library and not sanitizers.is_runtime_loaded(library):
        raise ValueError(
            f"--sanitizer {preset} needs {library} in this process; start it with: "
            f"{sanitizers.preload_command(tokens)} {program}"
        )
    if tokens or compiler_loaded():
        from ..kernel_compiler import KernelCompiler

        KernelCompiler._sanitizers = tokens
    if not tokens:
        return []
    note = sanitizers.runtime_note(tokens)
    sanitizers.watch_findings(tokens)
    return [note] if note else []


def worker_settings(platform: str, clusters: int | None, threads: int | None) -> tuple[dict[str, int], list[str]]:
    """(Worker keywords, warnings) of the simulator options."""
    given = {name: value for name, value in (("sim_clusters", clusters), ("sim_threads", threads)) if value is not None}
    if given and not platform.endswith("sim"):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        return {}, [f"{names} has no effect on {platform}: {why_sizes_are_ignored()}"]
    return given, []
