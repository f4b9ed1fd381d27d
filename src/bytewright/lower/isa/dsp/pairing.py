"""How the weights of two output channels lie in words, and what a pixel sums of them, by the type of activations.

A group is four activations, two words of halves, and the two words of weights that meet them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.isa.dsp.words import BYTES, I8, I16, byte, high_half, low_byte, low_half
from bytewright.lower.kernels.layout import Layout

Int64 = NDArray[np.int64]
Two = tuple[ir.Expr, ir.Expr]
Four = Sequence[ir.Expr]


class Pairing(ABC):
    """The weights of two channels, for activations of a type.

    Attributes:
        element: The type.
        suffix: Of the names of instructions.
        sums: Names of the two sums of a pixel.
        story: What the sums are, for a reader of the C.
        is_apart: Whether the second sum is the second channel's, and starts from its bias; else it is one of both
            channels, and starts from the first one's.
    """

    element: ir.DType
    suffix: str
    sums: tuple[str, str]
    story: str
    is_apart: bool

    @abstractmethod
    def packed(self, weights: ir.Array) -> ir.Array | None:
        """Weights [OC, K] as words, i32[ceil(OC / 2), ceil(K / 4) * 2]; None if some do not fit."""

    @abstractmethod
    def factors(self, first: Int64, second: Int64) -> tuple[Int64, Int64]:
        """What activations meet in the second sum, and in what `second` makes of it, of weights of two channels."""

    @abstractmethod
    def added(self, activations: Four, weights: Two) -> Two:
        """What the activations of a group, in their order in words, add to each sum."""

    @abstractmethod
    def products(self, number: int, activations: Sequence[str]) -> list[str]:
        """Instructions for a word of a group's activations, by its number, which each pixel has in a register."""

    @abstractmethod
    def second(self, sums: tuple[ir.Buffer, ir.Buffer]) -> ir.Expr:
        """The second channel's sum, less its bias where that is not in it."""


def _by_groups(weights: ir.Array) -> Int64:
    """Weights [OC, K] of two channels and four elements, [pairs * groups, 2, 4], with zeros at both ends."""
    return Layout(lanes=2, group=BYTES).pack(weights).astype(np.int64).reshape(-1, 2, BYTES)


class _SharedHalves(Pairing):
    """Of int8: a weight and that of the next channel that meets the same activation share a half, `h = a + 256 * b`.

    One multiplication adds `x * h` to a sum for both, and another, by the byte `a` alone, `x * a` to the sum of the
    first. Their difference is 256 times the sum of the second. So of two words only one is extracted, where each weight
    on its own would need both.
    """

    element, suffix, sums, is_apart = I8, "", ("low", "both"), False
    story = "with the lower bytes of the weights, and with their whole halves"

    def packed(self, weights: ir.Array) -> ir.Array | None:
        ordered = _by_groups(weights)
        halves = ordered[:, 0] + 256 * ordered[:, 1]
        if halves.size and (halves.min() < I16.bounds[0] or halves.max() > I16.bounds[1]):
            return None
        # The first and the third of a group are a word, then the second and the fourth.
        words = halves.reshape(-1, 2, 2).transpose(0, 2, 1).astype("<i2", order="C").view("<i4")
        return words.reshape(-(-weights.shape[0] // 2), -1)

    def factors(self, first: Int64, second: Int64) -> tuple[Int64, Int64]:
        return first + 256 * second, 256 * second

    def added(self, activations: Four, weights: Two) -> Two:
        return _sum_of(activations, weights, low_byte), _sum_of(activations, weights, low_half)

    def products(self, number: int, activations: Sequence[str]) -> list[str]:
        boths = (f"smlad %[both{p}], %[{x}], %[w{number}], %[both{p}]" for p, x in enumerate(activations))
        lows = (f"smlad %[low{p}], %[{x}], %[bytes], %[low{p}]" for p, x in enumerate(activations))
        return [f"sxtb16 %[bytes], %[w{number}]", *boths, *lows]

    def second(self, sums: tuple[ir.Buffer, ir.Buffer]) -> ir.Expr:
        low, both = sums
        return (load(both) - load(low)) >> 8


class _OwnBytes(Pairing):
    """Of int16, whose products with shared halves would leave 32 bits: four weights of a channel are a word.

    Its first and third byte meet the first word of activations, as halves of a word, the others the second.
    """

    element, suffix, sums, is_apart = I16, "_i16", ("first", "second"), True
    story = "with the weights of a channel, and with those of the next"

    def packed(self, weights: ir.Array) -> ir.Array | None:
        words = _by_groups(weights)[..., [0, 2, 1, 3]].astype("<i1", order="C").view("<i4")
        return words.reshape(-(-weights.shape[0] // 2), -1)

    def factors(self, first: Int64, second: Int64) -> tuple[Int64, Int64]:
        return first, second

    def added(self, activations: Four, weights: Two) -> Two:
        def total(word: ir.Expr) -> ir.Expr:
            first, *rest = (x * byte(word, place) for x, place in zip(activations, (0, 2, 1, 3), strict=True))
            return sum(rest, first)

        return total(weights[0]), total(weights[1])

    def products(self, number: int, activations: Sequence[str]) -> list[str]:
        turned = ", ror #8" if number else ""
        return [
            line
            for channel, name in enumerate(self.sums)
            for line in (
                f"sxtb16 %[bytes], %[w{channel}]{turned}",
                *(f"smlad %[{name}{p}], %[{x}], %[bytes], %[{name}{p}]" for p, x in enumerate(activations)),
            )
        ]

    def second(self, sums: tuple[ir.Buffer, ir.Buffer]) -> ir.Expr:
        return load(sums[1])


def _sum_of(activations: Four, weights: Two, of: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    halves = [half for word in weights for half in (of(word), of(high_half(word)))]
    first, *rest = (x * half for x, half in zip(activations, halves, strict=True))
    return sum(rest, first)


PAIRINGS: Mapping[ir.DType, Pairing] = {each.element: each for each in (_SharedHalves(), _OwnBytes())}
