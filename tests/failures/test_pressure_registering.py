"""Damaged callables reach a worker: registration or the run fails with a typed error, or all is as before."""

import struct

import numpy as np
import pytest
from failures_kit import bench, program
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from simpler import errors
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs

HEADER, NAME, BINARY_SIZE, CHILD_COUNT, CHILD_OFFSETS = 9376, 1032, 1028, 9292, 5196
FIELDS = [1024, BINARY_SIZE, NAME, 1096, 1100, 1104, CHILD_OFFSETS, CHILD_OFFSETS + 4, CHILD_COUNT, 9296, 9360]


class Blob(bytes):
    """So that a failing example does not print all of it."""

    def __repr__(self):
        return f"<{len(self)} bytes>"


@pytest.fixture(scope="module")
def good():
    return Blob(bytes(program("good")))


def outcome(worker, blob):
    """What becomes of these bytes on a worker."""
    try:
        chip = ChipCallable.from_bytes(blob)
        handle = worker.worker.register(chip)
    except (ValueError, RuntimeError) as error:
        assert isinstance(error, errors.SimplerError)
        return "refused"
    try:
        x, big = np.arange(64, dtype=np.int32), np.zeros((256, 64), dtype=np.int32)
        args = ChipStorageTaskArgs()
        args.add_tensor(x)
        args.add_tensor(big)
        args.add_scalar(0)
        try:
            worker.worker.run(handle, args)
        except errors.RunError:
            assert np.array_equal(x, np.arange(64))
            return "failed"
        return "ran"
    finally:
        worker.worker.unregister(handle)


def patched(blob, *words):
    blob = bytearray(blob)
    for where, what in words:
        struct.pack_into("<I", blob, where, what)
    return bytes(blob)


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.sampled_from(FIELDS), st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 2**17))),
        min_size=1,
        max_size=3,
    )
)
@example([(CHILD_COUNT, 0)])  # an orchestration without its kernels
@example([(CHILD_COUNT, 1)])
@example([(1100, 5)])  # a kernel under another id
@example([(NAME, 20337280)])  # a name that is no text
def test_a_damaged_header(worker, good, words):
    assert outcome(worker, patched(good, *words)) in ("refused", "failed", "ran")
    worker.check_good()


def test_code_that_is_cut_off(worker, good):
    """At every length, whatever the loader would make of it."""
    chip = ChipCallable.from_bytes(good)
    size = chip.binary_size
    lengths = sorted({0, 1, 63, 64, 120, 176, size - 1, *range(200, size, size // 60)})
    outcomes = {length: outcome(worker, patched(good, (BINARY_SIZE, length))) for length in lengths}
    assert outcomes[0] == outcomes[64] == outcomes[lengths[20]] == "refused"
    first = HEADER + chip.child_offset(0)
    for length in lengths:
        assert outcome(worker, patched(good, (first + 132, min(length, chip.child(0).binary_size)))) in (
            "refused",
            "failed",
            "ran",
        )
    worker.check_good()


def test_all_slots_can_be_filled_and_emptied_many_times(good):
    from simpler.task_interface import CoreCallable

    chip = ChipCallable.from_bytes(good)
    core = chip.child(0)
    code = good[HEADER : HEADER + chip.binary_size]

    def variant(n):
        return ChipCallable.build(
            signature=[],
            func_name="good",
            binary=code,
            children=[(0, core), (n + 1, CoreCallable.from_bytes(bytes(core)))],
        )

    with bench() as one:
        for _ in range(3):
            handles = [one.worker.register(variant(n)) for n in range(64)]
            with pytest.raises(RuntimeError, match="MAX_REGISTERED_CALLABLE_IDS"):
                one.worker.register(variant(64))
            for handle in handles:
                one.worker.unregister(handle)
        one.check_good()
