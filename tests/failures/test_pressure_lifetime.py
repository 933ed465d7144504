"""Processes and workers that end at the wrong moment: forks, Ctrl-C, an orchestration that never returns."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from failures_kit import bench
from simpler import errors

ENDLESS = """
import sys
sys.path.insert(0, {folder!r})
import failures_kit as kit
one = kit.Bench()
try:
    one.run("endless", source="endless.cpp")
except KeyboardInterrupt:
    print("run interrupted", flush=True)
try:
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
