"""SYNCALL between all cores of a task on the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tile_blocks import Blocks


@pytest.mark.parametrize("threads", [1, 2])
def test_all_lanes_of_all_blocks_meet_though_host_threads_are_fewer(threads):
    with Blocks("meeting.cpp", threads) as program:
        for blocks in (1, 5, 8):
            places = program.run(blocks, words=512, together=True)
            for turn in (1, 2, 3):
                sums = places[128 * turn : 128 * turn + 3 * blocks]
                assert np.array_equal(sums, np.full(3 * blocks, turn * 3 * blocks))
