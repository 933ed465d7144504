"""Tasks of every mix of lanes, alone and as cohorts, with every launch option, on chips of 8, 24 and 36 clusters."""

from pathlib import Path

import numpy as np
import pytest
from simpler import errors
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler

HERE = Path(__file__).parent / "wide"
RUNTIME = "tensormap_and_ringbuffer"
CHIPS = {"8": ("a2a3sim", 8), "24": ("a2a3sim", 24), "36": ("a5sim", 36)}
LANES = {"AIC": 1, "AIV": 2, "AIC+AIV0": 3, "AIV1": 4, "AIC+AIV1": 5, "AIV0+AIV1": 6, "AIC+AIV0+AIV1": 7}
TOGETHER, MEET, PREDICATE_FALSE, PREDICATE_TRUE, TIMED, EARLY, DUMP = (1 << bit for bit in range(7))


class Journal:
    """A worker with the program of wide/, and what a run of it did."""

    def __init__(self, platform, clusters):
        compiler = KernelCompiler(platform)
        kernels = [
            CoreCallable.build(
                signature=[D.INOUT, D.INOUT], binary=compiler.compile_incore(HERE / "journal.cpp", core_type)
            )
            for core_type in ("aic", "aiv")
        ]
        self.program = ChipCallable.build(
            signature=[D.INOUT, D.INOUT, D.INOUT],
            func_name="journal",
            binary=compiler.compile_orchestration(RUNTIME, HERE / "journal_orch.cpp"),
            children=list(enumerate(kernels)),
        )
        self.clusters = clusters
        self.worker = Worker(level=2, platform=platform, runtime=RUNTIME, sim_clusters=clusters)
        self.worker.init()
        self.handle = self.worker.register(self.program)

    def most(self, lanes):
        """Blocks that run at once."""
        return self.clusters * (2 if lanes in (2, 4) else 1)

    def run(self, lanes, blocks, times=1, options=0, handle=None):
        self.table = np.zeros((3 * max(blocks, 1), 3), dtype=np.int32)
        self.arrivals, self.counts = np.zeros(1, dtype=np.int32), np.zeros(4, dtype=np.int32)
        args = ChipStorageTaskArgs()
        for array in (self.table, self.arrivals, self.counts):
            args.add_tensor(array)
        for scalar in (lanes, blocks, times, options):
            args.add_scalar(scalar % 2**64)
        self.worker.run(self.handle if handle is None else handle, args)

    def check(self, lanes, blocks, times):
        """Every lane of every block ran as often as submitted, and no other."""
        single = lanes in (2, 4)
        expected = np.zeros((blocks, 3, 3), dtype=np.int32)
        for lane in range(3):
            if lane == 1 if single else lanes >> lane & 1:
                expected[:, lane] = (times, blocks if times else 0, lane == 2 and times > 0)
        table = self.table.reshape(blocks, 3, 3).copy()
        if single:  # either vector core of a cluster
            table[:, 1, 2] = 0
        np.testing.assert_array_equal(table, expected)
        assert self.counts.tolist() == [self.clusters, 2 * self.clusters, times * blocks * bin(lanes).count("1"), 0]


@pytest.fixture(scope="module", params=list(CHIPS))
def journal(request):
    one = Journal(*CHIPS[request.param])
    yield one
    one.worker.close()


lanes_of_each_kind = pytest.mark.parametrize("lanes", list(LANES.values()), ids=list(LANES))


@lanes_of_each_kind
def test_each_lane_of_each_block_runs_once(journal, lanes):
    for blocks in (1, 2, journal.most(lanes), 3 * journal.most(lanes) + 1):
        journal.run(lanes, blocks, times=2)
        journal.check(lanes, blocks, 2)


@lanes_of_each_kind
def test_cohorts_as_wide_as_the_chip_meet_back_to_back(journal, lanes):
    for blocks in (1, 2, journal.most(lanes)):
        journal.run(lanes, blocks, 4, TOGETHER | MEET)
        journal.check(lanes, blocks, 4)


@lanes_of_each_kind
def test_a_cohort_that_is_too_wide_is_refused_with_its_width_and_the_limit(journal, lanes):
    most = journal.most(lanes)
    says = rf"{most + 1} blocks must start together, and the device has {most} "
    with pytest.raises(errors.RunError, match=says) as caught:
        journal.run(lanes, most + 1, 1, TOGETHER)
    assert caught.value.code == -7 and caught.value.name == "REQUIRE_SYNC_START_INVALID"
    journal.run(lanes, most, 1, TOGETHER | MEET)
    journal.check(lanes, most, 1)


@lanes_of_each_kind
@pytest.mark.parametrize("together", [0, TOGETHER | MEET], ids=["plain", "cohort"])
def test_a_predicate_runs_all_of_a_wide_task_or_nothing(journal, lanes, together):
    blocks = journal.most(lanes)
    journal.run(lanes, blocks, 2, together | PREDICATE_TRUE)
    journal.check(lanes, blocks, 2)
    journal.run(lanes, blocks, 2, together | PREDICATE_FALSE)
    journal.check(lanes, blocks, 0)


@lanes_of_each_kind
@pytest.mark.parametrize("together", [0, TOGETHER | MEET], ids=["plain", "cohort"])
def test_a_timing_slot_is_reported_for_every_kind_of_task_that_ran(journal, lanes, together, capfd):
    journal.run(lanes, 2, 2, together | TIMED)
    journal.check(lanes, 2, 2)
    assert "name=chip.run.runner_run.device_wall.task_slot_3 " in capfd.readouterr().err
    journal.run(lanes, 2, 2, together | TIMED | PREDICATE_FALSE)
    assert "task_slot_" not in capfd.readouterr().err


@pytest.mark.parametrize("option, note", [(EARLY, "the hint is ignored"), (DUMP, "the marks are ignored")])
def test_hints_change_no_result_and_are_said_to_be_ignored_once(option, note, capfd):
    journal = Journal("a2a3sim", 2)
    with journal.worker:
        for lanes in LANES.values():
            for together in (0, TOGETHER | MEET):
                journal.run(lanes, 2, 2, option | together)
                journal.check(lanes, 2, 2)
        assert capfd.readouterr().err.count(note) == 1


@pytest.mark.parametrize("blocks", [0, -1, -32768])
def test_a_task_of_no_blocks_is_refused(journal, blocks):
    with pytest.raises(errors.RunError, match=rf"at least one block, and the launch specification asks for {blocks}\b"):
        journal.run(2, blocks)


def test_programs_come_and_go_on_two_workers_while_runs_of_the_same_source_go_on():
    first, second = Journal("a2a3sim", 2), Journal("a2a3sim", 2)
    with first.worker, second.worker:
        for _ in range(10):
            running = []
            for journal in (first, second):
                extra = journal.worker.register(journal.program)
                for handle in (journal.handle, extra):
                    arrays = [np.zeros(shape, dtype=np.int32) for shape in ((12, 3), 1, 4)]
                    args = ChipStorageTaskArgs()
                    for array in arrays:
                        args.add_tensor(array)
                    for scalar in (LANES["AIC+AIV0+AIV1"], 2, 5, TOGETHER | MEET):
                        args.add_scalar(scalar)
                    running.append((journal.worker.submit(handle, args), arrays))
                journal.worker.unregister(extra)  # its run is in flight
                journal.worker.unregister(journal.worker.register(journal.program))
            for run, (table, _, counts) in running:
                run.wait(60)
                assert table[:6, 0].tolist() == [5] * 6 and not table[6:].any()
                assert counts.tolist() == [2, 4, 30, 0]
