#!/usr/bin/env python3
"""Measures the runtime against the budgets of docs/architecture.md and against its peers.

Prints a table and writes build/bench/summary.json: each value by its name, `process` (where and with what it was
measured) and `rows` (the table). Times are the best of several runs, with the median beside it, unless their row says
otherwise. A missed budget is shown in the table and leaves the exit code 0; exit code 1 means that something could not
be measured.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads would compete for the processors

import argparse
import contextlib
import io
import json
import platform as host
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import peers
import programs
import scenes
import whole_graph
import wide
from programs import Graphs, Sample, best, median
from simpler_setup.compile_cache import CompileCache
from simpler_setup.kernel_compiler import KernelCompiler
from simpler_setup.toolchain import host_compiler

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "bench"
TASKS = 100_000
GATED_TASKS, GATED_WINDOW = 10_000, 32_768
THREADS = (1, 2, 4)


class Row(NamedTuple):
    """What one value is and what it may be: at most `budget`, or at least that where `at_least` is set."""

    name: str
    unit: str
    meaning: str
    budget: float | None = None
    at_least: bool = False


ROWS = (
    Row("submit_us", "us/task", "submission while workers run: 2 inputs, 1 runtime output", 0.15),
    Row("submit_alone_us", "us/task", "the same while nothing runs", 0.15),
    Row("independent_us", "us/task", "1 input, 1 runtime output; no task waits", 0.25),
    Row("independent_cells_us", "us/task", "each writes its own cell of one buffer", 0.25),
    Row("chain_us", "us/task", "one tensor updated in place", 0.30),
    Row("chains_us", "us/task", "16 such chains in turn", 0.30),
    Row("two_results_us", "us/task", "2 inputs from the 2 tasks before, 1 runtime output"),
    Row("tree_us", "us/task", "binary trees of 512 leaves over cells of one buffer"),
    Row("fan_in_us", "us/task", "200 cells written, one reader of all"),
    Row("tiles_us", "us/task", "4096 cells written, one reader of the whole buffer"),
    Row("nested_scopes_us", "us/task", "four nested scopes around each task"),
    Row("spmd_block_us", "us/block", "SPMD tasks of 25000 empty blocks", 0.08),
    Row("spmd_block_us_1", "us/block", "SPMD tasks of one empty block; _10 to _10000 are in the summary"),
    Row("mix_block_us", "us/block", "blocks of three empty lanes, 1000 in a task; _1 to _100 are in the summary"),
    Row("cohort8_barrier_ms", "ms", "cohort of 8 cores of a chip of 72; its lanes meet once, with sched_yield"),
    Row("cohort24_barrier_ms", "ms", "the same with 24 cores"),
    Row("cohort72_barrier_ms", "ms", "the same with all 72", 10),
    Row("growth", "x", "per task, 1e6 to 1e4 tasks; the worse of independent and chain", 1.2),
    Row("rss_growth_mib", "MiB", "memory after 1e6 tasks more than after 1e4; the window of 16384 fills meanwhile", 16),
    Row("peak_rss_mib", "MiB", "the most memory that this process had at once, up to the end of the step growth"),
    Row("chains_mtasks_s_1", "Mtask/s", "throughput of 16 chains, 1 simulator thread beside the submitter"),
    Row("chains_mtasks_s_2", "Mtask/s", "2 threads"),
    Row("chains_mtasks_s_4", "Mtask/s", "4 threads"),
    Row("waits_per_ktask", "", "times that a thread slept (locks, wake-ups) per 1000 tasks; the worst of five graphs"),
    Row("page_faults_per_ktask", "", "page faults per 1000 tasks of a warmed worker; the worst of five graphs"),
    Row("run_fixed_ms", "ms", "Worker.run of one empty task, three small tensors; median", 0.1),
    Row("worker_init_ms", "ms", "Worker.init; median", 15),
    Row("omp_speedup_dependent_min", "x", "OpenMP's time to ours; the worst of chain(s), tree, fan_in, tiles", 2, True),
    Row("omp_speedup_geomean", "x", "the mean of these five"),
    Row("omp_speedup_independent", "x", "OpenMP's time to ours; it runs most of these tasks inline", 0.33, True),
    Row("tbb_speedup_dependent_min", "x", "oneTBB flow graph's time to ours; it is told its edges, and infers none"),
    Row("tbb_speedup_independent", "x", "oneTBB flow graph's time to ours"),
    Row("host_graph_build_us_per_task", "us/task", "host_build_graph: building, 2 inputs, 1 runtime output", 0.3),
    Row("host_graph_execute_us_per_task", "us/task", "executing that graph, with the fixed cost of the run"),
    Row("ahead_independent_us", "us/task", "both for independent tasks; 16000 tasks"),
    Row("ahead_independent_streaming_us", "us/task", "the same graph on the streaming runtime"),
    Row("ahead_chain_us", "us/task", "both for a chain"),
    Row("ahead_chain_streaming_us", "us/task", "the same graph on the streaming runtime"),
    Row("replay_us_per_task", "us/task", "replaying a recorded graph of 297 tasks; execution comes on top", 0.1),
    Row("replay_plain_us_per_task", "us/task", "submitting these tasks by calling the body"),
    Row("replay_us", "us", "one replay of that graph"),
    Row("replay_first_use_us", "us", "its first use in a run, which calls and records the body"),
    Row("replay_execute_us_per_task", "us/task", "executing the replayed tasks"),
    Row("replay_total_us_per_task", "us/task", "replaying and executing"),
    Row("tbb_rerun_us_per_task", "us/task", "running the same graph, built once, again on oneTBB's flow graph"),
    Row("decode_overhead_ms", "ms", "a run of one step of the decoder example, 268 tasks, without its kernels", 2),
    Row("decode_replayed_ms", "ms", "one of 64 steps in one run"),
    Row("compile_add_s", "s", "vector_add's kernel, cold; best of 3", 0.5),
    Row("compile_matmul_s", "s", "matmul kernel, cold; best of 3", 0.5),
    Row("compile_softmax_s", "s", "softmax kernel, cold; best of 3", 1),
    Row("scene_again_s", "s", "python test_vector_add.py again, in all; best of 5", 1),
    Row("scene_cold_s", "s", "a small NumPy scene, python test_x.py with an empty cache; best of 3", 5),
    Row("scene_warm_s", "s", "the same again; best of 6", 1),
    Row("scene_edit_s", "s", "the same after an edit of the kernel; best of 3", 2),
    Row("suite60_cold_s", "s", "60 small cases in 20 files under pytest, empty cache; once", 30),
    Row("suite60_warm_s", "s", "the same again; once", 8),
    Row("matmul_gflops", "GFLOP/s", "128 x 128 x 128 fp32 tile product on one core"),
    Row("matmul_to_blas", "x", "the same to NumPy's BLAS on one thread", 0.8, True),
    Row("sweep_triples", "cases", "scenario, driver call, way to fail: of the last run of the C++ tests", 2000, True),
    Row("sweep_failures", "cases", "of these, with a wrong code or state, a leak, or a device lost in silence", 0),
    Row("build_s", "s", "package from clean (measured with --build)", 45),
)  # fmt: skip

Values = dict[str, float]
Table = dict[str, dict[str, float]]  # by graph, then by a number

#: Graphs that the peers know too, and all of which the total time is reported.
DEPENDENT = ("chain", "chains", "tree", "fan_in", "tiles")
SHARED = ("independent", *DEPENDENT)
TOTALS = (*SHARED, "independent_cells", "two_results", "nested_scopes")


def in_turn(bench: Graphs, wanted: Iterable[str], count: int, rounds: int) -> dict[str, list[Sample]]:
    """Samples of several graphs, one of each per round: a busy spell of the machine then spoils none of them."""
    samples: dict[str, list[Sample]] = {graph: bench.sample(graph, count, 1) for graph in wanted}
    for _ in range(rounds - 1):
        for graph in wanted:
            samples[graph].append(bench.run(graph, count))
    return samples


def best_and_median(name: str, samples: list[Sample], field: str) -> Values:
    return {name: best(samples, field), f"{name}_median": median(samples, field)}


def graphs(platform: str, repeats: int) -> Values:
    """Submission, execution, and the fixed cost of a run."""
    with Graphs(platform) as bench:
        samples = in_turn(bench, (*TOTALS, "two_inputs"), TASKS, repeats)
        values: Values = {}
        for graph in TOTALS:
            values.update(best_and_median(f"{graph}_us", samples[graph], "total"))
        values.update(best_and_median("submit_us", samples["two_inputs"], "submit"))
        values["run_fixed_ms"] = statistics.median(s.total for s in bench.sample("one", 1, 200)) * 1e3
    with Graphs(platform, sim_clusters=1) as bench:
        gated = bench.sample("two_inputs", GATED_TASKS, repeats, window=GATED_WINDOW, gated=True)
        values.update(best_and_median("submit_alone_us", gated, "submit"))
    return values


def growth(platform: str, repeats: int) -> Values:
    """Time per task and memory of large runs against small ones."""
    wanted, small, large = ("independent", "chain"), 10_000, 1_000_000
    samples: dict[tuple[str, int], list[Sample]] = {}
    with Graphs(platform) as bench:
        in_turn(bench, wanted, small, repeats)
        rss_before = _rss_mib()
        for _ in range(repeats):
            for graph in wanted:
                samples.setdefault((graph, large), []).append(bench.run(graph, large))
                samples.setdefault((graph, small), []).extend(bench.sample(graph, small, 3))
        rss_after = _rss_mib()
    ratios = {g: best(samples[g, large], "total") / best(samples[g, small], "total") for g in wanted}
    values = {f"growth_{graph}": ratio for graph, ratio in ratios.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**values, "growth": max(ratios.values()), "rss_growth_mib": rss_after - rss_before, "peak_rss_mib": peak}


def sizes(platform: str) -> Table:
    """Microseconds per task by graph and number of tasks."""
    counts = (1_000, 10_000, 100_000, 1_000_000)
    with Graphs(platform) as bench:
        return {
            graph: {str(count): best(bench.sample(graph, count, 3), "total") for count in counts}
            for graph in programs.GRAPHS[1:]
        }


def threads(platform: str, repeats: int) -> tuple[Table, Values]:
    """Microseconds per task by graph and number of simulator threads; and of these, the throughput of one graph."""
    table: Table = {graph: {} for graph in TOTALS}
    for count in THREADS:
        with Graphs(platform, sim_threads=count) as bench:
            for graph, samples in in_turn(bench, TOTALS, TASKS, repeats).items():
                table[graph][str(count)] = best(samples, "total")
    return table, {f"chains_mtasks_s_{count}": 1 / table["chains"][str(count)] for count in THREADS}


def waits_and_faults(platform: str, repeats: int) -> Values:
    """What the system did meanwhile: times that a thread of ours went to sleep, and pages that it mapped."""
    values: Values = {}
    with Graphs(platform) as bench:
        for graph in SHARED[:-1]:
            bench.run(graph, TASKS)
            before = resource.getrusage(resource.RUSAGE_SELF)
            tasks = sum(bench.run(graph, TASKS).tasks for _ in range(repeats))
            after = resource.getrusage(resource.RUSAGE_SELF)
            values[f"waits_per_ktask_{graph}"] = (after.ru_nvcsw - before.ru_nvcsw) / tasks * 1e3
            values[f"page_faults_per_ktask_{graph}"] = (after.ru_minflt - before.ru_minflt) / tasks * 1e3
    for name in ("waits_per_ktask", "page_faults_per_ktask"):
        values[name] = max(values[f"{name}_{graph}"] for graph in SHARED[:-1])
    return values


def start_up(platform: str, repeats: int) -> Values:
    return {"worker_init_ms": statistics.median(programs.init_seconds(platform, 5 * repeats)) * 1e3}


def against_peers(platform: str, repeats: int, notes: list[str]) -> Values:
    """How much longer the peers take for the same graphs, in turn with ours. One that is not installed is noted."""
    programs_of = {}
    for peer in peers.PEERS:
        try:
            programs_of[peer.name] = peers.build(peer, OUTPUT)
        except FileNotFoundError as missing:
            notes.append(f"{peer.name} was not measured: {missing}")
    ours: dict[str, list[float]] = {graph: [] for graph in SHARED}
    theirs: dict[tuple[str, str], list[float]] = {}
    with Graphs(platform) as bench:
        for _ in range(repeats):
            for graph, samples in in_turn(bench, SHARED, TASKS, 1).items():
                ours[graph].append(best(samples, "total"))
            for name, program in programs_of.items():
                for graph, took in peers.measure(program, TASKS, _threads()).items():
                    theirs.setdefault((name, graph), []).append(took)
    values: Values = {}
    for name in programs_of:
        values.update({f"{name}_{graph}_us": min(theirs[name, graph]) for graph in SHARED})
        speedups = {graph: min(theirs[name, graph]) / min(ours[graph]) for graph in SHARED}
        values.update({f"{name}_speedup_{graph}": speedup for graph, speedup in speedups.items()})
        del speedups["independent"]
        values[f"{name}_speedup_geomean"] = statistics.geometric_mean(speedups.values())
        values[f"{name}_speedup_dependent_min"] = min(speedups.values())
    return values


def tool_chain(platform: str, repeats: int) -> Values:
    """Compiling one kernel, and a scene test whose kernels are compiled already."""
    values: Values = {}
    examples = ROOT / "examples" / "vector_add"
    sources = {
        "add": (examples / "kernels" / "add.cpp", "aiv"),
        "matmul": (programs.KERNELS / "matmul.cpp", "aic"),
        "softmax": (programs.KERNELS / "softmax.cpp", "aiv"),
    }
    for name, (source, core_type) in sources.items():
        values[f"compile_{name}_s"] = min(_cold_compile_seconds(platform, source, core_type) for _ in range(3))
    command = [sys.executable, str(examples / "test_vector_add.py"), "-p", platform]
    scene = [_seconds(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(6)]
    values["scene_again_s"] = min(scene[1:])
    return values


def user_scenes(platform: str, repeats: int) -> Values:
    """The time of scene tests as a user starts them."""
    with tempfile.TemporaryDirectory(prefix="simpler-bench-") as folder:
        root = Path(folder)
        with contextlib.redirect_stdout(io.StringIO()):  # `simpler new` names the files that it writes
            return {**scenes.scene_times(platform, root, 3), **scenes.suite_times(platform, root)}


def _cold_compile_seconds(platform: str, source: Path, core_type: str) -> float:
    with tempfile.TemporaryDirectory(prefix="simpler-bench-") as empty:
        compiler = KernelCompiler(platform, cache=CompileCache(Path(empty)))
        return _seconds(lambda: compiler.compile_incore(source, core_type))


def product(platform: str, repeats: int) -> Values:
    with programs.Product(platform) as bench:
        tile, blas = bench.tile_gflops(), bench.blas_gflops()
    return {"matmul_gflops": tile, "blas_gflops": blas, "matmul_to_blas": tile / blas}


def tile_library(platform: str, repeats: int) -> bool:
    """Runs tile.py, which prints a table and adds its rows to the summary. In a process of its own: NumPy's BLAS is set
    up there before NumPy is imported."""
    command = [sys.executable, str(ROOT / "tests" / "bench" / "tile.py"), "-p", platform, "--repeats", str(repeats)]
    sys.stdout.flush()
    return subprocess.run(command, check=False).returncode == 0


def build(platform: str, repeats: int) -> Values:
    """A wheel from the sources alone, with the build tools that are installed already."""
    with tempfile.TemporaryDirectory(prefix="simpler-bench-") as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-build-isolation", "--wheel-dir", folder, "-C", f"build-dir={folder}/build", str(ROOT)]
        return {"build_s": _seconds(lambda: subprocess.run(command, check=True))}


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class OtherLoad:
    """Processors that other processes kept busy since this object was made, as a mean."""

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds: the clock's, busy ones of all processors, and those of this process and its ended children."""
        user, nice, system, _idle, _wait, *interrupts = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        busy = sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, sum(os.times()[:4])

    def mean(self) -> float:
        wall, busy, own = (now - before for now, before in zip(self._now(), self._start))
        return max(0.0, (busy - own) / wall)


def _threads() -> int:
    """Threads that the simulator and its peers use."""
    text = os.environ.get("SIMPLER_SIM_THREADS", "")
    return int(text) if text.isdigit() and int(text) > 0 else len(os.sched_getaffinity(0))


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), host.machine())


def describe_process(platform: str) -> dict[str, Any]:
    """Where and with what the values were measured."""
    compiler = host_compiler()
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "platform": platform,
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "threads": _threads(),
        "compiler": f"{compiler.family} {compiler.version}",
        "python": host.python_version(),
        "commit": _git("rev-parse", "HEAD"),
        "changed_files": len(_git("status", "--porcelain").splitlines()),
    }


def verdict(row: Row, value: float | None) -> str:
    if value is None:
        return "not measured"
    if row.budget is None:
        return ""
    return "ok" if (value >= row.budget if row.at_least else value <= row.budget) else "MISSED"


def print_table(values: Values) -> None:
    def shown(name: str) -> str:
        return f"{values[name]:.3f}" if name in values else ""

    lines = [("name", "value", "median", "unit", "budget", "", "what")]
    for row in ROWS:
        budget = "" if row.budget is None else f"{'>=' if row.at_least else '<='} {row.budget:g}"
        ok = verdict(row, values.get(row.name))
        lines.append((row.name, shown(row.name), shown(f"{row.name}_median"), row.unit, budget, ok, row.meaning))
    widths = [max(len(line[column]) for line in lines) for column in range(7)]
    for line in lines:
        cells = (cell.rjust(width) if column in (1, 2, 4) else cell.ljust(width)
                 for column, (cell, width) in enumerate(zip(line, widths)))  # fmt: skip
        print("  ".join(cells).rstrip())


def print_times(by: str, table: Table) -> None:
    counts = list(next(iter(table.values())))
    print(f"\nus/task, by {by}".ljust(21) + "".join(f"{int(count):>12,}" for count in counts))
    for graph, times in table.items():
        print(f"{graph:20}" + "".join(f"{times[count]:12.3f}" for count in counts))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the runtime against its budgets and its peers.")
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3sim", "a5sim"])
    parser.add_argument("--repeats", type=int, default=7, help="runs of which the best counts (default 7)")
    parser.add_argument("--build", action="store_true", help="also build the package from clean (a minute)")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    return options


def sweep(notes: list[str]) -> Values:
    """What the C++ tests left of their sweep of driver failures (tests/fault)."""
    results = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((OUTPUT / "sweep").glob("*.json"))]
    if not results:
        notes.append("sweep_triples: run tools/cpp_tests first")
        return {}
    return {name: sum(result[name] for result in results) for name in ("sweep_triples", "sweep_failures")}


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    summary_file = OUTPUT / "summary.json"
    process = describe_process(options.platform)
    values: Values = {}
    tables: dict[str, Table] = {}
    notes: list[str] = []
    failures: list[str] = []

    def by_tasks() -> Values:
        tables["tasks"] = sizes(options.platform)
        return {}

    def by_threads() -> Values:
        tables["threads"], throughput = threads(options.platform, options.repeats)
        return throughput

    steps: list[tuple[str, Callable[[], Values]]] = [
        ("start-up", lambda: start_up(options.platform, options.repeats)),
        ("graphs", lambda: graphs(options.platform, options.repeats)),
        ("wide tasks", lambda: wide.measure(options.platform, options.repeats)),
        ("growth", lambda: growth(options.platform, options.repeats)),
        ("sizes", by_tasks),
        ("threads", by_threads),
        ("waits", lambda: waits_and_faults(options.platform, options.repeats)),
        ("peers", lambda: against_peers(options.platform, options.repeats, notes)),
        ("whole graphs", lambda: whole_graph.measure(options.platform, options.repeats, _threads(), OUTPUT, notes)),
        ("tool-chain", lambda: tool_chain(options.platform, options.repeats)),
        ("scenes", lambda: user_scenes(options.platform, options.repeats)),
        ("product", lambda: product(options.platform, options.repeats)),
        ("sweep", lambda: sweep(notes)),
    ]
    if options.build:
        steps.append(("build", lambda: build(options.platform, options.repeats)))
    elif (remembered := _remembered(summary_file)) is not None:
        values["build_s"] = remembered["build_s"]
        process["build_s_time"] = remembered["time"]
        notes.append(f"build_s is of {remembered['time']}; --build measures it again")

    others = OtherLoad()
    for name, step in steps:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        try:
            values.update(step())
        except Exception:
            traceback.print_exc()
            failures.append(name)
    process["busy_with_others"] = round(others.mean(), 2)
    if process["busy_with_others"] > 0.1:
        notes.append(f"other processes used {process['busy_with_others']} processors meanwhile: times are upper bounds")
    if options.build and "build_s" in values:
        process["build_s_time"] = process["time"]

    measured = [(row, values.get(row.name)) for row in ROWS]
    rows = [{**row._asdict(), "value": value, "verdict": verdict(row, value)} for row, value in measured]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    summary = {**values, "process": process, "rows": rows, "us_per_task_by": tables, "notes": notes}
    summary_file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")

    print_table(values)
    for by, table in tables.items():
        print_times(f"number of {by}", table)
    missed = [row["name"] for row in rows if row["verdict"] == "MISSED"]
    print(f"\n{process['cpu']}, {process['cpus']} processors, {process['compiler']}, {options.platform}, "
          f"{process['threads']} simulator threads")  # fmt: skip
    for note in notes:
        print(f"note: {note}")
    print(f"budgets missed: {', '.join(missed) or 'none'}")
    print("\nmeasuring: tile library", file=sys.stderr, flush=True)
    if not tile_library(options.platform, options.repeats):
        failures.append("tile library")
    print(f"\nwritten to {summary_file.relative_to(ROOT)}")
    if failures:
        print(f"could not be measured: {', '.join(failures)}", file=sys.stderr)
    return 1 if failures else 0


def _remembered(summary_file: Path) -> dict[str, Any] | None:
    """The last build time and when it was measured."""
    try:
        summary = json.loads(summary_file.read_text(encoding="utf-8"))
        return {"build_s": float(summary["build_s"]), "time": summary["process"]["build_s_time"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


if __name__ == "__main__":
    sys.exit(main())
