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
from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.lower.isa.mve.lanes import FEATURE
from bytewright.lower.isa.mve.scaling import Kind, scaled, write_scaling
from bytewright.lower.isa.vector_unit import memory_parameter
from bytewright.lower.kernels.layout import End, Layout

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
BYTES = 16
# The channels in the lanes of the four vectors of 32 bits that two widenings make of sixteen bytes.
LANE_ORDER = np.array([0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15])
MAX_ROWS = 5
_SCALES = 3 * BYTES
_REACH = 127


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
        _text(taps, num_channels, kind, has_limits=has_limits),
        FEATURE,
        f"{num_channels} channels of a pixel of a depthwise convolution: products of {num_taps} taps, sixteen "
        f"channels at a time, summed in 16 bits in groups of {', '.join(str(len(g)) for g in taps.groups)}; their "
        "bias, and scaling to the output.",
    )


def _text(taps: Taps, num_channels: int, kind: Kind, *, has_limits: bool) -> str:
    """The C text of `sum_taps`, one block of sixteen channels as a loop.

    A last block that shares channels with the one before it goes back first.
    """
    assembly = Assembly()
    line = assembly.line
    output = assembly.operand("output", "int8_t *")
    rows = [assembly.operand(f"row{i}", "const int8_t *") for i in range(taps.num_rows)]
    weights = assembly.operand("weights", "const int8_t *")
    scales = assembly.operand("scales", "const int32_t *")
    zero_point = assembly.operand("zero_point", "int32_t")
    limits = [assembly.operand(name, "int32_t") for name in ("low", "high")] if has_limits else []
    blocks, back = -(-num_channels // BYTES), -num_channels % BYTES
    sums = _Sums(assembly, taps, rows, weights)
    for register, base in zip(rows, sums.bases, strict=True):
        assembly.move(register, base)
    last = assembly.take("last", Registers.GENERAL) if back else ""
    turns = assembly.take("turns", Registers.LOOP)
    if back:
        line(f"movw {last}, #1")
    if blocks > 1:
        line(f"movw {turns}, #{blocks - 1 if back else blocks}", "1:")
    sums.write()
    _write_scaled(assembly, kind, sums.wide, scales, zero_point, limits)
    line(f"vstrb.8 {sums.wide[0]}, [{output}], #16")
    if blocks > 1:
        line(f"le {turns}, 1b")
    if back:
        line(f"subs {last}, #1", "bmi 2f")
        for register in (output, *rows):
            assembly.move(register, -back)
        line(f"movw {turns}, #1", "b 1b", "2:")
    return assembly.text()


class _Sums:
    """The sums of a block, in four vectors.

    Attributes:
        bases: Where the pointer to each row stands before a block.
        wide: The vectors.
    """

    def __init__(self, assembly: Assembly, taps: Taps, rows: Sequence[str], weights: str) -> None:
        self.assembly, self.taps, self.rows, self.weights = assembly, taps, rows, weights
        self.bases = [self._base(row) for row in range(taps.num_rows)]
        self.wide = assembly.take_all("sums", 4, Registers.VECTOR)
        self.halves = assembly.take_all("sums in 16 bits", 2, Registers.VECTOR)
        self.tap, self.filters = assembly.take_all("operands", 2, Registers.VECTOR)
        self.at = list(self.bases)

    def _base(self, row: int) -> int:
        """Where the pointer to a row stands before each block: offsets reach all taps, if they can."""
        offsets = self.taps.offsets_of(row, range(len(self.taps.places)))
        if max(offsets) <= _REACH:
            return 0
        middle = sorted(offsets)[len(offsets) // 2]
        reaches = max(offsets) - middle <= _REACH and middle - min(offsets) <= _REACH
        return middle if reaches else offsets[0]

    def write(self) -> None:
        """Writes the products of all taps, group by group, and widens each group."""
        line, order, wide, halves = self.assembly.line, self.taps.order, self.wide, self.halves
        index = 0
        for number, group in enumerate(self.taps.groups):
            even, odd = wide[2:] if number == 0 else halves
            # From the third group on all vectors are in use, and the weights are loaded twice.
            spare = (halves[0], wide[0], None)[min(number, 2)]
            for position, tap in enumerate(group):
                index += 1
                self._load(tap, order[index:])
                line(f"vldrb.u8 {self.filters}, [{self.weights}], #16")
                self._multiply(even, odd, spare, is_first=position == 0)
            if number == min(1, len(self.taps.groups) - 1):
                for half, target, source in zip(
                    "btbt", wide, (wide[2], wide[2], wide[3], wide[3]), strict=True
                ):
                    line(f"vmovl{half}.s16 {target}, {source}")
            if number >= 1:
                for target, half, source in zip(wide, "btbt", (even, even, odd, odd), strict=True):
                    line(f"vmovl{half}.s16 {self.tap}, {source}", f"vadd.i32 {target}, {target}, {self.tap}")
        self.assembly.free(*halves, self.tap, self.filters)

    def _load(self, tap: int, following: Sequence[int]) -> None:
        """Loads sixteen channels under a tap; after the last tap of a row its pointer goes to the next block."""
        line, at = self.assembly.line, self.at
        if tap in self.taps.outside:
            line(f"vmov.i8 {self.tap}, #{self.taps.zero_point & 0xFF}")
            return
        row, offset = self.taps.places[tap]
        register = self.rows[row]
        if abs(offset - at[row]) > _REACH:
            self.assembly.move(register, offset - at[row])
            at[row] = offset
        own = self.taps.offsets_of(row, following)
        goal = own[0] if own else self.bases[row] + BYTES
        is_far = not own or abs(goal - at[row]) > _REACH
        if is_far and offset == at[row] and 0 < abs(goal - offset) <= _REACH:
            line(f"vldrb.u8 {self.tap}, [{register}], #{goal - offset}")
            at[row] = goal
        else:
            line(f"vldrb.u8 {self.tap}, [{register}, #{offset - at[row]}]")
            if not own:
                self.assembly.move(register, goal - at[row])
                at[row] = goal
        if not own:
            at[row] -= BYTES

    def _multiply(self, even: str, odd: str, spare: str | None, *, is_first: bool) -> None:
        """Products of a tap and its weights in sixteen bits, or added to what there is."""
        line, tap, filters = self.assembly.line, self.tap, self.filters
        if is_first:
            line(f"vmullb.s8 {even}, {tap}, {filters}", f"vmullt.s8 {odd}, {tap}, {filters}")
        elif spare is not None:
            line(f"vmullb.s8 {spare}, {tap}, {filters}", f"vmullt.s8 {tap}, {tap}, {filters}")
            line(f"vadd.i16 {even}, {even}, {spare}", f"vadd.i16 {odd}, {odd}, {tap}")
        else:
            line(f"vmullb.s8 {filters}, {tap}, {filters}", f"vadd.i16 {even}, {even}, {filters}")
            line(f"vldrb.u8 {filters}, [{self.weights}, #-16]")
            line(f"vmullt.s8 {tap}, {tap}, {filters}", f"vadd.i16 {odd}, {odd}, {tap}")


def _write_scaled(
    assembly: Assembly, kind: Kind, wide: Sequence[str], scales: str, zero_point: str, limits: Sequence[str]
) -> None:
    """Scales four vectors, and narrows them to the bytes of the first in order."""
    line = assembly.line
    for vector in wide:
        write_scaling(assembly, kind, [vector], scales)
    first, second, third, fourth = wide
    line(f"vqmovnb.s32 {first}, {first}", f"vqmovnb.s32 {third}, {third}")
    line(f"vqmovnt.s32 {first}, {second}", f"vqmovnt.s32 {third}, {fourth}")
    line(f"vqadd.s16 {first}, {first}, {zero_point}", f"vqadd.s16 {third}, {third}, {zero_point}")
    line(f"vqmovnb.s16 {first}, {first}", f"vqmovnt.s16 {first}, {third}")
    if limits:
        low, high = assembly.take_all("limit", 2, Registers.VECTOR)
        line(f"vdup.8 {low}, {limits[0]}", f"vdup.8 {high}, {limits[1]}")
        line(f"vmax.s8 {first}, {first}, {low}", f"vmin.s8 {first}, {first}, {high}")
        assembly.free(low, high)
