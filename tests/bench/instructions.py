#!/usr/bin/env python3
"""Counts the instructions that one task costs, and fails where they are more than stated here.

Valgrind's callgrind counts them, so the machine's load does not matter: two runs differ by less than 1 %. Each graph
goes the user's way, behind a gate: first all tasks are submitted, then all are executed. So submission and completion
are counted apart, each as the difference between a large and a small run, which takes off what a run costs by itself.

Exit code 1: a count is above its limit. 2: it could not be counted. Counts depend on compiler and processor family:
with others than those of MEASURED_WITH they are printed, and not judged.
"""

from __future__ import annotations

import os
import platform as host
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from programs import Graphs
from simpler_setup.toolchain import host_compiler

PLATFORM = "a2a3sim"
SMALL, LARGE, WINDOW = 1000, 4000, 32768
#: A libc function that nothing else calls. Callgrind writes what it has counted at each call: two in a run (see
#: kernels/graphs.cpp), one between two runs.
SPLIT_AT = "getpgid"
MEASURED_WITH = ("x86_64", "gcc", 12)
TOLERANCE = 1.10


class Cost(NamedTuple):
    """Instructions per task."""

    submitted: float
    completed: float


#: What was measured; the limits are TOLERANCE times as high. Lower a number when the runtime gets better.
STATED = {
    "two_inputs": Cost(1251, 805),
    "two_results": Cost(1541, 560),
    "independent_cells": Cost(1995, 863),
    "chain": Cost(1299, 545),
    "tree": Cost(2479, 755),
    "fan_in": Cost(2250, 878),
    "nested_scopes": Cost(2130, 866),
}


def run_graphs() -> None:
    """What is counted: for each graph a run to warm up, a small one, a large one. Prints their numbers of tasks."""
    with Graphs(PLATFORM, sim_clusters=1, sim_threads=1) as bench:
        for graph in STATED:
            for count in (LARGE, SMALL, LARGE):
                print(graph, bench.run(graph, count, window=WINDOW, gated=True).tasks, flush=True)
                os.getpgid(0)


def count() -> dict[str, Cost]:
    """The cost of each graph's tasks."""
    with tempfile.TemporaryDirectory(prefix="simpler-instructions-") as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/part", f"--dump-before={SPLIT_AT}"]
        command += [sys.executable, __file__, "--counted"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # NumPy's threads would be counted too
        environment.pop("SIMPLER_SIM_SEED", None)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stderr[-3000:]}")
        tasks = [int(line.split()[1]) for line in done.stdout.splitlines()]
        parts = [_total(Path(f"{folder}/part.{n + 1}")) for n in range(3 * len(tasks))]
    runs = [(number, parts[3 * n + 1], parts[3 * n + 2]) for n, number in enumerate(tasks)]
    costs = {}
    for n, graph in enumerate(STATED):
        (few, submitted, completed), (many, submitted_many, completed_many) = runs[3 * n + 1 : 3 * n + 3]
        costs[graph] = Cost((submitted_many - submitted) / (many - few), (completed_many - completed) / (many - few))
    return costs


def _total(part: Path) -> int:
    found = re.search(r"^totals: (\d+)$", part.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"callgrind wrote no total to {part.name}")
    return int(found[1])


def judge(costs: dict[str, Cost]) -> list[str]:
    """Prints a table; returns a sentence for each count that is above its limit."""
    print(f"{'instructions per task':20}  {'submitted':>10} {'limit':>7}   {'completed':>10} {'limit':>7}")
    failures = []
    for graph, cost in costs.items():
        limits = [stated * TOLERANCE for stated in STATED[graph]]
        print(f"{graph:20}  {cost[0]:10.0f} {limits[0]:7.0f}   {cost[1]:10.0f} {limits[1]:7.0f}")
        for what, instructions, limit in zip(Cost._fields, cost, limits):
            if instructions > limit:
                failures.append(f"{graph}: {instructions:.0f} instructions per {what} task; the limit is {limit:.0f}")
    return failures


def main() -> int:
    if sys.argv[1:] == ["--counted"]:
        run_graphs()
        return 0
    try:
        costs = count()
    except FileNotFoundError:
        print("valgrind is missing; install it (Debian/Ubuntu: apt-get install valgrind)", file=sys.stderr)
        return 2
    except RuntimeError as failure:
        print(failure, file=sys.stderr)
        return 2
    failures = judge(costs)
    compiler = host_compiler()
    used = (host.machine(), compiler.family, compiler.version)
    if used != MEASURED_WITH:
        print(f"not judged: the limits are for {MEASURED_WITH}, these were counted with {used}")
        return 0
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        print("make it cheaper, or state in STATED what it costs now and say in the commit why", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
