"""Depthwise convolutions of whole pixels on MVE: sixteen channels at a time, all taps of a window.

`vmullb` and `vmullt` multiply bytes to sixteen bits, of even and of odd channels. Products of several taps are added in
sixteen bits as long as no sum of theirs can leave them, which the weights say; such a group is widened once. Groups
are the same for all channels. Lanes are put back in order by the narrowing instructions, which undo what widening
does.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.mve.assembly import VECTORS, Operand, assembly, moved
from bytewright.lower.isa.mve.lanes import FEATURE
from bytewright.lower.isa.mve.scaling import Kind, scale_lines, scaled
from bytewright.lower.isa.vector_unit import memory_parameter
from bytewright.lower.kernels.layout import End, Layout

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
BYTES = 16
# The channels in the lanes of the four vectors of 32 bits that two widenings make of sixteen bytes.
LANE_ORDER = np.array([0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15])
MAX_ROWS = 5
_SCALES = 3 * BYTES
_REACH = 127
# Registers: pointers to rows of the window, and to the rest.
_ROWS = ("r6", "r8", "r9", "r10", "r11")
_OUTPUT, _WEIGHTS, _SCALES_AT, _ZERO_POINT, _LOW, _HIGH, _LAST = "r1", "r2", "r3", "r4", "r5", "r0", "r12"
_WIDE = ("q4", "q5", "q6", "q7")


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps of a window, and how they are summed.

    Attributes:
        num_rows: Rows of the window.
        places: For each tap its row and its offset in the row.
        groups: Numbers of taps that are summed in sixteen bits; every tap is in one.
        outside: Numbers of taps that are beside the input, whose offsets mean nothing.
        zero_point: What these read.
    """

    num_rows: int
    places: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...]
    outside: frozenset[int] = frozenset()
    zero_point: int = 0

    @property
    def order(self) -> list[int]:
        """All taps in the order in which they are read."""
        return [tap for group in self.groups for tap in group]

    @property
    def span(self) -> int:
        """From the first offset of a row to the last."""
        return max(offset for tap, (_, offset) in enumerate(self.places) if tap not in self.outside)

    def offsets_of(self, row: int, among: Iterable[int]) -> list[int]:
        """The offsets of those of some taps that lie in a row of the input."""
        inside = [tap for tap in among if tap not in self.outside]
        return [self.places[tap][1] for tap in inside if self.places[tap][0] == row]


def tap_groups(weights: NDArray[np.generic]) -> tuple[tuple[int, ...], ...]:
    """Groups of taps whose products by any bytes have sums of sixteen bits, few of them.

    Args:
        weights: [channels, taps].
    """
    wide = weights.astype(np.int64)
    positive, negative = np.maximum(wide, 0), np.maximum(-wide, 0)
    most = 127 * positive + 128 * negative  # of a tap's product, and the same below zero
    least = 128 * positive + 127 * negative
    left = sorted(range(wide.shape[1]), key=lambda tap: (-int(most[:, tap].max()), tap))
    groups: list[tuple[int, ...]] = []
    while left:
        group = [left.pop(0)]
        for tap in list(left):
            both = [*group, tap]
            if most[:, both].sum(axis=1).max() < 2**15 and least[:, both].sum(axis=1).max() <= 2**15:
                group.append(tap)
                left.remove(tap)
        groups.append(tuple(sorted(group)))
    return tuple(sorted(groups))


def first_channels(num_channels: int) -> list[int]:
    """The first channel of each block of sixteen; the last block ends with the last channel."""
    blocks = -(-num_channels // BYTES)
    return [min(block * BYTES, num_channels - BYTES) for block in range(blocks)]


def packed_taps(weights: NDArray[np.generic], taps: Taps) -> NDArray[np.generic]:
    """Weights [C, taps] in the order in which one pointer reads them, [blocks, taps, 16], flat."""
    return Layout(lanes=BYTES, channels=End.REPEAT).pack(weights[:, taps.order])


def channels_of_vectors(num_channels: int) -> NDArray[np.int64]:
    """The channels in the lanes of each vector of sums, [vectors, 4]."""
    blocks = [first + LANE_ORDER for first in first_channels(num_channels)]
    return np.concatenate(blocks).reshape(-1, 4)


@cache
def sum_taps(taps: Taps, num_channels: int, kind: Kind, *, has_limits: bool) -> ir.Instruction:
    """All channels of a pixel of a depthwise convolution, scaled to bytes.

    Operands: the output, [num_channels]; for each row of the window the input under it; weights as `packed_taps`,
    scales as `Scaling.packed` has them for `channels_of_vectors`; zero point, and if it `has_limits` low and high,
    which else are the ends of a byte.
    """
    blocks, num_taps = len(first_channels(num_channels)), len(taps.places)
    output = memory_parameter("output", num_channels, I8, ir.Access.WRITE)
    rows = [memory_parameter(f"row{i}", taps.span + num_channels, I8) for i in range(taps.num_rows)]
    weights = memory_parameter("weights", blocks * num_taps * BYTES, I8)
    scales = memory_parameter("scales", blocks * _SCALES, I32)
    names = ("zero_point", "low", "high") if has_limits else ("zero_point",)
    limits = [ir.ScalarParameter(ir.Var(name, I32)) for name in names]
    shape = "_".join(f"{row}p{offset}" for row, offset in taps.places)
    digest = zlib.crc32(f"{shape} {taps.groups} {sorted(taps.outside)} {taps.zero_point}".encode())
    name = f"mve_taps_{num_taps}x{num_channels}_{kind.name.lower()}{'_limited' if has_limits else ''}_{digest:08x}"
    body = BodyBuilder()
    starts = first_channels(num_channels)
    parts = [(0, blocks)] if starts[-1] == (blocks - 1) * BYTES else [(0, blocks - 1), (blocks - 1, 1)]
    for first, count in parts:
        if not count:
            continue
        with (
            body.for_(f"{name}.block", first, first + count) as block,
            body.for_(f"{name}.lane", 0, BYTES) as lane,
        ):
            channel = block * BYTES + (starts[first] - first * BYTES) + lane
            # Where the lane's numbers lie: 0, 4, 8, 12, 2, 6, ... are one after another.
            vector = (lane % 2) * 2 + (lane // 2) % 2
            at = body.let("at", (block * 4 + vector) * 12 + lane // 4)
            total = body.scalar("total", I32, load(scales.buffer, at))
            for number, tap in enumerate(taps.order):
                row, offset = taps.places[tap]
                value = (
                    ir.const(taps.zero_point, I8)
                    if tap in taps.outside
                    else load(rows[row].buffer, channel + offset)
                )
                weight = load(weights.buffer, (block * num_taps + number) * BYTES + lane)
                body.add_to(total, (), ir.cast(value, I32) * ir.cast(weight, I32))
            ends: list[ir.Expr] = [each.variable for each in limits]
            if not has_limits:
                ends += [ir.const(-128), ir.const(127)]
            multiplier, shift = load(scales.buffer, at + 4), 0 - load(scales.buffer, at + 8)
            body.store(output.buffer, channel, scaled(kind, load(total), multiplier, shift, ends))
    return ir.Instruction(
        name,
        (output, *rows, weights, scales, *limits),
        body.finish(),
        _Text(taps, num_channels, kind, has_limits).text(),
        FEATURE,
        f"{num_channels} channels of a pixel of a depthwise convolution: products of {num_taps} taps, sixteen "
        f"channels at a time, summed in 16 bits in groups of {', '.join(str(len(g)) for g in taps.groups)}; their "
        "bias, and scaling to the output.",
    )


@dataclass(slots=True)
class _Text:
    """The C text of `sum_taps`, one block of sixteen channels as a loop."""

    taps: Taps
    num_channels: int
    kind: Kind
    has_limits: bool

    def text(self) -> str:
        """A last block that shares channels with the one before it goes back first."""
        blocks, back = -(-self.num_channels // BYTES), -self.num_channels % BYTES
        rows = _ROWS[: self.taps.num_rows]
        bases = [self._base(row) for row in range(self.taps.num_rows)]
        lines = [line for register, base in zip(rows, bases, strict=True) for line in moved(register, base)]
        whole = blocks - 1 if back else blocks
        lines += [f"movw {_LAST}, #1"] if back else []
        lines += [f"movw lr, #{whole}", "1:"] if blocks > 1 else []
        lines += self._sums(bases) + self._scaled() + [f"vstrb.8 q4, [{_OUTPUT}], #16"]
        lines += ["le lr, 1b"] if blocks > 1 else []
        if back:
            again = [line for register in (_OUTPUT, *rows) for line in moved(register, -back)]
            lines += [f"subs {_LAST}, #1", "bmi 2f", *again, "movw lr, #1", "b 1b", "2:"]
        operands = [Operand("output", _OUTPUT, "int8_t *")]
        operands += [Operand(f"row{i}", each, "const int8_t *") for i, each in enumerate(rows)]
        operands += [
            Operand("weights", _WEIGHTS, "const int8_t *"),
            Operand("scales", _SCALES_AT, "const int32_t *"),
        ]
        operands += [Operand("zero_point", _ZERO_POINT, "int32_t")]
        if self.has_limits:
            operands += [Operand("low", _LOW, "int32_t"), Operand("high", _HIGH, "int32_t")]
        return assembly(operands, lines, (*VECTORS, _LAST, "lr"))

    def _base(self, row: int) -> int:
        """Where the pointer to a row stands before each block: offsets reach all taps, if they can."""
        offsets = self.taps.offsets_of(row, range(len(self.taps.places)))
        if max(offsets) <= _REACH:
            return 0
        middle = sorted(offsets)[len(offsets) // 2]
        reaches = max(offsets) - middle <= _REACH and middle - min(offsets) <= _REACH
        return middle if reaches else offsets[0]

    def _sums(self, bases: Sequence[int]) -> list[str]:
        """The sums of sixteen channels in four vectors."""
        order, at = self.taps.order, list(bases)
        lines: list[str] = []
        for number, group in enumerate(self.taps.groups):
            even, odd = ("q6", "q7") if number == 0 else ("q0", "q1")
            # From the third group on all vectors are in use, and the weights are loaded twice.
            spare = ("q0", "q4", None)[min(number, 2)]
            for position, tap in enumerate(group):
                index = sum(len(before) for before in self.taps.groups[:number]) + position
                lines += self._load(tap, order[index + 1 :], at, bases)
                lines += [f"vldrb.u8 q3, [{_WEIGHTS}], #16"]
                lines += _multiplied(even, odd, spare, is_first=position == 0)
            if number == min(1, len(self.taps.groups) - 1):
                halves = [("b", "q4", "q6"), ("t", "q5", "q6"), ("b", "q6", "q7"), ("t", "q7", "q7")]
                lines += [f"vmovl{half}.s16 {target}, {source}" for half, target, source in halves]
            if number >= 1:
                halves = zip(_WIDE, ("b", "t", "b", "t"), ("q0", "q0", "q1", "q1"), strict=True)
                for target, half, source in halves:
                    lines += [f"vmovl{half}.s16 q2, {source}", f"vadd.i32 {target}, {target}, q2"]
        return lines

    def _load(self, tap: int, following: Sequence[int], at: list[int], bases: Sequence[int]) -> list[str]:
        """Loads sixteen channels under a tap to q2; after the last tap of a row its pointer goes to the next block."""
        if tap in self.taps.outside:
            return [f"vmov.i8 q2, #{self.taps.zero_point & 0xFF}"]
        row, offset = self.taps.places[tap]
        register, lines = _ROWS[row], list[str]()
        if abs(offset - at[row]) > _REACH:
            lines += moved(register, offset - at[row])
            at[row] = offset
        own = self.taps.offsets_of(row, following)
        goal = own[0] if own else bases[row] + BYTES
        is_far = not own or abs(goal - at[row]) > _REACH
        if is_far and offset == at[row] and 0 < abs(goal - offset) <= _REACH:
            lines.append(f"vldrb.u8 q2, [{register}], #{goal - offset}")
            at[row] = goal
        else:
            lines.append(f"vldrb.u8 q2, [{register}, #{offset - at[row]}]")
            if not own:
                lines += moved(register, goal - at[row])
                at[row] = goal
        if not own:
            at[row] -= BYTES
        return lines

    def _scaled(self) -> list[str]:
        """Scales four vectors, and narrows them to the bytes of q4 in order."""
        lines: list[str] = []
        for vector in _WIDE:
            lines += scale_lines(self.kind, [vector], _SCALES_AT, "q0", "q1")
        lines += ["vqmovnb.s32 q4, q4", "vqmovnb.s32 q6, q6", "vqmovnt.s32 q4, q5", "vqmovnt.s32 q6, q7"]
        lines += [f"vqadd.s16 q4, q4, {_ZERO_POINT}", f"vqadd.s16 q6, q6, {_ZERO_POINT}"]
        lines += ["vqmovnb.s16 q4, q4", "vqmovnt.s16 q4, q6"]
        if self.has_limits:
            lines += [f"vdup.8 q0, {_LOW}", f"vdup.8 q1, {_HIGH}", "vmax.s8 q4, q4, q0", "vmin.s8 q4, q4, q1"]
        return lines


def _multiplied(even: str, odd: str, spare: str | None, *, is_first: bool) -> list[str]:
    """Products of q2 and q3 in sixteen bits, or added to what there is."""
    if is_first:
        return [f"vmullb.s8 {even}, q2, q3", f"vmullt.s8 {odd}, q2, q3"]
    if spare is not None:
        return [
            f"vmullb.s8 {spare}, q2, q3",
            "vmullt.s8 q2, q2, q3",
            f"vadd.i16 {even}, {even}, {spare}",
            f"vadd.i16 {odd}, {odd}, q2",
        ]
    return [
        "vmullb.s8 q3, q2, q3",
        f"vadd.i16 {even}, {even}, q3",
        f"vldrb.u8 q3, [{_WEIGHTS}, #-16]",
        "vmullt.s8 q2, q2, q3",
        f"vadd.i16 {odd}, {odd}, q2",
    ]
