"""`python scene.py ...` in a process of its own, on stand-ins for the runtime."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
import simpler_setup

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(simpler_setup.__file__)))

SCENES = """
import setup_fakes
from simpler_setup import SceneTestCase, scene_test

BOTH = ["a2a3sim", "a5sim"]

class _Report:
    CALLABLE = {"orchestration": {"source": "none.cpp", "function_name": "f"}, "incores": []}

    def build_callable(self, platform):
        if getattr(self, "BROKEN", False):
            raise RuntimeError("kernel does not compile\\nsecond line")

    def _run_and_validate_l2(self, worker, callable_obj, case, **kw):
        setup_fakes.report(case=case["name"], workers=len(setup_fakes.FakeWorker.made), **worker.settings, **kw)
        if case.get("boom"):
            raise RuntimeError(case["boom"])

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestAlpha(_Report, SceneTestCase):
    CASES = [{"name": "red", "platforms": BOTH}, {"name": "blue", "platforms": BOTH, "manual": True}]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestBeta(_Report, SceneTestCase):
    CASES = [
        {"name": "red", "platforms": BOTH},
        {"name": "crash", "platforms": BOTH, "manual": True, "boom": "went wrong\\nat length"},
        {"name": "after", "platforms": BOTH, "manual": True},
    ]

@scene_test(level=2, runtime="host_build_graph")
class TestOther(_Report, SceneTestCase):
    CASES = [{"name": "one", "platforms": ["a5sim"]}]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestBroken(_Report, SceneTestCase):
    BROKEN = True
    CASES = [{"name": "lost", "platforms": BOTH, "manual": True}]

def host(orch, callables, args, config):
    pass

@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class TestHost(SceneTestCase):
    CALLABLE = {"orchestration": host, "callables": []}
    CASES = [{"name": "two", "platforms": ["a5sim"]}]

if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    script = folder / "scenes.py"
    script.write_text(textwrap.dedent(SCENES))
    path = os.pathsep.join([PACKAGES, HERE])
    env = {**os.environ, "PYTHONPATH": path, "SETUP_FAKES": "1", "SIMPLER_OUTPUT_DIR": str(folder / "outputs")}
    cache = {}

    def run_script(*arguments, emulated="", stdout=subprocess.PIPE):
        key = (*arguments, emulated, stdout)
        if key not in cache:
            cache[key] = subprocess.run(
                [sys.executable, str(script), *arguments],
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                env={**env, "SIMPLER_EMULATED_VENDOR": emulated},
                check=False,
                timeout=300,
            )
        return cache[key]

    return run_script


SIM = ("-p", "a2a3sim")


def verdicts(done):
    return re.findall(r"^  (\w+::\w+) (PASSED|FAILED|SKIPPED)", done.stdout, re.M)


def test_the_default_run(run):
    done = run(*SIM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n=== Runtime: tensormap_and_ringbuffer  Level: 2 ===\n  TestAlpha::red ...\n" in done.stdout
    assert verdicts(done) == [("TestAlpha::red", "PASSED"), ("TestBeta::red", "PASSED")]
    assert '"enable_pmu": 0' in done.stdout and '"rounds": 1' in done.stdout and '"device_id": 0' in done.stdout


def test_runtimes_come_one_after_the_other(run):
    done = run("-p", "a5sim", "--level", "2")
    assert re.findall(r"L2 Runtime: (\w+)", done.stdout) == ["host_build_graph", "tensormap_and_ringbuffer"]
    assert verdicts(done)[0] == ("TestOther::one", "PASSED") and done.returncode == 0


def test_an_emulated_board_runs_the_cases_of_its_simulator(run):
    done = run("-p", "a2a3", emulated="/the/folder")
    assert done.returncode == 0 and verdicts(done) == verdicts(run(*SIM))
    assert "NOTE: platform a2a3 is emulated by the vendor library in /the/folder, without a board" in done.stderr
    assert "filters take it for a2a3sim" in done.stderr
    assert run("-p", "a2a3", "--list", emulated="/the/folder").stdout == run(*SIM, "--list").stdout
    assert "NOTE" not in run(*SIM, emulated="/the/folder").stderr


def test_a_host_level_class_is_skipped_with_the_reason(run):
    done = run("-p", "a5sim", "--case", "TestHost::")
    assert done.returncode == 0 and "  TestHost::two SKIPPED: level 3 needs Worker(level=3)" in done.stdout
    done = run("-p", "a5sim", "--enable-chip-swimlane")
    assert done.returncode == 2 and "TestHost" in done.stderr and "--enable-chip-swimlane" in done.stderr


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ((), 2, "-p/--platform is required"),
        (("-p", "a2a3smi"), 2, "unknown platform 'a2a3smi'; allowed: a2a3, a2a3sim, a5, a5sim. Did you mean 'a2a3sim'"),
        ((*SIM, "--case", "TestDelta::red"), 2, "ERROR: unknown class 'TestDelta'"),
        ((*SIM, "--case", "purple"), 2, "ERROR: case 'purple' not found in any class"),
        ((*SIM, "--case", "blue"), 2, "no cases matched.*--manual include"),
        (("-p", "a2a3"), 2, "platform=a2a3"),
        ((*SIM, "-d", ""), 2, "--device"),
        ((*SIM, "-d", "3-1"), 2, "rising range"),
        ((*SIM, "--max-parallel=0"), 2, "ERROR: --max-parallel"),
        ((*SIM, "--max-parallel=lots"), 2, "ERROR: --max-parallel"),
        ((*SIM, "--rounds", "0"), 2, "'0' is not a whole number of at least 1"),
        ((*SIM, "--log-level", "loudest"), 2, "unknown log level 'loudest'; allowed: debug, info"),
        ((*SIM, "--sanitizer", "asn"), 2, "Did you mean 'asan'"),
        ((*SIM, "--sanitizer", "thread"), 2, "needs libtsan.so in this process; start it with: LD_PRELOAD="),
        ((*SIM, "--runtime", "host_build_graph"), 2, "no cases matched"),
    ],
)
def test_wrong_command_lines(run, arguments, code, words):
    done = run(*arguments)
    assert done.returncode == code and re.search(words, done.stderr, re.S), done.stdout + done.stderr
    assert "REPORT" not in done.stdout


def test_a_filter_that_matches_no_class_is_no_failure(run):
    done = run(*SIM, "--level", "3", "--runtime", "host_build_graph")
    assert done.returncode == 0 and "No matching classes" in done.stdout


def test_a_failure_is_reported_and_the_next_case_gets_a_new_worker(run):
    done = run(*SIM, "--case", "TestBeta::", "--manual", "include")
    assert done.returncode == 1
    assert verdicts(done) == [("TestBeta::red", "PASSED"), ("TestBeta::crash", "FAILED"), ("TestBeta::after", "PASSED")]
    assert "  TestBeta::crash FAILED: went wrong\n    at length\n" in done.stdout and "Traceback" in done.stderr
    assert re.findall(r'"case": "(\w+)".*"workers": (\d)', done.stdout) == [
        ("red", "1"),
        ("crash", "1"),
        ("after", "2"),
    ]


def test_exit_first(run):
    done = run(*SIM, "--case", "TestBeta::", "--manual", "include", "-x")
    assert verdicts(done)[-1] == ("TestBeta::crash", "FAILED")


def test_a_class_that_does_not_compile_fails_its_cases(run):
    done = run(*SIM, "--case", "TestBroken::", "--manual", "only")
    assert done.returncode == 1 and "TestBroken::lost FAILED: kernel does not compile\n    second line" in done.stdout


def test_options_reach_the_run(run):
    done = run(
        *SIM, "--case", "TestAlpha::red", "--dump-args", "--enable-pmu", "--sim-clusters", "3", "--sim-threads", "1"
    )
    assert '"enable_dump_args": 1' in done.stdout and '"enable_pmu": 2' in done.stdout
    assert '"sim_clusters": 3' in done.stdout and '"sim_threads": 1' in done.stdout
    assert done.stderr.count("not produced; skipping") == 2


def test_older_options_are_understood(run):
    older = ("--enable-l2-swimlane", "2", "--dump-tensor", "3", "--clone-protocol", "ssh")
    done = run(*SIM, "--case", "TestAlpha::red", *older)
    assert '"enable_chip_swimlane": 2' in done.stdout and '"enable_dump_args": 3' in done.stdout
    assert "--clone-protocol has no effect without --pto-isa-commit" in done.stderr and done.returncode == 0


def test_several_devices_spread_the_classes(run):
    done = run(*SIM, "-d", "4-5", "--max-parallel", "2", "--case", "red", "--rounds", "2", "--dump-args", "1")
    assert done.returncode == 0, done.stdout
    assert "=== L2 Runtime: tensormap_and_ringbuffer  [fanout n=2] ===" in done.stdout
    assert done.stdout.count("[scheduler] START") == 2 and done.stdout.count("s: PASSED") == 2
    assert sorted(re.findall(r'"device_id": (\d).*"rounds": (\d)', done.stdout)) == [("4", "2"), ("5", "2")]


def test_a_failing_child_fails_the_run(run):
    done = run(
        *SIM, "-d", "0-1", "--max-parallel", "2", "--manual", "include", "--case", "crash", "--case", "TestAlpha::red"
    )
    assert done.returncode == 1 and "FAILED (rc=1)" in done.stdout


def test_both_filters_run_inline(run):
    done = run(*SIM, "-d", "0-1", "--runtime", "tensormap_and_ringbuffer", "--level", "2")
    assert "[scheduler]" not in done.stdout and done.returncode == 0


def test_the_list(run):
    done = run("--list", "--case", "TestBeta::")
    assert (
        done.returncode == 0
        and "TestBeta::crash  level 2  tensormap_and_ringbuffer  a2a3sim,a5sim  manual" in done.stdout
    )


def test_help_names_the_options(run):
    out = run("--help").stdout
    for (
        flag
    ) in "--platform --case --manual --enable-l2-swimlane --dump-tensor --sim-clusters --exitfirst --list".split():
        assert flag in out


def test_a_reader_that_left_ends_the_run_without_a_traceback(run):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(*SIM, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr, done.stderr
