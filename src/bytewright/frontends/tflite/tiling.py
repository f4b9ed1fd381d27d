"""TILE and BROADCAST_TO, with those before them, as one repetition.

Exporters write an up-sampling of rows and columns as a TILE of each, with reshapes between. All of them together only
say, for each axis of the result, of which factors it is made: extents of the first operand, in their order, and
repetitions between them. So one `tile` between two reshapes does it all, or the resize of an image, and what lies
between is never stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.ops.checks import ARITHMETIC
from bytewright.ops.data import Reshape, Tile
from bytewright.ops.resize import TflResizeNearest

Shape = tuple[int, ...]
_Moving = Reshape | Tile | TflResizeNearest
# Operators that one TILE takes in: an up-sampling of three axes has six.
_MOST_BEFORE = 16
# Rows or columns, up to which positions in float32 are told apart by far.
_LARGEST_IMAGE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Factor:
    """A part of an axis: an extent of the first operand, or how often what follows is there."""

    extent: int
    is_repeated: bool = False


def tiled(at: Conversion, name: str, multiples: Shape) -> str:
    """A value so many times along each axis; the value itself where each multiple is 1."""
    if all(multiple == 1 for multiple in multiples):
        return name
    if 0 in multiples:
        return at.emit(Tile(multiples), (name,), "tiled")
    result = tuple(
        extent * multiple for extent, multiple in zip(at.type_of(name).fixed_shape, multiples, strict=True)
    )
    root, operations = _before(at, name)
    first = at.type_of(root).fixed_shape
    axes: list[tuple[_Factor, ...]] = [(_Factor(extent),) for extent in first]
    for operation in (*operations, Tile(multiples)):
        regrouped = (
            _reshaped(axes, operation) if isinstance(operation, Reshape) else _repeated(axes, operation)
        )
        if regrouped is None:  # a reshape cuts through what is repeated
            return at.emit(Tile(multiples), (name,), "tiled")
        axes = regrouped
    factors = _merged([factor for axis in axes for factor in axis])
    image = _resized(at, root, factors, result)
    if image is not None:
        return at.reshape(image, result)
    # The batch stays an axis of its own.
    leading = (1,) if first[:1] == (1,) == result[:1] else ()
    seen = (*leading, *(1 if factor.is_repeated else factor.extent for factor in factors))
    times = (*(1 for _ in leading), *(factor.extent if factor.is_repeated else 1 for factor in factors))
    return at.reshape(at.emit(Tile(times), (at.reshape(root, seen, "seen"),), "tiled"), result)


def _resized(at: Conversion, root: str, factors: list[_Factor], result: Shape) -> str | None:
    """What repeats rows, or rows and then columns, as the resize of an image that it is, which goes by rows.

    A result of four axes must be that image; others are steps on the way to one. Positions are those of the middles of
    elements, which lie so far from the next element that no rounding matters in images of such sizes.
    """
    type_ = at.type_of(root)
    if len(type_.shape) != 4 or type_.dtype not in ARITHMETIC:
        return None
    batch, height, width, channels = type_.fixed_shape
    first, second = _times(factors, 1), _times(factors, 3)
    for down, across in ((first, second), (first, 1), (1, first)):
        wanted = (
            _Factor(batch * height),
            _Factor(down, is_repeated=True),
            _Factor(width),
            _Factor(across, is_repeated=True),
            _Factor(channels),
        )
        size = (height * down, width * across)
        is_image = len(result) != 4 or result[1:3] == size
        if _merged(wanted) == factors and is_image and max(size) <= _LARGEST_IMAGE:
            return at.emit(TflResizeNearest(size, half_pixel_centers=True), (root,), "resized")
    return None


def _times(factors: list[_Factor], position: int) -> int:
    """How often something is repeated there; once, if nothing is."""
    is_repeated = position < len(factors) and factors[position].is_repeated
    return factors[position].extent if is_repeated else 1


def _before(at: Conversion, name: str) -> tuple[str, list[_Moving]]:
    """The value behind the tiles, resizes and reshapes that a value is made by at last, and these in order."""
    operations: list[_Moving] = []
    while len(operations) < _MOST_BEFORE:
        node = at.graph.producers.get(name)
        if node is None or not isinstance(node.operation, _Moving):
            break
        operations.append(node.operation)
        name = node.inputs[0]
    return name, operations[::-1]


def _repeated(
    axes: list[tuple[_Factor, ...]], operation: Tile | TflResizeNearest
) -> list[tuple[_Factor, ...]] | None:
    """The axes with what a TILE puts before them, or an up-sampling behind rows and columns."""
    if isinstance(operation, TflResizeNearest):
        batch, *spatial, channels = axes
        found: list[tuple[_Factor, ...]] = []
        for axis, size in zip(spatial, operation.fixed_size, strict=True):
            extent = prod(factor.extent for factor in axis)
            if size % extent or not operation.half_pixel_centers or size > _LARGEST_IMAGE:
                return None
            found.append((*axis, _Factor(size // extent, is_repeated=True)))
        return [batch, *found, channels]
    return [
        axis if multiple == 1 else (_Factor(ir.upper_bound(multiple), is_repeated=True), *axis)
        for axis, multiple in zip(axes, operation.multiples, strict=True)
    ]


def _reshaped(axes: list[tuple[_Factor, ...]], operation: Reshape) -> list[tuple[_Factor, ...]] | None:
    """The factors in other axes; None if one of them would have to be cut where it has no divisor."""
    pending = [factor for axis in axes for factor in axis if factor.extent != 1]
    found: list[tuple[_Factor, ...]] = []
    for wanted in operation.shape:
        axis: list[_Factor] = []
        missing = wanted if isinstance(wanted, int) else wanted.upper
        while missing > 1:
            factor = pending.pop(0)
            if factor.extent > missing:
                if factor.extent % missing:
                    return None
                pending.insert(0, _Factor(factor.extent // missing, factor.is_repeated))
                factor = _Factor(missing, factor.is_repeated)
            if missing % factor.extent:
                return None
            axis.append(factor)
            missing //= factor.extent
        found.append(tuple(axis))
    return found


def _merged(factors: Sequence[_Factor]) -> list[_Factor]:
    """Neighbours of one kind as one."""
    merged: list[_Factor] = []
    for is_repeated, run in groupby((f for f in factors if f.extent != 1), key=lambda f: f.is_repeated):
        merged.append(_Factor(prod(factor.extent for factor in run), is_repeated))
    return merged
