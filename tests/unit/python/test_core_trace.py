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
