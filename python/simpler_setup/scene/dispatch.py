"""Stand-alone runs over several devices: the classes are spread over child processes, one device each.

A child gets the exact cases to run, so that a selector which names a case of one class cannot fail another's child.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..parallel_scheduler import Job, JobResult, format_device_range, run_jobs

#: (class, its selected cases)
Plan = Sequence[tuple[Any, Sequence[dict[str, Any]]]]


def _command(
    script: str, platform: str, runtime: str, forwarded: Sequence[str], part: Plan, ids: list[int]
) -> list[str]:
    selectors = [f"{cls.__name__}::{case['name']}" for cls, cases in part for case in cases]
    return [
        sys.executable,
        script,
        *("-p", platform, "-d", format_device_range(ids), "--runtime", runtime, "--level", "2", "--manual", "include"),
        *(word for selector in selectors for word in ("--case", selector)),
        *forwarded,
    ]


def run_spread(
    script: str,
    platform: str,
    runtime: str,
    plan: Plan,
    ids: Sequence[int],
    *,
    max_parallel: int,
    forwarded: Sequence[str],
    exit_first: bool,
) -> bool:
    """Run the chip-level classes of one runtime in children; True when all of them passed. Output comes as they end."""
    children = max(1, min(max_parallel, len(ids), len(plan)))
    print(f"\n=== L2 Runtime: {runtime}  [fanout n={children}] ===", flush=True)
    jobs = []
    for index in range(children):
        part = list(plan[index::children])

        def build(devices: list[int], part: Plan = part) -> list[str]:
            return _command(script, platform, runtime, forwarded, part, devices)

        jobs.append(Job(label=f"L2 {','.join(cls.__name__ for cls, _ in part)}", device_count=1, build_cmd=build))

    def report(result: JobResult) -> None:
        print(result.output, end="" if result.output.endswith("\n") else "\n")
        verdict = "PASSED" if result.returncode == 0 else f"FAILED (rc={result.returncode})"
        print(f"{result.label} on {result.device_ids} in {result.duration_s:.1f} s: {verdict}", flush=True)

    results = run_jobs(jobs, list(ids), max_parallel=children, fail_fast=exit_first, on_job_done=report)
    return len(results) == len(jobs) and all(result.returncode == 0 for result in results)
