"""Processes and workers that end at the wrong moment: forks, Ctrl-C, an orchestration that never returns."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from failures_kit import PATIENCE_S, Leash, bench, program
from simpler import errors
from simpler.task_interface import ChipStorageTaskArgs

ENDLESS = """
import sys
sys.path.insert(0, {folder!r})
import failures_kit as kit
one = kit.Bench()
try:
    one.run("endless", source="endless.cpp")
except KeyboardInterrupt:
    pass
try:
    print("run interrupted", flush=True)
    one.worker.register(kit.program("good"))
except KeyboardInterrupt:
    print("register interrupted", flush=True)
"""


def test_a_forked_child_is_told_that_the_worker_is_its_parents():
    with bench() as one:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                one.worker.malloc(64)
            except errors.StateError as error:
                status = 0 if "belongs to the parent process" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        one.check_good()


@pytest.mark.timeout(300)
def test_ctrl_c_ends_every_wait_for_an_endless_orchestration_and_the_process_can_leave():
    script = ENDLESS.format(folder=str(Path(__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        for line in child.stderr:
            if "has begun" in line:
                break
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "run interrupted\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "register interrupted\n"
        child.stderr.read()
        assert child.wait() == 0


FORGETFUL = """
import sys
sys.path.insert(0, {folder!r})
import failures_kit as kit
one = kit.Bench()
one.run({entry!r}, source="endless.cpp")
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("entry", ["endless", "endless_stream"])
def test_ctrl_c_ends_a_script_that_does_not_close_its_worker(entry):
    script = FORGETFUL.format(folder=str(Path(__file__).parent), entry=entry)
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as child:
        for line in child.stderr:
            if "has begun" in line:
                break
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        said = child.stderr.read()
        assert child.wait() == -signal.SIGINT, said
        assert time.monotonic() - begin < 40, "it waited for a run that does not end"
        assert "KeyboardInterrupt" in said and "the process ends while device 0 executes a run" in said


def test_a_copy_with_a_null_host_address_is_refused():
    with bench() as one:
        buffer = one.worker.malloc(64)
        for copy in (lambda: one.worker.copy_to(int(buffer), 0, 64), lambda: one.worker.copy_from(0, int(buffer), 64)):
            with pytest.raises(ValueError, match="64 bytes: the host address is null"):
                copy()


def test_a_missing_entry_tensor_is_named_with_the_count(capfd):
    with bench() as one:
        one.run("good")
        args = ChipStorageTaskArgs()
        args.add_tensor(one.x)
        with pytest.raises(errors.RunError, match="argument 1 was asked for, and the call passed 1"):
            one.worker.run(next(iter(one.handles.values())), args)
        assert "the signature of good names 2 tensors, and the run passes 1" in capfd.readouterr().err


# ---- orchestrations that do not return ----

LIMIT_MS = 300


@pytest.fixture
def short_limit(monkeypatch):
    monkeypatch.setenv("SIMPLER_STREAM_SYNC_TIMEOUT_MS", str(LIMIT_MS))


STARVED = (100, "SCHEDULER_TIMEOUT", (f"{LIMIT_MS} ms", "S5:orchestrator-starvation", "SIMPLER_STREAM_SYNC_TIMEOUT_MS"))


@pytest.mark.parametrize(
    "entry, configuration, code, name, says",
    [
        ("endless", "", *STARVED),
        ("endless_behind_tasks", "", *STARVED),
        ("waits_for_memory", "endless_configuration", *STARVED),
        ("endless_after_a_failure", "", 9, "EXPLICIT_ORCH_FATAL", ("gave up at 17",)),
    ],
)
def test_an_orchestration_that_does_not_return_fails_its_run(
    short_limit, capfd, entry, configuration, code, name, says
):
    with bench() as one:
        one.check_good()
        with pytest.raises(errors.RunError) as caught:
            one.run(entry, source="endless.cpp", expects=configuration)
        assert (caught.value.code, caught.value.name) == (-code, name)
        missing = [words for words in says if words not in str(caught.value)]
        assert not missing, f"the text does not say {missing}: {caught.value}"
        assert one.untouched()
        if code == 100:
            line = next(line for line in capfd.readouterr().err.splitlines() if "sub_class=S5" in line)
            done = 1 if entry == "endless_behind_tasks" else 0
            for words in (f"completed={done}/{done}", "running=0", "ready=0", "waiting=0", "orch_done=0"):
                assert words in line
        with pytest.raises(errors.StateError, match="quarantined.*Close this worker and make a new one"):
            one.run("good")
    with bench() as another:
        another.check_good()


def test_a_run_that_is_queued_behind_an_endless_one_fails_too(short_limit):
    leash = Leash()  # the limit counts when the first run's kernel has returned: after both were submitted
    programs = ("endless_behind_a_kernel", "endless.cpp"), ("good",)
    with bench() as one:
        runs, handles = [], [one.worker.register(program(*which)) for which in programs]
        for handle, scalars in zip(handles, (leash.scalars()[1:3], ())):
            args = ChipStorageTaskArgs()  # on arrays of its own, so that it does not wait for the other one
            args.add_tensor(one.x.copy())
            args.add_tensor(one.big.copy())
            for scalar in scalars:
                args.add_scalar(scalar)
            runs.append(one.worker.submit(handle, args))
        first, second = runs
        leash.release()
        with pytest.raises(errors.RunError, match="S5:orchestrator-starvation"):
            first.wait(PATIENCE_S)
        with pytest.raises(errors.SimplerError, match="quarantined|poisoned"):
            second.wait(PATIENCE_S)


def test_a_limit_that_is_no_number_is_ignored_with_a_warning(monkeypatch, capfd):
    monkeypatch.setenv("SIMPLER_STREAM_SYNC_TIMEOUT_MS", "5s")
    with bench() as one:
        one.check_good()
    assert "SIMPLER_STREAM_SYNC_TIMEOUT_MS=5s is ignored: it must be a whole number" in capfd.readouterr().err


@pytest.mark.parametrize("seed", ["", "1", "2"])
def test_an_orchestration_may_wait_for_what_a_kernel_writes(monkeypatch, seed):
    """With a seed, the submitter has the turn, and does not give it back by itself."""
    monkeypatch.setenv("SIMPLER_SIM_SEED", seed)
    with bench() as one:
        one.run("waits_for_memory", source="endless.cpp")
        assert one.x.tolist() == [9 * i + 21 for i in range(64)]
