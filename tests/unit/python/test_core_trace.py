"""Which trace lines a run writes, by the environment and the log level."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCENE = Path(__file__).parents[3] / "examples" / "vector_add" / "test_vector_add.py"


@pytest.mark.parametrize(
    "variable, level, host, device",
    [
        ("1", "timing", True, True),
        ("0", "timing", True, False),
        ("1", "warn", False, False),
    ],
)
def test_device_times_can_be_switched_off_alone_and_all_lines_by_the_level(variable, level, host, device):
    done = subprocess.run(
        [sys.executable, str(SCENE), "-p", "a2a3sim", "--log-level", level],
        env={**os.environ, "SIMPLER_DEVICE_STRACE_ENABLE": variable},
        capture_output=True,
        text=True,
        check=True,
    )
    spans = re.findall(r"\[STRACE\] .* name=(\S+) ts=\d+ dur=\d+(.*)", done.stderr)
    assert any(name == "chip.run" for name, _ in spans) == host, done.stderr
    assert any("clk=dev" in attributes for _, attributes in spans) == device, done.stderr
    assert ("[CLOCK_ANCHOR]" in done.stderr) == host


def test_a_run_whose_tasks_begin_while_it_submits_times_both():
    done = subprocess.run([sys.executable, str(SCENE), "-p", "a2a3sim"], capture_output=True, text=True, check=True)
    first = {}
    for name, start, length in re.findall(r"name=(\S+) ts=(\d+) dur=(\d+) clk=dev", done.stderr):
        first.setdefault(name.partition("device_wall")[2], (int(start), int(start) + int(length)))
    assert set(first) == {"", ".orch", ".sched"}, done.stderr
    assert first[".sched"][0] <= first[".orch"][0] < first[".orch"][1] <= first[".sched"][1]
    assert first[".sched"][1] <= first[""][1], "counted from the first phase, which begins after the run"
