"""What a user reads after each slip: one row per mistake with the whole message: what, where, and what to do."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import simpler_setup
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(simpler_setup.__file__)))
RUNTIME = "tensormap_and_ringbuffer"

# -- declarations ---------------------------------------------------------------------------------------------------

ORCHESTRATION = {"source": "orch.cpp", "function_name": "entry", "signature": [D.IN]}
KERNEL = {"func_id": 0, "source": "k.cpp", "core_type": "aiv"}
CHIP = {"orchestration": ORCHESTRATION, "incores": [KERNEL]}


def declare(table=CHIP, cases=None, level=2, runtime=RUNTIME, **attributes):
    cases = [{"name": "c", "platforms": ["a2a3sim"]}] if cases is None else cases
    cls = type("TestX", (SceneTestCase,), {"CALLABLE": table, "CASES": cases, **attributes})
    return scene_test(level=level, runtime=runtime)(cls)


def orchestration(**changes):
    return {**CHIP, "orchestration": {k: v for k, v in {**ORCHESTRATION, **changes}.items() if v is not None}}


def kernel(**changes):
    return {**CHIP, "incores": [{**KERNEL, **changes}]}


def case(**changes):
    return [{"name": "c", "platforms": ["a2a3sim"], **changes}]


PLATFORMS = "a2a3, a2a3sim, a5, a5sim"
DECLARED = [
    ("level", dict(level=5), "unknown scene level 5; allowed: 2 (CHIP), 3 (HOST), 4 (NETWORK1)"),
    ("runtime", dict(runtime="tensormap_and_ringbufer"),
     "unknown runtime 'tensormap_and_ringbufer'; allowed: host_build_graph, tensormap_and_ringbuffer. "
     "Did you mean 'tensormap_and_ringbuffer'?"),
    ("no_orchestration", dict(table={"incores": []}), "TestX.CALLABLE has no 'orchestration'; it has 'incores'"),
    ("misspelt_orchestration", dict(table={"orchestraton": {}}),
     "TestX.CALLABLE has no 'orchestration' (is 'orchestraton' a typo?)"),
    ("misspelt_source", dict(table=orchestration(source=None, soruce="o.cpp")),
     "TestX.CALLABLE['orchestration'] has no 'source' (is 'soruce' a typo?)"),
    ("no_function_name", dict(table=orchestration(function_name=None)),
     "TestX.CALLABLE['orchestration'] has no 'function_name'; it has 'source', 'signature'"),
    ("misspelt_signature", dict(table=orchestration(signature=None, signatur=[D.IN])),
     "TestX.CALLABLE['orchestration']: unknown key 'signatur'. Did you mean 'signature'?"),
    ("misspelt_incores", dict(table={"orchestration": ORCHESTRATION, "incore": []}),
     "TestX.CALLABLE: unknown key 'incore'. Did you mean 'incores'?"),
    ("signature_is_no_list", dict(table=orchestration(signature=3)),
     "TestX.CALLABLE['orchestration']: 'signature' must be a list of ArgDirection, got 3"),
    ("signature_of_words", dict(table=orchestration(signature=["in"])),
     "TestX.CALLABLE['orchestration']: 'signature'[0] must be ArgDirection.IN, OUT, INOUT or SCALAR, got 'in'"),
    ("incores_is_no_list", dict(table={**CHIP, "incores": {"func_id": 0}}),
     "TestX.CALLABLE['incores'] must be a list of dicts, got {'func_id': 0}"),
    ("core_type", dict(table=kernel(core_type="aiw")),
     "TestX.CALLABLE['incores'][0]: unknown core_type 'aiw'; allowed: aiv, aic. Did you mean 'aiv'?"),
    ("func_id", dict(table=kernel(func_id="0")),
     "TestX.CALLABLE['incores'][0]: 'func_id' must be a number from 0, got '0'"),
    ("func_id_twice", dict(table={**CHIP, "incores": [KERNEL, KERNEL]}),
     "TestX.CALLABLE['incores'][1]: func_id 0 is used twice; each kernel has a number of its own"),
    ("include_dirs", dict(table=kernel(extra_include_dirs="inc")),
     "TestX.CALLABLE['incores'][0]: 'extra_include_dirs' must be a list of folders, got a string"),
    ("cases_is_no_list", dict(cases={"name": "c"}), "TestX.CASES must be a list, got {'name': 'c'}"),
    ("misspelt_platforms", dict(cases=[{"name": "c", "platform": ["a2a3sim"]}]),
     "TestX.CASES[0] has no 'platforms' (is 'platform' a typo?)"),
    ("platforms_is_a_name", dict(cases=case(platforms="a2a3sim")),
     "TestX.CASES[0] ('c'): 'platforms' must be a list of platform names, got 'a2a3sim'"),
    ("platform", dict(cases=case(platforms=["a2a3smi"])),
     f"TestX.CASES[0] ('c'): 'platforms': unknown platform 'a2a3smi'; allowed: {PLATFORMS}. Did you mean 'a2a3sim'?"),
    ("case_name", dict(cases=case(name=3)), "TestX.CASES[0]: 'name' must be a non-empty string, got 3"),
    ("params", dict(cases=case(params=[1])), "TestX.CASES[0] ('c'): 'params' must be a dict, got [1]"),
    ("misspelt_params", dict(cases=case(parms={})),
     "TestX.CASES[0] ('c'): unknown key 'parms'. Did you mean 'params'?"),
    ("config_key", dict(cases=case(config={"aicpu_threads": 3})),
     "TestX.CASES[0] ('c'): unknown config key 'aicpu_threads'; allowed: aicpu_thread_num, runtime_env, device_count, "
     "num_sub_workers, block_dim. Did you mean 'aicpu_thread_num'?"),
    ("ring_key", dict(cases=case(config={"runtime_env": {"ring_heep": 3}})),
     "TestX.CASES[0] ('c'): unknown runtime_env key 'ring_heep'; allowed: ring_task_window, ring_heap, ring_dep_pool. "
     "Did you mean 'ring_heap'?"),
    ("manual", dict(cases=case(manual="always")),
     "TestX.CASES[0] ('c'): 'manual' must be True, False, a platform name or a list of platform names "
     f"({PLATFORMS}), got 'always'"),
    ("skip_golden", dict(cases=case(skip_golden="yes")),
     "TestX.CASES[0] ('c'): 'skip_golden' must be True or False, got 'yes'"),
    ("tolerance", dict(RTOL="1e-3"), "TestX.RTOL must be a number from 0, got '1e-3'"),
    ("environment", dict(RUNTIME_ENV=["A"]),
     "TestX.RUNTIME_ENV must be a dict of environment variables, got ['A']"),
]  # fmt: skip


@pytest.mark.parametrize("keywords, message", [row[1:] for row in DECLARED], ids=[row[0] for row in DECLARED])
def test_declarations(keywords, message):
    with pytest.raises(ValueError) as caught:
        declare(**keywords)
    assert str(caught.value) == message


ARRAY = np.zeros(3, np.float32)
BUILT = [
    ("bare_array", [ARRAY], "TaskArgsBuilder takes TensorArg(name, value) and Scalar(name, value), got ndarray"),
    ("twice", [TensorArg("a", ARRAY), Scalar("a", 1)], "argument 'a' is given twice"),
    ("late", [Scalar("k", 1), TensorArg("a", ARRAY)],
     "tensor 'a' comes after scalar 'k'; add all tensors before the first scalar"),
    ("member", [TensorArg("clone", ARRAY)],
     "argument name 'clone' is a member of TaskArgsBuilder; choose another name"),
    ("nameless", [TensorArg("", ARRAY)], "an argument name must be a non-empty string, got ''"),
]  # fmt: skip


@pytest.mark.parametrize("specs, message", [row[1:] for row in BUILT], ids=[row[0] for row in BUILT])
def test_arguments(specs, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        TaskArgsBuilder(*specs)
    assert str(caught.value) == message


def test_a_name_that_is_no_argument():
    with pytest.raises(AttributeError, match=r"^no argument 'oout'; there are a, out$"):
        _ = TaskArgsBuilder(TensorArg("a", ARRAY), TensorArg("out", ARRAY)).oout


def test_a_decorator_on_something_else():
    with pytest.raises(ValueError) as caught:
        scene_test(level=2, runtime=RUNTIME)(type("TestX", (), {}))
    assert str(caught.value) == (
        "TestX is not a scene: @scene_test(level=..., runtime=...) is for subclasses of SceneTestCase; "
        "mark a function with @scene_level(level) and @pytest.mark.runtime(name)"
    )


# -- runs: one file with a class per mistake, run once --------------------------------------------------------------

SCENES = '''
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


class Base(SceneTestCase):
    """out = 2 * a; a subclass changes one thing."""

    def arrays(self):
        return np.arange(8, dtype=np.float32), np.zeros(8, np.float32)

    def generate_args(self, params):
        a, out = self.arrays()
        return TaskArgsBuilder(TensorArg("a", a), TensorArg("out", out))

    def compute_golden(self, args, params):
        args.out[:] = 2 * args.a


def scene(name, kernel="good.cpp", signature=(D.IN, D.OUT), entry="entry", config="", **changes):
    table = {
        "orchestration": {
            "source": "orch.cpp", "function_name": entry, "config_name": config, "signature": list(signature)
        },
        "incores": [{"func_id": 0, "name": "twice", "source": kernel, "core_type": "aiv"}],
    }
    cases = [{"name": "c", "platforms": ["a2a3sim"]}]
    bases = (changes.pop("base", Base),)
    cls = type(name, bases, {"__module__": __name__, "CALLABLE": table, "CASES": cases, **changes})
    globals()[name] = scene_test(level=2, runtime="tensormap_and_ringbuffer")(cls)


def out(array):
    return {"arrays": lambda self: (np.arange(8, dtype=np.float32), array)}


frozen = np.zeros(8, np.float32)
frozen.flags.writeable = False
scene("TestGood")
scene("TestSource", kernel="god.cpp")
scene("TestCompile", kernel="broken.cpp")
scene("TestEntry", kernel="noentry.cpp")
scene("TestMangled", kernel="mangled.cpp")
scene("TestFunction", entry="entri")
scene("TestConfig", config="confg")
scene("TestKernelId", entry="wrong_id")
scene("TestCrash", kernel="crash.cpp")
scene("TestNoArgs", base=SceneTestCase)
scene("TestNotABuilder", generate_args=lambda self, params: [1])
scene("TestNoGolden", base=SceneTestCase, generate_args=Base.generate_args, arrays=Base.arrays)
scene("TestDouble", **out(np.zeros(8)))
scene("TestStrided", **out(np.zeros((8, 2), np.float32)[:, 0]))
scene("TestSixDimensions", **out(np.zeros((1,) * 5 + (8,), np.float32)))
scene("TestFrozen", **out(frozen))
scene("TestShortSignature", signature=[D.IN])
scene("TestLongSignature", signature=[D.IN, D.OUT, D.OUT])
scene("TestNothingCompared", signature=[D.IN, D.IN])
scene("TestScalar", generate_args=lambda self, params: TaskArgsBuilder(
    TensorArg("a", self.arrays()[0]), TensorArg("out", self.arrays()[1]), Scalar("k", "two")))
scene("TestGoldenShape", compute_golden=lambda self, args, params: setattr(args, "out", np.zeros(4, np.float32)))
scene("TestAllZero", kernel="idle.cpp")
scene("TestShifted", kernel="shift.cpp")
scene("TestNan", kernel="nan.cpp")


class TestBare(Base):
    CASES = [{"name": "c", "platforms": ["a2a3sim"]}]


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
'''

ORCH = """
#include "pto_orchestration_api.h"
static void submit(const ChipTaskArgs& args, int id) {
  CoreTaskArgs task;
  task.add_input(args.tensor(0).ref());
  task.add_output(args.tensor(1).ref());
  rt_submit_aiv_task(id, task);
}
extern "C" __attribute__((visibility("default"))) void entry(const ChipTaskArgs& args) { submit(args, 0); }
extern "C" __attribute__((visibility("default"))) void wrong_id(const ChipTaskArgs& args) { submit(args, 7); }
"""

KERNEL_TEXT = """
#include "intrinsic.h"
#include "tensor.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ float* data[2];
  for (int i = 0; i < 2; ++i) {
    __gm__ ChipTensor* t = reinterpret_cast<__gm__ ChipTensor*>(args[i]);
    data[i] = t->data_as<float>() + t->start_offset;
  }
  for (int i = 0; i < 8; ++i) data[1][i] = 2 * data[0][i];
}
"""
BODY = "data[1][i] = 2 * data[0][i];"
KERNELS = {
    "good": KERNEL_TEXT,
    "broken": KERNEL_TEXT.replace("float* data", "flaot* data"),
    "noentry": KERNEL_TEXT.replace("kernel_entry", "kernel_enty"),
    "mangled": KERNEL_TEXT.replace('extern "C" ', ""),
    "crash": KERNEL_TEXT.replace(BODY, "*(volatile float*)nullptr = 1;"),
    "idle": KERNEL_TEXT.replace(BODY, "data[1][i] = 0;"),
    "shift": KERNEL_TEXT.replace(BODY, "data[1][i] = 2 * (data[0][i] + 2);"),
    "nan": KERNEL_TEXT.replace(BODY, "data[1][i] = i == 3 ? __builtin_nanf(\"\") : 2 * data[0][i];"),
}  # fmt: skip

TOLERANCES = "rtol=1e-05, atol=1e-05"
RUNS = {
    "TestSource": "kernel source DIR/god.cpp does not exist; did you mean 'good.cpp'?",
    "TestEntry": "kernel DIR/noentry.cpp exports no 'kernel_entry'; did you mean 'kernel_enty'? (a kernel defines "
    'extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args))',
    "TestMangled": "kernel DIR/mangled.cpp exports no 'kernel_entry', but the C++ function '_Z12kernel_entryPl': "
    'declare it extern "C" (a kernel defines extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args))',
    "TestFunction": "orchestration DIR/orch.cpp exports no 'entri'; did you mean 'entry'? "
    "('function_name' names its entry)",
    "TestNoArgs": "TestNoArgs must implement generate_args(self, params)",
    "TestNotABuilder": "generate_args returned list; it must return a TaskArgsBuilder",
    "TestNoGolden": "TestNoGolden must implement compute_golden(self, args, params), or set SKIP_GOLDEN = True",
    "TestDouble": "tensor 'out': arrays of type float64 have no DataType; supported: float32, float16, bfloat16, int8, "
    "int16, int32, int64, uint8, uint16, uint32, uint64, float8_e4m3fn, float8_e8m0fnu, float4_e2m1fn_x2, "
    "float4_e2m1fn",
    "TestStrided": "tensor 'out': the array is not C-contiguous; pass np.ascontiguousarray(array), and copy the result "
    "back if the run writes it",
    "TestSixDimensions": "tensor 'out' has 6 dimensions, shape (1, 1, 1, 1, 1, 8); at most 5 fit; reshape it",
    "TestFrozen": "tensor 'out' is read-only, but the run writes it; pass a writable copy",
    "TestShortSignature": "tensor 'out' (index 1) has no entry in the signature, which describes 1 of 2 tensors; "
    "add its ArgDirection to 'signature'",
    "TestScalar": "scalar 'k' = 'two' cannot be passed (a scalar must be an integer, a float or a ctypes scalar, not "
    "str); use an int, a float or a ctypes value",
    "TestGoldenShape": f"Golden mismatch on 'out': max_diff=nan, {TOLERANCES}\n"
    "  the output has shape (8,), the golden value (4,)",
    "TestAllZero": f"Golden mismatch on 'out': max_diff=14, {TOLERANCES}\n"
    "  shape (8,), dtype float32: 7 of 8 elements differ (87.5 %)\n"
    "  first at [1]: got 0, want 2\n"
    "  max abs error 14 at [7], max rel error 1 at [1]\n"
    "  hint: the output is all zeros: the task that writes it did not run, or wrote another tensor",
    "TestShifted": f"Golden mismatch on 'out': max_diff=4, {TOLERANCES}\n"
    "  shape (8,), dtype float32: 8 of 8 elements differ (100 %)\n"
    "  first at [0]: got 4, want 0\n"
    "  max abs error 4 at [0], max rel error 2 at [1]\n"
    "  hint: the output is shifted by 2 elements: output[i] is golden[i + 2]",
    "TestNan": f"Golden mismatch on 'out': max_diff=nan, {TOLERANCES}\n"
    "  shape (8,), dtype float32: 1 of 8 elements differ (12.5 %)\n"
    "  first at [3]: got nan, want 6\n"
    "  no finite element differs by more than that\n"
    "  hint: 1 elements of the output are NaN, 0 of the golden values",
}
PARTS = {  # texts of the compiler and of the runtime: what they must contain
    "TestCompile": r"kernel DIR/broken\.cpp does not compile \(exit code 1\):\n(.*\n)*.*'flaot' (.*\n)*"
    r"source:  DIR/broken\.cpp\ncommand: .*-D__DAV_VEC__.* DIR/broken\.cpp$",
    "TestKernelId": r"run failed with code -5 .*INVALID_ARGS: kernel id 7 is not among the callable's kernels: "
    r"add it to its incores or correct the id",
    "TestCrash": r"run failed with code -120 .*KERNEL_CRASHED: kernel 0 of task 0.*SIGSEGV",
}
TOLD = [
    "WARNING: orchestration DIR/orch.cpp exports no 'confg'; it exports entry, framework_bind_runtime, wrong_id "
    "('config_name'), so the number of arguments is not checked; correct the name, or leave it out",
    "WARNING: TestLongSignature::c: the signature describes 3 tensors, but generate_args gave 2 (a, out); "
    "was one forgotten?",
    "WARNING: TestNothingCompared::c: nothing is compared, since no tensor of the signature is OUT or INOUT",
    "WARNING: TestBare is left out: it has CASES, but no decorator @scene_test(level=..., runtime=...)",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "scenes.py").write_text(SCENES)
    (folder / "orch.cpp").write_text(ORCH)
    for name, text in KERNELS.items():
        (folder / f"{name}.cpp").write_text(text)
    return folder


@pytest.fixture(scope="module")
def told(folder):
    """(class -> text of its failure or None, lines of stderr) of one run of all classes; DIR stands for the folder."""
    done = subprocess.run(
        [sys.executable, str(folder / "scenes.py"), "-p", "a2a3sim", "--log-level", "error"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    out = done.stdout.replace(str(folder), "DIR").partition("\n\n  FAILED")[0]
    found = {}
    for block in re.split(r"^  (?=Test\w+::c \.\.\.)", out, flags=re.M)[1:]:
        verdict = re.search(r"^  (Test\w+)::c (PASSED|FAILED: )", block, re.M)
        text = block[verdict.end() :].rstrip("\n") if verdict.group(2) != "PASSED" else None
        found[verdict.group(1)] = text.replace("\n    ", "\n") if text is not None else None
    return found, done.stderr.replace(str(folder), "DIR")


@pytest.mark.parametrize("name", RUNS)
def test_runs(told, name):
    assert told[0][name] == RUNS[name]


@pytest.mark.parametrize("name", PARTS)
def test_runs_with_words_of_others(told, name):
    assert re.match(PARTS[name], told[0][name]), told[0][name]


def test_nothing_else_fails_and_no_traceback_is_of_the_framework(told):
    found, err = told
    assert {name for name, text in found.items() if text is not None} == {*RUNS, *PARTS}
    assert "site-packages" not in err and "Traceback" not in err, err


@pytest.mark.parametrize("line", TOLD)
def test_what_is_told_beside(told, line):
    assert line in told[1].splitlines()


# -- command lines --------------------------------------------------------------------------------------------------

PROBE = """
import setup_fakes
from simpler_setup import SceneTestCase, scene_test

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestAlpha(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "none.cpp", "function_name": "f"}}
    CASES = [{"name": "red", "platforms": ["a2a3sim"]}, {"name": "blue", "platforms": ["a2a3sim"], "manual": True}]

if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
"""

SIM = ("-p", "a2a3sim")
LEVELS = "debug, info, timing, warn, error, null, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9"
PROG = "probe.py: error: argument "
HELP = "\nprobe.py --help lists what there is"
LINES = [
    ((), "ERROR: -p/--platform is required: a2a3sim or a5sim simulate, a2a3 or a5 run on a board"),
    (("--platfom", "a2a3sim"),
     f"{PROG[:-9]}unrecognized arguments: --platfom a2a3sim; did you mean --platform instead of --platfom?{HELP}"),
    (("-p", "a2a3smi"),
     f"{PROG}-p/--platform: unknown platform 'a2a3smi'; allowed: {PLATFORMS}. Did you mean 'a2a3sim'?{HELP}"),
    ((*SIM, "--runtime", "host_graph"),
     f"{PROG}--runtime: unknown runtime 'host_graph'; allowed: host_build_graph, tensormap_and_ringbuffer. "
     f"Did you mean 'host_build_graph'?{HELP}"),
    ((*SIM, "--manual", "onyl"),
     f"{PROG}--manual: unknown manual mode 'onyl'; allowed: exclude, include, only. Did you mean 'only'?{HELP}"),
    ((*SIM, "--level", "4"), f"{PROG}--level: unknown level '4'; allowed: 2, 3{HELP}"),
    ((*SIM, "--log-level", "wran"),
     f"{PROG}--log-level: unknown log level 'wran'; allowed: {LEVELS}. Did you mean 'warn'?{HELP}"),
    ((*SIM, "--rounds", "0"), f"{PROG}--rounds: '0' is not a whole number of at least 1{HELP}"),
    ((*SIM, "--timeout", "soon"), f"{PROG}--timeout: 'soon' is not a number of seconds; use 0 for no limit{HELP}"),
    ((*SIM, "--dump-args", "4"),
     f"{PROG}--dump-args/--dump-tensor: '4' is not a whole number from 0 to 3{HELP}"),
    ((*SIM, "--max-parallel", "0"),
     "ERROR: --max-parallel must be 'auto' or a whole number of at least 1, got '0'"),
    ((*SIM, "-d", ""), "ERROR: --device names no device; use 0, 0-3 or 0,2-4"),
    ((*SIM, "-d", "3-1"), "ERROR: device list '3-1': '3-1' is neither an id nor a rising range such as 0-3"),
    ((*SIM, "--case", "TestAlhpa::red"),
     "ERROR: unknown class 'TestAlhpa'; known: TestAlpha. Did you mean 'TestAlpha'?"),
    ((*SIM, "--case", "rde"), "ERROR: case 'rde' not found in any class; known: red, blue. Did you mean 'red'?"),
    ((*SIM, "--case", "::"), "ERROR: --case '::' names neither a class nor a case; use Case, Class::Case or Class::"),
    ((*SIM, "--case", "blue"),
     "ERROR: no cases matched platform=a2a3sim, manual=exclude, case=blue; some do with --manual include"),
    (("-p", "a5sim"),
     "ERROR: no cases matched platform=a5sim, manual=exclude; the cases are for a2a3sim"),
    ((*SIM, "--sanitizer", "asn"),
     "ERROR: unknown sanitizer 'asn'; allowed: none, asan, ubsan, tsan, address, undefined, thread, leak, memory. "
     "Did you mean 'asan'?"),
    ((*SIM, "--sanitizer", "thread,address"),
     "ERROR: sanitizers 'thread,address': thread cannot be combined with address, leak or memory"),
    ((*SIM, "--clone-protocol", "ftp"),
     f"{PROG}--clone-protocol: unknown protocol 'ftp'; allowed: https, ssh{HELP}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.py").write_text(textwrap.dedent(PROBE))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGES, HERE]), "SETUP_FAKES": "1"}

    def run(*arguments):
        command = [sys.executable, "probe.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=False, timeout=60)

    return run


@pytest.mark.parametrize("arguments, message", LINES, ids=[" ".join(row[0]) or "nothing" for row in LINES])
def test_command_lines(probe, arguments, message):
    done = probe(*arguments)
    text = re.sub(r"\S*/probe\.py", "probe.py", done.stderr.strip())
    assert (done.returncode, text) == (2, message)
