"""Tile instructions of the cores of a block that wait for each other: pipes, signals, atomic stores."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tile_blocks import Blocks

ROUNDS, STORES = 9, 1000
#: cases of waits.cpp
ECHOES = {
    "one slot": 0,
    "one slot, freed": 1,
    "four slots": 2,
    "four slots both ways, freed": 3,
    "one slot both ways": 4,
}
SIGNALS, ATOMIC_STORES = 5, 6
CUBE_ENDS_EARLY, VECTOR_CORES_END_EARLY, CUBE_FAILS = 10, 11, 12


def echoed(blocks: int) -> np.ndarray:
    """What the lanes of waits.cpp have seen of each other's tiles."""
    rounds = np.arange(ROUNDS)
    sums = [
        [2 * np.sum((rounds + 1) * (64 * b + 32 * lane + rounds)) for lane in (0, 1)] + [ROUNDS] for b in range(blocks)
    ]
    return np.array(sums, dtype=np.float32).reshape(-1)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_waiting_cores_get_on_however_few_host_threads_there_are(threads):
    with Blocks("waits.cpp", threads) as program:
        for blocks in (1, 30):  # more than the chip has clusters: some start when others have ended
            for name, case in ECHOES.items():
                assert np.array_equal(program.run(blocks, case)[: 3 * blocks], echoed(blocks)), (name, blocks)
            assert np.array_equal(program.run(blocks, SIGNALS)[: 3 * blocks], np.full(3 * blocks, ROUNDS)), blocks
            stored = program.run(blocks, ATOMIC_STORES)[2048:]
            assert np.array_equal(stored[:256], np.full(256, 3 * STORES * blocks))
            assert np.array_equal(
                stored[256:384].view(np.float16), np.full(256, 3 * ROUNDS * blocks)
            )  # exact below 2048
            assert np.array_equal(stored[512:768].view(np.int32), np.full(256, 3 * STORES * blocks))
            assert np.array_equal(stored[768:1024], np.full(256, 2 * blocks - 1))


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("case", [CUBE_ENDS_EARLY, VECTOR_CORES_END_EARLY])
def test_a_wait_for_a_core_that_has_ended_fails_the_run_and_ends_with_it(case, threads, monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "500")
    with Blocks("waits.cpp", threads) as program:
        for blocks in (1, 30):
            with pytest.raises(
                RuntimeError, match=r"no kernel returned for 500 ms; kernel [01] of task 0 .*S1:running-stalled"
            ):
                program.run(blocks, case)
            assert np.array_equal(program.run(2)[:6], echoed(2)), "the device is not lost"


def test_cores_do_not_wait_for_a_core_whose_kernel_failed(monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "60000")
    with Blocks("waits.cpp", 2) as program:
        started = time.monotonic()
        with pytest.raises(RuntimeError, match="kernel 0 of task 0 .*TASSIGN: a Mat tile"):
            program.run(30, CUBE_FAILS)
        assert time.monotonic() - started < 40, "less than the 60 s after which a run without progress fails"
        assert np.array_equal(program.run(30)[:90], echoed(30)), "the device is not lost"
