"""Kernels that crash, throw, or do not return."""

import os
import re
import time

import pytest
from failures_kit import ACT, PATIENCE_S, Leash, bench
from simpler import errors

WATCHDOG_MS = 250

CRASHES = [
    ("WriteTo", 0, "SIGSEGV"),
    ("WriteTo", 16, "SIGSEGV"),
    ("WriteTo", 2**63, "SIGSEGV"),  # not an address of this machine at all
    ("Divide", 0, "SIGFPE"),
    ("Bus", 0, "SIGBUS"),
    ("Abort", 0, "SIGABRT"),
    ("Trap", 0, "SIGILL"),
    ("Recurse", 0, "SIGSEGV"),  # out of stack
    ("ThrowError", 0, "deliberate error 17"),
    ("ThrowNumber", 0, "no std::exception"),
]


def crash_id(case):
    return f"{case[0]}-{case[1]:x}"


@pytest.mark.parametrize("crash", CRASHES, ids=crash_id)
@pytest.mark.parametrize("entry, kernel", [("kernel", 0), ("kernel_on_matrix_core", 1)])
def test_a_crash_is_one_failed_run(worker, entry, kernel, crash):
    act, value, says = crash
    worker.fail(
        entry,
        ACT[act],
        value,
        0,
        0,
        0,
        code=120,
        name="KERNEL_CRASHED",
        says=(rf"\bkernel {kernel} of task [01] in ring 0, block 0, on core \d+", says),
    )


@pytest.mark.parametrize("crash", CRASHES, ids=crash_id)
def test_a_crash_among_two_hundred_other_tasks(worker, crash):
    act, value, says = crash
    worker.fail(
        "kernel_beside_others",
        ACT[act],
        value,
        0,
        0,
        0,
        code=120,
        name="KERNEL_CRASHED",
        says=("kernel 0 of task 100 in ring 0", says),
    )


def test_every_thread_can_crash_many_times():
    with bench(sim_threads=4) as one:
        for _ in range(25):
            for act, value, _ in CRASHES:
                with pytest.raises(errors.RunError):
                    one.run("kernel_beside_others", ACT[act], value, 0, 0, 0)
        one.check_good()


def test_a_fault_outside_of_kernels_is_still_pythons():
    """The runtime's handlers pass on what does not happen in a kernel: faulthandler reports it, the process ends."""
    import subprocess
    import sys
    from pathlib import Path

    script = (
        "import sys, faulthandler, ctypes\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "faulthandler.enable()\n"
        "from failures_kit import bench\n"
        "with bench() as one:\n"
        "    one.check_good()\n"
        "    ctypes.string_at(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode < 0 and "Segmentation fault" in done.stderr, done


# ---- kernels that do not return ----


@pytest.fixture
def short_watchdog(monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", str(WATCHDOG_MS))


@pytest.mark.parametrize("entry", ["kernel", "kernel_on_matrix_core", "kernel_beside_others"])
def test_a_kernel_that_never_returns(short_watchdog, capfd, entry):
    leash = Leash()
    with bench() as one:
        one.check_good()
        began = time.monotonic()
        with pytest.raises(errors.RunError) as caught:
            one.run(entry, *leash.scalars())
        assert time.monotonic() - began < PATIENCE_S
        error = caught.value
        assert (error.code, error.name) == (-100, "SCHEDULER_TIMEOUT")
        for words in (
            "250 ms",
            r"kernel [01] of task \d+ in ring 0, block 0",
            "core [0-9]+",
            "sub_class=S1:running-stalled",
            "SIMPLER_SCHEDULER_TIMEOUT_MS",
        ):
            assert re.search(words, str(error)), (words, str(error))
        assert one.untouched()
        logged = capfd.readouterr().err
        for words in (
            r"sched_error_code=100\b",
            "error detail: SCHEDULER_TIMEOUT",
            "error hint",
            "sub_class=S1:running-stalled",
            r"completed=\d+",
            "running=1",
            r"ready=\d+",
            r"waiting=\d+",
            r"orch_done=[01]",
            "stuck_task_id=",
            r"stuck_core=\d+",
        ):
            assert re.search(words, logged), (words, logged)

        for use in (one.check_good, lambda: one.worker.malloc(64)):
            with pytest.raises(errors.StateError, match="has not returned.*new one"):
                use()
        began = time.monotonic()
        one.close()
        assert time.monotonic() - began < PATIENCE_S
        with bench() as other:  # on the same device, while the kernel still spins
            other.check_good()
        leash.release()
        assert one.untouched(), "a late write reached the user's arrays"
    with bench() as other:
        other.check_good()


def test_a_kernel_that_sleeps_in_the_system_forever(short_watchdog):
    reader, writer = os.pipe()
    with bench() as one:
        with pytest.raises(errors.RunError, match="SCHEDULER_TIMEOUT"):
            one.run("kernel", ACT["BlockInRead"], reader, 0, 0, 0)
        one.close()
    os.write(writer, b"!")
    os.close(writer)
    os.close(reader)


def test_a_kernel_that_returns_in_the_grace_time_costs_only_its_run(short_watchdog):
    """It is over the limit, but back before the runtime gives it up."""
    with bench() as one:
        with pytest.raises(errors.RunError, match="SCHEDULER_TIMEOUT"):
            one.run("kernel", ACT["OutlastTheRun"], 0, 0, 0, 0)
        one.check_good()


def test_a_slow_kernel_within_the_limit_is_no_failure(monkeypatch):
    """However long after the half second after which a run in which nothing runs is given up."""
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "60000")
    with bench() as one:
        one.run("kernel", ACT["Sleep"], 700, 0, 0, 0)
        assert not one.untouched()


def test_a_garbled_limit_is_reported(monkeypatch, capfd):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "5s")
    with bench() as one:
        one.check_good()
    assert re.search(r"SIMPLER_SCHEDULER_TIMEOUT_MS=5s is ignored", capfd.readouterr().err)
