"""Operators on small images of int8, for random graphs: windows, convolutions, float islands, sums, choices.

Each adds operators to a function under construction, and says the same in Python. Scales are powers of two, and
constants few bits long, so that what is computed in float32 is exact in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bytewright.ir.types import DType, TensorType
from bytewright.ops.cast import TflCast
from bytewright.ops.convolution import Conv2d
from bytewright.ops.data import Reshape, Slice
from bytewright.ops.elementwise import Add, Clamp, Maximum, Mul, Select, Sub
from bytewright.ops.float_functions import Abs, Floor, Negate
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d
from bytewright.ops.quantization import TflDequantize, TflQuantize

if TYPE_CHECKING:
    from support.random_graphs import Body

IMAGE = TensorType((1, 9, 6, 2), DType.I8)
BYTES = TensorType((5,), DType.I8)
NARROW = TensorType((1,), DType.I32)
FLAG = TensorType((1,), DType.BOOL)
_FLAT = TensorType((108,), DType.I8)
_BYTE = TensorType((1,), DType.I8)
_SUMS = TensorType(IMAGE.shape, DType.I32)
_REAL = TensorType(IMAGE.shape, DType.F32)
_FACTORS = TensorType((2,), DType.F32)
_MANY = 8
_AROUND = (1, 1, 1, 1)

PRELUDE = """\
def windows(x, outside):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=outside)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))

def averaged(x):
    total = windows(x.astype(np.int64), 0).sum(axis=(-2, -1))
    count = windows(np.ones_like(x, np.int64), 0).sum(axis=(-2, -1))
    return (np.sign(total) * ((np.abs(total) + count // 2) // count)).astype(np.int8)

def convolved(x, weights, offsets):
    sums = np.einsum("nyxcij,oijc->nyxo", windows(x.astype(np.int64), 0), weights.astype(np.int64))
    return (sums + offsets).astype(np.int32)

def quantised(x, scale, zero_point):
    steps = x.astype(np.float64) / scale
    nearest = np.sign(steps) * np.floor(np.abs(steps) + 0.5)
    return np.clip(nearest + zero_point, -128, 127).astype(np.int8)
"""


def layers(body: Body) -> None:
    """Windows and convolutions, each of the one before, so that they can run row by row."""
    x = body.operand(IMAGE)
    for _ in range(body.random.randint(1, 4)):
        x = body.random.choice((_window, _convolution, _expansion))(body, x)


def _window(body: Body, x: str) -> str:
    """The greatest, or the mean, around each element."""
    shape = ((3, 3), (1, 1), _AROUND)
    if body.random.randrange(2):
        return body.computed(MaxPool2d(*shape), [x], IMAGE, f"windows({x}, -128).max(axis=(-2, -1))")
    return body.computed(TflAveragePool2d(*shape), [x], IMAGE, f"averaged({x})")


def _convolution(body: Body, x: str) -> str:
    """A layer."""
    return _layer(body, x, 2, 2)


def _expansion(body: Body, x: str) -> str:
    """Two layers with many channels between, which are never whole where they run row by row."""
    return _layer(body, _layer(body, x, 2, _MANY), _MANY, 2)


def _layer(body: Body, x: str, before: int, after: int) -> str:
    """A convolution from so many channels to so many, whose sums are limited to bytes."""
    weights = body.builder.constant(TensorType((after, 3, 3, before), DType.I8))
    offsets = body.limited_constant(TensorType((after,), DType.I32))
    operation = Conv2d(stride=(1, 1), padding=_AROUND, dilation=(1, 1))
    result = TensorType((*IMAGE.shape[:3], after), DType.I32)
    sums = body.computed(operation, [x, weights, offsets], result, f"convolved({x}, {weights}, {offsets})")
    return _limited(body, sums, result)


def _limited(body: Body, sums: str, type_: TensorType) -> str:
    low = body.random.randrange(-128, 0)
    limited = body.computed(Clamp(low, 127), [sums], type_, f"np.clip({sums}, {low}, 127)")
    narrow = TensorType(type_.shape, DType.I8)
    return body.computed(TflCast(DType.I8), [limited], narrow, f"{limited}.astype(np.int8)")


def difference(body: Body) -> None:
    """Of two images, or their sum, limited to bytes."""
    operation, sign = body.random.choice(((Add(), "+"), (Sub(), "-")))
    wide: list[str] = []
    for _ in range(2):
        x = body.operand(IMAGE)
        wide.append(body.computed(TflCast(DType.I32), [x], _SUMS, f"{x}.astype(np.int32)"))
    _limited(body, body.computed(operation, wide, _SUMS, f"{wide[0]} {sign} {wide[1]}"), _SUMS)


def island(body: Body) -> None:
    """Functions of one float or of two, between a dequantisation and a quantisation."""
    random = body.random
    reals = [_dequantised(body) for _ in range(random.randint(1, 2))]
    value = reals[0]
    if len(reals) == 2:
        operation, text = random.choice(
            ((Add(), "{} + {}"), (Sub(), "{} - {}"), (Maximum(), "np.maximum({}, {})"))
        )
        value = body.computed(operation, reals, _REAL, text.format(*reals))
    for _ in range(random.randrange(3)):
        value = _function(body, value)
    scale, zero_point = 2.0 ** -random.randrange(5), random.randrange(-128, 128)
    body.computed(
        TflQuantize(scale, zero_point), [value], IMAGE, f"quantised({value}, {scale}, {zero_point})"
    )


def _dequantised(body: Body) -> str:
    x = body.operand(IMAGE)
    scale, zero_point = 2.0 ** -body.random.randrange(5), body.random.randrange(-128, 128)
    text = f"({x}.astype(np.float32) - {zero_point}) * np.float32({scale})"
    return body.computed(TflDequantize(scale, zero_point), [x], _REAL, text)


def _function(body: Body, value: str) -> str:
    chosen = body.random.randrange(5)
    if chosen == 0:
        factors = body.builder.constant(_FACTORS)
        return body.computed(Mul(), [value, factors], _REAL, f"{value} * {factors}")
    operation, text = (
        (Abs(), f"np.abs({value})"),
        (Negate(), f"-{value}"),
        (Floor(), f"np.floor({value})"),
        (Clamp(-3.5, 20.25), f"np.clip({value}, np.float32(-3.5), np.float32(20.25))"),
    )[chosen - 1]
    return body.computed(operation, [value], _REAL, text)


def choice(body: Body) -> None:
    """One of two images, by a truth value."""
    flag, first, second = body.operand(FLAG), body.operand(IMAGE), body.operand(IMAGE)
    body.computed(Select(), [flag, first, second], IMAGE, f"np.where({flag}, {first}, {second})")


def part(body: Body) -> None:
    """Some of an image as bytes, of which the first decides what comes."""
    x, first = body.operand(IMAGE), body.random.randrange(103)
    flat = body.computed(Reshape(_FLAT.shape), [x], _FLAT, f"{x}.reshape(-1)")
    cut = Slice((first,), (5,), (1,))
    some = body.computed(cut, [flat], BYTES, f"{flat}[{first}:{first + 5}]")
    one = body.computed(Slice((0,), (1,), (1,)), [some], _BYTE, f"{some}[:1]")
    body.computed(TflCast(DType.I32), [one], NARROW, f"{one}.astype(np.int32)")


MAKERS = (layers, layers, difference, island, choice, part)
