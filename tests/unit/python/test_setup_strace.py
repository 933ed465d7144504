"""strace_timing: what it reads from a log and what it makes of it."""

import json
import re

import pytest
from simpler_setup.tools import strace_timing as st


def line(name, ts, dur, inv=1, hid="ab", depth=0, pid=7, more=""):
    return (
        f"[mono_ns=1][T0x1][TIMING] emit_host_span: [STRACE] v=1 pid={pid} tid={pid} inv={inv} hid={hid} depth={depth} "
        f"name={name} ts={ts} dur={dur}{more}"
    )


def run(inv, start, hid="ab", bind=(0, 10_000), runner=(20_000, 80_000), device=True):
    lines = [
        line("chip.run", start, 100_000 + 1000 * inv, inv, hid),
        line("chip.run.bind", start + bind[0], bind[1], inv, hid, 1),
        line("chip.run.runner_run", start + runner[0], runner[1], inv, hid, 1),
    ]
    if device:
        lines.append(line("chip.run.runner_run.device_wall", 0, 50_000, inv, hid, 2, more=" clk=dev"))
        lines.append(line("chip.run.runner_run.device_wall.orch", 1000, 20_000, inv, hid, 3, more=" clk=dev"))
        lines.append(line("chip.run.runner_run.device_wall.sched", 5000, 40_000, inv, hid, 3, more=" clk=dev"))
    return lines


def test_spans_are_read_with_attributes_and_older_names():
    text = line("simpler_run.bind%25", 3, 4, more=" slot=2 text=a%20b") + " " + line("chip.run", 1, 9)
    first, second = st.parse_spans("noise\n" + text)
    assert (first.name, first.ts, first.dur, first.attrs) == ("chip.run.bind%", 3, 4, {"slot": "2", "text": "a b"})
    assert second.name == "chip.run" and not second.on_device


def test_torn_records_are_counted():
    spans = st.parse_spans([line("chip.run", 1, 9), "[STRACE] v=1 pid=3 tid=", line("chip.run", "x", 9)])
    assert len(spans) == 1 and spans.torn == 2


def test_the_rounds_of_the_busiest_program():
    lines = [*run(1, 0, hid="cd"), *(entry for inv in (2, 3) for entry in run(inv, inv * 10**6))]
    table = st.rounds_table(st.group_invocations(st.parse_spans(lines)))
    assert re.search(r"Round +Host \(us\) +Device \(us\) +Effective \(us\) +Orch \(us\) +Sched \(us\)", table)
    assert re.search(r"^  0 +102\.0 +50\.0 +44\.0 +20\.0 +40\.0$", table, re.M)
    assert "Avg Host: 102.5 us  |  Avg Device: 50.0 us" in table and "(2 rounds)" in table and "Trimmed" not in table


def test_many_rounds_have_a_trimmed_average_and_missing_columns_are_told():
    lines = [entry for inv in range(1, 23) for entry in run(inv, inv * 10**6, device=inv != 1)]
    table = st.rounds_table(st.group_invocations(st.parse_spans(lines)))
    assert "Avg Device: 50.0 us [21/22]" in table and "Trimmed Avg Host: 111.5 us" in table


def test_overview_and_tree_and_an_empty_log():
    runs = st.group_invocations(st.parse_spans(run(1, 0)))
    assert re.search(r"program ab: 1 runs\n  chip\.run +mean +101\.0  min +101\.0  max +101\.0 us", st.overview(runs))
    assert re.search(r"^      device_wall \(device\) +50\.0$", st.tree(runs), re.M)
    assert {view([]) for view in (st.rounds_table, st.overview, st.tree)} == {"no chip.run span in the log"}


@pytest.mark.parametrize(
    "second, hidden, words",
    [
        ({"bind": (-60_000, 10_000), "runner": (20_000, 80_000)}, False, None),
        ({"bind": (-60_000, 10_000), "runner": (20_000, 80_000)}, True, None),
        ({"bind": (-1_000, 10_000), "runner": (20_000, 80_000)}, True, "ended after the first"),
        ({"bind": (1_000, 10_000), "runner": (20_000, 80_000)}, False, "did not overlap the first"),
        ({"bind": (-60_000, 10_000), "runner": (-30_000, 80_000)}, False, "before the first gave the device up"),
    ],
)
def test_overlap(second, hidden, words):
    spans = st.parse_spans([*run(1, 0), *run(2, 100_000, **second)])
    if words is None:
        assert st.assert_native_overlap(spans, require_hidden_prepare=hidden) == 1
        return
    with pytest.raises(st.NativeOverlapError, match=words):
        st.assert_native_overlap(spans, require_hidden_prepare=hidden)


def test_the_command_line(tmp_path, capsys):
    log, trace = tmp_path / "log", tmp_path / "trace.json"
    log.write_text("\n".join(run(1, 0)))
    lanes = tmp_path / "lanes.json"
    assert st.main([str(log), "--tree", "--trace-out", str(trace), "--swimlane", str(lanes)]) == 0
    assert "medians of 1 runs" in capsys.readouterr().out
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["tid"] for event in events if event["ph"] == "X"} == {0, 1} and len(events) == 7
    assert len(json.loads(lanes.read_text())["unalignedDeviceSpans"]) == 3
    assert st.main([str(log), "--assert-native-overlap"]) == 2 and "no two runs" in capsys.readouterr().err
    assert st.main([str(tmp_path / "none")]) == 1 and "none" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        st.main([str(log), "--require-hidden-prepare"])


def test_the_swimlane_has_the_host_by_threads_and_the_device_beside():
    second = line("chip.run", 1500, 1000, inv=2, more=" slot_id=1"), line("chip.run.bind", 1500, 10, 2, depth=1)
    later = line("chip.run", 9000, 10, inv=3, pid=8, more=" slot_id=1")
    text = "\n".join(
        [line("chip.run", 1000, 1000, more=" slot_id=0"), *second, later, *run(4, 10**6, device=True)[3:4]]
    )
    trace = st.swimlane(st.parse_spans(text), st.parse_anchors("[CLOCK_ANCHOR] v=1 pid=7 mono_ns=5 wall_ns=99"))
    bars = [(e["pid"], e["tid"], e["name"], e["ts"]) for e in trace["traceEvents"] if e["ph"] == "X"]
    assert bars[0] == (7, 7, "chip.run", 1.0) and bars[3] == (8, 8, "chip.run", 9.0)
    assert bars[1][1] == bars[2][1] != 7, "a run that overlaps another of its thread has a lane of its own"
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert names == ["process 7", "process 8", "thread 7", "thread 7, slot 1", "thread 8"]
    assert trace["clockAnchors"] == [{"pid": "7", "mono_ns": "5", "wall_ns": "99"}]
    (wall,) = trace["unalignedDeviceSpans"]
    assert wall == {"name": "chip.run.runner_run.device_wall", "ts_ns": 0, "dur_ns": 50_000, "pid": 7, "tid": 7,
                    "inv": 4, "hid": "ab", "depth": 2, "attrs": {"clk": "dev"}}  # fmt: skip


def test_the_swimlane_leads_from_a_submission_to_its_dispatches():
    def task(name, ts, more):
        return line(f"l3.{name}", ts, 5, more=f" run_id=1 task_slot={more}")

    text = [
        task("submit", 10, 3),
        task("submit", 20, 4),
        task("dispatch", 30, "4 group_index=0"),
        task("dispatch", 40, 9),
    ]
    events = st.swimlane(st.parse_spans(text), [])["traceEvents"]
    arrows = [(e["ph"], e["ts"]) for e in events if e["name"] == "task dispatch"]
    assert arrows == [("s", 0.02), ("f", 0.03)]
