"""simpler_setup: compile tool-chain and scene-test framework.

Importable without the native extension, torch and NumPy; they are imported where they are used. Names resolve on first
use, except the decorator `scene_test`, which must win over the submodule of the same name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .scene_test import scene_test as scene_test

#: public name -> (module, name there)
_LAZY = {
    "CallableNamespace": (".scene.arguments", "CallableNamespace"),
    "CompileError": (".errors", "CompileError"),
    "KernelCompiler": (".kernel_compiler", "KernelCompiler"),
    "RuntimeBuilder": (".runtime_builder", "RuntimeBuilder"),
    "Scalar": (".scene.arguments", "Scalar"),
    "SceneTestCase": (".scene.case", "SceneTestCase"),
    "SceneTestLevel": (".scene.declarations", "SceneTestLevel"),
    "TaskArgsBuilder": (".scene.arguments", "TaskArgsBuilder"),
    "Tensor": (".scene.arguments", "TensorArg"),
    "TensorArg": (".scene.arguments", "TensorArg"),
    "ensure_pto_isa_root": (".pto_isa", "ensure_pto_isa_root"),
    "extract_text_section": (".elf_parser", "extract_text_section"),
    "make_chip_tensor_arg": (".torch_interop", "make_chip_tensor_arg"),
    "make_tensor_arg": (".torch_interop", "make_tensor_arg"),
    "parse_platform": (".platforms", "parse_platform"),
    "scene_level": (".scene.declarations", "scene_level"),
    "torch_dtype_to_datatype": (".torch_interop", "torch_dtype_to_datatype"),
}

__all__ = sorted([*_LAZY, "scene_test"])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(import_module(module, __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
