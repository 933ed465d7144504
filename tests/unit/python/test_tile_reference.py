"""docs/tile.md lists the instructions that the tile library has, no more and no fewer."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from simpler_setup.toolchain import host_compiler

ROOT = Path(__file__).resolve().parents[3]
INCLUDES = ("pto/pto-inst.hpp", "pto/comm/pto_comm_inst.hpp")


@pytest.fixture(scope="module")
def reference():
    loader = importlib.machinery.SourceFileLoader("tile_reference", str(ROOT / "tools" / "tile_reference"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tile_reference", loader))
    loader.exec_module(module)
    return module


def test_the_page_is_current(reference, capsys):
    assert reference.main(["--check"]) == 0, capsys.readouterr().out


def test_the_table_has_the_functions_of_the_headers(reference):
    source = "".join(f"#include <{name}>\n" for name in INCLUDES)
    command = [*host_compiler().command, "-E", "-P", "-x", "c++", "-std=c++17", "-D__CPU_SIM", f"-I{ROOT / 'include'}"]
    done = subprocess.run([*command, "-"], input=source, capture_output=True, text=True, check=True)
    pattern = r"\b(?:RecordEvent|AsyncEvent|void|bool)\s+((?:[TM]|SYNC)[A-Z0-9_]{2,})\s*\("
    declared = set(re.findall(pattern, done.stdout))
    listed = reference.names()
    assert len(listed) == len(set(listed))
    assert declared - set(listed) == set(), "add them to include/pto/instructions.inc"
    assert set(listed) - declared == set(), "no header declares them"


def test_a_page_that_differs_is_found_and_rewritten(reference, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "tile.md"
    copy.write_text(reference.PAGE.read_text(encoding="utf-8").replace("| `TLOAD` |", "| `TL0AD` |"), encoding="utf-8")
    monkeypatch.setattr(reference, "PAGE", copy)
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "TABLE", tmp_path / "instructions.inc")
    reference.TABLE.write_text((ROOT / "include/pto/instructions.inc").read_text(encoding="utf-8"), encoding="utf-8")
    assert reference.main(["--check"]) == 1
    assert "run tools/tile_reference" in capsys.readouterr().out
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
