"""The pytest plugin in sessions of its own, on stand-ins for the runtime."""

import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points

import pytest
import simpler_setup

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(simpler_setup.__file__)))

SCENES = """
import pytest, setup_fakes
from simpler_setup import SceneTestCase, scene_test

BOTH = ["a2a3sim", "a5sim"]

class _Report:
    CALLABLE = {"orchestration": {"source": "none.cpp", "function_name": "f"}, "incores": []}

    def build_callable(self, platform):
        pass

    def _run_and_validate_l2(self, worker, callable_obj, case, **kw):
        setup_fakes.report(case=f"{type(self).__name__}::{case['name']}", worker=id(worker), **worker.settings, **kw)
        assert not case.get("boom"), case["boom"]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestAlpha(_Report, SceneTestCase):
    CASES = [
        {"name": "red", "platforms": BOTH},
        {"name": "green", "platforms": ["a2a3sim"]},
        {"name": "blue", "platforms": BOTH, "manual": True},
    ]

    def test_of_its_own(self):
        pass

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestBeta(_Report, SceneTestCase):
    CASES = [{"name": "red", "platforms": BOTH}]

@scene_test(level=2, runtime="host_build_graph")
class TestOther(_Report, SceneTestCase):
    CASES = [{"name": "one", "platforms": BOTH}]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestGamma(_Report, SceneTestCase):
    CASES = [
        {"name": "crash", "platforms": BOTH, "manual": True, "boom": "gamma went wrong"},
        {"name": "after", "platforms": BOTH, "manual": True},
    ]

def host(orch, callables, args, config):
    pass

@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class TestHost(SceneTestCase):
    CALLABLE = {"orchestration": host, "callables": []}
    CASES = [{"name": "two", "platforms": ["a5sim"]}]

def test_ordinary():
    pass
"""

FUNCTIONS = """
import pytest

def test_sees_platform(st_platform):
    print(f"PLATFORM {st_platform}")

@pytest.mark.device_count(2)
def test_takes_two(st_device_ids, device_pool):
    print(f"IDS {st_device_ids} LEFT {device_pool.allocate(9)}")

@pytest.mark.platforms(["a5sim"])
def test_elsewhere():
    print("ELSEWHERE")

@pytest.mark.manual
def test_by_hand():
    print("BYHAND")

@pytest.mark.manual(["a2a3sim"])
def test_by_hand_here():
    print("BYHANDHERE")

@pytest.mark.runtime("host_build_graph")
def test_of_a_runtime():
    print("OFRUNTIME")

@pytest.mark.requires_hardware
def test_on_a_board():
    print("BOARD")

@pytest.mark.skip(reason="by the user")
@pytest.mark.manual
def test_skipped():
    pass

def test_plain():
    print("PLAIN")
"""


class Ran:
    def __init__(self, done):
        self.rc, self.out = done.returncode, done.stdout + done.stderr

    def cases(self):
        return re.findall(r'^REPORT .*"case": "([^"]+)"', self.out, re.M)

    def counts(self):
        (line,) = re.findall(r"^=* ?(.* in [\d.]+s.*)$", self.out, re.M)[-1:]
        return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|deselected|errors?)", line)}


@pytest.fixture
def session(tmp_path):
    """Run pytest in a folder of files; `plugins` come before ours."""

    def run(*arguments, plugins=(), **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        path = os.pathsep.join([PACKAGES, HERE, str(tmp_path)])
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        env.update(PYTHONPATH=path, SETUP_FAKES="1", SIMPLER_OUTPUT_DIR=str(tmp_path / "outputs"))
        ours = [] if any(p.name == "simpler" for p in _pytest_plugins()) else ["-p", "simpler_setup.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--import-mode=importlib", "-rA", "-s"]
        command += [word for plugin in ("setup_fakes", *plugins) for word in ("-p", plugin)] + ours
        command += [f"--rootdir={tmp_path}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=False, timeout=300)
        return Ran(done)

    return run


def _pytest_plugins():
    found = entry_points()
    return found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", [])


def on_sim(session, *arguments, **files):
    return session("--platform", "a2a3sim", *arguments, **(files or {"test_scenes": SCENES}))


# -- selection ------------------------------------------------------------------------------------------------------


def test_without_platform_scenes_are_skipped_visibly(session):
    ran = session(test_scenes=SCENES)
    assert ran.rc == 0 and ran.counts() == {"passed": 1, "skipped": 6} and "scene tests need --platform" in ran.out


def test_the_default_selection(session):
    ran = on_sim(session)
    assert ran.rc == 0, ran.out
    assert ran.cases() == ["TestAlpha::red", "TestAlpha::green", "TestBeta::red", "TestOther::one"]
    assert ran.counts() == {"passed": 5, "deselected": 2}
    assert "simpler: platform a2a3sim, devices 0" in ran.out


def test_host_level_classes_are_skipped_with_the_reason(session):
    ran = session("--platform", "a5sim", "-k", "Host", test_scenes=SCENES)
    assert ran.counts() == {"skipped": 1, "deselected": 6} and "level 3 needs Worker(level=3)" in ran.out
    refused = session("--platform", "a5sim", "--enable-chip-swimlane", "--", ".", test_scenes=SCENES)
    assert refused.rc == 4 and "TestHost" in refused.out


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--case", "TestBeta::red", "--case", "green"], ["TestAlpha::green", "TestBeta::red"]),
        (["--manual", "only", "-k", "not Gamma"], ["TestAlpha::blue"]),
        (["--runtime", "host_build_graph"], ["TestOther::one"]),
        (["--exclude-level", "2"], []),
        (["--level", "2", "-k", "Beta"], ["TestBeta::red"]),
    ],
)
def test_selections(session, arguments, expected):
    ran = on_sim(session, *arguments)
    assert ran.rc == 0, ran.out
    assert ran.cases() == expected
    assert "Beta" in arguments or "-k" in arguments or ran.counts()["passed"] >= 1, "the ordinary test always runs"


def test_a_selector_that_names_nothing_is_told(session):
    assert "--case purple names no collected case" in on_sim(session, "--case", "purple").out


def test_a_selector_of_manual_cases_tells_how_to_run_them(session):
    ran = on_sim(session, "--case", "blue")
    assert "--case blue: no cases matched platform=a2a3sim" in ran.out and "some do with --manual include" in ran.out
    assert "no cases matched" not in on_sim(session, "--case", "blue", "--manual", "include").out


def test_methods_of_their_own_follow_the_cases_of_their_class(session):
    names = re.findall(r"(Test\w+)::\w+", on_sim(session, "--case", "TestBeta::", "--collect-only", "-q").out)
    assert names == ["TestBeta"], "not the method of TestAlpha, of which no case is selected"


LEVELS = """
from simpler_setup import scene_level

@scene_level(2)
def test_of_the_chip():
    pass

@scene_level(3)
def test_of_the_host():
    pass

def test_of_no_level():
    pass
"""


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], ["chip", "host", "no_level"]),
        (["--level", "2"], ["chip"]),
        (["--level", "3"], ["host"]),
        (["--exclude-level", "3"], ["chip", "no_level"]),
    ],
)
def test_a_level_leaves_out_functions_without_it(session, arguments, expected):
    ran = on_sim(session, *arguments, test_levels=LEVELS)
    assert re.findall(r"^PASSED .*::test_of_(?:the_)?(\w+)$", ran.out, re.M) == expected


def test_scenes_run_in_the_order_of_their_names_and_functions_where_they_stand(session):
    text = """
    from simpler_setup import SceneTestCase, scene_test

    def test_first(): pass

    class _Own:
        CALLABLE = {"orchestration": {"source": "none.cpp", "function_name": "f"}, "incores": []}
        def test_own(self): pass

    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestZebra(_Own, SceneTestCase): pass

    def test_between(): pass

    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAnt(_Own, SceneTestCase): pass
    """
    ran = on_sim(session, "--collect-only", "-q", test_order=text)
    found = re.findall(r"test_order\.py::(\w+)", ran.out)
    assert found == ["test_first", "TestAnt", "test_between", "TestZebra"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--level", "2", "--exclude-level", "3"], "cannot be used together"),
        (["--max-parallel", "0"], "--max-parallel must be"),
        (["--device", "x"], "device list 'x'"),
        (["--rounds", "0"], "not a whole number of at least 1"),
        (["--runtime", "ringbufer"], "unknown runtime 'ringbufer'; allowed: host_build_graph, tensormap_and"),
        (["--platfom", "a2a3sim"], "unrecognized arguments: --platfom; did you mean --platform"),
        (["--level", "5"], "unknown level '5'; allowed: 2, 3, 4"),
        (["--case", "::"], "neither a class nor a case"),
        (["--sanitizer", "thread"], "needs libtsan.so"),
    ],
)
def test_wrong_options_are_usage_errors(session, arguments, words):
    ran = on_sim(session, *arguments)
    assert ran.rc == 4 and words in ran.out


# -- running --------------------------------------------------------------------------------------------------------


def test_options_reach_the_run(session, tmp_path):
    ran = on_sim(
        session,
        "-k",
        "Beta",
        "--skip-golden",
        "--dump-args",
        "2",
        "--enable-dep-gen",
        "--sim-clusters",
        "2",
        "--enable-pmu",
    )
    assert ran.rc == 0, ran.out
    for fact in (
        '"skip_golden": true',
        '"enable_dump_args": 2',
        '"enable_dep_gen": true',
        '"sim_clusters": 2',
        '"enable_pmu": 2',
    ):
        assert fact in ran.out
    assert len(list((tmp_path / "outputs").iterdir())) == 1 and ran.out.count("not produced; skipping") == 3


def test_more_rounds_switch_every_recorder_off(session):
    ran = on_sim(
        session, "-k", "Beta", "--rounds", "2", "--enable-chip-swimlane", "--enable-pmu", "--enable-scope-stats"
    )
    assert '"rounds": 2' in ran.out and '"enable_pmu": 0' in ran.out and ran.out.count("disabled: --rounds > 1") == 3


def test_every_case_of_a_class_runs_and_the_failing_one_is_named(session):
    ran = on_sim(session, "--manual", "only", "-k", "Gamma")
    assert ran.rc == 1 and ran.cases() == ["TestGamma::crash", "TestGamma::after"]
    assert "gamma went wrong" in ran.out
    assert sys.version_info < (3, 11) or "in case TestGamma::crash" in ran.out
    assert on_sim(session, "--manual", "only", "-k", "Gamma", "-x").cases() == ["TestGamma::crash"]


def test_a_worker_is_shared_until_a_test_fails(session):
    ran = on_sim(session, "--manual", "include", "--runtime", "tensormap_and_ringbuffer")
    workers = re.findall(r'"case": "(\w+)::\w+".*"worker": (\d+)', ran.out)
    assert len({worker for name, worker in workers if name in ("TestAlpha", "TestBeta")}) == 1


def test_functions_and_fixtures(session):
    ran = on_sim(session, "--device", "2-4", test_functions=FUNCTIONS)
    assert ran.rc == 0, ran.out
    assert "PLATFORM a2a3sim" in ran.out and "IDS [2, 3] LEFT []" in ran.out and "PLAIN" in ran.out
    for absent in ("ELSEWHERE", "BYHAND", "BOARD"):
        assert absent not in ran.out
    assert ran.counts() == {"passed": 4, "skipped": 2, "deselected": 3}


def test_too_few_devices_fail_the_test(session):
    ran = on_sim(session, "-k", "two", test_functions=FUNCTIONS)
    assert ran.rc == 1 and "need 2 devices" in ran.out


def test_manual_functions(session):
    ran = on_sim(session, "--manual", "only", test_functions=FUNCTIONS)
    assert "BYHAND\n" in ran.out and "BYHANDHERE" in ran.out and "PLAIN" not in ran.out
    other = session("--platform", "a5sim", test_functions=FUNCTIONS)
    assert "BYHANDHERE" in other.out and "ELSEWHERE" in other.out


def test_a_wrong_manual_marker_is_a_usage_error(session):
    text = "import pytest\n@pytest.mark.manual(['a5'], platforms=['a5'])\ndef test_x(): pass\n"
    ran = on_sim(session, test_functions=text)
    assert ran.rc == 4 and "manual marker takes platforms" in ran.out


def test_a_wrong_platforms_marker_is_a_usage_error_of_a_session_with_a_platform(session):
    text = "import pytest\n@pytest.mark.platforms(['a5simm'])\ndef test_x(): pass\n"
    ran = on_sim(session, test_functions=text)
    assert ran.rc == 4 and "test_x: platforms marker: unknown platform 'a5simm'" in ran.out
    assert session(test_functions=text).rc == 0, "without a platform the marker may be another project's"


def test_a_wrong_device_count_fails_the_test(session):
    text = "import pytest\n@pytest.mark.device_count('two')\ndef test_x(st_device_ids): pass\n"
    ran = on_sim(session, test_functions=text)
    assert ran.rc == 1 and "device_count takes a whole number of at least 1, got 'two'" in ran.out


def test_tests_of_two_hosts_are_skipped_with_the_reason(session):
    text = """
    import pytest

    @pytest.mark.network1_remote_device_count(1)
    def test_both(st_network1_peer, st_network1_remote_device_ids, st_network1_logs):
        raise AssertionError("there is no other host")
    """
    ran = on_sim(session, "--strict-markers", test_hosts=text)
    assert ran.counts() == {"skipped": 1} and "level 4 needs Worker(level=4)" in ran.out


def test_options_and_markers_are_listed(session):
    text = session("--help", test_functions=FUNCTIONS).out
    for (
        flag
    ) in "--platform --exclude-level --dump-args --enable-l2-swimlane --pto-session-timeout --sim-threads".split():
        assert flag in text
    marks = session("--markers", test_functions=FUNCTIONS).out
    for mark in ("platforms", "runtime", "device_count", "requires_hardware", "manual", "sdma"):
        assert re.search(rf"^@pytest\.mark\.{mark}\b", marks, re.M)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--max-parallel", "2"], "--max-parallel 2 has no effect with 1 device: name several with --device"),
        (["--max-parallel", "2", "-n", "1", "--device", "0-1"], "--max-parallel has no effect beside -n"),
        (["--max-parallel", "2", "-p", "no:xdist"], "--max-parallel has no effect without pytest-xdist"),
        (["--clone-protocol", "ssh"], "--clone-protocol has no effect without --pto-isa-commit"),
    ],
)
def test_options_without_effect_say_so(session, arguments, words):
    ran = on_sim(session, "-k", "Beta", *arguments)
    assert ran.rc == 0 and words in ran.out, ran.out


def test_max_parallel_spreads_files_over_processes(session):
    head, _, beta, *_ = SCENES.split("@scene_test")
    files = {f"test_file{i}": f"{head}@scene_test{beta.replace('TestBeta', f'TestBeta{i}')}" for i in range(3)}
    ran = on_sim(session, "--device", "0-15", "--max-parallel", "3", **files)
    assert ran.rc == 0 and ran.counts()["passed"] == 3 and "3 workers" in ran.out, ran.out


def test_last_failed_and_junit_know_the_scenes(session, tmp_path):
    junit = tmp_path / "junit.xml"
    arguments = ["--manual", "include", f"--junitxml={junit}", "-p", "cacheprovider", "-o", f"cache_dir={tmp_path}/c"]
    first = on_sim(session, *arguments)
    assert first.rc == 1 and first.counts()["failed"] == 1, first.out
    text = junit.read_text()
    assert 'failures="1"' in text and 'classname="test_scenes.TestGamma"' in text and "gamma went wrong" in text
    again = on_sim(session, *arguments, "--lf")
    assert set(again.cases()) == {"TestGamma::crash", "TestGamma::after"} and again.counts()["failed"] == 1, again.out


CRASH = """
import os, signal
import pytest

@pytest.mark.parametrize("index", range(4))
def test_one(index):
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_dies_costs_one_test(session):
    ran = session("--device", "0-1", "--max-parallel", "2", "--dist", "load", test_crash=CRASH)
    assert ran.rc == 1 and ran.counts() == {"failed": 1, "passed": 3}, ran.out
    assert "crashed while running" in ran.out and "test_one[1]" in ran.out


@pytest.mark.parametrize("level", ["timing", "null", "v7", "DEBUG"])
def test_pytests_own_log_level_takes_our_names(session, level):
    assert on_sim(session, "-k", "Beta", "--log-level", level).rc == 0


# -- company --------------------------------------------------------------------------------------------------------

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--platform", action="store", default=None, dest="my_platform")
    parser.getgroup("mine").addoption("--rounds", type=int, default=1)
    parser.addoption("--device", "--devices", default="0")
    parser.addoption("--mine", default="5")

@pytest.fixture
def facts(request):
    c = request.config
    return c.getoption("my_platform"), c.getoption("--rounds"), c.getoption("--devices"), c.getoption("--mine")
"""


def test_an_emulated_board_runs_what_its_simulator_runs(session, monkeypatch):
    simulated = session("--platform", "a5sim", "--manual", "include", test_scenes=SCENES, test_functions=FUNCTIONS)
    monkeypatch.setenv("SIMPLER_EMULATED_VENDOR", "/the/folder")
    emulated = session("--platform", "a5", "--manual", "include")
    assert emulated.cases() == simulated.cases() != []
    assert emulated.counts() == simulated.counts()
    assert "ELSEWHERE" in emulated.out and "\nBOARD" not in emulated.out and "PLATFORM a5\n" in emulated.out
    assert "simpler: platform a5 is emulated by the vendor library in /the/folder, without a board" in emulated.out
    assert "is emulated by" not in simulated.out


def test_a_conftest_may_register_the_same_options(session):
    ran = on_sim(
        session, "--rounds", "3", "--devices", "4",
        conftest=CONFTEST, test_facts="def test_facts(facts): print('FACTS', facts)",
    )  # fmt: skip
    assert ran.rc == 0, ran.out
    assert "FACTS ('a2a3sim', 3, '4', '5')" in ran.out


EARLY = """
def pytest_addoption(parser):
    parser.addoption("--platform")
    parser.addoption("--device", default="7")
"""


def test_an_earlier_plugin_may_have_registered_them(session):
    ran = session(
        "--platform", "a2a3sim", "-k", "Beta", plugins=["early"], test_scenes=SCENES,
        early=EARLY,
    )  # fmt: skip
    assert ran.rc == 0, ran.out
    assert ran.cases() == ["TestBeta::red"] and '"device_id": 7' in ran.out


def test_fixtures_may_be_overridden_locally(session):
    conftest = """
    import pytest
    from simpler.worker import Worker

    @pytest.fixture(scope="class")
    def st_worker(request, st_platform, device_pool):
        (device,) = device_pool.allocate(1)
        worker = Worker(level=2, device_id=device, platform=st_platform, runtime=request.cls._st_runtime, mark="own")
        yield worker
        worker.close()
        device_pool.release([device])
    """
    ran = on_sim(session, "-k", "Beta", conftest=conftest, test_scenes=SCENES)
    assert ran.rc == 0 and '"mark": "own"' in ran.out, ran.out


def test_xdist_spreads_the_classes(session):
    pytest.importorskip("xdist")
    ran = on_sim(session, "-n", "2", "--device", "0-1")
    assert ran.rc == 0 and ran.counts()["passed"] == 5, ran.out


# The time of a session counts from when its test is stuck: on a busy machine it may take long to get there.
LATE = """
import os, threading, time
from simpler_setup.session_alarm import SessionAlarm

def start_late(alarm, start=SessionAlarm.start):
    def wait():
        while not os.path.exists("stuck"):
            time.sleep(0.01)
        start(alarm)
    threading.Thread(target=wait, daemon=True).start()

SessionAlarm.start = start_late
"""
STUCK = """
import time

def test_stuck():
    open("stuck", "w").close()
    time.sleep(600)
"""


def test_a_session_that_takes_too_long_shows_its_stacks(session):
    ran = session("--pto-session-timeout", "1", plugins=["late"], late=LATE, test_stuck=STUCK)
    assert ran.rc == 124, ran.out
    assert "::group::HUNG" in ran.out and "in test_stuck" in ran.out


def test_a_session_in_time_is_left_alone(session):
    assert session("--pto-session-timeout", "300", test_quick="def test_quick(): pass").rc == 0


def test_a_stuck_xdist_worker_shows_its_stacks(session):
    pytest.importorskip("xdist")
    ran = session("-n", "1", "--pto-session-timeout", "1", plugins=["late"], late=LATE, test_stuck=STUCK)
    assert ran.rc == 124 and "stacks of child" in ran.out and "in test_stuck" in ran.out, ran.out


def test_collecting_only_compiles_nothing(session, tmp_path):
    ran = on_sim(session, "--collect-only", "-q")
    assert ran.rc == 0 and "TestBeta::test_run" in ran.out
