"""Sizes at their ends: blocks, outputs, rings, and where the ring sizes come from."""

import os
import re

import numpy as np
import pytest
from failures_kit import ACT, bench, rings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simpler import errors
from simpler.task_interface import CallConfig, RuntimeEnv

SOURCE = "limits.cpp"
GIB = 2**30


def run(worker, entry, *scalars, **options):
    worker.run(entry, *scalars, source=SOURCE, **options)


# ---- when tasks begin ----

SERIAL = "SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE"


@pytest.mark.parametrize("text, begins", [("", True), ("0", True), ("1", False), ("true", False), ("T", False)])
def test_tasks_begin_when_the_orchestration_ends_or_waits_if_asked_for(monkeypatch, text, begins):
    monkeypatch.setenv(SERIAL, text)
    with bench() as one:
        run(one, "looks_at_memory_before_it_waits", 60_000 if begins else 200)
        assert one.big[0, 0] == (1 if begins else 0)
        assert one.x.tolist() == [9 * i + 22 for i in range(64)]
        one.check_good()


def test_a_garbled_wish_for_serial_runs_is_ignored_with_a_warning(worker, monkeypatch, capfd):
    monkeypatch.setenv(SERIAL, "yes")
    run(worker, "looks_at_memory_before_it_waits", 60_000)
    assert worker.big[0, 0] == 1
    assert f"{SERIAL}=yes is ignored: it must be 1 or true, 0 or false" in capfd.readouterr().err


def test_a_seed_goes_before_the_wish_for_serial_runs(monkeypatch, capfd):
    monkeypatch.setenv("SIMPLER_SIM_SEED", "1")
    monkeypatch.setenv(SERIAL, "1")
    with bench() as one:
        one.check_good()
    assert f"{SERIAL} is ignored: SIMPLER_SIM_SEED decides" in capfd.readouterr().err


# ---- nothing to do ----


def test_a_run_without_tasks_ends(worker):
    worker.run("nothing")
    assert worker.untouched()


def test_a_run_of_element_accesses_only_ends(worker):
    run(worker, "elements_only")
    assert worker.x[6] == 50 and worker.x[5] == 5


def test_empty_scopes_end(worker):
    run(worker, "empty_scopes")
    assert worker.untouched()


def test_tensors_without_elements(worker):
    run(worker, "zero_elements")
    assert worker.x.tolist() == [3 * i + 1 for i in range(64)]


def test_as_many_arguments_as_a_task_takes(worker):
    run(worker, "many_arguments")
    assert worker.x.tolist() == [3 * i + 1 for i in range(64)]


# ---- blocks ----


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 24, 25, 255, 256, 257, 1000, 4096, 32766, 32767])
def test_every_block_runs_once(worker, count):
    run(worker, "blocks", count)
    assert worker.big[0, 0] == count and worker.big[1, 0] == 64 + count
    run(worker, "marked_blocks", min(count, 16384))
    expected = np.arange(16384)
    expected[: min(count, 16384)] += min(count, 16384)
    assert np.array_equal(worker.big.ravel(), expected)


# ---- outputs ----


@pytest.mark.parametrize("count, each", [(1, 5 * GIB), (4, 3 * GIB), (20, GIB // 4)])
def test_outputs_of_more_than_2_gib(worker, count, each):
    """Address space only: what nobody touches costs nothing."""
    total = count * each
    run(worker, "untouched_outputs", count, each, config=rings(heap=[total, 0, 0, 0]))
    assert worker.x[0] == 4711
    for heap, room in [([0, 0, 0, 0], 256 * 2**20), ([total - 1024, 0, 0, 0], total - 1024)]:
        worker.fail(
            "untouched_outputs",
            count,
            each,
            source=SOURCE,
            config=rings(heap=heap),
            code=2,
            name="HEAP_RING_DEADLOCK",
            says=(f"{total} more are needed", f"0 of {room} bytes", "ring_heap"),
        )


def test_heaps_that_exceed_the_address_space_are_refused(worker):
    for heap in (2**47, 2**62, 2**64 - 1024):
        with pytest.raises((MemoryError, ValueError), match="heap|address space|memory") as caught:
            worker.run("good", config=rings(heap=heap))
        assert isinstance(caught.value, errors.SimplerError)
        worker.check_good()


def test_windows_that_exceed_the_address_space_are_refused(worker):
    with pytest.raises(errors.SimplerError, match="window"):
        worker.run("good", config=rings(window=2**30))
    worker.check_good()


@pytest.mark.parametrize("rounds", [0, 1, 100])
def test_an_output_that_outlives_its_scope_ends_in_order(worker, rounds):
    config = rings(window=8, heap=4096)
    run(worker, "output_after_its_scope", rounds, config=config)
    expected = np.arange(64, dtype=np.int64)
    for i in range(rounds):
        expected = (expected * 3 + i) % 2**32
    assert np.array_equal(worker.x.view(np.uint32), expected)


@pytest.mark.parametrize("owner", [0, 1, 77, 2**32 + 5, 3 * 2**32 + 4000000000, 4 * 2**32, 255 * 2**32 + 1, 2**64 - 2])
def test_a_descriptor_of_no_live_task_waits_for_nobody(worker, owner):
    run(worker, "descriptor_of_another_run", owner)
    assert worker.x.tolist() == [3 * i + 5 + (i == 0) for i in range(64)]


# ---- small rings ----


@pytest.mark.parametrize(
    "config",
    [
        {"window": 4},
        {"heap": 1024},
        {"window": 4, "heap": 1024},
        {"window": 8, "heap": 1024},
        {"window": [4, 4, 4, 4], "heap": [1024] * 4, "dep_pool": [256] * 4},
    ],
    ids=str,
)
def test_a_stream_through_the_smallest_rings(worker, config):
    run(worker, "stream", 500, 256, config=rings(**config))
    expected = np.arange(64, dtype=np.int64)
    for i in range(500):
        expected = (expected * 3 + i) % 2**32
    assert np.array_equal(worker.x.view(np.uint32), expected)


def test_a_stream_through_the_smallest_dependency_pool_is_right_or_refused(worker):
    """Edges come back when tasks retire, so a pool of 4 may suffice or not; the result is never wrong."""
    try:
        run(worker, "chains_with_a_small_pool", 500, config=rings(dep_pool=4))
        expected = np.arange(64, dtype=np.int64)
        for i in range(500):
            expected = (expected * 3 + i) % 2**32
        assert np.array_equal(worker.x.view(np.uint32), expected)
    except errors.RunError as error:
        assert (error.code, error.name) == (-4, "DEP_POOL_OVERFLOW")
    worker.check_good()


def test_rings_may_change_from_run_to_run(worker):
    for window in (4, 4096, 8, 16384, 4):
        for heap in (1024, 2**20, 2**28):
            run(worker, "stream", 20, 256, config=rings(window=window, heap=heap))


# ---- where ring sizes come from ----

WINDOW, HEAP, POOL = "PTO2_RING_TASK_WINDOW", "PTO2_RING_HEAP", "PTO2_RING_DEP_POOL"


def fails_with_window_of_4(worker, **options):
    worker.fail(
        "tasks_in_one_scope", 4, code=1, name="SCOPE_DEADLOCK", says=("holds 3 tasks", "window of 4"), **options
    )


def test_the_environment_sizes_the_window(worker, monkeypatch):
    monkeypatch.setenv(WINDOW, "4")
    with pytest.raises(errors.RunError, match="window of 4"):
        worker.run("tasks_in_one_scope", 4)
    monkeypatch.delenv(WINDOW)
    worker.run("tasks_in_one_scope", 4)


def test_the_environment_sizes_rings_one_by_one(worker, monkeypatch):
    monkeypatch.setenv(HEAP, "1024,8192,1024,1024")
    worker.run("outputs_of_one_scope", 8)
    with pytest.raises(errors.RunError, match="ring 1 .*8192 of 8192 bytes"):
        worker.run("outputs_of_one_scope", 9)
    with pytest.raises(errors.RunError, match="ring 0 .*of 1024 bytes"):
        worker.run("one_output", 257)


def test_the_environment_sizes_the_dependency_pool(worker, monkeypatch):
    monkeypatch.setenv(POOL, "4")
    with pytest.raises(errors.RunError, match="of 4 edges"):
        worker.run("many_producers", 128)
    worker.run("many_producers", 128, config=rings(dep_pool=256))


def test_the_configuration_goes_before_the_environment_entry_by_entry(worker, monkeypatch):
    monkeypatch.setenv(WINDOW, "16384")
    fails_with_window_of_4(worker, config=rings(window=[4, 0, 0, 0]))
    monkeypatch.setenv(WINDOW, "4,16384,16384,16384")
    with pytest.raises(errors.RunError, match="window of 4"):  # entry 0 is not set by the configuration
        worker.run("tasks_in_one_scope", 4, config=rings(window=[0, 8, 8, 8]))
    worker.run("tasks_in_one_scope", 4, config=rings(window=[8, 0, 0, 0]))


INVALID = [
    "",
    " ",
    "0",
    "-4",
    "4.0",
    "4 ",
    " 4",
    "0x10",
    "3",
    "5",
    "2",
    "2147483648",
    "99999999999999999999999",
    "4,4",
    "4,4,4",
    "4,4,4,4,",
    ",4,4,4",
    "4,4,4,4,4",
    "4,,4,4",
    "4;4;4;4",
    "four",
    "4,4,4,3",
    "8,8,8,-8",
    "+8",
    "1e3",
]


@pytest.mark.parametrize("text", INVALID, ids=repr)
def test_an_invalid_environment_value_is_ignored_with_a_warning(worker, monkeypatch, capfd, text):
    monkeypatch.setenv(WINDOW, text)
    worker.run("tasks_in_one_scope", 16383)  # as by default
    logged = capfd.readouterr().err
    if text in ("", "0"):  # not set, and "as by default"
        assert WINDOW not in logged or "ignored" in logged
    else:
        assert re.search(rf"\[WARN\].*{WINDOW}={re.escape(text)} is ignored: ", logged), logged


def window_of(text):
    """What the environment's text means for ring 0, by the rules; 16384 if it is ignored."""
    if not re.fullmatch(r"[0-9]+(,[0-9]+){3}|[0-9]+", text):
        return 16384
    values = [int(part) for part in text.split(",")]
    return values[0] if all(4 <= v < 2**31 and v & (v - 1) == 0 for v in values) else 16384


@settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.text(alphabet="0123456789,-+ .x", max_size=9),
        st.lists(st.sampled_from(["4", "8", "0", "04", "5", "4294967296", "-4", "", " 4"]), max_size=5).map(",".join),
        st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
    )
)
def test_any_text_in_the_environment_is_a_window_or_ignored(worker, text):
    before = os.environ.get(WINDOW)
    os.environ[WINDOW] = text
    try:
        if window_of(text) == 4:
            with pytest.raises(errors.RunError, match="window of 4"):
                worker.run("tasks_in_one_scope", 4)
        else:
            worker.run("tasks_in_one_scope", 4)
    finally:
        del os.environ[WINDOW]
        if before is not None:
            os.environ[WINDOW] = before


@pytest.mark.parametrize(
    "variable, text, limit",
    [
        (WINDOW, "3", "4"),
        (WINDOW, "12", "power"),
        (HEAP, "1023", "1024"),
        (POOL, "3", "4"),
        (POOL, "2147483648", "2147483647"),
    ],
)
def test_the_warning_gives_value_and_limit(worker, monkeypatch, capfd, variable, text, limit):
    monkeypatch.setenv(variable, text)
    worker.check_good()
    logged = [line for line in capfd.readouterr().err.splitlines() if "is ignored" in line]
    assert len(logged) >= 1 and text in logged[0] and limit in logged[0]


@pytest.mark.parametrize(
    "name, value, limit",
    [
        ("ring_task_window", 3, "4"),
        ("ring_task_window", 12, "power"),
        ("ring_task_window", 2**31, "2^30"),
        ("ring_heap", 1023, "1024"),
        ("ring_dep_pool", 3, "4"),
        ("ring_dep_pool", 2**31, "2147483647"),
    ],
)
def test_an_invalid_configuration_is_refused_when_the_run_is_submitted(worker, name, value, limit):
    for entry in (value, [0, 0, 0, value]):
        config = CallConfig()
        setattr(config.runtime_env, name, entry)
        with pytest.raises(ValueError, match=name) as caught:
            worker.run("good", config=config)
        assert str(value) in str(caught.value) and limit in str(caught.value)
    worker.check_good()


def test_a_runtime_env_is_copied_when_it_is_assigned(worker):
    env = RuntimeEnv()
    env.ring_task_window = 4
    config = CallConfig()
    config.runtime_env = env
    env.ring_task_window = 8
    fails_with_window_of_4(worker, config=config)
    config.runtime_env.ring_task_window = 8  # the live reference
    worker.run("tasks_in_one_scope", 4, config=config)


def test_the_resolved_sizes_are_logged(monkeypatch, capfd):
    import logging

    monkeypatch.setenv(HEAP, "4096,8192,16384,32768")
    logger = logging.getLogger("simpler")
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        with bench() as one:
            one.run("nothing", config=rings(window=[8, 0, 0, 64]))
    finally:
        logger.setLevel(before)
    logged = capfd.readouterr().err
    assert "[8, 16384, 16384, 64]" in logged and "[4096, 8192, 16384, 32768]" in logged
    assert "[16384, 16384, 16384, 16384]" in logged


# ---- element accesses ----


@pytest.mark.slow
def test_an_element_write_waits_for_its_readers_no_longer_than_15_s(monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "60000")
    with bench() as one:
        one.fail(
            "element_write_after_a_long_task",
            16_000,
            source=SOURCE,
            code=8,
            name="TENSOR_WAIT_TIMEOUT",
            says=("set_tensor_data waited 15 s", "task 0 of ring 0", "limit of 15 s"),
        )


# ---- fixed orders ----


@pytest.mark.parametrize("seed", range(3))
def test_a_run_with_a_seed_loses_no_task_to_other_threads(monkeypatch, seed):
    """While a kernel takes more than a millisecond a second thread may come, take work, and leave with some of it."""
    monkeypatch.setenv("SIMPLER_SIM_SEED", str(seed))
    with bench() as one:
        one.run("kernel_beside_others", ACT["Sleep"], 60, 0, 0, 0)  # gives up the order and adds the thread
        for _ in range(20):
            run(one, "fan_out", 256 * 8, 4)
            assert (one.big[:, 0] == np.arange(256) * 64 + 8).all()
