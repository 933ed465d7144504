"""Tasks that are over only when somebody fulfils the conditions which their kernels left behind."""

import ctypes
import mmap
import os
import re
import threading
import time

import numpy as np
import pytest
from failures_kit import ACT, OWN_TENSOR, PATIENCE_S, bench, rings
from simpler import errors
from simpler.task_interface import ChipStorageTaskArgs

SOURCE = "deferred.cpp"
COUNTER, RECORD, URMA = 0, 1, 2
MAP_FIXED = 0x10
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def run(worker, entry, *scalars, **options):
    worker.run(entry, *scalars, source=SOURCE, **options)


def fail(worker, entry, *scalars, **options):
    return worker.fail(entry, *scalars, source=SOURCE, **options)


# ---- who may fulfil a condition ----


@pytest.mark.parametrize("counters, times", [(1, 1), (1, 40), (63, 1), (64, 5)])
def test_a_later_task(worker, counters, times):
    run(worker, "by_a_later_task", counters, times)
    assert np.all(worker.big[:counters, :2] == [times, 1])


def test_an_earlier_task(worker):
    for _ in range(20):
        run(worker, "by_an_earlier_task")
        assert worker.big[0, :2].tolist() == [3, 1]


@pytest.mark.parametrize("blocks", [2, 16, 17, 500])
def test_another_block_of_the_task(worker, blocks):
    run(worker, "by_another_block", blocks)
    assert worker.big[0, :2].tolist() == [blocks - 1, 1]


def test_the_orchestration(worker):
    run(worker, "by_the_orchestration")
    assert worker.big[0, :2].tolist() == [7, 1]


@pytest.mark.parametrize("before", [True, False], ids=["before the run", "during the run"])
def test_the_host(worker, before):
    word = ctypes.c_uint32(0)
    handle = worker.worker.register(failures_program("by_the_host"))
    args = ChipStorageTaskArgs()
    args.add_tensor(worker.x)
    args.add_tensor(worker.big)
    args.add_scalar(ctypes.addressof(word))
    args.add_scalar(9)
    if before:
        word.value = 9
    worker.big[:] = 0
    submitted = worker.worker.submit(handle, args)
    if not before:
        with pytest.raises(TimeoutError):  # it cannot end
            submitted.wait(0.05)
        word.value = 8
        with pytest.raises(TimeoutError):
            submitted.wait(0.05)
        word.value = 10
    submitted.wait(PATIENCE_S)
    assert worker.big[0, 2] == 1
    worker.worker.unregister(handle)


def failures_program(entry):
    from failures_kit import program

    return program(entry, SOURCE)


@pytest.mark.parametrize("post, completed", [(1, 1), (5, 5), (5, 6), (2**40, 2**40 + 1)])
def test_a_dma_engine(worker, post, completed):
    run(worker, "by_a_dma_record", post, completed)
    assert worker.big[0, :2].view(np.uint64)[0] & 0xFFFFFFFF == completed & 0xFFFFFFFF or completed >= 2**32


def test_element_reads_wait_for_the_condition(worker):
    run(worker, "element_read_waits")
    assert worker.x[0] == 101


def test_slots_of_deferred_tasks_are_reused(worker):
    run(worker, "windows_move_on", 300, config=rings(window=8))


# ---- registrations ----


def test_the_same_condition_twice(worker):
    run(worker, "twice_the_same")
    assert worker.big[0, :2].tolist() == [2, 1]


def test_sixty_four_conditions(worker):
    run(worker, "sixty_four")
    assert worker.big[0, :2].tolist() == [2, 1]


def test_sixty_four_conditions_from_as_many_blocks(worker):
    run(worker, "blocks_register", 64, 0)
    fail(
        worker,
        "blocks_register",
        65,
        1,
        code=103,
        name="ASYNC_REGISTRATION_FAILED",
        says=("more than 64 completion conditions", "kernel 0 of task 0"),
    )


@pytest.mark.parametrize(
    "address, kind, cookie, says",
    [
        (0, COUNTER, 0, "no address"),
        (0, RECORD, 1, "no address"),
        (4096, COUNTER, 0, "not readable memory"),
        (4096, RECORD, 1, "not readable memory"),
        (2**63, COUNTER, 0, "not readable memory"),
        (4097, COUNTER, 0, "not 4-byte aligned"),
        (4098, COUNTER, 0, "not 4-byte aligned"),
        (4100, RECORD, 1, "not 8-byte aligned"),
        (OWN_TENSOR, RECORD, 0, "id 0"),
        (OWN_TENSOR, URMA, 1, "URMA"),
        (OWN_TENSOR, 3, 1, "unknown type"),
        (OWN_TENSOR, 2**31, 1, "unknown type"),
    ],
)
def test_a_condition_that_nobody_can_fulfil(worker, address, kind, cookie, says):
    fail(
        worker,
        "registered",
        ACT["Defer"],
        address,
        1,
        kind,
        cookie,
        code=101,
        name="ASYNC_COMPLETION_INVALID",
        says=(says, "kernel 0 of task 0 in ring 0, block 0", "needs an address and a known type"),
    )


def test_the_sixty_fifth_condition(worker):
    fail(
        worker,
        "registered",
        ACT["DeferOften"],
        OWN_TENSOR,
        0,
        COUNTER,
        0,
        code=102,
        name="ASYNC_WAIT_OVERFLOW",
        says=("kernel 0 of task 0", "64 of at most 64 completion conditions", "at most 64 conditions per task"),
    )


def test_a_count_that_the_kernel_wrote_itself(worker):
    fail(
        worker,
        "registered",
        ACT["SlabCountTooLarge"],
        0,
        0,
        0,
        0,
        code=103,
        name="ASYNC_REGISTRATION_FAILED",
        says=("kernel 0 of task 0", "65 completion conditions", "the slab's 64", "at most 64 conditions"),
    )


@pytest.mark.parametrize(
    "code, name",
    [
        (101, "ASYNC_COMPLETION_INVALID"),
        (102, "ASYNC_WAIT_OVERFLOW"),
        (103, "ASYNC_REGISTRATION_FAILED"),
        (9, "EXPLICIT_ORCH_FATAL"),
    ],
)
def test_an_error_that_the_kernel_reports(worker, code, name):
    fail(
        worker,
        "registered",
        ACT["DeferAndRaise"],
        code,
        0,
        0,
        0,
        code=code,
        name=name,
        says=("kernel 0 of task 0", "reported it with defer_error", "with 0 of at most 64"),
    )


def test_as_many_tasks_may_wait_as_the_list_holds(worker):
    run(worker, "many_waiting", 64, 64)
    fail(
        worker,
        "many_waiting",
        65,
        0,
        code=102,
        name="ASYNC_WAIT_OVERFLOW",
        says=("64 tasks wait", "a 65th", "at most 64"),
    )


def unread_page():
    """(the page, its file): the file occupies memory when the page has been read."""
    file = os.memfd_create("condition")
    os.ftruncate(file, mmap.PAGESIZE)
    return mmap.mmap(file, mmap.PAGESIZE), file


def test_memory_that_disappears_after_the_registration(worker):
    (page, page_file), (later, later_file) = unread_page(), unread_page()
    address, later_address = (ctypes.addressof(ctypes.c_char.from_buffer(memory)) for memory in (page, later))
    handle = worker.worker.register(failures_program("registered"))
    args = ChipStorageTaskArgs()
    args.add_tensor(worker.x)
    args.add_tensor(worker.big)
    for scalar in (ACT["DeferOnTwo"], address, 1, COUNTER, later_address):
        args.add_scalar(scalar)
    assert os.fstat(later_file).st_blocks == 0
    submitted = worker.worker.submit(handle, args)
    deadline = time.monotonic() + PATIENCE_S
    while os.fstat(later_file).st_blocks == 0:  # then the first page has been looked at, and is registered
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert libc.munmap(ctypes.c_void_p(address), mmap.PAGESIZE) == 0
    with pytest.raises(errors.RunError, match="ASYNC_COMPLETION_INVALID") as caught:
        submitted.wait(PATIENCE_S)
    for words in (f"0x{address:x}", "task 0 in ring 0", "keep it until the task is complete"):
        assert words in str(caught.value)
    worker.worker.unregister(handle)
    worker.check_good()
    # The address space stays the object's, which unmaps it again when it ends.
    again = libc.mmap(
        ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ, MAP_FIXED | mmap.MAP_ANON | mmap.MAP_PRIVATE, -1, 0
    )
    assert again == address
    os.close(page_file)
    os.close(later_file)


# ---- nobody fulfils it ----


def test_a_condition_that_never_holds(monkeypatch, capfd):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "250")
    with bench() as one:
        began = time.monotonic()
        fail(
            one,
            "many_waiting",
            3,
            1,
            code=100,
            name="SCHEDULER_TIMEOUT",
            says=("250 ms", "2 tasks wait", "sub_class=S4:dependency-deadlock"),
        )
        assert time.monotonic() - began < PATIENCE_S
        logged = capfd.readouterr().err
        for words in (
            r"sched_error_code=100\b",
            "sub_class=S4:dependency-deadlock",
            r"completed=\d+",
            "running=0",
            "ready=0",
            r"waiting=\d+",
            "orch_done=1",
            "stuck_task_id=",
            "stuck_core=",
        ):
            assert re.search(words, logged), (words, logged)
        run(one, "many_waiting", 3, 3)


def test_a_condition_that_holds_in_time_is_no_failure(monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "5000")
    word = ctypes.c_uint32(0)
    with bench() as one:
        timer = threading.Timer(0.3, lambda: setattr(word, "value", 1))
        timer.start()
        run(one, "by_the_host", ctypes.addressof(word), 1)
        timer.join()


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_run_with_a_seed_notices_what_the_host_fulfils(monkeypatch, seed):
    """Then nobody but the one worker may look, and only in its turn."""
    monkeypatch.setenv("SIMPLER_SIM_SEED", seed)
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "5000")
    with bench() as one:
        test_the_host(one, before=False)
        run(one, "by_a_later_task", 8, 3)
        run(one, "by_another_block", 17)
        run(one, "element_read_waits")
