"""Compiling a scene class: its orchestration and kernels to one ChipCallable, in parallel, once per process.

The sources also go through the compile cache on disk, so another process compiles nothing either. Several classes can
be compiled ahead of their first run; a failure then stays silent and is met again, with its text, by the class itself.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Callable
from weakref import WeakKeyDictionary

from .. import compile_pool, elf_parser
from ..errors import MissingSymbolError, SceneError
from ..kernel_compiler import KernelCompiler, describe_missing_symbol
from . import runs
from .declarations import SceneTestLevel
from .progress import Progress

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")

#: class -> {(platform, runtime, entry name): ChipCallable}
_compiled: WeakKeyDictionary[type, dict[tuple[str, str, str], Any]] = WeakKeyDictionary()


def clear_compile_cache() -> None:
    """Forget what this process compiled; the cache on disk stays."""
    _compiled.clear()


def compile_cache_key(cls: Any, platform: str) -> tuple[str, ...]:
    """What a compiled chip-level class is known by."""
    return (cls.__module__, cls.__qualname__, platform, cls._st_runtime)


def l3_compile_cache_key(cls: Any, entry_name: str, platform: str, runtime: str) -> tuple[str, ...]:
    """What one compiled entry of a host-level class is known by."""
    return (cls.__module__, cls.__qualname__, entry_name, platform, runtime)


def expand_include_dirs(where: str, folders: Sequence[str], base: str) -> list[str]:
    """Extra include folders with variables filled in; relative ones are relative to the test's folder.

    Folders that do not exist are dropped; SceneError when none is left or a variable is not set.
    """
    if not folders:
        return []

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if name not in os.environ:
            raise SceneError(f"{where}: extra_include_dirs uses ${name}, which is not set in the environment")
        return os.environ[name]

    tried = [os.path.join(base, _VARIABLE.sub(value, os.fspath(folder))) for folder in folders]
    found = [folder for folder in tried if os.path.isdir(folder)]
    if not found:
        raise SceneError(f"{where}: none of the extra_include_dirs exists; tried {', '.join(tried)}")
    return found


class _Program:
    """The compile jobs of one CALLABLE entry, and the ChipCallable made of their results."""

    def __init__(self, cls: Any, table: dict[str, Any], platform: str, runtime: str):
        self.cls, self.table, self.runtime = cls, table, runtime
        self.compiler = KernelCompiler(platform)
        self.base = getattr(cls, "_st_dir", os.getcwd())

    def jobs(self) -> list[tuple[tuple[Any, ...], Callable[[], bytes]]]:
        """(key, job) pairs, the orchestration first. Equal keys give equal bytes."""
        source = self.table["orchestration"]["source"]
        compiler, runtime = self.compiler, self.runtime
        jobs: list[tuple[tuple[Any, ...], Callable[[], bytes]]] = [
            ((source, compiler.platform, runtime), lambda: compiler.compile_orchestration(runtime, source))
        ]
        return jobs + [self._incore_job(entry) for entry in self.table.get("incores", [])]

    def _incore_job(self, entry: dict[str, Any]) -> tuple[tuple[Any, ...], Callable[[], bytes]]:
        where = f"{self.cls.__qualname__}, kernel {entry.get('name', entry['func_id'])!r}"
        extra = expand_include_dirs(where, entry.get("extra_include_dirs", ()), self.base)
        folders = [*self.compiler.get_orchestration_include_dirs(self.runtime), *extra]
        source, core_type = entry["source"], entry.get("core_type", "aiv")

        def job() -> bytes:
            data = self.compiler.compile_incore(source, core_type, extra_include_dirs=folders)
            return data if self.compiler.builds_for_host else elf_parser.extract_text_section(data)

        return (source, self.compiler.platform, core_type, *folders), job

    def assemble(self, binaries: Sequence[bytes]) -> tuple[Any, MissingSymbolError | None]:
        """The callable, and what is wrong with its entry's name."""
        from simpler.task_interface import ChipCallable, CoreCallable

        children = [
            (entry["func_id"], CoreCallable.build(signature=list(entry.get("signature", [])), binary=binary))
            for entry, binary in zip(self.table.get("incores", []), binaries[1:])
        ]
        orchestration = self.table["orchestration"]
        missing = self._check_names(binaries[0], orchestration)
        chip = ChipCallable.build(
            signature=list(orchestration.get("signature", [])),
            func_name=orchestration["function_name"],
            binary=binaries[0],
            children=children,
            config_name=orchestration.get("config_name", "") or "",
        )
        return chip, missing

    def _check_names(self, binary: bytes, orchestration: dict[str, Any]) -> MissingSymbolError | None:
        """What is wrong with the entry's name; a configuration that is missing costs its check only, and is told."""
        source, entry, config = (orchestration.get(key) for key in ("source", "function_name", "config_name"))
        try:
            exported = elf_parser.exported_symbols(binary)
        except ValueError:
            return None  # not ours to judge: the runtime says what is wrong with it
        if entry and entry not in exported:
            missing = describe_missing_symbol(binary, entry, source)
            return MissingSymbolError(f"orchestration {missing} ('function_name' names its entry)", source=str(source))
        if config and config not in exported:
            missing = describe_missing_symbol(binary, config, source)
            runs.tell(
                f"orchestration {missing} ('config_name'), so the number of arguments is not checked; "
                "correct the name, or leave it out"
            )
        return None


def _chip_tables(cls: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """(entry name, table) of everything that a class compiles."""
    table = cls.CALLABLE
    if not table:
        return
    if cls._st_level == SceneTestLevel.CHIP:
        yield "", table
        return
    for entry in table.get("callables", []):
        if "callable" not in entry:
            yield entry["name"], entry


def compile_entry(cls: Any, name: str, table: dict[str, Any], platform: str, checked: bool = True) -> Any:
    """The ChipCallable of one table, compiled at most once per class, platform and process. Unless it is `checked`, an
    entry that the orchestration does not export is left to the registration, which refuses it."""
    memo = _compiled.setdefault(cls, {})
    key = (platform, cls._st_runtime, name)
    if key not in memo:
        program = _Program(cls, table, platform, cls._st_runtime)
        memo[key] = program.assemble(compile_pool.run_all([job for _, job in program.jobs()]))
    chip, missing = memo[key]
    if checked and missing is not None:
        raise missing
    return chip


def compile_chip_callable(cls: Any, platform: str, checked: bool = True) -> Any:
    """The ChipCallable of a chip-level class."""
    if not cls.CALLABLE:
        raise SceneError(f"{cls.__qualname__} has no CALLABLE, so there is nothing to compile")
    return compile_entry(cls, "", cls.CALLABLE, platform, checked)


def require_entry(cls: Any, platform: str) -> None:
    """Raises if the class was compiled and its orchestration does not export the entry."""
    _, missing = _compiled.get(cls, {}).get((platform, cls._st_runtime, ""), (None, None))
    if missing is not None:
        raise missing


def compile_host_callables(cls: Any, platform: str) -> dict[str, Any]:
    """The chip entries of a host-level class by name."""
    return {name: compile_entry(cls, name, table, platform) for name, table in _chip_tables(cls)}


def compile_ahead(classes: Iterable[Any], platform: str, progress: Progress | None = None) -> int:
    """Bring the sources of many classes into the compile cache, in parallel. Returns how many distinct ones there were.

    Failures are left to the class's own compile, which reports them.
    """
    todo: dict[tuple[Any, ...], Callable[[], bytes]] = {}
    for cls in classes:
        try:
            for _, table in _chip_tables(cls):
                todo.update(_Program(cls, table, platform, cls._st_runtime).jobs())
        except Exception:
            continue

    def quietly(job: Callable[[], bytes]) -> Callable[[], None]:
        def run() -> None:
            with contextlib.suppress(Exception):
                job()
            if progress is not None:
                progress.advance()

        return run

    if progress is not None:
        progress.total(len(todo))
    if todo:
        compile_pool.run_all(_from_here([quietly(job) for job in todo.values()]))
    return len(todo)


def _from_here(jobs: list[Callable[[], None]]) -> list[Callable[[], None]]:
    """The jobs in an order of this pytest-xdist worker's own, so that no two begin with the same ones and wait."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not (worker.startswith("gw") and worker[2:].isdigit() and count.isdigit()):
        return jobs
    first = len(jobs) * (int(worker[2:]) % int(count)) // int(count)
    return jobs[first:] + jobs[:first]
