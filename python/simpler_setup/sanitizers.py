"""Sanitizer presets: which flags they mean and which library a process must have preloaded to use them."""

from __future__ import annotations

import os
import subprocess
import sys

from .errors import unknown_name

PRESETS = {"none": "", "asan": "address,undefined", "ubsan": "undefined", "tsan": "thread"}
_TOKENS = ("address", "undefined", "thread", "leak", "memory")
#: Which preload library serves a token; the first token that a selection contains decides.
_LIBRARIES = (("thread", "libtsan.so"), ("address", "libasan.so"), ("leak", "liblsan.so"), ("undefined", "libubsan.so"))


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
    """Compiler flags for a comma list of tokens."""
    return [f"-fsanitize={tokens}", "-fno-omit-frame-pointer", "-O1"] if tokens else []


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
    return f"LD_PRELOAD={library_path(library, platform) or library}"


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


def watch_findings(tokens: str) -> None:
    """Placeholder."""
