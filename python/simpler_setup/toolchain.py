"""The C++ compiler of the host: which command, what kind, whether it will do.

The command comes from `SIMPLER_SIM_CXX`, else `CXX`, else `g++`; words after the first are kept ("ccache g++",
"g++ -m64"). Kind and version are asked from the compiler once and remembered in the user's cache folder under the
path, time and size of its binary, so that a warm run starts no compiler at all.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache

from .environment import cache_dir
from .errors import ToolchainError

_OLDEST = {"gcc": 12, "clang": 16}
_NEWEST_GCC = 30  # no command g++-N beyond this is looked for
_ADVICE = "set SIMPLER_SIM_CXX to g++ 12 or newer, or to clang++ 16 or newer"


@dataclass(frozen=True)
class HostCompiler:
    """A usable host compiler. `identity` changes whenever its output may change."""

    command: tuple[str, ...]
    family: str  # "gcc" or "clang"
    version: int  # major version
    identity: str

    @property
    def is_gcc(self) -> bool:
        return self.family == "gcc"


def host_command() -> list[str]:
    """The words of the host compiler command."""
    for variable in ("SIMPLER_SIM_CXX", "CXX"):
        words = shlex.split(os.environ.get(variable, ""))
        if words:
            return words
    return ["g++"]


def _origin() -> str:
    return next((f" (from {name})" for name in ("SIMPLER_SIM_CXX", "CXX") if os.environ.get(name)), "")


def file_identity(path: str) -> str:
    """Path, time and size of the file that a command name stands for."""
    real = os.path.realpath(path)
    stat = os.stat(real)
    return f"{path}|{real}|{stat.st_mtime_ns}|{stat.st_size}"


def _identity(words: list[str]) -> str:
    parts = []
    for index, word in enumerate(words):
        found = shutil.which(word) if index == 0 or not word.startswith("-") else None
        if index == 0 and found is None:
            raise ToolchainError(f"C++ compiler {word!r}{_origin()} was not found; install it or {_ADVICE}")
        parts.append(file_identity(found) if found else word)
    return "\n".join(parts)


def _ask(words: list[str]) -> tuple[str, int]:
    """(family, major version), asked from the compiler's predefined macros."""
    command = [*words, "-dM", "-E", "-x", "c++", "/dev/null"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"C++ compiler {shlex.join(words)!r}{_origin()} cannot be started: {error}") from error
    macros = dict(line.split(" ", 2)[1:] for line in answer.stdout.splitlines() if line.count(" ") >= 2)
    for family, macro in (("clang", "__clang_major__"), ("gcc", "__GNUC__")):
        if macros.get(macro, "").isdigit():
            return family, int(macros[macro])
    raise ToolchainError(
        f"{shlex.join(words)!r}{_origin()} is not a g++ or clang++ (exit code {answer.returncode}: "
        f"{answer.stderr.strip()[:400]}); {_ADVICE}"
    )


def _remembered(identity: str) -> tuple[str, int] | None:
    try:
        with open(cache_dir() / "compilers.json", encoding="utf-8") as file:
            family, version = json.load(file)[identity]
            return str(family), int(version)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(identity: str, facts: tuple[str, int]) -> None:
    path = cache_dir() / "compilers.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            known = known if isinstance(known, dict) and len(known) < 64 else {}
        except (OSError, ValueError):
            known = {}
        known[identity] = facts
        scratch = path.with_name(f"{path.name}.{os.getpid()}")
        scratch.write_text(json.dumps(known), encoding="utf-8")
        os.replace(scratch, path)
    except OSError:
        pass  # only costs a question to the compiler next time


@lru_cache(maxsize=8)
def _resolve(words: tuple[str, ...], identity: str) -> HostCompiler:
    facts = _remembered(identity)
    if facts is None:
        facts = _ask(list(words))
        _remember(identity, facts)
    family, version = facts
    if version < _OLDEST[family]:
        raise ToolchainError(
            f"C++ compiler {shlex.join(words)!r}{_origin()} is {family} {version}, which is too old; {_ADVICE}"
        )
    return HostCompiler(words, family, version, f"{identity}\n{family} {version}")


def host_compiler() -> HostCompiler:
    """The host compiler, checked. ToolchainError says what is wrong with it and what to set."""
    words = host_command()
    return _resolve(tuple(words), _identity(words))


def _installed(name: str) -> HostCompiler | None:
    try:
        return _resolve((name,), _identity([name])) if shutil.which(name) else None
    except ToolchainError:  # of this name, but no compiler that works
        return None


def host_compiler_since(gcc: int, what: str, otherwise: str) -> HostCompiler:
    """The host compiler for `what`, which a g++ older than `gcc` does not compile; clang++ will do.

    Where the host compiler is older, the newest installed g++-N takes its place, unless SIMPLER_SIM_CXX names the old
    one. ToolchainError, with `otherwise` as what else could be done, if there is none.
    """
    compiler = host_compiler()
    if not compiler.is_gcc or compiler.version >= gcc:
        return compiler
    if not os.environ.get("SIMPLER_SIM_CXX"):
        for number in range(_NEWEST_GCC, gcc - 1, -1):
            newer = _installed(f"g++-{number}")
            if newer is not None and newer.is_gcc and newer.version >= gcc:
                return newer
    raise ToolchainError(
        f"{what} needs g++ {gcc} or newer, but {shlex.join(compiler.command)!r}{_origin()} is g++ {compiler.version}; "
        f"install g++-{gcc} (it is chosen by itself), set SIMPLER_SIM_CXX to a newer one, or {otherwise}"
    )
