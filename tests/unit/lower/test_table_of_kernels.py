"""The table of docs/kernels.md that says which template serves which operator and type on which set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.target.registry import load_target
from support.kernel_cells import CORE, SETS, TYPES, WORK, operators_of, templates_of, write_cells

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "kernels.md"
CELL = re.compile(r"(?:nan|[\d.]+(?: ps)?)(?: (?P<templates>\S.*))?")


def table(name: str = "kernels") -> dict[tuple[str, str], list[str]]:
    """The cells of each operator and type of a table."""
    _, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(f"<!-- {name}: begin -->\n")
    text, _, _ = rest.partition(f"\n<!-- {name}: end -->")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
    return {(name, kind): cells for name, kind, *cells in rows}


def test_every_operator_and_type_has_a_measured_cell() -> None:
    found = table()
    assert set(found) == {(name, kind) for name in WORK for kind in TYPES if name in operators_of(kind)}
    for cells in found.values():
        assert len(cells) == len(SETS)
        assert all(CELL.fullmatch(cell) for cell in cells), cells


@pytest.mark.parametrize(("number", "target"), list(enumerate(SETS)))
def test_the_template_of_each_cell(number: int, target: str, tmp_path: Path) -> None:
    for kind in TYPES:
        names = operators_of(kind)
        plan = compile_model(write_cells(kind, tmp_path, names), load_target(target)).plan
        stated: dict[str, str] = {}
        for name in names:
            cell = CELL.fullmatch(table()[name, kind][number])
            assert cell is not None
            stated[name] = cell["templates"] or ""
        assert templates_of(plan, names) == stated, kind


def test_the_table_of_a_core_beside_a_peer(tmp_path: Path) -> None:
    """Each template, and no figure that is marked as behind without being so, or the other way round."""
    found = table("core kernels")
    assert set(found) == {(name, kind) for name in WORK for kind in TYPES if name in operators_of(kind)}
    for kind in TYPES:
        names = operators_of(kind)
        plan = compile_model(write_cells(kind, tmp_path, names), load_target(CORE)).plan
        assert templates_of(plan, names) == {name: found[name, kind][2] for name in names}, kind
    for (name, kind), (own, peer, _) in found.items():
        cost, *ratio = re.findall(r"[\d.]+", own)
        assert bool(ratio) == (peer != "-"), (name, kind)
        if ratio:  # figures of two places may be the same
            behind, ahead = float(cost) >= float(peer), float(cost) <= float(peer)
            assert behind if own.startswith("**") else ahead, (name, kind)
