"""The pytest plugin "simpler": options, markers, fixtures and the selection of scene tests.

Everything runs in the pytest process (or in pytest-xdist's). Ordinary tests are left alone: they are neither dropped
nor reordered. A conftest that registers the same options keeps working, whoever comes first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import pytest

from . import sanitizers
from .errors import SceneError
from .log_config import DEFAULT_LOG_LEVEL, parse_level  # also names the levels, for pytest's --log-level
from .platforms import counts_as, emulation_note, parse_platform
from .scene import options, selection
from .scene.declarations import UNSUPPORTED_LEVELS, SceneTestLevel, check_manual, unsupported_reason
from .scene.workers import close_soon, close_worker, open_worker
from .session_alarm import SessionAlarm, answer_stack_requests

_MARKERS = (
    "platforms(names): the test is for these platforms only",
    "runtime(name): the test uses this runtime; --runtime filters by it",
    "device_count(n): how many devices the fixture st_device_ids gives",
    "requires_hardware: the test needs a board, not a simulator",
    "manual(platforms=None): run only with --manual include or only; on these platforms, or on all",
    "sdma: the scene needs the asynchronous copy workspace",
    "network1_remote_device_count(n): how many devices of the remote host the test needs",
    "timeout(seconds): time limit of the test (needs pytest-timeout)",
)

_LEVEL = options.one_of("level", ("2", "3", "4"), int)

#: Options of pytest only; the shared ones are rows of scene/options.py.
_OWN_OPTIONS = (
    (("--level",), {"type": _LEVEL, "metavar": "{2,3,4}", "help": "only scenes of this level"}),
    (("--exclude-level",), {"type": _LEVEL, "metavar": "{2,3,4}", "help": "no scenes of this level"}),
    (("--require-pto-isa",), {"action": "store_true", "default": False, "help": "fail if the tile library is missing"}),
    (
        ("--pto-session-timeout",),
        {"type": options.whole_number(0), "default": 0, "metavar": "SEC",
         "help": "end the session with code 124 after this many seconds, showing all stacks"},
    ),
)  # fmt: skip

_failed_key = pytest.StashKey[bool]()
_alarm_key = pytest.StashKey[SessionAlarm]()
_interrupted_key = pytest.StashKey[bool]()
_stuck_key = pytest.StashKey[bool]()
_configs: list[pytest.Config] = []  # of the sessions in this process; the hook for Ctrl-C does not get its own
_notes_key = pytest.StashKey[list[str]]()

# -- options ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simpler", "simpler scene tests")
    ours: dict[str, str] = {}
    rows = [(option.flags, option.settings) for option in options.OPTIONS]
    for flags, settings in [*rows, *_OWN_OPTIONS]:
        long_flags = [flag for flag in flags if flag.startswith("--")]  # short ones belong to pytest
        try:
            group.addoption(*long_flags, **settings)
        except (ValueError, argparse.ArgumentError):
            continue  # an earlier plugin has it; its value is read by the same name
        ours.update(dict.fromkeys(long_flags, long_flags[0][2:].replace("-", "_")))
    _accept_repeated(parser, ours)


def _accept_repeated(parser: Any, ours: dict[str, str]) -> None:
    """Let a later conftest register options that we have: ours stay, its `dest` becomes another name of the value."""
    aliases: dict[str, str] = {}
    parser._simpler_aliases = aliases
    parser._simpler_flags = list(ours)

    def tolerant(add: Callable[..., None]) -> Callable[..., None]:
        def addoption(*flags: str, **settings: Any) -> None:
            known = [flag for flag in flags if flag in ours]
            if not known:
                add(*flags, **settings)
                return
            target = ours[known[0]]
            if settings.get("dest", target) != target:
                aliases[settings["dest"]] = target
            others = [flag for flag in flags if flag not in ours]
            if others:
                with contextlib.suppress(ValueError, argparse.ArgumentError):
                    add(*others, **{**settings, "dest": target})

        addoption._simpler = True  # type: ignore[attr-defined]
        return addoption

    getgroup = parser.getgroup

    def tolerant_getgroup(*args: Any, **keywords: Any) -> Any:
        group = getgroup(*args, **keywords)
        if not hasattr(group.addoption, "_simpler"):
            group.addoption = tolerant(group.addoption)
        return group

    parser.addoption = tolerant(parser.addoption)
    parser.getgroup = tolerant_getgroup


def _option(config: pytest.Config, name: str, default: Any = None) -> Any:
    return config.getoption(name, default=default)


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(parser: Any, args: list[str]) -> Iterator[None]:
    """Once all options are known: an unknown one that is nearly one of ours is named with it."""
    yield
    known = getattr(parser, "_simpler_flags", ())
    for word in parser.parse_known_and_unknown_args(args)[1]:
        complaint = options.did_you_mean(f"unrecognized arguments: {word}", known)
        if complaint:
            raise pytest.UsageError(f"unrecognized arguments: {word}{complaint}")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """`--max-parallel N` over several devices is pytest-xdist's `-n`, before that plugin looks at it."""
    option = config.option
    try:
        wanted = options.parse_max_parallel(str(_option(config, "--max-parallel", "auto")))
        devices = options.parse_devices(str(_option(config, "--device", "0")))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    if wanted is None or _is_xdist_worker(config) or option.collectonly:
        return
    processes = min(wanted, len(devices))
    if not hasattr(option, "numprocesses"):
        config.stash[_notes_key] = ["--max-parallel has no effect without pytest-xdist: pip install pytest-xdist"]
    elif option.numprocesses is not None or option.usepdb:
        config.stash[_notes_key] = ["--max-parallel has no effect beside -n or --pdb"]
    elif processes < 2:
        config.stash[_notes_key] = [
            f"--max-parallel {wanted} has no effect with {len(devices)} device: "
            "name several with --device, for example --device 0-3"
        ] * (wanted > 1)
    else:
        option.numprocesses = processes
        if option.dist == "no":
            option.dist = "loadfile"


def pytest_configure(config: pytest.Config) -> None:
    _configs.append(config)
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    for alias, target in getattr(config._parser, "_simpler_aliases", {}).items():
        setattr(config.option, alias, getattr(config.option, target, None))
    platform = _option(config, "--platform") or ""
    own_command = shlex.join(["python", "-m", "pytest", *map(str, config.invocation_params.args)])
    try:
        if platform:
            parse_platform(platform)  # a conftest's own --platform takes any text
        selection.parse_selectors(_option(config, "--case"))
        notes = options.apply(platform, lambda name: _option(config, options.flag_of(name)), own_command)
    except (ValueError, OSError) as error:
        raise pytest.UsageError(str(error)) from error
    if _option(config, "--level") is not None and _option(config, "--exclude-level") is not None:
        raise pytest.UsageError("--level and --exclude-level cannot be used together")
    _check_pto_isa(config)
    import logging

    level = _option(config, "--log-level") or DEFAULT_LOG_LEVEL
    logging.getLogger("simpler").setLevel(parse_level(level if isinstance(level, int) else str(level)))
    if config.option.verbose > 0:
        options.show_commands(every=config.option.verbose > 1)
    if not _is_xdist_worker(config):
        for note in notes + config.stash.get(_notes_key, []) + _worker_settings(config)[1]:
            config.issue_config_time_warning(pytest.PytestConfigWarning(note), stacklevel=2)
    seconds = int(_option(config, "--pto-session-timeout", 0) or 0)
    if seconds:
        if _is_xdist_worker(config):
            answer_stack_requests()
        else:
            config.stash[_alarm_key] = SessionAlarm(seconds, lambda: _xdist_pids(config))


def _check_pto_isa(config: pytest.Config) -> None:
    from .pto_isa import ensure_pto_isa_root

    try:
        ensure_pto_isa_root()
    except OSError as error:
        if _option(config, "--require-pto-isa", False):
            raise pytest.UsageError(f"--require-pto-isa: {error}") from error
        print(f"tile library: {error}")


def _is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _xdist_pids(config: pytest.Config) -> list[int]:
    """Process ids of the xdist workers of this session."""
    session = config.pluginmanager.get_plugin("dsession")
    manager = getattr(session, "nodemanager", None)
    nodes = getattr(getattr(manager, "group", None), "_gateways", ())
    pids = []
    for gateway in nodes:
        with contextlib.suppress(AttributeError):
            pids.append(int(gateway._io.popen.pid))
    return pids


def _worker_settings(config: pytest.Config) -> tuple[dict[str, int], list[str]]:
    platform = _option(config, "--platform") or "sim"
    return options.worker_settings(platform, _option(config, "--sim-clusters"), _option(config, "--sim-threads"))


def pytest_report_header(config: pytest.Config) -> str | None:
    platform = _option(config, "--platform")
    if not platform:
        return None
    header = f"simpler: platform {platform}, devices {_option(config, '--device', '0')}"
    emulated = emulation_note(platform)
    return f"{header}\nsimpler: {emulated}" if emulated else header


# -- selection ----------------------------------------------------------------------------------------------------


def _filter_platform(config: pytest.Config) -> str | None:
    platform = _option(config, "--platform")
    return counts_as(platform) if platform else None


def _scene_class(item: pytest.Item) -> Any | None:
    """The decorated scene class of an item, or None."""
    cls = getattr(item, "cls", None)
    module = sys.modules.get("simpler_setup.scene.case")
    if module is None or not isinstance(cls, type) or not issubclass(cls, module.SceneTestCase):
        return None
    return cls if hasattr(cls, "_st_level") else None


def _manual_mode(config: pytest.Config) -> str:
    return _option(config, "--manual", "exclude") or "exclude"


def _level_allows(config: pytest.Config, level: int | None) -> bool:
    """Whether the level filters let an item run; level None is an ordinary test, which `--level` leaves out."""
    wanted, excluded = _option(config, "--level"), _option(config, "--exclude-level")
    return wanted in (None, level) and (level is None or excluded != level)


def _keeps_scene(config: pytest.Config, item: pytest.Item, cls: Any, selectors: Sequence[selection.Selector]) -> bool:
    runtime = getattr(cls, "_st_runtime", None)  # none with @scene_level alone
    wanted = _option(config, "--runtime")
    if (runtime is not None and wanted not in (None, runtime)) or not _level_allows(config, int(cls._st_level)):
        return False
    module = sys.modules["simpler_setup.scene.case"]
    overridden = cls.test_run is not module.SceneTestCase.test_run
    if not cls.CASES and (overridden or getattr(item, "originalname", item.name) != "test_run"):
        return True  # a test method of its own
    return bool(selection.matching_cases(cls, _option(config, "--platform"), selectors, _manual_mode(config)))


def _is_manual(item: pytest.Item, platform: str | None) -> bool:
    """Whether a manual marker holds for the session's platform; UsageError for a wrong marker."""
    found = False
    for mark in item.iter_markers("manual"):
        unknown = set(mark.kwargs) - {"platforms"}
        if unknown or (mark.args and mark.kwargs):
            raise pytest.UsageError(
                f"{item.nodeid}: the manual marker takes platforms as positional lists or as platforms=, got "
                f"{', '.join([*map(repr, mark.args), *(f'{k}={v!r}' for k, v in mark.kwargs.items())])}"
            )
        given = mark.args or ((mark.kwargs["platforms"],) if mark.kwargs.get("platforms") is not None else ())
        names = [name for part in given for name in ([part] if isinstance(part, str) else part)]
        try:
            check_manual(f"{item.nodeid}: manual marker", names)
        except SceneError as error:
            raise pytest.UsageError(str(error)) from error
        found |= not given or platform in names
    return found


def _check_platforms(item: pytest.Item, names: Sequence[str]) -> None:
    """UsageError for a name that is no platform."""
    try:
        for name in names:
            parse_platform(name)
    except ValueError as error:
        raise pytest.UsageError(f"{item.nodeid}: platforms marker: {error}") from error


def _keeps_other(config: pytest.Config, item: pytest.Item) -> bool:
    platform, runtime = _filter_platform(config), _option(config, "--runtime")
    if not selection.manual_allows(_is_manual(item, platform), _manual_mode(config)):
        return False
    platforms = item.get_closest_marker("platforms")
    if platforms is not None:
        names = [name for part in platforms.args for name in ([part] if isinstance(part, str) else part)]
        if platform is None:  # names are not checked then: the marker may be another project's
            item.add_marker(pytest.mark.skip(reason=f"needs --platform, one of {', '.join(names)}"))
        else:
            _check_platforms(item, names)
            if platform not in names:
                return False
    marked = item.get_closest_marker("runtime")
    if runtime is not None and marked is not None and runtime not in marked.args:
        return False
    if item.get_closest_marker("requires_hardware") and (platform is None or platform.endswith("sim")):
        item.add_marker(pytest.mark.skip(reason="needs a board: --platform a2a3 or a5"))
    level = getattr(
        getattr(item, "function", None), "_st_level", getattr(getattr(item, "cls", None), "_st_level", None)
    )
    return _level_allows(config, None if level is None else int(level))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    platform = _option(config, "--platform")
    selectors = selection.parse_selectors(_option(config, "--case"))
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        cls = _scene_class(item)
        if item.get_closest_marker("skip") is not None:
            keep = True
        elif cls is None:
            keep = _keeps_other(config, item)
        elif platform is None:
            item.add_marker(pytest.mark.skip(reason="scene tests need --platform"))
            keep = True
        else:
            keep = _keeps_scene(config, item, cls, selectors)
            reason = unsupported_reason(cls)
            if keep and reason is not None:
                if _option(config, "--enable-chip-swimlane", 0) and cls._st_level > SceneTestLevel.CHIP:
                    raise pytest.UsageError(
                        f"--enable-chip-swimlane records one chip, but {cls.__name__} runs at level 3"
                    )
                item.add_marker(pytest.mark.skip(reason=reason))
        (kept if keep else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
    items[:] = sorted(_by_node_id(kept), key=_phase)
    if platform is not None:
        _warn_about_selectors(config, platform, selectors, kept + dropped)


def _by_node_id(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Scenes change places among themselves into the order of their node ids; ordinary tests stay where they are."""
    scenes = iter(sorted((item for item in items if _scene_class(item) is not None), key=lambda item: item.nodeid))
    return [item if _scene_class(item) is None else next(scenes) for item in items]


def _phase(item: pytest.Item) -> int:
    """Host-level scenes come first, those with a copy workspace last."""
    cls = _scene_class(item)
    if cls is None:
        return 1
    if item.get_closest_marker("sdma") is not None:
        return 2
    return 0 if cls._st_level > SceneTestLevel.CHIP else 1


def _warn_about_selectors(
    config: pytest.Config, platform: str, selectors: Sequence[selection.Selector], items: Sequence[pytest.Item]
) -> None:
    classes = list(dict.fromkeys(cls for cls in map(_scene_class, items) if cls is not None))
    mode = _manual_mode(config)
    for selector in selectors if classes else ():
        problem = selection.selector_problem(selector, classes)
        if problem is not None:
            _warn(f"--case {selector.text} names no collected case: {problem}")
        elif not any(selection.matching_cases(cls, platform, [selector], mode) for cls in classes):
            _warn(f"--case {selector.text}: {selection.nothing_matched(classes, platform, [selector], mode)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile every selected scene class, in parallel, before the first one runs."""
    platform = _option(session.config, "--platform")
    if session.config.option.collectonly or platform is None:
        return
    classes = {}
    for item in session.items:
        cls = _scene_class(item)
        if cls is not None and item.get_closest_marker("skip") is None:
            classes[cls] = None
    if classes:
        from .scene.callables import compile_ahead
        from .scene.progress import Progress

        if _is_xdist_worker(session.config):
            compile_ahead(classes, platform)
            return
        with Progress("compiling", "sources") as progress:
            compile_ahead(classes, platform, progress)


# -- fixtures -----------------------------------------------------------------------------------------------------


class DevicePool:
    """The device ids of `--device` that are not handed out."""

    def __init__(self, ids: Sequence[int]):
        self._available = list(ids)
        self.size = len(self._available)

    def allocate(self, count: int) -> list[int]:
        """`count` ids, or [] when there are not as many."""
        if count > len(self._available):
            return []
        taken, self._available = self._available[:count], self._available[count:]
        return taken

    def release(self, ids: Sequence[int]) -> None:
        self._available.extend(ids)


class WorkerPool:
    """Level-2 workers that live as long as the session; one per device at a time."""

    def __init__(self, platform: str, settings: dict[str, int]):
        self._platform, self._settings = platform, settings
        self._workers: dict[tuple[str, int, bool], Any] = {}

    def get(self, runtime: str, device: int, sdma: bool) -> Any:
        key = (runtime, device, sdma)
        if key not in self._workers:
            self.retire([device])
            extra: dict[str, Any] = {"enable_sdma": True} if sdma else {}
            worker = open_worker(platform=self._platform, runtime=runtime, device_id=device, **self._settings, **extra)
            worker._st_device_id = device
            self._workers[key] = worker
        return self._workers[key]

    def retire(self, devices: Sequence[int] | None = None) -> None:
        """Close the workers of some devices, or all."""
        for key in [key for key in self._workers if devices is None or key[1] in devices]:
            close_worker(self._workers.pop(key), _warn)

    def retire_soon(self) -> bool:
        """Close all workers of an interrupted session; False when one is too busy for that."""
        workers, self._workers = self._workers, {}
        return all([close_soon(worker) for worker in workers.values()])


def _warn(text: str) -> None:
    warnings.warn(pytest.PytestWarning(text), stacklevel=1)


def _device_ids(config: pytest.Config) -> list[int]:
    """Ids for this process. pytest-xdist's worker gwN owns the N-th; simulated chips are private, so it has all."""
    ids = options.parse_devices(str(_option(config, "--device", "0")))
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not name.startswith("gw") or not name[2:].isdigit():
        return ids
    first = int(name[2:]) % len(ids)
    if (_filter_platform(config) or "").endswith("sim"):
        return ids[first:] + ids[:first]
    return [ids[first]]


@pytest.fixture(scope="session")
def device_pool(request: pytest.FixtureRequest) -> DevicePool:
    """The session's devices: `allocate(n)`, `release(ids)`."""
    return DevicePool(_device_ids(request.config))


@pytest.fixture(scope="session")
def st_platform(request: pytest.FixtureRequest) -> str:
    """The platform of `--platform`; skips without it."""
    platform = _option(request.config, "--platform")
    if platform is None:
        pytest.skip("needs --platform")
    return platform


@pytest.fixture(scope="session")
def _l2_worker_pool(request: pytest.FixtureRequest, st_platform: str) -> Iterator[WorkerPool]:
    pool = WorkerPool(st_platform, _worker_settings(request.config)[0])
    yield pool
    if request.config.stash.get(_interrupted_key, False):
        request.config.stash[_stuck_key] = not pool.retire_soon()
    else:
        pool.retire()


@pytest.fixture
def st_worker(request: pytest.FixtureRequest, device_pool: DevicePool, _l2_worker_pool: WorkerPool) -> Iterator[Any]:
    """An initialised Worker for the scene class of the test; shared by later classes unless the test fails."""
    cls = request.cls
    if cls is None or not hasattr(cls, "_st_level"):
        pytest.skip("st_worker needs a class decorated with @scene_test")
    reason = unsupported_reason(cls)
    if reason is not None:
        pytest.skip(reason)
    ids = device_pool.allocate(1)
    if not ids:
        pytest.fail("st_worker needs 1 device, but all are taken", pytrace=False)
    device_pool.release(ids)
    marker = request.node.get_closest_marker("sdma")
    sdma = marker is not None and marker.kwargs.get("worker_workspace", True)
    yield _l2_worker_pool.get(cls._st_runtime, ids[0], bool(sdma))
    if request.node.stash.get(_failed_key, False):
        _l2_worker_pool.retire(ids)


@pytest.fixture
def st_device_ids(request: pytest.FixtureRequest, device_pool: DevicePool) -> Iterator[list[int]]:
    """Ids of as many devices as the marker device_count says (default 1), for this test alone."""
    marker = request.node.get_closest_marker("device_count")
    count = marker.args[0] if marker is not None and marker.args else 1
    if not isinstance(count, int) or count < 1:
        pytest.fail(f"the marker device_count takes a whole number of at least 1, got {count!r}", pytrace=False)
    ids = device_pool.allocate(count)
    if not ids:
        given = _option(request.config, "--device", "0")
        pytest.fail(f"need {count} devices, but --device {given} leaves fewer free", pytrace=False)
    try:
        if _option(request.config, "--platform") is not None:
            request.getfixturevalue("_l2_worker_pool").retire(ids)
        yield ids
    finally:
        device_pool.release(ids)


@pytest.fixture(scope="session")
def st_network1_peer() -> Any:
    """The other host of a test of level 4. There is no such worker, so the test is skipped with the reason."""
    pytest.skip(UNSUPPORTED_LEVELS[SceneTestLevel.NETWORK1])


@pytest.fixture
def st_network1_remote_device_ids(st_network1_peer: Any) -> Any:
    """Devices of the other host, as many as the marker network1_remote_device_count says."""
    return st_network1_peer.remote_device_ids


@pytest.fixture
def st_network1_logs(st_network1_peer: Any) -> Any:
    """Where the processes of both hosts leave their logs."""
    return st_network1_peer


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and report.failed:
        item.stash[_failed_key] = True


# -- session ------------------------------------------------------------------------------------------------------


def pytest_sessionstart(session: pytest.Session) -> None:
    alarm = session.config.stash.get(_alarm_key, None)
    if alarm is not None:
        alarm.start()


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    for config in _configs:
        config.stash[_interrupted_key] = True


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if config in _configs:
        _configs.remove(config)
    if config.stash.get(_stuck_key, False):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(pytest.ExitCode.INTERRUPTED)  # an orderly end would wait for a kernel that may never return


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    alarm = session.config.stash.get(_alarm_key, None)
    if alarm is not None:
        alarm.cancel()
    late = sanitizers.take_findings()
    if late:
        print(late, file=sys.stderr, flush=True)
        print(f"after the last test: {sanitizers.describe_findings(late, {})}", file=sys.stderr, flush=True)
        session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED
    module = sys.modules.get("simpler_setup.scene.callables")
    if module is not None:
        module.clear_compile_cache()
