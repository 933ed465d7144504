"""Runs on a simulated chip: one kernel, whose orchestration is told by scalars what to do."""

import mmap
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
from simpler import errors, run_handle
from simpler.task_interface import (
    ArgDirection,
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipTensor,
    CoreCallable,
    DataType,
    RunTiming,
    TaskArgs,
    TensorArgType,
)
from simpler.worker import Worker
from simpler_setup import KernelCompiler

PLATFORM, RUNTIME = "a2a3sim", "tensormap_and_ringbuffer"
IN, OUT, INOUT = ArgDirection.IN, ArgDirection.OUT, ArgDirection.INOUT
LIMIT = 60.0
ADD, FAIL = "add", "fail"

# out[i] += in[i] * factor for all elements, after a pause of some milliseconds. A gate is the address of two words: the
# kernel sets the first, and goes on when somebody has set the second.
KERNEL = """
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include "tensor.h"
extern "C" void kernel_entry(int64_t *args) {
  const ChipTensor *in = reinterpret_cast<const ChipTensor *>(args[0]);
  const ChipTensor *out = reinterpret_cast<const ChipTensor *>(args[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(args[3]));
  if (auto *gate = reinterpret_cast<std::atomic<int32_t> *>(args[4]); gate != nullptr) {
    gate[0] = 1;
    while (gate[1] == 0) std::this_thread::yield();
  }
  const int32_t *src = reinterpret_cast<const int32_t *>(in->buffer.addr) + in->start_offset;
  int32_t *dst = reinterpret_cast<int32_t *>(out->buffer.addr) + out->start_offset;
  for (uint64_t i = 0; i < in->numel(); ++i) dst[i * out->strides[0]] += src[i * in->strides[0]] * int32_t(args[2]);
}
"""

ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" __attribute__((visibility("default"))) void add(const ChipTaskArgs &in) {
  CoreTaskArgs task;
  task.add_input(in.tensor(0).ref());
  task.add_inout(in.tensor(1).ref());
  task.add_scalar(in.scalar(0));
  task.add_scalar(in.scalar(1));
  task.add_scalar(in.scalar(2));
  rt_submit_aiv_task(0, task);
}
extern "C" __attribute__((visibility("default"))) void fail(const ChipTaskArgs &in) {
  add(in);
  rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "asked to fail with %d", 17);
}
extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig many(const ChipTaskArgs &) {
  PTO2OrchestrationConfig c{};
  c.expected_arg_count = 9;
  return c;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    (folder / "kernel.cpp").write_text(KERNEL)
    (folder / "orchestration.cpp").write_text(ORCHESTRATION)
    compiler = KernelCompiler(PLATFORM)
    include = compiler.get_orchestration_include_dirs(RUNTIME)
    kernel = compiler.compile_incore(str(folder / "kernel.cpp"), core_type="aiv", extra_include_dirs=include)
    orchestration = compiler.compile_orchestration(RUNTIME, str(folder / "orchestration.cpp"))

    def build(entry=ADD, signature=(IN, INOUT), config=""):
        core = CoreCallable.build(signature=[IN, INOUT], binary=kernel)
        return ChipCallable.build(list(signature), entry, orchestration, [(0, core)], config)

    return build


@pytest.fixture(scope="module")
def worker():
    with Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_clusters=2, sim_threads=2) as ready:
        ready.init()
        yield ready


@pytest.fixture(scope="module")
def add(worker, programs):
    return worker.register(programs())


def arguments(source, target, factor=1, pause_ms=0, make=TaskArgs, gate=None):
    args = make()
    if make is TaskArgs:
        args.add_tensor(source, TensorArgType.INPUT)
        args.add_tensor(target, TensorArgType.INOUT)
    else:
        args.add_tensor(source)
        args.add_tensor(target)
    args.add_scalar(factor)
    args.add_scalar(pause_ms)
    args.add_scalar(0 if gate is None else gate.ctypes.data)
    return args


def ones(n=16):
    return np.ones(n, np.int32)


# ---- arguments ----


@pytest.mark.parametrize("wrap", [lambda w, a: a, lambda w, a: torch.from_numpy(a), lambda w, a: memoryview(a),
                                  lambda w, a: w.make_tensor_arg(a),
                                  lambda w, a: ChipTensor.make(a.ctypes.data, a.shape, DataType.INT32)])  # fmt: skip
@pytest.mark.parametrize("make", [TaskArgs, ChipStorageTaskArgs])
def test_arrays_of_every_kind_go_in_and_come_back(worker, add, wrap, make):
    a, b = np.arange(16, dtype=np.int32), ones()
    timing = worker.run(add, arguments(wrap(worker, a), wrap(worker, b), 3, make=make))
    assert b.tolist() == (1 + 3 * a).tolist() and a.tolist() == list(range(16))
    assert isinstance(timing, RunTiming) == (make is ChipStorageTaskArgs)
    assert worker.last_run_timing.host_wall_ns > 0


def test_an_output_starts_from_zero_and_not_from_what_an_earlier_run_left(worker, programs):
    handle = worker.register(programs(signature=(IN, OUT)))
    for factor in (3, 5):
        target = ones()
        worker.run(handle, arguments(ones(), target, factor))
        assert target.tolist() == [factor] * 16, "neither the host's values nor those of the run before"


def test_device_memory_is_used_in_place(worker, add):
    dev = worker.malloc(64)
    worker.copy_to(dev, np.zeros(16, np.int32))
    for _ in range(3):
        worker.run(add, arguments(ones(), dev.tensor((16,), DataType.INT32)))
    worker.run(add, arguments(ones(8), dev.tensor((8,), DataType.INT32, byte_offset=32), 10))
    older = ChipTensor.make(dev, (16,), DataType.INT32, child_memory=True)
    worker.run(add, arguments(ones(), older, 100, make=ChipStorageTaskArgs))
    back = np.zeros(16, np.int32)
    worker.copy_from(back, dev)
    assert back.tolist() == [103] * 8 + [113] * 8
    worker.free(dev)


def test_device_memory_that_is_not_the_workers_is_refused(worker, add):
    freed = worker.malloc(64)
    tensor, older = freed.tensor((16,), DataType.INT32), ChipTensor.make(freed, (16,), DataType.INT32, True)
    worker.free(freed)
    with Worker(level=2, platform=PLATFORM, runtime=RUNTIME, device_id=1) as other:
        other.init()
        foreign = other.malloc(64).tensor((16,), DataType.INT32)
        for bad, make in ((tensor, TaskArgs), (older, ChipStorageTaskArgs), (foreign, TaskArgs)):
            with pytest.raises(ValueError, match="entry tensor 1 is device memory, 64 bytes at 0x[0-9a-f]+, .* freed"):
                worker.run(add, arguments(ones(), bad, make=make))
    dev = worker.malloc(64)
    with pytest.raises(ValueError, match="entry tensor 1"):
        older = ChipTensor.make(int(dev) + 4, (16,), DataType.INT32, True)
        worker.run(add, arguments(ones(), older, make=ChipStorageTaskArgs))
    worker.free(dev)


@pytest.mark.parametrize("make", [TaskArgs, ChipStorageTaskArgs])
def test_read_only_memory_is_never_written(worker, programs, make):
    frozen = ones()
    frozen.flags.writeable = False
    target = np.zeros(16, np.int32)
    declared, undeclared = (worker.register(programs(signature=s)) for s in ((IN, INOUT), ()))
    worker.run(declared, arguments(frozen, target, 2, make=make))
    worker.run(undeclared, arguments(frozen, target, 3, make=make))  # a run writes back what is not declared
    assert target.tolist() == [5] * 16
    with pytest.raises(ValueError, match="tensor 0 is read-only, but the callable's signature says INOUT"):
        worker.run(worker.register(programs(signature=(INOUT, INOUT))), arguments(frozen, target, make=make))
    if make is ChipStorageTaskArgs:  # which has no tags that could refuse it earlier
        mapped = np.frombuffer(mmap.mmap(-1, 64, prot=mmap.PROT_READ), np.int32)
        worker.run(undeclared, arguments(frozen, mapped, make=make))
        with pytest.raises(ValueError, match="tensor 1 is read-only"):
            worker.run(declared, arguments(frozen, mapped, make=make))
        assert mapped.tolist() == [0] * 16


def test_views_of_one_array_stay_one_array(worker, add):
    board = np.arange(32, dtype=np.int32)
    worker.run(add, arguments(board[:16], board[8:24]))  # they overlap: the kernel must see that too
    expected = np.arange(32, dtype=np.int32)
    for i in range(16):
        expected[8 + i] += expected[i]
    assert board.tolist() == expected.tolist()


def test_a_strided_view_leaves_its_gaps_alone(worker, programs):
    handle = worker.register(programs(signature=(IN, INOUT)))
    board = np.zeros(32, np.int32)
    board[1::2] = 7
    even = worker.make_tensor_arg(board[::2], (16,), DataType.INT32, strides=(2,))
    worker.run(handle, arguments(ones(), even, 5))
    assert board.tolist() == [5, 7] * 16


def test_shared_buffers_are_seen_by_both_sides(worker, add):
    source, target = worker.create_buffer(64), worker.create_buffer(64)
    source.shm.buf[:] = bytes(ones())
    worker.run(add, arguments(source.tensor((16,), DataType.INT32), target.tensor((16,), DataType.INT32), 4))
    assert np.frombuffer(bytes(target.shm.buf[:64]), np.int32).tolist() == [4] * 16
    worker.release_buffer(source)
    worker.release_buffer(target)


def test_read_only_inputs_are_never_written(worker, programs):
    unsigned = worker.register(programs(signature=()))
    target = np.zeros(4, np.int32)
    worker.run(unsigned, arguments(np.frombuffer(bytes(ones(4)), np.int32), target))
    assert target.tolist() == [1] * 4
    wrong = worker.register(programs(signature=(OUT, INOUT)))
    with pytest.raises(ValueError, match="read-only"):
        worker.run(wrong, arguments(np.frombuffer(bytes(ones(4)), np.int32), target))


@pytest.mark.parametrize(
    "arguments_, config, kind, text",
    [
        ([], None, TypeError, "TaskArgs"),
        (TaskArgs(), 5, TypeError, "CallConfig"),
    ],
)
def test_wrong_types_at_submission(worker, add, arguments_, config, kind, text):
    with pytest.raises(kind, match=text):
        worker.submit(add, arguments_, config)


def test_options_are_checked_at_submission(worker, add):
    config, target = CallConfig(), ones()
    config.runtime_env.ring_task_window = 3
    with pytest.raises(ValueError, match="ring_task_window"):
        worker.run(add, arguments(ones(), target), config)
    config.runtime_env.ring_task_window = 0
    config.aicpu_thread_num = 1
    with pytest.raises(ValueError, match="aicpu_thread_num"):
        worker.run(add, arguments(ones(), target), config)
    assert target.tolist() == [1] * 16


# ---- order ----


def test_runs_in_flight_see_what_older_ones_left(worker, add):
    a, b, c = ones(), np.zeros(16, np.int32), np.zeros(16, np.int32)
    runs = [worker.submit(add, arguments(a, b, 2, pause_ms=30)), worker.submit(add, arguments(b, c, 3))]
    runs += [worker.submit(add, arguments(c, a, 1)), worker.submit(add, arguments(a, b, 1))]
    for run in reversed(runs):
        run.wait(LIMIT)
    assert (a[0], b[0], c[0]) == (7, 9, 6)


def test_memory_calls_wait_for_runs_that_use_the_memory(worker, add):
    dev, back = worker.malloc(64), np.zeros(16, np.int32)
    worker.copy_to(dev, back)
    run = worker.submit(add, arguments(ones(), dev.tensor((16,), DataType.INT32), 5, pause_ms=50))
    worker.copy_from(back, dev)
    assert back[0] == 5 and run.done
    worker.submit(add, arguments(ones(), dev.tensor((16,), DataType.INT32), 5, pause_ms=50))
    worker.free(dev)


def test_a_buffer_in_use_is_not_released(worker, add):
    target, gate = worker.create_buffer(64), np.zeros(2, np.int32)
    run = worker.submit(add, arguments(ones(), target.tensor((16,), DataType.INT32), gate=gate))
    with pytest.raises(RuntimeError, match="in flight"):
        worker.release_buffer(target)
    gate[1] = 1
    run.wait(LIMIT)
    worker.release_buffer(target)


def test_arguments_may_be_changed_after_submission(worker, add):
    target, source = np.zeros(16, np.int32), ones()
    args = arguments(source, target, 2, pause_ms=50)
    run = worker.submit(add, args)
    source[:] = 100
    args.clear()
    run.wait(LIMIT)
    assert target.tolist() == [2] * 16


def test_unregistering_waits_for_runs_of_the_callable(worker, programs):
    handle = worker.register(programs(signature=(IN, INOUT, IN)))
    run = worker.submit(handle, arguments(ones(), ones(), pause_ms=50))
    worker.unregister(handle)
    assert run.done
    with pytest.raises(KeyError, match="not live"):
        worker.submit(handle, TaskArgs())


def test_many_threads_submit(worker, add):
    targets = [np.zeros(16, np.int32) for _ in range(4)]

    def work(target):
        for _ in range(25):
            worker.run(add, arguments(ones(), target))

    threads = [threading.Thread(target=work, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert [t[0] for t in targets] == [25] * 4


# ---- failure ----


def test_a_failed_run_tells_why_and_the_worker_goes_on(worker, programs, add):
    bad = worker.register(programs(FAIL))
    target = ones()
    run = worker.submit(bad, arguments(ones(), target))
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"\brun failed with code -9 \(run_prepared failed with code -9\): "
        ) as caught:
            run.wait(LIMIT)
    assert isinstance(caught.value, errors.RunError)
    assert caught.value.code == -9 and "asked to fail with 17" in str(caught.value)
    assert run.done and run.timing is None and target.tolist() == [1] * 16
    for _ in range(3):
        worker.run(add, arguments(ones(), target))
    assert target.tolist() == [4] * 16


def test_too_few_arguments(worker, programs):
    handle = worker.register(programs(config="many"))
    with pytest.raises(RuntimeError, match="failed with code -1"):
        worker.run(handle, arguments(ones(), ones()))


def test_code_that_cannot_be_loaded(worker, programs):
    before = len(worker._chip_worker._registry.entries())
    core = CoreCallable.build(signature=[], binary=b"not a shared object")
    for blob in (
        programs("no_such_entry"),
        ChipCallable.build([], "f", b"not a shared object", []),
        ChipCallable.build([], ADD, b"", [(0, core)]),
    ):
        with pytest.raises(RuntimeError, match="register_callable failed with code") as caught:
            worker.register(blob)
        assert isinstance(caught.value, errors.RunError)
    assert len(worker._chip_worker._registry.entries()) == before


def test_waiting_can_be_interrupted(worker, add):
    target, gate = ones(), np.zeros(2, np.int32)
    run, main, over = worker.submit(add, arguments(ones(), target, gate=gate)), threading.get_ident(), threading.Event()

    def interrupt():
        while sys._current_frames()[main].f_code.co_filename != run_handle.__file__ and not over.is_set():
            time.sleep(0.001)
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            run.wait(LIMIT)
        assert not run.done, "the kernel still waits"
    finally:
        over.set()
        gate[1] = 1
        thread.join()
    run.wait(LIMIT)
    assert target.tolist() == [2] * 16


def test_other_python_threads_go_on_while_a_run_is_waited_for(worker, add):
    gate = np.zeros(2, np.int32)

    def let_it_through():
        while gate[0] == 0 and run_goes_on.is_set():
            time.sleep(0.001)
        gate[1] = 1

    run_goes_on = threading.Event()
    run_goes_on.set()
    thread = threading.Thread(target=let_it_through)
    thread.start()
    try:
        worker.run(add, arguments(ones(), ones(), gate=gate))
    finally:
        run_goes_on.clear()
        thread.join()
    assert gate.tolist() == [1, 1]


# ---- life ----


def test_closing_finishes_runs_in_flight(programs):
    worker, target = Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_clusters=1), ones()
    handle = worker.register(programs())
    worker.init()
    run = worker.submit(handle, arguments(ones(), target, pause_ms=100))
    worker.close()
    assert target.tolist() == [2] * 16 and run.done and run.wait() is None
    with pytest.raises(RuntimeError):
        worker.run(handle, TaskArgs())


def test_loads_are_counted_at_registration(programs):
    with Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_clusters=1) as worker:
        handle = worker.register(programs())
        assert worker.aicpu_dlopen_count == 0
        worker.init()
        assert worker.aicpu_dlopen_count == 1
        again = worker.register(programs())
        worker.run(handle, arguments(ones(), ones()))
        assert (worker.aicpu_dlopen_count, worker.host_dlopen_count, worker.run_stream_set_create_count) == (1, 0, 0)
        worker.unregister(handle)
        worker.unregister(again)
        worker.register(programs())
        assert worker.aicpu_dlopen_count == 2


def test_a_device_serves_the_next_worker_after_a_failure(programs):
    for entry in (FAIL, ADD):
        with Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_clusters=1) as worker:
            worker.init()
            handle, target = worker.register(programs(entry)), ones()
            if entry is FAIL:
                with pytest.raises(errors.RunError):
                    worker.run(handle, arguments(ones(), target))
            else:
                worker.run(handle, arguments(ones(), target))
                assert target[0] == 2


# ---- slots and leases of the chip worker ----


def test_slots_by_number(worker, programs):
    chip, target = worker._chip_worker, np.zeros(16, np.int32)
    chip._register_callable_at_slot(63, programs())
    with pytest.raises(RuntimeError, match="register_callable failed.*occupied"):
        chip._prepare_callable_at_slot(63, programs())
    args = arguments(ones(), target, make=ChipStorageTaskArgs)
    assert isinstance(chip._run_slot(63, args), RunTiming)
    chip._run_slot_with_pipeline_lease(63, args, 0, 1)
    first = chip._prepare_native_run_with_pipeline_lease(63, args, 0, 2)
    with pytest.raises(RuntimeError, match="unregister_callable failed"):
        chip._unregister_slot(63)
    with pytest.raises(RuntimeError, match="unfinished native run"):
        worker.submit(worker.register(programs()), TaskArgs())
    chip._launch_native_run(first)
    chip._wait_native_run(first)
    assert chip._poll_native_run(first)
    chip._finalize_native_run(first)
    assert target.tolist() == [3] * 16
    chip._unregister_slot(63)
    with pytest.raises(RuntimeError, match="slot 63 is empty"):
        chip._run_slot(63, args)


def test_runs_by_handle_on_the_chip_worker(worker, programs):
    chip, target = worker._chip_worker, np.zeros(16, np.int32)
    handle = chip.register_callable(programs())
    args = arguments(ones(), target, make=ChipStorageTaskArgs)
    assert isinstance(chip.run(handle, args, aicpu_thread_num=3), RunTiming)
    with pytest.raises(TypeError, match="no field 'aicpu_threads'"):
        chip.run(handle, args, aicpu_threads=3)
    with pytest.raises(ValueError, match="ring_heap"):
        chip.run(handle, args, CallConfig(), runtime_env=_tiny_heap())
    assert target.tolist() == [1] * 16
    chip.unregister_callable(handle)


def _tiny_heap():
    config = CallConfig()
    config.runtime_env.ring_heap = 1
    return config.runtime_env
