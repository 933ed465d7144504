"""KernelCompiler: user sources to the binaries that the runtime loads.

On a simulator, and on a board that is emulated, a kernel or an orchestration becomes one shared object, built by the
host's compiler. On the board a kernel goes through the vendor's compiler and linker, an orchestration through the cross
compiler of the device's own processors; both are found through `ASCEND_HOME_PATH`. Results come from the compile cache
where possible.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import elf_parser, sanitizers
from .compile_cache import CompileCache, Product, Request, shared_cache
from .compile_pool import compile_slot
from .environment import PROJECT_ROOT, include_root
from .errors import CompileError, MissingSymbolError, SourceNotFoundError, ToolchainError, nearest, unknown_name
from .platforms import builds_for_host, check_runtime, parse_platform
from .pto_isa import bundled_pto_isa_root, explicit_pto_isa_root
from .toolchain import file_identity, host_compiler, host_compiler_since

KERNEL_ENTRY = "kernel_entry"
_FOREIGN_ISA_GCC = 13  # the vendor's tile library uses language features that g++ 12 lacks

#: core type -> (macro that kernels test, suffix of the vendor's arch name)
_CORES = {"aiv": ("__DAV_VEC__", "vec"), "aic": ("__DAV_CUBE__", "cube")}
_ARCH_MACRO = {"a2a3": "SIMPLER_ARCH_A2A3", "a5": "SIMPLER_ARCH_A5"}
_RUNTIME_MACRO = {
    "tensormap_and_ringbuffer": "SIMPLER_RUNTIME_STREAMING",
    "host_build_graph": "SIMPLER_RUNTIME_WHOLE_GRAPH",
}

_SIM_KERNEL = (
    "-shared -O2 -fPIC -std=c++2b -fvisibility-inlines-hidden"
    " -Wno-ignored-attributes -Wno-attributes -D__CPU_SIM -DPTO_CPU_MAX_THREADS=1 -DNDEBUG"
).split()
_GCC_KERNEL = ["-fpermissive", "-fno-gnu-unique"]
_CLANG_KERNEL = ["-Wno-macro-redefined"]  # g++ does not know it, and says so whenever it has something else to say
_ORCHESTRATION = "-shared -fPIC -O2 -std=c++17 -pthread".split()
# Task arguments hold the addresses of tensors. A tensor that leaves its block before the submit call is a common slip;
# without reuse of stack slots it still names the right memory, as it does under the compilers that users came from.
_GCC_ORCHESTRATION = ["-fno-gnu-unique", "-fstack-reuse=none"]
_CLANG_ORCHESTRATION = ["-Xclang", "-disable-lifetime-markers"]
_BUILD_ID = "-Wl,--build-id=sha1"  # the runtime recognises an orchestration that it already loaded by this id

_VENDOR_ARCH = {"a2a3": "dav-c220", "a5": "dav-c310"}
_VENDOR_KERNEL = (
    "-c -O3 -g -x cce -Wall -std=c++17 --cce-aicore-only -mllvm -cce-aicore-stack-size=0x8000"
    " -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-record-overflow=false"
    " -mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false -DMEMORY_BASE"
).split()
_VENDOR_A5 = ["-mllvm", "-cce-vf-aa-between-iters=true"]


_shown_commands: set[str] = set()  # a command is shown once per process, however often its result is used


class _Step(NamedTuple):
    """How one source is turned into one file."""

    label: str
    command: tuple[str, ...]
    compiler: str
    includes: tuple[str, ...]
    link: tuple[str, ...] = ()  # a second command over the object, if any
    entry: str | None = None  # symbol that the result must export


def _absolute(path: Any) -> Path:
    return Path(os.path.abspath(os.fspath(path)))


def describe_missing_symbol(binary: bytes, symbol: str, source: object = "<unknown source>") -> str:
    """The sentence for a shared object that does not export `symbol`: what it exports instead, and the likely cause."""
    try:
        names = elf_parser.exported_symbols(binary)
    except ValueError as error:
        return f"{source}: cannot look for {symbol!r}: {error}"
    mangled = [name for name in names if name.startswith("_Z") and f"{len(symbol)}{symbol}" in name]
    text = f"{source} exports no {symbol!r}"
    if mangled:
        return f'{text}, but the C++ function {mangled[0]!r}: declare it extern "C"'
    plain = [name for name in names if not name.startswith("_")]
    guess = nearest(symbol, plain)
    if guess:
        return f"{text}; did you mean {guess!r}?"
    return f"{text}; it exports {', '.join(plain[:8]) if plain else 'nothing'}"


class KernelCompiler:
    """Compiles for one platform. Cheap to make; safe to use from several threads.

    ValueError for an unknown platform. For a board: OSError without `ASCEND_HOME_PATH`, FileNotFoundError when the
    vendor's compilers are not below it.
    """

    #: Comma list of sanitizers for everything that the host's compiler builds; "" for none.
    _sanitizers: str = ""
    #: Whether the tile instructions of kernels for a simulator check their operands.
    _tile_checks: bool = True
    #: Which commands go to stderr: "" none, "run" those that are run, "all" also those whose result is in the cache.
    _shown: str = ""

    def __init__(self, platform: str = "a2a3", *, cache: CompileCache | None = None):
        self.arch, self.variant = parse_platform(platform)
        self.platform = platform
        self.project_root = PROJECT_ROOT
        self._cache = cache or shared_cache
        #: Whether the host's compiler makes everything, as for a simulator, and for a board that is emulated.
        self.builds_for_host = builds_for_host(platform)
        self._vendor = {} if self.builds_for_host else self._find_vendor_tools()

    # -- include folders ------------------------------------------------------------------------------------------

    def get_platform_include_dirs(self) -> list[str]:
        """Headers about the platform; the same folder serves every platform."""
        return [str(include_root() / "kernel")]

    def get_incore_include_dirs(self) -> list[str]:
        """What kernels see besides the tile library."""
        return [str(include_root() / "kernel")]

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        """What orchestrations of a runtime see."""
        check_runtime(runtime_name)
        return [str(include_root() / "orchestration"), str(include_root() / "kernel"), str(include_root())]

    def get_orchestration_cache_inputs(self, runtime_name: str) -> tuple[list[str], list[str]]:
        """(include folders, extra sources) of an orchestration build; there are no extra sources."""
        return self.get_orchestration_include_dirs(runtime_name), []

    # -- compiling ------------------------------------------------------------------------------------------------

    def compile_incore(
        self,
        source_path: object,
        core_type: str = "aiv",
        pto_isa_root: object | None = None,
        extra_include_dirs: Sequence[object] | None = None,
        build_dir: object | None = None,
    ) -> bytes:
        """The binary of one kernel: a shared object on a simulator, a linked ELF file on the board.

        `pto_isa_root` (or `PTO_ISA_ROOT`) replaces the bundled tile library by the one below that folder; a board needs
        one. With
        `build_dir` the file is also left there. Raises SourceNotFoundError, CompileError (with the compiler's own
        message and the command), MissingSymbolError when there is no kernel_entry.
        """
        if core_type not in _CORES:
            raise ValueError(unknown_name("core_type", core_type, _CORES))
        source = self._source(source_path, "kernel")
        step = (self._sim_kernel if self.builds_for_host else self._vendor_kernel)(core_type, pto_isa_root)
        return self._compile(source, step, extra_include_dirs, build_dir, f"{source.stem}.{core_type}")

    def compile_orchestration(
        self,
        runtime_name: str,
        source_path: object,
        extra_include_dirs: Sequence[object] | None = None,
        build_dir: object | None = None,
    ) -> bytes:
        """The shared object of one orchestration for a runtime. Raises as compile_incore does.

        Which function of it is the entry is known only to the ChipCallable, so it is checked when that is registered.
        """
        check_runtime(runtime_name)
        source = self._source(source_path, "orchestration")
        step = self._orchestration(runtime_name)
        return self._compile(source, step, extra_include_dirs, build_dir, f"{source.stem}.{runtime_name}")

    def incore_compile_cache_token(self, core_type: str) -> str:
        """Text that differs whenever kernels of this type may compile differently."""
        step = (self._sim_kernel if self.builds_for_host else self._vendor_kernel)(core_type, None)
        return "\0".join([step.compiler, *step.command, *step.includes])

    def compile_cache_token(self, runtime: str, core_types: Sequence[str]) -> str:
        """Text that differs whenever a program of these core types may compile differently."""
        step = self._orchestration(runtime)
        tokens = ["\0".join([step.compiler, *step.command, *step.includes])]
        return "\0\0".join(tokens + [self.incore_compile_cache_token(name) for name in sorted(set(core_types))])

    # -- commands -------------------------------------------------------------------------------------------------

    def _isa_includes(self, pto_isa_root: object | None) -> tuple[list[str], bool]:
        """(include folders of the tile library, whether it is a foreign one)."""
        root = _absolute(pto_isa_root) if pto_isa_root else explicit_pto_isa_root()
        if root is None or root == bundled_pto_isa_root():
            return [str(include_root()), str(include_root() / "pto")], False
        if not (root / "include").is_dir():
            raise FileNotFoundError(f"tile library {root} has no include folder")
        return [str(root / "include"), str(root / "include" / "pto")], True

    def _sim_kernel(self, core_type: str, pto_isa_root: object | None) -> _Step:
        isa, foreign = self._isa_includes(pto_isa_root)
        compiler = host_compiler()
        if foreign:
            library = f"the tile library at {Path(isa[0]).parent}"
            compiler = host_compiler_since(_FOREIGN_ISA_GCC, library, "unset PTO_ISA_ROOT to use the bundled library")
        command = [
            *compiler.command,
            *_SIM_KERNEL,
            *(_GCC_KERNEL if compiler.is_gcc else _CLANG_KERNEL),
            f"-D{_CORES[core_type][0]}",
            f"-D{_ARCH_MACRO[self.arch]}=1",
            f"-DSIMPLER_TILE_CHECKS={int(self._tile_checks)}",
            *(["-DSIMPLER_TILE_HOSTED=1"] if self.variant == "sim" else []),  # an emulated board gives no hooks
            *sanitizers.compile_flags(self._sanitizers),
        ]
        includes = (*isa, *self.get_incore_include_dirs())
        return _Step("kernel", tuple(command), compiler.identity, includes, entry=KERNEL_ENTRY)

    def _vendor_kernel(self, core_type: str, pto_isa_root: object | None) -> _Step:
        isa, foreign = self._isa_includes(pto_isa_root)
        if not foreign:
            raise ValueError(
                f"kernels for {self.platform} need the vendor's tile library, the bundled one is for simulators: pass "
                "pto_isa_root, or set PTO_ISA_ROOT, to a folder that has include/pto"
            )
        command = [
            self._vendor["ccec"],
            *_VENDOR_KERNEL,
            *(_VENDOR_A5 if self.arch == "a5" else []),
            f"--cce-aicore-arch={_VENDOR_ARCH[self.arch]}-{_CORES[core_type][1]}",
            f"-D{_ARCH_MACRO[self.arch]}=1",
        ]
        return _Step(
            "kernel",
            tuple(command),
            file_identity(self._vendor["ccec"]) + "\n" + file_identity(self._vendor["ld.lld"]),
            (*isa, *self.get_incore_include_dirs()),
            link=(self._vendor["ld.lld"], "-e", KERNEL_ENTRY),
        )

    def _orchestration(self, runtime_name: str) -> _Step:
        defines = [f"-D{_ARCH_MACRO[self.arch]}=1", f"-D{_RUNTIME_MACRO[check_runtime(runtime_name)]}=1"]
        includes = tuple(self.get_orchestration_include_dirs(runtime_name))
        if not self.builds_for_host and runtime_name != "host_build_graph":  # runs on the device's own processors
            cross = self._vendor["aarch64-g++"]
            command = [cross, *_ORCHESTRATION, *_GCC_ORCHESTRATION, _BUILD_ID, *defines]
            return _Step("orchestration", tuple(command), file_identity(cross), includes)
        compiler = host_compiler()
        command = [
            *compiler.command,
            *_ORCHESTRATION,
            *(_GCC_ORCHESTRATION if compiler.is_gcc else _CLANG_ORCHESTRATION),
            _BUILD_ID,
            *defines,
            *sanitizers.compile_flags(self._sanitizers),
        ]
        return _Step("orchestration", tuple(command), compiler.identity, includes)

    def _find_vendor_tools(self) -> dict:
        home = os.environ.get("ASCEND_HOME_PATH")
        if not home:
            raise OSError(
                f"platform {self.platform!r} needs the CANN toolkit: set ASCEND_HOME_PATH to its folder, or use "
                f"{self.arch}sim"
            )
        places = {
            "ccec": ["compiler/ccec_compiler/bin/ccec", "bin/ccec"],
            "ld.lld": ["compiler/ccec_compiler/bin/ld.lld", "bin/ld.lld"],
            "aarch64-g++": ["tools/hcc/bin/aarch64-target-linux-gnu-g++"],
        }
        found = {}
        for tool, candidates in places.items():
            paths = [os.path.join(home, candidate) for candidate in candidates]
            path = next((p for p in paths if os.access(p, os.X_OK)), None)
            path = path or (shutil.which(tool) if tool != "aarch64-g++" else None)
            if path is None:
                raise FileNotFoundError(
                    f"{tool} of the CANN toolkit was not found; looked at {', '.join(paths)} (ASCEND_HOME_PATH={home})"
                )
            found[tool] = path
        return found

    # -- running --------------------------------------------------------------------------------------------------

    @staticmethod
    def _source(path: object, what: str) -> Path:
        source = _absolute(path)
        if not source.is_file():
            names = [entry.name for entry in source.parent.iterdir()] if source.parent.is_dir() else []
            guess = nearest(source.name, names)
            hint = f"; did you mean {guess!r}?" if guess else "" if names else f"; there is no folder {source.parent}"
            raise SourceNotFoundError(f"{what} source {source} does not exist{hint}")
        return source

    def _compile(
        self, source: Path, step: _Step, extra: Sequence[object] | None, build_dir: object | None, name: str
    ) -> bytes:
        folders = [*step.includes, *(str(_absolute(folder)) for folder in extra or ())]
        includes = tuple(dict.fromkeys(folders))  # a compiler, too, takes the first of two equal ones
        request = Request(source, (*step.command, *step.link), includes, step.compiler)
        ran: list[bool] = []

        def build() -> Product:
            ran.append(True)
            self._show("+", step, source, includes)
            return self._run(source, step, includes)

        data = self._cache.get_or_build(request, build)
        if not ran and self._shown == "all":
            self._show("# in the cache:", step, source, includes)
        if build_dir is not None:
            target = _absolute(build_dir)
            target.mkdir(parents=True, exist_ok=True)
            (target / f"{name}.so").write_bytes(data)
        return data

    def _run(self, source: Path, step: _Step, includes: Sequence[str]) -> Product:
        with tempfile.TemporaryDirectory(prefix="simpler-compile-") as folder, compile_slot():
            output, depfile = os.path.join(folder, "out"), os.path.join(folder, "deps")
            command = [*step.command, *(f"-I{i}" for i in includes), "-o", output, str(source)]
            self._call(step, source, command, ["-MMD", "-MF", depfile], output)
            if step.link:
                linked = os.path.join(folder, "linked")
                self._call(step, source, [*step.link, "-o", linked, output], [], linked)
                output = linked
            data = Path(output).read_bytes()
            dependencies = _parse_depfile(depfile, source)
        if step.entry:
            self._check_entry(data, step.entry, source)
        return Product(data, dependencies)

    def _show(self, mark: str, step: _Step, source: Path, includes: Sequence[str]) -> None:
        if not self._shown:
            return
        words = [*step.command, *(f"-I{i}" for i in includes), "-o", f"/tmp/{source.stem}.so", str(source)]
        command = shlex.join(words)
        if command not in _shown_commands:
            _shown_commands.add(command)
            sys.stderr.write(f"{mark} {command}\n")

    @staticmethod
    def _call(step: _Step, source: Path, command: list[str], hidden: list[str], output: str) -> None:
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                [*command, *hidden], capture_output=True, text=True, errors="replace", env=environment, check=False
            )
        except OSError as error:
            raise ToolchainError(f"compiler {command[0]!r} cannot be started: {error}") from error
        if done.returncode == 0:
            return
        again = [f"/tmp/{source.stem}.so" if word == output else word for word in command]
        text = (done.stderr + done.stdout).strip() or "(the compiler said nothing)"
        raise CompileError(
            f"{step.label} {source} does not compile (exit code {done.returncode}):\n{text}\n"
            f"source:  {source}\ncommand: {shlex.join(again)}",
            source=str(source),
            command=again,
            output=text,
            returncode=done.returncode,
        )

    @staticmethod
    def _check_entry(data: bytes, entry: str, source: Path) -> None:
        if entry in elf_parser.exported_symbols(data):
            return
        raise MissingSymbolError(
            f'kernel {describe_missing_symbol(data, entry, source)} (a kernel defines extern "C" __aicore__ void '
            f"{entry}(__gm__ int64_t* args))",
            source=str(source),
        )


def _parse_depfile(path: str, source: Path) -> list[str]:
    """Absolute paths in a make rule written by -MMD, without the source itself."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    words: list[str] = []
    word = ""
    body = text[text.index(":") + 1 :].replace("\\\n", " ")
    index = 0
    while index < len(body):
        char = body[index]
        if char == "\\" and index + 1 < len(body) and body[index + 1] in " #\\":
            word += body[index + 1]
            index += 1
        elif char == "$" and body[index + 1 : index + 2] == "$":
            word += "$"
            index += 1
        elif char.isspace():
            words.append(word)
            word = ""
        else:
            word += char
        index += 1
    words.append(word)
    # Lexically normalised: "kernels/../kit.h" is a kept file name too, but links must not be resolved.
    paths = dict.fromkeys(os.path.abspath(w) for w in words if w)
    paths.pop(str(source), None)
    return list(paths)
