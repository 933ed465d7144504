"""Every code that ends a run: what the text says, that nothing is copied back, and that the same worker goes on."""

import re
from typing import NamedTuple

import pytest
from failures_kit import bench, program, rings
from simpler import errors
from simpler.task_interface import ChipStorageTaskArgs

INVALID = (5, "INVALID_ARGS")


class Case(NamedTuple):
    entry: str
    says: tuple  # what is wrong with its value, the limit, the remedy
    scalars: tuple = ()


ARGUMENT_OBJECTS = [
    Case("tensor_after_scalar", ("tensor 1 was added after a scalar", "there are 1:", "add all tensors first")),
    Case("thirty_three_tensors", ("33", "at most 32 tensors?")),
    Case("seventeen_scalars", ("17", "at most 16 scalars?")),
    Case("scalars_copied_from_outside", ("copy_scalars_from", r"\b2\b", "3 scalars")),
    Case("scalar_offset_that_overflows", ("copy_scalars_from", "2147483647", "3 scalars")),
    Case("dependencies_without_array", ("set_dependencies", r"\b4\b", "array of task ids")),
    Case("dependency_kinds_without_array", ("set_dependencies_with_kinds", r"\b1\b", "array of kinds")),
    Case("dependencies_set_twice", ("set_dependencies", "twice, with 1 and with 1", "one array")),
    Case("too_many_bundled_dependencies", ("add_dep", r"\b5\b", "4", "raise N")),
    Case("timing_slot", ("set_task_timing_slot", r"\b16\b", r"0\.\.15"), (16,)),
    Case("timing_slot", ("set_task_timing_slot", r"-1\b", r"0\.\.15"), (-1,)),
    Case("dump_of_a_foreign_tensor", ("dump", r"0x.* not an argument of this task", "has 1 tensors and 0 sc")),
    Case("dump_of_a_foreign_create_info", ("dump", "0x.* not an argument of this task", "has 1 tensors and 0 sc")),
    Case("dump_of_a_foreign_scalar", ("dump", "0x.* not an argument of this task", "has 1 tensors and 1 sc")),
    Case("dump_of_an_empty_object", ("dump", "no arguments to mark: 0 tensors and 0 scalars")),
    Case("error_of_the_user", ("refused by the caller, model 17",)),
    Case("faulty_dummy", ("tensor 1 was added after a scalar", "there are 1:", "add all tensors first")),
    Case("alloc_of_nothing", ("alloc_tensors", "at least one TensorCreateInfo", "0 tensors")),
    Case("alloc_with_scalar", ("alloc_tensors", "no scalars", "1 scalars")),
    Case("alloc_of_an_existing_tensor", ("alloc_tensors", "argument 1 is an existing tensor", "only TensorCreateInfo")),
    Case("faulty_alloc", ("33", "at most 32 tensors?")),
    Case("automatic_in_manual_scope", ("automatic scope inside a manual one", r"codes\.cpp:\d+", "MANUAL")),
    Case("scope_end_without_begin", ("rt_scope_end without rt_scope_begin", "0 open scopes")),
    Case("scopes_too_deep", ("deeper than 64", r"codes\.cpp:\d+")),
    Case("invalid_dependency", (r"dependency 0 of 1 \(task id 0xffffffffffffffff", "not a task id")),
    Case("dependency_on_a_later_task", (r"dependency 0 of 1 \(task id 0x3e8,", "does not exist yet")),
    Case("dependency_without_wait", (r"dependency 0 of 1 \(task id 0x0, kind 2\)", "without DEP_WAIT")),
    Case("no_kernel", ("at least one kernel", "aic -1, aiv0 -1 and aiv1 -1")),
    Case("unknown_kernel", (r"kernel id 2\b", "incores"), (2,)),
    Case("unknown_kernel", (r"kernel id 1024\b", "incores"), (1024,)),
    Case("unknown_kernel", (r"kernel id 2147483647\b", "incores"), (0x7FFFFFFF,)),
    Case("unknown_kernel", ("at least one kernel", "aic -1, aiv0 -1 and aiv1 -1"), (-1,)),
    Case("block_count", ("at least one block", r"\b0$|asks for 0\b"), (0,)),
    Case("block_count", ("at least one block", "asks for -1"), (-1,)),
    Case("block_count", ("at least one block", "asks for -32768"), (-32768,)),
    Case("uninitialised_descriptor", ("tensor argument 0", "rank 2779096485 of at most 5", "initialised")),
    Case("uninitialised_create_info", ("tensor argument 0", "rank 2779096485 of at most 5", "initialised")),
    Case("predicate_on_no_memory", ("predicate of task 0 in ring 0", "0x1000", "SIGSEGV"), (4096,)),
    Case("faulty_predicate", ("set_predicate: index 64 of dimension 0", "has 64"), (0,)),
    Case("faulty_predicate", ("set_predicate: 700000 indices", "rank 1"), (1,)),
    Case("faulty_predicate", ("set_predicate: the comparison is number 77", r"LE \(6\)"), (2,)),
    Case("faulty_predicate", ("set_predicate: 1 indices", "type number 99"), (3,)),
    Case("faulty_predicate", ("set_predicate: the view begins 1073741824", "of a buffer of 256 bytes"), (4,)),
    Case("get_behind_the_buffer", ("get_tensor_data: the view begins 1073741824", "of a buffer of 256 bytes")),
    Case("get_outside", ("get_tensor_data", "index 64 of dimension 0", "has 64")),
    Case("set_outside", ("set_tensor_data", "index 64 of dimension 1", "has 64")),
    Case("get_with_too_many_indices", ("get_tensor_data", "2 indices", "rank 1")),
    Case("get_ref_past_the_outputs", ("get_ref", "index 1", "1 outputs?")),
]


@pytest.mark.parametrize("case", ARGUMENT_OBJECTS, ids=lambda c: "-".join([c.entry, *map(str, c.scalars)]))
def test_a_refused_call_is_named(worker, case):
    code, name = INVALID
    worker.fail(case.entry, *case.scalars, code=code, name=name, says=(*case.says, "correct the call"))


def test_the_first_error_of_an_argument_object_stays(worker):
    error = worker.fail("error_of_the_user", code=5, name="INVALID_ARGS", by_the_user=True)
    assert "second message" not in str(error)


def test_reset_makes_an_argument_object_good_again(worker):
    worker.run("reset_forgives")
    assert worker.x.tolist() == [3 * i + 7 for i in range(64)]


def test_an_element_of_no_memory_is_logged_and_reads_as_zero(worker, capfd):
    worker.run("element_of_no_memory")
    assert worker.x.tolist() == [3 * i for i in range(64)]
    logged = capfd.readouterr().err
    assert "[ERROR] set_tensor_data" in logged and "[ERROR] get_tensor_data" in logged


# ---- capacity ----


def test_a_scope_holds_one_task_less_than_the_window(worker):
    worker.run("tasks_in_one_scope", 3, config=rings(window=4))
    worker.fail(
        "tasks_in_one_scope",
        4,
        config=rings(window=4),
        code=1,
        name="SCOPE_DEADLOCK",
        says=("holds 3 tasks", "window of 4", "ring_task_window"),
    )


def test_the_default_window_holds_16383_tasks_of_one_scope(worker):
    worker.run("tasks_in_one_scope", 16383)
    worker.fail(
        "tasks_in_one_scope",
        16384,
        code=1,
        name="SCOPE_DEADLOCK",
        says=("holds 16383 tasks", "window of 16384", "ring_task_window"),
    )


def test_an_output_larger_than_the_heap(worker):
    worker.run("one_output", 256, config=rings(heap=1024))
    worker.fail(
        "one_output",
        257,
        config=rings(heap=1024),
        code=2,
        name="HEAP_RING_DEADLOCK",
        says=("output heap of ring 0", "2048 more are needed", "0 of 1024 bytes", "ring_heap"),
    )


def test_outputs_of_one_scope_exhaust_its_heap(worker):
    worker.run("outputs_of_one_scope", 8, config=rings(heap=8192))
    worker.fail(
        "outputs_of_one_scope",
        9,
        config=rings(heap=8192),
        code=2,
        name="HEAP_RING_DEADLOCK",
        says=("output heap of ring 1", "8192 of 8192 bytes", "1024 more", "ring_heap"),
    )


def test_deep_scopes_share_the_window_of_the_last_ring(worker):
    worker.run("nested_scopes", 4, config=rings(window=8))
    worker.fail(
        "nested_scopes",
        8,
        config=rings(window=8),
        code=3,
        name="FLOW_CONTROL_DEADLOCK",
        says=("task window of ring 3", "7 of 7 tasks", "ring_task_window"),
    )


def test_producers_beyond_the_dependency_pool(worker):
    worker.run("many_producers", 4, config=rings(dep_pool=4))
    worker.fail(
        "many_producers",
        128,
        config=rings(dep_pool=4),
        code=4,
        name="DEP_POOL_OVERFLOW",
        says=("dependency pool", "of 4 edges", r"\d+ more are needed", "ring_dep_pool"),
    )


def test_tracked_writes_fill_their_table(worker):
    worker.run("tracked_writes", 2000)
    worker.fail(
        "tracked_writes",
        2500,
        code=11,
        name="TENSORMAP_OVERFLOW",
        says=("table of tracked writes", "655.. of 65536 writes", "32 more are needed", "close scopes|manual_dep"),
    )


@pytest.mark.parametrize(
    "entry, limit, kind", [("vector_cohort", 16, "vector cores"), ("matrix_cohort", 8, "matrix cores")]
)
@pytest.mark.parametrize("excess", [1, 1000, 32000])
def test_a_cohort_larger_than_the_device(worker, entry, limit, kind, excess):
    worker.fail(
        entry,
        limit + excess,
        code=7,
        name="REQUIRE_SYNC_START_INVALID",
        says=(f"{limit + excess} blocks", f"has {limit} {kind}", "at most as many blocks"),
    )


# ---- the orchestration ----


def test_an_explicit_failure_carries_its_text(worker):
    worker.fail("explicit_failure", 12, code=9, name="EXPLICIT_ORCH_FATAL", says=("stopped on purpose, value 12",))


@pytest.mark.parametrize(
    "given, code, name",
    [
        (5, 5, "INVALID_ARGS"),
        (11, 11, "TENSORMAP_OVERFLOW"),
        (0, 9, "EXPLICIT_ORCH_FATAL"),
        (-3, 9, "EXPLICIT_ORCH_FATAL"),
        (100, 100, "SCHEDULER_TIMEOUT"),
    ],
)
def test_an_explicit_failure_may_choose_its_code(worker, given, code, name):
    worker.fail("failure_with_a_code", given, code=code, name=name, says=("the model is bad",), by_the_user=True)


def test_an_explicit_failure_with_a_code_of_the_user(worker):
    with pytest.raises(errors.RunError, match="the model is bad") as caught:
        worker.run("failure_with_a_code", 4711)
    assert caught.value.code == -4711
    assert str(caught.value).endswith("the code is the orchestration's own: look where it reports it")
    worker.check_good()


def test_a_long_failure_text_is_cut(worker):
    error = worker.fail(
        "failure_with_a_long_text", code=9, name="EXPLICIT_ORCH_FATAL", says=(r"0{500}",), by_the_user=True
    )
    assert "..." in str(error)


def test_a_failure_text_that_is_no_text(worker):
    worker.fail("failure_with_a_text_in_latin_1", code=9, name="EXPLICIT_ORCH_FATAL", says=("caf\ufffd 17",))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_failure_text_that_is_cut_inside_a_character(worker, shift):
    worker.fail(
        "failure_with_a_text_cut_inside_a_character",
        shift,
        code=9,
        name="EXPLICIT_ORCH_FATAL",
        says=("\u4e2d{300}",),
        by_the_user=True,
    )


def test_calls_after_a_failure_do_nothing(worker):
    error = worker.fail("calls_after_failure", code=9, name="EXPLICIT_ORCH_FATAL", says=("the first of 2",))
    assert "second" not in str(error)


def test_the_result_of_a_refused_submission_ends_the_orchestration(worker):
    worker.fail("get_ref_after_failure", code=9, name="EXPLICIT_ORCH_FATAL", says=("stopped at 17",))


@pytest.mark.parametrize(
    "entry, says",
    [
        ("orchestration_throws", "no plan for 17 experts"),
        ("orchestration_throws_a_number", "no std::exception"),
        ("orchestration_asserts", r"experts == 16 at .*codes\.cpp:\d+"),
        ("orchestration_reshapes_wrongly", r"valid_reshape.* at .*tensor\.h:\d+"),
        ("orchestration_reads_a_missing_argument", r"argument \d+ was asked for, and the call passed \d+"),
    ],
)
def test_an_exception_of_the_orchestration_ends_the_run(worker, entry, says):
    worker.fail(entry, code=9, name="EXPLICIT_ORCH_FATAL", says=("orchestration threw", says), by_the_user=True)


@pytest.mark.parametrize("index", [1, 31, 1000, -1, -(2**31)])
@pytest.mark.parametrize("kind, scalar", [("tensor", 0), ("scalar", 1)])
def test_an_argument_that_was_not_added_ends_the_run(worker, kind, scalar, index):
    says = (f"CoreTaskArgs: {kind} {index} was asked for, and the object has 1",)
    worker.fail("argument_that_was_not_added", index, scalar, code=9, name="EXPLICIT_ORCH_FATAL", says=says)


@pytest.mark.parametrize("address", [0, 8, 2**63])
def test_a_crash_of_the_orchestration_ends_the_run(worker, address):
    told = 0 if address == 2**63 else address  # the processor does not tell an address that can not exist
    says = ("orchestration", f"SIGSEGV .* at 0x{told:x}")
    worker.fail("orchestration_crashes", address, code=120, name="KERNEL_CRASHED", says=says)


@pytest.mark.parametrize(
    "what, address",
    [("passes_a_wild_tensor", 0x1024), ("passes_wild_dependencies", 0x1000), ("reads_wild_memory", 0x1000)],
)
def test_a_crash_inside_a_call_of_the_api_ends_the_run(worker, what, address):
    says = ("orchestration", f"SIGSEGV .* at 0x{address:x}")
    worker.fail(f"orchestration_{what}", 4096, code=120, name="KERNEL_CRASHED", says=says)


# ---- entry points ----


def test_a_crash_of_the_configuration_function_ends_the_run(worker):
    worker.fail(
        "good",
        expects="configuration_crashes",
        code=120,
        name="KERNEL_CRASHED",
        says=("configuration function", r"SIGSEGV .* at 0x0"),
    )


def test_an_exception_of_the_configuration_function_ends_the_run(worker):
    worker.fail(
        "good",
        expects="configuration_throws",
        code=9,
        name="EXPLICIT_ORCH_FATAL",
        says=("configuration function", r"argument \d+ was asked for, and the call passed \d+"),
    )


def test_too_few_entry_arguments(worker):
    worker.run("good", 1, 2, 3, expects="wants_five")
    with pytest.raises(errors.RunError, match=r"\brun failed with code -1\b") as caught:
        worker.run("good", 1, 2, expects="wants_five")
    error = caught.value
    assert (error.code, error.name) == (-1, "TOO_FEW_ARGUMENTS")
    for words in ("expects 5 arguments", "got 4", "2 tensors", "2 scalars", "expected_arg_count"):
        assert words in str(error)
    assert worker.untouched()
    worker.check_good()


def test_a_missing_configuration_is_a_warning(worker, capfd):
    worker.run("good", expects="no_such_configuration")
    assert '"no_such_configuration"' in capfd.readouterr().err


def test_a_missing_entry_is_named_at_registration(worker):
    with pytest.raises(errors.RunError, match=r"\bregister_callable failed with code -1\b") as caught:
        worker.worker.register(program("no_such_entry"))
    assert '"no_such_entry"' in str(caught.value) and "function_name" in str(caught.value)
    worker.check_good()


def test_code_that_is_no_shared_object(worker):
    from simpler.task_interface import ChipCallable, CoreCallable

    good = program("good")
    bad_code = ChipCallable.build(signature=[], func_name="good", binary=b"\x7fELF but not really", children=[])
    bad_kernel = ChipCallable.build(
        signature=[],
        func_name="good",
        binary=bytes(good)[9376 : 9376 + good.binary_size],
        children=[(3, CoreCallable.build(signature=[], binary=b"nothing"))],
    )
    for broken, says in [(bad_code, "orchestration"), (bad_kernel, "func_id 3")]:
        with pytest.raises(errors.SimplerError, match=says) as caught:
            worker.worker.register(broken)
        assert isinstance(caught.value, RuntimeError)
    worker.check_good()


def test_a_worker_survives_a_hundred_failures_in_a_row():
    with bench() as one:
        for round in range(50):
            with pytest.raises(errors.RunError):
                one.run("explicit_failure", round)
            with pytest.raises(errors.RunError):
                one.run("outputs_of_one_scope", 100, config=rings(heap=8192))
        one.check_good()


def test_a_failed_run_in_the_pipeline_does_not_touch_its_neighbours(worker):
    """Two runs in flight: the first fails, the second succeeds."""
    import numpy as np

    failing, good = (worker.worker.register(program(entry)) for entry in ("explicit_failure", "good"))
    x, y = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32)
    big = np.zeros((256, 64), dtype=np.int32)

    def submit(handle, array):
        args = ChipStorageTaskArgs()
        args.add_tensor(array)
        args.add_tensor(big)
        args.add_scalar(1)
        return worker.worker.submit(handle, args)

    first, second = submit(failing, x), submit(good, y)
    second.wait()
    with pytest.raises(errors.RunError, match="stopped on purpose"):
        first.wait()
    assert np.array_equal(x, np.arange(64)) and not np.array_equal(y, np.arange(64))
    for handle in (failing, good):
        worker.worker.unregister(handle)


# ---- what the host logs ----


def logged_lines(capfd):
    return capfd.readouterr().err.splitlines()


def test_the_host_logs_code_detail_and_hint(worker, capfd):
    with pytest.raises(errors.RunError):
        worker.run("tasks_in_one_scope", 4, config=rings(window=4))
    lines = logged_lines(capfd)
    assert any(re.search(r"\borch_error_code=1\b", line) for line in lines)
    assert any("error detail" in line and "SCOPE_DEADLOCK" in line for line in lines)
    assert any("error hint" in line and "ring_task_window" in line for line in lines)
    assert not any("sched_error_code" in line for line in lines)


def test_a_code_of_the_device_is_logged_as_the_schedulers(worker, capfd):
    from failures_kit import ACT

    with pytest.raises(errors.RunError):
        worker.run("kernel", ACT["DeferOften"], 0, 0, 0, 0)
    lines = logged_lines(capfd)
    assert any(re.search(r"\bsched_error_code=102\b", line) for line in lines)
    assert not any("orch_error_code" in line for line in lines)
