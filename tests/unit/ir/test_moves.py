"""What kernels copy, read off their loops: by hand, and for random blocks against what the evaluator does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bytewright.ir.analyses.moves import Move, Writes, writes_of
from support.evaluation import run_primfunc
from support.parsing import parse_primfunc


def kernel(body: str, given: str = "4x6", made: str = "10x6", dtype: str = "i8", more: str = "") -> str:
    return (
        f"kernel k(input : buffer<{given}x{dtype}> r, {more} output : buffer<{made}xi8> w, "
        f"row_begin : i32, row_end : i32) on cpu {{ {body} }}"
    )


def found(text: str, **scalars: int) -> Writes | None:
    return writes_of(parse_primfunc(text), {"row_begin": 0, "row_end": 10} | scalars)


ROWS = "for y : i32 in 0 .. 4 { for x : i32 in 0 .. 6 {"
COPIES = {
    "all of it": (f"{ROWS} output[y, x] = input[y, x] }} }}", Move("input", 0, 0, 24)),
    "further down": (f"{ROWS} output[y + 3, x] = input[y, x] }} }}", Move("input", 0, 18, 24)),
    "by way of a wider integer": (
        f"{ROWS} output[y, x] = i8(i32(input[y, x])) }} }}",
        Move("input", 0, 0, 24),
    ),
    "some rows": (
        "for y : i32 in 1 .. 3 { for x : i32 in 0 .. 6 { output[y + 1, x] = input[y, x] } }",
        Move("input", 6, 12, 12),
    ),
    "a block within a row": (
        "for x : i32 in 2 .. 5 { output[7, x] = input[1, x - 1] }",
        Move("input", 7, 44, 3),
    ),
    "one element": ("output[9, 5] = input[3, 5]", Move("input", 23, 59, 1)),
    "rows that the caller asks for": (
        "for y : i32 in max(row_begin, 2) .. min(row_end, 6) {"
        " for x : i32 in 0 .. 6 { output[y, x] = input[y - 2, x] } }",
        Move("input", 0, 12, 24),
    ),
    "under a name": (
        f"{ROWS} let z : i32 = y * 6 + x output[z / 6 * 0 + y, x] = input[y, x] }} }}",
        None,
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_blocks_that_are_copied(name: str) -> None:
    body, move = COPIES[name]
    writes = found(kernel(body))
    if move is None:
        assert writes is None or not writes.moves
    else:
        assert writes == Writes("output", (move,), ())


NO_COPIES = {
    "a column": "for y : i32 in 0 .. 4 { output[y, 0] = input[y, 0] }",
    "an upside-down block": f"{ROWS} output[3 - y, x] = input[y, x] }} }}",
    "columns and rows exchanged": "for y : i32 in 0 .. 4 { for x : i32 in 0 .. 4 { output[x, y] = input[y, x] } }",
    "every other element": "for x : i32 in 0 .. 3 { output[0, x] = input[0, x * 2] }",
    "a sum": f"{ROWS} output[y, x] = i8(i32(input[y, x]) + 1) }} }}",
    "cut to fewer bits": f"{ROWS} output[y, x] = i8(i32(i8(i32(input[y, x]) << 4)) >> 4) }} }}",
    "an element many times": f"{ROWS} output[y, x] = input[0, 0] }} }}",
    "read for something else too": (
        f"{ROWS} output[y, x] = input[y, x] }} }} output[9, 0] = i8(i32(input[0, 0]) * 2)"
    ),
}


@pytest.mark.parametrize("name", NO_COPIES)
def test_what_is_no_copy_of_a_block(name: str) -> None:
    writes = found(kernel(NO_COPIES[name]))
    assert writes is not None
    assert not writes.moves
    assert writes.others


UNKNOWN = {
    "a condition": f"{ROWS} if y < 2 {{ output[y, x] = input[y, x] }} }} }}",
    "scratch": "allocate s : buffer<i8> s[] = input[0, 0] output[0, 0] = s[]",
    "a place that depends on data": "output[i32(input[0, 0]), 0] = 1:i8",
    "a loop of another kernel's length": "for y : i32 in 0 .. asked { output[y, 0] = input[y, 0] }",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_understood(name: str) -> None:
    text = kernel(UNKNOWN[name])
    assert found(text.replace("row_end : i32", "row_end : i32, asked : i32")) is None


def test_an_element_of_another_type_is_no_copy() -> None:
    writes = found(kernel(f"{ROWS} output[y, x] = i8(input[y, x]) }} }}", dtype="i32"))
    assert writes is not None
    assert not writes.moves


def test_a_loop_that_never_runs_writes_nothing() -> None:
    writes = found(kernel("for y : i32 in row_begin .. row_end { output[y, 0] = input[y, 0] }"), row_end=0)
    assert writes == Writes("output", (), ())


@settings(max_examples=150, deadline=None)
@given(
    extents=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    before=st.integers(0, 3),
    cut=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    axis=st.integers(0, 3),
)
def test_random_blocks_go_where_it_says(
    extents: list[int], before: int, cut: tuple[int, int], axis: int
) -> None:
    """A slice along one axis, put behind `before` indices of that axis of a larger output."""
    assume(np.prod(extents) < 128)  # each element is told by its value
    axis %= len(extents)
    begin, end = min(cut[0], extents[axis] - 1), extents[axis] - min(cut[1], extents[axis] - 1)
    made = [extent if i != axis else extent + before for i, extent in enumerate(extents)]
    names = "abcd"[: len(extents)]
    loops = "".join(
        f"for {n} : i32 in {begin if i == axis else 0} .. {max(begin, end) if i == axis else extents[i]} {{ "
        for i, n in enumerate(names)
    )
    place = ", ".join(f"{n} + {before}" if i == axis else n for i, n in enumerate(names))
    body = f"{loops} output[{place}] = input[{', '.join(names)}] {'}' * len(names)}"
    text = kernel(body, "x".join(map(str, extents)), "x".join(map(str, made)))
    writes = found(text)
    assert writes is not None
    values = np.arange(1, np.prod(extents) + 1, dtype=np.int8).reshape(extents)
    output = run_primfunc(
        parse_primfunc(text),
        {"input": values, "output": np.zeros(made, np.int8), "row_begin": 0, "row_end": 10},
    )["output"].ravel()
    written = np.flatnonzero(output)
    is_block = len(written) > 0 and bool(
        (np.diff(written) == 1).all() and (np.diff(output[written]) == 1).all()
    )
    if not writes.moves:
        assert not is_block
        return
    (move,) = writes.moves
    assert is_block
    assert (move.to, move.count, move.first) == (written[0], len(written), output[written[0]] - 1)
