"""Tasks of many blocks, timed: blocks of one lane, MIX blocks, and cohorts whose lanes meet once in their kernel."""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import numpy as np
from programs import KERNELS, RUNTIME, compiled_kernel
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, TaskArgs, TensorArgType
from simpler.worker import Worker
from simpler_setup import KernelCompiler

VECTOR, BOTH_VECTORS, MIX = 2, 6, 7  # lanes of a block, as in kernels/wide_orch.cpp
MOST_BLOCKS = 25_000  # of one task; a task has at most 32767


class WideTasks:
    """Programs of kernels/wide_orch.cpp on one worker. A context: the worker closes at its end."""

    def __init__(self, platform: str, **worker_options: Any):
        self._threads_before = _process_threads()
        compiler = KernelCompiler(platform)
        program = ChipCallable.build(
            signature=[D.INOUT, D.SCALAR, D.SCALAR, D.SCALAR, D.SCALAR],
            func_name="wide_tasks",
            binary=compiler.compile_orchestration(RUNTIME, KERNELS / "wide_orch.cpp"),
            children=[
                (0, compiled_kernel(compiler, "empty.cpp", "aiv", [D.IN])),
                (1, compiled_kernel(compiler, "empty.cpp", "aic", [D.IN])),
                (2, compiled_kernel(compiler, "meet.cpp", "aiv", [D.INOUT])),
                (3, compiled_kernel(compiler, "meet.cpp", "aic", [D.INOUT])),
            ],
        )
        self._worker = Worker(level=2, platform=platform, runtime=RUNTIME, **worker_options)
        self._worker.init()
        self._program = self._worker.register(program)

    def __enter__(self) -> WideTasks:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def seconds(self, lanes: int, blocks: int, tasks: int, together: bool = False) -> float:
        """Wall time of one run."""
        arrivals = np.zeros(1, dtype=np.int32)
        args = TaskArgs()
        args.add_tensor(self._worker.make_tensor_arg(arrivals), TensorArgType.INOUT)
        for value in (lanes, blocks, tasks, int(together)):
            args.add_scalar(value)
        start = time.perf_counter()
        self._worker.run(self._program, args)
        took = time.perf_counter() - start
        met = tasks * blocks * bin(lanes).count("1") if together else 0
        if arrivals[0] != met:
            raise RuntimeError(f"{met} lanes were to meet, and {arrivals[0]} did")
        return took

    def threads(self) -> int:
        """Threads that the worker has made until now: they stay for later runs."""
        return _process_threads() - self._threads_before


def _process_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _best_and_median(name: str, times: list[float]) -> dict[str, float]:
    return {name: min(times), f"{name}_median": statistics.median(times)}


def measure(platform: str, repeats: int) -> dict[str, float]:
    """All values of this file by name. Microseconds for each block, milliseconds for each cohort; and after each kind
    of task the threads that the worker had made by then."""
    values: dict[str, float] = {}
    with WideTasks(platform) as bench:
        for label, lanes, total in (("spmd_block", VECTOR, 100_000), ("mix_block", MIX, 2_000)):
            for blocks in (1, 10, 100, 1_000, 10_000, 100_000):
                if blocks > total:
                    break
                width = min(blocks, MOST_BLOCKS)
                tasks = total // width
                times = [bench.seconds(lanes, width, tasks) * 1e6 / total for _ in range(repeats + 1)][1:]
                values.update(_best_and_median(f"{label}_us_{blocks}", times))
            values[f"{label}_threads"] = bench.threads()
        for suffix in ("", "_median"):
            values[f"spmd_block_us{suffix}"] = values[f"spmd_block_us_100000{suffix}"]
            values[f"mix_block_us{suffix}"] = values[f"mix_block_us_1000{suffix}"]
    with WideTasks(platform, sim_clusters=24) as bench:
        cohorts = 20
        for cores, lanes, blocks in ((8, VECTOR, 8), (24, VECTOR, 24), (72, MIX, 24)):
            times = [bench.seconds(lanes, blocks, cohorts, True) * 1e3 / cohorts for _ in range(repeats + 1)][1:]
            values.update(_best_and_median(f"cohort{cores}_barrier_ms", times))
            values[f"cohort{cores}_threads"] = bench.threads()
    return values
