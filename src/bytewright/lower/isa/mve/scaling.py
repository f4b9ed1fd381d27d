"""Requantisation of whole layers on MVE: what ends a kernel whose epilogue is a rescale and a clamp.

`vqrdmulh` is (value * multiplier + 2^30) >> 31, `vqdmulh` the same without the 2^30, and `vrshl` by a negative number
divides by a power of two rounding half up. So all roundings of the references are two instructions:

- half up twice. Where everything below the zero point is cut off, as by a ReLU, that is DOUBLE_ROUND: the two differ
  in negative halves alone;
- DOUBLE_ROUND itself, half away from zero: the sign is added between the two, unless nothing is shifted;
- SINGLE_ROUND, for shifts of at least 1: with `vqdmulh`, (value * multiplier + 2^(30+s)) >> (31+s). REAL_ROUND is
  that too, with a multiplier for which the two are proved equal at every step (`ops/arithmetic/fit.py`); and a
  multiplier of 16 bits, with a shift of at least 16, is one of 32 whose lower half is 0, with 16 less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.scalar_functions import DOUBLE_ROUND_UP, DOUBLE_ROUND_WIDE, SINGLE_ROUND
from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.lower.kernels.accumulator import Folded
from bytewright.lower.kernels.context import Template
from bytewright.lower.rescale import split_exponents
from bytewright.ops.arithmetic.fit import fit_single_round
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.arithmetic.rescale import real_round
from bytewright.ops.elementwise import Clamp
from bytewright.ops.rescale import Rescale, TflRealRescale

Int32 = NDArray[np.int32]


class Kind(Enum):
    """How values are rounded; the value is the function that says it."""

    UP = DOUBLE_ROUND_UP
    AWAY = DOUBLE_ROUND_WIDE
    SINGLE = SINGLE_ROUND


@dataclass(frozen=True, slots=True)
class Scaling:
    """From finished sums to the elements of the output.

    Attributes:
        kind: The rounding.
        bias: [OC], what sums start from.
        multiplier, shift: [OC]; shifts are to the right.
        zero_point: Of the output.
        low, high: Its bounds.
    """

    kind: Kind
    bias: NDArray[np.int64]
    multiplier: NDArray[np.int64]
    shift: NDArray[np.int64]
    zero_point: int
    low: int
    high: int

    def packed(self, channels: NDArray[np.int64]) -> Int32:
        """Bias, multiplier and negative shift of groups of channels, each group's in a row: [groups, 3, lanes], flat.

        Args:
            channels: [groups, lanes]; -1 for a lane of no channel.
        """
        rows = (self.bias, self.multiplier, -self.shift)
        values = [np.where(channels < 0, 0, row[channels]) for row in rows]
        return np.stack(values, axis=1).astype(np.int32).reshape(-1)

    @property
    def is_uniform(self) -> bool:
        """Whether all channels have one scale."""
        return len({*zip(self.multiplier.tolist(), self.shift.tolist(), strict=True)}) == 1

    def packed_uniform(self, channels: NDArray[np.int64]) -> Int32:
        """Multiplier and negative shift of all channels, then the biases of groups as for `packed`."""
        head = [int(self.multiplier[0]), -int(self.shift[0])]
        bias = np.where(channels < 0, 0, self.bias[channels]).reshape(-1)
        return np.concatenate([head, bias]).astype(np.int32)

    def operands(self) -> tuple[int, int, int]:
        """The scalars that instructions take."""
        return self.zero_point, self.low, self.high


def by_lanes(num_channels: int, num_lanes: int) -> NDArray[np.int64]:
    """Channels in groups, [groups, lanes]; -1 fills up the last one."""
    channels = np.arange(-(-num_channels // num_lanes) * num_lanes)
    return np.where(channels < num_channels, channels, -1).reshape(-1, num_lanes)


def scaling_of(template: Template, folded: Folded) -> Scaling | None:
    """The scaling that the epilogue of a kernel is; None if it is something else, or of a form that needs 64 bits."""
    elementwise = template.epilogue.group.elementwise
    if not 1 <= len(elementwise) <= 2 or elementwise[0].inputs[0] != template.anchor.outputs[0].name:
        return None
    operation, element = elementwise[0].operation, template.type(0).dtype
    low, high = element.bounds
    if len(elementwise) == 2:
        clamp = elementwise[1].operation
        if not isinstance(clamp, Clamp) or elementwise[1].inputs[0] != elementwise[0].outputs[0].name:
            return None
        low, high = max(low, int(clamp.minimum)), min(high, int(clamp.maximum))
    if not isinstance(operation, Rescale | TflRealRescale) or operation.dtype is not element or low > high:
        return None
    if isinstance(operation, TflRealRescale) and element is not ir.DType.I8:
        return None  # there are too many steps to compare
    zero_point = operation.output_zero_point
    operands = [template.epilogue.array(name) for name in elementwise[0].inputs[1:]]
    scales = (
        _integer_scales(operation, *operands, is_cut=low >= zero_point)
        if isinstance(operation, Rescale)
        else _real_scales(operands[0], folded, (low - zero_point, high - zero_point))
    )
    if scales is None:
        return None
    kind, multiplier, shift = scales
    num = len(folded.bias)
    return Scaling(
        kind,
        folded.bias,
        np.broadcast_to(multiplier, num),
        np.broadcast_to(shift, num),
        zero_point,
        low,
        high,
    )


_Scales = tuple[Kind, NDArray[np.int64], NDArray[np.int64]]


def _integer_scales(
    operation: Rescale, multipliers: ir.Array, exponents: ir.Array, *, is_cut: bool
) -> _Scales | None:
    """Scales of a rescale by integers; `is_cut` if negative results are cut off."""
    is_short = operation.rounding is Rounding.SINGLE_ROUND and int(multipliers.astype(np.int64).max()) < 2**15
    if is_short:
        multipliers, exponents = multipliers.astype(np.int64) << 16, exponents.astype(np.int64) - 16
    shift, left = split_exponents(exponents)
    if operation.input_zero_point or operation.left_shift or (left != 1).any() or shift.max(initial=0) > 31:
        return None
    multiplier = multipliers.astype(np.int64)
    if operation.rounding is Rounding.DOUBLE_ROUND:
        return (Kind.UP if is_cut else Kind.AWAY), multiplier, shift
    shift = np.where(multiplier == 0, 1, shift)
    return None if shift.min(initial=1) < 1 else (Kind.SINGLE, multiplier, shift)


def _real_scales(scales: ir.Array, folded: Folded, outputs: tuple[int, int]) -> _Scales | None:
    """Scales in double precision as integers that are equal for every sum that can occur."""
    found: list[tuple[int, int]] = []
    for scale in scales.reshape(-1).tolist():
        fit = fit_single_round(
            lambda sums, scale=scale: real_round(sums, scale), scale, (folded.low, folded.high), outputs
        )
        if fit is None:
            return None
        found.append((fit.multiplier, fit.shift))
    multiplier, shift = np.array(found, np.int64).T
    return Kind.SINGLE, multiplier, shift


def scaled(
    kind: Kind,
    value: ir.Expr,
    multiplier: ir.Expr,
    shift: ir.Expr,
    limits: Sequence[ir.Expr],
    element: ir.DType = ir.DType.I8,
) -> ir.Expr:
    """What an instruction makes of a sum, of type `element`: its zero point, low and high are `limits`."""
    zero_point, low, high = limits
    # The addition of the zero point saturates; within 2^30 it need not, and the rest is cut off by any bounds.
    limited = ir.clamp(kind.value(value, multiplier, shift), -(2**30), 2**30)
    return ir.cast(ir.minimum(ir.maximum(limited + zero_point, low), high), element)


def write_scaling(
    assembly: Assembly,
    kind: Kind,
    vectors: Sequence[str],
    scales: str,
    uniform: tuple[str, str] | None = None,
) -> None:
    """Adds the bias to vectors of sums and scales them.

    Args:
        assembly: The statement.
        kind: The rounding.
        vectors: Registers with four sums each, all of the same channels.
        scales: The register that points to the channels' bias, multiplier and shift; it goes on to the next ones.
        uniform: Registers with the multiplier and the negative shift of all channels; then `scales` are biases alone.
    """
    line, number = assembly.line, assembly.take("scale", Registers.VECTOR)
    load = f"vldrw.u32 {number}, [{scales}], #16"
    multiply = "vqdmulh" if kind is Kind.SINGLE else "vqrdmulh"
    line(load, *(f"vadd.i32 {each}, {each}, {number}" for each in vectors))
    if uniform is None:
        line(load, *(f"{multiply}.s32 {each}, {each}, {number}" for each in vectors), load)
    else:
        line(*(f"{multiply}.s32 {each}, {each}, {uniform[0]}" for each in vectors))
        line(f"vdup.32 {number}, {uniform[1]}")
    if kind is Kind.AWAY:
        sign = assembly.take("sign", Registers.VECTOR)
        for each in vectors:
            line(
                f"vand {sign}, {each}, {number}",  # negative if both value and shift are
                f"vshr.s32 {sign}, {sign}, #31",
                f"vadd.i32 {each}, {each}, {sign}",
            )
        assembly.free(sign)
    line(*(f"vrshl.s32 {each}, {each}, {number}" for each in vectors))
    assembly.free(number)
