"""Recorded graphs, as orchestrations write them: the forms of the calls, the keys, what is handed on or compared."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CallConfig, ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup import KernelCompiler

SOURCES = Path(__file__).parent / "graph"
RUNTIME = "host_build_graph"
ROWS = 8


@pytest.fixture(scope="module", params=["a2a3sim", "a5sim"])
def program(request):
    compiler = KernelCompiler(request.param)
    kernel = CoreCallable.build(signature=[D.IN, D.OUT], binary=compiler.compile_incore(SOURCES / "affine.cpp", "aiv"))
    callable_ = ChipCallable.build(
        signature=[D.IN, D.OUT, D.OUT, D.SCALAR],
        func_name="forms",
        binary=compiler.compile_orchestration(RUNTIME, SOURCES / "forms_orch.cpp"),
        children=[(0, kernel)],
    )
    worker = Worker(level=2, platform=request.param, runtime=RUNTIME)
    worker.init()
    handle = worker.register(callable_)

    def run(form):
        x = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
        y, calls = np.zeros_like(x), np.zeros(1, dtype=np.int32)
        args = ChipStorageTaskArgs()
        for array in (x, y, calls):
            args.add_tensor(array)
        args.add_scalar(form)
        worker.run(handle, args)
        return x, y, int(calls[0])

    yield run
    worker.close()


# form -> how often a body is called for the eight uses
FORMS = {
    "by_address": (0, 1),
    "by_name_of_the_function": (1, 1),
    "with_a_key": (2, 1),
    "scalars_copied_in_bulk": (3, 1),
    "scalars_copied_by_way_of_other_arguments": (4, 1),
    "scalars_added_as_an_array": (5, 1),
    "a_scalar_that_the_body_computes_with_is_compared": (6, 8),
    "a_lambda": (7, 1),
    "two_keys_are_two_graphs": (8, 2),
    "one_key_with_two_bodies_is_two_graphs": (9, 2),
    "a_scalar_open_to_change_is_not_recorded": (10, 8),
    "begin_end_commit": (11, 1),
    "manual_and_automatic_scopes_are_two_graphs": (12, 2),
}
CONFIGURED = {
    "an_int": (20, [1, 2] * 4, 2),
    "an_int_with_a_key": (21, [1, 2] * 4, 2),
    "several_types": (22, [1, 2, 1, 2, -1, -2, -1, -2], 4),
    "a_float": (23, [1, 2] * 4, 2),
    "several_types_with_a_key": (24, [1, 2] * 4, 2),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_use_has_its_own_tensors_and_scalars(program, name):
    form, bodies = FORMS[name]
    for _ in range(2):  # the second run uses what the first one kept
        x, y, calls = program(form)
        np.testing.assert_array_equal(y, x * np.arange(1, ROWS + 1, dtype=np.float32)[:, None] + np.float32(0.5))
        assert calls == bodies


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_configuration_is_part_of_the_identity(program, name):
    form, factors, bodies = CONFIGURED[name]
    for _ in range(2):
        x, y, calls = program(form)
        np.testing.assert_array_equal(y, x * np.array(factors, dtype=np.float32)[:, None] + np.float32(0.5))
        assert calls == bodies


def _vector_add(runtime):
    """The vector_add example, built for a runtime."""
    kernels = Path(__file__).parents[3] / "examples" / "vector_add" / "kernels"
    compiler = KernelCompiler("a2a3sim")
    binary = compiler.compile_incore(kernels / "add.cpp", "aiv")
    return ChipCallable.build(
        signature=[D.IN, D.IN, D.OUT],
        func_name="vector_add",
        config_name="vector_add_config",
        binary=compiler.compile_orchestration(runtime, kernels / "add_orch.cpp"),
        children=[(0, CoreCallable.build(signature=[D.IN, D.IN, D.OUT], binary=binary))],
    )


def _check_sum(worker, handle, seed):
    a, b = np.random.default_rng(seed).standard_normal((2, 20_000), dtype=np.float32)
    out = np.zeros_like(a)
    args = ChipStorageTaskArgs()
    for array in (a, b, out):
        args.add_tensor(array)
    worker.run(handle, args)
    np.testing.assert_array_equal(out, a + b)


def test_both_runtimes_live_side_by_side_in_one_process():
    runtimes = (RUNTIME, "tensormap_and_ringbuffer")
    workers = [Worker(level=2, platform="a2a3sim", runtime=runtime, device_id=n) for n, runtime in enumerate(runtimes)]
    try:
        handles = []
        for worker, runtime in zip(workers, runtimes):
            worker.init()
            handles.append(worker.register(_vector_add(runtime)))
        for seed in range(6):  # in turn
            _check_sum(workers[seed % 2], handles[seed % 2], seed)
        with ThreadPoolExecutor(2) as pool:  # at once
            for done in [pool.submit(_check_sum, workers[n % 2], handles[n % 2], n) for n in range(12)]:
                done.result()
        loads = [(worker.host_dlopen_count, worker.aicpu_dlopen_count) for worker in workers]
        assert loads == [(1, 0), (0, 1)], "an orchestration is loaded where its runtime has it run"
    finally:
        for worker in workers:
            worker.close()


def test_sizes_that_the_runtime_does_not_have_are_said_to_be_ignored(capfd):
    with Worker(level=2, platform="a2a3sim", runtime=RUNTIME) as worker:
        worker.init()
        handle = worker.register(_vector_add(RUNTIME))
        _check_sum(worker, handle, 1)
        assert "ignored" not in "".join(capfd.readouterr())
        config = CallConfig()
        config.runtime_env.ring_dep_pool = 64
        args = ChipStorageTaskArgs()
        for array in np.zeros((3, 8), dtype=np.float32):
            args.add_tensor(array)
        worker.run(handle, args, config)
        worker.run(handle, args, config)
        assert "".join(capfd.readouterr()).count("ring_dep_pool and the sizes of rings 1 to 3 are ignored") == 1
