"""One case on a worker: rounds, golden rules, configuration, environment, handles, overrides, collected failures."""

import logging
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
from simpler_setup.scene import callables, handles, runs

sys.path.insert(0, str(Path(__file__).parent))
import setup_fakes
from setup_fakes import ArgDirection as D
from setup_fakes import FakeWorker


@pytest.fixture(autouse=True)
def fakes(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMPLER_OUTPUT_DIR", str(tmp_path / "outputs"))
    runs._noted.clear()
    with setup_fakes.installed():
        FakeWorker.program = staticmethod(grow)
        yield


def grow(arrays, scalars, config):
    arrays[0][...] = arrays[0] * 2 + scalars[0]


class Base(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "o.cpp", "function_name": "f", "signature": [D.INOUT]}, "incores": []}
    CASES = [{"name": "a", "platforms": ["a2a3sim"], "params": {"add": 3}}]

    def generate_args(self, params):
        return TaskArgsBuilder(TensorArg("x", np.arange(4, dtype=np.float32)), Scalar("add", params["add"]))

    def compute_golden(self, args, params):
        args.x[:] = args.x * 2 + params["add"] + params.get("skew", 0)


def scene(**members):
    return scene_test(level=2, runtime="host_build_graph")(type("Grow", (Base,), {"__module__": __name__, **members}))


def case(name="a", **entries):
    return {"name": name, "platforms": ["a2a3sim"], "params": {"add": 3}, **entries}


WRONG = case("wrong", params={"add": 3, "skew": 0.5})


def run(cls, one_case=None, worker=None, **options):
    worker = worker or FakeWorker()
    return cls()._run_and_validate_l2(worker, "program", one_case or case(), **options)


# -- golden ---------------------------------------------------------------------------------------------------------


def test_a_right_run_passes_and_a_wrong_one_is_reported():
    run(scene())
    with pytest.raises(AssertionError, match=r"Golden mismatch on 'x': max_diff=0\.5, rtol=1e-05, atol=1e-05"):
        run(scene(), WRONG)


@pytest.mark.parametrize(
    "option, in_case, in_class, skipped",
    [
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, False),
        (False, None, True, True),
        (False, None, False, False),
    ],
)
def test_the_option_wins_over_the_case_and_the_case_over_the_class(option, in_case, in_class, skipped):
    entry = WRONG if in_case is None else {**WRONG, "skip_golden": in_case}
    cls = scene(SKIP_GOLDEN=in_class)
    if skipped:
        run(cls, entry, skip_golden=option)
    else:
        with pytest.raises(AssertionError):
            run(cls, entry, skip_golden=option)


def test_a_skipped_golden_is_not_even_computed():
    def refuse(self, args, params):
        raise AssertionError("computed")

    run(scene(compute_golden=refuse), skip_golden=True)


def test_class_tolerances_and_the_comparison_hook():
    run(scene(ATOL=0.6), WRONG)
    seen = []
    run(scene(compare_outputs=lambda self, a, b, names, params: seen.append((names, params))), WRONG)
    assert seen == [(["x"], WRONG["params"])]


def test_outputs_start_from_their_initial_values_in_every_round(capsys):
    timings = run(scene(), rounds=3)
    assert [host for host, _ in timings] == [10.0, 20.0, 30.0]
    out = capsys.readouterr().out
    assert "Avg Host: 20.0 us  Avg Device: 1.0 us  (3 rounds)" in out and "Trimmed" not in out


def test_many_rounds_also_have_a_trimmed_average():
    text = runs.format_rounds([(float(i), 1.0) for i in range(22)])
    assert "Trimmed Avg Host: 10.5 us" in text and "(dropped 10 low + 10 high, 2 rounds used)" in text


def test_generate_args_must_return_a_builder():
    with pytest.raises(ValueError, match="returned dict; it must return a TaskArgsBuilder"):
        run(scene(generate_args=lambda self, params: {}))


# -- configuration and environment ----------------------------------------------------------------------------------


def test_the_configuration_of_a_case_reaches_the_run():
    worker = FakeWorker()
    config = {"aicpu_thread_num": 3, "runtime_env": {"ring_heap": [1, 2, 3, 4], "ring_task_window": 16}}
    run(scene(), case(config=config), worker, enable_dump_args=2, output_prefix="/out")
    got = worker.runs[0][2]
    assert got.aicpu_thread_num == 3 and got.runtime_env.ring_heap == [1, 2, 3, 4] and got.enable_dump_args == 2
    assert got.output_prefix == "/out" and got.enable_dep_gen is False


def test_a_setting_that_the_runtime_refuses_is_named():
    with pytest.raises(ValueError, match="ring_task_window"):
        run(scene(), case(config={"runtime_env": {"ring_task_window": 24}}))


def test_block_dim_is_accepted_and_noted_once(caplog):
    with caplog.at_level(logging.WARNING, logger="simpler"):
        for _ in range(2):
            run(scene(), case(config={"block_dim": 8}))
    assert caplog.text.count("'block_dim' is ignored") == 1


def test_older_names_of_recorders_configure_the_same():
    config = scene()()._build_config({}, enable_l2_swimlane=2, enable_dump_tensor=1)
    assert (config.enable_chip_swimlane, config.enable_dump_args) == (2, 1)


def test_the_environment_holds_for_the_run_only(monkeypatch):
    monkeypatch.setenv("SETUP_OLD", "before")
    seen = {}

    def look(arrays, scalars, config):
        seen.update({name: os.environ.get(name) for name in ("SETUP_OLD", "SETUP_NEW", "SETUP_DATA_DIR")})
        grow(arrays, scalars, config)

    FakeWorker.program = staticmethod(look)
    run(scene(RUNTIME_ENV={"SETUP_OLD": 17, "SETUP_NEW": "x", "SETUP_DATA_DIR": "data"}))
    assert seen == {
        "SETUP_OLD": "17",
        "SETUP_NEW": "x",
        "SETUP_DATA_DIR": os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"),
    }
    assert os.environ["SETUP_OLD"] == "before" and "SETUP_NEW" not in os.environ


# -- handles --------------------------------------------------------------------------------------------------------


def test_a_class_is_registered_once_per_worker():
    cls, first, second = scene(), FakeWorker(), FakeWorker()
    for worker in (first, first, second):
        run(cls, worker=worker)
    assert len(first.handles) == len(second.handles) == 1 and first.runs[0][0] is first.runs[1][0]


def test_a_subclass_has_a_registration_of_its_own():
    parent, worker = scene(), FakeWorker()
    child = scene_test(level=2, runtime="host_build_graph")(type("Child", (parent,), {"__module__": __name__}))
    run(parent, worker=worker)
    run(child, worker=worker)
    assert len(worker.handles) == 2


def test_another_program_of_the_class_replaces_its_registration():
    cls, worker = scene(), FakeWorker()
    cls()._run_and_validate_l2(worker, "program 1", case())
    cls()._run_and_validate_l2(worker, "program 2", case())
    assert list(worker.handles.values()) == ["program 2"]


def test_an_explicit_handle_is_used_on_its_own_worker_only():
    cls, worker, other = scene(), FakeWorker(), FakeWorker()
    cls._st_l2_handle = worker.register("by hand")
    run(cls, worker=worker)
    assert worker.runs[0][0] is cls._st_l2_handle and len(worker.handles) == 1
    run(cls, worker=other)
    assert other.runs[0][0] is not cls._st_l2_handle
    child = type("Child", (cls,), {"__module__": __name__})
    run(child, worker=worker)
    assert worker.runs[1][0] is not cls._st_l2_handle


def test_few_registrations_are_kept():
    worker = FakeWorker()
    for _ in range(handles._KEPT + 5):
        run(scene(), worker=worker)
    assert len(worker.handles) == handles._KEPT


# -- cases of a class -----------------------------------------------------------------------------------------------


def run_cases(cls, cases, **options):
    return runs.run_class_cases(FakeWorker(), cls(), cases, callable_obj="program", sub_handles={}, **options)


def test_every_case_runs_and_the_first_failure_is_raised_with_the_others_named():
    names = []
    cls = scene(compute_golden=lambda self, args, params: names.append(1) or Base.compute_golden(self, args, params))
    with pytest.raises(AssertionError) as caught:
        run_cases(cls, [WRONG, case("fine"), {**WRONG, "name": "also"}])
    assert len(names) == 3
    notes = "\n".join(getattr(caught.value, "__notes__", ["in case Grow::wrong", "also failed: Grow::also"]))
    assert "in case Grow::wrong" in notes and "also failed: Grow::also" in notes


def test_the_first_failure_can_end_the_class():
    told = []
    failures = run_cases(
        scene(), [WRONG, case("fine")], exit_first=True, after=lambda c, error: told.append((c["name"], error))
    )
    assert [name for name, _ in told] == ["wrong"] and len(failures) == 1 and told[0][1] is failures[0]


def test_recorders_get_a_folder_and_missing_files_are_told(tmp_path, capsys):
    cls = scene(CALLABLE={**Base.CALLABLE, "incores": [{"func_id": 4, "source": "k.cpp", "name": "ADD"}]})
    run_cases(cls, [case("odd name/2")], enable_chip_swimlane=4, enable_dep_gen=True)
    (folder,) = (tmp_path / "outputs").iterdir()
    assert folder.name.startswith("Grow_odd_name_2_2")
    text = (folder / "name_map_Grow_odd_name_2.json").read_text()
    assert '"orchestrator_name": "f"' in text and '"4": "ADD"' in text
    err = capsys.readouterr().err
    assert err.count("not produced; skipping") == 2 and "deps.json" in err


def test_without_recorders_nothing_is_written(tmp_path):
    run_cases(scene(), [case()])
    assert not (tmp_path / "outputs").exists()


def test_two_folders_of_one_second_differ(tmp_path):
    assert runs.make_case_dir("A", "b") != runs.make_case_dir("A", "b")


def test_more_than_one_round_switches_recorders_off(capsys):
    given = {"--rounds": 2, "--enable-chip-swimlane": 4, "--dump-args": 1, "--enable-pmu": 2, "--enable-dep-gen": True}
    chosen = runs.options_of(lambda name, default=None: given.get(name, default), warn=True)
    assert not any(value for name, value in chosen.items() if name.startswith("enable"))
    assert capsys.readouterr().err.count("disabled: --rounds > 1") == 4


# -- overrides ------------------------------------------------------------------------------------------------------


def test_an_override_with_older_keywords_is_understood():
    seen = {}

    def older(
        self, worker, callable_obj, case, rounds=1, skip_golden=False,
        enable_l2_swimlane=0, enable_dump_tensor=0, output_prefix="",
    ):  # fmt: skip
        seen.update(swimlane=enable_l2_swimlane, dump=enable_dump_tensor, rounds=rounds)

    cls = scene(_run_and_validate_l2=older)
    run_cases(cls, [case()], enable_chip_swimlane=3, rounds=2)
    assert seen == {"swimlane": 3, "dump": 0, "rounds": 2}
    with pytest.raises(TypeError, match="takes no enable_pmu, which this run sets to 2"):
        run_cases(cls, [case()], enable_pmu=2)


def test_an_override_hands_older_keywords_on_to_the_class():
    chosen = {}

    def older(self, worker, callable_obj, case, enable_l2_swimlane=0, enable_dump_tensor=0, output_prefix=""):
        recorders = {"enable_l2_swimlane": enable_l2_swimlane, "enable_dump_tensor": enable_dump_tensor}
        return Base._run_and_validate_l2(self, worker, callable_obj, case, output_prefix=output_prefix, **recorders)

    def build(self, config_dict, **keywords):
        chosen.update(keywords)
        return Base._build_config(self, config_dict, **keywords)

    cls = scene(_run_and_validate_l2=older, _build_config=build)
    run_cases(cls, [case()], enable_chip_swimlane=3, enable_dump_args=2)
    assert (chosen["enable_chip_swimlane"], chosen["enable_dump_args"]) == (3, 2)


def test_an_override_with_few_keywords_is_understood():
    cls = scene(_run_and_validate_l2=lambda self, worker, callable_obj, case: None)
    run_cases(cls, [case()])


def test_an_overridden_configuration_is_used():
    worker = FakeWorker()

    def build(self, config_dict, *args, **keywords):
        config = Base._build_config(self, config_dict, *args, **keywords)
        config.mark = 5
        return config

    run(scene(_build_config=build), worker=worker)
    assert worker.runs[0][2].mark == 5


# -- compiling ------------------------------------------------------------------------------------------------------


class CountingCompiler:
    """Stands for KernelCompiler; fails on sources named bad."""

    calls = []
    builds_for_host = True

    def __init__(self, platform):
        self.platform = platform

    def get_orchestration_include_dirs(self, runtime):
        return ["/inc"]

    def compile_orchestration(self, runtime, source):
        return self._compile("orchestration", source)

    def compile_incore(self, source, core_type, extra_include_dirs):
        return self._compile(core_type, source, *extra_include_dirs)

    def _compile(self, *what):
        self.calls.append(what)
        if "bad" in what[1]:
            raise RuntimeError("does not compile")
        return os.path.basename(what[1]).encode()


@pytest.fixture
def counting(monkeypatch):
    CountingCompiler.calls = []
    monkeypatch.setattr(callables, "KernelCompiler", CountingCompiler)
    return CountingCompiler


def kernels(*sources):
    incores = [{"func_id": 10 + i, "source": s, "core_type": "aic", "signature": [D.IN]} for i, s in enumerate(sources)]
    return {**Base.CALLABLE, "incores": incores}


def test_a_class_compiles_once_per_platform_into_one_callable(counting):
    cls = scene(CALLABLE=kernels("k1.cpp", "k2.cpp"))
    chip = cls.compile_chip_callable("a2a3sim")
    assert cls().build_callable("a2a3sim") is chip and len(counting.calls) == 3
    assert [(i, core.binary, core.signature) for i, core in chip.children] == [
        (10, b"k1.cpp", [D.IN]),
        (11, b"k2.cpp", [D.IN]),
    ]
    assert (chip.binary, chip.func_name, chip.config_name, chip.signature) == (b"o.cpp", "f", "", [D.INOUT])
    callables.clear_compile_cache()
    assert cls.compile_chip_callable("a2a3sim") is not chip


def test_compiling_ahead_shares_equal_sources_and_hides_failures(counting):
    first, second = scene(CALLABLE=kernels("k1.cpp")), scene(CALLABLE=kernels("k1.cpp", "bad.cpp"))
    assert callables.compile_ahead([first, second, scene(CALLABLE={})], "a2a3sim") == 3
    assert len(counting.calls) == 3
    with pytest.raises(RuntimeError, match="does not compile"):
        second.compile_chip_callable("a2a3sim")


def test_a_class_without_a_table_cannot_be_compiled():
    with pytest.raises(ValueError, match="has no CALLABLE"):
        scene(CALLABLE={}).compile_chip_callable("a2a3sim")


# -- what a failure leaves and tells --------------------------------------------------------------------------------


@pytest.fixture
def saving():
    runs.save_mismatches(True)
    yield
    runs.save_mismatches(False)


def test_values_that_differ_are_saved_on_request(saving, tmp_path):
    run(scene())
    assert not (tmp_path / "outputs").exists(), "a right result leaves nothing"
    with pytest.raises(AssertionError) as caught:
        run(scene(), WRONG)
    (folder,) = (tmp_path / "outputs").iterdir()
    assert folder.name.startswith("Grow_wrong_") and f"\n  saved: {folder / 'mismatch'}" in str(caught.value)
    output, golden = (np.load(folder / "mismatch" / f"x_{what}.npy") for what in ("output", "golden"))
    assert (golden - output == 0.5).all() and output.tolist() == [3, 5, 7, 9]


def test_element_types_that_numpy_lacks_are_saved_by_torch(saving, tmp_path):
    torch = pytest.importorskip("torch")
    values = torch.ones(3, dtype=torch.bfloat16)
    folder = runs.save_mismatch("Grow", "a", str(tmp_path), {"x": (values, 2 * values)})
    assert torch.equal(torch.load(folder / "x_golden.pt"), 2 * values) and not list(folder.glob("*.npy"))


def test_without_the_option_nothing_is_saved(tmp_path):
    with pytest.raises(AssertionError):
        run(scene(), WRONG)
    assert not (tmp_path / "outputs").exists()


def test_a_signature_for_more_tensors_is_told_with_each_case_and_each_failure(capsys):
    table = {**Base.CALLABLE, "orchestration": {**Base.CALLABLE["orchestration"], "signature": [D.INOUT, D.IN]}}
    cls = scene(CALLABLE=table)
    run(cls)
    with pytest.raises(AssertionError, match="note: the signature describes 2 tensors, but generate_args gave 1"):
        run(cls, WRONG)
    assert capsys.readouterr().err.count("the signature describes 2 tensors, but generate_args gave 1 (x)") == 2
