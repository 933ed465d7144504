"""Workers on a board that is emulated, and the errors without one.

Needs the library that the C++ tests build; SIMPLER_EMULATED_VENDOR names its folder.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from simpler.task_interface import (
    ArgDirection,
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipTensor,
    CoreCallable,
    DataType,
)
from simpler.worker import Worker
from simpler_setup import KernelCompiler

RUNTIME = "tensormap_and_ringbuffer"
FOLDER = os.environ.get("SIMPLER_EMULATED_VENDOR", "")
ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" __attribute__((visibility("default"))) void entry(const ChipTaskArgs& in) {
  CoreTaskArgs args;
  args.add_inout(in.tensor(0));
  args.add_scalar(in.scalar(0));
  rt_submit_aiv_task(0, args);
}
"""
KERNEL = """
#include "tensor.h"
extern "C" void kernel_entry(int64_t* args) {
  auto* t = reinterpret_cast<ChipTensor*>(args[0]);
  for (uint64_t i = 0; i < t->numel(); ++i) t->data_as<float>()[i] += static_cast<float>(args[1]);
  for (volatile bool forever = args[1] == 666; forever;) {}
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The program by platform."""
    folder = tmp_path_factory.mktemp("board")
    (folder / "orch.cpp").write_text(ORCHESTRATION)
    (folder / "kernel.cpp").write_text(KERNEL)
    made = {}
    for platform in ("a2a3", "a5"):
        compiler = KernelCompiler(platform)
        kernel = CoreCallable.build(
            signature=[ArgDirection.INOUT], binary=compiler.compile_incore(folder / "kernel.cpp", "aiv")
        )
        made[platform] = ChipCallable.build(
            signature=[ArgDirection.INOUT],
            func_name="entry",
            binary=compiler.compile_orchestration(RUNTIME, folder / "orch.cpp"),
            children=[(0, kernel)],
        )
    return made


def open_worker(program, platform="a2a3", device=0):
    worker = Worker(level=2, platform=platform, runtime=RUNTIME, device_id=device)
    worker.init()
    return worker, worker.register(program)


def add(worker, handle, scalar):
    data = np.zeros(100, np.float32)
    args = ChipStorageTaskArgs()
    args.add_tensor(ChipTensor.make(data.ctypes.data, (100,), DataType.FLOAT32))
    args.add_scalar(scalar)
    worker.run(handle, args, CallConfig())
    return data


@pytest.mark.parametrize("platform", ["a2a3", "a5"])
def test_a_board_runs_a_program(programs, platform):
    worker, handle = open_worker(programs[platform], platform)
    assert (add(worker, handle, 5) == 5).all()
    worker.close()


def test_workers_share_a_device_and_have_devices_of_their_own(programs):
    opened = [open_worker(programs["a2a3"], device=device) for device in (0, 0, 3)]
    for _ in range(3):
        for number, (worker, handle) in enumerate(opened):
            assert (add(worker, handle, number) == number).all()
    for worker, handle in opened[::-1]:
        assert (add(worker, handle, 7) == 7).all(), "closing one took another one's"
        worker.close()


def test_a_board_comes_back_after_a_kernel_that_never_returns(programs, monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "300")
    worker, handle = open_worker(programs["a2a3"], device=5)
    with pytest.raises(RuntimeError, match="SCHEDULER_TIMEOUT"):
        add(worker, handle, 666)
    worker.close()
    monkeypatch.delenv("SIMPLER_SCHEDULER_TIMEOUT_MS")
    worker, handle = open_worker(programs["a2a3"], device=5)
    assert (add(worker, handle, 1) == 1).all()
    worker.close()


def test_a_forked_child_begins_with_fresh_devices(programs):
    worker, handle = open_worker(programs["a2a3"])
    assert (add(worker, handle, 5) == 5).all()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine, again = open_worker(programs["a2a3"])
            status = 0 if (add(mine, again, 6) == 6).all() else 2
            mine.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (add(worker, handle, 8) == 8).all()
    worker.close()


def failure(**environment):
    """What opening a worker on a2a3 says in a process of its own."""
    script = f"""
        from simpler.worker import Worker
        worker = Worker(level=2, platform="a2a3", runtime="{RUNTIME}")
        try:
            worker.init()
        except RuntimeError as error:
            print(error)
    """
    inherited = {k: v for k, v in os.environ.items() if k not in ("SIMPLER_EMULATED_VENDOR", "ASCEND_HOME_PATH")}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**inherited, **environment}, check=True)
    return done.stdout


def test_without_libraries_the_error_says_what_to_install():
    text = failure()
    for part in ("platform a2a3", "a2a3sim", "libruntime.so of the CANN toolkit", "set_env.sh"):
        assert part in text, text


def test_a_board_without_device_programs_says_so():
    assert "no device programs for the board (docs/board.md): use a2a3sim" in failure(LD_LIBRARY_PATH=f"{FOLDER}/a2a3")


def test_a_folder_without_the_emulation_is_named(tmp_path):
    text = failure(SIMPLER_EMULATED_VENDOR=str(tmp_path))
    assert f"emulated by SIMPLER_EMULATED_VENDOR={tmp_path}" in text
    assert str(Path(tmp_path, "a2a3/libruntime.so")) in text
