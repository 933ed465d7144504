"""Recorded graphs, as orchestrations write them: the forms of the calls, the keys, what is handed on or compared."""

from pathlib import Path

import numpy as np
import pytest
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs, CoreCallable
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
