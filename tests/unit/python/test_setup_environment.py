"""Names, folders, device lists, log levels and sanitizer presets of simpler_setup."""

import logging
import os
import subprocess
import sys

import pytest
from simpler_setup import environment, log_config, platforms, pto_isa, sanitizers
from simpler_setup.parallel_scheduler import default_max_parallel, device_range_to_list, format_device_range


def test_importing_the_package_loads_neither_torch_nor_numpy_nor_the_extension():
    code = (
        "import sys, simpler_setup; simpler_setup.SceneTestCase, simpler_setup.TaskArgsBuilder;"
        "import simpler_setup.scene_test, simpler_setup.pytest_plugin;"
        "print([m for m in ('torch', 'numpy', '_task_interface', 'simpler.worker') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_decorator_hides_the_submodule_in_either_import_order():
    for first in ("import simpler_setup.scene_test", "from simpler_setup import scene_test"):
        code = f"{first}\nimport simpler_setup\nfrom simpler_setup.scene_test import _outputs_dir, SceneTestLevel\n"
        code += "print(type(simpler_setup.scene_test).__name__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "function"


def test_every_public_name_resolves():
    import simpler_setup
    from simpler_setup import scene_test  # noqa: F401

    facade = sys.modules["simpler_setup.scene_test"]
    for module in (simpler_setup, facade):
        for name in module.__all__:
            assert getattr(module, name) is not None
            assert name in dir(module)
        with pytest.raises(AttributeError, match="nonsense"):
            module.nonsense  # noqa: B018
    assert simpler_setup.Tensor is simpler_setup.TensorArg


@pytest.mark.parametrize(
    "name, pair", [("a2a3", ("a2a3", "onboard")), ("a2a3sim", ("a2a3", "sim")), ("a5sim", ("a5", "sim"))]
)
def test_platform_names_and_pairs_are_inverse(name, pair):
    assert platforms.parse_platform(name) == pair and platforms.to_platform(*pair) == name


@pytest.mark.parametrize(
    "call, value, nearest",
    [
        (platforms.parse_platform, "a2a3smi", "a2a3sim"),
        (platforms.check_runtime, "host_build_grph", "host_build_graph"),
        (platforms.discover_runtimes, "a2a33", "a2a3"),
    ],
)
def test_an_unknown_name_lists_the_allowed_ones_and_the_nearest(call, value, nearest):
    with pytest.raises(ValueError, match=f"{value}.*allowed: .*{nearest}.*Did you mean '{nearest}'"):
        call(value)


def test_runtimes_are_sorted():
    assert platforms.discover_runtimes("a5") == ["host_build_graph", "tensormap_and_ringbuffer"]


def test_headers_and_tile_library_exist():
    root = pto_isa.bundled_pto_isa_root()
    assert (root / "include" / "pto").is_dir() and (environment.include_root() / "orchestration").is_dir()


def test_an_explicit_tile_library_wins_and_must_exist(monkeypatch, tmp_path):
    (tmp_path / "include").mkdir()
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    assert pto_isa.ensure_pto_isa_root() == str(tmp_path)
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="PTO_ISA_ROOT"):
        pto_isa.ensure_pto_isa_root()


@pytest.fixture
def repository(monkeypatch, tmp_path):
    """A repository in place of the vendor's; returns its folder and the environment's cache folder."""
    folder = tmp_path / "vendor"
    (folder / "include" / "pto").mkdir(parents=True)
    (folder / "include" / "pto" / "pto-inst.hpp").write_text("#pragma once\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"], ["tag", "v1"]):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True)
    monkeypatch.setenv("SIMPLER_PTO_ISA_URL", str(folder))
    monkeypatch.setenv("SIMPLER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PTO_ISA_ROOT", raising=False)
    return folder


def test_a_commit_of_the_vendors_library_is_fetched_once(repository, monkeypatch):
    root = pto_isa.ensure_pto_isa_root(commit="v1", clone_protocol="ssh", update_if_exists=True)
    assert os.path.isfile(os.path.join(root, "include", "pto", "pto-inst.hpp"))
    repository.rename(repository.with_name("gone"))
    assert pto_isa.ensure_pto_isa_root(commit="v1") == root
    assert [p.name for p in os.scandir(os.path.dirname(root))] == [os.path.basename(root)], "no scratch folder is left"
    pto_isa.select(pto_isa.fetch("v1"))
    monkeypatch.setenv("PTO_ISA_ROOT", "/nowhere")
    assert pto_isa.ensure_pto_isa_root() == root, "the option wins over the environment"
    pto_isa.select(None)


@pytest.mark.parametrize(
    "commit, kind, words",
    [
        ("v2", OSError, "at v2 cannot be fetched: .*v2.*leave --pto-isa-commit out.*PTO_ISA_ROOT"),
        ("--upload-pack=x", ValueError, "'--upload-pack=x' is not a commit, tag or branch name"),
    ],
)
def test_a_commit_that_cannot_be_fetched(repository, commit, kind, words):
    with pytest.raises(kind, match=words):
        pto_isa.ensure_pto_isa_root(commit=commit)


def test_without_a_commit_nothing_is_fetched(repository):
    repository.rename(repository.with_name("gone"))
    assert pto_isa.ensure_pto_isa_root(commit=None, clone_protocol="ssh") == str(pto_isa.bundled_pto_isa_root())


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SIMPLER_CACHE_DIR", raising=False)
    assert environment.cache_dir() == tmp_path / "simpler"
    monkeypatch.setenv("SIMPLER_CACHE_DIR", str(tmp_path / "own"))
    assert environment.cache_dir() == tmp_path / "own"


def test_output_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMPLER_OUTPUT_DIR", str(tmp_path))
    assert environment.outputs_dir() == tmp_path


@pytest.mark.parametrize(
    "text, ids", [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0,2-4,7", [0, 2, 3, 4, 7]), ("5,1,1-2", [1, 2, 5]), ("", [])]
)
def test_device_lists_are_sorted_and_distinct(text, ids):
    assert device_range_to_list(text) == ids


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "1-", "0,x"])
def test_a_wrong_device_list_is_refused(text):
    with pytest.raises(ValueError, match="device list"):
        device_range_to_list(text)


@pytest.mark.parametrize("ids, text", [([0, 1, 2, 3], "0-3"), ([4], "4"), ([0, 2, 5], "0,2,5"), ([], "")])
def test_device_lists_are_printed_short(ids, text):
    assert format_device_range(ids) == text


def test_parallel_children_follow_devices_and_cpus():
    cpus = len(os.sched_getaffinity(0))
    assert default_max_parallel("a2a3", list(range(6))) == 6
    assert default_max_parallel("a2a3sim", list(range(cpus + 3))) == cpus
    assert default_max_parallel("a5", []) == 1


@pytest.mark.parametrize(
    "preset, tokens, library",
    [
        ("none", "", None),
        ("asan", "address,undefined", "libasan.so"),
        ("tsan", "thread", "libtsan.so"),
        ("leak,undefined", "leak,undefined", "liblsan.so"),
    ],
)
def test_sanitizer_presets(preset, tokens, library):
    assert sanitizers.resolve(preset) == tokens and sanitizers.preload_lib(tokens) == library


def test_sanitizers_that_exclude_each_other():
    with pytest.raises(ValueError, match="thread cannot be combined"):
        sanitizers.resolve("thread,address")
    with pytest.raises(ValueError, match="Did you mean 'asan'"):
        sanitizers.resolve("asn")


def test_preload_command_names_the_library():
    assert sanitizers.preload_command("") == ""
    assert "asan" in sanitizers.preload_command("address")
    assert not sanitizers.is_runtime_loaded("libnone-such.so") and sanitizers.is_runtime_loaded("libc")


@pytest.mark.parametrize(
    "name, level", [("debug", 10), ("timing", 25), ("null", 60), ("v5", 20), ("v9", 24), (33, 33), ("?", 25)]
)
def test_log_levels_by_name(name, level):
    assert log_config.parse_level(name) == level


def test_configuring_the_log_sets_only_our_logger():
    logger, before = logging.getLogger("simpler"), logging.getLogger("simpler").level
    try:
        log_config.configure_logging("error")
        assert logger.level == 40
    finally:
        logger.setLevel(before)
