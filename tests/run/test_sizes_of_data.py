"""Extents that the data decides: as many rows as LiteRT has, of 0, some, all; of too many the run is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.build import BuildOptions
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.record.plan_file import document_of, read_plan
from bytewright.validate.references import Witness, reference_of
from bytewright.validate.samples import Samples
from bytewright.validate.validate import validate_bundle
from support.c_program import run_c
from support.model_files import DATA, ModelFile
from support.plan_mutations import write_consistently
from support.reference import LiteRt
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
Writes = Callable[[ModelBuilder, int, int], Sequence[int]]
ROWS, WIDTH = 10, 4


def masked(write: Writes, dtype: str = "float32", **quantisation: Any) -> bytes:
    """The rows of x [ROWS, WIDTH] whose mask is true, and what is made of them: `write` returns the outputs."""
    builder = ModelBuilder()
    x = builder.tensor("x", (ROWS, WIDTH), dtype, **quantisation)
    mask = builder.tensor("mask", (ROWS,), "bool")
    places = builder.tensor("places", (0, 1), "int64")
    rows = builder.tensor("rows", (0, WIDTH), dtype, **quantisation)
    builder.operator("WHERE", [mask], [places])
    builder.operator("GATHER_ND", [x, places], [rows])
    return builder.build([x, mask], [*write(builder, places, rows)])


def places_and_rows(_: ModelBuilder, places: int, rows: int) -> Sequence[int]:
    return places, rows


def computed(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
    """Element by element, by broadcasting, by a layer of each row, and sums over the rows."""
    del places
    rng = np.random.default_rng(1)
    names = ("relu", "sum", "dense", "softmax", "total", "greatest", "mean")
    shapes = (*[(0, WIDTH)] * 2, (0, 3), (0, 3), (WIDTH,), (WIDTH,), (1, 3))
    relu, sums, dense, softmax, total, greatest, mean = (
        builder.tensor(name, shape, "float32") for name, shape in zip(names, shapes, strict=True)
    )
    offset = builder.constant("offset", rng.normal(size=(1, WIDTH)).astype(np.float32))
    weights = builder.constant("weights", rng.normal(size=(3, WIDTH)).astype(np.float32))
    bias = builder.constant("bias", rng.normal(size=(3,)).astype(np.float32))
    axis = builder.constant("axis", np.array([0], np.int32))
    builder.operator("RELU", [rows], [relu])
    builder.operator("ADD", [relu, offset], [sums])
    builder.operator("FULLY_CONNECTED", [sums, weights, bias], [dense])
    builder.operator("SOFTMAX", [dense], [softmax])
    builder.operator("SUM", [sums, axis], [total])
    builder.operator("REDUCE_MAX", [sums, axis], [greatest])
    builder.operator("MEAN", [dense, axis], [mean], keep_dims=True)
    return softmax, sums, total, greatest, mean


def counted(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
    """The shape of the rows as numbers, and the rows in another shape, which follows from it."""
    shape = builder.tensor("shape", (2,), "int32")
    flat, joined = builder.tensor("flat", (0,), "float32"), builder.tensor("joined", (0, WIDTH), "float32")
    builder.operator("SHAPE", [rows], [shape], out_type="INT32")
    builder.operator("RESHAPE", [rows, builder.constant("all", np.array([-1], np.int32))], [flat])
    first = builder.constant("first", np.ones((2, WIDTH), np.float32))
    builder.operator("CONCATENATION", [first, rows], [joined], axis=0)
    del places
    return shape, flat, joined


def top_k() -> bytes:
    """The greatest of each row, as many as the run says, and what is computed of them."""
    builder = ModelBuilder()
    x, k = builder.tensor("x", (3, ROWS), "float32"), builder.tensor("k", (), "int32")
    values, places = builder.tensor("values", (3, 0), "float32"), builder.tensor("places", (3, 0), "int32")
    builder.operator("TOPK_V2", [x, k], [values, places])
    doubled = builder.tensor("doubled", (3, 0), "float32")
    builder.operator("ADD", [values, values], [doubled])
    return builder.build([x, k], [doubled, places])


def numbers(delta: int = 1, dtype: str = "int32") -> bytes:
    """A range to a limit that the run says, from 2 on, and its squares."""
    builder = ModelBuilder()
    limit = builder.tensor("limit", (), dtype)
    start, delta = (builder.constant(n, np.array(v, dtype)) for n, v in (("a", 2), ("d", delta)))
    found, squares = (builder.tensor(name, (0,), dtype) for name in ("found", "squares"))
    builder.operator("RANGE", [start, limit, delta], [found])
    builder.operator("MUL", [found, found], [squares])
    return builder.build([limit], [found, squares])


def distinct(dtype: str) -> bytes:
    """The values of a list without repetition, and the place of each."""
    builder = ModelBuilder()
    x = builder.tensor("x", (ROWS,), dtype)
    values, places = builder.tensor("values", (0,), dtype), builder.tensor("places", (ROWS,), "int32")
    builder.operator("UNIQUE", [x], [values, places])
    return builder.build([x], [values, places])


def segments() -> bytes:
    """Sums of rows, by segments that the run numbers."""
    builder = ModelBuilder()
    x, own = builder.tensor("x", (ROWS, WIDTH), "float32"), builder.tensor("own", (ROWS,), "int32")
    sums = builder.tensor("sums", (0, WIDTH), "float32")
    builder.operator("SEGMENT_SUM", [x, own], [sums])
    return builder.build([x, own], [sums])


def saved(folder: Path, content: bytes) -> Path:
    file = folder / "m.tflite"
    file.write_bytes(content)
    return file


def inputs_of(num_true: int, seed: int = 0, dtype: str = "float32") -> tuple[Array, Array]:
    rng = np.random.default_rng((seed, num_true))
    mask = np.zeros(ROWS, np.bool_)
    mask[rng.permutation(ROWS)[:num_true]] = True
    if dtype != "float32":
        ends = np.iinfo(dtype)
        return rng.integers(ends.min, ends.max, (ROWS, WIDTH), dtype=dtype, endpoint=True), mask
    return rng.normal(size=(ROWS, WIDTH)).astype(np.float32), mask


def assert_same(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    """Of the model's outputs; sizes are behind them."""
    for own, reference in zip(found, wanted, strict=False):
        assert (own.shape, own.dtype) == (reference.shape, reference.dtype)
        np.testing.assert_allclose(own, reference, rtol=1e-5, atol=1e-6)


def refusal(error: pytest.ExceptionInfo[CompileError]) -> Diagnostic:
    (diagnostic,) = error.value.diagnostics
    return diagnostic


@pytest.mark.parametrize("write", [places_and_rows, computed, counted])
@pytest.mark.parametrize(
    "options", [{}, {"bounds": "where*=6"}, {"io": "workspace", "kernel_code": "portable"}]
)
def test_as_many_rows_as_the_reference_has(tmp_path: Path, write: Writes, options: dict[str, Any]) -> None:
    content = masked(write)
    model, reference = bytewright.compile(saved(tmp_path, content), **options), LiteRt(content)
    most = 6 if "bounds" in options else ROWS
    for num_true in range(most + 1):
        *found, size = model.run(*inputs_of(num_true))
        assert size.tolist() == [num_true]
        assert_same(found, reference.run(*inputs_of(num_true)))


def number_of(builder: ModelBuilder, places: int) -> int:
    """How many places there are, i32 [1]: a number of a shape."""
    shape, number = builder.tensor("shape", (2,), "int32"), builder.tensor("number", (1,), "int32")
    builder.operator("SHAPE", [places], [shape], out_type="INT32")
    parts = (builder.constant(name, np.array([n], np.int32)) for name, n in (("a", 0), ("e", 1), ("t", 1)))
    builder.operator("STRIDED_SLICE", [shape, *parts], [number])
    return number


def only_number(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
    """What nothing needs the rows for."""
    del rows
    return (number_of(builder, places),)


def laws(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
    """Numbers of the size that are lines from 1 on, or from 2 on, or none."""
    number = number_of(builder, places)
    one, two = (builder.constant(f"n{n}", np.array([n], np.int32)) for n in (1, 2))
    made: list[int] = []
    for kind, operands in (
        ("MAXIMUM", [number, one]),
        ("MINIMUM", [number, two]),
        ("MUL", [number, number]),
        ("FLOOR_MOD", [number, two]),
        ("EQUAL", [number, builder.constant("none", np.array([0], np.int32))]),
    ):
        made.append(builder.tensor(kind.lower(), (1,), "bool" if kind == "EQUAL" else "int32"))
        builder.operator(kind, operands, [made[-1]])
    return *made, rows


@pytest.mark.parametrize(
    ("write", "bounds"), [(only_number, None), (laws, "WHERE=1"), (laws, "WHERE=2"), (laws, None)]
)
def test_numbers_of_a_size(tmp_path: Path, write: Writes, bounds: str | None) -> None:
    """Each size is read, 0 too: that of which no more than the number is used, and of which it is no line."""
    content = masked(write)
    options: dict[str, Any] = {"bounds": bounds} if bounds else {}
    model, reference = bytewright.compile(saved(tmp_path, content), **options), LiteRt(content)
    for num_true in range((int(bounds[-1]) if bounds else ROWS) + 1):
        given = inputs_of(num_true)
        found = model.run(*given)
        assert_same(found if isinstance(found, tuple) else [found], reference.run(*given))


def test_a_size_behind_another_whose_shapes_are_not_those_of_the_file(tmp_path: Path) -> None:
    def masked_again(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
        column, is_true = builder.tensor("column", (0,), "float32"), builder.tensor("is_true", (0,), "bool")
        others = builder.tensor("others", (0, 1), "int64")
        builder.operator("SUM", [rows, builder.constant("axis", np.array([1], np.int32))], [column])
        builder.operator("GREATER", [column, builder.constant("zero", np.zeros(1, np.float32))], [is_true])
        builder.operator("WHERE", [is_true], [others])
        return others, places

    content = masked(masked_again)
    model, reference = bytewright.compile(saved(tmp_path, content)), LiteRt(content)
    for num_true in range(ROWS + 1):
        given = inputs_of(num_true)
        assert_same(model.run(*given), reference.run(*given))
    bounded = bytewright.compile(saved(tmp_path, content), bounds="where_4=3")
    assert [size.most for size in bounded.plan.outputs if size.is_checked] == [3]


def test_one_row_at_most_that_is_turned(tmp_path: Path) -> None:
    def turned(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
        columns = builder.tensor("columns", (WIDTH, 0), "float32")
        order = builder.constant("order", np.array([1, 0], np.int32))
        builder.operator("TRANSPOSE", [rows, order], [columns])
        return columns, places

    content = masked(turned)
    model, reference = bytewright.compile(saved(tmp_path, content), bounds="WHERE=1"), LiteRt(content)
    for num_true in (0, 1):
        assert_same(model.run(*inputs_of(num_true)), reference.run(*inputs_of(num_true)))


def test_places_of_a_constant_of_which_the_file_does_not_say_how_many(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, places = builder.tensor("x", (3,), "int64"), builder.tensor("places", (0, 1), "int64")
    flat, sums = builder.tensor("flat", (0,), "int64"), builder.tensor("sums", (0,), "int64")
    builder.operator("WHERE", [builder.constant("mask", np.array([True, False, True, True]))], [places])
    builder.operator("RESHAPE", [places, builder.constant("all", np.array([-1], np.int32))], [flat])
    builder.operator("GATHER", [x, builder.constant("last", np.array([2], np.int32))], [sums], axis=0)
    total = builder.tensor("total", (0,), "int64")
    builder.operator("ADD", [flat, sums], [total])
    content = builder.build([x], [total])
    given = np.array([5, 6, 7])
    *found, size = bytewright.compile(saved(tmp_path, content)).run(given)
    assert size.tolist() == [3]
    assert_same(found, LiteRt(content).run(given))


def test_a_table_of_too_many_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, numbers()), bounds="RANGE=999999999")
    wanted = "RANGE: a table of 999999999 numbers; up to 262144 are supported"
    assert (refusal(error).code, refusal(error).message) == ("BW107", wanted)


def test_int8_is_exact(tmp_path: Path) -> None:
    content = masked(places_and_rows, "int8", scale=0.5, zero_point=3)
    model, reference = bytewright.compile(saved(tmp_path, content)), LiteRt(content)
    for num_true in range(ROWS + 1):
        given = inputs_of(num_true, dtype="int8")
        for own, wanted in zip(model.run(*given), reference.run(*given), strict=False):
            assert np.array_equal(own, wanted)


@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", -7), ("uint8", 9), ("int16", 0)])
def test_the_sum_of_no_integers_is_zero_which_the_reference_leaves_unwritten(
    tmp_path: Path, dtype: str, zero_point: int
) -> None:
    def write(builder: ModelBuilder, _: int, rows: int) -> Sequence[int]:
        total = builder.tensor("total", (WIDTH,), dtype, scale=4.0, zero_point=zero_point)
        builder.operator("SUM", [rows, builder.constant("axis", np.array([0], np.int32))], [total])
        return (total,)

    content = masked(write, dtype, scale=0.5)
    model, reference = bytewright.compile(saved(tmp_path, content)), LiteRt(content)
    assert np.asarray(model.run(*inputs_of(0, dtype=dtype))).tolist() == [zero_point] * WIDTH
    given = inputs_of(3, dtype=dtype)
    assert_same([np.asarray(model.run(*given))], reference.run(*given))


def test_a_network_of_tensorflow_with_where() -> None:
    file = ModelFile(DATA / "advice" / "where-refused.tflite")
    model, reference = bytewright.compile(file.path), LiteRt(file.content)
    for seed in range(4):
        *found, _ = model.run(*file.inputs(seed))
        assert_same(found, reference.run(*file.inputs(seed)))


def test_more_than_the_bound_is_refused_and_nothing_outside_is_written(tmp_path: Path) -> None:
    """With guards around every array, and sanitizers."""
    model = bytewright.compile(saved(tmp_path, masked(computed)), bounds="where_0=3")
    folder = model.write(tmp_path / "bundle")
    (size,) = (tensor for tensor in model.plan.outputs if tensor.most)
    assert (size.name, size.most, size.is_checked) == ("where_0_size", 3, True)
    header = (folder / "include" / "m.h").read_text()
    assert "#define M_OUTPUT_WHERE_0_SIZE_MOST 3" in header
    assert "M_ERROR_BOUND" in header
    context = HostModel.build(folder).open()
    for num_true in (0, 3):
        context.run(inputs_of(num_true))
    for num_true in (4, ROWS):
        with pytest.raises(CompileError, match="M_ERROR_BOUND"):
            context.run(inputs_of(num_true))
    sanitized = BuildOptions(flags=("-O0",), sanitize=True)
    for several in ((0, 3, 4), (ROWS,)):
        with pytest.raises(CompileError, match="M_ERROR_BOUND"):
            run_batch(folder, [inputs_of(num_true) for num_true in several], options=sanitized)


def test_a_run_that_was_refused_leaves_the_next_one_as_it_is(tmp_path: Path) -> None:
    content = masked(computed)
    model = bytewright.compile(saved(tmp_path, content), bounds="where_0=3")
    context = HostModel.build(model.write(tmp_path / "bundle")).open()
    with pytest.raises(CompileError, match="M_ERROR_BOUND"):
        context.run(inputs_of(ROWS))
    found, _ = context.run(inputs_of(2))
    assert_same(found[:-1], LiteRt(content).run(*inputs_of(2)))


def test_what_cannot_be_exceeded_is_not_checked_and_said_where_it_is_shown(tmp_path: Path) -> None:
    def only_sums(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
        return computed(builder, places, rows)[2:]

    model = bytewright.compile(saved(tmp_path, masked(only_sums)))
    assert [tensor.name for tensor in model.plan.outputs] == ["total", "greatest", "mean"]
    assert "ERROR_BOUND" not in model.files["include/m.h"].decode()
    model = bytewright.compile(saved(tmp_path, masked(only_sums)), bounds="where_0=3")
    assert [tensor.name for tensor in model.plan.outputs][-1] == "where_0_size"


def test_the_bundle_is_checked_and_forged_bounds_are_found(tmp_path: Path) -> None:
    model = bytewright.compile(saved(tmp_path, masked(places_and_rows)), bounds="where_0=3")
    folder = model.write(tmp_path / "bundle")
    assert check_bundle(folder).num_steps == len(model.plan.steps)
    places, rows, size = model.plan.outputs
    assert (places.sized, rows.sized) == (("where_0_size", 1), ("where_0_size", WIDTH))
    for forged in (
        (places, rows, replace(size, most=4)),
        (places, rows, replace(size, most=0, is_checked=False)),
        (places, rows, replace(size, is_checked=False)),
        (places, replace(rows, sized=(3, WIDTH + 1)), size),
        (replace(places, most=3), rows, size),
        (places, replace(rows, sized=()), size),
        (places, replace(rows, sized=(3, WIDTH)), size),
        (replace(places, sized=()), replace(rows, sized=()), size),
        (places, rows, replace(size, sized=(1,))),
    ):
        document = document_of(replace(model.plan, outputs=forged))
        write_consistently(folder, dict(model.files), document)
        with pytest.raises(CompileError, match="BW40"):
            check_bundle(folder)
    write_consistently(folder, dict(model.files), document_of(model.plan))
    check_bundle(folder)


def test_a_bound_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, masked(computed)), bounds="wher_0=3")
    assert refusal(error).message == (
        "--bound wher_0=3 matches no loop, and no size that the data decides; there are 'where_0'"
    )
    assert json.loads(json.dumps(refusal(error).help)) == "did you mean 'where_0'?"


def greatest_along_rows(builder: ModelBuilder, _: int, rows: int) -> Sequence[int]:
    first = builder.tensor("first", (WIDTH,), "int64")
    builder.operator("ARG_MAX", [rows, builder.constant("axis", np.array([0], np.int32))], [first])
    return (first,)


def by_numbers_of_the_run(builder: ModelBuilder, _: int, rows: int) -> Sequence[int]:
    """As many of the rows as the network says in each run."""
    total, numbers = (
        builder.tensor("total", (WIDTH,), "float32"),
        builder.tensor("numbers", (WIDTH,), "int32"),
    )
    taken = builder.tensor("taken", (WIDTH, WIDTH), "float32")
    builder.operator("SUM", [rows, builder.constant("axis", np.array([0], np.int32))], [total])
    builder.operator("CAST", [total], [numbers])
    builder.operator("GATHER", [rows, numbers], [taken], axis=0)
    return (taken,)


def by_several_numbers_of_the_run(builder: ModelBuilder, _: int, rows: int) -> Sequence[int]:
    total, numbers = (
        builder.tensor("total", (1, WIDTH), "float32"),
        builder.tensor("ids", (1, WIDTH), "int32"),
    )
    taken = builder.tensor("taken", (1,), "float32")
    first = builder.tensor("first", (1, 2), "int32")
    builder.operator(
        "SUM", [rows, builder.constant("axis", np.array([0], np.int32))], [total], keep_dims=True
    )
    builder.operator("CAST", [total], [numbers])
    begin, size = (builder.constant(n, np.array(v, np.int32)) for n, v in (("b", [0, 0]), ("s", [1, 2])))
    builder.operator("SLICE", [numbers, begin, size], [first])
    builder.operator("GATHER_ND", [rows, first], [taken])
    return (taken,)


def resized(kind: str) -> Writes:
    """The rows made five."""

    def write(builder: ModelBuilder, _: int, rows: int) -> Sequence[int]:
        image, five = builder.tensor("image", (1, 0, 1, WIDTH), "float32"), np.array([5, 1], np.int32)
        result = builder.tensor("five", (1, 5, 1, WIDTH), "float32")
        builder.operator(
            "RESHAPE", [rows, builder.constant("s", np.array([1, -1, 1, WIDTH], np.int32))], [image]
        )
        builder.operator(kind, [image, builder.constant("size", five)], [result])
        return (result,)

    return write


@pytest.mark.parametrize(
    ("write", "named", "axis"),
    [
        (greatest_along_rows, "2 (ARG_MAX)", 0),
        (by_numbers_of_the_run, "4 (GATHER)", 0),
        (by_several_numbers_of_the_run, "5 (GATHER_ND)", 0),
        (resized("RESIZE_NEAREST_NEIGHBOR"), "3 (RESIZE_NEAREST_NEIGHBOR)", 1),
        (resized("RESIZE_BILINEAR"), "3 (RESIZE_BILINEAR)", 1),
    ],
)
def test_an_operator_that_needs_an_element_is_named(
    tmp_path: Path, write: Writes, named: str, axis: int
) -> None:
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, masked(write)))
    assert (refusal(error).code, refusal(error).message) == (
        "BW121",
        f"the data decides extent 'where_0_size', and {named} does not allow it: "
        f"there may be no element along axis {axis}",
    )
    assert (
        refusal(error).help
        == "let the model end before that operator, and compute the rest in the application"
    )


def test_as_many_numbers_as_there_are_rows_need_none(tmp_path: Path) -> None:
    """Each row by its own number: with no row, none is taken."""

    def write(builder: ModelBuilder, places: int, rows: int) -> Sequence[int]:
        flat, zeros = builder.tensor("flat", (0,), "int64"), builder.tensor("zeros", (0,), "int64")
        taken = builder.tensor("taken", (0, WIDTH), "float32")
        builder.operator("RESHAPE", [places, builder.constant("all", np.array([-1], np.int32))], [flat])
        builder.operator("MUL", [flat, builder.constant("zero", np.array([0], np.int64))], [zeros])
        builder.operator("GATHER", [rows, zeros], [taken], axis=0)
        return (taken,)

    content = masked(write)
    folder = bytewright.compile(saved(tmp_path, content)).write(tmp_path / "bundle")
    given = [inputs_of(num_true) for num_true in (0, 1, ROWS)]
    found = run_batch(folder, given, options=BuildOptions(flags=("-O1",), sanitize=True)).outputs
    for own, each in zip(found, given, strict=True):
        assert_same(own, LiteRt(content).run(*each))


def test_the_plan_says_it_as_json(tmp_path: Path) -> None:
    model = bytewright.compile(saved(tmp_path, masked(places_and_rows)))
    outputs = document_of(model.plan)["outputs"]
    assert [output.get("sized") for output in outputs] == [["where_0_size", 1], ["where_0_size", WIDTH], None]
    assert [output.get("most") for output in outputs] == [None, None, ROWS]


def test_the_greatest_of_each_row(tmp_path: Path) -> None:
    model, reference = bytewright.compile(saved(tmp_path, top_k())), LiteRt(top_k())
    x = np.random.default_rng(2).normal(size=(3, ROWS)).astype(np.float32)
    for count in range(1, ROWS + 1):
        *found, size = model.run(x, np.array(count, np.int32))
        assert size.tolist() == [count]
        assert_same(found, reference.run(x, np.array(count, np.int32)))
    *found, size = model.run(x, np.array(0, np.int32))
    assert ([each.shape for each in found], size.tolist()) == ([(3, 0), (3, 0)], [0])
    for count in (-1, ROWS + 1, -(1 << 31), (1 << 31) - 1):
        with pytest.raises(CompileError, match="M_ERROR_BOUND"):
            model.run(x, np.array(count, np.int32))


def test_a_range_needs_a_bound_and_the_refusal_says_one_that_works(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, numbers()))
    assert (refusal(error).code, refusal(error).message) == (
        "BW107",
        "RANGE: how many numbers there are is known in the run alone",
    )
    advice = str(refusal(error).help)
    assert advice == "--bound range_0=N, N being the most that it may be"
    bound = advice.removeprefix("--bound ").split(",")[0].replace("N", "9")
    model, reference = bytewright.compile(saved(tmp_path, numbers()), bounds=bound), LiteRt(numbers())
    for limit in range(2, 12):
        *found, size = model.run(np.array(limit, np.int32))
        assert size.tolist() == [limit - 2]
        assert_same(found, reference.run(np.array(limit, np.int32)))
    with pytest.raises(CompileError, match="M_ERROR_BOUND"):
        model.run(np.array(12, np.int32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (numbers(2), "RANGE: steps of 2 to a limit that the run computes; 1 is supported"),
        (numbers(dtype="float32"), "RANGE: the limit is FLOAT32 that the run computes"),
    ],
)
def test_a_range_of_other_numbers_can_be_computed_from_one_that_there_is(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, content), bounds="RANGE=9")
    assert (refusal(error).code, refusal(error).message, refusal(error).help) == (
        "BW107",
        message,
        "write a range of int32 from 0 in steps of 1 to how many numbers there are, and compute them from it",
    )


def test_several_signatures_have_sizes_of_their_own(tmp_path: Path) -> None:
    """Of operators of one name, beside a signature without, where the file states no shapes that hold for any size."""
    drafts = [ModelBuilder(subgraph_name=name) for name in ("long", "short", "plain")]
    graphs: list[tuple[list[int], list[int]]] = []
    for builder, key, rows in ((drafts[0], "long", ROWS), (drafts[1], "short", 6)):
        mask, places = builder.tensor("mask", (rows,), "bool"), builder.tensor("places", (0, 1), "int64")
        builder.operator("WHERE", [mask], [places])
        graphs.append(([mask], [places]))
        builder.signature(key, {"mask": mask}, {"places": places})
    x, y = (drafts[2].tensor(name, (4,), "float32") for name in ("x", "y"))
    drafts[2].operator("NEG", [x], [y])
    drafts[2].signature("plain", {"x": x}, {"y": y})
    others = [drafts[1].subgraph(*graphs[1]), drafts[2].subgraph([x], [y])]
    path = saved(tmp_path, drafts[0].build(*graphs[0], *others))
    folder = bytewright.compile(path, signature="*", bounds="WHERE=8").write(tmp_path / "bundle")
    check_bundle(folder)
    given = [np.arange(ROWS) % 2 == 0, np.arange(6) > 1, np.ones(4, np.float32), np.zeros(ROWS, bool)]
    names = ["long_", "short_", "plain", "long_"]
    sanitized = BuildOptions(flags=("-O0",), sanitize=True)
    found = run_batch(folder, [[each] for each in given], entries=names, options=sanitized).outputs
    for own, name, each in zip(found, names, given, strict=True):
        wanted = -each if name == "plain" else np.argwhere(each)
        np.testing.assert_array_equal(own[0], wanted, strict=True)
    with pytest.raises(CompileError, match="M_ERROR_BOUND"):
        run_batch(folder, [[np.ones(ROWS, bool)]], entries=["long_"], options=sanitized)


def test_places_of_rows_that_there_are_none_of_read_nothing_outside(tmp_path: Path) -> None:
    """LiteRT refuses such a run; what is taken means nothing."""
    builder = ModelBuilder()
    x = builder.tensor("x", (ROWS, WIDTH), "float32")
    masks = [builder.tensor(name, (ROWS,), "bool") for name in ("first", "second")]
    places = [builder.tensor(f"places_{each}", (0, 1), "int64") for each in masks]
    for mask, each in zip(masks, places, strict=True):
        builder.operator("WHERE", [mask], [each])
    rows, taken = (builder.tensor(name, (0, WIDTH), "float32") for name in ("rows", "taken"))
    builder.operator("GATHER_ND", [x, places[0]], [rows])
    builder.operator("GATHER_ND", [rows, places[1]], [taken])
    folder = bytewright.compile(saved(tmp_path, builder.build([x, *masks], [taken]))).write(tmp_path / "b")
    values, some = np.ones((ROWS, WIDTH), np.float32), np.arange(ROWS) % 3 == 1
    given = [(values, first, some) for first in (some & False, some, some | True)]
    found = run_batch(folder, given, options=BuildOptions(flags=("-O1",), sanitize=True)).outputs
    assert [own[0].shape for own in found] == [(some.sum(), WIDTH)] * 3
    assert (found[2][0] == 1).all()


def test_beside_an_open_axis_a_size_without_a_bound_is_named(tmp_path: Path) -> None:
    """The file cannot be read for any extent until that bound is known."""
    builder = ModelBuilder()
    mask = builder.tensor("mask", (ROWS,), "bool", shape_signature=(-1,))
    places = builder.tensor("places", (0, 1), "int64")
    builder.operator("WHERE", [mask], [places])
    limit, made = builder.tensor("limit", (), "int32"), builder.tensor("made", (0,), "int32")
    start, step = (builder.constant(name, np.int32(value)) for name, value in (("start", 0), ("step", 1)))
    builder.operator("RANGE", [start, limit, step], [made])
    path = saved(tmp_path, builder.build([mask, limit], [places, made]))
    with pytest.raises(CompileError) as error:
        bytewright.compile(path, open="mask:0=time:1..10")
    assert "--bound range_1=N, N being the most that it may be" in {
        each.help for each in error.value.diagnostics
    }
    assert bytewright.compile(path, open="mask:0=time:1..10", bounds="range_1=5").plan.sizes


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "int8"])
def test_distinct_values(tmp_path: Path, dtype: str) -> None:
    model, reference = bytewright.compile(saved(tmp_path, distinct(dtype))), LiteRt(distinct(dtype))
    bounded = bytewright.compile(saved(tmp_path, distinct(dtype)), bounds="UNIQUE=4")
    for most in (1, 2, 4, 100):
        x = np.random.default_rng(most).integers(-most, most, ROWS).astype(dtype)
        *found, size = model.run(x)
        assert size.tolist() == [len(np.unique(x))]
        assert_same(found, reference.run(x))
        if len(np.unique(x)) <= 4:
            assert_same(bounded.run(x), reference.run(x))
        else:
            with pytest.raises(CompileError, match="M_ERROR_BOUND"):
                bounded.run(x)


def test_sums_of_segments(tmp_path: Path) -> None:
    model, reference = bytewright.compile(saved(tmp_path, segments())), LiteRt(segments())
    rng = np.random.default_rng(4)
    for share in (0.0, 0.3, 1.0):
        x = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        own = np.cumsum(np.append(False, rng.random(ROWS - 1) < share)).astype(np.int32)
        found, size = model.run(x, own)
        assert size.tolist() == [own[-1] + 1]
        assert_same([found], reference.run(x, own))


def test_two_sizes_at_once(tmp_path: Path) -> None:
    """Rows that a mask leaves, and as many of the greatest of another list as the run says."""
    builder = ModelBuilder()
    x, mask = builder.tensor("x", (ROWS,), "float32"), builder.tensor("mask", (ROWS,), "bool")
    k = builder.tensor("k", (), "int32")
    places, shaped = builder.tensor("places", (0, 1), "int64"), builder.tensor("shaped", (0,), "int64")
    rows, top, own = (builder.tensor(name, (0,), "float32") for name in ("rows", "top", "own"))
    table, which = builder.tensor("table", (0, 0), "float32"), builder.tensor("which", (0,), "int32")
    builder.operator("WHERE", [mask], [places])
    flat = builder.constant("flat", np.array([-1], np.int32))
    builder.operator("RESHAPE", [places, flat], [shaped])
    builder.operator("GATHER", [x, shaped], [rows], axis=0)
    builder.operator("TOPK_V2", [x, k], [top, which])
    column = builder.tensor("column", (0, 1), "float32")
    builder.operator("RESHAPE", [rows, builder.constant("tall", np.array([-1, 1], np.int32))], [column])
    builder.operator("ADD", [column, top], [table])
    builder.operator("RELU", [rows], [own])
    content = builder.build([x, mask, k], [table, own])
    model, reference = bytewright.compile(saved(tmp_path, content)), LiteRt(content)
    values = np.random.default_rng(6).normal(size=ROWS).astype(np.float32)
    for num_true, count in ((0, 3), (1, 1), (4, 2), (ROWS, ROWS), (5, 7)):
        _, chosen = inputs_of(num_true)
        given = (values, chosen, np.array(count, np.int32))
        *found, first, second = model.run(*given)
        assert (first.item(), second.item()) == (num_true, count)
        assert_same(found, reference.run(*given))


def test_what_the_data_asks_for_is_said_and_a_bound_that_works(tmp_path: Path) -> None:
    file = saved(tmp_path, masked(places_and_rows))
    model = bytewright.compile(file, bounds="where_0=3")
    given = inputs_of(7)
    with pytest.raises(CompileError) as error:
        model.run(*given)
    found = refusal(error)
    assert (found.code, found.message) == (
        "BW205",
        "the data asks for 7 of 'where_0_size', which has room for 3: the run returned M_ERROR_BOUND (-17)",
    )
    advice = str(found.help)
    assert advice == "compile with --bound where_0=7, or give inputs that ask for less"
    *_, size = bytewright.compile(file, bounds=advice.split("--bound ")[1].split(",", maxsplit=1)[0]).run(
        *given
    )
    assert size.tolist() == [7]
    with pytest.raises(CompileError) as error:  # a program of its own does not say how much
        run_batch(model.write(tmp_path / "m"), [given], options=BuildOptions(flags=("-O1",), sanitize=True))
    assert refusal(error).message == (
        "the data asks for more of 'where_0_size', which has room for 3: the run returned M_ERROR_BOUND (-17)"
    )
    with pytest.raises(CompileError) as error:
        bytewright.compile(saved(tmp_path, top_k())).run(
            np.zeros((3, ROWS), np.float32), np.array(-1, np.int32)
        )
    assert refusal(error).message.startswith("the data asks for -1 of ")
    assert refusal(error).help == "give inputs that ask for no less than 0"


@pytest.mark.parametrize("bound", [3, ROWS])
def test_samples_are_compared_and_one_that_asks_for_too_much_is_named(tmp_path: Path, bound: int) -> None:
    file = saved(tmp_path, masked(computed))
    folder = bytewright.compile(file, bounds=f"where_0={bound}").write(tmp_path / "m")
    batch = tuple(inputs_of(num_true) for num_true in (0, 2, 5))
    samples = Samples(batch, len(batch))
    reference = reference_of(Witness.LITERT_REF, file.read_bytes(), read_plan(folder))
    if bound == ROWS:
        found = validate_bundle(folder, samples, reference=reference, model=file, with_layers=True)
        assert (found.reference.num_samples, found.layers is not None) == (3, True)
        return
    with pytest.raises(CompileError) as error:
        validate_bundle(folder, samples, reference=reference, model=file)
    assert refusal(error).code == "BW205"
    assert refusal(error).notes == ("in sample 2, of 3",)


SELF_TEST = r"""
#include "m_self_test.h"

static m_context context;
static int64_t places[10];
static float rows[10 * 4];
static int32_t size;

int main(void)
{
    m_outputs outputs = {places, rows, &size};
    SHOW("tested", m_self_test(&context, &outputs));
    return 0;
}
"""


def test_a_self_test_is_also_of_inputs_that_ask_for_too_much(tmp_path: Path) -> None:
    """Five of random masks: what is refused is to be, with the size that the data asks for."""
    model = bytewright.compile(saved(tmp_path, masked(places_and_rows)), bounds="where_0=5", self_test=5)
    folder = model.write(tmp_path / "m")
    source = folder / "src" / "m_self_test.c"
    text = source.read_text()
    statuses = re.findall(r"\{(M_OK|M_ERROR_BOUND)\}", text)
    assert set(statuses) == {"M_OK", "M_ERROR_BOUND"}
    assert run_c(folder, SELF_TEST, tmp_path) == {"tested": 0}
    for own, other, result in (
        ("M_ERROR_BOUND", "M_OK", -17),
        ("M_OK", "M_ERROR_BOUND", 1 + statuses.index("M_OK")),
    ):
        source.write_text(text.replace(f"{{{own}}}", f"{{{other}}}", 1))
        assert run_c(folder, SELF_TEST, tmp_path) == {"tested": result}
