"""The command `simpler`: run, new, doctor, cache. On the real runtime."""

import re
import subprocess
import sys

import pytest
from simpler_setup.command import main
from simpler_setup.compile_cache import CompileCache


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Two scenes from `simpler new`, and a file that cannot be imported in a folder of its own."""
    folder = tmp_path_factory.mktemp("scenes")
    assert main(["new", "one-thing", "--dir", str(folder)]) == 0 and main(["new", "two", "--dir", str(folder)]) == 0
    (folder / "broken").mkdir()
    (folder / "broken" / "test_broken.py").write_text("from simpler_setup import scene_test\nimport numpi\n")
    (folder / "one_thing" / "test_plain.py").write_text("raise RuntimeError('never imported: it has no scene')\n")
    return folder


def run(*arguments, **keywords):
    command = [sys.executable, "-m", "simpler_setup", "run", *map(str, arguments), "-p", "a2a3sim"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **keywords)


def verdicts(done):
    return re.findall(r"^  (\w+::\w+) (PASSED|FAILED)", done.stdout, re.M)


def test_a_new_scene_passes_and_its_folder_is_searched(scenes):
    done = run(scenes / "one_thing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done) == [("TestOneThing::one_piece", "PASSED"), ("TestOneThing::many_pieces", "PASSED")]
    assert re.search(r"\n\n=== 2 passed in [\d.]+ s ===\n$", done.stdout)


def test_files_classes_and_cases_are_chosen_by_name(scenes):
    two = scenes / "two" / "test_two.py"
    done = run(f"{scenes / 'one_thing' / 'test_one_thing.py'}::TestOneThing::one_piece", f"{two}::TestTwo", two)
    assert [name for name, _ in verdicts(done)] == [
        "TestOneThing::one_piece", "TestTwo::one_piece", "TestTwo::many_pieces",
    ]  # fmt: skip


def test_children_get_the_same_cases(scenes):
    done = run(scenes / "one_thing", f"{scenes / 'two' / 'test_two.py'}::TestTwo::many_pieces", "-d", "0-1",
               "--max-parallel", "2")  # fmt: skip
    assert done.returncode == 0 and done.stdout.count("[scheduler] START") == 2, done.stdout + done.stderr
    assert sorted(name for name, _ in verdicts(done)) == [
        "TestOneThing::many_pieces", "TestOneThing::one_piece", "TestTwo::many_pieces",
    ]  # fmt: skip


def test_a_file_that_cannot_be_imported_fails_and_the_others_run(scenes):
    done = run(scenes)
    assert done.returncode == 1 and len([v for v in verdicts(done) if v[1] == "PASSED"]) == 4
    assert "test_broken.py FAILED: ModuleNotFoundError: No module named 'numpi'" in done.stdout
    assert "import numpi" in done.stderr and "=== 4 passed, 1 failed in" in done.stdout


@pytest.mark.parametrize(
    "target, words",
    [
        ("one_thign", r"ERROR: one_thign does not exist; did you mean one_thing\?"),
        ("empty", r"ERROR: no scene below empty: files named test_\*\.py or \*_test\.py that use scene_test"),
        ("two/test_two.py::TestTow", "ERROR: unknown class 'TestTow'; known: TestTwo. Did you mean 'TestTwo'"),
        ("two/test_two.py::TestTwo::some", "ERROR: case 'some' not found in TestTwo; known: one_piece, many_pieces"),
    ],
)
def test_targets_that_name_nothing(scenes, target, words):
    (scenes / "empty").mkdir(exist_ok=True)
    done = run(target, cwd=scenes)
    assert done.returncode == 2 and re.search(words, done.stderr), done.stderr


def test_listing_runs_nothing(scenes):
    done = run(scenes / "two", "--list")
    assert done.stdout.splitlines() == [
        "TestTwo::one_piece  level 2  tensormap_and_ringbuffer  a2a3sim,a5sim",
        "TestTwo::many_pieces  level 2  tensormap_and_ringbuffer  a2a3sim,a5sim",
    ]


@pytest.mark.parametrize(
    "name, words",
    [
        ("3d", "'3d' cannot be the name of a scene: use letters, digits and _"),
        ("class", "'class' cannot be"),
        ("taken", "taken exists already; choose another name, or another --dir"),
    ],
)
def test_names_that_cannot_be(here, capsys, name, words):
    (here / "taken").mkdir()
    assert main(["new", name]) == 2 and words in capsys.readouterr().err


def test_the_doctor_finds_what_there_is(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for subject in ("python", "runtime", "compiler", "kernels", "sanitizers", "processors", "tile library", "cache"):
        assert re.search(rf"^{subject} +ok", out, re.M), out
    assert out.endswith("simulators can be used: a2a3sim, a5sim\n")


def test_the_doctor_says_what_is_missing(capsys, monkeypatch, here):
    monkeypatch.setenv("SIMPLER_SIM_CXX", "g++-1")
    monkeypatch.setenv("SIMPLER_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setenv("PTO_ISA_ROOT", str(here))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(here))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^compiler +MISSING +C\+\+ compiler 'g\+\+-1' \(from SIMPLER_SIM_CXX\) was not found", out, re.M)
    assert re.search(r"^cache +note +/proc/nowhere cannot be written.*\n +-> set SIMPLER_CACHE_DIR", out, re.M)
    assert re.search(r"^tile library +MISSING +PTO_ISA_ROOT=.* has no include folder", out, re.M)
    assert re.search(r"^board +note +ccec of the CANN toolkit was not found", out, re.M)
    assert "simulators cannot be used: compiler" in out


def test_the_cache_is_shown_and_cleared(capsys, monkeypatch, here, scenes):
    monkeypatch.setenv("SIMPLER_CACHE_DIR", str(here / "cache"))
    assert main(["cache"]) == 0 and "compiled  0 objects, 0.0 MB" in capsys.readouterr().out
    assert run(scenes / "two").returncode == 0
    assert CompileCache().usage().objects == 2
    assert main(["cache", "clear", "--older-than", "3600"]) == 0 and "removed 0 files" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0 and "removed 4 files" in capsys.readouterr().out
    assert CompileCache().usage() == (0, 0, None)
    assert main(["cache", "show", "--older-than", "3"]) == 2


def test_a_misspelt_command_names_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["docter"])
    assert "did you mean 'doctor'?" in capsys.readouterr().err


def test_scenes_are_compiled_ahead_without_running(monkeypatch, here, scenes):
    monkeypatch.setenv("SIMPLER_CACHE_DIR", str(here / "cache"))
    command = [sys.executable, "-m", "simpler_setup.tools.scene_test_compile", "--platform", "a2a3sim"]

    def compile_ahead(*arguments):
        words = [*command, "-p", "no:cacheprovider", *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)

    done = compile_ahead("--compile-workers", "1", scenes / "two")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compiled 1 of 1 scene classes for a2a3sim" in done.stdout and "PASSED" not in done.stdout
    assert CompileCache().usage().objects == 2
    kernel = scenes / "two" / "kernels" / "two.cpp"
    text = kernel.read_text()
    kernel.write_text(text.replace("float scale;", "flaot scale;"))
    try:
        wrong = compile_ahead(scenes / "two")
    finally:
        kernel.write_text(text)
    assert wrong.returncode == 1 and "compiled 0 of 1 scene classes" in wrong.stdout
    assert "FAILED TestTwo: kernel" in wrong.stderr and "'flaot'" in wrong.stderr
    assert compile_ahead("--compile-workers", "0").returncode == 2
