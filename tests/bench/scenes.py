"""What a user waits for: one small scene cold, again, and after an edit; 60 cases in 20 files under pytest.

Every scene comes from `simpler new` and has sources of its own. Cold means an empty compile cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from simpler_setup.command.new_scene import write

FILES, CASES_EACH = 20, 3
_FIRST_CASE = '        {"name": "one_piece", '
_MORE_CASE = '        {"name": "few", "platforms": SIMULATORS, "params": {"count": 50}},\n'


def scene_times(platform: str, folder: Path, repeats: int) -> dict[str, float]:
    """Seconds for `python test_x.py`: with an empty cache, again, and after an edit of the kernel; the best of each."""
    write("probe", folder)
    script, kernel = folder / "probe" / "test_probe.py", folder / "probe" / "kernels" / "probe.cpp"
    command, text = [sys.executable, str(script), "-p", platform], kernel.read_text()
    cold, warm, edit = [], [], []
    for round_ in range(repeats):
        kernel.write_text(text)
        cache = folder / f"cache{round_}"
        cold.append(_seconds(command, cache))
        warm.append(min(_seconds(command, cache) for _ in range(2)))
        kernel.write_text(f"{text}// edited {round_}\n")
        edit.append(_seconds(command, cache))
    return {"scene_cold_s": min(cold), "scene_warm_s": min(warm), "scene_edit_s": min(edit)}


def suite_times(platform: str, folder: Path) -> dict[str, float]:
    """Seconds for pytest over 60 cases in 20 files, with an empty cache and again."""
    suite = folder / "suite"
    for index in range(FILES):
        name = f"scene_{index:02d}"
        write(name, suite)
        script = suite / name / f"test_{name}.py"
        script.write_text(script.read_text().replace(_FIRST_CASE, _MORE_CASE + _FIRST_CASE, 1))
        for source in (suite / name / "kernels").iterdir():
            source.write_text(f"{source.read_text()}// {name}\n")  # a content of its own
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite), "--platform", platform]
    cache = folder / "suite_cache"
    cold = _seconds(command, cache, expect=f"{FILES} passed")
    return {"suite60_cold_s": cold, "suite60_warm_s": _seconds(command, cache, expect=f"{FILES} passed")}


def _seconds(command: list[str], cache: Path, expect: str = "passed in") -> float:
    env = {**os.environ, "SIMPLER_CACHE_DIR": str(cache)}
    start = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=cache.parent)
    took = time.perf_counter() - start
    if done.returncode != 0 or expect not in done.stdout:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return took
