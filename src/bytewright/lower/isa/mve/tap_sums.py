"""Depthwise convolutions of whole pixels on MVE: as many channels as fill a vector at a time, all taps of a window.

`vmullb` and `vmullt` multiply bytes to sixteen bits, of even and of odd channels. Products of several taps are added in
sixteen bits as long as no sum of theirs can leave them, which the weights say; such a group is widened once. Groups
are the same for all channels. Activations of 16 bits have products of 32, which are added as they are. Lanes are put
back in order by the narrowing instructions, which undo what widening does.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
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
# The channels in the lanes of the vectors of 32 bits that widenings make: two of bytes, one of 16 bits.
_LANE_ORDERS = {
    I8: np.array([0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15]),
    I16: np.array([0, 2, 4, 6, 1, 3, 5, 7]),
}
MAX_ROWS = 5
_REACH = 127  # of a load's offset, in elements
# What ends the names of loads and stores of a vector of elements.
_LOADS = {I8: "b.u8", I16: "h.u16"}
_STORES = {I8: "b.8", I16: "h.16"}


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps of a window, and how they are summed.

    Attributes:
        num_rows: Rows of the window.
        places: For each tap its row and its offset in the row.
        groups: Numbers of taps that are summed in sixteen bits; every tap is in one.
        outside: Numbers of taps that are beside the input, whose offsets mean nothing.
        zero_point: What these read.
        element: Type of activations: I8 or I16. Weights are I8.
    """

    num_rows: int
    places: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...]
    outside: frozenset[int] = frozenset()
    zero_point: int = 0
    element: ir.DType = I8

    @property
    def lanes(self) -> int:
        """Channels of a block."""
        return lanes_of(self.element)

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


def lanes_of(element: ir.DType) -> int:
    """Activations in a vector."""
    return 16 // element.size_bytes


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


def first_channels(num_channels: int, lanes: int) -> list[int]:
    """The first channel of each block; the last block ends with the last channel."""
    blocks = -(-num_channels // lanes)
    return [min(block * lanes, num_channels - lanes) for block in range(blocks)]


def packed_taps(weights: NDArray[np.generic], taps: Taps) -> NDArray[np.generic]:
    """Weights [C, taps] in the order in which one pointer reads them, [blocks, taps, lanes], flat."""
    return Layout(lanes=taps.lanes, channels=End.REPEAT).pack(weights[:, taps.order])


def channels_of_vectors(num_channels: int, element: ir.DType = I8) -> NDArray[np.int64]:
    """The channels in the lanes of each vector of sums, [vectors, 4]."""
    order = _LANE_ORDERS[element]
    blocks = [first + order for first in first_channels(num_channels, len(order))]
    return np.concatenate(blocks).reshape(-1, 4)


@cache
def sum_taps(taps: Taps, num_channels: int, kind: Kind, *, has_limits: bool) -> ir.Instruction:
    """All channels of a pixel of a depthwise convolution, scaled to elements of the input's type.

    Operands: the output, [num_channels]; for each row of the window the input under it; weights as `packed_taps`,
    scales as `Scaling.packed` has them for `channels_of_vectors`; zero point, and if it `has_limits` low and high,
    which else are the ends of the type.
    """
    element, lanes = taps.element, taps.lanes
    starts = first_channels(num_channels, lanes)
    blocks, num_taps = len(starts), len(taps.places)
    output = memory_parameter("output", num_channels, element, ir.Access.WRITE)
    rows = [memory_parameter(f"row{i}", taps.span + num_channels, element) for i in range(taps.num_rows)]
    weights = memory_parameter("weights", blocks * num_taps * lanes, I8)
    scales = memory_parameter("scales", blocks * 3 * lanes, I32)
    names = ("zero_point", "low", "high") if has_limits else ("zero_point",)
    limits = [ir.ScalarParameter(ir.Var(name, I32)) for name in names]
    name = _name(taps, num_channels, kind, has_limits=has_limits)
    body = BodyBuilder()
    parts = [(0, blocks)] if starts[-1] == (blocks - 1) * lanes else [(0, blocks - 1), (blocks - 1, 1)]
    for first, count in parts:
        if not count:
            continue
        with (
            body.for_(f"{name}.block", first, first + count) as block,
            body.for_(f"{name}.lane", 0, lanes) as lane,
        ):
            channel = block * lanes + (starts[first] - first * lanes) + lane
            # Where the lane's numbers lie: those of channels 0, 4, 8, 12, 2, 6, ... are one after another.
            num_vectors = lanes // 4
            vector = (lane % 2) * 2 + (lane // 2) % 2 if element is I8 else lane % 2
            at = body.let("at", (block * num_vectors + vector) * 12 + lane // num_vectors)
            total = body.scalar("total", I32, load(scales.buffer, at))
            for number, value in enumerate(_values(taps, rows, channel)):
                weight = load(weights.buffer, (block * num_taps + number) * lanes + lane)
                body.add_to(total, (), ir.cast(value, I32) * ir.cast(weight, I32))
            ends: list[ir.Expr] = [each.variable for each in limits]
            if not has_limits:
                ends += [ir.const(end) for end in element.bounds]
            multiplier, shift = load(scales.buffer, at + 4), 0 - load(scales.buffer, at + 8)
            body.store(output.buffer, channel, scaled(kind, load(total), multiplier, shift, ends, element))
    return ir.Instruction(
        name,
        (output, *rows, weights, scales, *limits),
        body.finish(),
        _text(taps, num_channels, kind, has_limits=has_limits),
        FEATURE,
        f"{num_channels} channels of a pixel of a depthwise convolution: products of {num_taps} taps, {lanes} channels "
        f"at a time, {_summed(taps)}; their bias, and scaling to the output.",
    )


def _name(taps: Taps, num_channels: int, kind: Kind, *, has_limits: bool) -> str:
    shape = "_".join(f"{row}p{offset}" for row, offset in taps.places)
    digest = zlib.crc32(f"{shape} {taps.groups} {sorted(taps.outside)} {taps.zero_point}".encode())
    limited, element = (
        "_limited" if has_limits else "",
        "" if taps.element is I8 else f"_{taps.element.value}",
    )
    size = f"{len(taps.places)}x{num_channels}"
    return f"mve_taps_{size}_{kind.name.lower()}{limited}_{digest:08x}{element}"


def _values(taps: Taps, rows: Sequence[ir.BufferParameter], channel: ir.Expr) -> Iterator[ir.Expr]:
    """What lies under each tap of a channel, in their order."""
    for tap in taps.order:
        row, offset = taps.places[tap]
        is_outside = tap in taps.outside
        yield (
            ir.const(taps.zero_point, taps.element)
            if is_outside
            else load(rows[row].buffer, channel + offset)
        )


def _summed(taps: Taps) -> str:
    """How products are summed, for a reader of the C."""
    if taps.element is not I8:
        return "summed in 32 bits"
    return f"summed in 16 bits in groups of {', '.join(str(len(group)) for group in taps.groups)}"


def _text(taps: Taps, num_channels: int, kind: Kind, *, has_limits: bool) -> str:
    """The C text of `sum_taps`, one block of channels as a loop.

    A last block that shares channels with the one before it goes back first.
    """
    assembly = Assembly()
    line = assembly.line
    size = taps.element.size_bytes
    pointer = f"int{8 * size}_t *"
    output = assembly.operand("output", pointer)
    rows = [assembly.operand(f"row{i}", f"const {pointer}") for i in range(taps.num_rows)]
    # Loads that widen take low registers as addresses.
    weights = assembly.operand("weights", "const int8_t *", Registers.GENERAL if size == 1 else Registers.LOW)
    scales = assembly.operand("scales", "const int32_t *")
    zero_point = assembly.operand("zero_point", "int32_t")
    limits = [assembly.operand(name, "int32_t") for name in ("low", "high")] if has_limits else []
    blocks, back = -(-num_channels // taps.lanes), -num_channels % taps.lanes
    sums = (_Sums if size == 1 else _WideSums)(assembly, taps, rows, weights)
    for register, base in zip(rows, sums.bases, strict=True):
        assembly.move(register, base * size)
    last = assembly.take("last", Registers.GENERAL) if back else ""
    turns = assembly.take("turns", Registers.LOOP)
    if back:
        line(f"movw {last}, #1")
    if blocks > 1:
        line(f"movw {turns}, #{blocks - 1 if back else blocks}", "1:")
    sums.write()
    _write_scaled(assembly, kind, sums.wide, scales, zero_point, limits)
    line(f"vstr{_STORES[taps.element]} {sums.wide[0]}, [{output}], #16")
    if blocks > 1:
        line(f"le {turns}, 1b")
    if back:
        line(f"subs {last}, #1", "bmi 2f")
        for register in (output, *rows):
            assembly.move(register, -back * size)
        line(f"movw {turns}, #1", "b 1b", "2:")
    return assembly.text()


class _Loads:
    """The sums of a block, and what they are made of.

    Attributes:
        bases: Where the pointer to each row stands before a block, in elements.
        wide: Vectors of sums.
        halves: Two vectors for products.
        tap, filters: Vectors of factors.
    """

    def __init__(self, assembly: Assembly, taps: Taps, rows: Sequence[str], weights: str) -> None:
        self.assembly, self.taps, self.rows, self.weights = assembly, taps, rows, weights
        self.bases = [self._base(row) for row in range(taps.num_rows)]
        self.wide = assembly.take_all("sums", taps.lanes // 4, Registers.VECTOR)
        self.halves = assembly.take_all("products", 2, Registers.VECTOR)
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

    def _load(self, tap: int, following: Sequence[int]) -> None:
        """Loads the channels under a tap; after the last tap of a row its pointer goes to the next block."""
        line, at, size = self.assembly.line, self.at, self.taps.element.size_bytes
        if tap in self.taps.outside:
            assert size == 1 or not self.taps.zero_point, "int16 has no zero point"
            line(f"vmov.i{8 * size} {self.tap}, #{self.taps.zero_point & 0xFF}")
            return
        load = f"vldr{_LOADS[self.taps.element]} {self.tap}"
        row, offset = self.taps.places[tap]
        register = self.rows[row]
        if abs(offset - at[row]) > _REACH:
            self.assembly.move(register, (offset - at[row]) * size)
            at[row] = offset
        own = self.taps.offsets_of(row, following)
        goal = own[0] if own else self.bases[row] + self.taps.lanes
        is_far = not own or abs(goal - at[row]) > _REACH
        if is_far and offset == at[row] and 0 < abs(goal - offset) <= _REACH:
            line(f"{load}, [{register}], #{(goal - offset) * size}")
            at[row] = goal
        else:
            line(f"{load}, [{register}, #{(offset - at[row]) * size}]")
            if not own:
                self.assembly.move(register, (goal - at[row]) * size)
                at[row] = goal
        if not own:
            at[row] -= self.taps.lanes


class _WideSums(_Loads):
    """Of activations of 16 bits: sums of 32 bits."""

    def write(self) -> None:
        """Writes the products of all taps, and adds each to the sums."""
        line, order = self.assembly.line, self.taps.order
        for position, tap in enumerate(order):
            self._load(tap, order[position + 1 :])
            line(f"vldrb.s16 {self.filters}, [{self.weights}], #8")
            targets = self.halves if position else self.wide
            for half, target in zip("bt", targets, strict=True):
                line(f"vmull{half}.s16 {target}, {self.tap}, {self.filters}")
            if position:
                for total, product in zip(self.wide, self.halves, strict=True):
                    line(f"vadd.i32 {total}, {total}, {product}")
        self.assembly.free(*self.halves, self.tap, self.filters)


class _Sums(_Loads):
    """Of bytes: sums of 16 bits in groups, which are widened."""

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
    """Scales two or four vectors, and narrows them to the elements of the first in order, of 16 bits or bytes."""
    line = assembly.line
    for vector in wide:
        write_scaling(assembly, kind, [vector], scales)
    if len(wide) == 2:
        first, second = wide
        line(*(f"vqadd.s32 {each}, {each}, {zero_point}" for each in wide))
        line(f"vqmovnb.s32 {first}, {first}", f"vqmovnt.s32 {first}, {second}")
    else:
        first, second, third, fourth = wide
        line(f"vqmovnb.s32 {first}, {first}", f"vqmovnb.s32 {third}, {third}")
        line(f"vqmovnt.s32 {first}, {second}", f"vqmovnt.s32 {third}, {fourth}")
        line(f"vqadd.s16 {first}, {first}, {zero_point}", f"vqadd.s16 {third}, {third}, {zero_point}")
        line(f"vqmovnb.s16 {first}, {first}", f"vqmovnt.s16 {first}, {third}")
    if limits:
        bits = 32 // len(wide)
        low, high = assembly.take_all("limit", 2, Registers.VECTOR)
        line(f"vdup.{bits} {low}, {limits[0]}", f"vdup.{bits} {high}, {limits[1]}")
        line(f"vmax.s{bits} {first}, {first}, {low}", f"vmin.s{bits} {first}, {first}, {high}")
        assembly.free(low, high)
