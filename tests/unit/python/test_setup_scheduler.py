"""Child processes on devices: order, exclusiveness, failures, and what happens on an exception."""

import os
import signal
import sys
import time

import pytest
from simpler_setup import parallel_scheduler
from simpler_setup.parallel_scheduler import Job, run_jobs


def job(label, code="pass", devices=1, seen=None, **extra):
    def build(ids):
        if seen is not None:
            seen[label] = list(ids)
        return [sys.executable, "-S", "-c", code]

    return Job(label, devices, build, **extra)


def test_a_result_has_everything(capfd, tmp_path):
    seen, done = {}, []
    code = "import sys, os; print('out', os.environ['MARK'], os.getcwd()); print('err', file=sys.stderr); sys.exit(3)"
    env = {**os.environ, "MARK": "7"}
    (result,) = run_jobs([job("a", code, seen=seen, env=env, cwd=str(tmp_path))], [4, 5], on_job_done=done.append)
    assert (result.label, result.returncode, result.device_ids, seen["a"]) == ("a", 3, [4], [4])
    assert (
        f"out 7 {tmp_path}" in result.output and "err" in result.output and result.duration_s > 0 and done == [result]
    )
    assert "[scheduler] START a pid=" in capfd.readouterr().out and not parallel_scheduler._active_state


def test_a_job_that_cannot_fit_is_refused_before_anything_starts(tmp_path):
    mark = tmp_path / "ran"
    with pytest.raises(ValueError, match="'wide' needs 3 devices, but there are 2"):
        run_jobs([job("ok", f"open({str(mark)!r}, 'w')"), job("wide", devices=3)], [0, 1])
    assert not mark.exists()
    with pytest.raises(ValueError, match="max_parallel"):
        run_jobs([job("a")], [0], max_parallel=0)


def test_jobs_start_in_order_and_a_wide_one_holds_back_the_rest(capfd):
    seen = {}
    nap = "import time; time.sleep(0.2)"
    jobs = [job("long", nap, seen=seen), job("wide", devices=2, seen=seen), job("small", seen=seen)]
    results = run_jobs(jobs, [0, 1], max_parallel=4)
    starts = [line.split()[2] for line in capfd.readouterr().out.splitlines() if "START" in line]
    assert starts == ["long", "wide", "small"] and [r.label for r in results] == starts
    assert sorted(seen["wide"]) == [0, 1]


def test_no_two_running_jobs_share_a_device():
    seen = {}
    run_jobs([job(f"j{i}", "import time; time.sleep(0.05)", seen=seen) for i in range(6)], [0, 1], max_parallel=8)
    assert {ids[0] for ids in seen.values()} == {0, 1} and all(len(ids) == 1 for ids in seen.values())


def test_fail_fast_starts_nothing_more(tmp_path):
    mark = tmp_path / "ran"
    jobs = [job("bad", "raise SystemExit(2)"), job("never", f"open({str(mark)!r}, 'w')")]
    assert [r.label for r in run_jobs(jobs, [0], fail_fast=True)] == ["bad"] and not mark.exists()
    assert [r.returncode for r in run_jobs(jobs, [0])] == [2, 0] and mark.exists()


def test_an_exception_ends_the_running_children():
    pids = []

    def stop(result):
        pids.extend(parallel_scheduler._active_state)
        raise KeyError("stop")

    started = time.monotonic()
    with pytest.raises(KeyError):
        run_jobs([job("quick"), job("slow", "import time; time.sleep(300)")], [0, 1], on_job_done=stop)
    assert len(pids) == 1 and time.monotonic() - started < 60
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_child_that_ignores_the_request_to_end_is_killed(monkeypatch, tmp_path):
    children, mark, start = [], tmp_path / "deaf", parallel_scheduler._start
    monkeypatch.setattr(parallel_scheduler, "_TERM_GRACE_S", 0.2)
    monkeypatch.setattr(parallel_scheduler, "_start", lambda *args: children.append(start(*args)) or children[-1])
    deaf = f"import signal, time; signal.signal({int(signal.SIGTERM)}, signal.SIG_IGN); open({str(mark)!r}, 'w')"
    quick = f"import os, time\nwhile not os.path.exists({str(mark)!r}): time.sleep(0.01)"

    def stop(result):
        raise KeyError("stop")

    started = time.monotonic()
    with pytest.raises(KeyError):
        run_jobs([job("deaf", f"{deaf}; time.sleep(300)"), job("quick", quick)], [0, 1], on_job_done=stop)
    assert children[0].returncode == -signal.SIGKILL and time.monotonic() - started < 60


def test_no_jobs():
    assert run_jobs([], [0]) == []
