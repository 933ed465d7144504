"""Reads the [STRACE] lines of a log: where the time of runs goes, as a table, a tree or a trace file.

    python -m simpler_setup.tools.strace_timing LOG|- [--rounds-table|--tree|--assert-native-overlap]
                                                      [--trace-out F] [--swimlane F]

A line names one span of one run: `[STRACE] v=1 pid= tid= inv= hid= depth= name= ts= dur= [key=value ...]`, times in
nanoseconds. (pid, inv) is a run, hid its program, depth its place in the tree; `clk=dev` marks times of the device's
own clock. Several spans may share a line; what is torn is counted and told.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

MARK = "[STRACE]"
_FIELDS = ("pid", "tid", "inv", "hid", "depth", "name", "ts", "dur")
_LINE = re.compile(r"v=1 " + " ".join(rf"{name}=(?P<{name}>\S+)" for name in _FIELDS) + r"(?P<attrs>(?: [\w.]+=\S*)*)")
_ANCHOR = re.compile(r"\[CLOCK_ANCHOR\] v=1 pid=(?P<pid>\d+) mono_ns=(?P<mono_ns>\d+) wall_ns=(?P<wall_ns>\d+)")
_LANE_STEP = 10**7  # more than any thread id: lanes of one thread are far from other threads
#: Older first words of span names -> the present ones.
_OLDER_WORDS = {"simpler_run": "chip.run", "simpler_prewarm": "chip.prewarm", "l3": "host"}
ROOT = "chip.run"
_TRIM = 10


class Span(NamedTuple):
    """One span of a run; times in nanoseconds."""

    pid: int
    tid: int
    inv: int
    hid: str
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, str]

    @property
    def end(self) -> int:
        return self.ts + self.dur

    @property
    def on_device(self) -> bool:
        return self.attrs.get("clk") == "dev"


class Spans(list):
    """Spans in the order of the log. `torn` counts marks that no whole span followed."""

    torn = 0


class NativeOverlapError(AssertionError):
    """Runs do not overlap as they should."""


def parse_spans(text: str | Iterable[str]) -> Spans:
    """The spans of a log, given as text or lines."""
    spans = Spans()
    for line in text.splitlines() if isinstance(text, str) else text:
        for part in line.split(MARK)[1:]:
            found = _LINE.match(part.strip())
            try:
                if found is None:
                    raise ValueError("not a whole record")
                spans.append(_span(found))
            except ValueError:
                spans.torn += 1
    return spans


def _span(found: re.Match[str]) -> Span:
    numbers = {name: int(found[name]) for name in ("pid", "tid", "inv", "depth", "ts", "dur")}
    first, dot, rest = unquote(found["name"]).partition(".")
    attrs = dict(word.partition("=")[::2] for word in found["attrs"].split())
    name = _OLDER_WORDS.get(first, first) + dot + rest
    return Span(**numbers, hid=found["hid"], name=name, attrs={key: unquote(value) for key, value in attrs.items()})


def group_invocations(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans of each run, in the order in which runs first appear."""
    runs: dict[tuple[int, int], list[Span]] = {}
    for span in spans:
        runs.setdefault((span.pid, span.inv), []).append(span)
    return list(runs.values())


def find(run: Iterable[Span], name: str) -> Span | None:
    """The span of a run with that name, or whose name ends in `.name`."""
    return next((span for span in run if span.name == name or span.name.endswith("." + name)), None)


def _root(run: Iterable[Span]) -> Span | None:
    return next((span for span in run if span.name == ROOT), None)


def busiest(runs: Sequence[list[Span]]) -> list[list[Span]]:
    """The runs of the program that ran most often; the earlier one when several did."""
    counts = Counter(root.hid for run in runs if (root := _root(run)) is not None)
    if not counts:
        return []
    most = counts.most_common(1)[0][0]
    return [run for run in runs if (root := _root(run)) is not None and root.hid == most]


# -- rounds -------------------------------------------------------------------------------------------------------


def legacy_spans(run: Iterable[Span]) -> dict[str, float]:
    """Microseconds of a run's Host, Device, Effective, Orch and Sched time, as far as they were traced."""
    run = list(run)
    named = {"Host": _root(run), "Device": find(run, "device_wall"), "Orch": find(run, "orch")}
    named["Sched"] = find(run, "sched")
    times = {column: span.dur / 1e3 for column, span in named.items() if span is not None}
    windows = [span for column in ("Orch", "Sched") if (span := named[column]) is not None]
    if windows:
        times["Effective"] = (max(span.end for span in windows) - min(span.ts for span in windows)) / 1e3
    return {column: times[column] for column in _COLUMNS if column in times}


_COLUMNS = ("Host", "Device", "Effective", "Orch", "Sched")


def rounds_table(runs: Sequence[list[Span]]) -> str:
    """One row per run of the busiest program, then averages; trimmed ones too from 21 runs."""
    rows = [legacy_spans(run) for run in busiest(runs)]
    if not rows:
        return f"no {ROOT} span in the log"
    columns = [column for column in _COLUMNS if any(column in row for row in rows)]
    lines = ["  Round" + "".join(f"{column + ' (us)':>16}" for column in columns)]
    for index, row in enumerate(rows):
        cells = (f"{row[column]:16.1f}" if column in row else " " * 16 for column in columns)
        lines.append(f"  {index:<5d}" + "".join(cells).rstrip())
    lines.append(_averages("Avg", rows, columns, lambda values: values))
    if len(rows) > 2 * _TRIM:
        lines.append(_averages("Trimmed Avg", rows, columns, lambda values: sorted(values)[_TRIM:-_TRIM]))
    return "\n".join(lines)


def _averages(title: str, rows: Sequence[dict[str, float]], columns: Sequence[str], kept: Any) -> str:
    parts = []
    for column in columns:
        values = kept([row[column] for row in rows if column in row])
        if values:
            some = f" [{len(values)}/{len(rows)}]" if title == "Avg" and len(values) < len(rows) else ""
            parts.append(f"{title} {column}: {statistics.mean(values):.1f} us{some}")
    return f"  {'  |  '.join(parts)}  ({len(rows)} rounds)"


# -- the other views ----------------------------------------------------------------------------------------------


def overview(runs: Sequence[list[Span]]) -> str:
    """Per program: how often it ran, its time, and the mean of each stage."""
    programs: dict[str, list[list[Span]]] = {}
    for run in runs:
        root = _root(run)
        if root is not None:
            programs.setdefault(root.hid, []).append(run)
    if not programs:
        return f"no {ROOT} span in the log"
    decode = _root(busiest(runs)[0]).hid  # type: ignore[union-attr]
    lines = []
    for hid, own in programs.items():
        times = [root.dur / 1e3 for run in own if (root := _root(run)) is not None]
        role = "  (most frequent)" if hid == decode and len(programs) > 1 else ""
        lines.append(f"program {hid}: {len(own)} runs{role}")
        mean, shortest, longest = statistics.mean(times), min(times), max(times)
        lines.append(f"  {ROOT:44} mean {mean:10.1f}  min {shortest:10.1f}  max {longest:10.1f} us")
        for name in dict.fromkeys(span.name for run in own for span in run if span.name != ROOT):
            stage = [span.dur / 1e3 for run in own for span in run if span.name == name]
            lines.append(f"  {name:44} mean {statistics.mean(stage):10.1f} us")
    return "\n".join(lines)


def tree(runs: Sequence[list[Span]]) -> str:
    """The median time of each span of the busiest program, indented by depth."""
    own = busiest(runs)
    if not own:
        return f"no {ROOT} span in the log"
    lines = [f"medians of {len(own)} runs of program {own[0][0].hid}, us"]
    spans = sorted((span for run in own for span in run), key=lambda span: span.name)
    for name in dict.fromkeys(span.name for span in spans):
        same = [span for span in spans if span.name == name]
        label = "  " * same[0].depth + name.rpartition(".")[2] + (" (device)" if same[0].on_device else "")
        lines.append(f"  {label:44} {statistics.median(span.dur / 1e3 for span in same):10.1f}")
    return "\n".join(lines)


def assert_native_overlap(spans: Iterable[Span], *, require_hidden_prepare: bool = False) -> int:
    """Check that the preparation of each run overlaps the run before it, and that the runs themselves do not.

    Returns how many pairs overlap. NativeOverlapError names the first pair that does not, or that runs too early;
    with `require_hidden_prepare` every preparation must end before the run before it does.
    """
    by_process: dict[int, list[list[Span]]] = {}
    for run in group_invocations(spans):
        if find(run, "bind") is not None and find(run, "runner_run") is not None:
            by_process.setdefault(run[0].pid, []).append(run)
    overlaps = 0
    for runs in by_process.values():
        runs.sort(key=lambda run: find(run, "runner_run").ts)  # type: ignore[union-attr]
        for before, after in zip(runs, runs[1:]):
            running, bind, start = find(before, "runner_run"), find(after, "bind"), find(after, "runner_run")
            assert running is not None and bind is not None and start is not None
            pair = f"runs {before[0].inv} and {after[0].inv} of process {before[0].pid}"
            release = find(before, "claim_release")
            if start.ts < (release.end if release is not None else running.end):
                raise NativeOverlapError(f"{pair}: the second started before the first gave the device up")
            if bind.ts >= running.end or bind.end <= running.ts:
                raise NativeOverlapError(f"{pair}: the preparation of the second did not overlap the first")
            if require_hidden_prepare and bind.end > running.end:
                raise NativeOverlapError(f"{pair}: the preparation of the second ended after the first")
            overlaps += 1
    if not overlaps:
        raise NativeOverlapError("no two runs with bind and runner_run spans in the log")
    return overlaps


def _label(kind: str, name: str, **place: int) -> dict[str, Any]:
    """An event of a Chrome trace: the name of a process or of one of its threads."""
    return {"ph": "M", **place, "name": f"{kind}_name", "args": {"name": name}}


def _bar(span: Span, about: dict[str, Any], **place: int) -> dict[str, Any]:
    """An event of a Chrome trace: a span, in microseconds."""
    return {"ph": "X", **place, "name": span.name, "ts": span.ts / 1e3, "dur": span.dur / 1e3, "args": about}


def write_trace(runs: Sequence[list[Span]], path: Path) -> None:
    """A Chrome trace: one process per run, thread 0 the host, thread 1 the device (whose clock begins at 0)."""
    events: list[dict[str, Any]] = []
    for index, run in enumerate(runs):
        events.append(_label("process", f"run {run[0].inv} of process {run[0].pid}", pid=index))
        for span in run:
            events.append(_bar(span, {**span.attrs, "hid": span.hid}, pid=index, tid=int(span.on_device)))
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def parse_anchors(text: str) -> list[dict[str, str]]:
    """What processes said about their clocks: pid, mono_ns and wall_ns, as text since they exceed a JSON number."""
    return [found.groupdict() for found in _ANCHOR.finditer(text)]


def _lanes(spans: Sequence[Span]) -> dict[int, int]:
    """Lane of each span by its place: its thread's, or one per pipeline slot where a thread's runs overlap."""
    roots = {(span.pid, span.inv): span for span in spans if span.name == ROOT}
    crowded, busy_until = set(), {}
    for root in sorted(roots.values(), key=lambda span: span.ts):
        thread = (root.pid, root.tid)
        if root.ts < busy_until.get(thread, root.ts):
            crowded.add(thread)
        busy_until[thread] = max(root.end, busy_until.get(thread, root.end))
    lanes = {}
    for index, span in enumerate(spans):
        root = roots.get((span.pid, span.inv), span)
        slot = int(root.attrs.get("slot_id", 0)) if (span.pid, span.tid) in crowded else 0
        lanes[index] = span.tid + max(slot, 0) * _LANE_STEP
    return lanes


def swimlane(spans: Sequence[Span], anchors: Sequence[dict[str, str]]) -> dict[str, Any]:
    """A Chrome trace of what processes and threads did when, on the host's clock.

    Arrows "task dispatch" lead from the submission of a task to each of its dispatches. Device spans have a clock of
    their own, so they are listed beside.
    """
    host = [span for span in spans if not span.on_device]
    lanes = _lanes(host)
    events: list[dict[str, Any]] = []
    for pid in dict.fromkeys(span.pid for span in host):
        events.append(_label("process", f"process {pid}", pid=pid))
    for (pid, lane), tid in {(span.pid, lanes[i]): span.tid for i, span in enumerate(host)}.items():
        name = f"thread {tid}" + (f", slot {lane // _LANE_STEP}" if lane != tid else "")
        events.append(_label("thread", name, pid=pid, tid=lane))
    submitted: dict[tuple[Any, ...], tuple[Span, int]] = {}
    for index, span in enumerate(host):
        about = {"inv": span.inv, "hid": span.hid, "depth": span.depth, **span.attrs}
        events.append(_bar(span, about, pid=span.pid, tid=lanes[index]))
        if span.name.endswith(".submit"):
            submitted[_task_of(span)] = (span, lanes[index])
    for index, span in enumerate(host):
        if span.name.endswith(".dispatch") and _task_of(span) in submitted:
            source, lane = submitted[_task_of(span)]
            arrow = {"cat": "task", "name": "task dispatch", "id": index}
            events.append({"ph": "s", **arrow, "pid": source.pid, "tid": lane, "ts": source.ts / 1e3})
            events.append({"ph": "f", "bp": "e", **arrow, "pid": span.pid, "tid": lanes[index], "ts": span.ts / 1e3})
    device = [
        {"name": s.name, "ts_ns": s.ts, "dur_ns": s.dur, "pid": s.pid, "tid": s.tid, "inv": s.inv, "hid": s.hid,
         "depth": s.depth, "attrs": s.attrs}
        for s in spans if s.on_device
    ]  # fmt: skip
    return {"traceEvents": events, "clockAnchors": list(anchors), "unalignedDeviceSpans": device}


def _task_of(span: Span) -> tuple[Any, ...]:
    level = span.name.rpartition(".")[0]
    return (span.pid, level, span.attrs.get("run_id"), span.attrs.get("task_slot"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0, 1 when the log cannot be read, 2 when runs do not overlap."""
    parser = argparse.ArgumentParser(prog="strace_timing", description="Where the time of traced runs goes.")
    parser.add_argument("log", help="a log file, or - for standard input")
    view = parser.add_mutually_exclusive_group()
    view.add_argument("--rounds-table", action="store_true", help="one row per run of the busiest program")
    view.add_argument("--tree", action="store_true", help="medians of the busiest program's spans")
    view.add_argument("--assert-native-overlap", action="store_true", help="check that preparation overlaps runs")
    parser.add_argument("--require-hidden-prepare", action="store_true", help="with it: preparation ends in time")
    parser.add_argument("--trace-out", type=Path, metavar="FILE", help="also write a Chrome trace, a process per run")
    parser.add_argument("--swimlane", type=Path, metavar="FILE", help="also write one of processes and threads")
    chosen = parser.parse_args(arguments)
    if chosen.require_hidden_prepare and not chosen.assert_native_overlap:
        parser.error("--require-hidden-prepare goes with --assert-native-overlap")
    try:
        text = sys.stdin.read() if chosen.log == "-" else Path(chosen.log).read_text(encoding="utf-8", errors="replace")
        spans = parse_spans(text)
        runs = group_invocations(spans)
        if chosen.trace_out is not None:
            write_trace(runs, chosen.trace_out)
        if chosen.swimlane is not None:
            chosen.swimlane.write_text(json.dumps(swimlane(spans, parse_anchors(text))), encoding="utf-8")
    except OSError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    if spans.torn:
        print(f"WARNING: {spans.torn} torn {MARK} records are left out", file=sys.stderr)
    if chosen.assert_native_overlap:
        try:
            count = assert_native_overlap(spans, require_hidden_prepare=chosen.require_hidden_prepare)
        except NativeOverlapError as error:
            print(f"ERROR: {error}", file=sys.stderr)
            return 2
        print(f"{count} runs were prepared while the run before them ran")
        return 0
    print(rounds_table(runs) if chosen.rounds_table else tree(runs) if chosen.tree else overview(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
