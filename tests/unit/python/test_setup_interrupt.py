"""Ctrl-C while a kernel stalls: the process ends at once, whatever the kernel does. On the real runtime."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from simpler_setup import compile_pool
from simpler_setup.command import main

TIMEOUT_S = 300  # when the scheduler gives the kernel up; far above what a busy machine needs to end a process
STALL = """
  if (FILE* mark = std::fopen("MARK", "w")) std::fclose(mark);
  volatile bool forever = true;
  while (forever) {
  }
"""


@pytest.fixture(scope="module")
def stalled(tmp_path_factory):
    """A scene whose kernel writes a file, then never returns: (its script, the file)."""
    folder = tmp_path_factory.mktemp("stalled")
    assert main(["new", "stall", "--dir", str(folder)]) == 0
    kernel, mark = folder / "stall" / "kernels" / "stall.cpp", folder / "mark"
    before = "  const uint64_t count"
    text = kernel.read_text().replace(before, STALL.replace("MARK", str(mark)) + before)
    kernel.write_text(text.replace("#include <cstring>", "#include <cstdio>\n#include <cstring>"))
    return folder / "stall" / "test_stall.py", mark


@pytest.mark.parametrize(
    "command, code, words",
    [
        (["{script}", "-p", "a2a3sim"], 130, "=== nothing ran in"),
        (["{script}", "-p", "a2a3sim", "-d", "0-1"], 130, "=== nothing ran in"),
        (["-m", "pytest", "{script}", "--platform", "a2a3sim", "-p", "no:cacheprovider"], 2, "KeyboardInterrupt"),
    ],
    ids=["alone", "children", "pytest"],
)
def test_ctrl_c_ends_a_stalled_run_at_once(stalled, command, code, words):
    script, mark = stalled
    mark.unlink(missing_ok=True)
    words_of = [word.format(script=script) for word in command]
    child = subprocess.Popen(
        [sys.executable, *words_of], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "SIMPLER_SCHEDULER_TIMEOUT_MS": str(TIMEOUT_S * 1000)},
    )  # fmt: skip
    deadline = time.monotonic() + TIMEOUT_S / 2
    while not mark.exists():
        assert time.monotonic() < deadline and child.poll() is None, child.communicate()[0]
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out = child.communicate(timeout=TIMEOUT_S / 2)[0]  # it does not wait for the kernel
    assert (child.returncode, words in out) == (code, True), out


def test_an_interrupt_drops_the_compile_jobs_that_have_not_started(monkeypatch):
    started, last_is_dropped = [], threading.Event()

    def job():
        started.append(1)
        last_is_dropped.wait(60)
        last_is_dropped.set()  # not more than once so long, if it is not dropped

    def interrupted(futures):
        futures[-1].add_done_callback(lambda _: last_is_dropped.set())
        raise KeyboardInterrupt

    monkeypatch.setattr(compile_pool, "wait", interrupted)
    with compile_pool.compile_worker_budget(1), pytest.raises(KeyboardInterrupt):
        compile_pool.run_all([job] * 20)
    assert len(started) <= 1
