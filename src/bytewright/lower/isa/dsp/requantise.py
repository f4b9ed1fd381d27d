"""Requantisation on the DSP extension: one high multiply that rounds, and a shift that rounds and adds.

`smmlar` gives `value + (value * n + 2^31) / 2^32`. With `n = 2 * m - 2^32`, which is what `2 * m` is in 32 bits for a
multiplier m of 2^30 or more, that is the doubling high multiply for every value, without shifting it before. Of int16,
whose multipliers have 16 bits, one rounding is all: `smmul` by a multiplier's upper half leaves what the shift rounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.dsp.words import FEATURE
from bytewright.lower.isa.vector_unit import variable_parameter
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.convolution import Convolution
from bytewright.lower.point import Point
from bytewright.lower.scalar import Scalar
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.rescale import Rescale

I8, I16, I32, I64 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.I64
# A saturation in C would be lost where compilers join the stores of neighbours.
_TEXT = """int32_t high;
__asm inline ("{multiply}" : "=r"(high) : "r"(value), "r"(multiplier));
const int32_t shifted = ({high} + (int32_t)((uint32_t)offset << shift)) >> shift;
__asm inline ("ssat %0, #{bits}, %1, asr #1" : "=r"(high) : "r"(shifted));
return high;"""
_NAMES = ("value", "multiplier", "shift", "offset")


def _scale(
    name: str,
    dtype: ir.DType,
    high: Callable[[ir.Expr, ir.Expr], ir.Expr],  # of the value and of its product with the multiplier
    multiply: str,
    comment: str,
    *,
    is_away_from_zero: bool = False,
) -> ir.Instruction:
    """A rescale to a type: `(high + (offset << shift)) >> (shift + 1)`, `high` of the value and the multiplier.

    Halves of negative values are rounded away from zero, or up.
    """
    result = variable_parameter("result", I32, ir.Access.WRITE)
    value, multiplier, shift, offset = (ir.Var(each, I32) for each in _NAMES)
    body = BodyBuilder(("result", *_NAMES))
    body.store(result.buffer, (), high(value, ir.cast(value, I64) * ir.cast(multiplier, I64)))
    if is_away_from_zero:
        body.add_to(result.buffer, (), load(result.buffer) >> 31)
    body.add_to(result.buffer, (), offset * (ir.const(1) << shift))
    body.store(result.buffer, (), ir.clamp(load(result.buffer) >> (shift + 1), *dtype.bounds))
    signed = "high + (high >> 31)" if is_away_from_zero else "high"
    return ir.Instruction(
        name,
        (result, *(ir.ScalarParameter(ir.Var(each, I32)) for each in _NAMES)),
        body.finish(),
        _TEXT.format(multiply=multiply, high=signed, bits=8 * dtype.size_bytes),
        FEATURE,
        f"{comment}, then divided by 2^(shift + 1), rounded half {'away from zero' if is_away_from_zero else 'up'}, "
        f"plus half of offset - 1, within {8 * dtype.size_bytes} bits.",
    )


def _doubling(name: str, dtype: ir.DType, *, is_away_from_zero: bool) -> ir.Instruction:
    return _scale(
        name,
        dtype,
        lambda value, product: value + ir.cast((product + 2**31) >> 32, I32),
        "smmlar %0, %1, %2, %1",
        "value * (2^32 + multiplier) / 2^32, rounded half up",
        is_away_from_zero=is_away_from_zero,
    )


SCALE = {
    dtype: _doubling(f"dsp_scale{end}", dtype, is_away_from_zero=True)
    for dtype, end in ((I8, ""), (I16, "_i16"))
}
# Where what becomes of negative values is cut off anyway.
SCALE_UP = _doubling("dsp_scale_up", I8, is_away_from_zero=False)
SCALE_ONCE = _scale(
    "dsp_scale_once_i16",
    I16,
    lambda _, product: ir.cast(product >> 32, I32),
    "smmul %0, %1, %2",
    "value * multiplier / 2^32, rounded down",
)


@dataclass(frozen=True, slots=True)
class Form:
    """The operands of an instruction that rescales, for all channels.

    Attributes:
        instruction: One of those above.
        dtype: Of the result.
        multipliers, shifts: i64, one for each channel, or one for all.
        offset: Of the result's zero point.
    """

    instruction: ir.Instruction
    dtype: ir.DType
    multipliers: NDArray[np.int64]
    shifts: NDArray[np.int64]
    offset: int

    def result(self, at: Point, multiplier: ir.Expr, shift: ir.Expr) -> Scalar:
        """The element of the rescale at a point, with the operands of its channel."""
        (value,) = at.operands
        result = at.body.scalar(at.hint, I32)
        at.body.execute(self.instruction, result, value.expr, multiplier, shift, self.offset)
        return Scalar(load(result), *self.dtype.bounds)


def form_of(operation: Rescale, multipliers: ir.Array, exponents: ir.Array, magnitude: int) -> Form | None:
    """The form of a rescale, if an instruction computes it for every value up to a magnitude."""
    wide, right = multipliers.astype(np.int64).reshape(-1), -exponents.astype(np.int64).reshape(-1)
    dtype, zero_point = operation.dtype, operation.output_zero_point
    if dtype not in SCALE or operation.input_zero_point or operation.left_shift or magnitude >= 2**31:
        return None
    match operation.rounding:
        case Rounding.DOUBLE_ROUND if wide.min() >= 2**30:
            # A value below zero becomes the zero point at most: where that is the least value, it is cut off.
            is_cut = (dtype, zero_point) == (I8, I8.bounds[0])
            instruction = SCALE_UP if is_cut else SCALE[dtype]
            found = Form(instruction, dtype, wide * 2 - 2**32, right - 1, 2 * zero_point + 1)
            high = magnitude + 1
        case Rounding.SINGLE_ROUND if dtype is I16 and wide.max() < 2**15:
            shifts = np.where(wide == 0, right.max(), right) + 14
            found = Form(SCALE_ONCE, dtype, wide << 16, shifts, 2 * zero_point + 1)
            high = magnitude // 2 + 1
        case _:
            return None
    most = int(found.shifts.max())
    is_held = found.shifts.min() >= 0 and most <= 30 and high + (abs(found.offset) << most) < 2**31
    return found if is_held else None


def rescaled(at: Point, operation: Rescale) -> Scalar | None:
    """The element of any rescale in a kernel, if it has the form."""
    (value,) = at.operands
    form = form_of(operation, at.array(1), at.array(2), value.magnitude)
    if form is None or value.expr.dtype is not I32:
        return None
    return form.result(
        at, _of_channel(at, "multiplier", form.multipliers, I32), _of_channel(at, "shift", form.shifts, I8)
    )


def _of_channel(at: Point, hint: str, values: ir.Array, dtype: ir.DType) -> ir.Expr:
    """The value of the channel at hand as I32: a number where all channels agree."""
    if (values == values.flat[0]).all():
        return ir.const(int(values.flat[0]))
    return ir.cast(load(at.kernel.constant(hint, values, dtype), at.coordinates[-1]), I32)


@dataclass(frozen=True, slots=True)
class Channels:
    """What a kernel reads once for each channel of its sums, side by side: one pointer is enough for all.

    Attributes:
        records: [C, 1], the bias in the type of the sums; or i32[C, 3], it and the rescale's multiplier and shift.
        low, high: Bounds of the sums.
    """

    records: ir.Buffer
    low: int
    high: int

    def initial(self, channel: ir.Expr) -> ir.Expr:
        """What the sum of a channel starts from."""
        return load(self.records, channel, 0)

    def finished(self, total: ir.Expr) -> Scalar:
        """The sum of a channel, where all products have been added."""
        return Scalar(total, self.low, self.high)


def channels_of(convolutions: Sequence[Convolution]) -> Channels:
    """The channels of convolutions that differ in weights alone; rescales of their kernel take the form from here on.

    Those of several are one after another, each filled up to an even number.
    """
    convolution, *more = convolutions
    template, kernel = convolution.template, convolution.template.kernel
    folded, dtype = [each.folded() for each in convolutions], convolution.sums_dtype
    low, high = min(each.low for each in folded), max(each.high for each in folded)
    num_zeros = convolution.out_channels % 2 if more else 0
    bias = np.concatenate([np.pad(each.bias, (0, num_zeros)) for each in folded])
    kernel.rescale_form = rescaled
    node, form = _rescale_of_sums(template, max(-low, high, 0))
    if node is None or form is None or len(form.shifts) == 1 or dtype is not I32:
        return Channels(kernel.constant("bias", bias[:, None], dtype), low, high)
    scales = (np.tile(np.pad(each, (0, num_zeros)), len(folded)) for each in (form.multipliers, form.shifts))
    records = kernel.constant("channels", np.stack([bias, *scales], axis=1), I32)

    def from_records(at: Point, operation: Rescale) -> Scalar | None:
        if at.node is not node:
            return rescaled(at, operation)
        channel = at.coordinates[-1]
        return form.result(at, load(records, channel, 1), load(records, channel, 2))

    kernel.rescale_form = from_records
    return Channels(records, low, high)


def _rescale_of_sums(template: Template, magnitude: int) -> tuple[ir.Node | None, Form | None]:
    """The rescale of the sums themselves, and its form, if it has one."""
    epilogue, sums = template.epilogue, template.anchor.outputs[0].name
    for node in epilogue.group.elementwise:
        operation = node.operation
        if isinstance(operation, Rescale) and node.inputs[0] == sums:
            multipliers, exponents = (epilogue.array(name) for name in node.inputs[1:])
            return node, form_of(operation, multipliers, exponents, magnitude)
    return None, None
