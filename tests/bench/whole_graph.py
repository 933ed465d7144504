"""Graphs that are built ahead: building, executing and replaying them, and what one step of the decoder example costs
beside its kernels. run.py calls measure()."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peers
from programs import KERNELS, Graphs, best, compiled_kernel, median
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CallConfig, ChipCallable, DataType, TaskArgs, TensorArgType
from simpler.worker import Worker
from simpler_setup import KernelCompiler

RUNTIME = "host_build_graph"
TASKS = 16_000  # fit into the default task window, as a graph that is built ahead must
USES = 50
RERUN = peers.Peer("tbb_rerun", "onetbb_rerun.cpp", ("-ltbb",), "libtbb-dev")
_DECODER = Path(__file__).resolve().parents[2] / "examples" / "decoder_layer" / "kernels" / "decoder_orch.cpp"


class Uses(NamedTuple):
    """One run of kernels/replays.cpp. Seconds; `submit` is of all uses but the first."""

    total: float
    submit: float
    first: float
    tasks: int


class Replays:
    """The layer of kernels/replays.cpp, used again and again. A context: the worker closes at its end."""

    def __init__(self, platform: str):
        compiler = KernelCompiler(platform)
        self._worker = Worker(level=2, platform=platform, runtime=RUNTIME)
        self._worker.init()
        self._program = self._worker.register(
            ChipCallable.build(
                signature=[D.INOUT, D.IN, D.INOUT, D.SCALAR, D.SCALAR],
                func_name="bench_replays",
                binary=compiler.compile_orchestration(RUNTIME, KERNELS / "replays.cpp"),
                children=[(0, compiled_kernel(compiler, "empty.cpp", "aiv", []))],
            )
        )

    def __enter__(self) -> Replays:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def run(self, uses: int, recorded: bool) -> Uses:
        """A first use and `uses` more, as a recorded graph or task by task."""
        times = np.zeros(4, dtype=np.int64)
        args = TaskArgs()
        for array in (np.zeros((64, 16), dtype=np.float32), np.zeros((32, 16), dtype=np.float32), times):
            args.add_tensor(self._worker.make_tensor_arg(array), TensorArgType.INOUT)
        args.add_scalar(uses)
        args.add_scalar(int(recorded))
        config = CallConfig()
        if not recorded:
            config.runtime_env.ring_task_window = 65536  # a replay counts as one task
        start = time.perf_counter()
        self._worker.run(self._program, args, config)
        total = time.perf_counter() - start
        return Uses(total, int(times[0]) / 1e9, int(times[2]) / 1e9, int(times[1]))


class Decoder:
    """The orchestration of examples/decoder_layer with kernels that do nothing, on tensors in device memory."""

    _SHAPES = (
        ("steps", 16, 512),
        (16, 512),
        (1, 2, 512),
        (1, 512, 1536),
        (1, 512, 512),
        (1, 512, 1024),
        (1, 512, 1024),
        (1, 1024, 512),
        ("steps", 32),
        ("steps", 32),
        (1, 16, 8, 128, 64),
        (1, 16, 8, 128, 64),
    )

    def __init__(self, platform: str):
        compiler = KernelCompiler(platform)
        core_types = ("aiv", "aic", "aiv", "aiv", "aiv", "aiv", "aiv")
        self._worker = Worker(level=2, platform=platform, runtime=RUNTIME)
        self._worker.init()
        self._program = self._worker.register(
            ChipCallable.build(
                signature=[D.INOUT] * 13,
                func_name="decode",
                binary=compiler.compile_orchestration(RUNTIME, _DECODER),
                children=[(i, compiled_kernel(compiler, "empty.cpp", kind, [])) for i, kind in enumerate(core_types)],
            )
        )
        self._tensors: dict[int, list[Any]] = {}  # by steps

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def _device_tensors(self, steps: int) -> list[Any]:
        if steps not in self._tensors:
            self._tensors[steps] = []
            for shape in self._SHAPES:
                extents = [steps if extent == "steps" else extent for extent in shape]
                buffer = self._worker.malloc(int(np.prod(extents)) * 4)
                self._tensors[steps].append(buffer.tensor(extents, DataType.FLOAT32))
        return self._tensors[steps]

    def run(self, steps: int) -> float:
        """Seconds of a run that decodes that many tokens."""
        calls = np.zeros(1, dtype=np.int32)
        args = TaskArgs()
        for tensor in self._device_tensors(steps):
            args.add_tensor(tensor, TensorArgType.INOUT)
        args.add_tensor(self._worker.make_tensor_arg(calls), TensorArgType.INOUT)
        start = time.perf_counter()
        self._worker.run(self._program, args)
        took = time.perf_counter() - start
        if calls[0] != 1:
            raise RuntimeError(f"the layer was called {calls[0]} times instead of once")
        return took


def measure(platform: str, repeats: int, threads: int, output: Path, notes: list[str]) -> dict[str, float]:
    """Values by the names of run.py's rows."""
    values: dict[str, float] = {}
    with Graphs(platform, runtime=RUNTIME) as ahead, Graphs(platform) as streaming:
        for graph in ("two_inputs", "independent", "chain"):
            built = ahead.sample(graph, TASKS, repeats)
            values[f"ahead_{graph}_us"] = best(built, "total")
            values[f"ahead_{graph}_us_median"] = median(built, "total")
            values[f"ahead_{graph}_streaming_us"] = best(streaming.sample(graph, TASKS, repeats), "total")
            if graph == "two_inputs":
                values["host_graph_build_us_per_task"] = best(built, "submit")
                values["host_graph_build_us_per_task_median"] = median(built, "submit")
                execution = [(s.total - s.submit) / s.tasks * 1e6 for s in built]
                values["host_graph_execute_us_per_task"] = min(execution)
                values["host_graph_execute_us_per_task_median"] = statistics.median(execution)
    with Replays(platform) as bench:
        bench.run(USES, True)
        samples = [(bench.run(USES, True), bench.run(USES, False)) for _ in range(4 * repeats)]
    for name, runs in (("replay", [r for r, _ in samples]), ("replay_plain", [p for _, p in samples])):
        per_task = [s.submit / s.tasks * 1e6 for s in runs]
        values[f"{name}_us_per_task"], values[f"{name}_us_per_task_median"] = min(per_task), statistics.median(per_task)
    replays = [r for r, _ in samples]
    values["replay_us"] = min(s.submit for s in replays) / USES * 1e6
    values["replay_first_use_us"] = min(s.first for s in replays) * 1e6
    values["replay_execute_us_per_task"] = min((s.total - s.submit - s.first) / s.tasks for s in replays) * 1e6
    values["replay_total_us_per_task"] = min((s.total - s.first) / s.tasks for s in replays) * 1e6
    try:
        program = peers.build(RERUN, output)
        values["tbb_rerun_us_per_task"] = min(
            peers.measure(program, TASKS, threads)["layer"] for _ in range(max(1, repeats // 2))
        )
    except FileNotFoundError as missing:
        notes.append(f"{RERUN.name} was not measured: {missing}")
    with Decoder(platform) as decoder:
        decoder.run(1), decoder.run(64)
        one, many = ([decoder.run(steps) for _ in range(4 * repeats)] for steps in (1, 64))
    values["decode_overhead_ms"], values["decode_overhead_ms_median"] = min(one) * 1e3, statistics.median(one) * 1e3
    values["decode_replayed_ms"] = min(many) / 64 * 1e3
    return values
