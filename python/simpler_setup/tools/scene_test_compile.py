"""Compiles the scenes that a pytest command line selects, without running them: a later run finds everything compiled.

    python -m simpler_setup.tools.scene_test_compile [--compile-workers N] --platform a2a3sim [pytest arguments]

Exit codes: 0 all compiled, 1 some did not, otherwise what pytest says about its arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from ..compile_pool import compile_worker_budget, current_compile_workers
from ..scene import callables
from ..scene.declarations import SceneTestLevel
from ..scene.options import whole_number
from ..scene.progress import Progress


class _Compile:
    """A pytest plugin for a session that only collects."""

    def __init__(self, platform: str):
        self.platform = platform
        self.compiled = 0
        self.failures: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if item.get_closest_marker("skip") is None]
        classes = [getattr(item, "cls", None) for item in items]
        scenes = list(dict.fromkeys(cls for cls in classes if hasattr(cls, "_st_level") and cls.CALLABLE))
        with Progress("compiling", "sources") as progress:
            callables.compile_ahead(scenes, self.platform, progress)
        for cls in scenes:
            try:
                self._compile(cls)
                self.compiled += 1
            except Exception as error:
                self.failures.append(f"{cls.__qualname__}: {error}")

    def _compile(self, cls: Any) -> None:
        if cls._st_level == SceneTestLevel.CHIP:
            callables.compile_chip_callable(cls, self.platform)
        else:
            callables.compile_host_callables(cls, self.platform)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scene_test_compile", description="Compile scenes ahead.", allow_abbrev=False)
    parser.add_argument("--platform", required=True, help="where the scenes are going to run")
    parser.add_argument("--compile-workers", type=whole_number(1), metavar="N", help="compilers at once")
    chosen, rest = parser.parse_known_args(arguments)
    plugin = _Compile(chosen.platform)
    with compile_worker_budget(chosen.compile_workers or current_compile_workers()):
        code = int(pytest.main(["--platform", chosen.platform, "--collect-only", "-q", *rest], plugins=[plugin]))
    for failure in plugin.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"compiled {plugin.compiled} of {plugin.compiled + len(plugin.failures)} scene classes for {chosen.platform}")
    return 1 if plugin.failures else code


if __name__ == "__main__":
    sys.exit(main())
