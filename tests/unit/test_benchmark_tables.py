"""The tables of `make bench`: ratios to the best peer, and a mark wherever a peer is ahead."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _loaded() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "model_tables.py"
    spec = importlib.util.spec_from_file_location("model_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLES = _loaded()


def test_a_figure_behind_its_peer_is_bold() -> None:
    assert TABLES.beside(50.0, 100.0, "50") == "50 (0.50)"
    assert TABLES.beside(100.0, 100.0, "100") == "100 (1.00)"
    assert TABLES.beside(150.0, 100.0, "150") == "**150 (1.50)**"
    assert TABLES.beside(150.0, None, "150") == "150"


def test_rows_by_type_and_machine() -> None:
    boards = {
        "mps3-an547": TABLES.BoardRun(
            {"gcc": 1_800_000, "clang": 1_200_000}, {"gcc": 9000, "clang": 8000}, 700
        ),
        "mps2-an386": TABLES.BoardRun(
            {"gcc": 5_000_000, "clang": 6_000_000}, {"gcc": 9100, "clang": 8100}, 800
        ),
    }
    times, peers = {"host": 30.0, "x86-64-v3": 20.0}, {"LiteRT ref": 900.0, "XNNPACK": 25.0}
    rows = [
        TABLES.Row("kws", False, times, peers, boards, 0.5),
        TABLES.Row("own f32", True, {}, {}, boards, 0.5),
    ]
    text = TABLES.tables(rows)
    assert "| kws | 900.0 | 25.0 | **30.0 (1.20)** | 20.0 (0.80) | 0.50 |" in text
    assert (
        "| kws | 1,730,599 | **1,800,000 (1.04)** | 1,200,000 (0.69) | 7,845,352 | 5,000,000 (0.64) | 6,000,000 (0.76) "
        "| 700 | 9,000 / 8,000 |"
    ) in text
    assert "| own f32 | 1,800,000 | 1,200,000 | 5,000,000 | 6,000,000 | 700 | 9,000 / 8,000 |" in text
    for table in text.split("\n\n"):
        assert len({line.count("|") for line in table.splitlines()}) == 1  # as many cells in each row
    assert text.count("float32 on this machine") == 0
