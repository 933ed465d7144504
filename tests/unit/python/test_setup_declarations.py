"""Declaring scene classes: what is checked, what is kept, which cases a selection leaves."""

import os

import pytest
from simpler_setup import SceneTestCase, SceneTestLevel, scene_level, scene_test
from simpler_setup.scene import selection
from simpler_setup.scene.callables import expand_include_dirs

HERE = os.path.dirname(os.path.abspath(__file__))
CHIP = {"orchestration": {"source": "sub/graph.cpp", "function_name": "f"}, "incores": []}
KERNEL = {"func_id": 0, "source": "k.cpp", "core_type": "aiv"}


def declare(callable_=CHIP, cases=(), level=2, runtime="host_build_graph", **members):
    body = {"CALLABLE": callable_, "CASES": list(cases), **members}
    return scene_test(level=level, runtime=runtime)(type("Scene", (SceneTestCase,), {"__module__": __name__, **body}))


def case(**entries):
    return {"name": "a", "platforms": ["a2a3sim"], **entries}


def test_sources_are_relative_to_the_file_and_the_original_table_is_kept():
    table = {**CHIP, "incores": [KERNEL, {**KERNEL, "func_id": 1, "source": "/abs/k.cpp"}]}
    cls = declare(table)
    assert cls.CALLABLE["orchestration"]["source"] == os.path.join(HERE, "sub", "graph.cpp")
    assert [e["source"] for e in cls.CALLABLE["incores"]] == [os.path.join(HERE, "k.cpp"), "/abs/k.cpp"]
    assert table["incores"][0]["source"] == "k.cpp" and cls._st_level == 2 and cls._st_runtime == "host_build_graph"


def test_a_subclass_of_a_scene_is_resolved_and_checked_without_a_decorator_of_its_own():
    scene = declare(cases=[case()])

    class Other(scene):
        CALLABLE = {**CHIP, "incores": [{**KERNEL, "source": "other.cpp"}]}
        CASES = [case(name="b")]

    assert Other.CALLABLE["incores"][0]["source"] == os.path.join(HERE, "other.cpp") and Other._st_dir == HERE
    with pytest.raises(ValueError, match=r"Wrong\.CASES\[0\] has no 'platforms'"):
        type("Wrong", (scene,), {"CASES": [{"name": "b"}]})
    with pytest.raises(ValueError, match=r"Wrong\.CALLABLE\['orchestration'\] has no 'source'"):
        type("Wrong", (scene,), {"CALLABLE": {"orchestration": {"function_name": "f"}}})
    host = type("Host", (scene,), {"CALLABLE": {"orchestration": lambda *a: None, "callables": []}})
    assert scene_test(level=3, runtime="host_build_graph")(host)._st_level == 3


def test_levels():
    assert [int(level) for level in SceneTestLevel] == [2, 3, 4]
    assert scene_level(3)(lambda: None)._st_level == SceneTestLevel.HOST
    for wrong in (lambda: scene_level(7), lambda: scene_test(level=9, runtime="host_build_graph")):
        with pytest.raises(ValueError, match="2 .*3 .*4 "):
            wrong()


def test_defaults():
    assert (SceneTestCase.CASES, SceneTestCase.RTOL, SceneTestCase.ATOL, SceneTestCase.RUNTIME_ENV) == (
        [],
        1e-5,
        1e-5,
        {},
    )
    for hook, arguments in (("generate_args", ({},)), ("compute_golden", (None, {}))):
        with pytest.raises(NotImplementedError, match=hook):
            getattr(SceneTestCase(), hook)(*arguments)


@pytest.mark.parametrize(
    "table, words",
    [
        ({"orchestraton": {}}, r"no 'orchestration' \(is 'orchestraton' a typo\?\)"),
        ({"orchestration": {"source": "x.cpp"}}, "no 'function_name'"),
        ({"orchestration": {"source": 3, "function_name": "f"}}, "'source' must be a path"),
        ({**CHIP, "incores": [{**KERNEL, "core_type": "avi"}]}, "core_type 'avi'.*Did you mean 'aiv'"),
        ({**CHIP, "incores": [KERNEL, KERNEL]}, r"incores'\]\[1\]: func_id 0 is used twice"),
        ({**CHIP, "incores": [{**KERNEL, "func_id": "0"}]}, "'func_id' must be a number"),
        ({**CHIP, "incores": [{**KERNEL, "signature": 3}]}, "'signature' must be a list"),
        ({**CHIP, "incores": [{**KERNEL, "extra_include_dirs": "inc"}]}, "must be a list of folders"),
        ({**CHIP, "incores": ["k.cpp"]}, "must be a dict, got str"),
    ],
)
def test_a_wrong_table_is_refused_where_it_is_declared(table, words):
    with pytest.raises(ValueError, match=words):
        declare(table)


@pytest.mark.parametrize(
    "entry, words",
    [
        ({"platforms": []}, "no 'name'"),
        ({"name": "a", "platform": ["a5"]}, r"no 'platforms' \(is 'platform' a typo\?\)"),
        (case(platforms="a2a3sim"), "must be a list of platform names, got 'a2a3sim'"),
        (case(platforms=["a2a3smi"]), "platform 'a2a3smi'.*Did you mean 'a2a3sim'"),
        (case(config={"aicpu_threads": 3}), "config key 'aicpu_threads'.*allowed: aicpu_thread_num.*Did you mean"),
        (case(config={"runtime_env": {"ring_heep": 3}}), "runtime_env key 'ring_heep'.*Did you mean 'ring_heap'"),
        (case(config=[]), "'config' must be a dict"),
        (case(params=[]), "'params' must be a dict"),
        (case(manual="a2a3smi"), "'manual'.*Did you mean 'a2a3sim'"),
        (case(manual=3), "'manual' must be True, False"),
        (case(name=""), "'name' must be a non-empty string"),
    ],
)
def test_a_wrong_case_is_refused_where_it_is_declared(entry, words):
    with pytest.raises(ValueError, match=rf"Scene\.CASES\[1\].*{words}"):
        declare(cases=[case(), entry])


def test_unknown_runtimes_are_refused():
    with pytest.raises(ValueError, match="runtime 'ringbuffer'.*allowed: host_build_graph, tensormap_and_ringbuffer"):
        declare(runtime="ringbuffer")


def test_free_keys_and_block_dim_are_kept():
    cls = declare(cases=[case(required_sched_phases=["x"], config={"block_dim": 3})])
    assert cls.CASES[0]["required_sched_phases"] == ["x"]


def test_a_host_level_class_resolves_its_chip_entries():
    table = {
        "orchestration": lambda orch, callables, args, config: None,
        "callables": [{"name": "chip", **CHIP}, {"name": "sub", "callable": print}],
    }
    cls = declare(table, level=3)
    assert cls.CALLABLE["callables"][0]["orchestration"]["source"].startswith(HERE)
    with pytest.raises(ValueError, match="must be a Python function"):
        declare({"orchestration": {"source": "x"}}, level=3)
    with pytest.raises(ValueError, match="'sub' is used twice"):
        declare({**table, "callables": [{"name": "sub", "callable": print}] * 2}, level=3)


def test_a_class_without_a_table_is_fine():
    assert declare({}, cases=[case()]).CALLABLE == {}


# -- extra include folders ------------------------------------------------------------------------------------------


def test_include_folders_are_expanded(monkeypatch, tmp_path):
    (tmp_path / "inc").mkdir()
    monkeypatch.setenv("SETUP_TEST_DIR", str(tmp_path))
    expected = [str(tmp_path / "inc")]
    assert expand_include_dirs("k", ["$SETUP_TEST_DIR/inc", "none"], str(tmp_path)) == expected
    assert expand_include_dirs("k", ["inc"], str(tmp_path)) == expected and expand_include_dirs("k", [], "/") == []


def test_include_folders_that_are_nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("SETUP_TEST_DIR", raising=False)
    with pytest.raises(ValueError, match=r"\$SETUP_TEST_DIR, which is not set"):
        expand_include_dirs("k", ["${SETUP_TEST_DIR}/inc"], "/")
    with pytest.raises(ValueError, match="k: none of the extra_include_dirs exists; tried .*one.*two"):
        expand_include_dirs("k", ["one", "two"], str(tmp_path))


# -- selection ------------------------------------------------------------------------------------------------------

SCENES = [
    declare(
        cases=[
            case(name="red", platforms=["a2a3sim", "a5sim"]),
            case(name="blue", manual=True),
            case(name="gray", manual="a2a3sim", platforms=["a2a3sim", "a5sim"]),
            case(name="pink", manual=["a5sim"]),
        ]
    )
]


def chosen(*selectors, platform="a2a3sim", mode="exclude"):
    parsed = selection.parse_selectors(selectors)
    return [c["name"] for c in selection.matching_cases(SCENES[0], platform, parsed, mode)]


@pytest.mark.parametrize(
    "mode, names",
    [("exclude", ["red", "pink"]), ("include", ["red", "blue", "gray", "pink"]), ("only", ["blue", "gray"])],
)
def test_manual_modes(mode, names):
    assert chosen(mode=mode) == names


@pytest.mark.parametrize(
    "selectors, names",
    [
        (["red"], ["red"]),
        (["Scene::"], ["red", "pink"]),
        (["::pink"], ["pink"]),
        (["pink", "Scene::red"], ["red", "pink"]),
    ],
)
def test_selector_forms(selectors, names):
    assert chosen(*selectors) == names


def test_a_platform_scoped_manual_case_is_ordinary_elsewhere():
    assert chosen(platform="a5sim") == ["red", "gray"]


@pytest.mark.parametrize(
    "selector, words",
    [
        ("Other::red", "unknown class 'Other'; known: Scene"),
        ("green", "case 'green' not found in any class; known: red, blue"),
        ("Scene::green", "case 'green' not found in Scene"),
    ],
)
def test_a_selector_that_names_nothing(selector, words):
    with pytest.raises(ValueError, match=words):
        selection.check_selectors(selection.parse_selectors([selector]), SCENES)


def test_an_empty_selector():
    with pytest.raises(ValueError, match="neither a class nor a case"):
        selection.parse_selectors(["::"])


def test_an_empty_selection_says_what_would_help():
    def text(platform, mode, *selectors):
        return str(selection.nothing_matched(SCENES, platform, selection.parse_selectors(selectors), mode))

    assert "no cases matched platform=a2a3sim" in text("a2a3sim", "exclude", "blue")
    assert "--manual include" in text("a2a3sim", "exclude", "blue")
    assert "--manual exclude" in text("a2a3sim", "only", "red")
    assert "platform=a2a3," in text("a2a3", "exclude") and "a2a3sim, a5sim" in text("a2a3", "exclude")
