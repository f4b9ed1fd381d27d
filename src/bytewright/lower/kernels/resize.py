"""Resizes: each element is one of the input, or the mean of the four around its position."""

from dataclasses import dataclass
from functools import partial

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, counted, named, pixels
from bytewright.lower.kernels.source_index import source_index
from bytewright.lower.scalar import Scalar, element
from bytewright.ops.arithmetic.resize import FRACTION_BITS, ONE, ResizedAxis
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest

I32, I64, F32 = ir.DType.I32, ir.DType.I64, ir.DType.F32
_LEAST = ir.DType.I8.bounds[0]


def lower_resize_nearest(template: Template, operation: TflResizeNearest) -> None:
    """Writes the kernel of a nearest resize: [N, H, W, C] to [N, OH, OW, C]."""
    source, body = template.input(0), template.body
    channels = template.type(0).fixed_shape[-1]
    rows, columns = _axes(template, operation)
    with pixels(template) as (n, y, x):
        indices = [
            named(body, name, _nearest(template, name, axis, index))
            for name, axis, index in (("iy", rows, y), ("ix", columns, x))
        ]
        with counted(body, "c", channels) as c:
            template.epilogue.store((n, y, x, c), element(load(source, n, *indices, c)))


def lower_resize_bilinear(template: Template, operation: TflResizeBilinear) -> None:
    """Writes the kernel of a bilinear resize: [N, H, W, C] to [N, OH, OW, C]."""
    source, body = template.input(0), template.body
    channels = template.type(0).fixed_shape[-1]
    rows, columns = _axes(template, operation)
    fixed = operation.is_fixed(source.dtype)
    # Weights are not negative, and come to 2^20: of i8 |sum| <= 2^27.
    sums = F32 if not fixed else I64 if source.dtype is ir.DType.I16 else I32
    with pixels(template) as (n, y, x):
        down = _between(template, "y", rows, y, fixed=fixed)
        right = _between(template, "x", columns, x, fixed=fixed)
        corners = [(v, h) for h in (right.before, right.after) for v in (down.before, down.after)]
        weights: list[tuple[ir.Expr, ...]] = [(v[1], h[1]) for v, h in corners]
        if sums is F32:  # rounded after each product, as the reference does
            weights = [tuple(map(partial(body.let, f"weight{n}"), pair)) for n, pair in enumerate(weights)]
        else:
            weights = [(body.let(f"weight{n}", pair[0] * pair[1]),) for n, pair in enumerate(weights)]
        with counted(body, "c", channels) as c:
            total: ir.Expr | None = None
            for (v, h), factors in zip(corners, weights, strict=True):
                term = load(source, n, v[0], h[0], c)
                term = ir.cast(ir.cast(term, I32) - _LEAST if operation.unsigned else term, sums)
                for factor in factors:
                    term = term * ir.cast(factor, sums)
                total = term if total is None else total + term
            assert total is not None
            template.epilogue.store((n, y, x, c), _rounded(template, total))


def _rounded(template: Template, total: ir.Expr) -> Scalar:
    """The sum; of integers divided by what the weights come to, rounded half away from zero, of uint8 half up."""
    dtype = template.type(0).dtype
    if not dtype.is_integer:
        return Scalar(total)
    if not total.dtype.is_integer:
        return Scalar(ir.cast(total + 0.5, I32) + _LEAST, *dtype.bounds)
    total = template.body.let("total", total)
    bits, sign = 2 * FRACTION_BITS, 8 * total.dtype.size_bytes - 1
    rounded = (total + (total >> sign) + (1 << (bits - 1))) >> bits
    return Scalar(ir.cast(rounded, I32), *dtype.bounds)


@dataclass(frozen=True, slots=True)
class _Between:
    """The elements around a position along one axis, each with its weight."""

    before: tuple[ir.Expr, ir.Expr]
    after: tuple[ir.Expr, ir.Expr]


@dataclass(frozen=True, slots=True)
class _OpenAxis:
    """Rows or columns whose numbers are those of a run; `arithmetic/resize.py` has the same for numbers.

    Attributes:
        size: Those of the input.
        scale: Of positions: in float32, or of a bilinear resize of integers in 1/1024.
    """

    size: ir.Expr
    scale: ir.Expr
    align_corners: bool
    half_pixel_centers: bool


_Axis = ResizedAxis | _OpenAxis


def _axes(template: Template, operation: TflResizeNearest | TflResizeBilinear) -> tuple[_Axis, _Axis]:
    """Rows and columns."""
    _, height, width, _ = template.type(0).shape
    rows, columns = operation.size
    return _axis(template, operation, height, rows), _axis(template, operation, width, columns)


def _axis(
    template: Template, operation: TflResizeNearest | TflResizeBilinear, extent: ir.Extent, wanted: ir.Extent
) -> _Axis:
    """One of them; the scale of an open one is computed before the loops."""
    if isinstance(extent, int) and isinstance(wanted, int):
        return operation.axis(extent, wanted)
    size, out = ir.extent_expr(extent), ir.extent_expr(wanted)
    steps, over = size, out
    if operation.align_corners:  # of one element the scale is of no matter, as it is the first
        steps, over = size - 1, ir.maximum(out - 1, 1)
    if isinstance(operation, TflResizeBilinear) and operation.is_fixed(template.type(0).dtype):
        scale = (steps * ONE + over // 2) // over
    else:
        scale = ir.cast(steps, F32) / ir.cast(over, F32)
    scale = template.body.let("scale", scale)
    return _OpenAxis(size, scale, operation.align_corners, operation.half_pixel_centers)


def _nearest(template: Template, name: str, axis: _Axis, index: ir.Expr) -> ir.Expr:
    """The element that an element of the output is, along one axis."""
    if isinstance(axis, ResizedAxis):
        return source_index(template.kernel, axis.nearest(), axis.size, axis.ratio, index)
    position = template.body.let(
        f"{name}_exact", (ir.cast(index, F32) + (0.5 if axis.half_pixel_centers else 0.0)) * axis.scale
    )
    whole = ir.cast(position, I32)
    if axis.align_corners:
        whole = template.body.let(f"{name}_whole", whole)
        whole = whole + ir.select(position - ir.cast(whole, F32) >= 0.5, ir.const(1), ir.const(0))
    return ir.minimum(ir.maximum(whole, 0), axis.size - 1)


def _open_between(template: Template, name: str, axis: _OpenAxis, index: ir.Expr, *, fixed: bool) -> _Between:
    """Where an element of the output lies along an open axis."""
    body, first_name, last_name = template.body, f"{name}0", f"{name}1"
    last = axis.size - 1
    if fixed:
        position = index * axis.scale
        if axis.half_pixel_centers:
            position = ir.maximum(position + (axis.scale // 2 - ONE // 2), 0)
        position = body.let(f"{name}_exact", position)
        first = body.let(first_name, ir.minimum(position // ONE, last))
        after = body.let(last_name, ir.minimum((position + (ONE - 1)) // ONE, last))
        weight = body.let(f"{name}_part", position & (ONE - 1))
        return _Between((first, ONE - weight), (after, weight))
    position = body.let(f"{name}_exact", _position(axis, ir.cast(index, F32)))
    # What is before the first element is more than half of one behind it, and so has 0 where it is cut off.
    first = body.let(first_name, ir.minimum(ir.maximum(ir.cast(position, I32), 0), last))
    weight = body.let(f"{name}_part", position - ir.cast(first, F32))
    following = first + ir.select(weight > 0.0, ir.const(1), ir.const(0))
    after = body.let(last_name, ir.minimum(following, last))
    return _Between((first, 1.0 - weight), (after, weight))


def _position(axis: _Axis, index: ir.Expr) -> ir.Expr:
    """Where an element of the output lies, in float32."""
    scale = axis.scale if isinstance(axis, _OpenAxis) else ir.const(float(axis.scale), F32)
    return (index + 0.5) * scale - 0.5 if axis.half_pixel_centers else index * scale


def _between(template: Template, name: str, axis: _Axis, index: ir.Expr, *, fixed: bool) -> _Between:
    """Where an element of the output lies along one axis."""
    if isinstance(axis, _OpenAxis):
        return _open_between(template, name, axis, index, fixed=fixed)
    body, kernel = template.body, template.kernel
    first, last = (
        named(body, f"{name}{number}", source_index(kernel, elements, axis.size, axis.ratio, index))
        for number, elements in enumerate(axis.between(fixed=fixed))
    )
    if fixed:
        # What is before the first element, or behind the last one, has the same element on both sides.
        position = index * axis.fixed_scale + axis.fixed_offset
        position = ir.maximum(position, 0) if axis.fixed_offset < 0 else position
        weight = body.let(f"{name}_part", position & (ONE - 1))
        return _Between((first, ONE - weight), (last, weight))
    weight = body.let(f"{name}_part", _position(axis, ir.cast(index, F32)) - ir.cast(first, F32))
    return _Between((first, 1.0 - weight), (last, weight))
