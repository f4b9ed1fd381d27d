"""Sizes and places that the run computes where a file states shapes: as LiteRT up to the most, and refused beyond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support import computed_sizes as models
from support.computed_sizes import LENGTH, ROWS, WIDTH, Writer
from support.reference import LiteRt

pytestmark = pytest.mark.run

Array = NDArray[Any]
Model = Callable[[Writer], tuple[int, ...]]
X = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


def number(value: int | Sequence[int]) -> Array:
    return np.array(value, np.int32)


def file_of(folder: Path, model: Model) -> tuple[Path, bytes]:
    writer = Writer()
    content = writer.content(*model(writer))
    (folder / "m.tflite").write_bytes(content)
    return folder / "m.tflite", content


def assert_as_the_reference(
    folder: Path,
    model: Model,
    given: Sequence[Sequence[Array]],
    refused: Sequence[Sequence[Array]] = (),
    **options: Any,
) -> bytewright.CompiledModel:
    """All of them by a program with sanitizers, and guards around arrays; then those that ask for too much."""
    path, content = file_of(folder, model)
    compiled = bytewright.compile(path, **options)
    bundle, reference = compiled.write(folder / "bundle"), LiteRt(content)
    check_bundle(bundle)
    found = run_batch(bundle, list(given), options=SANITIZED).outputs
    for inputs, own in zip(given, found, strict=True):
        for output, wanted in zip(own, reference.run(*inputs), strict=False):
            assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_array_equal(output, wanted)
    for inputs in refused:
        with pytest.raises(CompileError, match="M_ERROR_BOUND"):
            run_batch(bundle, [given[0], inputs], options=SANITIZED)
    return compiled


def test_rows_up_to_a_number(tmp_path: Path) -> None:
    """From the end too, and beyond: one size, which data cannot exceed."""
    given = [(X, number(n)) for n in (*range(-ROWS - 2, ROWS + 3), -(1 << 31), (1 << 31) - 1)]
    model = assert_as_the_reference(tmp_path, models.rows_up_to, given)
    found = [(size.name, size.most, size.is_checked) for size in model.plan.outputs[2:]]
    assert found == [("strided_slice_1_size", ROWS, False), ("strided_slice_3_size", 4, False)]
    assert_as_the_reference(tmp_path, models.all_rows_and_more, given[:-1])


@pytest.mark.parametrize("step", [1, 2, -1, -2, 7])
def test_spans_that_the_run_computes(tmp_path: Path, step: int) -> None:
    """As Python's slices, which LiteRT's are, for all numbers in reach of the axis."""
    numbers = range(-LENGTH - 2, LENGTH + 3)
    row = X[0, :LENGTH].copy()
    given = [(row, number(n), number(m)) for n in numbers for m in numbers]
    assert_as_the_reference(tmp_path, partial(models.spans, step), given)


def test_spans_among_masks(tmp_path: Path) -> None:
    x = np.arange(4 * LENGTH * 3, dtype=np.float32).reshape(2, 2, LENGTH, 3)
    numbers = range(-LENGTH - 2, LENGTH + 3)
    given = [(x, number([n]), number([m])) for n in (-2, -1, 0, 1) for m in numbers]
    assert_as_the_reference(tmp_path, models.spans_of_several_axes, given)


def test_a_number_that_cuts_off_nothing_may_be_a_size_of_others(tmp_path: Path) -> None:
    """Beside what is of n elements alone, x[:n] has its own size, as long as nothing asks them to be alike."""
    given = [(X, number(n)) for n in range(ROWS + 3)]
    model = assert_as_the_reference(tmp_path, models.rows_beside_a_number, given, bounds="FILL=12")
    assert [size.upper for size in model.plan.sizes] == [ROWS, 12]


def test_one_number_is_one_size_in_every_operator(tmp_path: Path) -> None:
    given = [(X[:, 0].copy(), number(n)) for n in range(ROWS + 1)]
    model = assert_as_the_reference(
        tmp_path, models.one_number_in_several_operators, given, [(X[:, 0].copy(), number(ROWS + 1))]
    )
    assert [size.name for size in model.plan.sizes] == ["strided_slice_1_size"]


@pytest.mark.parametrize("name", ["RANGE", "range_2", "strided_slice_*", "FILL"])
def test_a_bound_of_any_of_its_operators_is_one_of_the_size(tmp_path: Path, name: str) -> None:
    path, _ = file_of(tmp_path, models.one_number_in_several_operators)
    assert [size.upper for size in bytewright.compile(path, bounds=f"{name}=6").plan.sizes] == [6]


def test_numbers_that_are_computed_of_one(tmp_path: Path) -> None:
    assert_as_the_reference(
        tmp_path, models.odd_rows, [(X, number(n)) for n in range(-1, 5)], [(X, number(n)) for n in (5, -2)]
    )


def test_a_number_that_is_less_than_another(tmp_path: Path) -> None:
    given = [(number(n),) for n in range(3, 8)]
    model = assert_as_the_reference(
        tmp_path, models.rows_before, given, [(number(n),) for n in (2, 8)], bounds="FILL=4"
    )
    assert [size.upper for size in model.plan.sizes] == [4]


def test_two_sizes_of_one_operator(tmp_path: Path) -> None:
    value = np.array(-(1 << 40), np.int64)
    given = [(number([n, m]), value) for n in range(4) for m in range(4)]
    refused = [(number(shape), value) for shape in ([4, 1], [1, 4], [-1, 1])]
    model = assert_as_the_reference(tmp_path, models.filled, given, refused, bounds="FILL=3")
    assert [size.name for size in model.plan.sizes] == ["fill_0_size", "fill_0_1_size"]


def test_what_is_repeated(tmp_path: Path) -> None:
    x = X[:2, :3].copy()
    assert_as_the_reference(
        tmp_path, models.repeated, [(x, number(n)) for n in range(6)], [(x, number(6))], bounds="TILE=5"
    )


def test_a_mask_as_long_as_the_longest(tmp_path: Path) -> None:
    given = [(number([a, b, 1]),) for a in (0, 3, 6) for b in (2, 5)]
    assert_as_the_reference(tmp_path, models.sequence_mask, given, [(number([7, 0, 0]),)], bounds="RANGE=6")


def test_parts_of_computed_begin_and_size(tmp_path: Path) -> None:
    """A size of -1 is all that remain."""
    places = [((0, 0), (10, 4)), ((10, 1), (0, 3)), ((3, 2), (2, 1)), ((9, 3), (1, 1)), ((0, 0), (0, 0))]
    places += [((2, 1), (-1, -1)), ((10, 0), (-1, 4))]
    outside = [((0, 0), (11, 1)), ((0, 0), (1, -2)), ((3, 0), (8, 1)), ((-1, 0), (2, 1)), ((11, 0), (0, 1))]
    outside += [
        ((11, 0), (-1, 1)),
        ((-1, 0), (-1, 1)),
        ((0, -(1 << 31)), (1, -1)),
        ((1, 1), ((1 << 31) - 1, 1)),
    ]
    given, refused = (
        [(X, number(begin), number(size)) for begin, size in each] for each in (places, outside)
    )
    assert_as_the_reference(tmp_path, models.part, given, refused)
    for inputs in refused[:-1]:  # the last one leaves 32 bits in LiteRT
        with pytest.raises(RuntimeError, match=r"Invalid (begin|size)"):
            LiteRt(tmp_path / "m.tflite").run(*inputs)


def test_what_remains_from_computed_begins_on(tmp_path: Path) -> None:
    given = [(X, number(begin)) for begin in ((0, 0), (10, 1), (3, 4), (10, 4), (9, 2))]
    assert_as_the_reference(
        tmp_path, models.rest, given, [(X, number(begin)) for begin in ((11, 0), (0, -1))]
    )


def test_a_part_of_fixed_size_that_is_not_all_there_is_refused(tmp_path: Path) -> None:
    outside = (-(1 << 31), -1, ROWS - 2, (1 << 31) - 1)
    given, refused = ([(X, number(n)) for n in each] for each in (range(ROWS - 2), outside))
    model = assert_as_the_reference(tmp_path, models.window, given, refused)
    assert [output.most for output in model.plan.outputs] == [0, 1]


def test_a_row_needs_no_bound_and_nothing_outside_is_read(tmp_path: Path) -> None:
    """LiteRT reads the first one for those before it, and other memory for those behind the last."""
    found = assert_as_the_reference(tmp_path, models.row, [(X, number(n)) for n in range(WIDTH)])
    assert not found.plan.sizes
    ends = [(X, number(n)) for n in (-(1 << 31), (1 << 31) - 1)]
    first, last = (each[0] for each in run_batch(tmp_path / "bundle", ends, options=SANITIZED).outputs)
    assert (first.reshape(-1)[-1], last.reshape(-1)[-1]) == (X[0, 3], X[9, 3])


def test_a_part_that_its_end_cuts_off_is_refused(tmp_path: Path) -> None:
    """LiteRT gives fewer rows then: behind the extent, and between the end and the front."""
    whole = (*range(-ROWS, -3), *range(ROWS - 2))
    cut_off = (-(1 << 31), -ROWS - 2, -3, -1, ROWS - 2, (1 << 31) - 3, (1 << 31) - 1)
    given, refused = ([(X, number(n)) for n in each] for each in (whole, cut_off))
    model = assert_as_the_reference(tmp_path, models.window_of_rows, given, refused)
    assert [output.most for output in model.plan.outputs] == [0, 0, 1, 1]


def test_a_number_that_does_not_fit_a_shape_is_refused(tmp_path: Path) -> None:
    """As LiteRT refuses it, whether the extent that it must be is fixed or follows from another size."""
    given = [(X, *map(number, each)) for each in ((6, 3, 10), (20, 10, 10), (-1, 2, 10), (0, 0, 10))]
    misfits = ((5, 3, 10), (0, 3, 10), (-2, 3, 10), (5, 0, 10), (6, 3, 9), (6, 3, -1))
    refused = [(X, *map(number, each)) for each in misfits]
    assert_as_the_reference(tmp_path, models.rows_in_a_shape, given, refused)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (models.ends_that_are_sizes, "sizes in place of ends, and numbers that the run computes"),
        (models.rows_behind_the_last, "how many elements are taken can be 0 at most"),
    ],
)
def test_what_has_no_meaning_is_refused(tmp_path: Path, model: Model, message: str) -> None:
    path, _ = file_of(tmp_path, model)
    with pytest.raises(CompileError, match=f"BW107.*STRIDED_SLICE: {message}"):
        bytewright.compile(path)


def test_an_element_counted_from_the_end(tmp_path: Path) -> None:
    assert_as_the_reference(tmp_path, models.row, [(X, number(n)) for n in range(-WIDTH, WIDTH)])


def test_rows_from_a_number_on_are_those_that_there_are(tmp_path: Path) -> None:
    """Numbers from the end, and beyond: as Python's slices."""
    model = assert_as_the_reference(tmp_path, models.rows_from, [(X, number(n)) for n in range(-12, 13)])
    assert not any(output.is_checked for output in model.plan.outputs)
    some = (-11, -3, 0, 2, 5, 10, 12)
    given = [(X, number(n), number(m)) for n in some for m in some]
    assert_as_the_reference(tmp_path, models.rows_between, given)


def test_a_shape_of_how_many_are_true(tmp_path: Path) -> None:
    given = [(X, np.arange(ROWS) < count) for count in range(ROWS + 1)]
    assert_as_the_reference(tmp_path, models.counted_mask, given)


def test_as_many_boxes_as_the_run_says(tmp_path: Path) -> None:
    """Fewer than there are, and more."""
    rng = np.random.default_rng(3)
    boxes, scores = rng.random((9, 4), np.float32), rng.random(9, np.float32)
    given = [(boxes, scores, number(most)) for most in range(13)]
    more = [(boxes, scores, number(most)) for most in (13, -1)]
    assert_as_the_reference(tmp_path, models.best_boxes, given, more, bounds="NON_MAX*=12")


def test_a_size_without_a_bound_is_refused_with_one_that_works(tmp_path: Path) -> None:
    path, _ = file_of(tmp_path, models.filled)
    with pytest.raises(CompileError) as error:
        bytewright.compile(path)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("BW107", "FILL: the shape is known in the run alone")
    assert diagnostic.help == "--bound fill_0=N, N being the most that it may be"
    assert bytewright.compile(path, bounds="fill_0=2").plan.sizes
