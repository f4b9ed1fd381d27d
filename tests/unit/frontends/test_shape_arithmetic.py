"""Arithmetic on shapes is computed at import, as LiteRT computes it, for every batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite import import_content
from bytewright.frontends.tflite import known as growing
from bytewright.frontends.tflite.known import UNKNOWN, Known
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.graph.open_batch import open_batch
from support.evaluation import evaluate_function
from support.reference import LiteRt
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

Array = NDArray[Any]
Operand = Sequence[int] | Sequence[float] | Array
IMAGE = (1, 6, 4)


class Draft:
    """A model whose outputs are what operators make of constants and of the shape of its one input."""

    def __init__(self, shape: Sequence[int] = IMAGE) -> None:
        self.builder = ModelBuilder()
        self.x = self.builder.tensor("x", shape, "float32", shape_signature=(-1, *shape[1:]))
        self.outputs: list[int] = []
        self._count = 0

    def constant(self, values: Any, dtype: str = "int32") -> int:
        self._count += 1
        return self.builder.constant(f"c{self._count}", np.asarray(values, dtype=dtype))

    def value(self, dtype: str = "int32", shape: Sequence[int] = ()) -> int:
        self._count += 1
        return self.builder.tensor(f"v{self._count}", shape, dtype)

    def node(self, kind: str, *operands: int, dtype: str = "int32", **options: Any) -> int:
        result = self.value(dtype)
        self.builder.operator(kind, operands, [result], **options)
        return result

    def shape(self) -> int:
        return self.node("SHAPE", self.x)

    def output(self, tensor: int) -> None:
        self.outputs.append(tensor)

    def result(self, kind: str, *operands: int, dtype: str = "int32", **options: Any) -> None:
        """An operator whose result is an output, as int32 if it is boolean."""
        value = self.node(kind, *operands, dtype=dtype, **options)
        self.output(self.node("CAST", value) if dtype == "bool" else value)

    def build(self) -> bytes:
        # Something must depend on the input.
        y = self.builder.tensor("y", self.builder._tensors[self.x].shape, "float32")
        self.builder.operator("RELU", [self.x], [y])
        return self.builder.build([self.x], [*self.outputs, y])


def assert_equals_litert(draft: Draft) -> None:
    content = draft.build()
    module = import_content(content, "model.tflite")
    assert [node.operation.name for node in module.graph.nodes] == ["clamp"], "nothing of it is left to run"
    constants = {constant.name: constant.data.array for constant in module.constants}
    wanted = LiteRt(content).run(np.zeros(IMAGE, np.float32))[:-1]
    for name, expected in zip(module.graph.results, wanted, strict=False):
        found = constants[name]
        assert found.dtype == expected.dtype, name
        np.testing.assert_array_equal(found, expected, err_msg=name)


def integers(shape: Sequence[int], low: int = -9, high: int = 10, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape)


def arithmetic(draft: Draft, dtype: str) -> None:
    numbers, others = draft.constant(integers((2, 3)), dtype), draft.constant(integers((3,), seed=1), dtype)
    divisors = draft.constant([[-3], [2]], dtype)
    result = partial(draft.result, dtype=dtype)
    for kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"):
        result(kind, numbers, others)
    # LiteRT divides no int64 but for the remainder.
    for kind in ("FLOOR_MOD",) if dtype == "int64" else ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        if (kind, dtype) != ("FLOOR_MOD", "float32"):
            result(kind, numbers, divisors)
    if dtype == "int32":
        result("POW", numbers, draft.constant([0, 1, 3], dtype))
    result("NEG", numbers)
    for kind in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        draft.result(kind, numbers, others, dtype="bool")


def logic(draft: Draft) -> None:
    flags, more = draft.constant([[True], [False]], "bool"), draft.constant([True, False, True], "bool")
    draft.result("LOGICAL_AND", flags, more, dtype="bool")
    draft.result("LOGICAL_OR", flags, more, dtype="bool")
    draft.result("LOGICAL_NOT", more, dtype="bool")
    draft.result("EQUAL", more, flags, dtype="bool")
    first, second = draft.constant(integers((2, 3))), draft.constant(integers((2, 3), seed=1))
    draft.result("SELECT", draft.constant([True, False], "bool"), first, second)
    draft.result("SELECT", draft.constant(integers((2, 3), 0, 2), "bool"), first, second)
    draft.result("SELECT_V2", more, first, draft.constant([[7]]))
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        table = draft.constant(integers((3, 4), 0, 2, seed=4), "bool")
        draft.result(kind, table, draft.constant([1]), dtype="bool", keep_dims=True)


def moves(draft: Draft) -> None:
    table = draft.constant(integers((2, 3)))
    draft.result("PACK", table, draft.constant(integers((2, 3), seed=1)), values_count=2, axis=-2)
    draft.result("GATHER", table, draft.constant([[2, 0], [1, 1]]), axis=-1)
    draft.result("REVERSE_V2", table, draft.constant([-1]))
    draft.result("TILE", table, draft.constant([2, 3]))
    draft.result("BROADCAST_TO", draft.constant([[1], [2]]), draft.constant([3, 2, 2]))
    draft.result("BROADCAST_ARGS", draft.constant([4, 1, 3]), draft.constant([2, 1]))
    draft.result("BROADCAST_ARGS", draft.constant([5]), draft.constant([0, 2, 1, 5]))
    draft.result("FILL", draft.constant([2, 3]), draft.constant(5))
    draft.result("FILL", draft.constant([], "int32"), draft.constant(0.5, "float32"), dtype="float32")
    draft.result("ZEROS_LIKE", table)
    draft.result("SPLIT", draft.constant(1), draft.constant([[1], [2]]), num_splits=1)
    parts = [draft.value(), draft.value(), draft.value()]
    draft.builder.operator("UNPACK", [table], parts, num=3, axis=1)
    for part in parts:
        draft.output(part)


def numbers(draft: Draft) -> None:
    real = draft.constant([-2.5, -0.5, 0.0, 1.5, 3.99], "float32")
    draft.result("CAST", real)
    draft.result("CAST", real, dtype="bool")
    draft.result("CAST", draft.constant([-7, 0, 300]), dtype="float32")
    draft.result("CAST", draft.constant([-7, 0, 300]), dtype="int64")
    draft.result("FLOOR", real, dtype="float32")
    draft.result("ABS", draft.constant(integers((5,))))
    for start, limit, delta in ((0, 7, 2), (5, -4, -3)):
        draft.result("RANGE", *map(draft.constant, (start, limit, delta)))
    draft.result("SHAPE", draft.node("RANGE", *map(draft.constant, (3, 3, 1))))
    draft.result("RANGE", *(draft.constant(n, "float32") for n in (0.5, 2.0, 0.4)), dtype="float32")
    table = integers((2, 3, 4), seed=2)
    for dtype in ("int32", "int64"):
        for kind in ("REDUCE_PROD", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
            source = draft.constant(table, dtype)
            draft.result(kind, source, draft.constant([-1, 0]), dtype=dtype)
            draft.result(kind, source, draft.constant([1]), dtype=dtype, keep_dims=True)


def of_a_shape(draft: Draft) -> None:
    draft.output(draft.shape())
    draft.result("SHAPE", draft.x, dtype="int64", out_type="INT64")
    draft.result("RANK", draft.x)
    draft.result("REDUCE_PROD", draft.shape(), draft.constant([0]))
    tail = draft.node("GATHER", draft.shape(), draft.constant([1, 2]))
    draft.result("CONCATENATION", draft.constant([9]), tail)
    draft.result("ZEROS_LIKE", draft.x, dtype="float32")


GROUPS: dict[str, Callable[[Draft], None]] = {
    "int32": partial(arithmetic, dtype="int32"),
    "int64": partial(arithmetic, dtype="int64"),
    "logic": logic,
    "moves": moves,
    "numbers": numbers,
    "shapes": of_a_shape,
}


@pytest.mark.parametrize("group", GROUPS)
def test_what_shapes_depend_on_is_computed_as_litert_does(group: str) -> None:
    draft = Draft()
    GROUPS[group](draft)
    assert_equals_litert(draft)


def test_every_operator_that_folds_is_compared_with_litert() -> None:
    compared: set[str] = set()
    for group in GROUPS.values():
        draft = Draft()
        group(draft)
        compared |= {operator.name for operator in draft.builder._operators}
    # LiteRT's reference kernels have no CEIL.
    assert set(FOLDED) - compared == {"CEIL"}


# Growth with the batch

BATCH_MAX = 5


def _drawn(generator: np.random.Generator) -> Known:
    shape = (3,) if generator.integers(2) else (2, 3)
    growth = generator.integers(-2, 3, shape) * generator.integers(0, 2, shape)
    return Known(generator.integers(-6, 13, shape), growth)


FUNCTIONS: dict[str, tuple[Callable[[Known, Known], Known], Callable[[Array, Array], Array]]] = {
    "added": (growing.added, np.add),
    "subtracted": (growing.subtracted, np.subtract),
    "multiplied": (growing.multiplied, np.multiply),
    "divided": (partial(growing.divided, np.floor_divide), np.floor_divide),
    "remainder": (partial(growing.remainder, np.mod), np.mod),
    "less": (partial(growing.compared, np.less, batch_max=BATCH_MAX), np.less),
    "equal": (partial(growing.compared, np.equal, batch_max=BATCH_MAX), np.equal),
    "computed": (partial(growing.computed, np.power), np.power),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_growth_gives_the_result_of_every_batch_or_is_unknown(name: str) -> None:
    """numpy on the operands of each batch, against what the growth says."""
    of_known, of_arrays = FUNCTIONS[name]
    generator = np.random.default_rng(3)
    num_known = num_unknown = 0
    for _ in range(120):
        first, second = _drawn(generator), _drawn(generator)
        if name in ("divided", "remainder"):
            second = Known(np.where(second.array == 0, 3, np.abs(second.array)), abs(second.growth))
        if name == "computed":
            second = Known(abs(second.array), abs(second.growth))
        result = of_known(first, second)
        is_known = result.growth != UNKNOWN
        for batch in range(1, BATCH_MAX + 1):
            wanted = of_arrays(first.at(batch), second.at(batch)).astype(np.int64)
            np.testing.assert_array_equal(result.at(batch)[is_known], wanted[is_known])
        num_known += int((is_known & (result.growth != 0)).sum())
        num_unknown += int((~is_known).sum())
    assert name in ("added", "subtracted") or num_unknown > 0
    assert name in ("remainder", "less", "equal", "computed") or num_known > 0


def test_a_choice_grows_as_what_is_chosen() -> None:
    condition = Known(np.array([True, False, True]), np.array([0, 0, UNKNOWN]))
    first, second = Known(np.arange(3), np.array([1, 2, 3])), Known(np.arange(3), np.array([4, 5, 6]))
    assert growing.chosen(condition, first, second).growth.tolist() == [1, 5, UNKNOWN]


def test_growth_that_could_leave_64_bits_is_unknown() -> None:
    large = Known(np.array([2**40]), np.array([2**40]))
    assert growing.multiplied(large, growing.fixed(np.array([2**40]))).growth.tolist() == [UNKNOWN]


# Models


def flattened(draft: Draft) -> int:
    """Keras's Flatten: the batch, and one extent that is left open or multiplied out."""
    first, second = draft.constant([0]), draft.constant([1])
    batch = draft.node("STRIDED_SLICE", draft.shape(), first, second, second, shrink_axis_mask=1)
    shape = draft.node("PACK", batch, draft.constant(-1), values_count=2)
    y = draft.builder.tensor("out", (1, 24), "float32", shape_signature=(-1, 24))
    draft.builder.operator("RESHAPE", [draft.x, shape], [y])
    return y


def tensordot(draft: Draft) -> int:
    """Keras's Dense on three axes: rows of all samples, and back."""
    shape = draft.shape()
    free = draft.node("GATHER", shape, draft.constant([0, 1]))
    kept = draft.node("GATHER", shape, draft.constant([2]))
    rows = draft.node("REDUCE_PROD", free, draft.constant([0]))
    depth = draft.node("REDUCE_PROD", kept, draft.constant([0]))
    flat_shape = draft.node("PACK", rows, depth, values_count=2)
    flat = draft.builder.tensor("flat", (1, 1), "float32", shape_signature=(-1, -1))
    draft.builder.operator("RESHAPE", [draft.x, flat_shape], [flat])
    weights = draft.constant(integers((3, 4)) / 4, "float32")
    product = draft.builder.tensor("product", (1, 3), "float32", shape_signature=(-1, 3))
    draft.builder.operator(
        "FULLY_CONNECTED", [flat, weights, draft.constant([1, 2, 3], "float32")], [product]
    )
    back = draft.node("CONCATENATION", free, draft.constant([3]))
    y = draft.builder.tensor("out", (1, 6, 3), "float32", shape_signature=(-1, 6, 3))
    draft.builder.operator("RESHAPE", [product, back], [y])
    return y


def initial_state(draft: Draft) -> int:
    """A recurrent layer's first state: zeros of the batch, through a layer of their own."""
    batch = draft.node("GATHER", draft.shape(), draft.constant([0]))
    shape = draft.node("CONCATENATION", batch, draft.constant([6, 4]))
    state = draft.node("FILL", shape, draft.constant(0.25, "float32"), dtype="float32")
    doubled = draft.node("ADD", state, state, dtype="float32")
    return draft.node("ADD", draft.x, doubled, dtype="float32")


def sliced_to_the_batch(draft: Draft) -> int:
    """`x[:batch, 1:, :3]` with the batch as a number, as SLICE and as STRIDED_SLICE."""
    batch = draft.node("GATHER", draft.shape(), draft.constant([0]))
    size = draft.node("CONCATENATION", batch, draft.constant([5, 3]))
    end = draft.node("CONCATENATION", batch, draft.constant([6, 3]))
    begin = draft.constant([0, 1, 0])
    first = draft.node("SLICE", draft.x, begin, size, dtype="float32")
    second = draft.node("STRIDED_SLICE", draft.x, begin, end, draft.constant([1, 1, 1]), dtype="float32")
    return draft.node("MUL", first, second, dtype="float32")


def broadcast_together(draft: Draft) -> int:
    """Keras 2's GroupNormalization: a scale is broadcast to what its shape and the value's have together."""
    together = draft.node("BROADCAST_ARGS", draft.shape(), draft.constant([1, 1, 4]))
    scale = draft.constant(integers((1, 1, 4)) / 4, "float32")
    scale = draft.node("BROADCAST_TO", scale, together, dtype="float32")
    return draft.node("MUL", draft.x, scale, dtype="float32")


def broadcast_samples(draft: Draft) -> int:
    """A row of each sample, to all rows of it."""
    mean = draft.builder.tensor("mean", (1, 1, 4), "float32", shape_signature=(-1, 1, 4))
    draft.builder.operator("MEAN", [draft.x, draft.constant([1])], [mean], keep_dims=True)
    rows = draft.node("BROADCAST_TO", mean, draft.shape(), dtype="float32")
    return draft.node("SUB", draft.x, rows, dtype="float32")


def tiled_by_the_batch(draft: Draft) -> int:
    """A table of positions, or the token of a class, for each sample."""
    batch = draft.node("GATHER", draft.shape(), draft.constant([0]))
    multiples = draft.node("CONCATENATION", batch, draft.constant([2, 1]))
    table = draft.constant(integers((1, 3, 4)) / 4, "float32")
    table = draft.node("TILE", table, multiples, dtype="float32")
    return draft.node("ADD", draft.x, table, dtype="float32")


MODELS = {
    each.__name__: each
    for each in (
        flattened,
        tensordot,
        initial_state,
        sliced_to_the_batch,
        broadcast_together,
        broadcast_samples,
        tiled_by_the_batch,
    )
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch_max", [None, 3])
def test_shapes_that_models_compute(name: str, batch_max: int | None) -> None:
    draft = Draft()
    output = MODELS[name](draft)
    content = draft.builder.build([draft.x], [output])
    module = import_content(content, "model.tflite", batch_max=batch_max)
    if batch_max is not None:
        module = open_batch(module, batch_max)
        assert isinstance(module.outputs[0].type.shape[0], ir.Symbol)
    for batch in range(1, (batch_max or 1) + 1):
        x = (integers((batch, *IMAGE[1:]), seed=batch) / 8).astype(np.float32)
        (result,) = module.graph.results
        found: Array = evaluate_function(module.graph, module.constants, (x,))[result]
        np.testing.assert_allclose(found, LiteRt(content).run(x)[0], rtol=1e-6)


def refused(draft: Draft, outputs: Sequence[int], batch_max: int | None = None) -> tuple[Diagnostic, ...]:
    content = draft.builder.build([draft.x], outputs)
    with pytest.raises(CompileError) as caught:
        open_batch(import_content(content, "model.tflite", batch_max=batch_max), batch_max or 1)
    return caught.value.diagnostics


def scaled_by_the_batch(draft: Draft) -> int:
    size = draft.node("CAST", draft.node("GATHER", draft.shape(), draft.constant([0])), dtype="float32")
    return draft.node("MUL", draft.x, size, dtype="float32")


def reshaped_by_its_square(draft: Draft) -> int:
    shape = draft.shape()
    return draft.node("RESHAPE", draft.x, draft.node("MUL", shape, shape), dtype="float32")


def batch_behind(draft: Draft) -> int:
    shape = draft.node("REVERSE_V2", draft.shape(), draft.constant([0]))
    return draft.node("RESHAPE", draft.x, shape, dtype="float32")


def sliced_without_a_sample(draft: Draft) -> int:
    batch = draft.node("GATHER", draft.shape(), draft.constant([0]))
    end = draft.node("SUB", batch, draft.constant([0]))
    return draft.node(
        "STRIDED_SLICE", draft.x, draft.constant([-1]), end, draft.constant([1]), dtype="float32"
    )


def counted_up(draft: Draft) -> int:
    size = draft.node("REDUCE_MIN", draft.shape(), draft.constant([0]))
    steps = draft.node("RANGE", draft.constant(0), size, draft.constant(1))
    return draft.node("ADD", draft.x, draft.node("CAST", steps, dtype="float32"), dtype="float32")


def broadcast_beside_the_batch(draft: Draft) -> int:
    batch = draft.node("GATHER", draft.shape(), draft.constant([0]))
    more = draft.node("CONCATENATION", batch, draft.constant([1, 6, 4]))
    return draft.node("BROADCAST_TO", draft.x, more, dtype="float32")


def broadcast_with_the_batch(draft: Draft) -> int:
    together = draft.node("BROADCAST_ARGS", draft.shape(), draft.constant([2, 6, 4]))
    return draft.node("FILL", together, draft.constant(1.0, "float32"), dtype="float32")


def sum_over_the_batch(draft: Draft) -> int:
    state = draft.node("FILL", draft.shape(), draft.constant(1.0, "float32"), dtype="float32")
    mean = draft.node("MEAN", state, draft.constant([0]), dtype="float32")
    return draft.node("ADD", draft.x, mean, dtype="float32")


def rows_of_one_sample(draft: Draft) -> int:
    """Rows of all samples become those of one, of which a mean is taken."""
    rows = draft.node("RESHAPE", draft.x, draft.constant([1, -1, 4]), dtype="float32")
    return draft.node("MEAN", rows, draft.constant([1]), dtype="float32")


def rows_of_one_of_known_rank(draft: Draft) -> int:
    """The same with a shape that is computed, and whose last extent is open."""
    first = draft.node("SUB", draft.constant([3]), draft.constant([2]))
    shape = draft.node("CONCATENATION", first, draft.constant([4, -1]))
    rows = draft.node("RESHAPE", draft.x, shape, dtype="float32")
    return draft.node("MEAN", rows, draft.constant([2]), dtype="float32")


@pytest.mark.parametrize(
    "build",
    [
        scaled_by_the_batch,
        reshaped_by_its_square,
        batch_behind,
        sliced_without_a_sample,
        counted_up,
        broadcast_beside_the_batch,
        broadcast_with_the_batch,
        sum_over_the_batch,
        rows_of_one_sample,
        rows_of_one_of_known_rank,
    ],
)
def test_what_holds_for_one_batch_alone_is_refused_for_more(build: Callable[[Draft], int]) -> None:
    """The numbers of one sample must not stand in a model for several."""
    draft = Draft()
    diagnostics = refused(draft, [build(draft)], batch_max=4)
    assert {diagnostic.code for diagnostic in diagnostics} == {"BW111"}
    assert "--batch-max" in (diagnostics[0].help or "")


@pytest.mark.parametrize(
    "build",
    [
        scaled_by_the_batch,
        counted_up,
        sum_over_the_batch,
        rows_of_one_sample,
        rows_of_one_of_known_rank,
    ],
)
def test_the_same_compile_for_one_sample(build: Callable[[Draft], int]) -> None:
    draft = Draft()
    content = draft.builder.build([draft.x], [build(draft)])
    module = import_content(content, "model.tflite")
    x = integers(IMAGE).astype(np.float32)
    (result,) = module.graph.results
    found = evaluate_function(module.graph, module.constants, (x,))[result]
    np.testing.assert_array_equal(found, LiteRt(content).run(x)[0])


def test_a_file_for_one_sample_may_call_its_first_extent_one() -> None:
    """Then every number is one sample's, so each is computed as it would be alone."""
    draft = Draft()
    draft.x = draft.builder.tensor("fixed", IMAGE, "float32")
    content = draft.builder.build([draft.x], [rows_of_one_sample(draft)])
    module = open_batch(import_content(content, "model.tflite", batch_max=3), 3)
    x = integers((3, *IMAGE[1:])).astype(np.float32)
    (result,) = module.graph.results
    found = evaluate_function(module.graph, module.constants, (x,))[result]
    alone = [LiteRt(content).run(sample[None])[0] for sample in x]
    np.testing.assert_array_equal(found, np.concatenate(alone))


def drawn(seed: int) -> bytes:
    """Random arithmetic on the shape, and a use of its result: a factor, a shape to fill, or one to reshape to."""
    generator = np.random.default_rng(seed)
    draft = Draft()
    lists = [draft.shape()]
    numbers = [draft.node("GATHER", lists[0], draft.constant(axis)) for axis in (0, 0, 2)]

    def number() -> int:
        own = draft.constant(int(generator.integers(1, 7)))
        return own if generator.integers(4) == 0 else numbers[generator.integers(len(numbers))]

    for _ in range(generator.integers(1, 7)):
        kind = str(
            generator.choice(
                ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "FLOOR_DIV", "PACK", "REDUCE", "CHOOSE"]
            )
        )
        if kind == "PACK":
            lists.append(draft.node("PACK", number(), number(), values_count=2))
        elif kind == "REDUCE":
            kind = str(generator.choice(["REDUCE_PROD", "SUM", "REDUCE_MAX", "REDUCE_MIN"]))
            numbers.append(draft.node(kind, lists[-1], draft.constant([0])))
        elif kind == "CHOOSE":
            kind = str(generator.choice(["LESS", "EQUAL", "GREATER_EQUAL"]))
            condition = draft.node(kind, number(), number(), dtype="bool")
            numbers.append(draft.node("SELECT_V2", condition, number(), number()))
        else:
            divisor = draft.constant(int(generator.integers(1, 4)))
            numbers.append(draft.node(kind, number(), divisor if kind == "FLOOR_DIV" else number()))
    match seed % 3:
        case 0:
            used = draft.node("CAST", numbers[-1], dtype="float32")
            result = draft.node("MUL", draft.x, used, dtype="float32")
        case 1:
            shape = draft.node("PACK", number(), draft.constant(6), draft.constant(4), values_count=3)
            used = draft.node("FILL", shape, draft.constant(0.5, "float32"), dtype="float32")
            result = draft.node("ADD", draft.x, used, dtype="float32")
        case _:
            shape = draft.node("PACK", numbers[0], number(), draft.constant(-1), values_count=3)
            result = draft.node("RESHAPE", draft.x, shape, dtype="float32")
    return draft.builder.build([draft.x], [result])


def test_random_arithmetic_is_right_for_every_batch_or_refused() -> None:
    counts = {"equal": 0, "BW107": 0, "BW111": 0}
    for seed in range(900 if THOROUGH else 45):
        content = drawn(seed)
        for batch_max in (None, 3):
            try:
                module = import_content(content, "model.tflite", batch_max=batch_max)
                module = module if batch_max is None else open_batch(module, batch_max)
            except CompileError as error:
                counts[error.diagnostics[0].code] += 1
                continue
            for batch in range(1, (batch_max or 1) + 1):
                x = (integers((batch, *IMAGE[1:]), seed=batch) / 8).astype(np.float32)
                found = evaluate_function(module.graph, module.constants, (x,))[module.graph.results[0]]
                np.testing.assert_array_equal(found, LiteRt(content).run(x)[0], err_msg=f"seed {seed}")
                counts["equal"] += 1
    assert counts["equal"] > 2 * counts["BW111"] > 0, counts


def test_damaged_files_are_refused_or_read() -> None:
    generator = np.random.default_rng(5)
    for build in GROUPS.values():
        draft = Draft()
        build(draft)
        content = draft.build()
        for _ in range(40):
            damaged = bytearray(content)
            for position in generator.integers(0, len(content), 3):
                damaged[position] = int(generator.choice([0, 1, 127, 128, 255]))
            with contextlib.suppress(CompileError):
                import_content(bytes(damaged), "model.tflite", batch_max=3)


def test_a_long_reduction_is_refused_before_it_is_computed() -> None:
    draft = Draft()
    long = draft.node("TILE", draft.constant([1, 2]), draft.constant([1 << 20]))
    total = draft.node("SUM", long, draft.constant([0]))
    assert "too long" in refused(draft, [total, draft.x])[0].message


def test_the_same_operators_on_activations_are_refused_once() -> None:
    """Without a second message about the types of what comes of them."""
    draft = Draft()
    halves = draft.node("BROADCAST_ARGS", draft.x, draft.x)
    packed = draft.node("RESHAPE", halves, draft.constant([24]))
    (diagnostic,) = refused(draft, [draft.node("BROADCAST_ARGS", packed, packed)])
    assert diagnostic.code == "BW104"
    assert [note.split(",")[0] for note in diagnostic.notes] == [
        "operator 0 (BROADCAST_ARGS)",
        "operator 2 (BROADCAST_ARGS)",
    ]
    assert "BROADCAST_ARGS: it is computed at import where only shapes" in str(diagnostic.help)


@pytest.mark.parametrize(
    ("kind", "operands", "message"),
    [
        ("FLOOR_DIV", ([3], [0]), "a division by 0"),
        ("FLOOR_MOD", ([3], [0]), "a division by 0"),
        ("POW", ([3], [-1]), "negative power"),
        ("GATHER", ([3, 4], [2]), "outside of the extent 2"),
        ("RANGE", (0, 5, 0), "delta is 0"),
        ("RANGE", (0, 5, -1), "delta leads away"),
        ("FILL", ([-1], 0), "negative extent"),
        ("FILL", ([1 << 15, 1 << 15], 0), "too long"),
        ("TILE", ([1, 2], [1 << 30]), "too long"),
        ("RANGE", (0, 1 << 30, 1), "too long"),
        ("PACK", ([1, 2], [3]), "operands of shapes [2] and [1]"),
        ("ADD", ([1, 2], [1, 2, 3]), "do not broadcast"),
    ],
)
def test_what_cannot_be_computed_is_refused(kind: str, operands: tuple[Any, ...], message: str) -> None:
    draft = Draft()
    options: dict[str, Any] = {"values_count": 2} if kind == "PACK" else {}
    result = draft.node(kind, *(draft.constant(each) for each in operands), **options)
    (diagnostic,) = refused(draft, [result, draft.x])
    assert diagnostic.code == "BW107"
    assert message in diagnostic.message
