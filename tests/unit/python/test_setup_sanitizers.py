"""Sanitizers on real runs: a finding fails its case, names the kernel, and the others go on."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
from simpler_setup import sanitizers

SCENE = """
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestSlip(SceneTestCase):
    CALLABLE = {
        "orchestration": {"source": "orch.cpp", "function_name": "entry", "signature": [D.INOUT]},
        "incores": [{"func_id": 0, "name": "slip", "source": "slip.cpp", "core_type": "aiv"}],
    }
    CASES = [
        {"name": n, "platforms": ["a2a3sim"], "params": {"slip": s}} for n, s in (("good", 0), ("bad", 1), ("last", 0))
    ]

    def generate_args(self, params):
        return TaskArgsBuilder(TensorArg("t", np.zeros(16, np.int32)), Scalar("slip", params["slip"]))

    def compute_golden(self, args, params):
        args.t[:] = 1


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
"""

ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" __attribute__((visibility("default"))) void entry(const ChipTaskArgs& args) {
  CoreTaskArgs task;
  task.add_inout(args.tensor(0).ref());
  task.add_scalar(args.scalar(0));
  rt_submit_aiv_task(0, task);
}
"""

KERNEL = """
#include "intrinsic.h"
#include "tensor.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  __gm__ ChipTensor* tensor = reinterpret_cast<__gm__ ChipTensor*>(args[0]);
  __gm__ int32_t* data = tensor->data_as<int32_t>() + tensor->start_offset;
  for (int i = 0; i < 16; ++i) data[i] = 1;
  if (args[1] != 0) {
    volatile int local[4] = {0, 0, 0, 0};
    volatile int large = 2147483647;
    large = large + static_cast<int>(args[1]);  // SLIP
    volatile int index = 4;
    (void)local[index];
  }
}
"""


@pytest.fixture
def scene(tmp_path):
    for name, text in (("scene.py", SCENE), ("orch.cpp", ORCHESTRATION), ("slip.cpp", KERNEL)):
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path / "scene.py"


def run(preset, *command):
    words = sanitizers.preload_command(sanitizers.resolve(preset)).split()
    env = {**os.environ, **dict(word.split("=", 1) for word in words)}
    done = subprocess.run(
        [sys.executable, *map(str, command), "--sanitizer", preset],
        capture_output=True, text=True, env=env, check=False, timeout=240,
    )  # fmt: skip
    return done


LINE = KERNEL.split("SLIP")[0].count("\n") + 1
OVERFLOW = rf"signed integer overflow: \S+ \+ \S+ .* in kernel 'slip' \(slip\.cpp:{LINE}\)"


@pytest.mark.parametrize(
    "preset, findings",
    [("asan", [r"stack-buffer-overflow in kernel 'slip' \(slip\.cpp:\d+\)", OVERFLOW]), ("ubsan", [OVERFLOW])],
)
def test_a_finding_fails_its_case_and_names_the_kernel(scene, preset, findings):
    done = run(preset, scene, "-p", "a2a3sim")
    assert done.returncode == 1, done.stdout + done.stderr
    verdicts = re.findall(r"^  TestSlip::(\w+) (PASSED|FAILED)", done.stdout, re.M)
    assert verdicts == [("good", "PASSED"), ("bad", "FAILED"), ("last", "PASSED")]
    for finding in findings:
        assert re.search(rf"TestSlip::bad FAILED: sanitizer: .*{finding}", done.stdout), done.stdout
    assert "runtime error" in done.stderr, "the whole report is there"
    assert "checks kernels and orchestrations; the runtime is not built with it" in done.stderr


def test_a_finding_fails_the_test_under_pytest(scene):
    done = run("ubsan", "-m", "pytest", scene, "--platform", "a2a3sim", "-p", "no:cacheprovider")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout + done.stderr
    assert "SanitizerFinding: sanitizer: signed integer overflow" in done.stdout


def test_races_need_a_runtime_that_is_built_for_it(scene):
    done = run("tsan", scene, "-p", "a2a3sim")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "ERROR: --sanitizer tsan needs a runtime that is built with it" in done.stderr
    assert "SIMPLER_SANITIZER=tsan pip install" in done.stderr


def test_findings_in_words():
    report = (
        "=1=ERROR: AddressSanitizer: heap-use-after-free on address\n #0 in f /k/a.cpp:7:3\n"
        "/k/b.cpp:9:1: runtime error: shift exponent 40\n"
        "WARNING: ThreadSanitizer: data race (pid=3)\n  #0 kernel_entry /k/a.cpp:8\n"
        "WARNING: ThreadSanitizer: data race (pid=3)\n  #0 somewhere else\n"
    )
    text = sanitizers.describe_findings(report, {"/k/a.cpp": "kernel 'a'", "/k/b.cpp": "kernel 'b'"})
    assert text == (
        "sanitizer: heap-use-after-free in kernel 'a' (a.cpp:7); shift exponent 40 in kernel 'b' (b.cpp:9); "
        "data race in kernel 'a' (a.cpp:8); and 1 more"
    )
    assert "without a known headline" in sanitizers.describe_findings("?", {})
