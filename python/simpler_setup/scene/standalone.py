"""`python test_x.py -p a2a3sim ...` and `simpler run`: scene classes of files, without pytest.

Exit codes: 0 all passed (or nothing matched a filter), 1 a case failed or nobody reads the output any more, 2 a wrong
command line or selection, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .. import sanitizers
from ..log_config import DEFAULT_LOG_LEVEL, LOG_LEVEL_CHOICES, configure_logging
from ..parallel_scheduler import default_max_parallel, format_device_range
from ..platforms import counts_as, emulation_note
from . import callables, options, runs, selection
from .declarations import SceneTestLevel, unsupported_reason
from .dispatch import Dispatcher, follow_dispatcher
from .inline import InlineRun, WorkerSlot, label_of
from .progress import Progress
from .verdicts import Report

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended

#: (class, its selected cases)
Plan = list[tuple[Any, list[dict[str, Any]]]]


class UsageError(Exception):
    """The command line cannot be followed: exit 2."""


@dataclass
class Source:
    """A module with scene classes, and which of its cases are wanted besides what `--case` says."""

    module: Any
    selectors: list[selection.Selector] = field(default_factory=list)

    def classes(self) -> list[Any]:
        """Scene classes with cases that the module itself defines, in file order."""
        return [cls for cls in self._with_cases() if hasattr(cls, "_st_level")]

    def undecorated(self) -> list[str]:
        """Names of classes that look like scenes, but lack the decorator, and are no base of one that has it."""
        scenes = self.classes()
        bare = [cls for cls in self._with_cases() if not hasattr(cls, "_st_level")]
        return [cls.__name__ for cls in bare if not any(issubclass(scene, cls) for scene in scenes)]

    def _with_cases(self) -> list[Any]:
        from .case import SceneTestCase

        found = (
            value
            for value in vars(self.module).values()
            if isinstance(value, type)
            and issubclass(value, SceneTestCase)
            and value.__module__ == self.module.__name__
            and value.CASES
        )
        return list(dict.fromkeys(found))  # a class may have two names

    def wants(self, cls: Any, case: dict[str, Any]) -> bool:
        return not self.selectors or any(s.matches(cls.__name__, case["name"]) for s in self.selectors)

    @property
    def path(self) -> str:
        return str(getattr(self.module, "__file__", self.module.__name__))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of a stand-alone run."""
    for option in options.OPTIONS:
        parser.add_argument(*option.flags, **option.settings)
    parser.add_argument("--level", type=options.one_of("level", ("2", "3"), int), metavar="{2,3}",
                        help="only scenes of this level")  # fmt: skip
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop after the first failure")
    parser.add_argument("--log-level", type=options.one_of("log level", LOG_LEVEL_CHOICES), default=DEFAULT_LOG_LEVEL,
                        metavar="LEVEL", help=f"how much is logged on stderr: {', '.join(LOG_LEVEL_CHOICES[:6])}"
                        f" (default {DEFAULT_LOG_LEVEL})")  # fmt: skip
    parser.add_argument("--timeout", type=options.seconds, default=600.0, metavar="SEC",
                        help="a case that takes longer fails and shows all stacks; 0: any (default 600)")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the selected cases and exit")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the commands that are run")


def run_module(module_name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a module's scene classes by command line arguments; returns the exit code."""
    module = sys.modules[module_name]
    source = Source(module)
    parser = options.HelpfulParser(prog=source.path, allow_abbrev=False)
    parser.description = "Run the scene tests of this file."
    add_options(parser)
    chosen = parser.parse_args(arguments)
    spec = getattr(module, "__spec__", None)
    start = ["-m", spec.name] if spec is not None else [source.path]  # as this process was started itself
    return run_sources([source], chosen, start)


def run_sources(
    sources: Sequence[Source],
    chosen: argparse.Namespace,
    start: list[str] | None,
    broken: Sequence[tuple[str, BaseException]] = (),
) -> int:
    """Run the scene classes of several modules; files that are `broken` fail.

    `start` are the words that start a child of the only source; None is for `simpler run`.
    """
    follow_dispatcher()
    try:
        session = _Session(sources, chosen, start, broken)
        if chosen.list:
            return session.list()
        return session.run()
    except (UsageError, selection.SelectionError) as error:
        print(f"ERROR: {error}", file=sys.stderr, flush=True)
        return 2
    except BrokenPipeError:  # as in `python test_x.py -p a2a3sim | head -3`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python itself still writes at the end
        return 1


def _own_command() -> str:
    """How this process could be started again, for messages."""
    return shlex.join(["python", *sys.argv])


class _Session:
    """One run: the checked command line, then group by group."""

    def __init__(
        self,
        sources: Sequence[Source],
        chosen: argparse.Namespace,
        start: list[str] | None,
        broken: Sequence[tuple[str, BaseException]],
    ):
        self.sources, self.chosen, self.start, self.broken = sources, chosen, start, broken
        self.platform: str = chosen.platform
        self.stuck = False  # whether a worker could not be closed when the user interrupted the run
        self.source_of = {cls: source for source in sources for cls in source.classes()}
        if self.platform is None and not chosen.list:
            raise UsageError("-p/--platform is required: a2a3sim or a5sim simulate, a2a3 or a5 run on a board")
        configure_logging(chosen.log_level)
        emulated = emulation_note(self.platform or "")
        if emulated:
            print(f"NOTE: {emulated}", file=sys.stderr, flush=True)
        try:
            self.devices = options.parse_devices(chosen.device)
            self.max_parallel = options.parse_max_parallel(chosen.max_parallel)
            self.selectors = selection.parse_selectors(chosen.case)
            notes = options.apply(self.platform or "", lambda name: getattr(chosen, name), _own_command())
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from error
        self.worker_settings, more = options.worker_settings(
            self.platform or "", chosen.sim_clusters, chosen.sim_threads
        )
        for text in notes + more:
            print(f"WARNING: {text}", file=sys.stderr)
        if chosen.verbose:
            options.show_commands(True)

    # -- selection ------------------------------------------------------------------------------------------------

    def _classes(self) -> list[Any]:
        """The classes that --runtime and --level leave; SelectionError for a selector that names nothing."""
        chosen, everything = self.chosen, list(self.source_of)
        if not everything:
            paths = ", ".join(source.path for source in self.sources)
            bare = [name for source in self.sources for name in source.undecorated()]
            hint = f"; {', '.join(bare)} is not decorated" if bare else ""
            raise selection.SelectionError(
                f"no scene class in {paths}: a scene is a subclass of SceneTestCase with CASES, "
                f"decorated with @scene_test(level=..., runtime=...){hint}"
            )
        for source in self.sources:
            for name in source.undecorated():
                runs.tell(f"{name} is left out: it has CASES, but no decorator @scene_test(level=..., runtime=...)")
        selection.check_selectors(self.selectors, everything)
        for source in self.sources:
            selection.check_selectors(source.selectors, source.classes())
        return [
            cls
            for cls in everything
            if chosen.runtime in (None, cls._st_runtime) and chosen.level in (None, int(cls._st_level))
        ]

    def _plan(self) -> Plan | None:
        """The classes and cases to run; None when --runtime or --level leaves no class."""
        chosen, classes = self.chosen, self._classes()
        if not classes:
            return None
        plan = []
        for cls in classes:
            cases = selection.matching_cases(cls, self.platform, self.selectors, chosen.manual)
            plan.append((cls, [case for case in cases if self.source_of[cls].wants(cls, case)]))
        plan = [(cls, cases) for cls, cases in plan if cases]
        if not plan:
            named = [*self.selectors, *(s for source in self.sources for s in source.selectors)]
            raise selection.nothing_matched(classes, self.platform, named, chosen.manual)
        if chosen.enable_chip_swimlane:
            hosts = [cls.__name__ for cls, _ in plan if cls._st_level > SceneTestLevel.CHIP]
            if hosts:
                raise UsageError(
                    f"--enable-chip-swimlane records one chip, but {', '.join(hosts)} runs at level 3; "
                    "leave the option out, or select other classes with --case"
                )
        return plan

    def list(self) -> int:
        """Print the selected cases with what a user chooses them by."""
        for cls in self._classes():
            for case in cls.CASES:
                if self.selectors and not any(s.matches(cls.__name__, case["name"]) for s in self.selectors):
                    continue
                if not self.source_of[cls].wants(cls, case):
                    continue
                if self.platform and counts_as(self.platform) not in case["platforms"]:
                    continue
                manual, reason = case.get("manual", False), unsupported_reason(cls)
                marks = [f"{label_of(cls, case)}  level {int(cls._st_level)}  {cls._st_runtime}"]
                marks.append(",".join(case["platforms"]))
                if manual:
                    marks.append("manual" if manual is True else f"manual on {manual}")
                if reason is not None:
                    marks.append(f"skipped: {reason}")
                print("  ".join(marks))
        return 0

    # -- running --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        plan = self._plan() if self.sources or not self.broken else []
        if plan is None:
            print(f"No matching classes (runtime={self.chosen.runtime}, level={self.chosen.level})", flush=True)
            return 0
        report = Report(sum(len(cases) for _, cases in plan))
        for path, error in self.broken:
            report.failed_with(path, error)
        try:
            self._compile([cls for cls, _ in plan if not unsupported_reason(cls)])
            self._run_groups(plan, report)
        except KeyboardInterrupt:
            report.summary(", interrupted")
            if self.stuck:
                sys.stderr.flush()
                os._exit(INTERRUPTED)  # an orderly end would wait for a kernel that may never return
            return INTERRUPTED
        late = sanitizers.take_findings()
        if late:
            print(late, file=sys.stderr, flush=True)
            report.lost("after the last case", sanitizers.describe_findings(late, {}))
        report.summary()
        return 1 if report.failed else 0

    def _compile(self, classes: Sequence[Any]) -> None:
        with Progress("compiling", "sources") as progress:
            callables.compile_ahead(classes, self.platform, progress)

    def _run_groups(self, plan: Plan, report: Report) -> None:
        def group_of(entry: tuple[Any, Any]) -> tuple[int, str]:
            return (-int(entry[0]._st_level), entry[0]._st_runtime)

        groups = [(key, list(part)) for key, part in groupby(sorted(plan, key=group_of), key=group_of)]
        child = self.chosen.runtime is not None and self.chosen.level is not None
        spread = len(self.devices) > 1 and not child
        for (level, runtime), part in groups:
            if -level == SceneTestLevel.CHIP and spread:
                self._dispatcher(report).run(runtime, part)
            else:
                if len(groups) > 1 and -level == SceneTestLevel.CHIP:
                    print(f"\n=== L2 Runtime: {runtime} ===")
                self._inline(-level, runtime, part, report)
            if report.failed and self.chosen.exitfirst:
                return

    def _inline(self, level: int, runtime: str, part: Plan, report: Report) -> None:
        print(f"\n=== Runtime: {runtime}  Level: {level} ===", flush=True)
        worker = WorkerSlot(self.platform, runtime, self.devices[0], self.worker_settings)

        def lookup(name: str, default: Any = None) -> Any:
            return getattr(self.chosen, name.lstrip("-").replace("-", "_"), default)

        keywords = runs.options_of(lookup, warn=True)
        inline = InlineRun(
            self.platform, worker, report, keywords, timeout_s=self.chosen.timeout, exit_first=self.chosen.exitfirst
        )
        seen: Source | None = None
        try:
            for cls, cases in part:
                if len(self.sources) > 1 and self.source_of[cls] is not seen:
                    seen = self.source_of[cls]
                    print(seen.path, flush=True)
                if not inline.run(cls, cases):
                    break
        except KeyboardInterrupt:
            self.stuck = not worker.close_soon()
            raise
        finally:
            worker.close()

    # -- children -------------------------------------------------------------------------------------------------

    def _dispatcher(self, report: Report) -> Dispatcher:
        chosen = self.chosen
        limit = self.max_parallel or default_max_parallel(self.platform, self.devices)
        return Dispatcher(self._command, self.devices, limit, report, chosen.timeout, chosen.exitfirst, chosen.verbose)

    def _command(self, part: Any, devices: list[int]) -> list[str]:
        """The command line of a child that runs exactly these cases."""
        first = part[0][0]
        words = [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
        if self.start is not None:
            words += self.start
            named = [word for cls, cases in part for case in cases for word in ("--case", label_of(cls, case))]
        else:
            words += ["-m", "simpler_setup", "run"]
            words += [f"{self.source_of[cls].path}::{label_of(cls, case)}" for cls, cases in part for case in cases]
            named = []
        words += ["-p", self.platform, "-d", format_device_range(devices), "--runtime", first._st_runtime]
        return [*words, "--level", "2", "--manual", "include", *named, *options.forwarded(self.chosen)]
