#!/usr/bin/env python3
"""Measures tile instructions for each element type and layout, and what their checks cost.

Prints a table of rates in GB/s of operands read and written, for 128 x 128 tiles that stay in the core's memory:
row-major, column-major and Nz. A layout that is more than 5 times slower than another is listed. `--write` puts the
table into docs/tile.md. `--checks` measures small tiles with and without the checks of operands instead.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from simpler_setup.kernel_compiler import KernelCompiler

from tile import ROOT, SIDE, Case, Tiles

PAGE = ROOT / "docs" / "tile.md"
BEGIN, END = "<!-- rates: made by tests/bench/tile_rates.py --write -->", "<!-- end of rates -->"
SLOWEST = 5.0  # how much slower a layout may be than the fastest

TYPES = {"float": 4, "half": 2, "bfloat16_t": 2, "int32_t": 4, "int8_t": 1}
FLOATS = ("float", "half", "bfloat16_t")
LAYOUTS = {"r": "row-major", "c": "column-major", "n": "Nz"}


class Instruction(NamedTuple):
    """A statement with `@` for the layout, and how many tiles' worth of elements it touches."""

    statement: str
    tiles: float
    types: tuple[str, ...] = tuple(TYPES)


INSTRUCTIONS = (
    Instruction("TADD(z@, x@, y@)", 3),
    Instruction("TMUL(z@, x@, y@)", 3),
    Instruction("TDIV(z@, x@, y@)", 3),
    Instruction("TMAXS(z@, x@, one)", 2),
    Instruction("TEXP(z@, x@)", 2, FLOATS),
    Instruction("TLOG(z@, x@)", 2, FLOATS),
    Instruction("TSQRT(z@, x@)", 2, FLOATS),
    Instruction("TROWEXPANDMUL(z@, x@, column)", 2),
    Instruction("TCOLEXPANDADD(z@, x@, line)", 2),
    Instruction("TEXPANDS(z@, one)", 1),
    Instruction("TROWSUM(column, x@, z@)", 1),
    Instruction("TROWMAX(column, x@, z@)", 1),
    Instruction("TCOLSUM(line, x@)", 1),
    Instruction("TCMP(mask, x@, y@, CmpMode::GT)", 2),
    Instruction("TSEL(z@, mask, x@, y@)", 3),
    Instruction("TTRANS(z@, x@)", 2),
    Instruction("TMOV(z@, xr)", 2),
    Instruction("TLOAD(x@, memory@)", 2),
    Instruction("TSTORE(memory@, x@)", 2),
)

_KERNEL = """// Made by tests/bench/tile_rates.py.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;
using T = {element};

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {{
  using Memory = GlobalTensor<T, Shape<1, 1, 1, {side}, {side}>, pto::Stride<1, 1, 1, {side}, 1>>;
  using Columns = GlobalTensor<T, Shape<1, 1, 1, {side}, {side}>, pto::Stride<1, 1, 1, 1, {side}>, pto::Layout::DN>;
  Memory memoryr(reinterpret_cast<ChipTensor*>(args[0])->data_as<T>()), memoryn(memoryr.data());
  Columns memoryc(memoryr.data());
  Tile<TileType::Vec, T, {side}, {side}> xr, yr, zr;
  Tile<TileType::Vec, T, {side}, {side}, BLayout::ColMajor> xc, yc, zc;
  Tile<TileType::Vec, T, {side}, {side}, BLayout::ColMajor, {side}, {side}, SLayout::RowMajor> xn, yn, zn;
  Tile<TileType::Vec, T, {side}, 1, BLayout::ColMajor> column;
  Tile<TileType::Vec, T, 1, {side}> line;
  Tile<TileType::Vec, uint8_t, {side}, 32> mask;
  TASSIGN(xr, 0x0); TASSIGN(xc, 0x0); TASSIGN(xn, 0x0);
  TASSIGN(yr, 0x10000); TASSIGN(yc, 0x10000); TASSIGN(yn, 0x10000);
  TASSIGN(zr, 0x20000); TASSIGN(zc, 0x20000); TASSIGN(zn, 0x20000);
  TASSIGN(column, 0x30000); TASSIGN(line, 0x31000); TASSIGN(mask, 0x32000);
  const T one = static_cast<T>(1);
  TEXPANDS(xr, static_cast<T>(3)); TEXPANDS(yr, static_cast<T>(2)); TEXPANDS(zr, one);
  TEXPANDS(column, one); TEXPANDS(line, one);
  TCMP(mask, xr, yr, CmpMode::GT);
  const int64_t repeats = args[2];
  switch (args[1]) {{
{cases}    default: break;
  }}
}}
"""

#: Small tiles with and without checks: a statement of the kernel below, and its size.
CHECKED = (
    ("TADD, 8 x 8", "TADD(a8, b8, c8)"),
    ("TADD, 16 x 64", "TADD(a64, b64, c64)"),
    ("TADD, 64 x 128", "TADD(a128, b128, c128)"),
    ("TLOAD, 8 x 8", "TLOAD(a8, memory)"),
    ("TROWSUM, 64 x 128", "TROWSUM(column, b128, c128)"),
    ("TEXP, 16 x 64", "TEXP(a64, b64)"),
    ("TMATMUL, 64 x 64 x 64", "TMATMUL(product, left, right)"),
    ("TASSIGN", "TASSIGN(a8, 0)"),
)
_CHECKED = """// Made by tests/bench/tile_rates.py.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {{
  GlobalTensor<float, Shape<1, 1, 1, 8, 8>, pto::Stride<1, 1, 1, 8, 1>> memory(
      reinterpret_cast<ChipTensor*>(args[0])->data_as<float>());
  Tile<TileType::Vec, float, 8, 8> a8, b8, c8;
  Tile<TileType::Vec, float, 16, 64> a64, b64, c64;
  Tile<TileType::Vec, float, 64, 128> a128, b128, c128;
  Tile<TileType::Vec, float, 64, 1, BLayout::ColMajor> column;
  TASSIGN(a8, 0x0); TASSIGN(b8, 0x8000); TASSIGN(c8, 0x10000);
  TASSIGN(a64, 0x0); TASSIGN(b64, 0x8000); TASSIGN(c64, 0x10000);
  TASSIGN(a128, 0x0); TASSIGN(b128, 0x8000); TASSIGN(c128, 0x10000); TASSIGN(column, 0x18000);
  Tile<TileType::Mat, float, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor> loaded;
  TileLeft<float, 64, 64> left;
  TileRight<float, 64, 64> right;
  TileAcc<float, 64, 64> product;
  TASSIGN(loaded, 0); TASSIGN(left, 0); TASSIGN(right, 0); TASSIGN(product, 0);
  TEXPANDS(loaded, 1.25f); TMOV(left, loaded); TMOV(right, loaded);
  TEXPANDS(a128, 1.5f); TEXPANDS(b128, 2.5f); TEXPANDS(c128, 3.5f);
  const int64_t repeats = args[2];
  switch (args[1]) {{
{cases}    default: break;
  }}
}}
"""


def _cases(statements: list[str]) -> str:
    return "".join(
        f"    case {index}: for (int64_t i = 0; i < repeats; ++i) {statement}; break;\n"
        for index, statement in enumerate(statements)
    )


def rates(platform: str, repeats: int) -> dict[tuple[str, str, str], float]:
    """GB/s by instruction, element type and layout."""
    found = {}
    for element, size in TYPES.items():
        wanted = [(each, layout) for each in INSTRUCTIONS if element in each.types for layout in LAYOUTS]
        statements = [each.statement.replace("@", layout) for each, layout in wanted]
        source = _KERNEL.format(element=element, side=SIDE, cases=_cases(statements))
        with Tiles(platform, [source]) as tiles:
            for index, (each, layout) in enumerate(wanted):
                case = Case("", "", None, each.tiles * SIDE * SIDE * size)
                found[each.statement, element, layout] = tiles.rate(False, index, case, repeats, count=100)[0]
    return found


def slow_layouts(found: dict[tuple[str, str, str], float]) -> list[str]:
    """A line for each layout in which an instruction is too much slower than in another."""
    lines = []
    for (statement, element, layout), rate in found.items():
        best = max(found[statement, element, other] for other in LAYOUTS)
        if best > SLOWEST * rate:
            lines.append(
                f"{statement} of {element}, {LAYOUTS[layout]}: {rate:.1f} GB/s, {best / rate:.1f} times slower"
            )
    return lines


def table(found: dict[tuple[str, str, str], float]) -> str:
    """The part of the page."""
    lines = ["| instruction | " + " | ".join(TYPES) + " |", "|---" * (len(TYPES) + 1) + "|"]
    for each in INSTRUCTIONS:
        cells = []
        for element in TYPES:
            values = [found.get((each.statement, element, layout)) for layout in LAYOUTS]
            cells.append(
                " / ".join("-" if value is None else f"{value:.3g}" for value in values) if any(values) else "-"
            )
        name = each.statement.split("(")[0]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def check_costs(platform: str, repeats: int) -> list[str]:
    """Nanoseconds of each instruction of CHECKED without and with checks."""
    source = _CHECKED.format(cases=_cases([statement for _, statement in CHECKED]))
    times: dict[bool, list[float]] = {}
    for checks in (False, True):
        KernelCompiler._tile_checks = checks
        with Tiles(platform, [source]) as tiles:
            case = Case("", "", None, 1.0)
            times[checks] = [
                1 / tiles.rate(False, index, case, repeats, count=5000)[0] for index in range(len(CHECKED))
            ]
    return [
        f"{name:24}{without:9.1f}{checked:9.1f} ns"
        for (name, _), without, checked in zip(CHECKED, times[False], times[True])
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measures tile instructions by element type and layout.")
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3sim", "a5sim"])
    parser.add_argument("--repeats", type=int, default=7, help="runs of which the best counts (default 7)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/tile.md")
    parser.add_argument("--checks", action="store_true", help="measure what the checks of operands cost instead")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    if options.checks:
        print(f"{'instruction':24}{'without':>9}{'checks':>9}")
        print("\n".join(check_costs(options.platform, options.repeats)))
        return 0
    found = rates(options.platform, options.repeats)
    text = table(found)
    print(text)
    for line in slow_layouts(found):
        print(line)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
