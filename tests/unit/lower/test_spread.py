"""Geometry of transposed convolutions, beside its definition: element i reaches `i * stride + pad` and what follows."""

from __future__ import annotations

from itertools import product

import pytest

from bytewright.lower.kernels.spread import SpreadAxis


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_runs_have_every_position_once_with_its_taps(stride: int) -> None:
    """Windows smaller than the stride, results that begin or end within a cell or lack whole ones."""
    for size, kernel, pad, out in product((1, 3, 4), range(1, 7), range(-4, 5), (1, 2, 3, 5, 8, 13)):
        axis = SpreadAxis(size, out, kernel, stride, pad)
        found: dict[int, list[tuple[int, int]]] = {}
        for run in axis.runs:
            window, first = axis.window(run), axis.first_window(run)
            assert window.pad_before >= 0
            assert window.out == run.first_cell - first + run.num_cells
            for phase, cell in product(
                range(run.first, run.first + run.num), range(run.first_cell - first, window.out)
            ):
                position = (cell + first) * stride + phase - axis.shift
                assert position not in found
                taps = enumerate(axis.taps(phase, run.num_taps), cell - window.pad_before)
                found[position] = [(source, tap) for source, tap in taps if 0 <= source < size]
        wanted = {
            position: [
                (source, tap)
                for source in range(size)
                if 0 <= (tap := position - source * stride - pad) < kernel
            ]
            for position in range(out)
        }
        assert found == wanted, axis
