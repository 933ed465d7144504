"""Processes and workers that end at the wrong moment: forks, Ctrl-C, an orchestration that never returns."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from failures_kit import bench
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


@pytest.mark.timeout(90)
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
