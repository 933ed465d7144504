"""The dispatcher of stand-alone runs: lost children cost one case, and nothing outlives it. Runtime: stand-ins."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import simpler_setup
from simpler_setup.scene import dispatch
from simpler_setup.scene.verdicts import Journal, Verdict

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(simpler_setup.__file__)))

SCENES = """
import os, signal, subprocess, sys, time
import setup_fakes
from simpler_setup import SceneTestCase, scene_test

SIM = ["a2a3sim"]

class _Act:
    CALLABLE = {"orchestration": {"source": "none.cpp", "function_name": "f"}, "incores": []}

    def build_callable(self, platform):
        pass

    def _run_and_validate_l2(self, worker, callable_obj, case, **kw):
        setup_fakes.report(case=f"{type(self).__name__}::{case['name']}", pid=os.getpid(), **worker.settings)
        act = case.get("act")
        if act == "wait":
            helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
            setup_fakes.report(helper=helper.pid)
            with open(os.environ["MARK"], "w") as file:
                file.write(f"{os.getpid()} {helper.pid}")
            time.sleep(300)
        elif act == "hang":
            time.sleep(300)
        elif act == "exit":
            sys.exit(5)
        elif act:
            os.kill(os.getpid(), getattr(signal, act))

# Only the case that hangs is on the clock: the others may take long on a busy machine.
from simpler_setup.scene import inline
timed = inline.time_limit
inline.time_limit = lambda seconds, what, say: timed(seconds if what == "TestHang::mid" else 600.0, what, say)

def cases(act):
    return [{"name": n, "platforms": SIM, "act": act if n == "mid" else None} for n in ("first", "mid", "last")]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestSegv(_Act, SceneTestCase):
    CASES = cases("SIGSEGV")

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestKill(_Act, SceneTestCase):
    CASES = cases("SIGKILL")

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestHang(_Act, SceneTestCase):
    CASES = cases("hang")

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestExit(_Act, SceneTestCase):
    CASES = cases("exit")

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestWait(_Act, SceneTestCase):
    CASES = [{"name": "wait", "platforms": SIM, "act": "wait", "manual": True}]

class TestOk(_Act, SceneTestCase):
    CASES = cases(None)

for index in range(16):
    name = f"TestOk{index}"
    made = type(name, (TestOk,), {"__module__": __name__, "CASES": cases(None)[:1]})
    globals()[name] = scene_test(level=2, runtime="tensormap_and_ringbuffer")(made)

if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
"""

SIM = ("-p", "a2a3sim")
TWO = (*SIM, "-d", "0-1", "--max-parallel", "2")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "scenes.py"
    path.write_text(textwrap.dedent(SCENES))
    return path


@pytest.fixture
def start(script, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGES, HERE]), "SETUP_FAKES": "1"}
    env["MARK"] = str(tmp_path / "mark")
    env.pop("SIMPLER_CASE_JOURNAL", None)

    def run_script(*arguments, command=None, **variables):
        return subprocess.Popen(
            command or [sys.executable, str(script), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**env, **variables}, cwd=tmp_path,
        )  # fmt: skip

    return run_script


@pytest.fixture
def run(start):
    def run_script(*arguments, command=None):
        child = start(*arguments, command=command)
        child.out, child.err = child.communicate(timeout=500)
        return child

    return run_script


def verdicts(text):
    return dict(re.findall(r"^  (\w+::\w+) (PASSED|FAILED|SKIPPED)", text, re.M))


def all_but_mid(cls):
    return {f"{cls}::first": "PASSED", f"{cls}::mid": "FAILED", f"{cls}::last": "PASSED"}


@pytest.mark.parametrize("cls, how", [("TestSegv", "SIGSEGV"), ("TestKill", "SIGKILL")])
def test_a_lost_child_costs_the_case_that_it_was_in(run, cls, how):
    done = run(*TWO, "--case", f"{cls}::", "--case", "TestExit::")
    assert done.returncode == 1
    assert verdicts(done.out) == {**all_but_mid(cls), **all_but_mid("TestExit")}, done.out
    assert f"{cls}::mid FAILED: its process ended with signal {how}; the output is above" in done.out
    assert "1 cases that a lost child left undone go to new children" in done.out
    assert f'"case": "{cls}::mid"' in done.out, "its output is there"
    assert re.search(r"\n=== 4 passed, 2 failed in [\d.]+ s ===\n$", done.out)


def test_a_test_that_ends_the_process_is_a_failed_case(run):
    done = run(*SIM, "--case", "TestExit::")
    assert verdicts(done.out) == all_but_mid("TestExit") and done.returncode == 1
    assert "TestExit::mid FAILED: the test ended the process: sys.exit(5)" in done.out


def test_a_hung_child_shows_its_stacks_and_costs_one_case(run):
    done = run(*TWO, "--case", "TestHang::", "--case", "TestOk0::", "--timeout", "1")
    assert done.returncode == 1
    assert verdicts(done.out) == {**all_but_mid("TestHang"), "TestOk0::first": "PASSED"}, done.out
    assert "::group::HUNG TestHang::mid: no end after 1 s" in done.out
    assert "in _run_and_validate_l2" in done.out
    assert "TestHang::mid FAILED: no end after 1 s; the stacks of all threads are on stderr" in done.out


def test_a_hung_case_without_children_ends_the_run_with_its_verdict(run):
    done = run(*SIM, "--case", "TestHang::", "--timeout", "0.5")
    assert done.returncode == 1 and "in _run_and_validate_l2" in done.err
    assert verdicts(done.out) == {"TestHang::first": "PASSED", "TestHang::mid": "FAILED"}


def test_exit_first_leaves_the_rest_undone(run):
    done = run(*TWO, "--max-parallel", "1", "--case", "TestSegv::", "--case", "TestOk0::", "-x")
    assert done.returncode == 1
    assert "TestSegv::last" not in verdicts(done.out)


def test_sixteen_children_on_any_number_of_processors(run):
    done = run(*SIM, "-d", "0-15", "--max-parallel", "16", *(w for i in range(16) for w in ("--case", f"TestOk{i}::")))
    assert done.returncode == 0, done.out
    assert len(verdicts(done.out)) == 16 and "[fanout n=16]" in done.out
    assert {int(i) for i in re.findall(r'"device_id": (\d+)', done.out)} == set(range(16))


def test_every_option_reaches_the_children(run):
    done = run(
        *TWO, "--case", "TestOk0::", "--case", "TestOk1::", "--rounds", "2", "--skip-golden", "--sim-clusters", "3",
        "--sim-threads", "1", "--enable-pmu", "4", "--dump-args", "2", "--no-tile-checks", "--save-mismatch",
        "--enable-dep-gen", "--enable-scope-stats", "--enable-swimlane-overhead", "--enable-chip-swimlane", "3",
        "--log-level", "warn", "--timeout", "77", "-v", "-x", "--clone-protocol", "ssh",
    )  # fmt: skip
    command = re.search(r"\[scheduler\] \+ (.*)", done.out).group(1)
    for words in (
        "--rounds 2", "--skip-golden", "--sim-clusters 3", "--sim-threads 1", "--enable-pmu 4", "--dump-args 2",
        "--no-tile-checks", "--save-mismatch", "--enable-dep-gen", "--enable-scope-stats", "--enable-swimlane-overhead",
        "--enable-chip-swimlane 3", "--log-level warn", "--timeout 77", "--verbose", "--exitfirst",
        "--clone-protocol ssh", "--runtime tensormap_and_ringbuffer", "--level 2", "-d 0",
    ):  # fmt: skip
        assert words in command, words


def test_a_child_that_cannot_start_fails_its_cases_once(run, script):
    text = script.read_text().replace("SIM = [", "import sys; assert '--level' not in sys.argv, 'not here'\nSIM = [", 1)
    script.write_text(text)
    done = run(*TWO, "--case", "TestSegv::", "--case", "TestOk0::")
    assert done.returncode == 1 and set(verdicts(done.out).values()) == {"FAILED"}
    assert "not here" in done.out and done.out.count("ended with exit code 1 before it started") >= 4


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)


def pids_of(mark):
    return [int(word) for word in mark.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_dispatcher(start, tmp_path, number):
    mark = tmp_path / "mark"
    child = start(*TWO, "--manual", "include", "--case", "TestWait::", "--case", "TestOk0::")
    wait_until(lambda: mark.exists() and len(mark.read_text().split()) == 2)
    pid, helper = pids_of(mark)
    child.send_signal(number)
    out, _ = child.communicate(timeout=100)
    wait_until(lambda: not alive(pid))
    if number == signal.SIGINT:  # a killed dispatcher takes its children along, but not what they started
        wait_until(lambda: not alive(helper))
        assert child.returncode == 130 and ", interrupted ===" in out
    elif alive(helper):
        os.kill(helper, signal.SIGKILL)


def test_a_child_whose_dispatcher_died_while_it_started_runs_nothing(start, tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(100)
    environment = {"SIMPLER_CASE_JOURNAL": str(tmp_path / "journal"), "SIMPLER_DISPATCHER_PID": str(dead.pid)}
    child = start(*SIM, "--case", "TestOk0::", **environment)
    out, errors = child.communicate(timeout=100)
    assert child.returncode == 1 and "the dispatcher is gone" in errors and "TestOk0" not in out


def test_ctrl_c_without_children(start, tmp_path):
    mark = tmp_path / "mark"
    child = start(*SIM, "--manual", "include", "--case", "TestWait::")
    wait_until(lambda: mark.exists() and len(mark.read_text().split()) == 2)
    child.send_signal(signal.SIGINT)
    os.kill(pids_of(mark)[1], signal.SIGKILL)
    out, _ = child.communicate(timeout=100)
    assert child.returncode == 130 and "=== nothing ran in" in out and ", interrupted ===" in out


def test_a_module_run_by_name_starts_its_children_by_name(run, tmp_path):
    (tmp_path / "kit.py").write_text("NAME = 'kit'\n")
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "scenes.py").write_text("from . import __name__ as own\n" + textwrap.dedent(SCENES))
    command = [sys.executable, "-m", "pack.scenes", *TWO, "--case", "TestOk0::", "--case", "TestOk1::"]
    done = run(command=command)
    assert done.returncode == 0 and len(verdicts(done.out)) == 2, done.out + done.err


def test_a_journal_tells_what_was_running(tmp_path):
    path = tmp_path / "journal"
    assert Journal.read(path) == ([], None)
    journal = Journal(path)
    journal.started("A::a")
    journal.ended(Verdict("A::a", "FAILED", "two\nlines", 0.5))
    journal.started("A::b")
    with path.open("a") as file:
        file.write('{"ended": ["A::b", "PAS')  # the process died while it wrote
    assert Journal.read(path) == ([Verdict("A::a", "FAILED", "two\nlines", 0.5)], "A::b")


@pytest.mark.parametrize("code, text", [(3, "exit code 3"), (-9, "signal SIGKILL"), (-99, "signal 99")])
def test_ends_in_words(code, text):
    assert dispatch.describe_exit(code) == text
