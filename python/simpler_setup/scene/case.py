"""SceneTestCase: the base class of scene tests and the run of one case."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from ..errors import SceneError
from . import arrays, callables, compare, handles, runs, selection, task_args
from .arguments import TaskArgsBuilder
from .declarations import RING_KEYS, SceneTestLevel, check_config, check_subclass, unsupported_reason

_GOLDEN_THREADS = 8  # more threads do not speed small golden functions up, and starve a busy machine

#: Older names of run keywords -> the present ones; overrides may take either.
OLDER_KEYWORDS = {"enable_l2_swimlane": "enable_chip_swimlane", "enable_dump_tensor": "enable_dump_args"}


def call_override(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a method that a test may have overridden with older keyword names or fewer keywords.

    A keyword that it does not take is dropped while it is off; TypeError names it otherwise.
    """
    parameters = inspect.signature(function).parameters
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        older = {new: old for old, new in OLDER_KEYWORDS.items()}
        for name in list(keywords):
            if name in parameters:
                continue
            value = keywords.pop(name)
            if older.get(name) in parameters:
                keywords[older[name]] = value
            elif value and (name, value) != ("rounds", 1):
                raise TypeError(f"{function.__qualname__} takes no {name}, which this run sets to {value!r}")
    return function(*args, **keywords)


@contextlib.contextmanager
def run_environment(cls: Any) -> Iterator[None]:
    """The environment variables of RUNTIME_ENV, for the time of a run.

    Relative values of names that end in _DIR or _PATH are relative to the test's folder.
    """
    before: dict[str, str | None] = {}
    base = getattr(cls, "_st_dir", os.getcwd())
    try:
        for name, value in cls.RUNTIME_ENV.items():
            text = str(value)
            if name.endswith(("_DIR", "_PATH")) and not os.path.isabs(text):
                text = os.path.join(base, text)
            before[name] = os.environ.get(name)
            os.environ[name] = text
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


@contextlib.contextmanager
def _golden_threads() -> Iterator[None]:
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 0
    if before > _GOLDEN_THREADS:
        torch.set_num_threads(_GOLDEN_THREADS)  # type: ignore[union-attr]
    try:
        yield
    finally:
        if before > _GOLDEN_THREADS:
            torch.set_num_threads(before)  # type: ignore[union-attr]


class SceneTestCase:
    """A scene: what to compile, the arguments, the golden function and the cases.

    Subclasses are decorated with `@scene_test(level=..., runtime=...)`, fill the class attributes and implement
    `generate_args` and `compute_golden`. They run under pytest (one item per class) and by
    `SceneTestCase.run_module(__name__)`.
    """

    #: What is compiled; sources relative to the test's file.
    CALLABLE: dict[str, Any] = {}
    #: Each a dict with name, platforms, and optionally params, config, manual, skip_golden.
    CASES: list[dict[str, Any]] = []
    RTOL: float = 1e-5
    ATOL: float = 1e-5
    SKIP_GOLDEN: bool = False
    #: Environment during each run.
    RUNTIME_ENV: dict[str, Any] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        check_subclass(cls)

    # -- hooks ----------------------------------------------------------------------------------------------------

    def generate_args(self, params: dict[str, Any]) -> TaskArgsBuilder:
        """The arguments of a case."""
        raise NotImplementedError(f"{type(self).__qualname__} must implement generate_args(self, params)")

    def compute_golden(self, args: TaskArgsBuilder, params: dict[str, Any]) -> None:
        """Write the expected values into `args`, a clone of the arguments."""
        raise NotImplementedError(
            f"{type(self).__qualname__} must implement compute_golden(self, args, params), or set SKIP_GOLDEN = True"
        )

    def compare_outputs(
        self,
        test_args: TaskArgsBuilder,
        golden_args: TaskArgsBuilder,
        output_names: Sequence[str],
        params: dict[str, Any],
    ) -> None:
        """Compare outputs with golden values; AssertionError on a difference."""
        del params
        compare.compare_outputs(test_args, golden_args, output_names, self.RTOL, self.ATOL)

    # -- compiling ------------------------------------------------------------------------------------------------

    @classmethod
    def compile_chip_callable(cls, platform: str) -> Any:
        """The ChipCallable of this chip-level class; compiled at most once per process and platform. An entry that its
        orchestration does not export is no error here: a worker refuses to register it."""
        return callables.compile_chip_callable(cls, platform, checked=False)

    def build_callable(self, platform: str) -> Any:
        """What `_run_and_validate_l2` gets as `callable_obj`; for a host-level class, its chip entries by name."""
        if type(self)._st_level == SceneTestLevel.CHIP:  # type: ignore[attr-defined]
            chip = type(self).compile_chip_callable(platform)
            callables.require_entry(type(self), platform)
            return chip
        return callables.compile_host_callables(type(self), platform)

    # -- one case -------------------------------------------------------------------------------------------------

    def _build_config(
        self,
        config_dict: dict[str, Any] | None,
        enable_chip_swimlane: int = 0,
        enable_dump_args: int = 0,
        enable_pmu: int = 0,
        enable_dep_gen: bool = False,
        enable_scope_stats: bool = False,
        output_prefix: str = "",
        *,
        enable_l2_swimlane: int = 0,
        enable_dump_tensor: int = 0,
    ) -> Any:
        """The CallConfig of a case. ValueError for a setting that the runtime would refuse."""
        from simpler.task_interface import CallConfig

        settings = dict(config_dict or {})
        check_config(type(self).__qualname__, settings)
        config = CallConfig()
        config.aicpu_thread_num = settings.get("aicpu_thread_num", 0)
        for ring in RING_KEYS:
            if ring in settings.get("runtime_env", {}):
                setattr(config.runtime_env, ring, settings["runtime_env"][ring])
        if "block_dim" in settings:
            runs.note_once("config key 'block_dim' is ignored: a run always uses the whole device")
        config.enable_chip_swimlane = enable_chip_swimlane or enable_l2_swimlane
        config.enable_dump_args = enable_dump_args or enable_dump_tensor
        config.enable_pmu = enable_pmu
        config.enable_dep_gen = bool(enable_dep_gen)
        config.enable_scope_stats = bool(enable_scope_stats)
        if output_prefix:
            config.output_prefix = output_prefix
        config.validate()
        return config

    def _skips_golden(self, case: dict[str, Any], asked: bool) -> bool:
        """The option wins over the case, the case over the class."""
        return bool(asked) or bool(case.get("skip_golden", self.SKIP_GOLDEN))

    def _golden_of(self, builder: TaskArgsBuilder, params: dict[str, Any]) -> TaskArgsBuilder:
        golden = builder.clone()
        with _golden_threads():
            self.compute_golden(golden, params)
        return golden

    def _run_and_validate_l2(
        self,
        worker: Any,
        callable_obj: Any,
        case: dict[str, Any],
        rounds: int = 1,
        skip_golden: bool = False,
        enable_chip_swimlane: int = 0,
        enable_dump_args: int = 0,
        enable_pmu: int = 0,
        enable_dep_gen: bool = False,
        enable_scope_stats: bool = False,
        output_prefix: str = "",
        *,
        enable_l2_swimlane: int = 0,
        enable_dump_tensor: int = 0,
    ) -> list[tuple[float, float]]:
        """Run a case `rounds` times on a level-2 worker and compare each time.

        Outputs are back at their initial values before each further round. Returns (host, device) microseconds of each.
        """
        params = case.get("params", {})
        signature = type(self).CALLABLE.get("orchestration", {}).get("signature", [])
        handle = handles.handle_for(worker, self, callable_obj)
        builder = self.generate_args(params)
        if not isinstance(builder, TaskArgsBuilder):
            raise SceneError(f"generate_args returned {type(builder).__name__}; it must return a TaskArgsBuilder")
        args, outputs = task_args.build_l2_ref_args(builder, signature, worker)
        note = task_args.count_note(builder, signature)
        if note:
            runs.tell(f"{type(self).__name__}::{case['name']}: {note}")
        golden = None if self._skips_golden(case, skip_golden) else self._golden_of(builder, params)
        if golden is not None and not outputs and type(self).compare_outputs is SceneTestCase.compare_outputs:
            runs.tell(
                f"{type(self).__name__}::{case['name']}: nothing is compared, since no tensor of the signature is OUT "
                "or INOUT"
            )
        initial = {name: arrays.clone(getattr(builder, name)) for name in outputs} if rounds > 1 else {}
        timings = []
        for index in range(rounds):
            if index > 0:
                for name, value in initial.items():
                    arrays.assign(getattr(builder, name), value)
            config = call_override(
                self._build_config,
                case.get("config", {}),
                enable_chip_swimlane=enable_chip_swimlane or enable_l2_swimlane,
                enable_dump_args=enable_dump_args or enable_dump_tensor,
                enable_pmu=enable_pmu,
                enable_dep_gen=enable_dep_gen,
                enable_scope_stats=enable_scope_stats,
                output_prefix=output_prefix,
            )
            with run_environment(type(self)):
                started = time.perf_counter()
                worker.run(handle, args, config=config)
                timing = getattr(worker, "last_run_timing", None)
                elapsed = (time.perf_counter() - started) * 1e6
            timings.append((getattr(timing, "host_wall_us", elapsed), getattr(timing, "device_wall_us", 0.0)))
            if golden is not None:
                self._compare(case, builder, golden, outputs, output_prefix)
        runs.print_rounds(timings)
        return timings

    def _compare(
        self, case: dict[str, Any], builder: TaskArgsBuilder, golden: TaskArgsBuilder, outputs: list[str], folder: str
    ) -> None:
        """compare_outputs; a failure tells what else is suspicious and where the values were saved."""
        try:
            self.compare_outputs(builder, golden, outputs, case.get("params", {}))
        except AssertionError as error:
            pairs = {name: (getattr(builder, name), getattr(golden, name)) for name in outputs}
            saved = runs.save_mismatch(type(self).__name__, case["name"], folder, pairs)
            signature = type(self).CALLABLE.get("orchestration", {}).get("signature", [])
            notes = [f"  saved: {saved}"] if saved else []
            notes += [f"  note: {note}" for note in [task_args.count_note(builder, signature)] if note]
            if notes:
                error.args = ("\n".join([str(error), *notes]),)
            raise

    def _run_and_validate_l3(
        self, worker: Any, compiled_callables: Any, sub_handles: Any, case: dict[str, Any], **options: Any
    ) -> None:
        """Run a case of a host-level class; NotImplementedError while the version has no host-level worker."""
        del worker, compiled_callables, sub_handles, options
        raise NotImplementedError(
            f"case {case['name']!r}: {unsupported_reason(type(self)) or 'not a host-level class'}"
        )

    # -- under pytest ---------------------------------------------------------------------------------------------

    @classmethod
    def _matching_cases(cls, st_platform: str, request: Any) -> list[dict[str, Any]]:
        """The cases that the session's options select; their names become the property "cases" of the test's report."""
        option = request.config.getoption
        cases = selection.matching_cases(
            cls,
            st_platform,
            selection.parse_selectors(option("--case", default=None)),
            option("--manual", default="exclude") or "exclude",
        )
        request.node.user_properties.append(("cases", ", ".join(case["name"] for case in cases)))
        return cases

    @staticmethod
    def _effective_enable_dep_gen(request: Any, *, warn: bool = False) -> bool:
        """Whether dependencies are recorded: asked for, and a single round."""
        asked = bool(request.config.getoption("--enable-dep-gen", default=False))
        many = int(request.config.getoption("--rounds", default=1)) > 1
        if asked and many and warn:
            logging.getLogger("simpler").warning("--enable-dep-gen disabled: --rounds > 1")
        return asked and not many

    def test_run(self, st_platform: str, st_worker: Any, request: Any) -> None:
        """The pytest item of the class: all selected cases. The first failure is raised; its notes name others."""
        import pytest

        cases = self._matching_cases(st_platform, request)
        if not cases:
            pytest.skip(f"{type(self).__qualname__} has no selected case for {st_platform}")
        runs.run_class_cases(
            st_worker,
            self,
            cases,
            callable_obj=self.build_callable(st_platform),
            sub_handles=getattr(type(self), "_st_sub_handles", {}),
            exit_first=request.config.getoption("maxfail", default=0) == 1,
            **runs.options_of(request.config.getoption, warn=True),
        )

    # -- stand-alone ----------------------------------------------------------------------------------------------

    @staticmethod
    def run_module(module_name: str) -> None:
        """Run the scene classes of a module by the command line of this process; ends the process."""
        from .standalone import run_module

        sys.exit(run_module(module_name))
