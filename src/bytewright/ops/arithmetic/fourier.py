"""Fourier transforms of real samples as TensorFlow Lite Micro computes them: those of kissfft 130, to the last bit.

A transform of N samples is one of N/2 complex numbers, in stages of few points each, and a pass over both ends of its
result. Fixed-point numbers are divided by the number of points before each stage, and rounded there and after each
product. What a stage computes is written once, for arrays of numpy and for expressions of kernels: whoever calls gives
numbers that have the operators, and says how they are named and wrapped (`Environment`).

Source: github.com/mborgerding/kissfft, tag v130; `signal/src/rfft_*.cc` and `irfft_*.cc` of TensorFlow Lite Micro.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RADICES = (4, 2, 3, 5)
"""Points of a stage, in the order in which a number is divided by them."""
Complex = tuple[Any, Any]
Array = NDArray[Any]


def radices(count: int) -> tuple[int, ...]:
    """The points of the stages of a transform of so many complex numbers, the last stage first.

    Raises:
        ValueError: It has another factor, or none.
    """
    found: list[int] = []
    rest = count
    for radix in RADICES:
        while rest > 1 and rest % radix == 0:
            found.append(radix)
            rest //= radix
    if rest != 1 or not found:
        raise ValueError(f"{count} complex numbers, which is no product of {', '.join(map(str, RADICES))}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: blocks of `radix` groups of `size` numbers become blocks of one group.

    Attributes:
        stride: Between the roots of unity that it takes, of those of the whole transform.
    """

    radix: int
    size: int
    stride: int


def stages(count: int) -> Iterator[Stage]:
    """The stages in their order."""
    size = 1
    for radix in reversed(radices(count)):
        yield Stage(radix, size, count // (radix * size))
        size *= radix


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """How numbers are rounded.

    Attributes:
        fraction_bits: Of fixed-point numbers; 0 for floats, which are not.
    """

    fraction_bits: int

    @property
    def greatest(self) -> int:
        """The number that stands for one."""
        return (1 << self.fraction_bits) - 1

    def rounded(self, product: Any) -> Any:
        """A product with twice the fraction bits, rounded half up."""
        bits = self.fraction_bits
        return (product + (1 << (bits - 1))) >> bits if bits else product

    def divided(self, number: Complex, count: int) -> Complex:
        """A number by the points of a stage, which is a product with a rounded reciprocal; floats as they are."""
        if not self.fraction_bits:
            return number
        real, imaginary = (self.rounded(part * (self.greatest // count)) for part in number)
        return real, imaginary

    def times(self, left: Complex, right: Complex) -> Complex:
        """A product of complex numbers."""
        real = left[0] * right[0] - left[1] * right[1]
        return self.rounded(real), self.rounded(left[0] * right[1] + left[1] * right[0])

    def half(self, number: Any) -> Any:
        """Half of a number, rounded down."""
        return number >> 1 if self.fraction_bits else number * 0.5


FIXED = {2: FixedPoint(15), 4: FixedPoint(31)}
"""By the bytes of an integer."""
FLOAT = FixedPoint(0)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where numbers are computed.

    Attributes:
        let: Gives a number a name.
        wrapped: What a number becomes where it is stored in its element type.
    """

    arithmetic: FixedPoint
    is_inverse: bool
    let: Callable[[str, Any], Any]
    wrapped: Callable[[Any], Any]

    def named(self, name: str, number: Complex) -> Complex:
        """Both parts under names."""
        return self.let(f"{name}_real", number[0]), self.let(f"{name}_imaginary", number[1])


def _plus(left: Complex, right: Complex) -> Complex:
    return left[0] + right[0], left[1] + right[1]


def _minus(left: Complex, right: Complex) -> Complex:
    return left[0] - right[0], left[1] - right[1]


def butterfly(
    at: Environment, points: Sequence[Complex], roots: Sequence[Complex], own_roots: Sequence[Complex]
) -> list[Complex]:
    """What a stage makes of one number of each group; sums may leave the element type, in which they wrap.

    Args:
        at: Where they are computed.
        points: As many as the stage has.
        roots: What each but the first is turned by.
        own_roots: Of 3 and 5 points, the roots of unity of that number: the first, and the second of 5.
    """
    radix, arithmetic = len(points), at.arithmetic
    given = [at.named("point", arithmetic.divided(point, radix)) for point in points]
    first = given[0]
    turned = [
        at.named("turned", arithmetic.times(point, root))
        for point, root in zip(given[1:], roots, strict=True)
    ]
    match radix:
        case 2:
            return [_plus(first, turned[0]), _minus(first, turned[0])]
        case 4:
            return _of_four(at, first, turned)
        case 3:
            return _of_three(at, first, turned, own_roots[0])
        case _:
            return _of_five(at, first, turned, own_roots)


def _of_four(at: Environment, first: Complex, turned: Sequence[Complex]) -> list[Complex]:
    even, odd = at.named("even", _plus(first, turned[1])), at.named("odd", _minus(first, turned[1]))
    total = at.named("total", _plus(turned[0], turned[2]))
    cross = at.named("cross", _minus(turned[0], turned[2]))
    back = odd[0] + cross[1], odd[1] - cross[0]
    forth = odd[0] - cross[1], odd[1] + cross[0]
    sides = (forth, back) if at.is_inverse else (back, forth)
    return [_plus(even, total), sides[0], _minus(even, total), sides[1]]


def _of_three(at: Environment, first: Complex, turned: Sequence[Complex], root: Complex) -> list[Complex]:
    arithmetic = at.arithmetic
    total = at.named("total", _plus(*turned))
    cross = _minus(*turned)
    height = at.named("height", (_scaled(at, cross[0], root[1]), _scaled(at, cross[1], root[1])))
    middle = at.named("middle", (first[0] - arithmetic.half(total[0]), first[1] - arithmetic.half(total[1])))
    return [
        _plus(first, total),
        (middle[0] - height[1], middle[1] + height[0]),
        (middle[0] + height[1], middle[1] - height[0]),
    ]


def _of_five(
    at: Environment, first: Complex, turned: Sequence[Complex], roots: Sequence[Complex]
) -> list[Complex]:
    outer, inner = (at.named("sum", _plus(turned[i], turned[3 - i])) for i in range(2))
    cross_outer, cross_inner = (at.named("cross", _minus(turned[i], turned[3 - i])) for i in range(2))
    found: list[Complex] = []
    for near, far, sign in ((roots[0], roots[1], 1), (roots[1], roots[0], -1)):
        real, imaginary = (
            first[part] + _scaled(at, outer[part], near[0]) + _scaled(at, inner[part], far[0])
            for part in range(2)
        )
        middle = at.named("middle", (real, imaginary))
        terms = [
            (_scaled(at, cross_outer[part], near[1]), _scaled(at, cross_inner[part], far[1]))
            for part in range(2)
        ]
        heights = [own + other if sign > 0 else own - other for own, other in terms]
        height = at.named("height", (heights[1], heights[0]))
        found.append((middle[0] - height[0], middle[1] + height[1]))
        found.append((middle[0] + height[0], middle[1] - height[1]))
    everything = tuple(first[part] + (outer[part] + inner[part]) for part in range(2))
    return [(everything[0], everything[1]), found[0], found[2], found[3], found[1]]


def _scaled(at: Environment, number: Any, factor: Any) -> Any:
    return at.arithmetic.rounded(number * factor)


def _conjugate(at: Environment, number: Complex) -> Complex:
    return number[0], at.wrapped(number[1] * -1)


def _ends(at: Environment, low: Complex, high: Complex, root: Complex) -> tuple[Complex, Complex]:
    """Of two numbers that lie alike far from either end: their even part, and the odd one, turned."""
    arithmetic = at.arithmetic
    first = at.named("low", arithmetic.divided(low, 2))
    second = at.named("high", arithmetic.divided(_conjugate(at, high), 2))
    even, odd = at.named("even", _plus(first, second)), at.named("odd", _minus(first, second))
    real, imaginary = (at.wrapped(part) for part in arithmetic.times(odd, root))
    return even, at.named("turned", (real, imaginary))


def spectrum_ends(at: Environment, low: Complex, high: Complex, root: Complex) -> tuple[Complex, Complex]:
    """Two numbers of a spectrum from those of the transform of N/2 numbers."""
    even, turned = _ends(at, low, high, root)
    # Of 32 bits the sums wrap before they are halved; those of 16 are computed in 32.
    sums = [even[0] + turned[0], even[1] + turned[1], even[0] - turned[0], turned[1] - even[1]]
    is_wide = at.arithmetic.fraction_bits == FIXED[4].fraction_bits
    halves = [at.arithmetic.half(at.wrapped(each) if is_wide else each) for each in sums]
    return (halves[0], halves[1]), (halves[2], halves[3])


def transform_ends(at: Environment, low: Complex, high: Complex, root: Complex) -> tuple[Complex, Complex]:
    """The way back of `spectrum_ends`."""
    even, turned = _ends(at, low, high, root)
    return _plus(even, turned), _conjugate(at, tuple(map(at.wrapped, _minus(even, turned))))


def spectrum_of_zero(at: Environment, number: Complex) -> tuple[Any, Any]:
    """The real first and last numbers of a spectrum from the first one of the transform."""
    real, imaginary = at.arithmetic.divided(number, 2)
    real, imaginary = at.let("even", real), at.let("odd", imaginary)
    return real + imaginary, real - imaginary


def transform_of_zero(at: Environment, first: Any, last: Any) -> Complex:
    """The way back of `spectrum_of_zero`."""
    return at.arithmetic.divided((at.wrapped(first + last), at.wrapped(first - last)), 2)


def roots(count: int, dtype: np.dtype[Any], *, is_inverse: bool) -> Array:
    """The roots of unity of a transform of so many complex numbers, [count,2]."""
    return _on_circle([-2 * math.pi * number / count for number in range(count)], dtype, is_inverse)


def super_roots(count: int, dtype: np.dtype[Any], *, is_inverse: bool) -> Array:
    """What the odd parts are turned by, [count/2,2]."""
    phases = [-math.pi * ((number + 1) / count + 0.5) for number in range(count // 2)]
    return _on_circle(phases, dtype, is_inverse)


def _on_circle(phases: Sequence[float], dtype: np.dtype[Any], is_inverse: bool) -> Array:
    """Of each phase cosine and sine, as floats, or in fixed point rounded half up."""
    found: list[tuple[float, float]] = []
    for phase in phases:
        own = -phase if is_inverse else phase
        found.append((math.cos(own), math.sin(own)))
    if dtype.kind == "f":
        return np.array(found, dtype).reshape(-1, 2)
    greatest = FIXED[dtype.itemsize].greatest
    whole = [[math.floor(0.5 + greatest * part) for part in pair] for pair in found]
    return np.array(whole, dtype).reshape(-1, 2)
