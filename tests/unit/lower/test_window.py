"""Window geometry against a window that is walked tap by tap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bytewright.ir.expr import TRUE, Const, Expr, Var, const
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.types import DType
from bytewright.lower.kernels.context import axis_names, blocks
from bytewright.lower.kernels.window import Axis, window_of


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """Any axis on which the window fits at least once."""
    kernel, dilation, stride = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    size = draw(st.integers(1, 12))
    before, after = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    reach = (kernel - 1) * dilation + 1
    after = max(after, reach - size - before)
    out = (size + before + after - reach) // stride + 1
    return Axis(size, out, kernel, stride, dilation, before)


def number(expression: Expr) -> int:
    assert isinstance(expression, Const)
    return int(expression.value)


@given(axes())
def test_taps_interior_and_inside(axis: Axis) -> None:
    inside_all: list[int] = []
    for position in range(axis.out):
        indices = [position * axis.stride + k * axis.dilation - axis.pad_before for k in range(axis.kernel)]
        for offset, index in enumerate(indices):
            assert number(axis.tap(const(position), offset)) == index
            is_inside = 0 <= index < axis.size
            assert bool(number(axis.contains(const(index), offset))) == is_inside
            assert bool(number(axis.contains(const(index), Var("k", DType.I32)))) == is_inside
        if all(0 <= index < axis.size for index in indices):
            inside_all.append(position)
    first, last = axis.interior
    assert list(range(first, last)) == inside_all
    assert axis.is_all_interior == (len(inside_all) == axis.out)


@given(axes())
def test_a_condition_that_always_holds_is_the_constant(axis: Axis) -> None:
    condition = axis.contains(Var("index", DType.I32), Var("k", DType.I32))
    assert (condition == TRUE) == axis.is_all_interior


@given(axes(), st.integers(0, 5))
def test_a_tap_with_variables_is_the_same_tap(axis: Axis, offset: int) -> None:
    y, k = Var("y", DType.I32), Var("k", DType.I32)
    general = axis.tap(y, k)
    for position in range(axis.out):
        bound = substitute_expression(general, {y: const(position), k: const(offset)})
        assert bound == axis.tap(const(position), offset)


def test_padding_is_top_bottom_left_right() -> None:
    window = window_of((1, 5, 6, 4), (1, 3, 2, 4), (3, 2), (2, 3), (1, 2), (1, 9, 2, 9))
    assert window.rows == Axis(5, 3, 3, 2, 1, 1)
    assert window.columns == Axis(6, 2, 2, 3, 2, 2)
    assert window.num_taps == 6


@given(st.integers(1, 200), st.sampled_from([1, 4, 8, 16, 32]))
def test_blocks_cover_every_item_once(count: int, block: int) -> None:
    """All but the tail are full blocks; a tail falls into powers of two."""
    covered: list[int] = []
    for first, repeats, size in blocks(count, block):
        assert size & (size - 1) == 0
        assert size <= block
        covered += range(first, first + repeats * size)
    assert covered == list(range(count))


def test_names_of_axes() -> None:
    assert [axis_names(rank) for rank in range(6)] == ["", "c", "xc", "yxc", "nyxc", "gnyxc"]
