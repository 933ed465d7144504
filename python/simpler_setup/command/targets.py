"""What `simpler run` is given: files and folders, with the scenes that they hold."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ..errors import nearest
from ..scene.selection import Selector
from ..scene.standalone import Source, UsageError

_PATTERNS = ("test_*.py", "*_test.py")
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build"}


def load(targets: Sequence[str]) -> tuple[list[Source], list[tuple[str, BaseException]]]:
    """(sources in the order of the targets, files that cannot be imported with their error).

    UsageError when a target does not exist or holds no scene.
    """
    wanted: dict[Path, list[Selector]] = {}
    whole: set[Path] = set()
    for target in targets:
        text, _, rest = target.partition("::")
        files = _files(text)
        for file in files:
            selectors = wanted.setdefault(file, [])
            if rest:
                cls, _, case = rest.partition("::")
                selectors.append(Selector(cls or None, case or None, target))
            else:
                whole.add(file)
    sources: list[Source] = []
    broken: list[tuple[str, BaseException]] = []
    for index, (file, selectors) in enumerate(wanted.items()):
        try:
            module = _import(file, index)
        except (Exception, SystemExit) as error:
            broken.append((str(file), error))
            continue
        sources.append(Source(module, [] if file in whole else selectors))
    return sources, broken


def _files(text: str) -> list[Path]:
    path = Path(text)
    if path.is_file():
        return [path.resolve()]
    if not path.is_dir():
        guess = nearest(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else None
        hint = f"; did you mean {path.parent / guess}?" if guess else ""
        raise UsageError(f"{text} does not exist{hint}")
    found = sorted({file.resolve() for pattern in _PATTERNS for file in path.rglob(pattern) if _holds_scenes(file)})
    if not found:
        raise UsageError(f"no scene below {text}: files named {' or '.join(_PATTERNS)} that use scene_test")
    return found


def _holds_scenes(file: Path) -> bool:
    if any(part in _SKIPPED or part.startswith(".") for part in file.parts[:-1]):
        return False
    return b"scene_test" in file.read_bytes()


def _import(file: Path, index: int) -> ModuleType:
    """The module of a file, which may import its neighbours as a script may."""
    name = f"_simpler_run_{index}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
