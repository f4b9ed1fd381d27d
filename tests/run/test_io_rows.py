"""Images that are handed over row by row: every model computes what LiteRT does, however the rows come.

Each piece of the image is an allocation of its own that is gone when it was pushed, so that the address sanitizer sees
a row that is read later; the first inference gets all rows at once, the second one by one, others in changing numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.target import load_target
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from support.row_models import Layer, chain
from support.spatial_networks import spatial_model
from support.tiers import TIMES, some

SANITIZED = ("-O0", *SANITIZERS)


def takes_rows(model: RandomModel, target: str, options: Options, folder: Path) -> bool:
    """Whether a compile takes it; if not, it must say that rows are the reason."""
    path = folder / "tried.tflite"
    path.write_bytes(model.content)
    codes: list[str] = []
    try:
        compile_model(path, load_target(target), options)
    except CompileError as error:
        codes = [diagnostic.code for diagnostic in error.diagnostics]
    assert codes in ([], ["BW210"]), model.description
    return not codes


CHAINS = [
    pytest.param((9, 5, 3), [Layer(3), Layer(3)], id="stride-1"),
    pytest.param((16, 4, 2), [Layer(3, stride=2), Layer(3, stride=2), Layer(3, stride=2)], id="rate-8"),
    pytest.param((13, 4, 2), [Layer(3, stride=2), Layer(2, stride=3), Layer(1)], id="strides-2-and-3"),
    pytest.param((11, 3, 1), [Layer(3, stride=2, padding="VALID"), Layer(3)], id="a-row-that-nobody-reads"),
    pytest.param((17, 3, 1), [Layer(1, stride=4), Layer(3)], id="rows-that-are-skipped"),
    pytest.param((3, 4, 2), [Layer(7), Layer(5)], id="windows-taller-than-the-image"),
    pytest.param((2, 4, 2), [Layer(5), Layer(5), Layer(5)], id="two-rows"),
    pytest.param((7, 1, 1), [Layer(5, 1, padding="VALID"), Layer(3, 1)], id="one-column"),
    pytest.param((12, 6, 3), [Layer(4, stride=4, padding="VALID"), Layer(3)], id="patches"),
]


@pytest.mark.run
@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.MAX], ids=str)
def test_chains(rows: Rows, tmp_path: Path) -> None:
    models = [chain(param.values[0], *param.values[1], seed=number) for number, param in enumerate(CHAINS)]
    models += [
        chain(param.values[0], *param.values[1], seed=9, tail=True)
        for param in CHAINS
        if param.id != "patches"
    ]
    options = Options(rows=rows)
    assert_equals_reference(models, tmp_path, flags=SANITIZED, every=3, io=Io.ROWS, options=options)


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "dtype", "target", "rows"),
    [
        pytest.param(50_000, "int8", "host", Rows.AUTO, id="auto"),
        pytest.param(60_000, "int8", "mps3-an547", Rows.MAX, id="kernels-of-the-board"),
        pytest.param(70_000, "float32", "host", Rows.AUTO, id="float32"),
    ],
)
def test_random_networks(first: int, dtype: str, target: str, rows: Rows, tmp_path: Path) -> None:
    options = Options(io=Io.ROWS, rows=rows)
    models = [spatial_model(seed, dtype) for seed in some(range(first, first + 15 * TIMES), 2)]
    taken = [model for model in models if takes_rows(model, target, options, tmp_path)]
    assert len(taken) > 0.5 * len(models)
    for begin in range(0, len(taken), 20):
        part, folder = taken[begin : begin + 20], tmp_path / str(begin)
        assert_equals_reference(
            part, folder, target=target, flags=SANITIZED, every=3, io=Io.ROWS, options=Options(rows=rows)
        )
