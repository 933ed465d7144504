"""What happens to kernels whose tile instructions have wrong operands, at run time and at compile time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import ChipCallable, ChipStorageTaskArgs, CoreCallable
from simpler.worker import Worker
from simpler_setup.errors import CompileError
from simpler_setup.kernel_compiler import KernelCompiler
from simpler_setup.scene import options

SOURCES = Path(__file__).parent / "tile"
PLATFORM, RUNTIME = "a2a3sim", "tensormap_and_ringbuffer"

#: scalar of slips.cpp -> what the run's error says: instruction, tile, numbers
SLIPS = {
    1: "tile: 17 valid rows, but the tile holds 0 to 16",
    2: r"TLOAD: 16 x 32 elements of a Vec tile of 16 x 32, but the global tensor has 8 rows of 32 \(its shape is "
    r"1, 1, 1, 8, 32, layout ND\)",
    3: "TSTORE: 16 x 32 elements of a Vec tile of 16 x 32, but the global tensor has 16 rows of 16",
    4: "TASSIGN: a Vec tile of 16 x 32 elements of 4 bytes at 0x7ff00 needs 2048 bytes; its memory ends at 0x80000",
    5: "TADD: a Vec tile of 16 x 32 has no address; call TASSIGN before using it",
    6: "TADD: 16 x 32 elements needed of a Vec tile of 8 x 32",
    7: r"TEXTRACT: 8 x 32 elements from \(9, 0\) reach beyond a tile of 16 x 32",
    8: "TLOAD: the global tensor has a null address",
}

#: scalar of unwritten.cpp -> the instruction, the tile and the element that the run's error names
UNWRITTEN = {
    101: "TADD: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
    102: "TSTORE: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
    103: "TADDS: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
    104: "TROWMAX: element (0, 24) of a Vec tile of 16 x 32 at 0x1000",
    105: "TROWEXPANDMUL: element (0, 0) of a Vec tile of 16 x 8 at 0x3000",
    106: "TCOLEXPANDADD: element (0, 0) of a Vec tile of 1 x 32 at 0x4000",
    107: "TSEL: the mask bits of row 0 from column 0 on in a Vec tile of 16 x 32 at 0x5000",
    108: "TSEL: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
    109: "TGATHER: element (0, 0) of a Vec tile of 16 x 32 at 0x6000",
    110: "TGATHER: element (1, 8) of a Vec tile of 16 x 32 at 0x1000",
    111: "TCVT: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
    112: "TMATMUL: element (0, 0) of a Left tile of 16 x 32 at 0x0",
    113: "TMATMUL_ACC: element (0, 0) of a Acc tile of 16 x 32 at 0x0",
    114: "TMOV: element (0, 0) of a Mat tile of 16 x 32 at 0x0",
    115: "GetValue: element 100 of a Vec tile of 16 x 32 at 0x1000",
    116: "GetValue: element 8 of a Vec tile of 16 x 32 at 0x1000",
    117: "TSORT32: element (0, 0) of a Vec tile of 16 x 32 at 0x6000",
    118: "TTRANS: element (0, 0) of a Vec tile of 16 x 32 at 0x1000",
}


class Bench:
    """A worker with a program of one kernel."""

    def __init__(self, source: str = "slips.cpp"):
        compiler = KernelCompiler(PLATFORM)
        kernel = CoreCallable.build(signature=[D.INOUT], binary=compiler.compile_incore(SOURCES / source))
        program = ChipCallable.build(
            signature=[D.INOUT, D.SCALAR],
            func_name="one_task",
            binary=compiler.compile_orchestration(RUNTIME, SOURCES / "one_task.cpp"),
            children=[(0, kernel)],
        )
        self.worker = Worker(level=2, platform=PLATFORM, runtime=RUNTIME, sim_threads=1)
        self.worker.init()
        self._program = self.worker.register(program)

    @staticmethod
    def start() -> np.ndarray:
        """What a run starts with."""
        return (np.arange(512, dtype=np.float32) / 8).reshape(16, 32)

    def run(self, slip: int) -> np.ndarray:
        array = self.start()
        args = ChipStorageTaskArgs()
        args.add_tensor(array)
        args.add_scalar(slip)
        self.worker.run(self._program, args)
        return array


@pytest.fixture
def bench(request, monkeypatch):
    checks, *source = request.param if isinstance(request.param, tuple) else (request.param,)
    monkeypatch.setattr(KernelCompiler, "_tile_checks", checks)
    made = Bench(*source)
    yield made
    made.worker.close()


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["checks"])
def test_a_slip_stops_the_kernel_with_instruction_tile_and_numbers(bench):
    for slip, text in SLIPS.items():
        with pytest.raises(RuntimeError, match=text):
            bench.run(slip)
    assert np.array_equal(bench.run(0), bench.start() + 1), "tiles at one place alias, which is legal"


@pytest.mark.parametrize("bench", [False], indirect=True, ids=["no checks"])
def test_without_checks_operands_are_taken_as_they_are(bench):
    assert np.array_equal(bench.run(2)[8:], bench.start()[8:])
    bench.run(1)


@pytest.mark.parametrize("bench", [(True, "unwritten.cpp")], indirect=True, ids=["checks"])
def test_elements_that_nothing_has_written_are_not_read(bench):
    for fault, text in UNWRITTEN.items():
        bench.run(0)  # leaves values everywhere: they are those of an earlier block
        with pytest.raises(RuntimeError) as stopped:
            bench.run(fault)
        assert f"{text} " in str(stopped.value)
        assert "nothing has written" in str(stopped.value)
    for legal in range(1, 9):
        assert np.array_equal(bench.run(legal), bench.start() + 2), legal


@pytest.mark.parametrize("bench", [(False, "unwritten.cpp")], indirect=True, ids=["no checks"])
def test_without_checks_tile_memory_is_read_as_it_is(bench):
    for fault in UNWRITTEN:
        bench.run(fault)


def test_the_option_is_part_of_what_kernels_are_cached_by(monkeypatch):
    compiler = KernelCompiler(PLATFORM)
    monkeypatch.setattr(KernelCompiler, "_tile_checks", True)
    with_checks = compiler.incore_compile_cache_token("aiv")
    monkeypatch.setattr(KernelCompiler, "_tile_checks", False)
    assert compiler.incore_compile_cache_token("aiv") != with_checks
    assert options.set_tile_checks(PLATFORM, off=True) == [] and not KernelCompiler._tile_checks
    assert "no effect on a2a3" in options.set_tile_checks("a2a3", off=True)[0]


_VEC, _MAT = "Tile<TileType::Vec, float, 16, 16>", "Tile<TileType::Mat, float, 16, 16>"
_NZ = "Tile<TileType::Mat, float, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor>"
#: What a board's compiler refuses -> a sentence of the error.
REFUSED = {
    f"{_MAT} a; TADD(a, a, a);": "TADD takes tiles in vector memory (TileType::Vec); TMOV brings others there",
    f"{_MAT} a; {_VEC} b; TROWSUM(b, a, b);": "TROWSUM takes tiles in vector memory",
    f"{_VEC} a; Tile<TileType::Vec, half, 16, 16> b; TADD(a, a, b);": "TADD: all operands have one element type",
    "TileLeft<float, 16, 16> a; TLOAD(a, g);": "TLOAD fills tiles in vector or matrix memory",
    f"TileLeft<float, 16, 16> a; {_VEC} b; TMOV(a, b);": "come out of matrix memory",
    f"TileAcc<float, 16, 16> a; {_NZ} b; TMOV(a, b);": "nothing is moved into an accumulator",
    f"TileAcc<float, 16, 16> a; TileLeft<float, 16, 16> b; {_NZ} c; TMATMUL(a, b, c);": "a Left and a Right tile",
    "TileAcc<float, 16, 32> a; TileLeft<float, 16, 16> b; TileRight<float, 16, 16> c; TMATMUL(a, b, c);": (
        "the operands' rows and columns match"
    ),
    "TileAcc<half, 16, 16> a; TileLeft<half, 16, 16> b; TileRight<half, 16, 16> c; TMATMUL(a, b, c);": (
        "products are of half, bfloat16_t or float into float"
    ),
    "Tile<TileType::Acc, float, 16, 16> a; TileLeft<float, 16, 16> b; TileRight<float, 16, 16> c; TMATMUL(a, b, c);": (
        "use TileLeft"
    ),
    "Tile<TileType::Vec, float, 16, 7> a;": "is a multiple of 32 bytes",
    "Tile<TileType::Vec, float, 16, 16, BLayout::RowMajor, 17, 16> a;": "the valid region lies inside the tile",
    f"{_VEC} a; TNOT(a, a);": "bitwise instructions take integer tiles",
    f"{_VEC} a; TSHLS(a, a, 3);": "bitwise instructions take integer tiles",
    f"{_VEC} a; TASSIGN(a, 1.5f);": "a tile's place is a number of bytes",
    "SYNCALL<SyncAllMode::Hard, SyncCoreType::Mix>(args);": "only SyncAllMode::Soft, with a workspace",
    f"{_VEC} a; TQUANT<QuantType::MXFP8>(a, a, a);": "TQUANT to block-scaled floats (QuantType::MXFP8) is not",
    "TileAcc<float, 16, 32> a; TileLeft<half, 16, 64> b; TileRight<half, 64, 32> c; TileLeftScale<float8_e8m0_t, 16, 2>"
    " d; TileRightScale<float8_e8m0_t, 2, 32> e; TMATMUL_MX(a, b, d, c, e);": (
        "block-scaled products are of float8_e4m3_t or float8_e5m2_t into float"
    ),
}


@pytest.mark.parametrize("statements", REFUSED)
def test_what_a_board_refuses_does_not_compile_and_says_why(statements, tmp_path):
    source = tmp_path / "kernel.cpp"
    source.write_text(
        "#include <pto/pto-inst.hpp>\nusing namespace pto;\n"
        'extern "C" void kernel_entry(int64_t* args) {\n'
        "  GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<256, 256, 256, 16, 1>> g((float*)args);\n"
        f"  {statements}\n}}\n"
    )
    with pytest.raises(CompileError) as refused:
        KernelCompiler(PLATFORM).compile_incore(source)
    first = next(line for line in str(refused.value).splitlines() if "error:" in line)
    assert REFUSED[statements] in first, "the sentence comes before what else the compiler finds"


_EXPONENTIALS = """
import sys, numpy as np
sys.path.insert(0, {here!r})
from test_tile_checks import Bench
bench = Bench("exponentials.cpp")
assert np.allclose(bench.run(0), np.exp(bench.start()), rtol=1e-6, atol=0)
bench.worker.close()
"""


@pytest.mark.parametrize("name", ["portable", "auto", "no-such-set"])
def test_the_loops_of_tile_instructions_can_be_chosen(name):
    environment = {**os.environ, "SIMPLER_SIM_TILE": name}
    command = [sys.executable, "-c", _EXPONENTIALS.format(here=str(Path(__file__).parent))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ignored = re.search(
        "SIMPLER_SIM_TILE=no-such-set is ignored: this processor and build have auto.*, portable", done.stderr
    )
    assert (ignored is not None) == (name == "no-such-set")
