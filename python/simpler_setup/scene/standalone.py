"""`python test_x.py -p a2a3sim ...`: the scene classes of one file without pytest.

Exit codes: 0 all passed (or nothing matched a filter), 1 a case failed, 2 a wrong command line or selection.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from .. import sanitizers
from ..errors import GoldenMismatch
from ..log_config import DEFAULT_LOG_LEVEL, LOG_LEVEL_CHOICES, configure_logging
from ..parallel_scheduler import default_max_parallel
from . import callables, options, runs, selection
from .declarations import SceneTestLevel, unsupported_reason
from .workers import close_worker, open_worker

#: (class, its selected cases)
Plan = list[tuple[Any, list[dict[str, Any]]]]


class _UsageError(Exception):
    """The command line cannot be followed: exit 2."""


def build_parser(program: str) -> argparse.ArgumentParser:
    """The command line of a scene file."""
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False, description="Run the scene tests of this file.")
    for option in options.OPTIONS:
        parser.add_argument(*option.flags, **option.settings)
    parser.add_argument("--level", type=int, choices=[2, 3], help="only scenes of this level")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop after the first failure")
    parser.add_argument("--log-level", choices=LOG_LEVEL_CHOICES, default=DEFAULT_LOG_LEVEL, help="how much is logged")
    parser.add_argument("--list", action="store_true", help="list the selected cases and exit")
    return parser


def scene_classes(module: Any) -> list[Any]:
    """Scene classes with cases that the module itself defines, in file order."""
    from .case import SceneTestCase

    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, SceneTestCase)
        and value.__module__ == module.__name__
        and value.CASES
        and hasattr(value, "_st_level")
    ]


def run_module(module_name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a module's scene classes by command line arguments; returns the exit code."""
    module = sys.modules[module_name]
    parser = build_parser(str(getattr(module, "__file__", module_name)))
    chosen = parser.parse_args(arguments)
    try:
        return _Session(module, chosen).run()
    except (_UsageError, selection.SelectionError) as error:
        print(f"ERROR: {error}", file=sys.stderr, flush=True)
        return 2


class _Session:
    """One stand-alone run: the checked command line, then group by group."""

    def __init__(self, module: Any, chosen: argparse.Namespace):
        self.module, self.chosen = module, chosen
        self.platform: str = chosen.platform
        if self.platform is None and not chosen.list:
            raise _UsageError("-p/--platform is required")
        configure_logging(chosen.log_level)
        try:
            self.devices = options.parse_devices(chosen.device)
            self.max_parallel = options.parse_max_parallel(chosen.max_parallel)
            self._set_sanitizer(sanitizers.resolve(chosen.sanitizer))
        except ValueError as error:
            raise _UsageError(str(error)) from error
        for text in options.ignored_options(lambda name: getattr(chosen, name)):
            print(f"WARNING: {text}", file=sys.stderr)
        self.worker_settings, notes = options.worker_settings(
            self.platform or "", chosen.sim_clusters, chosen.sim_threads
        )
        notes += options.set_tile_checks(self.platform or "", chosen.no_tile_checks)
        for text in notes:
            print(f"WARNING: {text}", file=sys.stderr)

    @staticmethod
    def _set_sanitizer(tokens: str) -> None:
        from ..kernel_compiler import KernelCompiler

        library = sanitizers.preload_lib(tokens)
        if library and not sanitizers.is_runtime_loaded(library):
            raise ValueError(
                f"--sanitizer {tokens} needs {library} in this process; start it with: "
                f"{sanitizers.preload_command(tokens)} python ..."
            )
        KernelCompiler._sanitizers = tokens

    # -- selection ------------------------------------------------------------------------------------------------

    def _plan(self) -> Plan | None:
        """The classes and cases to run; None when --runtime or --level leaves no class."""
        chosen = self.chosen
        everything = scene_classes(self.module)
        selectors = selection.parse_selectors(chosen.case)
        selection.check_selectors(selectors, everything)
        classes = [
            cls
            for cls in everything
            if chosen.runtime in (None, cls._st_runtime) and chosen.level in (None, int(cls._st_level))
        ]
        if not classes:
            return None
        plan = [(cls, selection.matching_cases(cls, self.platform, selectors, chosen.manual)) for cls in classes]
        plan = [(cls, cases) for cls, cases in plan if cases]
        if not plan:
            raise selection.nothing_matched(classes, self.platform, selectors, chosen.manual)
        if chosen.enable_chip_swimlane:
            hosts = [cls.__name__ for cls, _ in plan if cls._st_level > SceneTestLevel.CHIP]
            if hosts:
                raise _UsageError(
                    f"--enable-chip-swimlane records one chip, but {', '.join(hosts)} runs at level 3; "
                    "leave the option out, or select other classes with --case"
                )
        return plan

    def _list(self) -> int:
        selectors = selection.parse_selectors(self.chosen.case)
        for cls in scene_classes(self.module):
            for case in cls.CASES:
                if selectors and not any(s.matches(cls.__name__, case["name"]) for s in selectors):
                    continue
                if self.platform and self.platform not in case["platforms"]:
                    continue
                manual = case.get("manual", False)
                mark = "" if not manual else "  manual" if manual is True else f"  manual on {manual}"
                print(
                    f"{cls.__name__}::{case['name']}  level {int(cls._st_level)}  {cls._st_runtime}  "
                    f"{','.join(case['platforms'])}{mark}"
                )
        return 0

    # -- running --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        if self.chosen.list:
            return self._list()
        plan = self._plan()
        if plan is None:
            print(f"No matching classes (runtime={self.chosen.runtime}, level={self.chosen.level})", flush=True)
            return 0

        def group_of(entry: tuple[Any, Any]) -> tuple[int, str]:
            return (-int(entry[0]._st_level), entry[0]._st_runtime)

        groups = [(key, list(part)) for key, part in groupby(sorted(plan, key=group_of), key=group_of)]
        child = self.chosen.runtime is not None and self.chosen.level is not None
        spread = len(self.devices) > 1 and not child
        callables.compile_ahead([cls for cls, _ in plan if not unsupported_reason(cls)], self.platform)
        passed = True
        for (level, runtime), part in groups:
            if -level == SceneTestLevel.CHIP and spread:
                passed &= self._spread(runtime, part)
            else:
                if len(groups) > 1 and -level == SceneTestLevel.CHIP:
                    print(f"\n=== L2 Runtime: {runtime} ===")
                passed &= self._inline(-level, runtime, part)
            if not passed and self.chosen.exitfirst:
                break
        return 0 if passed else 1

    def _spread(self, runtime: str, part: Plan) -> bool:
        from .dispatch import run_spread

        limit = self.max_parallel or default_max_parallel(self.platform, self.devices)
        return run_spread(
            self.module.__file__,
            self.platform,
            runtime,
            part,
            self.devices,
            max_parallel=limit,
            forwarded=self._forwarded(),
            exit_first=self.chosen.exitfirst,
        )

    def _forwarded(self) -> list[str]:
        """The options that every child needs as well."""
        chosen = self.chosen
        words = ["--rounds", str(chosen.rounds), "--log-level", chosen.log_level, "--sanitizer", chosen.sanitizer]
        for name in ("enable_chip_swimlane", "dump_args", "enable_pmu", "sim_clusters", "sim_threads"):
            if getattr(chosen, name):
                words += [f"--{name.replace('_', '-')}", str(getattr(chosen, name))]
        flags = ("skip_golden", "no_tile_checks", "enable_dep_gen", "enable_scope_stats", "enable_swimlane_overhead")
        for name in (*flags, "exitfirst"):
            if getattr(chosen, name):
                words.append(f"--{name.replace('_', '-')}")
        return words

    def _inline(self, level: int, runtime: str, part: Plan) -> bool:
        print(f"\n=== Runtime: {runtime}  Level: {level} ===", flush=True)
        worker = _WorkerSlot(self.platform, runtime, self.devices[0], self.worker_settings)

        def lookup(name: str, default: Any = None) -> Any:
            return getattr(self.chosen, name.lstrip("-").replace("-", "_"), default)

        keywords = runs.options_of(lookup, warn=True)
        passed = True
        try:
            for cls, cases in part:
                passed &= self._run_class(worker, cls, cases, keywords)
                if not passed and self.chosen.exitfirst:
                    break
        finally:
            worker.close()
        return passed

    def _run_class(self, worker: _WorkerSlot, cls: Any, cases: list[dict[str, Any]], keywords: dict[str, Any]) -> bool:
        reason = unsupported_reason(cls)
        if reason is not None:
            for case in cases:
                print(f"  {cls.__name__}::{case['name']} SKIPPED: {reason}", flush=True)
            return True
        inst, passed, callable_obj = cls(), True, None
        refused: Exception | None = None
        try:
            callable_obj = inst.build_callable(self.platform)
        except Exception as error:
            refused = error
        for case in cases:
            label = f"{cls.__name__}::{case['name']}"
            print(f"  {label} ...", flush=True)
            try:
                if refused is not None:
                    raise refused
                runs.run_class_cases(worker.get(), inst, [case], callable_obj=callable_obj, sub_handles={}, **keywords)
            except Exception as error:
                passed = False
                _report_failure(label, error)
                if not isinstance(error, AssertionError):
                    worker.close()  # the next case gets a worker that did not fail
                if self.chosen.exitfirst:
                    break
            else:
                print(f"  {label} PASSED", flush=True)
        return passed


def _report_failure(label: str, error: BaseException) -> None:
    text = str(error) or type(error).__name__
    if not isinstance(error, (AssertionError, RuntimeError, ValueError, OSError)):
        text = f"{type(error).__name__}: {text}"
    first, *rest = text.splitlines()
    if not isinstance(error, GoldenMismatch):
        traceback.print_exception(type(error), error, error.__traceback__)
    print(f"  {label} FAILED: {first}")
    for line in rest:
        print(f"    {line}")
    sys.stdout.flush()


class _WorkerSlot:
    """A level-2 worker that is made when it is first needed and again after it was closed."""

    def __init__(self, platform: str, runtime: str, device: int, settings: dict[str, int]):
        self._keywords = {"platform": platform, "runtime": runtime, "device_id": device, **settings}
        self._worker: Any = None

    def get(self) -> Any:
        if self._worker is None:
            self._worker = open_worker(**self._keywords)
        return self._worker

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            close_worker(worker, lambda text: print(f"WARNING: {text}", file=sys.stderr, flush=True))
