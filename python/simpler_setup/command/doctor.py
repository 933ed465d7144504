"""`simpler doctor`: what scenes need, whether it is there, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Callable, NamedTuple

from .. import sanitizers
from ..compile_cache import CompileCache
from ..environment import cache_dir
from ..pto_isa import bundled_pto_isa_root, explicit_pto_isa_root
from ..toolchain import host_compiler

OK, NOTE, MISSING = "ok", "note", "MISSING"
_STYLES = {OK: "green", NOTE: "yellow", MISSING: "bold red"}


class Finding(NamedTuple):
    """One line of the report: what was looked at, how it is, and what to do about it."""

    subject: str
    state: str
    text: str
    advice: str = ""


def examine() -> int:
    """Print the findings; 1 when scenes cannot run on a simulator, else 0."""
    findings = [finding for check in _CHECKS for finding in _safely(check)]
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        _print(f"{finding.subject:{width}}  {finding.state:7}  {finding.text}", finding.state)
        if finding.advice:
            print(f"{'':{width}}           -> {finding.advice}")
    missing = [finding.subject for finding in findings if finding.state == MISSING]
    print()
    print(f"simulators cannot be used: {', '.join(missing)}" if missing else "simulators can be used: a2a3sim, a5sim")
    return 1 if missing else 0


def _print(line: str, state: str) -> None:
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(line, style=_STYLES[state], markup=False)
    else:
        print(line)


def _safely(check: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return check()
    except Exception as error:  # a doctor that crashes helps nobody
        first, *rest = str(error).splitlines() or [type(error).__name__]
        return [Finding(check.__name__.strip("_").replace("_", " "), MISSING, first, " ".join(rest[:1]))]


def _python() -> list[Finding]:
    found = [Finding("python", OK, f"{platform.python_version()} at {sys.executable}")]
    for package, needed, use in (
        ("simpler", True, "pip install ."),
        ("numpy", True, "pip install numpy"),
        ("pytest", False, "pip install pytest: scenes under pytest"),
        ("pytest-xdist", False, "pip install pytest-xdist: scenes under pytest in parallel"),
        ("pytest-timeout", False, "pip install pytest-timeout: time limits under pytest"),
        ("torch", False, "pip install torch: scenes that use torch tensors"),
    ):
        try:
            found.append(Finding(package, OK, metadata.version(package)))
        except metadata.PackageNotFoundError:
            found.append(Finding(package, MISSING if needed else NOTE, "not installed", use))
    return found


def _runtime() -> list[Finding]:
    spec = find_spec("_task_interface")
    if spec is None or spec.origin is None:
        return [Finding("runtime", MISSING, "the native module is not installed", "pip install .")]
    import _task_interface

    commit = getattr(_task_interface, "__build_commit__", "") or "unknown"
    found = [Finding("runtime", OK, f"{spec.origin}, built from {commit[:12]}")]
    from ..scene.workers import open_worker

    open_worker(platform="a2a3sim", runtime="tensormap_and_ringbuffer", device_id=0).close()
    return [*found, Finding("worker", OK, "a simulated chip starts")]


_KERNEL = '#include "intrinsic.h"\nextern "C" __aicore__ void kernel_entry(__gm__ int64_t*) {}\n'


def _compiler() -> list[Finding]:
    compiler = host_compiler()
    found = [Finding("compiler", OK, f"{' '.join(compiler.command)}, {compiler.family} {compiler.version}")]
    from ..kernel_compiler import KernelCompiler

    with tempfile.TemporaryDirectory(prefix="simpler-doctor-") as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(_KERNEL, encoding="utf-8")
        KernelCompiler("a2a3sim", cache=CompileCache(Path(folder) / "cache")).compile_incore(source)
    return [*found, Finding("kernels", OK, "an empty kernel compiles")]


def _sanitizers() -> list[Finding]:
    names = {}
    for preset in ("asan", "ubsan", "tsan"):
        path = sanitizers.library_path(sanitizers.preload_lib(sanitizers.resolve(preset)) or "")
        names[preset] = path is not None
    there = [name for name, found in names.items() if found]
    absent = [name for name, found in names.items() if not found]
    if not absent:
        return [Finding("sanitizers", OK, ", ".join(there))]
    advice = "install libasan, libubsan and libtsan of the compiler (Debian: they come with g++)"
    return [Finding("sanitizers", NOTE, f"without {', '.join(absent)}", advice)]


def _processors() -> list[Finding]:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return [Finding("processors", OK, f"{cpus} for this process, {memory:.1f} GiB of memory")]


def _tile_library() -> list[Finding]:
    root = explicit_pto_isa_root()
    if root is None:
        return [Finding("tile library", OK, f"bundled, {bundled_pto_isa_root()}")]
    advice = "unset PTO_ISA_ROOT to use the bundled one"
    return [Finding("tile library", NOTE, f"PTO_ISA_ROOT={root} replaces the bundled one", advice)]


def _board() -> list[Finding]:
    home = os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return [Finding("board", NOTE, "ASCEND_HOME_PATH is not set: a2a3 and a5 cannot be used",
                        "install the CANN toolkit and source its set_env.sh; simulators do without")]  # fmt: skip
    from ..kernel_compiler import KernelCompiler

    try:
        KernelCompiler("a2a3")
    except OSError as error:
        return [Finding("board", NOTE, str(error), "check ASCEND_HOME_PATH; simulators do without")]
    return [Finding("board", OK, f"compilers found below {home}")]


def _cache() -> list[Finding]:
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return [Finding("cache", NOTE, f"{folder} cannot be written ({error}): everything is compiled anew",
                        "set SIMPLER_CACHE_DIR to a writable folder")]  # fmt: skip
    usage = CompileCache().usage()
    return [Finding("cache", OK, f"{folder}, {usage.objects} objects, {usage.size_bytes / 1e6:.1f} MB")]


_CHECKS = (_python, _runtime, _compiler, _sanitizers, _processors, _tile_library, _board, _cache)
