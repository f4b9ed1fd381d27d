"""Sums of elements with the weights of two channels at once: what dot products add up, and what is made of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.isa.dsp.dot import dot
from bytewright.lower.isa.dsp.pairing import Int64, Pairing
from bytewright.lower.isa.dsp.words import BYTES, I32


def reaches_of(pairing: Pairing, weights: Int64) -> list[Int64]:
    """How far each group of four takes the second sum of two channels, and what is made of it: [pairs, groups] each.

    Args:
        pairing: How the weights lie.
        weights: [OC, K], multiples of 2 and of 4.
    """
    most = -pairing.element.bounds[0]
    return [
        most * np.abs(each).reshape(len(each), -1, BYTES).sum(axis=2)
        for each in pairing.factors(weights[0::2], weights[1::2])
    ]


def are_held(pairing: Pairing, weights: Int64, bias: Int64) -> bool:
    """Whether no sum leaves 32 bits, of channels of which each fits them."""
    if pairing.is_apart:
        return True  # the sums are those of the channels
    both, alone = (each.sum(axis=1) for each in reaches_of(pairing, weights))
    return bool(max((np.abs(bias[0::2]) + both).max(), alone.max()) < 2**31)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Channels, two by two.

    Attributes:
        body: The statements so far.
        pairing: How the weights lie.
        weights: i32[pairs, words].
        initial: What the sum of a channel starts from.
        pitch: Elements from a pixel's first to the next pixel's; 0 if they are words that take turns.
    """

    body: BodyBuilder
    pairing: Pairing
    weights: ir.Buffer
    initial: Callable[[ir.Expr], ir.Expr]
    pitch: int

    def sums(self, num: int, patch: ir.Buffer, block: ir.Expr, size: int = 2) -> list[list[ir.Expr]]:
        """Those of the channels of a pair, two or the first alone, each of so many pixels."""
        body, pairing = self.body, self.pairing
        initial = body.let("initial", self.initial(block * 2))

        def second() -> ir.Expr:
            return body.let("second", self.initial(block * 2 + 1))

        is_apart = pairing.is_apart and size == 2
        sums = self.multiplied(num, patch, block, (initial, second() if is_apart else initial))
        found: list[list[ir.Expr]] = [[load(own[0]) for own in sums]]
        if size == 2:
            missing = ir.const(0) if is_apart else second()
            found.append([missing + pairing.second(own) for own in sums])
        return found

    def multiplied(
        self,
        num: int,
        patch: ir.Buffer,
        block: ir.Expr,
        initial: tuple[ir.Expr, ir.Expr],
        first: int = 0,
        depth: int = 0,
    ) -> list[tuple[ir.Buffer, ir.Buffer]]:
        """Both sums of each pixel, from what they start from, over so many elements of the patch, or all."""
        pairing, size = self.pairing, 2 * ir.num_elements(self.weights) // int(self.weights.shape[0])  # type: ignore[arg-type]
        firsts, seconds = (
            [self.body.scalar(f"{name}{p}", I32, start) for p in range(num)]
            for name, start in zip(pairing.sums, initial, strict=True)
        )
        sums = list(zip(firsts, seconds, strict=True))
        elements = region(patch, first if self.pitch else first // 2 * num)
        flat = [each for pair in sums for each in pair]
        instruction = dot(num, depth or size, pairing.element, self.pitch)
        self.body.execute(instruction, *flat, elements, region(self.weights, block, first // 2))
        return sums
