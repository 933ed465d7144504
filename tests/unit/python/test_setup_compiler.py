"""KernelCompiler with the host's compiler, with stand-ins for compilers that are too old, wrong or the vendor's."""

import ctypes
import os
import shutil
import stat
import subprocess
import textwrap

import pytest
from simpler_setup import environment, kernel_compiler, toolchain
from simpler_setup.compile_cache import CompileCache
from simpler_setup.compile_pool import compile_worker_budget, current_compile_workers, run_all
from simpler_setup.elf_parser import exported_symbols
from simpler_setup.errors import CompileError, MissingSymbolError, SourceNotFoundError, ToolchainError
from simpler_setup.kernel_compiler import KernelCompiler, describe_missing_symbol

KERNEL = 'extern "C" void kernel_entry(long* args) { args[0] = VALUE; }\n'
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Caches of the test alone; no compiler from the caller's environment."""
    monkeypatch.setenv("SIMPLER_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CXX", "SIMPLER_SIM_CXX", "PTO_ISA_ROOT", "ASCEND_HOME_PATH", "SIMPLER_EMULATED_VENDOR"):
        monkeypatch.delenv(name, raising=False)
    toolchain._resolve.cache_clear()
    yield
    toolchain._resolve.cache_clear()


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write_file


@pytest.fixture
def script(tmp_path):
    """An executable shell script."""

    def write_script(name, body):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + textwrap.dedent(body))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return write_script


def compiler(platform="a2a3sim"):
    return KernelCompiler(platform, cache=CompileCache())


def call(binary, tmp_path):
    path = tmp_path / f"loaded{len(list(tmp_path.glob('loaded*')))}.so"  # a mapped file must not be overwritten
    path.write_bytes(binary)
    words = (ctypes.c_long * 4)()
    ctypes.CDLL(str(path)).kernel_entry(words)
    return words[0]


# -- what a compile sees --------------------------------------------------------------------------------------------


@needs_gxx
@pytest.mark.parametrize(
    "platform, core_type, value",
    [("a2a3sim", "aiv", 11), ("a2a3sim", "aic", 21), ("a5sim", "aiv", 12), ("a5sim", "aic", 22)],
)
def test_a_kernel_knows_its_core_and_arch(write, tmp_path, platform, core_type, value):
    source = write(
        "k.cpp",
        """
        #ifdef __DAV_VEC__
        #define CORE 10
        #elif defined(__DAV_CUBE__)
        #define CORE 20
        #endif
        #if SIMPLER_ARCH_A2A3
        #define ARCH 1
        #elif SIMPLER_ARCH_A5
        #define ARCH 2
        #endif
        #if !defined(__CPU_SIM) || !defined(NDEBUG) || PTO_CPU_MAX_THREADS != 1
        #error
        #endif
        extern "C" void kernel_entry(long* args) { args[0] = CORE + ARCH; }
        """,
    )
    assert call(compiler(platform).compile_incore(source, core_type), tmp_path) == value


@needs_gxx
@pytest.mark.parametrize("runtime, value", [("tensormap_and_ringbuffer", 1), ("host_build_graph", 2)])
def test_an_orchestration_knows_its_runtime(write, tmp_path, runtime, value):
    source = write(
        "o.cpp",
        """
        #if SIMPLER_RUNTIME_STREAMING
        #define VALUE 1
        #elif SIMPLER_RUNTIME_WHOLE_GRAPH
        #define VALUE 2
        #endif
        extern "C" void kernel_entry(long* args) { args[0] = VALUE; }
        """,
    )
    assert call(compiler().compile_orchestration(runtime, source), tmp_path) == value


def test_kernels_leave_out_what_only_a_simulator_brings_along(monkeypatch):
    assert "-DSIMPLER_TILE_HOSTED=1" in compiler().incore_compile_cache_token("aiv")
    monkeypatch.setattr(kernel_compiler, "builds_for_host", lambda platform: True)  # as an emulated board does
    assert "SIMPLER_TILE_HOSTED" not in compiler("a2a3").incore_compile_cache_token("aiv")


@needs_gxx
def test_include_folders_come_in_their_order(write, tmp_path):
    source = write("k.cpp", f'#include "simpler_probe.h"\n{KERNEL}')
    first, second = write("one/simpler_probe.h", "#define VALUE 1"), write("two/simpler_probe.h", "#define VALUE 2")
    for order, value in (((first, second), 1), ((second, first), 2)):
        folders = [path.parent for path in order]
        assert call(compiler().compile_incore(source, extra_include_dirs=folders), tmp_path) == value


def test_include_folders_of_the_project():
    c, root = compiler(), str(environment.include_root())
    assert c.get_orchestration_include_dirs("host_build_graph") == [f"{root}/orchestration", f"{root}/kernel", root]
    assert c.get_incore_include_dirs() == c.get_platform_include_dirs() == [f"{root}/kernel"]
    assert c.get_orchestration_cache_inputs("host_build_graph")[1] == []


@needs_gxx
def test_a_build_folder_keeps_the_result(write, tmp_path):
    source = write("k.cpp", "#define VALUE 3\n" + KERNEL)
    data = compiler().compile_incore(source, "aiv", build_dir=tmp_path / "build")
    assert (tmp_path / "build" / "k.aiv.so").read_bytes() == data


@needs_gxx
def test_sanitizers_apply_to_what_is_compiled(write, monkeypatch):
    source = write("k.cpp", "#define VALUE 3\n" + KERNEL)
    plain = compiler().compile_incore(source)
    monkeypatch.setattr(KernelCompiler, "_sanitizers", "undefined")
    assert compiler().compile_incore(source) != plain


@needs_gxx
def test_cache_tokens_tell_builds_apart():
    c = compiler()
    assert c.incore_compile_cache_token("aiv") != c.incore_compile_cache_token("aic")
    assert c.compile_cache_token("host_build_graph", ["aiv"]) != c.compile_cache_token("host_build_graph", ["aic"])


@needs_gxx
def test_a_header_edit_is_noticed_through_the_compilers_own_dependencies(write, tmp_path):
    header = write("deep dir/value.h", "#define VALUE 5")
    source = write("k.cpp", f'#include "deep dir/value.h"\n{KERNEL}')
    cache = CompileCache()
    c = KernelCompiler("a2a3sim", cache=cache)
    assert call(c.compile_incore(source), tmp_path) == 5
    header.write_text("#define VALUE 6")
    assert call(c.compile_incore(source), tmp_path) == 6
    assert call(c.compile_incore(source), tmp_path) == 6 and cache.counters.compiles == 2


# -- errors ---------------------------------------------------------------------------------------------------------


@needs_gxx
def test_a_compile_error_has_message_source_and_command(write):
    source = write("bad.cpp", 'extern "C" void kernel_entry(long*) { undeclared_thing(); }')
    with pytest.raises(CompileError) as caught:
        compiler().compile_incore(source)
    text = str(caught.value)
    assert "undeclared_thing" in text and f"source:  {source}" in text and isinstance(caught.value, RuntimeError)
    (command,) = (line for line in text.splitlines() if line.startswith("command: "))
    again = subprocess.run(command[9:], shell=True, capture_output=True, text=True, check=False)
    assert again.returncode == caught.value.returncode and "undeclared_thing" in again.stderr


def test_a_missing_source_is_named():
    with pytest.raises(SourceNotFoundError, match="kernel source /no/such.cpp") as caught:
        compiler().compile_incore("/no/such.cpp")
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(FileNotFoundError, match="orchestration source"):
        compiler().compile_orchestration("host_build_graph", "/no/such.cpp")


def test_wrong_names_are_refused_before_anything_runs(write):
    source = write("k.cpp", "")
    with pytest.raises(ValueError, match="core_type 'avi'.*Did you mean 'aiv'"):
        compiler().compile_incore(source, "avi")
    with pytest.raises(ValueError, match="runtime 'ringbuffer'"):
        compiler().compile_orchestration("ringbuffer", source)
    with pytest.raises(ValueError, match="platform 'a7'"):
        KernelCompiler("a7")


@needs_gxx
@pytest.mark.parametrize(
    "code, hint",
    [
        ("void kernel_entry(long*) {}", 'declare it extern "C"'),
        ('extern "C" void kernel_entri(long*) {}', "did you mean 'kernel_entri'"),
        ('extern "C" void work(long*) {}', "it exports work"),
        ("", "it exports nothing"),
    ],
)
def test_a_kernel_without_entry_says_what_it_has_instead(write, code, hint):
    source = write("k.cpp", code)
    with pytest.raises(MissingSymbolError) as caught:
        compiler().compile_incore(source)
    assert "kernel_entry" in str(caught.value) and str(source) in str(caught.value) and hint in str(caught.value)


@needs_gxx
def test_an_orchestration_may_have_any_entry(write):
    source = write("o.cpp", 'extern "C" void my_entry() {}')
    data = compiler().compile_orchestration("host_build_graph", source)
    assert "my_entry" in exported_symbols(data)
    assert "did you mean 'my_entry'" in describe_missing_symbol(data, "my_entri", source)


# -- the host's compiler --------------------------------------------------------------------------------------------


def test_a_missing_compiler_says_what_to_set(monkeypatch, write):
    monkeypatch.setenv("SIMPLER_SIM_CXX", "no-such-compiler-anywhere")
    with pytest.raises(ToolchainError, match="no-such-compiler-anywhere.*from SIMPLER_SIM_CXX.*not found"):
        compiler().compile_incore(write("k.cpp", ""))


def test_something_that_is_no_compiler(monkeypatch, script):
    monkeypatch.setenv("CXX", script("fake", "echo hello"))
    with pytest.raises(ToolchainError, match="from CXX.*is not a g\\+\\+ or clang"):
        toolchain.host_compiler()


@pytest.mark.parametrize("macros, name", [("__GNUC__ 11", "gcc 11"), ("__clang_major__ 15", "clang 15")])
def test_a_compiler_that_is_too_old(monkeypatch, script, macros, name):
    monkeypatch.setenv(
        "SIMPLER_SIM_CXX",
        script(
            "old",
            f"echo '#define {macros}'; echo '#define __GNUC__ 4'" if "clang" in macros else f"echo '#define {macros}'",
        ),
    )
    with pytest.raises(ToolchainError, match=f"{name}, which is too old"):
        toolchain.host_compiler()


@needs_gxx
def test_a_warm_run_starts_no_compiler(monkeypatch, script, write, tmp_path):
    log = tmp_path / "calls"
    monkeypatch.setenv("SIMPLER_SIM_CXX", script("counting", f'echo x >> {log}; exec g++ "$@"'))
    source = write("k.cpp", "#define VALUE 9\n" + KERNEL)
    first = compiler().compile_incore(source)
    assert log.read_text().count("x") == 2  # its version once, and the compile
    toolchain._resolve.cache_clear()  # as in a new process
    assert compiler().compile_incore(source) == first and log.read_text().count("x") == 2


@needs_gxx
def test_words_after_the_compilers_name_are_kept(monkeypatch, write, tmp_path):
    monkeypatch.setenv("CXX", "g++ -DVALUE=7")
    assert call(compiler().compile_incore(write("k.cpp", KERNEL)), tmp_path) == 7


@pytest.mark.skipif(shutil.which("clang++-16") is None, reason="needs clang++-16")
def test_clang_works_as_well(monkeypatch, write, tmp_path):
    monkeypatch.setenv("SIMPLER_SIM_CXX", "clang++-16")
    source = write("k.cpp", "#define VALUE 4\n" + KERNEL)
    assert call(compiler().compile_incore(source), tmp_path) == 4
    assert toolchain.host_compiler().family == "clang"


def test_a_foreign_tile_library_needs_a_newer_gxx(monkeypatch, script, write, tmp_path):
    (tmp_path / "isa" / "include").mkdir(parents=True)
    monkeypatch.setenv("SIMPLER_SIM_CXX", script("gxx12", "echo '#define __GNUC__ 12'"))
    source = write("k.cpp", "")
    with pytest.raises(ToolchainError, match="needs g\\+\\+ 13 or newer.*is g\\+\\+ 12"):
        compiler().compile_incore(source, pto_isa_root=tmp_path / "isa")
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path / "isa"))
    with pytest.raises(ToolchainError, match="unset PTO_ISA_ROOT"):
        compiler().compile_incore(source)


@needs_gxx
def test_a_foreign_tile_library_is_compiled_by_the_newest_gxx_there_is(monkeypatch, script, write, tmp_path):
    real = shutil.which("g++")

    def gxx(name, version):  # one that says it has this version
        script(
            f"bin/{name}",
            f"""\
            case "$*" in
              *-dM*) echo "#define __GNUC__ {version}" ;;
              *) exec {real} -DVALUE={version} "$@" ;;
            esac""",
        )

    gxx("g++", 12)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CXX", "g++")
    write("isa/include/pto/pto-inst.hpp", "")
    source = write("k.cpp", f"#include <pto/pto-inst.hpp>\n{KERNEL}")
    for name, version in (("g++-27", 27), ("g++-29", 29)):
        gxx(name, version)
        toolchain._resolve.cache_clear()
        assert call(compiler().compile_incore(source, pto_isa_root=tmp_path / "isa"), tmp_path) == version
    script("bin/g++-30", "exit 1")  # broken: passed over
    gxx("g++-29", 12)  # not what its name says
    assert call(compiler().compile_incore(source, pto_isa_root=tmp_path / "isa"), tmp_path) == 27
    assert call(compiler().compile_incore(source), tmp_path) == 12, "the bundled library goes to the host compiler"
    monkeypatch.setenv("SIMPLER_SIM_CXX", "g++")
    with pytest.raises(ToolchainError, match="'g\\+\\+' \\(from SIMPLER_SIM_CXX\\) is g\\+\\+ 12; install g\\+\\+-13"):
        compiler().compile_incore(source, pto_isa_root=tmp_path / "isa")


@pytest.mark.skipif(shutil.which("clang++-16") is None, reason="needs clang++-16")
def test_a_foreign_tile_library_replaces_the_bundled_one(monkeypatch, write, tmp_path):
    monkeypatch.setenv("SIMPLER_SIM_CXX", "clang++-16")
    write("isa/include/pto/pto-inst.hpp", "#define VALUE 8")
    source = write("k.cpp", f"#include <pto/pto-inst.hpp>\n{KERNEL}")
    assert call(compiler().compile_incore(source, pto_isa_root=tmp_path / "isa"), tmp_path) == 8


# -- the board ------------------------------------------------------------------------------------------------------


def test_the_board_needs_the_toolkit(monkeypatch, tmp_path):
    with pytest.raises(OSError, match="ASCEND_HOME_PATH"):
        KernelCompiler("a2a3")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="ccec"):
        KernelCompiler("a2a3")


@pytest.fixture
def toolkit(monkeypatch, script, tmp_path):
    """A toolkit whose compiler writes its arguments into the object and whose linker copies it."""
    remember = 'all="$*"; while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2"; shift; done; echo "$all" > "$out"'
    script("cann/bin/ccec", remember)
    script("cann/bin/ld.lld", 'cp "$5" "$4"; echo "linked $1 $2" >> "$4"')
    script("cann/tools/hcc/bin/aarch64-target-linux-gnu-g++", remember)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "cann"))


@pytest.fixture
def vendor_isa(monkeypatch, tmp_path):
    (tmp_path / "isa/include/pto").mkdir(parents=True)
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path / "isa"))
    return tmp_path / "isa"


VENDOR_COMMAND = """-c -O3 -g -x cce -Wall -std=c++17 --cce-aicore-only -mllvm -cce-aicore-stack-size=0x8000
 -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-record-overflow=false
 -mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false
 -DMEMORY_BASE{more} --cce-aicore-arch=dav-{arch} -D{macro}=1
 -I{isa}/include -I{isa}/include/pto -I{headers}/kernel -I{extra} -o"""


@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize(
    "platform, core, arch, macro, more",
    [
        ("a2a3", "aic", "c220-cube", "SIMPLER_ARCH_A2A3", ""),
        ("a2a3", "aiv", "c220-vec", "SIMPLER_ARCH_A2A3", ""),
        ("a5", "aic", "c310-cube", "SIMPLER_ARCH_A5", " -mllvm -cce-vf-aa-between-iters=true"),
        ("a5", "aiv", "c310-vec", "SIMPLER_ARCH_A5", " -mllvm -cce-vf-aa-between-iters=true"),
    ],
)
def test_a_board_kernel_is_compiled_and_linked(write, vendor_isa, tmp_path, platform, core, arch, macro, more):
    source = write("k.cpp", "")
    text = compiler(platform).compile_incore(source, core, extra_include_dirs=[tmp_path]).decode()
    headers = environment.include_root()
    wanted = VENDOR_COMMAND.format(more=more, arch=arch, macro=macro, isa=vendor_isa, headers=headers, extra=tmp_path)
    assert text.startswith(wanted.replace("\n", "") + " "), text
    assert f" {source} -MMD -MF " in text and text.endswith("linked -e kernel_entry\n"), text


@pytest.mark.usefixtures("toolkit")
def test_a_board_kernel_needs_the_vendors_tile_library(write):
    with pytest.raises(ValueError, match="set PTO_ISA_ROOT"):
        compiler("a2a3").compile_incore(write("k.cpp", ""))


@pytest.mark.usefixtures("toolkit", "vendor_isa")
def test_a_board_compiler_that_fails_is_quoted(script, write):
    script("cann/bin/ccec", "echo 'error: no such instruction' >&2; exit 3")
    with pytest.raises(CompileError, match=r"exit code 3(?s:.*)no such instruction(?s:.*)--cce-aicore-only"):
        compiler("a5").compile_incore(write("k.cpp", ""))


@pytest.mark.usefixtures("toolkit")
def test_a_board_orchestration_goes_through_the_cross_compiler(write):
    source = write("o.cpp", "")
    text = compiler("a2a3").compile_orchestration("tensormap_and_ringbuffer", source).decode()
    root = environment.include_root()
    assert text.startswith(
        "-shared -fPIC -O2 -std=c++17 -pthread -fno-gnu-unique -fstack-reuse=none -Wl,--build-id=sha1 "
        f"-DSIMPLER_ARCH_A2A3=1 -DSIMPLER_RUNTIME_STREAMING=1 -I{root}/orchestration -I{root}/kernel -I{root} -o "
    ), text
    assert f" {source} -MMD -MF " in text


@needs_gxx
@pytest.mark.usefixtures("toolkit")
def test_a_host_built_orchestration_goes_through_the_hosts_compiler(write):
    source = write("o.cpp", 'extern "C" int runs_here() { return 1; }')
    assert "runs_here" in exported_symbols(compiler("a2a3").compile_orchestration("host_build_graph", source))


@needs_gxx
def test_an_emulated_board_needs_no_toolkit(monkeypatch, write, tmp_path):
    monkeypatch.setenv("SIMPLER_EMULATED_VENDOR", str(tmp_path))
    source = write("k.cpp", "#ifdef __CPU_SIM\n#define VALUE 6\n#endif\n" + KERNEL)
    assert call(compiler("a2a3").compile_incore(source), tmp_path) == 6


# -- parallel compiles ----------------------------------------------------------------------------------------------


def test_jobs_keep_their_order_and_the_first_failure_is_raised():
    assert run_all([lambda i=i: i * i for i in range(9)]) == [i * i for i in range(9)]
    done = []

    def fail(i):
        done.append(i)
        raise ValueError(f"job {i}")

    with pytest.raises(ValueError, match="job 0"):
        run_all([lambda i=i: fail(i) for i in range(5)])
    assert sorted(done) == list(range(5))


def test_the_compile_budget(monkeypatch):
    cpus = len(os.sched_getaffinity(0))
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    assert current_compile_workers() == max(1, min(16, cpus))
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(cpus * 2))
    assert current_compile_workers() == 1
    with compile_worker_budget(3):
        assert current_compile_workers() == 3
    with pytest.raises(ValueError, match="at least 1"), compile_worker_budget(0):
        pass
