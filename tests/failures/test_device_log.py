"""What orchestrations and kernels leave in the log, and where it says that it comes from."""

import re

import _task_interface as native
import pytest
from failures_kit import bench
from simpler import errors

DEVICE = 3


@pytest.fixture(scope="module")
def worker():
    with bench(device_id=DEVICE) as one:
        yield one


def device_records(text):
    """(level, function, text, facts) of each record; facts by name."""
    found = re.findall(r"^\[(\w+)\] (\w+): (.*) \[(thread=0x[0-9a-f]+[^]]*)\]$", text, re.MULTILINE)
    return [(*rest, dict(fact.split("=") for fact in facts.split())) for *rest, facts in found]


def test_an_orchestrations_records_tell_device_thread_and_how_many_tasks_were_submitted(worker, capfd):
    worker.run("says", source="log.cpp")
    records = device_records(capfd.readouterr().err)
    assert [(level, text) for level, _, text, _ in records] == [("WARN", "before"), ("ERROR", "after 3")]
    assert {function for _, function, _, _ in records} == {"says_body"}
    first, last = (facts for *_, facts in records)
    assert first == {"thread": last["thread"], "device": str(DEVICE), "submitted": "0"}
    assert last == {**first, "submitted": "3"}


def test_a_second_failure_of_a_run_is_a_record_with_its_task_and_block(worker, capfd):
    with pytest.raises(errors.RunError) as caught:
        worker.run("two_blocks_fail", source="log.cpp")
    first = re.search(
        r"kernel 0 of task 0 in ring 0, block (\d), on core (\d+): deliberate error 18", str(caught.value)
    )
    assert first, caught.value
    [(level, function, text, facts)] = device_records(capfd.readouterr().err)
    assert (level, function, text) == ("ERROR", "kernel", "deliberate error 18")
    assert facts.pop("thread") and facts.pop("core") != first[2]
    other = str(1 - int(first[1]))
    assert facts == {"device": str(DEVICE), "ring": "0", "task": "0", "kernel": "0", "block": other}
    worker.check_good()


@pytest.mark.parametrize("threshold", [20, 25])
def test_a_block_that_ends_because_the_run_failed_is_no_failure(worker, capfd, threshold):
    before = native._log_threshold()
    native._set_log_threshold(threshold)
    try:
        with pytest.raises(errors.RunError, match="block 0, on core .*deliberate error 19"):
            worker.run("one_block_fails_while_one_waits", source="log.cpp")
    finally:
        native._set_log_threshold(before)
    records = [record for record in device_records(capfd.readouterr().err) if record[1] == "kernel"]
    if threshold > 20:
        assert not records
    else:
        [(level, _, text, facts)] = records
        assert (level, text, facts["block"]) == ("INFO", "the run failed while this kernel was waiting", "1")
    worker.check_good()
