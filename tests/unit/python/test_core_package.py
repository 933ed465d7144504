"""What importing the package does, and its small modules: errors, logging, environment, levels, platforms."""

import logging
import pickle
import subprocess
import sys

import pytest
import simpler
from simpler import _log, env_manager, errors, platforms, worker_level


def python(code):
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


# ---- importing ----


def test_importing_the_package_loads_neither_extension_nor_worker():
    code = """
import sys
sys.modules["_task_interface"] = None  # importing it now fails
import simpler
names = dir(simpler)
print(names == sorted(simpler.__all__), "simpler.worker" in sys.modules, len(names))
"""
    assert python(code) == "True False 8"


def test_lazy_names():
    import simpler.worker

    assert simpler.Worker is simpler.worker.Worker
    assert simpler.task_interface.TaskArgs
    with pytest.raises(AttributeError, match="nonsense"):
        _ = simpler.nonsense


# ---- errors ----

KINDS = [
    ("RunError", RuntimeError),
    ("ArgumentError", ValueError),
    ("ArgumentTypeError", TypeError),
    ("ArgumentIndexError", IndexError),
    ("UnknownHandleError", KeyError),
    ("StateError", RuntimeError),
    ("WaitTimeoutError", TimeoutError),
    ("DeviceError", RuntimeError),
    ("OutOfMemoryError", MemoryError),
]


@pytest.mark.parametrize("kind, row", list(enumerate(KINDS)))
def test_each_native_kind_has_its_class(kind, row):
    name, builtin = row
    error = errors.from_status(kind, -1, "text", "")
    assert type(error) is getattr(errors, name)
    assert isinstance(error, builtin) and isinstance(error, errors.SimplerError)
    assert "text" in str(error) and str(error)[0] not in "'\"" and error.code == -1
    assert type(pickle.loads(pickle.dumps(error))) is type(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_failed_run_says_code_name_cause_and_hint():
    text = "FLOW_CONTROL_DEADLOCK: the task window is full and nothing runs. Enlarge ring_task_window."
    error = errors.from_status(0, -3, text, "run")
    assert str(error) == f"run failed with code -3 (run_prepared failed with code -3): {text}"
    assert (error.code, error.name, error.hint) == (-3, "FLOW_CONTROL_DEADLOCK", "Enlarge ring_task_window.")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code, again.name, again.hint) == (str(error), -3, error.name, error.hint)


def test_code_that_cannot_be_loaded_fails_like_a_run():
    error = errors.from_status(1, -1, "no function 'f'", "register_callable")
    assert type(error) is errors.RunError and str(error) == "register_callable failed with code -1: no function 'f'"
    assert type(errors.from_status(8, -1, "full", "register_callable")) is errors.OutOfMemoryError


def test_device_failures_name_the_operation():
    assert str(errors.from_status(7, -1, "gone", "simpler_init")) == "simpler_init failed with code -1: gone"
    assert str(errors.from_status(1, -1, "bad size", "malloc")) == "bad size"


# ---- logging ----


def test_level_names_are_known_to_logging():
    assert (logging.TIMING, logging.NUL, logging.NULL) == (25, 60, 60)
    assert logging.getLevelName(25) == "TIMING" and logging.getLevelName("V3") == 18
    assert logging.getLevelName(20) == "INFO" and logging.getLevelName("V5") == 20


@pytest.mark.parametrize(
    "level, rounded",
    [(1, 10), (10, 10), (11, 20), (20, 20), (21, 25), (26, 30), (31, 40), (41, 60), (60, 60), (99, 60)],
)
def test_the_threshold_is_rounded_up_to_the_ladder(level, rounded):
    logger = _log.get_logger()
    before = logger.level
    try:
        logger.setLevel(level)
        assert simpler.get_current_config() == rounded
    finally:
        logger.setLevel(before)


def test_the_default_threshold_is_timing_and_a_set_one_is_kept():
    assert python("import simpler; print(simpler.get_logger().level)") == "25"
    earlier = "import logging; logging.getLogger('simpler').setLevel(40)"
    assert python(f"{earlier}; import simpler; print(simpler.get_logger().level)") == "40"


def test_levels_by_name():
    assert [_log.parse_level(x) for x in ("debug", "TIMING", "null", "v0", "v9", 17)] == [10, 25, 60, 15, 24, 17]
    with pytest.raises(ValueError, match="loud"):
        _log.parse_level("loud")


# ---- environment, levels, platforms ----


def test_variables_are_read_once(monkeypatch):
    name = "SIMPLER_TEST_VARIABLE"
    monkeypatch.setattr(env_manager, "_cache", {})
    monkeypatch.setenv(name, "")
    with pytest.raises(OSError, match="environment variable is not set"):
        env_manager.ensure(name)
    monkeypatch.setenv(name, "one")
    assert env_manager.get(name) is None
    assert env_manager.ensure(name) == env_manager.get(name) == "one"
    monkeypatch.setenv(name, "two")
    assert env_manager.ensure(name) == "one"


def test_worker_levels():
    assert [m.value for m in worker_level.WorkerLevel] == [0, 2, 3, 4, 5, 6]
    assert worker_level.span_prefix(3) == "host"
    with pytest.raises(ValueError, match="0 core, 2 chip"):
        worker_level.span_prefix(1)


def test_unknown_platforms_and_runtimes_name_the_nearest():
    assert platforms.platform_named("a5sim").arch == "a5"
    with pytest.raises(ValueError, match="did you mean 'a2a3sim'.*supported: a2a3, a2a3sim, a5, a5sim"):
        platforms.platform_named("a2a3sym")
    with pytest.raises(ValueError, match="did you mean 'host_build_graph'"):
        platforms.runtime_named("host_build_graf")
    with pytest.raises(TypeError):
        platforms.platform_named(5)
