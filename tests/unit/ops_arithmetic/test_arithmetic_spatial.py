"""Resizes, and products of matrices in int8: measured against both references, at ties and at all positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bytewright.frontends.tflite.unsigned import with_sign, without_sign
from bytewright.ops.arithmetic.factors import prepare_batch_matmul
from bytewright.ops.arithmetic.multiplier import Multiplier, quantize_multiplier
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import double_round
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from support.reference import LiteRt, TfLiteMicro
from support.tiers import TIMES
from tflite_writer import ModelBuilder

REFERENCES = {Numerics.LITERT_REF: LiteRt, Numerics.TFLM: TfLiteMicro}
MODES = ((False, False), (True, False), (False, True))


def resized(
    kind: str, shape: tuple[int, int], size: tuple[int, int], mode: tuple[bool, bool], dtype: str
) -> bytes:
    builder = ModelBuilder()
    affine: dict[str, Any] = {} if dtype == "float32" else {"scale": 0.5, "zero_point": 3}
    x = builder.tensor("x", (1, *shape, 1), dtype, **affine)
    y = builder.tensor("y", (1, *size, 1), dtype, **affine)
    options = {"align_corners": mode[0], "half_pixel_centers": mode[1]}
    builder.operator(kind, [x, builder.constant("size", np.array(size, np.int32))], [y], **options)
    return builder.build([x], [y])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("numerics", Numerics)
@pytest.mark.parametrize("mode", MODES)
def test_resizes(mode: tuple[bool, bool], numerics: Numerics, dtype: str) -> None:
    """All positions of sizes of up to 300, to the last bit; those that the reference cannot read are refused."""
    generator = np.random.default_rng(5)
    num_refused = 0
    for _ in range(12 * TIMES):
        height, out_height = (int(n) for n in generator.integers(1, 300, 2))
        shape, size = (height, int(generator.integers(1, 9))), (out_height, int(generator.integers(1, 9)))
        x = generator.integers(-128, 128, (1, *shape, 1)).astype(dtype)
        x = x / np.float32(3) if dtype == "float32" else x
        for kind, operation in (
            ("RESIZE_NEAREST_NEIGHBOR", TflResizeNearest(size, *mode)),
            ("RESIZE_BILINEAR", TflResizeBilinear(size, *mode)),
        ):
            try:
                (own,) = operation.evaluate((x,))
            except ValueError:
                num_refused += 1
                continue
            (wanted,) = REFERENCES[numerics](resized(kind, shape, size, mode, dtype)).run(x)
            assert (own == wanted).all(), (kind, shape, size)
    assert num_refused <= 3 * TIMES


@pytest.mark.parametrize("mode", MODES)
def test_resizes_of_uint8(mode: tuple[bool, bool]) -> None:
    """Float sums, rounded half up: sizes of whole ratios, whose sums lie at ties, and any others."""
    generator = np.random.default_rng(8)
    for turn in range(24 * TIMES):
        shape = tuple(int(n) for n in generator.integers(1, 40, 2))
        factor = int(generator.choice([2, 3, 4, 8]))
        size = tuple(factor * n for n in shape) if turn % 2 else tuple(map(int, generator.integers(1, 90, 2)))
        x = generator.integers(0, 256 if turn % 3 else 3, (1, *shape, 1)).astype(np.uint8)
        try:
            (own,) = TflResizeBilinear((size[0], size[1]), *mode, unsigned=True).evaluate((with_sign(x),))
        except ValueError:
            continue
        content = resized("RESIZE_BILINEAR", (shape[0], shape[1]), (size[0], size[1]), mode, "uint8")
        (wanted,) = LiteRt(content).run(x)
        np.testing.assert_array_equal(without_sign(own), wanted, str((shape, size)))


def product_at_ties(scales: tuple[float, float, float]) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", (256, 1), "int8", scale=scales[0], zero_point=5)
    w = builder.tensor("w", (1, 40), "int8", scale=scales[1], zero_point=-7)
    y = builder.tensor("y", (256, 40), "int8", scale=scales[2], zero_point=2)
    builder.operator("BATCH_MATMUL", [x, w], [y])
    return builder.build([x, w], [y])


def scaled(accumulators: np.ndarray, factor: Multiplier) -> np.ndarray:
    rounded = double_round(accumulators, factor.multiplier, factor.left_shift, factor.right_shift)
    return np.clip(rounded + 2, -128, 127)


@pytest.mark.parametrize("numerics", Numerics)
def test_products_of_matrices_at_ties(numerics: Numerics) -> None:
    """Factors of 1/2, 3/4, 7/10 and the like: accumulators lie halfway, and the last bit of the factor decides."""
    generator = np.random.default_rng(6)
    x = np.arange(-128, 128).astype(np.int8).reshape(256, 1)
    others = dict.fromkeys(Numerics, 0)
    in_float = 0
    for number in range(20 * TIMES):
        first, second = (float(np.float32(value)) for value in generator.uniform(0.1, 2, 2))
        ratio = [2, 4 / 3, 10 / 7, 10 / 9, 14 / 9, 6 / 5][number % 6]
        scales = (first, second, float(np.float32(first * second * ratio)))
        w = generator.integers(-20, 20, (1, 40)).astype(np.int8)
        accumulators = (x.astype(np.int64) - 5) @ (w.astype(np.int64) + 7)
        (wanted,) = REFERENCES[numerics](product_at_ties(scales)).run(x, w)
        for other in Numerics:
            own = scaled(accumulators, prepare_batch_matmul(*scales, other))
            others[other] += int((own != wanted).sum())
        single = np.float32(first) * np.float32(second) / np.float32(scales[2])
        in_float += int((scaled(accumulators, quantize_multiplier(float(single))) != wanted).sum())
    assert others.pop(numerics) == 0
    assert all(others.values()), "the ties do not tell the sets apart"
    assert in_float
