"""Programs of the older interface run unchanged, and every name of the interface compiles."""

import itertools
import shutil
import subprocess

import numpy as np
import pytest
from failures_kit import PROGRAMS, program
from simpler import errors
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
from simpler_setup.environment import include_root
from simpler_setup.kernel_compiler import _SIM_KERNEL

PLATFORMS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class OlderProgram(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "programs/older_orch.cpp",
            "function_name": "aicpu_orchestration_entry",
            "config_name": "aicpu_orchestration_config",
            "signature": [D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "scale_add",
                "source": "programs/older_kernel.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "eight_by_64", "platforms": PLATFORMS, "params": {"rows": 8}},
        {"name": "many", "platforms": PLATFORMS, "params": {"rows": 1000}},
    ]
    RTOL = ATOL = 1e-5

    def generate_args(self, params):
        random = np.random.default_rng(7)
        a, b = (random.standard_normal((params["rows"], 64), dtype=np.float32) for _ in range(2))
        return TaskArgsBuilder(
            TensorArg("a", a), TensorArg("b", b), TensorArg("out", np.zeros_like(a)), Scalar("scale", 0.5)
        )

    def compute_golden(self, args, params):
        half = np.float32(0.5)
        args.out[:] = (args.a * half + args.b) * half + args.b
        top = params["rows"] // 2
        args.out[:top] = args.out[:top] * half + args.b[:top]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_program_of_the_older_interface_runs(platform):
    from simpler.worker import Worker

    chip = OlderProgram.compile_chip_callable(platform)
    with Worker(level=2, platform=platform, runtime="tensormap_and_ringbuffer", sim_threads=2) as worker:
        worker.init()
        OlderProgram._st_l2_handle = worker.register(chip)
        try:
            for case in OlderProgram.CASES:
                OlderProgram()._run_and_validate_l2(worker, chip, case)
        finally:
            OlderProgram._st_l2_handle = None


# ---- names ----

COMPILERS = [name for name in ("g++", "clang++-16", "clang++") if shutil.which(name)][:2]
COMPILERS += [name for name in ("aarch64-linux-gnu-g++",) if shutil.which(name)]  # the board's own processors
ARCHES = {"a2a3": "-DSIMPLER_ARCH_A2A3=1", "a5": "-DSIMPLER_ARCH_A5=1"}
RUNTIMES = {"streaming": "-DSIMPLER_RUNTIME_STREAMING=1", "whole_graph": "-DSIMPLER_RUNTIME_WHOLE_GRAPH=1"}
STRICT = ["-Wall", "-Wextra", "-Werror"]


def compile_only(command, source=None):
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]


FOLDERS = [f"-I{include_root() / name}" for name in ("orchestration", "kernel", "", "pto")]
HEADERS = sorted(
    path.relative_to(folder).as_posix()
    for folder in (include_root() / "orchestration", include_root() / "kernel")
    for path in folder.rglob("*.h")
) + ["pto/pto-inst.hpp", "pto/comm/comm_types.hpp", "pto/comm/pto_comm_inst.hpp"]
# By its nature it uses names of whoever includes it.
BEFORE = {"pipe_sync.h": "#include <pto/pto-inst.hpp>\n"}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_header_compiles_alone(compiler):
    assert len(HEADERS) > 30
    kinds = itertools.cycle(itertools.product(ARCHES.values(), RUNTIMES.values(), ("__DAV_VEC__", "__DAV_CUBE__")))
    for header, (arch, runtime, core) in zip(HEADERS, kinds):
        command = [compiler, "-x", "c++", "-", "-fsyntax-only", "-std=c++17", *STRICT, "-Wno-unused-function"]
        command += ["-D__CPU_SIM", f"-D{core}", arch, runtime, *FOLDERS]
        compile_only(command, f'{BEFORE.get(header, "")}#include "{header}"\n#include "{header}"\n')


OWN_COUNTER = """
static uint64_t get_sys_cnt_aicpu() { return 17; }
#define PLATFORM_PROF_SYS_CNT_FREQ 1000
uint64_t used() { return get_sys_cnt_aicpu() + PLATFORM_PROF_SYS_CNT_FREQ; }
"""
USES_MEMORY = "void copy(void* to, void* from, size_t bytes) { memset(memcpy(to, from, bytes), 0, 4); }\n"


@pytest.mark.parametrize(
    "headers, more",
    [
        (("runtime.h", "pto_orchestration_api.h"), ""),
        (("pto_arg_with_deps.h", "pto_orchestration_api.h"), ""),
        (("pto_orchestration_api.h", "pto_arg_with_deps.h"), ""),
        (("pto_orchestration_api.h",), OWN_COUNTER),
        (("pto_orchestration_api.h",), USES_MEMORY),
        (("tensor.h",), USES_MEMORY),
        (("pto_orchestration_api.h", "aicpu/worker_chip_message_queue.h"), OWN_COUNTER),
    ],
)
def test_headers_go_together_in_every_order(headers, more):
    source = "".join(f'#include "{header}"\n' for header in headers) + more
    compile_only(["g++", "-x", "c++", "-", "-fsyntax-only", "-std=c++17", *STRICT, *FOLDERS], source)


def test_a_program_of_the_oldest_interface_is_refused_with_what_to_do(worker):
    with pytest.raises(errors.RunError, match=r"\bregister_callable failed with code -1\b") as caught:
        worker.worker.register(program("build_sum_graph", "oldest_orch.cpp"))
    for words in ('"build_sum_graph"', "orchestration_api.h", "pto_orchestration_api.h"):
        assert words in str(caught.value)
    worker.check_good()


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_name_of_the_orchestration_interface_compiles(compiler, arch, runtime):
    folders = [f"-I{include_root() / name}" for name in ("orchestration", "kernel", "")]
    compile_only(
        [
            compiler,
            "-fsyntax-only",
            "-std=c++17",
            "-pthread",
            "-fPIC",
            *STRICT,
            ARCHES[arch],
            RUNTIMES[runtime],
            *folders,
            str(PROGRAMS / "names_orch.cpp"),
        ]
    )


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("core", ["__DAV_VEC__", "__DAV_CUBE__"])
@pytest.mark.parametrize("standard", ["-std=c++17", "as the kernel compiler"])
def test_every_name_of_the_kernel_interface_compiles(compiler, arch, core, standard):
    if standard == "-std=c++17":
        flags = ["-std=c++17", "-fsyntax-only", *STRICT, "-Wno-unused-function"]
    else:
        flags = [flag for flag in _SIM_KERNEL if flag != "-shared"] + ["-fsyntax-only"]
        flags += ["-fpermissive"] if compiler.startswith("g++") else []
    folders = [f"-I{include_root() / name}" for name in ("", "pto", "kernel")]
    compile_only(
        [compiler, *flags, "-D__CPU_SIM", f"-D{core}", ARCHES[arch], *folders, str(PROGRAMS / "names_kernel.cpp")]
    )
