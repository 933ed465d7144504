"""SYNCALL between all cores of a task on the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler

SOURCES = Path(__file__).parent / "tile"
PLATFORM, RUNTIME = "a2a3sim", "tensormap_and_ringbuffer"


@pytest.mark.parametrize("threads", [1, 2])
def test_all_lanes_of_all_blocks_meet_though_host_threads_are_fewer(threads):
    compiler = KernelCompiler(PLATFORM)
    kernels = [
        CoreCallable.build(signature=[D.INOUT], binary=compiler.compile_incore(SOURCES / "meeting.cpp", kind))
        for kind in ("aic", "aiv")
    ]
    program = ChipCallable.build(
        signature=[D.INOUT, D.SCALAR],
        func_name="meeting",
        binary=compiler.compile_orchestration(RUNTIME, SOURCES / "meeting_orch.cpp"),
        children=list(enumerate(kernels)),
    )
    worker = Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_threads=threads)
    worker.init()
    try:
        handle = worker.register(program)
        for blocks in (1, 5, 8):
            places = np.zeros(512, dtype=np.float32)
            args = ChipStorageTaskArgs()
            args.add_tensor(places)
            args.add_scalar(blocks)
            worker.run(handle, args)
            for turn in (1, 2, 3):
                sums = places[128 * turn : 128 * turn + 3 * blocks]
                assert np.array_equal(sums, np.full(3 * blocks, turn * 3 * blocks))
    finally:
        worker.close()
