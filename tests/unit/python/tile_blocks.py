"""Programs of one task whose blocks have a cube core and two vector cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler

SOURCES = Path(__file__).parent / "tile"
PLATFORM, RUNTIME = "a2a3sim", "tensormap_and_ringbuffer"


class Blocks:
    """A worker with such a program: one source, compiled for both core types."""

    def __init__(self, source: str, threads: int):
        compiler = KernelCompiler(PLATFORM)
        kernels = [
            CoreCallable.build(
                signature=[D.INOUT, D.SCALAR], binary=compiler.compile_incore(SOURCES / source, core_type)
            )
            for core_type in ("aic", "aiv")
        ]
        program = ChipCallable.build(
            signature=[D.INOUT, D.SCALAR, D.SCALAR, D.SCALAR],
            func_name="block_task",
            binary=compiler.compile_orchestration(RUNTIME, SOURCES / "block_task.cpp"),
            children=list(enumerate(kernels)),
        )
        self.worker = Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_threads=threads)
        self.worker.init()
        self._program = self.worker.register(program)

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.worker.close()

    def run(self, blocks: int, case: int = 0, *, words: int = 4096, together: bool = False) -> np.ndarray:
        """The tensor of `words` floats after the run; it starts with zeros."""
        array = np.zeros(words, dtype=np.float32)
        args = ChipStorageTaskArgs()
        args.add_tensor(array)
        for scalar in (blocks, int(together), case):
            args.add_scalar(scalar)
        self.worker.run(self._program, args)
        return array
