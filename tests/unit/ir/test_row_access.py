"""Which kernels make their output row by row: by hand, and those of random networks, against what they compute."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.rows import RowAccess, RowWindow, row_access
from bytewright.ir.walk import calls
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_primfunc
from support.row_models import Layer, chain
from support.spatial_networks import spatial_model

Array = NDArray[np.generic]

PLAIN = "for y : i32 in row_begin .. row_end {"
COPY = "for c : i32 in 0 .. 4 { output[0, y, c] = input[0, y, c] }"


def kernel(body: str, rest: str = "", shape: str = "1x8x4", access: str = "w", given: str = "1x8x4") -> str:
    """A kernel from `input` to `output`, which is told its rows."""
    return (
        f"kernel k(input : buffer<{given}xi32> r, {rest} output : buffer<{shape}xi32> {access}, "
        f"row_begin : i32, row_end : i32) on cpu {{ {body} }}"
    )


def access_of(text: str) -> RowAccess | None:
    return row_access(parse_primfunc(text))


ACCEPTED = {
    "the last row again": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, min(y + 1, 7), c] }} }}"),
        RowWindow(1, 0, 1),
    ),
    "a constant's row by the remainder": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y / 2, c] * phases[y % 2, c] }} }}",
            rest="phases : buffer<2x4xi32> r parameter,",
        ),
        RowWindow(1, 0, 0, 2),
    ),
    "the first row again": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, max(y - 3, 0), c] }} }}"),
        RowWindow(1, -3, 0),
    ),
    "rows at both borders again, under names": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ for k : i32 in 0 .. 5 {{ let r : i32 = max(2 * y + k - 3, 0)"
            "  let s : i32 = min(r, 6) output[0, y, c] = input[0, s, c] } } }",
            shape="1x6x4",
        ),
        RowWindow(2, -4, 1),
    ),
    "rows of which most are kept away": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, min(max(5, y), 6), c] }} }}"),
        RowWindow(1, -1, 5),
    ),
    "copy": (kernel(f"{PLAIN} {COPY} }}"), RowWindow(1, 0, 0)),
    "ends of rows under names": (
        kernel(
            f"let b : i32 = max(row_begin, 0) let e : i32 = min(row_end, 8)for y : i32 in b .. e {{ {COPY} }}"
        ),
        RowWindow(1, 0, 0),
    ),
    "two sweeps, one over some of the rows": (
        kernel(
            f"{PLAIN} {COPY} }} for z : i32 in max(row_begin, 2) .. min(row_end, 5) {{"
            "for d : i32 in 0 .. 4 { output[0, z, d] = input[0, z - 2, d] + input[0, z + 1, d] } }"
        ),
        RowWindow(1, -2, 1),
    ),
    "a window with a stride and a dilation": (
        kernel(
            f"{PLAIN} allocate sum : buffer<i32> for c : i32 in 0 .. 4 {{ sum[] = 0"
            "  for k : i32 in 0 .. 3 { let r : i32 = y * 2 + k * 3 - 4"
            "    if 0 <= r && r < 8 { sum[] = sum[] + input[0, r, c] } }"
            "  output[0, y, c] = sum[] } }",
            shape="1x4x4",
        ),
        RowWindow(2, -4, 2),
    ),
    "a view of a pixel": (
        kernel(
            f"{PLAIN} for x : i32 in 0 .. 4 {{"
            "  view tap : buffer<2xi32> = &input[0, y + 1, x, 0] if y < 7 else &zeros"
            "  for c : i32 in 0 .. 2 { output[0, y, x, c] = tap[c] } } }",
            rest="zeros : buffer<2xi32> r parameter,",
            shape="1x8x4x2",
            given="1x8x4x2",
        ),
        RowWindow(1, 1, 1),
    ),
    "a view of some pixels of a row": (
        kernel(
            f"{PLAIN} for x : i32 in 0 .. 3 {{ view taps : buffer<4xi32> = &input[0, y, x, 0]"
            "  for c : i32 in 0 .. 2 { output[0, y, x, c] = taps[c] + taps[c + 2] } } }",
            shape="1x8x3x2",
            given="1x8x4x2",
        ),
        RowWindow(1, 0, 0),
    ),
    "rows of the first axis": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[y, c] = input[y + 1, c] }} }}",
            shape="7x4",
            given="8x4",
        ),
        RowWindow(1, 1, 1),
    ),
    "the last row for all behind it": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, min(y + 1, 7), c] }} }}"),
        RowWindow(1, 0, 1),
    ),
    "the first row for all before it": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, max(y - 2, 0), c] }} }}"),
        RowWindow(1, -2, 0),
    ),
    "the second row for all before it": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, max(y - 2, 1), c] }} }}"),
        RowWindow(1, -2, 1),
    ),
    "each row twice": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y / 2, c] }} }}", given="1x4x4"),
        RowWindow(1, 0, 0, 2),
    ),
    "between two rows, kept inside": (
        kernel(
            f"{PLAIN} let a : i32 = max(y - 1, 0) / 2 let b : i32 = min((y + 1) / 2, 3)"
            "for c : i32 in 0 .. 4 { output[0, y, c] = input[0, a, c] * 3 + input[0, b, c] } }",
            given="1x4x4",
        ),
        RowWindow(1, -1, 1, 2),
    ),
    "a fraction with a common factor, twice divided": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, (y * 4 + 3) / 2 / 3 + 1, c] }} }}",
            given="1x8x4",
        ),
        RowWindow(2, 4, 4, 3),
    ),
    "three rows from half of a row on": (
        kernel(
            f"{PLAIN} allocate sum : buffer<i32> for c : i32 in 0 .. 4 {{ sum[] = 0"
            "  for k : i32 in 0 .. 3 { let r : i32 = (y + 1) / 2 + (k - 1)"
            "    if 0 <= r && r < 4 { sum[] = sum[] + input[0, r, c] } }"
            "  output[0, y, c] = sum[] } }",
            given="1x4x4",
        ),
        RowWindow(1, -1, 3, 2),
    ),
    "an input that every row needs whole": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, 7 - c, c] }} }}"),
        None,
    ),
    "rows upside down": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, 7 - y, c] }} }}"),
        None,
    ),
    "columns for rows": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, c, y] }} }}",
            shape="1x4x4",
            given="1x8x4",
        ),
        None,
    ),
    "read by rows with two strides": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y * 2, c] + input[0, y, c] }} }}",
            shape="1x4x4",
        ),
        None,
    ),
    "read by rows and otherwise": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y, c] + input[0, 0, c] }} }}"),
        None,
    ),
    "read otherwise and by rows": (
        kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, 0, c] + input[0, y, c] }} }}"),
        None,
    ),
    "a view that leaves its row": (
        kernel(
            f"{PLAIN} for x : i32 in 0 .. 3 {{ view taps : buffer<6xi32> = &input[0, y, x, 0]"
            "  for c : i32 in 0 .. 2 { output[0, y, x, c] = taps[c + 2] } } }",
            shape="1x8x3x2",
            given="1x9x4x2",
        ),
        None,
    ),
    "a view of rows": (
        kernel(
            f"{PLAIN} view rows : buffer<8xi32> = &input[0, y, 0]"
            "  for c : i32 in 0 .. 4 { output[0, y, c] = rows[c + 4] } }",
            shape="1x7x4",
        ),
        None,
    ),
    "an image of several samples is read whole": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[1, y, c] }} }}",
            given="2x8x4",
        ),
        None,
    ),
    "a table in which data chooses": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ let at : i32 = max(min(input[0, y + 1, c], 3), 0)"
            "  output[0, y, c] = table[at] + table[max(min(input[0, y, c], 3), 0)] } }",
            rest="table : buffer<4xi32> r,",
            shape="1x7x4",
        ),
        RowWindow(1, 0, 1),
    ),
    "a row that a number in memory chooses": (
        kernel(
            f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, table[c], c] }} }}",
            rest="table : buffer<4xi32> r,",
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_rows_of_kernels_by_hand(name: str) -> None:
    text, window = ACCEPTED[name]
    function = parse_primfunc(text)
    access = row_access(function)
    assert access is not None
    assert access.output == "output"
    assert access.windows == ({} if window is None else {"input": window})
    assert set(access.axes) == {"output", *access.windows}
    assert_rows_alone_give_the_same(function, ir.Module("m"), np.random.default_rng(7))


REFUSED = {
    "no rows are asked for": "kernel k(input : buffer<1x8x4xi32> r, output : buffer<1x8x4xi32> w) on cpu "
    "{ for y : i32 in 0 .. 8 { for c : i32 in 0 .. 4 { output[0, y, c] = input[0, y, c] } } }",
    "another number is asked for": kernel(f"{PLAIN} {COPY} }}", rest="factor : i32,"),
    "a sum over rows in scratch": kernel(
        f"allocate sum : buffer<4xi32> for d : i32 in 0 .. 4 {{ sum[d] = 0 }} {PLAIN} for c : i32 in 0 .. 4 "
        "{ sum[c] = sum[c] + input[0, y, c] output[0, y, c] = sum[c] } }"
    ),
    "scratch that another row leaves": kernel(
        f"allocate last : buffer<4xi32> {PLAIN} for c : i32 in 0 .. 4 "
        "{ last[c] = input[0, y, c] output[0, y, c] = last[c] } }"
    ),
    "a sum over rows in the output": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y, c] + output[0, max(y - 1, 0), c] }} }}",
        access="rw",
    ),
    "one row for all": kernel(f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, 0, c] = input[0, y, c] }} }}"),
    "the row below": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ if y < 7 {{ output[0, y + 1, c] = input[0, y, c] }} }} }}"
    ),
    "every second row": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y * 2, c] = input[0, y, c] }} }}", shape="1x16x4"
    ),
    "a diagonal": kernel(f"{PLAIN} output[0, y, y] = input[0, y, 0] }}", shape="1x8x8"),
    "two axes by turns": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = 1 output[0, c, y] = 2 }} }}", shape="1x4x4"
    ),
    "a diagonal of the input": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y, y] }} }}",
        shape="1x4x4",
        given="1x4x4",
    ),
    "several samples": kernel(
        f"{PLAIN} for b : i32 in 0 .. 2 {{ for c : i32 in 0 .. 4 {{ output[b, y, c] = input[b, y, c] }} }} }}",
        shape="2x8x4",
        given="2x8x4",
    ),
    "a row that is chosen": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, select(y < 7, y + 1, 7), c] }} }}"
    ),
    "half of a row that may be negative": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, (y - 1) / 2, c] }} }}"
    ),
    "a row that the data of another limits": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, min(y / 2, input[0, 0, c]), c] }} }}"
    ),
    "a row that data and the row choose": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y + table[c], c] }} }}",
        rest="table : buffer<4xi32> r,",
    ),
    "the same slot for every third row": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, y % 3, c] }} }}"
    ),
    "a row limited by another": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, min(y / 2, c + 1), c] }} }}"
    ),
    "something beside the rows": kernel(f"{PLAIN} {COPY} }} output[0, 0, 0] = 5"),
    "all rows, whichever are asked for": kernel(f"for y : i32 in 0 .. 8 {{ {COPY} }}"),
    "all from one row on": kernel(f"for y : i32 in row_begin .. 8 {{ {COPY} }}"),
    "one row more": kernel(f"for y : i32 in row_begin .. row_end + 1 {{ {COPY} }}"),
    "ends of rows changed": kernel(f"for y : i32 in row_end .. row_begin {{ {COPY} }}"),
    "rows inside of rows": kernel(f"for z : i32 in row_begin .. row_end {{ {PLAIN} {COPY} }} }}"),
    "the first of the rows is told": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = row_begin }} }}"
    ),
    "the last of the rows is told": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = select(y + 1 == row_end, 1, 0) }} }}"
    ),
    "the number of rows under a name": kernel(
        f"let n : i32 = row_end - row_begin {PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = n }} }}"
    ),
    "an end of the rows under a name, told": kernel(
        f"let b : i32 = max(row_begin, 0){PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = b }} }}"
    ),
    "as many turns as rows": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = 0 }}"
        "  for t : i32 in 0 .. row_end { output[0, y, 0] = t } }"
    ),
    "a branch on where the rows begin": kernel(f"if row_begin == 0 {{ {PLAIN} {COPY} }} }}"),
    "a read from where the rows begin": kernel(
        f"{PLAIN} for c : i32 in 0 .. 4 {{ output[0, y, c] = input[0, row_begin, c] }} }}"
    ),
    "two outputs": "kernel k(input : buffer<1x8x4xi32> r, output : buffer<1x8x4xi32> w, other : buffer<1x8x4xi32> w, "
    f"row_begin : i32, row_end : i32) on cpu {{ {PLAIN} for c : i32 in 0 .. 4 "
    "{ output[0, y, c] = input[0, y, c] other[0, y, c] = 1 } } }",
    "nothing is written": kernel(f"{PLAIN} let t : i32 = input[0, y, 0] }}"),
    "a view of a view": kernel(
        f"{PLAIN} view a : buffer<4xi32> = &input[0, y, 0] view b : buffer<2xi32> = &a[1]"
        "  for c : i32 in 0 .. 4 { output[0, y, c] = b[0] } }"
    ),
    "a view of the output": kernel(
        f"{PLAIN} view a : buffer<4xi32> = &output[0, y, 0]"
        "  for c : i32 in 0 .. 4 { output[0, y, c] = a[0] } }",
        access="rw",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_kernels_make_no_rows(name: str) -> None:
    assert access_of(REFUSED[name]) is None


def test_what_a_callee_does_is_not_looked_into() -> None:
    function = parse_primfunc(kernel(f"{PLAIN} {COPY} }}"))
    assert row_access(function) is not None
    loop = function.body.statements[0]
    assert isinstance(loop, ir.For)
    inner = ir.Call("other", (ir.Region(function.buffer_parameters[0].buffer, ()),))
    calling = ir.For(loop.variable, loop.begin, loop.end, ir.Seq((*loop.body.statements, inner)))
    changed = ir.PrimFunc(function.name, function.parameters, ir.Seq((calling,)), device="cpu")
    assert row_access(changed) is None


# Kernels of networks


@cache
def lowered(seed: int, dtype: str, target: str, *, rises: bool = False) -> ir.Module:
    """A random network before storage decides anything."""
    network = spatial_model(seed, dtype, rises=rises, num_operators=(4, 8), extents=(4, 7))
    return lowered_file(network.content, target)


def lowered_file(content: bytes, target: str) -> ir.Module:
    """A model before storage decides anything."""
    modules: list[ir.Module] = []

    def keep(name: str, module: ir.Module) -> None:
        if name == "name_symbols":
            modules.append(module)

    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.tflite"
        path.write_bytes(content)
        compile_model(path, load_target(target), Options(rows=Rows.OFF), after_pass=keep)
    return modules[0]


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
@pytest.mark.parametrize(("dtype", "first"), [("int8", 0), ("float32", 100)])
def test_kernels_of_networks(dtype: str, first: int, target: str) -> None:
    """Each row alone, in any order, from the rows under its window, is what one call makes of it."""
    by_rows = windows = 0
    for seed in range(first, first + 8):
        module = lowered(seed, dtype, target)
        for function in module.kernels:
            access = row_access(function)
            if access is not None:
                by_rows, windows = by_rows + 1, windows + len(access.windows)
                assert_rows_alone_give_the_same(function, module, np.random.default_rng(seed))
    assert by_rows >= 20
    assert windows >= by_rows


@pytest.mark.parametrize("width", [8, 9])
@pytest.mark.parametrize("target", ["host", "mps3-an547", "mps2-an386", "x86-64-v4-vnni"])
def test_windows_that_reach_over_no_side(target: str, width: int) -> None:
    """Whether the pixels of a row make pairs or not, each kernel reads windows of rows."""
    layers = (Layer(1, columns=2, channels=16, padding="VALID"), Layer(2, columns=4, padding="VALID"))
    module = lowered_file(chain((6, width, 16), *layers).content, target)
    assert [set(access.windows) if (access := row_access(each)) else None for each in module.kernels] == [
        {"input"},
        {"input"},
    ]
    for function in module.kernels:
        assert_rows_alone_give_the_same(function, module, np.random.default_rng(width))


@pytest.mark.parametrize(("dtype", "first"), [("int8", 200), ("float32", 400)])
def test_kernels_of_networks_that_rise(dtype: str, first: int) -> None:
    """Of resizes and transposed convolutions, too."""
    rising = 0
    for seed in range(first, first + 9):
        module = lowered(seed, dtype, "host", rises=True)
        for function in module.kernels:
            access = row_access(function)
            if access is not None and any(window.divisor > 1 for window in access.windows.values()):
                rising += 1
                assert_rows_alone_give_the_same(function, module, np.random.default_rng(seed))
    assert rising >= 5


def assert_rows_alone_give_the_same(
    function: ir.PrimFunc, module: ir.Module, generator: np.random.Generator
) -> None:
    """Rows one by one, in a random order, with other values in all input rows that a row is said not to need."""
    access = row_access(function)
    assert access is not None
    evaluator = Evaluator(module, () if function in module.kernels else (function,))
    inputs = {
        p.buffer.name: argument(p.buffer, function, module, generator)
        for p in function.buffer_parameters
        if p.access is ir.Access.READ
    }
    output = next(p.buffer for p in function.buffer_parameters if p.name == access.output)
    axis = access.axes[access.output]
    num_rows = ir.upper_bound(output.shape[axis])
    wanted = evaluator.run(function.name, {**inputs, "row_begin": 0, "row_end": num_rows})[access.output]
    for row in generator.permutation(num_rows).tolist():
        given = dict(inputs)
        for name, window in access.windows.items():
            given[name] = other_values_outside(inputs[name], access.axes[name], window.rows(row))
        rows = {"row_begin": row, "row_end": row + 1}
        found = evaluator.run(function.name, {**given, **rows}, require_complete=False)[access.output]
        assert found.take(row, axis).tobytes() == wanted.take(row, axis).tobytes()
        others = np.delete(found, row, axis).tobytes()
        assert others == b"\xa5" * len(others)  # as memory that nothing wrote


def other_values_outside(array: Array, axis: int, needed: range) -> Array:
    changed = np.moveaxis(array.copy(), axis, 0)
    kept = np.isin(np.arange(changed.shape[0]), needed)
    changed[~kept] = 1 if array.dtype.kind == "f" else ~changed[~kept].view(f"i{array.itemsize}")
    return np.moveaxis(changed, 0, axis)


def argument(
    buffer: ir.Buffer, function: ir.PrimFunc, module: ir.Module, generator: np.random.Generator
) -> Array:
    """What some call of the entry gives if that is a constant, else random values."""
    constants = {constant.buffer.name: constant.data.array for constant in module.constant_buffers}
    shape = [ir.upper_bound(extent) for extent in buffer.shape]
    for call in calls(module.main) if module.entries else ():
        if call.callee != function.name:
            continue
        for parameter, region in buffer_arguments(function, call):
            if parameter.name == buffer.name and region.buffer.name in constants:
                return constants[region.buffer.name].reshape(shape)
    if buffer.dtype is ir.DType.F32:
        return generator.standard_normal(shape).astype(np.float32)
    low, high = (0, 4) if buffer.name == "table" else (-100, 100)
    return generator.integers(low, high, shape).astype(buffer.dtype.numpy)
