"""Declaring a scene test: levels, the class decorator, and the check of what the class says.

Mistakes are reported where the class is defined, with the class, the entry, the wrong key and the likely right one.
"""

from __future__ import annotations

import numbers
import os
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, Callable, TypeVar

from ..errors import SceneError, nearest, unknown_name
from ..platforms import PLATFORMS, RUNTIMES

T = TypeVar("T")


class SceneTestLevel(IntEnum):
    """What a scene runs on: one chip, one host with several chips, or several hosts."""

    CHIP = 2
    HOST = 3
    NETWORK1 = 4


#: Why scenes of a level cannot run here; a level that is not listed can.
UNSUPPORTED_LEVELS = {
    3: "level 3 needs Worker(level=3), which this version does not have",
    4: "level 4 needs Worker(level=4), which this version does not have",
}

CORE_TYPES = ("aiv", "aic")
CONFIG_KEYS = ("aicpu_thread_num", "runtime_env", "device_count", "num_sub_workers", "block_dim")
RING_KEYS = ("ring_task_window", "ring_heap", "ring_dep_pool")
CASE_KEYS = ("name", "platforms", "params", "config", "manual", "skip_golden")
CHIP_KEYS = ("orchestration", "incores", "name")
HOST_KEYS = ("orchestration", "callables")
ORCHESTRATION_KEYS = ("source", "function_name", "signature", "config_name", "name")
INCORE_KEYS = ("func_id", "source", "core_type", "signature", "name", "extra_include_dirs")
_TYPO = 0.8  # keys of a test's own are welcome, so only a near miss of a known key is one
MANUAL_FORMS = "True, False, a platform name or a list of platform names"


def check_level(level: int | SceneTestLevel) -> SceneTestLevel:
    """The level as an enum; ValueError lists the levels."""
    try:
        return SceneTestLevel(level)
    except ValueError:
        allowed = ", ".join(f"{int(known)} ({known.name})" for known in SceneTestLevel)
        raise SceneError(f"unknown scene level {level!r}; allowed: {allowed}") from None


def scene_level(level: int | SceneTestLevel) -> Callable[[T], T]:
    """Decorator for functions and classes: set only the level that `--level` filters by."""
    checked = check_level(level)

    def mark(target: T) -> T:
        target._st_level = checked  # type: ignore[attr-defined]
        return target

    return mark


def scene_test(level: int | SceneTestLevel, runtime: str) -> Callable[[T], T]:
    """Class decorator of a scene test: its level and runtime; checks the class and resolves its source paths.

    Relative sources in CALLABLE are relative to the file of the class that defines it. SceneError (a ValueError) says
    what is wrong with the declaration.
    """
    checked = check_level(level)
    if runtime not in RUNTIMES:
        raise SceneError(unknown_name("runtime", runtime, RUNTIMES))

    def decorate(cls: T) -> T:
        _check_class(cls)
        cls._st_level = checked  # type: ignore[attr-defined]
        cls._st_runtime = runtime  # type: ignore[attr-defined]
        cls._st_dir = str(_folder_of(cls))  # type: ignore[attr-defined]
        name = cls.__qualname__  # type: ignore[attr-defined]
        table = getattr(cls, "CALLABLE", None)
        if table:
            check = _check_chip_callable if checked == SceneTestLevel.CHIP else _check_host_callable
            cls.CALLABLE = check(name, table, _folder_of(_definer(cls, "CALLABLE")))  # type: ignore[attr-defined]
        check_cases(name, getattr(cls, "CASES", []))
        _check_attributes(name, cls)
        return cls

    return decorate


def check_subclass(cls: Any) -> None:
    """What a subclass of a decorated scene declares anew is checked and resolved as the decorator does it.

    Its table tells by its form which level it is for: a decorator of its own, with another level, may follow.
    """
    if not hasattr(cls, "_st_runtime"):
        return
    own, name, folder = vars(cls), cls.__qualname__, _folder_of(cls)
    if "CALLABLE" in own or "RUNTIME_ENV" in own:
        cls._st_dir = str(folder)
    table = own.get("CALLABLE")
    if table:
        check = _check_host_callable if "callables" in table else _check_chip_callable
        cls.CALLABLE = check(name, table, folder)
    check_cases(name, own.get("CASES", []))
    _check_attributes(name, cls)


# -- where a class comes from -------------------------------------------------------------------------------------


def _definer(cls: Any, attribute: str) -> Any:
    return next((base for base in cls.__mro__ if attribute in vars(base)), cls)


def _folder_of(cls: Any) -> Path:
    """Folder of the file that defines a class; the current folder when it has none (an interactive session)."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is None and module is not None and getattr(module, "__spec__", None) is not None:
        file = module.__spec__.origin  # type: ignore[union-attr]
    return Path(os.path.abspath(file)).parent if file else Path.cwd()


# -- checks -------------------------------------------------------------------------------------------------------


def _need_keys(where: str, entry: Any, keys: list[str]) -> None:
    if not isinstance(entry, dict):
        raise SceneError(f"{where} must be a dict, got {type(entry).__name__}: {entry!r}")
    for key in keys:
        if key not in entry:
            typo = nearest(key, [k for k in entry if isinstance(k, str) and k not in CASE_KEYS])
            hint = f" (is {typo!r} a typo?)" if typo else f"; it has {', '.join(map(repr, entry)) or 'no keys'}"
            raise SceneError(f"{where} has no {key!r}{hint}")


def _no_typos(where: str, entry: dict[str, Any], known: tuple[str, ...]) -> None:
    """SceneError for a key that is nearly a known one which is absent."""
    absent = [key for key in known if key not in entry]
    for key in entry:
        guess = nearest(key, absent, _TYPO) if key not in known else None
        if guess:
            raise SceneError(f"{where}: unknown key {key!r}. Did you mean {guess!r}?")


def _check_class(cls: Any) -> None:
    from .case import SceneTestCase  # it imports this module

    if not isinstance(cls, type) or not issubclass(cls, SceneTestCase):
        name = getattr(cls, "__qualname__", repr(cls))
        raise SceneError(
            f"{name} is not a scene: @scene_test(level=..., runtime=...) is for subclasses of SceneTestCase; "
            "mark a function with @scene_level(level) and @pytest.mark.runtime(name)"
        )


def _check_attributes(name: str, cls: Any) -> None:
    for attribute in ("RTOL", "ATOL"):
        value = getattr(cls, attribute)
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value >= 0:
            raise SceneError(f"{name}.{attribute} must be a number from 0, got {value!r}")
    if not isinstance(cls.RUNTIME_ENV, dict):
        raise SceneError(f"{name}.RUNTIME_ENV must be a dict of environment variables, got {cls.RUNTIME_ENV!r}")


def _resolved(where: str, entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    source = entry["source"]
    if not isinstance(source, (str, os.PathLike)):
        raise SceneError(f"{where}: 'source' must be a path, got {source!r}")
    path = os.fspath(source)
    return {**entry, "source": path if os.path.isabs(path) else os.path.normpath(folder / path)}


def _check_signature(where: str, entry: dict[str, Any]) -> None:
    signature = entry.get("signature", [])
    if not isinstance(signature, (list, tuple)):
        raise SceneError(f"{where}: 'signature' must be a list of ArgDirection, got {signature!r}")
    for index, direction in enumerate(signature):
        if type(direction).__name__ != "ArgDirection":
            raise SceneError(
                f"{where}: 'signature'[{index}] must be ArgDirection.IN, OUT, INOUT or SCALAR, got {direction!r}"
            )


def _entries(where: str, table: dict[str, Any], key: str) -> list[Any]:
    entries = table.get(key, [])
    if not isinstance(entries, (list, tuple)):
        raise SceneError(f"{where}[{key!r}] must be a list of dicts, got {entries!r}")
    return list(entries)


def _check_chip_callable(name: str, table: Any, folder: Path) -> dict[str, Any]:
    """A copy of an L2 CALLABLE with absolute sources."""
    where = f"{name}.CALLABLE"
    _need_keys(where, table, ["orchestration"])
    orchestration = table["orchestration"]
    _need_keys(f"{where}['orchestration']", orchestration, ["source", "function_name"])
    _no_typos(where, table, CHIP_KEYS)
    _no_typos(f"{where}['orchestration']", orchestration, ORCHESTRATION_KEYS)
    _check_signature(f"{where}['orchestration']", orchestration)
    incores, seen = [], set()
    for index, entry in enumerate(_entries(where, table, "incores")):
        at = f"{where}['incores'][{index}]"
        _need_keys(at, entry, ["func_id", "source"])
        _no_typos(at, entry, INCORE_KEYS)
        core_type, func_id = entry.get("core_type", "aiv"), entry["func_id"]
        if core_type not in CORE_TYPES:
            raise SceneError(f"{at}: {unknown_name('core_type', core_type, CORE_TYPES)}")
        if isinstance(func_id, bool) or not isinstance(func_id, int) or func_id < 0:
            raise SceneError(f"{at}: 'func_id' must be a number from 0, got {func_id!r}")
        if func_id in seen:
            raise SceneError(f"{at}: func_id {func_id} is used twice; each kernel has a number of its own")
        seen.add(func_id)
        _check_signature(at, entry)
        if isinstance(entry.get("extra_include_dirs", []), str):
            raise SceneError(f"{at}: 'extra_include_dirs' must be a list of folders, got a string")
        incores.append(_resolved(at, entry, folder))
    orchestration = _resolved(f"{where}['orchestration']", orchestration, folder)
    return {**table, "orchestration": orchestration, "incores": incores}


def _check_host_callable(name: str, table: Any, folder: Path) -> dict[str, Any]:
    """A copy of an L3 (or higher) CALLABLE with absolute sources in its chip entries."""
    where = f"{name}.CALLABLE"
    _need_keys(where, table, ["orchestration"])
    if not callable(table["orchestration"]):
        raise SceneError(f"{where}['orchestration'] must be a Python function, got {table['orchestration']!r}")
    _no_typos(where, table, HOST_KEYS)
    entries, seen = [], set()
    for index, entry in enumerate(_entries(where, table, "callables")):
        at = f"{where}['callables'][{index}]"
        _need_keys(at, entry, ["name"])
        if entry["name"] in seen:
            raise SceneError(f"{at}: the name {entry['name']!r} is used twice")
        seen.add(entry["name"])
        if "callable" in entry:
            if not callable(entry["callable"]):
                raise SceneError(f"{at}: 'callable' must be a Python function, got {entry['callable']!r}")
            entries.append(entry)
        else:
            entries.append(_check_chip_callable(f"{name}.CALLABLE['callables'][{index}]", entry, folder))
    return {**table, "callables": entries}


def check_config(where: str, config: Any) -> None:
    """The `config` of a case: only known keys."""
    if not isinstance(config, dict):
        raise SceneError(f"{where}: 'config' must be a dict, got {config!r}")
    for key in config:
        if key not in CONFIG_KEYS:
            raise SceneError(f"{where}: {unknown_name('config key', key, CONFIG_KEYS)}")
    rings = config.get("runtime_env", {})
    if not isinstance(rings, dict):
        raise SceneError(f"{where}: 'runtime_env' must be a dict, got {rings!r}")
    for key in rings:
        if key not in RING_KEYS:
            raise SceneError(f"{where}: {unknown_name('runtime_env key', key, RING_KEYS)}")


def _check_platforms(where: str, platforms: Any) -> None:
    if isinstance(platforms, str) or not isinstance(platforms, (list, tuple, set, frozenset)):
        raise SceneError(f"{where} must be a list of platform names, got {platforms!r}")
    for platform in platforms:
        if platform not in PLATFORMS:
            raise SceneError(f"{where}: {unknown_name('platform', platform, PLATFORMS)}")


def check_manual(where: str, manual: Any) -> None:
    """A `manual` value: a bool, or the platforms it holds on."""
    if isinstance(manual, bool):
        return
    if isinstance(manual, str):
        manual = [manual]
    if not isinstance(manual, (list, tuple, set, frozenset)):
        raise SceneError(f"{where} must be {MANUAL_FORMS}, got {manual!r}")
    if len(manual) == 1 and list(manual)[0] not in PLATFORMS and nearest(list(manual)[0], PLATFORMS) is None:
        raise SceneError(f"{where} must be {MANUAL_FORMS} ({', '.join(PLATFORMS)}), got {list(manual)[0]!r}")
    _check_platforms(where, manual)


def check_cases(name: str, cases: Any) -> None:
    """CASES of a class. Keys that the framework does not know belong to the test and are kept."""
    if not isinstance(cases, (list, tuple)):
        raise SceneError(f"{name}.CASES must be a list, got {cases!r}")
    for index, case in enumerate(cases):
        where = f"{name}.CASES[{index}]"
        _need_keys(where, case, ["name", "platforms"])
        if not isinstance(case["name"], str) or not case["name"]:
            raise SceneError(f"{where}: 'name' must be a non-empty string, got {case['name']!r}")
        where = f"{where} ({case['name']!r})"
        _check_platforms(f"{where}: 'platforms'", case["platforms"])
        if not isinstance(case.get("params", {}), dict):
            raise SceneError(f"{where}: 'params' must be a dict, got {case['params']!r}")
        check_config(where, case.get("config", {}))
        check_manual(f"{where}: 'manual'", case.get("manual", False))
        if not isinstance(case.get("skip_golden", False), bool):
            raise SceneError(f"{where}: 'skip_golden' must be True or False, got {case['skip_golden']!r}")
        _no_typos(where, case, CASE_KEYS)


def unsupported_reason(cls: Any) -> str | None:
    """Why a scene class cannot run in this version, or None."""
    return UNSUPPORTED_LEVELS.get(int(getattr(cls, "_st_level", SceneTestLevel.CHIP)))
