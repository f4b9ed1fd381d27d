"""Checks that `infer` of several operators makes: number, type and rank of operands, broadcasting."""

from bytewright import ir

QUANTISED = (ir.DType.I8, ir.DType.I16)
"""Types of activations that stand for real numbers by a scale."""
FLOATS = (ir.DType.F32,)
"""Types of activations that are real numbers."""
ARITHMETIC = (*QUANTISED, *FLOATS)
"""Types of activations that layers compute with."""
SUMS = (ir.DType.I32, *FLOATS)
"""Types that sums and products have, none of which may leave them."""
WIDE = (ir.DType.I32, ir.DType.I64)
"""Types of numbers that stand for themselves: indices, extents, counts, sums."""


def require(condition: bool, message: str) -> None:
    """Raises ValueError with `message` unless the condition holds."""
    if not condition:
        raise ValueError(message)


def require_count(inputs: tuple[ir.TensorType, ...], count: int) -> None:
    """The operator takes exactly `count` operands."""
    require(len(inputs) == count, f"{len(inputs)} operands where {count} are needed")


def only(inputs: tuple[ir.TensorType, ...], *allowed: ir.DType) -> ir.TensorType:
    """The operand of an operator that takes one, of one of the element types if any are given."""
    require_count(inputs, 1)
    if allowed:
        require_dtype(inputs[0], allowed, "the input")
    return inputs[0]


def same_type(inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType]:
    """The type of what has the one operand's shape and elements, wherever that is."""
    operand = only(inputs)
    return (ir.TensorType(operand.shape, operand.dtype),)


def two(inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ir.TensorType]:
    """The operands of an operator that takes two."""
    require_count(inputs, 2)
    return inputs[0], inputs[1]


def scaled_type(
    inputs: tuple[ir.TensorType, ...], scale: float, sources: tuple[ir.DType, ...], result: ir.DType
) -> tuple[ir.TensorType]:
    """What a positive scale makes of the one operand: its shape in another element type."""
    require(scale > 0, f"scale {scale} is not positive")
    return (ir.TensorType(only(inputs, *sources).shape, result),)


def require_dtype(operand: ir.TensorType, allowed: tuple[ir.DType, ...], role: str) -> None:
    """The operand's element type is one of `allowed`."""
    names = " or ".join(dtype.value for dtype in allowed)
    require(operand.dtype in allowed, f"{role} is {operand.dtype.value}, not {names}")


def require_rank(operand: ir.TensorType, rank: int, role: str) -> None:
    """The operand has `rank` axes."""
    shape = ir.format_shape(operand.shape)
    require(len(operand.shape) == rank, f"{role} has shape [{shape}], not {rank} axes")


def require_elements(extent: ir.Extent, axis: int, places: tuple[ir.Extent, ...] = ()) -> None:
    """There is an element along an axis in each run, or in those without one also none of the places that name it.

    Whether there are none of places of an extent of their own, only the data can say.
    """
    (symbol,) = ir.symbols_in((extent,)) or (ir.Symbol("", 1, 1),)
    if any(ir.lower_bound(each) < 1 and ir.symbol_in(each) != symbol for each in places):
        return
    named = [each for each in places if ir.symbol_in(each) == symbol]
    for value in range(symbol.lower, symbol.upper + 1):
        if ir.extent_at(extent, value) >= 1:
            break
        is_unused = any(ir.extent_at(each, value) < 1 for each in named)
        require(is_unused, f"there may be no element along axis {axis}")


def broadcast(first: tuple[ir.Extent, ...], second: tuple[ir.Extent, ...]) -> tuple[ir.Extent, ...]:
    """The shape that two shapes broadcast to, by numpy's rule: aligned at the right, an extent 1 stretches."""
    rank = max(len(first), len(second))
    left = (1,) * (rank - len(first)) + first
    right = (1,) * (rank - len(second)) + second
    result: list[ir.Extent] = []
    for a, b in zip(left, right, strict=True):
        require(
            a == b or 1 in (a, b),
            f"shapes [{ir.format_shape(first)}] and [{ir.format_shape(second)}] do not broadcast",
        )
        result.append(b if a == 1 else a)
    return tuple(result)
