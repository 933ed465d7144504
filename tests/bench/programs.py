"""The programs under test, run the way a user runs them: compiled orchestration, kernels from files, Worker.run."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CallConfig, ChipCallable, CoreCallable, TaskArgs, TensorArgType
from simpler.worker import Worker
from simpler_setup import KernelCompiler

RUNTIME = "tensormap_and_ringbuffer"
KERNELS = Path(__file__).parent / "kernels"

#: As in kernels/graphs.cpp, in the order of its table.
GRAPHS = (
    "one",
    "independent",
    "independent_cells",
    "chain",
    "chains",
    "tree",
    "fan_in",
    "tiles",
    "nested_scopes",
    "two_inputs",
    "two_results",
)
_CELLS = (4096, 16)
_TASKS_IN_SCOPE = 1000  # a scope holds at most window - 2 tasks; the default window is 16384


class Sample(NamedTuple):
    """One run. Seconds; `submit` lies inside `total`, which is the wall time of Worker.run."""

    total: float
    submit: float
    tasks: int


def best(samples: list[Sample], field: str) -> float:
    """The lowest time per task, in microseconds."""
    return min(getattr(s, field) / s.tasks for s in samples) * 1e6


def median(samples: list[Sample], field: str) -> float:
    """The median time per task, in microseconds."""
    return statistics.median(getattr(s, field) / s.tasks for s in samples) * 1e6


def compiled_kernel(compiler: KernelCompiler, name: str, core_type: str, signature: list[Any]) -> CoreCallable:
    return CoreCallable.build(signature=signature, binary=compiler.compile_incore(KERNELS / name, core_type))


class Graphs:
    """The graphs of kernels/graphs.cpp on one worker. A context: the worker closes at its end."""

    def __init__(self, platform: str, runtime: str = RUNTIME, **worker_options: Any):
        compiler = KernelCompiler(platform)
        program = ChipCallable.build(
            signature=[D.INOUT, D.INOUT, D.INOUT, D.SCALAR, D.SCALAR, D.SCALAR, D.SCALAR],
            func_name="bench_graph",
            config_name="bench_config",
            binary=compiler.compile_orchestration(runtime, KERNELS / "graphs.cpp"),
            children=[
                (0, compiled_kernel(compiler, "empty.cpp", "aiv", [])),
                (1, compiled_kernel(compiler, "gate.cpp", "aic", [D.INOUT])),
                (2, compiled_kernel(compiler, "empty.cpp", "aic", [])),
            ],
        )
        self._worker = Worker(level=2, platform=platform, runtime=runtime, **worker_options)
        self._worker.init()
        self._program = self._worker.register(program)

    def __enter__(self) -> Graphs:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def run(self, graph: str, count: int = 1, window: int = 0, gated: bool = False) -> Sample:
        """Run a graph once. `window` replaces the default size of the task windows. Where `gated`, nothing runs until
        all is submitted; that takes a worker of one cluster, and a window that holds all tasks."""
        cells = np.zeros((1, _CELLS[1]) if graph == "one" else _CELLS, dtype=np.float32)  # small: copying takes time
        times = np.zeros(4, dtype=np.int64)
        gate = np.zeros(1, dtype=np.int32)
        args = TaskArgs()
        for array in (cells, times, gate):
            args.add_tensor(self._worker.make_tensor_arg(array), TensorArgType.INOUT)
        for value in (GRAPHS.index(graph), count, _TASKS_IN_SCOPE, int(gated)):
            args.add_scalar(value)
        config = CallConfig()
        if window:
            config.runtime_env.ring_task_window = window
        start = time.perf_counter()
        self._worker.run(self._program, args, config)
        total = time.perf_counter() - start
        tasks = int(times[1])
        if tasks <= 0:
            raise RuntimeError(f"graph {graph} of {count} tasks reports {tasks} submitted tasks")
        return Sample(total, int(times[0]) / 1e9, tasks)

    def sample(self, graph: str, count: int, repeats: int, **options: Any) -> list[Sample]:
        """`repeats` runs after one that only warms up."""
        self.run(graph, count, **options)
        return [self.run(graph, count, **options) for _ in range(repeats)]


def init_seconds(platform: str, repeats: int) -> list[float]:
    """Durations of Worker.init, each on a new worker."""
    times = []
    for _ in range(repeats):
        with Worker(level=2, platform=platform, runtime=RUNTIME) as worker:
            start = time.perf_counter()
            worker.init()
            times.append(time.perf_counter() - start)
    return times


class Product:
    """A 128 x 128 x 128 float product: once with the tile library on one core, once with NumPy's BLAS on one thread."""

    SIDE = 128
    FLOP = 2 * SIDE**3

    def __init__(self, platform: str):
        compiler = KernelCompiler(platform)
        program = ChipCallable.build(
            signature=[D.IN, D.IN, D.OUT, D.SCALAR],
            func_name="one_product",
            binary=compiler.compile_orchestration(RUNTIME, KERNELS / "product_orch.cpp"),
            children=[(0, compiled_kernel(compiler, "matmul.cpp", "aic", [D.IN, D.IN, D.OUT]))],
        )
        self._worker = Worker(level=2, platform=platform, runtime=RUNTIME)
        self._worker.init()
        self._program = self._worker.register(program)
        random = np.random.default_rng(seed=1)
        self._a, self._b = random.standard_normal((2, self.SIDE, self.SIDE), dtype=np.float32)

    def __enter__(self) -> Product:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def _run(self, repeats: int) -> float:
        c = np.zeros_like(self._a)
        args = TaskArgs()
        for array, tag in ((self._a, "INPUT"), (self._b, "INPUT"), (c, "OUTPUT_EXISTING")):
            args.add_tensor(self._worker.make_tensor_arg(array), getattr(TensorArgType, tag))
        args.add_scalar(repeats)
        start = time.perf_counter()
        self._worker.run(self._program, args)
        took = time.perf_counter() - start
        if not np.allclose(c, self._a @ self._b, rtol=1e-3, atol=1e-3):
            raise RuntimeError("the tile library's product is wrong")
        return took

    def tile_gflops(self, repeats: int = 400) -> float:
        """Of the tile library; the run's fixed cost is taken off."""
        fixed = min(self._run(1) for _ in range(5))
        return self.FLOP * (repeats - 1) / (min(self._run(repeats) for _ in range(5)) - fixed) / 1e9

    def blas_gflops(self, repeats: int = 400) -> float:
        """Of NumPy's BLAS, which has been told to use one thread."""
        c = np.empty_like(self._a)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(repeats):
                np.matmul(self._a, self._b, out=c)
            times.append(time.perf_counter() - start)
        return self.FLOP * repeats / min(times) / 1e9
