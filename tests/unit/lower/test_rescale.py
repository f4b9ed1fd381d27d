"""Every form of requantisation in expressions equals the reference in `ops.arithmetic`, at ties and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import Buffer, const
from bytewright.ir.prim import Access, BufferParameter, PrimFunc
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType
from bytewright.ir.where import Where
from bytewright.lower.rescale import ScaleOperands, double_round, linear, single_round, split_exponents
from bytewright.lower.scalar import Scalar
from bytewright.ops.arithmetic import rescale as reference
from support.evaluation import run_primfunc

I8, I32, I64 = DType.I8, DType.I32, DType.I64
WHERE = Where("m.tflite")
TOP = 2**31 - 1


def operands(multiplier: int, shift: int, left: int = 0) -> ScaleOperands:
    return ScaleOperands(
        multiplier=const(multiplier),
        shift=const(shift),
        left=const(1 << left) if left else None,
        shifts=frozenset({shift}),
        left_bits=left,
        ratio=multiplier / 2.0 ** (31 + shift),
    )


def evaluated(form, values: np.ndarray, bounds: tuple[int, int], scale: ScaleOperands):
    """The form applied to every value by the evaluator, which refuses overflow; and the result's bounds."""
    source = Buffer("source", values.shape, I32, 4)
    target = Buffer("target", values.shape, I32, 4)
    b = BodyBuilder()
    with b.for_("i", 0, len(values)) as i:
        result = form(Scalar(load(source, i), *bounds), scale, WHERE)
        b.store(target, i, result.expr)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(target, Access.WRITE, scope=GLOBAL),
    )
    function = PrimFunc("f", parameters, b.finish())
    found = run_primfunc(function, {"source": values.astype(np.int32)})["target"]
    assert result.low <= found.min()
    assert found.max() <= result.high
    return found


def interesting(multiplier: int, shift: int, bounds: tuple[int, int], seed: int) -> np.ndarray:
    """Bounds, small numbers, random ones, and those next to where the result rises or ties."""
    generator = np.random.default_rng(seed)
    low, high = bounds
    values = [np.array([low, high]), generator.integers(low, high + 1, 60), np.arange(-3, 4)]
    if multiplier:
        halves = generator.integers(-200, 200, 40) + 0.5
        centre = np.round(halves * 2.0 ** (31 + shift) / multiplier)
        values += [centre + offset for offset in (-1, 0, 1)]
    joined = np.concatenate([np.asarray(v, np.float64) for v in values])
    return np.unique(np.clip(joined, low, high).astype(np.int64))


MULTIPLIERS = st.one_of(st.sampled_from([0, 2**30, 2**30 + 1, TOP]), st.integers(2**30, TOP))
# Below and above 2^30 the forms differ, and so they do for bounds of one sign.
BOUNDS = st.sampled_from(
    [
        (-1000, 1000),
        (-(2**30) + 1, 2**30 - 1),
        (-(2**31), TOP),
        (-(2**30), 5),
        (7, 2**20),
        (-(2**25), -3),
        (0, TOP),
    ]
)


@given(MULTIPLIERS, st.integers(0, 31), BOUNDS, st.integers(0, 1000))
def test_double_round(multiplier: int, shift: int, bounds: tuple[int, int], seed: int) -> None:
    values = interesting(multiplier, shift, bounds, seed)
    found = evaluated(double_round, values, bounds, operands(multiplier, shift))
    assert (found == reference.double_round(values, multiplier, 0, shift)).all()


@given(MULTIPLIERS, st.integers(0, 30), BOUNDS, st.integers(0, 1000))
def test_single_round(multiplier: int, shift: int, bounds: tuple[int, int], seed: int) -> None:
    values = interesting(multiplier, shift, bounds, seed)
    found = evaluated(single_round, values, bounds, operands(multiplier, shift))
    assert (found == reference.single_round(values, multiplier, 31 + shift)).all()


@given(MULTIPLIERS, st.integers(1, 8), st.integers(0, 1000))
def test_factors_above_one(multiplier: int, left: int, seed: int) -> None:
    bounds = (-(2 ** (31 - left)), 2 ** (31 - left) - 1)
    values = np.clip(interesting(multiplier, 0, (-5000, 5000), seed), *bounds)
    found = evaluated(double_round, values, (-5000, 5000), operands(multiplier, 0, left))
    assert (found == reference.double_round(values, multiplier, left, 0)).all()


def test_every_value_near_zero_and_every_shift() -> None:
    values = np.arange(-300, 301)
    for shift in range(32):
        for multiplier in (2**30, 2**30 + 12345, TOP):
            for bounds in ((-300, 300), (-(2**30), 2**30)):
                found = evaluated(double_round, values, bounds, operands(multiplier, shift))
                assert (found == reference.double_round(values, multiplier, 0, shift)).all()


def test_channels_with_and_without_a_shift_share_one_form() -> None:
    """shifts {0, 3}: what is known of all channels decides, the channel at hand computes."""
    values = np.arange(-1000, 1001, 7)
    for shift in (0, 3):
        scale = ScaleOperands(const(2**30 + 99), const(shift), None, frozenset({0, 3}), 0, 0.6)
        found = evaluated(double_round, values, (-1000, 1000), scale)
        assert (found == reference.double_round(values, 2**30 + 99, 0, shift)).all()


def test_a_left_shift_that_leaves_32_bits_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        evaluated(double_round, np.arange(3), (-(2**30), 2**30), operands(2**30, 0, 2))
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "BW110"
    assert "the accumulator, times 2^2," in diagnostic.message


@given(st.integers(0, TOP), st.integers(-(2**40), 2**40), st.integers(20, 62), st.integers(0, 1000))
def test_linear(multiplier: int, addend: int, shift: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-(2**20), 2**20, 50)
    wanted = (values * multiplier + addend) >> shift
    if abs(wanted).max() >= 2**31:
        wanted, multiplier, addend = np.zeros_like(values), 0, 0

    def form(value: Scalar, scale: ScaleOperands, where: Where) -> Scalar:
        del scale, where
        bounds = int(wanted.min()), int(wanted.max())
        return linear(value, const(multiplier), const(addend, I64), const(shift), *bounds)

    found = evaluated(form, values, (-(2**20), 2**20), operands(0, 0))
    assert (found == wanted).all()


def test_exponents_become_shifts_and_factors() -> None:
    shifts, factors = split_exponents(np.array([-31, -1, 0, 1, 7], np.int8))
    assert shifts.tolist() == [31, 1, 0, 0, 0]
    assert factors.tolist() == [1, 1, 1, 2, 128]
