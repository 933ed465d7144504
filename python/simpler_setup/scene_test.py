"""Public names of the scene-test framework; the parts live in `simpler_setup.scene`.

The package attribute `simpler_setup.scene_test` is the decorator of that name; `from simpler_setup.scene_test import X`
reaches this module. Names resolve on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .scene.declarations import SceneTestLevel as SceneTestLevel
from .scene.declarations import scene_level as scene_level
from .scene.declarations import scene_test as scene_test

_PARTS = {
    "CallableNamespace": (".scene.arguments", "CallableNamespace"),
    "Scalar": (".scene.arguments", "Scalar"),
    "SceneTestCase": (".scene.case", "SceneTestCase"),
    "TaskArgsBuilder": (".scene.arguments", "TaskArgsBuilder"),
    "Tensor": (".scene.arguments", "TensorArg"),
    "TensorArg": (".scene.arguments", "TensorArg"),
    "_build_chip_task_args": (".scene.task_args", "build_chip_task_args"),
    "_build_l2_ref_args": (".scene.task_args", "build_l2_ref_args"),
    "_build_l3_task_args": (".scene.task_args", "build_l3_task_args"),
    "_compare_outputs": (".scene.compare", "compare_outputs"),
    "_outputs_dir": (".environment", "outputs_dir"),
    "_rehosted_buffer_for": (".scene.task_args", "rehosted_buffer_for"),
    "_rehosted_ref": (".scene.task_args", "rehosted_ref"),
    "_rehosted_ref_for": (".scene.task_args", "rehosted_ref_for"),
    "_sanitize_for_filename": (".scene.runs", "sanitize_for_filename"),
    "clear_compile_cache": (".scene.callables", "clear_compile_cache"),
    "is_manual_for_platform": (".scene.selection", "is_manual_for_platform"),
    "l3_compile_cache_key": (".scene.callables", "l3_compile_cache_key"),
    "run_class_cases": (".scene.runs", "run_class_cases"),
}

__all__ = sorted([*_PARTS, "SceneTestLevel", "scene_level", "scene_test"])


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PARTS[name]
    value = getattr(import_module(module, __package__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
