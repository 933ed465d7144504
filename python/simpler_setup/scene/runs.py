"""Running the cases of a class: recorders and their artifact folder, the rounds table, collected failures."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

from .. import sanitizers
from ..environment import outputs_dir
from ..errors import SanitizerFinding
from . import arrays
from .declarations import SceneTestLevel

_log = logging.getLogger("simpler")


class Recorder(NamedTuple):
    """One diagnostic of a run: its run keyword, its option, and the file that it leaves in the artifact folder."""

    keyword: str
    option: str
    artifact: str
    off: Any


RECORDERS = (
    Recorder("enable_chip_swimlane", "--enable-chip-swimlane", "chip_swimlane_records.json", 0),
    Recorder("enable_dump_args", "--dump-args", "args_dump/args_dump.json", 0),
    Recorder("enable_pmu", "--enable-pmu", "pmu.csv", 0),
    Recorder("enable_dep_gen", "--enable-dep-gen", "deps.json", False),
    Recorder("enable_scope_stats", "--enable-scope-stats", "scope_stats/scope_stats.jsonl", False),
)

_noted: set = set()


def note_once(text: str) -> None:
    """Warn with this text once per process."""
    if text not in _noted:
        _noted.add(text)
        _log.warning(text)


def sanitize_for_filename(text: str) -> str:
    """Letters, digits and `._-` stay, everything else becomes `_`."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def make_case_dir(cls_name: str, case_name: str) -> Path:
    """A new folder `<Class>_<case>_<date>_<time>` for the artifacts of a case; never one that exists."""
    stem = f"{sanitize_for_filename(cls_name)}_{sanitize_for_filename(case_name)}_{time.strftime('%Y%m%d_%H%M%S')}"
    root = outputs_dir()
    root.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"_{n}" for n in range(2, 10000))):
        folder = root / (stem + suffix)
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            continue
    raise FileExistsError(f"no free artifact folder {root / stem}*")


_saves_mismatches = False


def save_mismatches(on: bool) -> None:
    """Whether a case whose outputs differ from the golden values leaves both in an artifact folder."""
    global _saves_mismatches
    _saves_mismatches = on


def save_mismatch(cls_name: str, case_name: str, folder: str, outputs: dict[str, tuple[Any, Any]]) -> Path | None:
    """Save (output, golden) pairs by name, if that was asked for; into `folder`, or a new one. Returns the folder.

    NumPy files where NumPy has the element type, else torch files.
    """
    if not _saves_mismatches:
        return None
    import numpy

    target = (Path(folder) if folder else make_case_dir(cls_name, case_name)) / "mismatch"
    target.mkdir(parents=True, exist_ok=True)
    for name, pair in outputs.items():
        for what, value in zip(("output", "golden"), pair):
            stem = target / f"{sanitize_for_filename(name)}_{what}"
            try:
                numpy.save(stem.with_suffix(".npy"), numpy.asarray(arrays.as_array(name, value)))
            except TypeError:  # bfloat16 and the small floats exist in torch only
                import torch

                torch.save(value, stem.with_suffix(".pt"))
    return target


def write_name_map(cls: Any, case_name: str, folder: Path) -> Path:
    """The file that gives kernels and orchestrator their names in reports."""
    table = getattr(cls, "CALLABLE", {}) or {}
    level = int(cls._st_level)
    if level == SceneTestLevel.CHIP:
        names = {str(e["func_id"]): e["name"] for e in table.get("incores", []) if e.get("name")}
        orchestration = table.get("orchestration", {})
        orchestrator = orchestration.get("name") or orchestration.get("function_name", "")
    else:
        names = {str(i): e["name"] for i, e in enumerate(table.get("callables", []))}
        orchestrator = getattr(table.get("orchestration"), "__name__", "")
    path = folder / f"name_map_{sanitize_for_filename(cls.__name__)}_{sanitize_for_filename(case_name)}.json"
    path.write_text(
        json.dumps({"level": level, "orchestrator_name": orchestrator, "callable_id_to_name": names}, indent=2),
        encoding="utf-8",
    )
    return path


def _finish_artifacts(cls: Any, case_name: str, folder: Path, enabled: Sequence[Recorder]) -> None:
    """Write the name map; say which files a recorder did not leave."""
    write_name_map(cls, case_name, folder)
    for recorder in enabled:
        if not (folder / recorder.artifact).exists():
            tell(f"{recorder.option}: {folder / recorder.artifact} not produced; skipping")


def tell(text: str) -> None:
    """Tell the user on stderr, at once."""
    print(f"WARNING: {text}", file=sys.stderr, flush=True)


def options_of(option: Callable[..., Any], *, warn: bool = False) -> dict[str, Any]:
    """Keywords of run_class_cases from an option lookup `option(name, default=...)`.

    More than one round switches every recorder off, with a warning each: their files describe a single run.
    """
    rounds = int(option("--rounds", default=1))
    chosen = {"rounds": rounds, "skip_golden": bool(option("--skip-golden", default=False))}
    for recorder in RECORDERS:
        value = option(recorder.option, default=recorder.off)
        if value and rounds > 1:
            if warn:
                tell(f"{recorder.option} disabled: --rounds > 1")
            value = recorder.off
        chosen[recorder.keyword] = value
    chosen["enable_swimlane_overhead"] = bool(option("--enable-swimlane-overhead", default=False))
    return chosen


def run_class_cases(
    worker: Any,
    inst: Any,
    cases: Sequence[dict[str, Any]],
    *,
    callable_obj: Any,
    sub_handles: Any,
    rounds: int = 1,
    skip_golden: bool = False,
    enable_chip_swimlane: int = 0,
    enable_dump_args: int = 0,
    enable_pmu: int = 0,
    enable_dep_gen: bool = False,
    enable_scope_stats: bool = False,
    enable_swimlane_overhead: bool = False,
    exit_first: bool = False,
    before: Callable[[dict[str, Any]], None] | None = None,
    after: Callable[[dict[str, Any], BaseException | None], None] | None = None,
) -> list[BaseException]:
    """Run cases of one class one after the other.

    `before` and `after` are told about each case; with `after` failures are returned, without it they are raised: one
    as it is, several as the first with the others named in its notes. `exit_first` stops at the first failure.
    """
    from .case import call_override

    values = {
        "enable_chip_swimlane": enable_chip_swimlane,
        "enable_dump_args": enable_dump_args,
        "enable_pmu": enable_pmu,
        "enable_dep_gen": enable_dep_gen,
        "enable_scope_stats": enable_scope_stats,
    }
    enabled = [recorder for recorder in RECORDERS if values[recorder.keyword]]
    if enable_swimlane_overhead:
        note_once("--enable-swimlane-overhead has no effect: there is no overhead report in this version")
    cls = type(inst)
    failures: list[tuple[str, BaseException]] = []
    for case in cases:
        if before is not None:
            before(case)
        error: BaseException | None = None
        folder = make_case_dir(cls.__name__, case["name"]) if enabled else None
        keywords = {"rounds": rounds, "skip_golden": skip_golden, **values, "output_prefix": str(folder or "")}
        try:
            try:
                if cls._st_level == SceneTestLevel.CHIP:
                    call_override(inst._run_and_validate_l2, worker, callable_obj, case, **keywords)
                else:
                    call_override(inst._run_and_validate_l3, worker, callable_obj, sub_handles, case, **keywords)
            finally:
                if folder is not None:
                    _finish_artifacts(cls, case["name"], folder, enabled)
        except Exception as caught:
            error = caught
        error = _with_findings(cls, error)
        if error is not None:
            failures.append((case["name"], error))
        if after is not None:
            after(case, error)
        if error is not None and exit_first:
            break
    if after is None and failures:
        _raise(cls.__name__, failures)
    return [error for _, error in failures]


def _with_findings(cls: Any, error: Exception | None) -> Exception | None:
    """The error of a case, or what a sanitizer found during it; the whole report goes to stderr."""
    report = sanitizers.take_findings()
    if not report:
        return error
    print(report, file=sys.stderr, flush=True)
    table = getattr(cls, "CALLABLE", {}) or {}
    named = {entry["source"]: f"kernel {entry.get('name', entry['func_id'])!r}" for entry in table.get("incores", [])}
    orchestration = table.get("orchestration")
    if isinstance(orchestration, dict):
        named[orchestration["source"]] = "the orchestration"
    text = sanitizers.describe_findings(report, named)
    if error is not None:
        text = f"{text}\nand: {error}"
    return SanitizerFinding(text)


def _raise(cls_name: str, failures: Sequence[tuple[str, BaseException]]) -> None:
    first_case, first = failures[0]
    note = getattr(first, "add_note", None)
    lines = [f"in case {cls_name}::{first_case}"]
    lines += [f"also failed: {cls_name}::{name}: {type(e).__name__}: {_headline(e)}" for name, e in failures[1:]]
    for line in lines:
        if note is not None:
            note(line)
        else:
            print(line, file=sys.stderr)
    raise first


def _headline(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


_TRIM = 10  # rounds dropped at each end of a trimmed average


def format_rounds(timings: Sequence[tuple[float, float]]) -> str:
    """The table of host and device times per round, in microseconds, with averages; trimmed ones from 21 rounds."""
    lines = ["  Round    Host (us)  Device (us)"]
    lines += [f"  {index:<5d} {host:12.1f} {device:12.1f}" for index, (host, device) in enumerate(timings)]
    count = len(timings)
    means = [sum(column) / count for column in zip(*timings)]
    lines.append(f"  Avg Host: {means[0]:.1f} us  Avg Device: {means[1]:.1f} us  ({count} rounds)")
    if count > 2 * _TRIM:
        kept = [sorted(column)[_TRIM : count - _TRIM] for column in zip(*timings)]
        trimmed = [sum(column) / len(column) for column in kept]
        lines.append(
            f"  Trimmed Avg Host: {trimmed[0]:.1f} us  Trimmed Avg Device: {trimmed[1]:.1f} us  "
            f"(dropped {_TRIM} low + {_TRIM} high, {len(kept[0])} rounds used)"
        )
    return "\n".join(lines)


def print_rounds(timings: Sequence[tuple[float, float]]) -> None:
    """Print the table when there is more than one round."""
    if len(timings) > 1:
        print(format_rounds(timings), flush=True)
