"""Worker and ChipWorker without running anything: options, states, memory, buffers, callables."""

import gc
import threading
from types import SimpleNamespace

import _task_interface as native
import numpy as np
import pytest
import torch
from simpler import _log, errors
from simpler.buffer import Buffer, intern_worker_path, re_export, worker_path_for_id
from simpler.task_interface import (
    AccessMode,
    ArgDirection,
    BackendKind,
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipWorker,
    DataType,
    TaskArgs,
    TensorArgType,
)
from simpler.worker import Worker
from simpler_setup.runtime_builder import RuntimeBuilder
from simpler_setup.scene.options import worker_settings

PLATFORM, RUNTIME = "a2a3sim", "tensormap_and_ringbuffer"


def make(**changes):
    return Worker(level=2, **{"platform": PLATFORM, "runtime": RUNTIME, **changes})


@pytest.fixture(scope="module")
def worker():
    with make(sim_clusters=1, sim_threads=1) as ready:
        ready.init()
        yield ready


# ---- options ----


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"platform": "a2a3sym"}, ValueError, "did you mean 'a2a3sim'.*supported: a2a3, a2a3sim, a5, a5sim"),
        ({"runtime": "host_build_grap"}, ValueError, "did you mean 'host_build_graph'"),
        ({"platform": 3}, TypeError, "platform"),
        ({"device_id": -1}, ValueError, "device_id is -1"),
        ({"device_id": "0"}, TypeError, "device_id"),
        ({"device_id": True}, TypeError, "device_id"),
        ({"sim_clusters": 0}, ValueError, "sim_clusters is 0; allowed on a2a3sim: 1 to 24"),
        ({"sim_clusters": 25}, ValueError, "1 to 24"),
        ({"platform": "a5sim", "sim_clusters": 37}, ValueError, "1 to 36"),
        ({"sim_threads": 1025}, ValueError, "1 to 1024"),
        ({"sim_threads": 1.5}, TypeError, "sim_threads"),
        ({"startup_timeout_s": 0}, ValueError, "startup_timeout_s"),
        ({"startup_timeout_s": float("nan")}, ValueError, "positive"),
        ({"startup_timeout_s": "1"}, TypeError, "startup_timeout_s"),
    ],
)
def test_bad_options_are_refused_at_construction(options, kind, text):
    with pytest.raises(kind, match=text) as caught:
        make(**options)
    assert isinstance(caught.value, errors.SimplerError)


@pytest.mark.parametrize("level, kind, text", [("2", TypeError, "level"), (True, TypeError, "level"),
                                               (3, ValueError, "level 3 needs.*not in this version")])  # fmt: skip
def test_levels_of_this_version(level, kind, text):
    with pytest.raises(kind, match=text):
        Worker(level=level, num_sub_workers=1)
    for low in (0, 1, -1):
        with pytest.raises(ValueError, match="level 2"):
            Worker(level=low).init()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"plattform": 1}, "'plattform' is unknown.*did you mean 'platform'"),
        ({"build": True}, "'build' is unknown and has no effect"),
        ({"device_ids": [0, 1]}, "'device_ids' has no effect at level 2"),
        ({"platform": "a2a3", "sim_threads": 2}, "'sim_threads' has no effect on a2a3: it is not a simulator"),
    ],
)
def test_options_without_effect_say_so_and_are_kept(options, text):
    with pytest.warns(UserWarning, match=text):
        worker = make(**options)
    assert all(worker._config[key] == value for key, value in options.items())


def test_an_emulated_boards_sizes_come_from_the_environment_and_options_say_so(monkeypatch):
    monkeypatch.setenv("SIMPLER_EMULATED_VENDOR", "/a/folder")
    with pytest.warns(UserWarning, match="'sim_clusters' has no effect on a5.*SIMPLER_SIM_CLUSTERS"):
        make(platform="a5", sim_clusters=2)
    settings, [note] = worker_settings("a2a3", 2, 3)
    assert settings == {} and "--sim-clusters, --sim-threads has no effect on a2a3: " in note
    assert "SIMPLER_SIM_CLUSTERS and SIMPLER_SIM_THREADS" in note


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_engines_for_asynchronous_copies_are_refused_at_init_where_there_are_none(platform, runtime):
    worker = make(platform=platform, runtime=runtime, enable_sdma=True)
    with pytest.raises(
        RuntimeError, match=f"simpler_init failed with code -2: enable_sdma .* {platform} .*leave"
    ) as caught:
        worker.init()
    assert isinstance(caught.value, errors.DeviceError) and caught.value.code == -2
    worker.close()
    chip = ChipWorker()
    with pytest.raises(errors.DeviceError, match="enable_sdma"):
        chip.init(0, RuntimeBuilder(platform).get_binaries(runtime), enable_sdma=True)
    chip.init(0, RuntimeBuilder(platform).get_binaries(runtime))  # the refusal changed nothing
    chip.finalize()


@pytest.mark.parametrize("missing", ["platform", "runtime"])
def test_platform_and_runtime_are_needed_to_start(missing):
    worker = make(**{missing: None})
    with pytest.raises(KeyError, match=missing):
        worker.init()
    worker.close()


def test_simulator_sizes_reach_the_device():
    with make(sim_clusters=3, sim_threads=2) as worker:
        worker.init()
        native = worker._chip_worker._impl
        assert (native.cluster_count, native.thread_count) == (3, 2)


# ---- life ----


def test_a_new_worker_serves_nothing_but_registration():
    worker = make()
    for use in (
        lambda: worker.run(None),
        lambda: worker.submit(None),
        lambda: worker.malloc(8),
        lambda: worker.free(1),
        lambda: worker.create_buffer(8),
        lambda: worker.committed_device_memory(),
    ):
        with pytest.raises(RuntimeError, match="READY"):
            use()
    assert (worker.aicpu_dlopen_count, worker.host_dlopen_count, worker.live_domains) == (0, 0, {})
    assert worker._initialized is False and worker.last_run_timing is None
    worker.close()


def test_closing_is_final_and_repeatable():
    worker = make()
    worker.init()
    assert worker._initialized
    with pytest.raises(RuntimeError, match="already initialized"):
        worker.init()
    worker.close()
    worker.close()
    handle = ChipCallable.build(signature=[], func_name="f", binary=b"", children=[])
    for use in (lambda: worker.init(), lambda: worker.malloc(8), lambda: worker.register(handle)):
        with pytest.raises(RuntimeError):
            use()


def test_only_the_thread_that_started_a_worker_closes_it():
    worker, failures = make(), []
    worker.init()

    def close():
        try:
            worker.close()
        except RuntimeError as error:
            failures.append(str(error))

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert len(failures) == 1 and "thread that called init" in failures[0]
    worker.malloc(8)
    worker.close()


def test_a_failed_start_is_final():
    worker = make()
    config = CallConfig()
    config.runtime_env.ring_heap = 1
    with pytest.raises(ValueError, match="ring_heap"):
        worker.init(prewarm_config=config)
    with pytest.raises(RuntimeError, match="failed earlier"):
        worker.init()
    worker.close()


def test_with_closes_and_does_not_start():
    with make() as worker:
        assert not worker._initialized
        worker.init()
    with pytest.raises(RuntimeError):
        worker.malloc(8)


def test_workers_follow_each_other_in_one_process():
    for _ in range(3):
        with make() as worker:
            worker.init()
            worker.free(worker.malloc(64))


def test_a_worker_that_is_dropped_without_close_takes_its_device_along():
    worker = make()
    worker.init()
    del worker
    gc.collect()
    with make() as again:
        again.init()


# ---- device memory ----


def test_an_allocation_is_a_buffer_and_an_address(worker):
    dev = worker.malloc(64)
    assert isinstance(dev, Buffer) and dev.nbytes == 64 and dev.backend_kind == BackendKind.DEVICE_MALLOC
    address = int(dev)
    assert dev == address and dev != 0 and not dev == address + 1 and hash(dev) == hash(address)
    assert f"{dev:x}" == f"{address:x}" and len({dev, address}) == 1 and range(2**70)[dev] == address
    args = TaskArgs()
    args.add_scalar(dev)
    assert args.scalar(0) == address
    worker.free(dev)


def test_allocations_are_counted(worker):
    before = worker.committed_device_memory()
    dev = worker.malloc(4096)
    assert worker.committed_device_memory() == before + 4096
    worker.free(dev)
    assert worker.committed_device_memory() == before
    for size in (0, -1):
        with pytest.raises(ValueError, match="nbytes"):
            worker.malloc(size)


@pytest.mark.parametrize("host", [np.arange(16, dtype=np.int32), torch.arange(16, dtype=torch.int32),
                                  bytearray(range(64)), np.arange(8, dtype=np.float64)])  # fmt: skip
def test_copies_go_both_ways(worker, host):
    dev, back = worker.malloc(64), bytearray(64)
    worker.copy_to(dev, host)
    worker.copy_from(back, dev)
    assert bytes(back) == np.asarray(host).tobytes()
    worker.free(dev)


def test_older_copy_forms_take_addresses_and_a_size(worker):
    source, back = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    dev = worker.malloc(64, worker_id=0)
    worker.copy_to(dev, source.ctypes.data, 64)
    worker.copy_from(back.ctypes.data, int(dev) + 32, 32, 0)
    assert back[:8].tolist() == list(range(8, 16))
    worker.copy_from(dst_ptr=back.ctypes.data, src_ptr=int(dev), size=64, worker_id=0)
    assert back.tolist() == source.tolist()
    worker.copy_to(dst=dev, src=np.full(16, 7, np.int32), size=4)
    worker.copy_from(back, dev)
    assert back[:2].tolist() == [7, 1]
    worker.free(int(dev))


@pytest.mark.parametrize(
    "use, kind, text",
    [
        (lambda w, d, s: w.copy_to(d, np.zeros(17, np.int32)), ValueError, "68 bytes"),
        (lambda w, d, s: w.copy_from(np.zeros(17, np.int32), d), ValueError, "68 bytes"),
        (lambda w, d, s: w.copy_from(b"1234", d), TypeError, "read-only"),
        (lambda w, d, s: w.copy_to(s, np.zeros(4, np.int32)), ValueError, "host memory"),
        (lambda w, d, s: w.copy_to(d, d), ValueError, "both sides"),
        (lambda w, d, s: w.copy_to(d, 5), TypeError, "size"),
        (lambda w, d, s: w.copy_to(d, "text"), TypeError, "host memory"),
        (lambda w, d, s: w.copy_to(d, np.zeros(4), 33), ValueError, "size is 33"),
        (lambda w, d, s: w.copy_to(int(d) + 60, np.zeros(2, np.int32)), ValueError, None),
        (lambda w, d, s: w.copy_to("dev", np.zeros(2)), TypeError, "device side"),
        (lambda w, d, s: w.copy_to(d), TypeError, "src"),
        (lambda w, d, s: w.copy_to(d, np.zeros(2), dst_ptr=5), TypeError, "dst"),
        (lambda w, d, s: w.malloc(8, worker_id=1), ValueError, "worker_id is 1"),
        (lambda w, d, s: w.free(int(d) + 8), ValueError, "not the start"),
        (lambda w, d, s: w.free(s), ValueError, "host memory"),
        (lambda w, d, s: w.free("x"), TypeError, "address"),
        (lambda w, d, s: w.release_buffer(d), ValueError, "free\\(\\)"),
        (lambda w, d, s: w.release_buffer(5), TypeError, "Buffer"),
        (lambda w, d, s: w.create_buffer(0), ValueError, "nbytes"),
    ],
)
def test_memory_misuse(worker, use, kind, text):
    dev, shared = worker.malloc(64), worker.create_buffer(64)
    try:
        with pytest.raises(kind, match=text):
            use(worker, dev, shared)
    finally:
        worker.free(dev)
        worker.release_buffer(shared)


def test_freed_memory_is_dead_under_all_its_names(worker):
    dev = worker.malloc(64)
    address = int(dev)
    worker.free(dev)
    for use in (
        lambda: worker.free(dev),
        lambda: worker.free(address),
        lambda: worker.copy_to(dev, np.zeros(2)),
        lambda: worker.copy_from(np.zeros(2), dev),
        lambda: dev.tensor((4,), DataType.INT32),
    ):
        with pytest.raises(ValueError):
            use()


def test_device_buffers_of_another_worker_are_refused(worker):
    with make(device_id=1) as other:
        other.init()
        foreign = other.malloc(64)
        with pytest.raises(ValueError, match="another worker"):
            worker.copy_to(foreign, np.zeros(2))


# ---- shared buffers ----


def test_shared_buffers_have_growing_identities_and_zeroed_bytes(worker):
    a, b = worker.create_buffer(8), worker.create_buffer(100)
    assert b.identity.buffer_id > a.identity.buffer_id and a.identity.generation == 1
    assert a.identity.owner_instance_id == b.identity.owner_instance_id
    assert (a.nbytes, b.nbytes, bytes(a.shm.buf[:8])) == (8, 100, bytes(8))
    assert a.to_descriptor().body.decode() == a.shm.name
    for buffer in (a, b):
        worker.release_buffer(buffer)
        worker.release_buffer(buffer)
        with pytest.raises(ValueError, match="closed"):
            buffer.tensor((1,), DataType.INT8)


def test_closing_a_buffer_with_live_views_is_retried(worker):
    buffer = worker.create_buffer(64)
    view = buffer.shm.buf[:4]
    with pytest.raises(BufferError):
        buffer.close()
    assert buffer.unlinked and buffer.closed
    view.release()
    buffer.close()


def test_views_of_buffers(worker):
    buffer = worker.create_buffer(64)
    t = buffer.tensor((2, 2), DataType.INT32, strides=(4, 1), byte_offset=8)
    assert (t.shapes, t.strides, t.byte_offset, t.dtype) == ((2, 2), (4, 1), 8, DataType.INT32.value)
    assert buffer.tensor([2, 3], 2).strides == (3, 1)
    with pytest.raises(ValueError):
        buffer.tensor((17,), DataType.INT32)
    again = re_export(buffer.to_descriptor())
    assert again.identity == buffer.identity and again == buffer and again.tensor((4,), 0).buffer == t.buffer
    worker.release_buffer(buffer)


def test_paths_are_numbers_in_this_process():
    assert intern_worker_path("") == 0 and intern_worker_path("a/b") == intern_worker_path("a/b") != 0
    assert worker_path_for_id(intern_worker_path("a/b")) == "a/b"


# ---- host arrays as tensors ----


@pytest.mark.parametrize("wrap", [lambda a: a, torch.from_numpy])
def test_views_of_one_array_share_an_identity(worker, wrap):
    whole = wrap(np.arange(64, dtype=np.int32).reshape(8, 8))
    a, b = worker.make_tensor_arg(whole), worker.make_tensor_arg(whole[2:4], (2, 8), DataType.INT32.value)
    assert a.buffer == b.buffer and (a.byte_offset, b.byte_offset) == (0, 64) and a.shapes == (8, 8)
    column = worker.make_tensor_arg(whole[:, 1], (8,), DataType.INT32, strides=(8,))
    assert column.buffer == a.buffer and (column.byte_offset, column.strides) == (4, (8,))
    assert a.buffer.backend_kind == BackendKind.FORK_SHM and a.buffer.access == AccessMode.READWRITE


def test_the_tensor_keeps_its_array(worker):
    t = worker.make_tensor_arg(np.full(1000, 7, np.int32))
    args = TaskArgs()
    args.add_tensor(t)
    del t
    gc.collect()
    assert worker._memory.bind(args).tensor(0).nbytes() == 4000


def test_a_read_only_array_grants_reading_only(worker):
    frozen = np.zeros(4, np.int32)
    frozen.flags.writeable = False
    t = worker.make_tensor_arg(frozen)
    TaskArgs().add_tensor(t, TensorArgType.INPUT)
    with pytest.raises(ValueError, match="access not granted"):
        TaskArgs().add_tensor(t, TensorArgType.OUTPUT_EXISTING)


@pytest.mark.parametrize(
    "array, shapes, dtype, strides, kind",
    [
        (np.zeros(4, np.int32), (5,), DataType.INT32, None, ValueError),
        (np.zeros(4, np.int32), (0,), DataType.INT32, None, ValueError),
        (np.zeros((4, 4), np.int32).T, None, None, None, ValueError),
        (np.zeros(4, np.int32), (4,), 99, None, ValueError),
        (np.zeros(4, np.int32), (4,), DataType.INT32, (1, 1), ValueError),
        (np.zeros(4, np.int32), (4,), DataType.INT32, (2,), ValueError),
        (np.zeros(4, np.int32)[::-1], (4,), DataType.INT32, (1,), ValueError),
        (5, None, None, None, TypeError),
    ],
)
def test_bad_tensor_arguments(worker, array, shapes, dtype, strides, kind):
    with pytest.raises(kind):
        worker.make_tensor_arg(array, shapes, dtype, strides=strides)


def test_the_same_memory_may_be_given_another_type(worker):
    t = worker.make_tensor_arg(np.zeros(4), (8,), DataType.INT32)
    assert t.buffer.nbytes == 32 and t.shapes == (8,)


# ---- arguments of a run ----


def test_released_buffers_are_unknown_to_a_run(worker):
    buffer, args = worker.create_buffer(64), TaskArgs()
    args.add_tensor(buffer.tensor((4,), DataType.INT32))
    assert worker._memory.bind(args).tensor(0).data == buffer.base
    worker.release_buffer(buffer)
    with pytest.raises(ValueError, match="was released"):
        worker._memory.bind(args)


# ---- ChipWorker ----


def bins(path=f"/x/build/lib/a2a3/sim/{RUNTIME}/libhost_runtime.so", **fields):
    return SimpleNamespace(host_path=path, aicpu_path="", aicore_path="", **fields)


def test_a_new_chip_worker_serves_nothing():
    chip = ChipWorker()
    assert not chip.initialized and chip.device_id == -1 and chip.aicpu_dlopen_count == 0
    for use in (
        lambda: chip.malloc(8),
        lambda: chip._run_slot(0, ChipStorageTaskArgs()),
        lambda: chip._unregister_slot(0),
        lambda: chip.pipeline_depth,
    ):
        with pytest.raises(RuntimeError, match=r"not initialized; call init\(\) first"):
            use()
    chip.finalize()
    chip.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        chip.init(0, bins())


@pytest.mark.parametrize("binaries", [bins(), bins("/lib/any.so", platform=PLATFORM, runtime=RUNTIME)])
def test_a_chip_worker_learns_its_target_from_the_binaries(binaries):
    chip = ChipWorker()
    chip.init(0, binaries, log_level=25)
    assert chip.initialized and (chip.device_id, chip.pipeline_depth, chip.runtime_slot_count) == (0, 2, 2)
    with pytest.raises(RuntimeError, match="already initialized"):
        chip.init(0, bins())
    own = chip.committed_device_memory
    address = chip.malloc(64)
    assert chip.committed_device_memory == own + 64
    chip.free(address)
    failures = []

    def finalize():
        try:
            chip.finalize()
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=finalize)
    thread.start()
    thread.join()
    assert len(failures) == 1
    chip.finalize()


def test_the_log_threshold_is_read_at_init():
    logger = _log.get_logger()
    before = logger.level
    try:
        logger.setLevel(31)
        with make() as worker:
            worker.init()
            assert native._log_threshold() == 40
            logger.setLevel(before)
            assert native._log_threshold() == 40
    finally:
        logger.setLevel(before)
    chip = ChipWorker()
    chip.init(0, bins(), log_level=30)
    assert native._log_threshold() == 30
    chip.finalize()
    with make() as worker:
        worker.init()
        assert native._log_threshold() == _log.get_current_config()


def test_chip_worker_refusals():
    chip = ChipWorker()
    with pytest.raises(ValueError, match="log_level"):
        chip.init(0, bins(), log_level=22)
    with pytest.raises(ValueError, match="bins"):
        chip.init(0, bins("libhost_runtime.so"))
    with pytest.raises(TypeError, match="ChipCallable"):
        chip.register_callable(b"blob")
    chip.init(0, bins())  # a refused init() leaves it new
    with pytest.raises(TypeError, match="CallableHandle"):
        chip.run(0, ChipStorageTaskArgs())
    with pytest.raises(RuntimeError, match="MAX_REGISTERED_CALLABLE_IDS"):
        chip._register_callable_at_slot(64, ChipCallable.build([ArgDirection.IN], "f", b"", []))
    chip.finalize()
