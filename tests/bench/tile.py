#!/usr/bin/env python3
"""Measures the tile library beside NumPy on one thread: compile times, and the rate of each kind of instruction.

Prints a table and merges it into build/bench/summary.json. Tiles are 128 x 128 and stay in the core's memory (so in the
processor's cache); instructions run inside the simulator, as in any scene. Rates are by the processor time of the
process, which other programs on the machine blur less than its wall clock; compile times are by the clock. `x` rows are
NumPy's time to ours. A missed budget is shown in the table and leaves the exit code 0.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy
os.environ.pop("OPENBLAS_CORETYPE", None)  # it is to choose for the processor, as our loops do
os.environ.pop("OPENBLAS_L2_SIZE", None)

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, CoreCallable, TaskArgs, TensorArgType
from simpler.worker import Worker
from simpler_setup.compile_cache import CompileCache
from simpler_setup.kernel_compiler import KernelCompiler

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "bench"
RUNTIME = "tensormap_and_ringbuffer"
SIDE = 128
ELEMENTS = SIDE * SIDE
FLOAT, SHORT, BYTE = 4 * ELEMENTS, 2 * ELEMENTS, ELEMENTS  # bytes of a tile

#: What the tensor holds, and what NumPy works on.
_random = np.random.default_rng(seed=1)
A, B = (_random.random((2, SIDE, SIDE), dtype=np.float32) + np.float32(0.5)).astype(np.float32)
OUT = np.empty_like(A)
A16, B16 = A.astype(np.float16), B.astype(np.float16)
OUT16 = np.empty_like(A16)
ABF, BBF = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (A, B))
A8, B8 = _random.integers(-128, 128, (2, SIDE, SIDE), dtype=np.int8)
A_COLUMNS = np.ascontiguousarray(A.T)
PARTS = {"a": A, "b": B, "a16": A16, "b16": B16, "abf": ABF, "bbf": BBF, "a8": A8, "b8": B8, "out": OUT}


class Case(NamedTuple):
    """One instruction: what is repeated in the kernel, what NumPy does instead, and how much work that is."""

    name: str
    statement: str
    numpy: Callable[[], Any] | None
    amount: float  # of `unit` times 1e9 seconds
    unit: str = "GB/s"


CUBE = (
    Case("gemm_fp32", "TMATMUL(acc, left, right)", lambda: np.matmul(A, B, out=OUT), 2 * SIDE**3, "GFLOP/s"),
    Case("gemm_fp16", "TMATMUL(acc, left16, right16)", lambda: np.matmul(A, B, out=OUT), 2 * SIDE**3, "GFLOP/s"),
    Case("gemm_bf16", "TMATMUL(acc, leftbf, rightbf)", lambda: np.matmul(A, B, out=OUT), 2 * SIDE**3, "GFLOP/s"),
    Case("gemm_int8", "TMATMUL(acc32, left8, right8)", lambda: np.matmul(A, B, out=OUT), 2 * SIDE**3, "GFLOP/s"),
    Case("load_nz_fp32", "TLOAD(mat, a)", lambda: np.copyto(OUT, A), 2 * FLOAT),
    Case("load_nz_fp16", "TLOAD(mat16, a16)", lambda: np.copyto(OUT16, A16), 2 * SHORT),
    Case("load_transposed_fp32", "TLOAD(zn, at)", lambda: np.copyto(OUT, A_COLUMNS.T), 2 * FLOAT),
    Case("move_left_fp32", "TMOV(left, mat)", lambda: np.copyto(OUT, A), 2 * FLOAT),
    Case("move_right_fp32", "TMOV(right, mat)", lambda: np.copyto(OUT, A), 2 * FLOAT),
    Case("store_acc_fp32", "TSTORE(out, acc)", lambda: np.copyto(OUT, A), 2 * FLOAT),
    Case("store_acc_fp16", "TSTORE(out16, acc)", lambda: np.copyto(OUT16, A, casting="unsafe"), FLOAT + SHORT),
)
VECTOR = (
    Case("add_fp32", "TADD(z, x, y)", lambda: np.add(A, B, out=OUT), 3 * FLOAT),
    Case("add_fp16", "TADD(z16, x16, y16)", lambda: np.add(A16, B16, out=OUT16), 3 * SHORT),
    Case("add_bf16", "TADD(zbf, xbf, ybf)", None, 3 * SHORT),
    Case("add_columns_fp32", "TADD(zt, xt, yt)", lambda: np.add(A, B, out=OUT), 3 * FLOAT),
    Case("div_fp32", "TDIV(z, x, y)", lambda: np.divide(A, B, out=OUT), 3 * FLOAT),
    Case("exp_fp32", "TEXP(z, x)", lambda: np.exp(A, out=OUT), 2 * FLOAT),
    Case("exp_fp16", "TEXP(z16, x16)", lambda: np.exp(A16, out=OUT16), 2 * SHORT),
    Case("log_fp32", "TLOG(z, x)", lambda: np.log(A, out=OUT), 2 * FLOAT),
    Case("row_sum_fp32", "TROWSUM(row, x, z)", lambda: A.sum(axis=1), FLOAT),
    Case("row_max_fp32", "TROWMAX(row, x, z)", lambda: A.max(axis=1), FLOAT),
    Case("row_expand_sub_fp32", "TROWEXPANDSUB(z, x, row)", lambda: np.subtract(A, B[:, :1], out=OUT), 2 * FLOAT),
    Case("to_fp16", "TCVT(z16, x, RoundMode::CAST_RINT)", lambda: np.copyto(OUT16, A, casting="unsafe"), FLOAT + SHORT),
    Case("from_fp16", "TCVT(z, x16, RoundMode::CAST_RINT)", lambda: np.copyto(OUT, A16), FLOAT + SHORT),
    Case("to_bf16", "TCVT(zbf, x, RoundMode::CAST_RINT)", None, FLOAT + SHORT),
    Case("load_fp32", "TLOAD(x, a)", lambda: np.copyto(OUT, A), 2 * FLOAT),
    Case("store_fp32", "TSTORE(out, x)", lambda: np.copyto(OUT, A), 2 * FLOAT),
)

#: Budgets by name: at least so much (`x`: NumPy's time to ours), or at most so many seconds.
AT_LEAST = {"gemm_fp32_vs_blas": 0.8, "gemm_bf16_vs_blas": 0.4, "add_vs_numpy": 0.6, "exp_vs_numpy": 1.0}
AT_MOST = {"compile_add_s": 0.5, "compile_matmul_s": 0.5, "compile_softmax_s": 1.0, "compile_attention_s": 1.5}
EXAMPLES, KERNELS = ROOT / "examples", ROOT / "tests" / "bench" / "kernels"
COMPILED = {
    "compile_add_s": (EXAMPLES / "vector_add" / "kernels" / "add.cpp", "aiv"),
    "compile_matmul_s": (KERNELS / "matmul.cpp", "aic"),
    "compile_softmax_s": (EXAMPLES / "softmax" / "kernels" / "softmax.cpp", "aiv"),
    "compile_attention_s": (EXAMPLES / "flash_attention" / "kernels" / "attention_vector.cpp", "aiv"),
    "compile_attention_cube_s": (EXAMPLES / "flash_attention" / "kernels" / "attention_cube.cpp", "aic"),
}

_PROLOGUE = """// Made by tests/bench/tile.py.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

template <class T> using Memory =
    GlobalTensor<T, Shape<1, 1, 1, {side}, {side}>, pto::Stride<1, 1, 1, {side}, 1>>;
using Columns = GlobalTensor<float, Shape<1, 1, 1, {side}, {side}>, pto::Stride<1, 1, 1, 1, {side}>, pto::Layout::DN>;
template <class T> using Rows = Tile<TileType::Vec, T, {side}, {side}>;
template <class T> using Columnwise = Tile<TileType::Vec, T, {side}, {side}, BLayout::ColMajor>;
template <class T> using Nz =
    Tile<TileType::Mat, T, {side}, {side}, BLayout::ColMajor, {side}, {side}, SLayout::RowMajor>;
template <class T> using Zn =
    Tile<TileType::Mat, T, {side}, {side}, BLayout::RowMajor, {side}, {side}, SLayout::ColMajor>;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {{
  __gm__ char* memory = reinterpret_cast<ChipTensor*>(args[0])->data_as<char>();
"""
_VECTOR_TILES = """
  Rows<float> x, y, z;
  Rows<half> x16, y16, z16;
  Rows<bfloat16_t> xbf, ybf, zbf;
  Columnwise<float> xt, yt, zt;
  Tile<TileType::Vec, float, 128, 1, BLayout::ColMajor> row;
  TASSIGN(x, 0x0); TASSIGN(xt, 0x0); TASSIGN(y, 0x10000); TASSIGN(yt, 0x10000); TASSIGN(z, 0x20000);
  TASSIGN(zt, 0x20000); TASSIGN(x16, 0x30000); TASSIGN(y16, 0x38000); TASSIGN(z16, 0x40000); TASSIGN(xbf, 0x48000);
  TASSIGN(ybf, 0x50000); TASSIGN(zbf, 0x58000); TASSIGN(row, 0x60000);
  TLOAD(x, a); TLOAD(y, b); TLOAD(x16, a16); TLOAD(y16, b16); TLOAD(xbf, abf); TLOAD(ybf, bbf);
  TROWMAX(row, x, z);
"""
_CUBE_TILES = """
  Nz<float> mat, matb;
  Zn<float> zn;
  Nz<half> mat16;
  Nz<bfloat16_t> matbf;
  Nz<int8_t> mat8;
  TileLeft<float, 128, 128> left;
  TileRight<float, 128, 128> right;
  TileLeft<half, 128, 128> left16;
  TileRight<half, 128, 128> right16;
  TileLeft<bfloat16_t, 128, 128> leftbf;
  TileRight<bfloat16_t, 128, 128> rightbf;
  TileLeft<int8_t, 128, 128> left8;
  TileRight<int8_t, 128, 128> right8;
  TileAcc<float, 128, 128> acc;
  TileAcc<int32_t, 128, 128> acc32;
  TASSIGN(mat, 0x0); TASSIGN(matb, 0x10000); TASSIGN(zn, 0x20000); TASSIGN(mat16, 0x30000); TASSIGN(matbf, 0x40000);
  TASSIGN(mat8, 0x50000); TASSIGN(left, 0); TASSIGN(right, 0); TASSIGN(left16, 0); TASSIGN(right16, 0);
  TASSIGN(leftbf, 0); TASSIGN(rightbf, 0); TASSIGN(left8, 0); TASSIGN(right8, 0); TASSIGN(acc, 0);
  TASSIGN(acc32, 0x10000);
  TLOAD(mat, a); TLOAD(matb, b);
  switch (args[1]) {  // operands of the case's type: the places are shared
    case 1: TLOAD(mat16, a16); TMOV(left16, mat16); TLOAD(mat16, b16); TMOV(right16, mat16); break;
    case 2: TLOAD(matbf, abf); TMOV(leftbf, matbf); TLOAD(matbf, bbf); TMOV(rightbf, matbf); break;
    case 3: TLOAD(mat8, a8); TMOV(left8, mat8); TLOAD(mat8, b8); TMOV(right8, mat8); break;
    default: TMOV(left, mat); TMOV(right, matb); TMATMUL(acc, left, right); break;
  }
"""
_TYPES = {"16": "half", "bf": "bfloat16_t", "8": "int8_t"}


def kernel_source(cases: tuple[Case, ...], tiles: str) -> str:
    """One kernel with a loop for each case."""
    lines = [_PROLOGUE.format(side=SIDE)]
    offset = 0
    for name, part in PARTS.items():
        element = _TYPES.get(name[1:], "float")
        lines.append(f"  Memory<{element}> {name}(reinterpret_cast<{element}*>(memory + {offset}));\n")
        if name in ("a", "out"):
            other = ("Columns at", "float") if name == "a" else ("Memory<half> out16", "half")
            lines.append(f"  {other[0]}(reinterpret_cast<{other[1]}*>(memory + {offset}));\n")
        offset += part.nbytes
    lines += [tiles, "  const int64_t repeats = args[2];\n  switch (args[1]) {\n"]
    for index, case in enumerate(cases):
        lines.append(f"    case {index}: for (int64_t i = 0; i < repeats; ++i) {case.statement}; break;\n")
    return "".join([*lines, "    default: break;\n  }\n}\n"])


class Tiles:
    """A worker with one kernel for the vector cases and one for those of the matrix core."""

    def __init__(self, platform: str, sources: Sequence[str] = ()):
        """`sources`: the kernels, in place of those for the cases of this file."""
        compiler = KernelCompiler(platform)
        OUTPUT.mkdir(parents=True, exist_ok=True)
        kernels = []
        sources = sources or (kernel_source(VECTOR, _VECTOR_TILES), kernel_source(CUBE, _CUBE_TILES))
        for index, (text, core) in enumerate(zip(sources, ("aiv", "aic"))):
            source = OUTPUT / f"tile_{core}.cpp"
            source.write_text(text, encoding="utf-8")
            binary = compiler.compile_incore(source, core)
            kernels.append((index, CoreCallable.build(signature=[D.INOUT, D.SCALAR, D.SCALAR], binary=binary)))
        program = ChipCallable.build(
            signature=[D.INOUT, D.SCALAR, D.SCALAR, D.SCALAR],
            func_name="one_tile_case",
            binary=compiler.compile_orchestration(RUNTIME, KERNELS / "tile_orch.cpp"),
            children=kernels,
        )
        self._worker = Worker(level=2, platform=platform, runtime=RUNTIME)
        self._worker.init()
        self._program = self._worker.register(program)
        self._memory = np.concatenate([part.reshape(-1).view(np.uint8) for part in PARTS.values()])

    def __enter__(self) -> Tiles:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._worker.close()

    def _run(self, cube: bool, index: int, repeats: int) -> float:
        args = TaskArgs()
        args.add_tensor(self._worker.make_tensor_arg(self._memory), TensorArgType.INOUT)
        for scalar in (int(cube), index, repeats):
            args.add_scalar(scalar)
        start = time.process_time()
        self._worker.run(self._program, args)
        return time.process_time() - start

    def rate(self, cube: bool, index: int, case: Case, repeats: int, count: int = 20) -> tuple[float, float | None]:
        """(`case.unit` of the instruction, of NumPy); in turn, so that a busy spell spoils neither. Best of 7.

        What a run takes beside the instructions is that of a run with one; each is the best, not their difference: a
        busy spell during the shorter run would count as speed. `count` is how many instructions a run has at least.
        """
        while min(self._run(cube, index, count) for _ in range(3)) < 0.004:
            count *= 2
        ours, short, theirs = [], [], []
        for _ in range(repeats):
            ours.append(self._run(cube, index, count + 1))
            short.append(self._run(cube, index, 1))
            if case.numpy is not None:
                start = time.process_time()
                for _ in range(count):
                    case.numpy()
                theirs.append((time.process_time() - start) / count)
        seconds = (min(ours) - min(short)) / count
        return case.amount / seconds / 1e9, case.amount / min(theirs) / 1e9 if theirs else None


def compile_seconds(platform: str) -> dict[str, float]:
    """Cold compilation of each kernel in COMPILED; best of 3."""
    values = {}
    for name, (source, core) in COMPILED.items():
        times = []
        for _ in range(3):
            with tempfile.TemporaryDirectory(prefix="simpler-bench-") as empty:
                compiler = KernelCompiler(platform, cache=CompileCache(Path(empty)))
                start = time.perf_counter()
                compiler.compile_incore(source, core)
                times.append(time.perf_counter() - start)
        values[name] = min(times)
    return values


def measure(platform: str, repeats: int) -> tuple[dict[str, float], list[tuple[str, float, float | None, str]]]:
    """(values by name, a line per case: name, ours, NumPy's, unit)."""
    values, lines = compile_seconds(platform), []
    with Tiles(platform) as tiles:
        for cube, cases in ((True, CUBE), (False, VECTOR)):
            for index, case in enumerate(cases):
                ours, theirs = tiles.rate(cube, index, case, repeats)
                lines.append((case.name, ours, theirs, case.unit))
                suffix = "gflops" if case.unit == "GFLOP/s" else "gbs"
                values[f"tile_{case.name}_{suffix}"] = ours
                if theirs is not None:
                    values[f"numpy_{case.name}_{suffix}"] = theirs
                    name = f"{case.name}_vs_blas" if case.name.startswith("gemm") else f"{case.name}_vs_numpy"
                    values[name.replace("_fp32_vs_numpy", "_vs_numpy")] = ours / theirs
    return values, lines


def budget_rows(values: dict[str, float]) -> list[dict[str, Any]]:
    """Rows as tests/bench/run.py writes them."""
    rows = []
    for name in (*AT_MOST, *AT_LEAST):
        at_least = name in AT_LEAST
        budget = AT_LEAST[name] if at_least else AT_MOST[name]
        met = values[name] >= budget if at_least else values[name] <= budget
        meaning = "NumPy's time to ours, 128 x 128, one thread" if at_least else "one kernel, cold; best of 3"
        rows.append({"name": name, "unit": "x" if at_least else "s", "meaning": meaning, "budget": budget,
                     "at_least": at_least, "value": values[name], "verdict": "ok" if met else "MISSED"})  # fmt: skip
    return rows


def merge(values: dict[str, float], rows: list[dict[str, Any]], file: Path) -> None:
    """Puts the values into the summary that tests/bench/run.py wrote, in place of older ones of the same names."""
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        summary = {}
    names = {row["name"] for row in rows}
    kept = [row for row in summary.get("rows", []) if row["name"] not in names]
    summary.update(values)
    summary["rows"] = kept + rows
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measures the tile library beside NumPy.")
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3sim", "a5sim"])
    parser.add_argument("--repeats", type=int, default=7, help="runs of which the best counts (default 7)")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    values, lines = measure(options.platform, options.repeats)
    rows = budget_rows(values)
    print(f"{'tile instruction':24}{'here':>10}{'NumPy':>10}  unit")
    for name, ours, theirs, unit in lines:
        print(f"{name:24}{ours:10.1f}{'-' if theirs is None else format(theirs, '.1f'):>10}  {unit}")
    print()
    for row in rows:
        sign = ">=" if row["at_least"] else "<="
        print(f"{row['name']:24}{row['value']:10.3f} {row['unit']:2} {sign} {row['budget']:<5g} {row['verdict']}")
    merge(values, rows, OUTPUT / "summary.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
