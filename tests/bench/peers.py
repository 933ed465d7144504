"""Other task runtimes on the same graphs, as small C++ programs that are compiled where their library is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

_SOURCES = Path(__file__).parent / "peers"


class Peer(NamedTuple):
    """A runtime, its source, and what its compile command needs."""

    name: str
    source: str
    flags: tuple[str, ...]
    package: str  # Debian's name of what to install


PEERS = (
    Peer("omp", "openmp.cpp", ("-fopenmp",), "libgomp1, which comes with g++"),
    Peer("tbb", "onetbb.cpp", ("-ltbb",), "libtbb-dev"),
)


def build(peer: Peer, folder: Path) -> Path:
    """The compiled program, kept in `folder`. FileNotFoundError with the reason where it cannot be compiled."""
    folder.mkdir(parents=True, exist_ok=True)
    source, program = _SOURCES / peer.source, folder / Path(peer.source).stem
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return program
    compiler = os.environ.get("CXX", "g++").split()
    command = [*compiler, "-O2", "-std=c++17", "-pthread", str(source), *peer.flags, "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "the compiler failed")
        raise FileNotFoundError(f"{reason}; it needs {peer.package}")
    return program


def measure(program: Path, count: int, threads: int) -> dict[str, float]:
    """Microseconds per task by graph; the better of two runs each."""
    command = [str(program), str(count), "2", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=600)
    rows = (line.split() for line in done.stdout.splitlines())
    return {graph: float(nanoseconds) / 1e3 for graph, _, nanoseconds in rows}
