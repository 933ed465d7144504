"""Order, waiting and failure of runs, against a device that the test drives by hand."""

import gc
import itertools
import logging
import threading
import weakref

import numpy as np
import pytest
from simpler import errors
from simpler.native_runs import NativeRuns
from simpler.run_handle import RunPipeline
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CallConfig, ChipCallable, ChipStorageTaskArgs, RunTiming

LIMIT = 10.0


class HandDrivenDevice:
    """What the pipeline asks of a device. A run ends when the test says so; finalize fails if it has a code."""

    pipeline_depth = 2

    def __init__(self):
        self.ids = itertools.count(1)
        self.ended = {}  # run -> event
        self.codes = {}
        self.log = []
        self.launch_failure = None

    def prepare_run(self, slot, args, config):
        assert len(self.ended) < self.pipeline_depth, "a third run was prepared"
        run = next(self.ids)
        self.ended[run] = threading.Event()
        self.log.append(("prepare", run))
        return run

    def launch_run(self, run):
        if self.launch_failure:
            raise self.launch_failure
        self.log.append(("launch", run))

    def poll_run(self, run):
        return self.ended[run].is_set()

    def wait_run(self, run, timeout=None):
        if run not in self.ended:
            raise errors.UnknownHandleError("no such run")
        return self.ended[run].wait(LIMIT if timeout is None else timeout)

    def finalize_run(self, run):
        self.ended.pop(run)
        self.log.append(("finalize", run))
        if run in self.codes:
            raise errors.from_status(0, self.codes[run], "CAUSE: text. hint", "run")
        return RunTiming(run * 1000)

    def finish(self, run, code=0):
        if code:
            self.codes[run] = code
        self.ended[run].set()


@pytest.fixture
def device():
    return HandDrivenDevice()


@pytest.fixture
def pipeline(device):
    return RunPipeline(device)


def chip(*directions):
    return ChipCallable.build(signature=list(directions), func_name="f", binary=b"", children=[])


def arguments(*arrays):
    args = ChipStorageTaskArgs()
    for array in arrays:
        args.add_tensor(array)
    return args


def submit(pipeline, *arrays, directions=()):
    return pipeline.submit(0, chip(*directions), arguments(*arrays), CallConfig())


# ---- waiting ----


def test_a_wait_that_ends_too_early_changes_nothing(device, pipeline):
    run = submit(pipeline)
    assert not run.done
    with pytest.raises(TimeoutError, match="0.01 s"):
        run.wait(0.01)
    with pytest.raises(TimeoutError):
        run.result(0)
    device.finish(1)
    assert run.done and run.timing is None
    assert run.wait() is None and run.wait(0) is None and run.result(0) is None
    assert run.timing.host_wall_ns == 1000 and pipeline.last_timing is run.timing
    assert device.log.count(("finalize", 1)) == 1


@pytest.mark.parametrize("bad, kind", [(-1, ValueError), (float("nan"), ValueError), (float("inf"), ValueError),
                                       ("1", TypeError)])  # fmt: skip
def test_time_limits_are_checked_even_when_the_run_is_over(device, pipeline, bad, kind):
    run = submit(pipeline)
    device.finish(1)
    run.wait()
    with pytest.raises(kind, match="timeout"):
        run.wait(bad)


def test_every_waiter_hears_of_the_failure(device, pipeline):
    run, heard = submit(pipeline), []

    def wait():
        try:
            run.wait(LIMIT)
        except errors.RunError as error:
            heard.append((error.code, str(error)))

    threads = [threading.Thread(target=wait) for _ in range(6)]
    for thread in threads:
        thread.start()
    device.finish(1, code=-9)
    for thread in threads:
        thread.join(LIMIT)
    assert len(heard) == 6 and len(set(heard)) == 1 and heard[0][0] == -9
    assert run.done and run.timing is None
    with pytest.raises(RuntimeError, match=r"\brun failed with code -9\b"):
        run.wait()


def test_a_device_that_fails_while_a_run_is_waited_for_ends_the_run(device, pipeline):
    run, other = submit(pipeline), submit(pipeline)

    def fail(_run, timeout=None):
        raise errors.DeviceError("the device failed")

    device.wait_run = fail
    for handle in (run, other):
        with pytest.raises(errors.DeviceError, match="the device failed"):
            handle.wait(LIMIT)
        assert handle.done
    assert [entry for entry in device.log if entry[0] == "finalize"] == [("finalize", 1), ("finalize", 2)]
    pipeline.drain(LIMIT)  # nothing is left that keeps a worker from being closed
    assert pipeline.idle()


# ---- order and depth ----


def test_a_third_submission_finalizes_the_oldest_and_keeps_its_outcome(device, pipeline):
    first, second = submit(pipeline), submit(pipeline)
    device.finish(1, code=-3)
    third = submit(pipeline)
    assert device.log == [("prepare", 1), ("launch", 1), ("prepare", 2), ("finalize", 1), ("launch", 2), ("prepare", 3)]
    with pytest.raises(RuntimeError, match="code -3"):
        first.wait()
    device.finish(2)
    device.finish(3)
    third.wait()  # which finalizes the second one on its way
    assert device.log[6:] == [("finalize", 2), ("launch", 3), ("finalize", 3)]
    second.wait()
    assert pipeline.idle()


def test_the_next_run_is_launched_when_the_one_before_is_finalized_and_not_earlier(device, pipeline):
    first, second = submit(pipeline), submit(pipeline)
    device.finish(1)
    assert ("launch", 2) not in device.log
    first.wait()
    assert device.log[-1] == ("launch", 2)
    assert not second.done
    device.finish(2)
    second.wait()


def test_asking_whether_a_run_is_done_moves_the_runs_before_it_on(device, pipeline):
    _, second = submit(pipeline), submit(pipeline)
    assert not second.done
    device.finish(1)
    device.finish(2)
    assert second.done and ("finalize", 1) in device.log


def test_a_run_that_cannot_be_prepared_beside_another_is_prepared_after_it(device, pipeline):
    first, refusals = submit(pipeline), iter([-3])
    prepare = device.prepare_run

    def refuse_once(*args):
        if (code := next(refusals, None)) is not None:
            error = errors.StateError("larger rings")
            error.code = code
            raise error
        return prepare(*args)

    device.prepare_run = refuse_once
    device.finish(1)
    submit(pipeline)
    assert device.log == [("prepare", 1), ("launch", 1), ("finalize", 1), ("prepare", 2), ("launch", 2)]
    assert first.done


def test_a_run_that_fails_to_launch_later_tells_whoever_waits_for_it(device, pipeline):
    first, second = submit(pipeline), submit(pipeline)
    device.launch_failure = errors.DeviceError("no")
    device.finish(1)
    first.wait()
    for _ in range(2):
        with pytest.raises(errors.DeviceError, match="no"):
            second.wait()
    assert pipeline.idle()


def test_a_third_submission_waits_for_the_oldest(device, pipeline):
    submit(pipeline), submit(pipeline)
    third = threading.Thread(target=submit, args=(pipeline,))
    third.start()
    third.join(0.05)
    assert third.is_alive() and ("prepare", 3) not in device.log
    device.finish(1)
    third.join(LIMIT)
    assert not third.is_alive()


SHARED = np.zeros(16, np.int32)


@pytest.mark.parametrize(
    "first, second, waits",
    [
        ((D.OUT, SHARED), SHARED, True),
        ((D.INOUT, SHARED), SHARED[8:], True),
        ((D.IN, SHARED), SHARED, False),  # inputs were read when the first run was prepared
        ((D.OUT, SHARED[:8]), SHARED[8:], False),
        ((None, SHARED), SHARED, True),  # no signature: it may be written
        ((D.OUT, SHARED), np.zeros(16, np.int32), False),
    ],
)
def test_a_run_that_touches_memory_an_older_one_will_write_comes_after_it(device, pipeline, first, second, waits):
    direction, array = first
    submit(pipeline, array, directions=() if direction is None else (direction,))
    device.finish(1)
    submit(pipeline, second, directions=(D.IN,))
    assert (("finalize", 1) in device.log) == waits


def test_scalars_in_a_signature_pair_with_no_tensor(device, pipeline):
    submit(pipeline, np.zeros(4, np.int8), SHARED, directions=(D.IN, D.SCALAR, D.OUT))
    device.finish(1)
    submit(pipeline, SHARED, directions=(D.IN,))
    assert ("finalize", 1) in device.log


def test_memory_can_be_asked_for_its_runs(device, pipeline):
    args = ChipStorageTaskArgs()
    args.add_scalar(0x7000)
    by_scalar = pipeline.submit(0, chip(), args, CallConfig())
    by_tensor = submit(pipeline, SHARED)
    address = SHARED.ctypes.data
    assert pipeline.users_of_memory(0x7000, 0x7001) == [by_scalar]
    assert pipeline.users_of_memory(address + 60, address + 61) == [by_tensor]
    assert pipeline.users_of_memory(address + 64, address + 65) == []


# ---- failure and lifetime ----


def test_a_run_that_does_not_launch_is_given_back(device, pipeline):
    device.launch_failure = errors.DeviceError("no")
    with pytest.raises(errors.DeviceError, match="no"):
        submit(pipeline)
    assert device.ended == {} and pipeline.idle()
    device.launch_failure = None
    submit(pipeline)


def test_arrays_live_until_the_run_is_finalized(device, pipeline):
    array = np.zeros(4, np.int32).view(type("Array", (np.ndarray,), {}))
    gone = weakref.ref(array)
    run = submit(pipeline, array)
    del array
    gc.collect()
    assert gone() is not None
    device.finish(1)
    run.wait()
    gc.collect()
    assert gone() is None


def test_a_failure_that_nobody_waits_for_is_logged(device, pipeline, caplog):
    run = submit(pipeline)
    device.finish(1, code=-9)
    pipeline.drain(LIMIT)
    with caplog.at_level(logging.WARNING, logger="simpler"):
        del run
        gc.collect()
    assert "nobody waited" in caplog.text and "-9" in caplog.text


def test_draining_gives_up_in_time_and_can_be_repeated(device, pipeline):
    submit(pipeline)
    with pytest.raises(TimeoutError, match="called again"):
        pipeline.drain(0.02)
    assert not pipeline.idle()
    device.finish(1)
    pipeline.drain(0.02)
    assert pipeline.idle()


# ---- step by step, under leases ----


@pytest.fixture
def steps(device):
    runs = NativeRuns(device)
    runs.begin = lambda slot, generation: runs.prepare(0, ChipStorageTaskArgs(), slot, generation, CallConfig())
    return runs


def test_steps_of_one_run(device, steps):
    token = steps.begin(0, 1)
    for early in (steps.poll, steps.wait):
        with pytest.raises(RuntimeError, match="wrong phase"):
            early(token)
    steps.launch(token)
    assert not steps.poll(token)
    with pytest.raises(RuntimeError, match="wrong phase"):
        steps.launch(token)
    device.finish(1)
    assert steps.poll(token)
    steps.wait(token)
    assert steps.finalize(token).host_wall_ns == 1000
    for use in (steps.launch, steps.poll, steps.wait, steps.finalize):
        with pytest.raises(RuntimeError, match="stale or already finalized"):
            use(token)
    assert not steps.outstanding()


def test_a_successor_is_prepared_while_its_predecessor_runs(device, steps):
    first = steps.begin(0, 1)
    with pytest.raises(RuntimeError, match="requires an active predecessor"):
        steps.begin(1, 1)
    steps.launch(first)
    with pytest.raises(RuntimeError, match="already owns an unfinished native run"):
        steps.begin(0, 2)
    second = steps.begin(1, 1)
    with pytest.raises(RuntimeError, match="launch_native_run failed"):
        steps.launch(second)
    device.finish(1)
    steps.finalize(first)
    steps.launch(second)
    assert second.run_epoch > first.run_epoch


def test_generations_only_grow_and_a_failed_prepare_uses_none_up(device, steps):
    steps.finalize(steps.begin(0, 5))
    with pytest.raises(RuntimeError, match="lease generation is stale"):
        steps.begin(0, 4)
    device.prepare_run = lambda *args: (_ for _ in ()).throw(errors.DeviceError("no"))
    with pytest.raises(errors.DeviceError):
        steps.begin(0, 9)
    del device.prepare_run
    steps.finalize(steps.begin(0, 6))
    for slot, generation in ((2, 1), (-1, 1), (0, 0)):
        with pytest.raises(ValueError):
            steps.begin(slot, generation)


def test_a_failed_run_frees_its_slot(device, steps):
    token = steps.begin(0, 1)
    steps.launch(token)
    device.finish(1, code=-3)
    with pytest.raises(RuntimeError, match="code -3"):
        steps.finalize(token)
    assert not steps.outstanding()
    steps.launch(steps.begin(0, 2))
    device.finish(2)
    steps.abandon_all()
    assert not steps.outstanding()
