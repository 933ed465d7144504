"""Sanitizers: which flags a preset means, which library a process must have preloaded, and what they found.

Kernels, orchestrations and, if it was built so, the runtime are checked while they run. A finding does not end the
process; it is written to a file, from which `take_findings` gets it after each case.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from .errors import unknown_name

PRESETS = {"none": "", "asan": "address,undefined", "ubsan": "undefined", "tsan": "thread"}
_TOKENS = ("address", "undefined", "thread", "leak", "memory")
#: Which preload library serves a token; the first token that a selection contains decides.
_LIBRARIES = (("thread", "libtsan.so"), ("address", "libasan.so"), ("leak", "liblsan.so"), ("undefined", "libubsan.so"))

#: Go on after a finding; what Python itself never frees is no leak of a scene.
_ASAN_OPTIONS = "halt_on_error=0:detect_leaks=0"


def resolve(preset: str) -> str:
    """The comma list of sanitizer tokens of a preset or of such a list; "" for none."""
    if preset in PRESETS:
        tokens = PRESETS[preset]
    else:
        tokens = ",".join(token.strip() for token in preset.split(",") if token.strip())
        for token in filter(None, tokens.split(",")):
            if token not in _TOKENS:
                raise ValueError(unknown_name("sanitizer", token, [*PRESETS, *_TOKENS]))
    names = set(filter(None, tokens.split(",")))
    if "thread" in names and names & {"address", "leak", "memory"}:
        raise ValueError(f"sanitizers {preset!r}: thread cannot be combined with address, leak or memory")
    if "thread" in names and not sys.platform.startswith("linux"):
        raise ValueError("the thread sanitizer is supported on Linux only")
    return tokens


def compile_flags(tokens: str) -> list[str]:
    """Compiler flags for a comma list of tokens. Lines are kept (-g1), so that a finding names its source."""
    if not tokens:
        return []
    recover = ["-fsanitize-recover=address"] if "address" in tokens.split(",") else []
    return [f"-fsanitize={tokens}", *recover, "-fno-omit-frame-pointer", "-g1", "-O1"]


def preload_lib(tokens: str) -> str | None:
    """File name of the library that must be preloaded, or None when nothing must."""
    names = set(tokens.split(","))
    return next((library for token, library in _LIBRARIES if token in names), None)


def host_cxx(platform: str) -> str:
    """The compiler that builds for the host on this platform."""
    from .toolchain import host_command

    del platform  # one host compiler serves every platform
    return host_command()[0]


def is_runtime_loaded(library: str) -> bool:
    """True when a library of that name is mapped into this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return any(library in line for line in maps)
    except OSError:
        return False


def preload_command(tokens: str, platform: str = "a2a3sim") -> str:
    """The shell prefix that starts a process with the sanitizer's library preloaded; "" when none is needed."""
    library = preload_lib(tokens)
    if library is None:
        return ""
    words = [f"LD_PRELOAD={library_path(library, platform) or library}"]
    if library == "libasan.so":
        words.insert(0, f"ASAN_OPTIONS={_ASAN_OPTIONS}")
    return " ".join(words)


def library_path(library: str, platform: str = "a2a3sim") -> str | None:
    """Where the host's compiler keeps a sanitizer library, or None."""
    try:
        asked = subprocess.run(
            [host_cxx(platform), f"-print-file-name={library}"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    path = asked.stdout.strip()
    return os.path.realpath(path) if os.path.isabs(path) else None


# -- findings -----------------------------------------------------------------------------------------------------

_HEADLINE = re.compile(
    r"ERROR: AddressSanitizer: (?P<asan>[\w-]+)"
    r"|runtime error: (?P<ubsan>.*)"
    r"|WARNING: ThreadSanitizer: (?P<tsan>.*?) \(pid"
)
_reports: tuple[Path, ...] = ()
_read: dict[Path, int] = {}


def runtime_note(tokens: str) -> str | None:
    """What to tell when the installed runtime is not built with these sanitizers.

    ValueError for `thread`: without the runtime's own synchronisation every value of another task looks like a race.
    """
    spec = find_spec("_task_interface")
    name = next((name for token, name in _INIT_SYMBOLS.items() if token in tokens.split(",")), None)
    if name is None or spec is None or spec.origin is None or name in Path(spec.origin).read_bytes():
        return None
    preset = next((preset for preset, own in PRESETS.items() if own == tokens), tokens)
    build = f"SIMPLER_SANITIZER={preset} pip install --force-reinstall --no-deps ."
    if "thread" in tokens.split(","):
        raise ValueError(f"--sanitizer {preset} needs a runtime that is built with it; build one with: {build}")
    return f"--sanitizer {preset} checks kernels and orchestrations; the runtime is not built with it ({build} does)"


#: Symbol that a binary refers to when it is built with a sanitizer.
_INIT_SYMBOLS = {"thread": b"__tsan_init", "address": b"__asan_init", "undefined": b"__ubsan_handle"}


def watch_findings(tokens: str) -> None:
    """Let the sanitizers of this process write their reports to files that `take_findings` reads."""
    global _reports
    if not tokens or _reports:
        return
    folder = tempfile.mkdtemp(prefix="simpler-findings-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = set(tokens.split(","))
    paths = {token: library_path(library) for token, library in _LIBRARIES if token in names}
    loaded = {token: ctypes.CDLL(path) for token, path in paths.items() if path is not None}
    if "undefined" in loaded:
        _first_report(loaded["undefined"])
    files = []
    for token, library in loaded.items():
        prefix = os.path.join(folder, token)  # the library adds the process id
        library.__sanitizer_set_report_path(prefix.encode())
        files.append(Path(f"{prefix}.{os.getpid()}"))
    _reports = tuple(files)


def _first_report(library: ctypes.CDLL) -> None:
    """Make the undefined-behaviour sanitizer report an overflow, unseen.

    It reads its options at its first report only, and then every sanitizer forgets the path of its reports.
    """
    name = ctypes.create_string_buffer(b"'int'")
    file = ctypes.create_string_buffer(b"first report")

    class Type(ctypes.Structure):
        _fields_ = [("kind", ctypes.c_uint16), ("info", ctypes.c_uint16), ("name", ctypes.c_char * len(name))]

    class Overflow(ctypes.Structure):
        _fields_ = [("file", ctypes.c_void_p), ("line", ctypes.c_uint32), ("column", ctypes.c_uint32),
                    ("type", ctypes.c_void_p)]  # fmt: skip

    int32 = Type(0, 5 << 1 | 1, name.raw)  # an integer of 2**5 bits with a sign
    where = Overflow(ctypes.addressof(file), 1, 1, ctypes.addressof(int32))
    largest, one = ctypes.c_void_p(2**31 - 1), ctypes.c_void_p(1)
    kept, silence = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silence, 2)
        library.__ubsan_handle_add_overflow(ctypes.byref(where), largest, one)
    finally:
        os.dup2(kept, 2)
        os.close(silence)
        os.close(kept)


def take_findings() -> str:
    """What the sanitizers reported since the last call; "" for nothing."""
    texts = []
    for path in _reports:
        if path.exists():
            text = path.read_bytes()
            texts.append(text[_read.get(path, 0) :].decode(errors="replace"))
            _read[path] = len(text)
    return "".join(texts)


def describe_findings(report: str, kernels: Mapping[str, str]) -> str:
    """A headline for a report: what was found, in which kernel. `kernels` maps source paths to names."""
    found = list(_HEADLINE.finditer(report))
    lines = []
    for index, one in enumerate(found):
        start = report.rfind("\n", 0, one.start()) + 1
        end = found[index + 1].start() if index + 1 < len(found) else len(report)
        places = [(at, source) for source in kernels if (at := report.find(source, start, end)) >= 0]
        where = ""
        if places:
            at, source = min(places)
            line = re.match(r":(\d+)", report[at + len(source) :])
            where = f" in {kernels[source]} ({os.path.basename(source)}{line.group(0) if line else ''})"
        lines.append((one["asan"] or one["ubsan"] or one["tsan"]).strip() + where)
    distinct = list(dict.fromkeys(lines)) or ["a report without a known headline"]
    return f"sanitizer: {'; '.join(distinct[:3])}" + (f"; and {len(distinct) - 3} more" if len(distinct) > 3 else "")
