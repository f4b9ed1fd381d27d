"""Fourier transforms of real samples and the way back, and of complex numbers: two elements each, real part first."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.fourier import (
    FIXED,
    FLOAT,
    Complex,
    Environment,
    butterfly,
    roots,
    spectrum_ends,
    spectrum_of_zero,
    stages,
    super_roots,
    transform_ends,
    transform_of_zero,
)
from bytewright.ops.checks import only, require, require_rank

_TRANSFORMED = (ir.DType.I16, ir.DType.I32, ir.DType.F32)


class Transform(ir.Operation):
    """Abstract: rows of one transform each.

    Attributes:
        is_inverse: Whether it makes samples of a spectrum.
        count: Complex numbers that are transformed: a product of 2, 3, 4 and 5.
    """

    __slots__ = ()
    is_inverse: ClassVar[bool]

    @property
    @abstractmethod
    def count(self) -> int:
        """Complex numbers that are transformed."""

    def require_rows(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, int, int]:
        """The operand, its rows, and how long they are; the length of a transform is one that there is."""
        rounded = self.kept_as(ir.DType.F32) is not ir.DType.F32
        operand = only(inputs, *((ir.DType.F32,) if rounded else _TRANSFORMED))
        require_rank(operand, 2, "the operand")
        stages_of = tuple(stages(self.count))
        require(bool(stages_of), "a transform of nothing")
        rows, size = operand.fixed_shape
        return operand, rows, size

    def kept_as(self, dtype: ir.DType) -> ir.DType:
        """The type that numbers have between two stages, of elements of a type: doubles are rounded at the end."""
        return dtype

    def widened(self, given: ir.Array) -> ir.Array:
        """Elements in the type that they are computed in."""
        if given.dtype.kind != "f":
            return given.astype(np.int64)
        return given.astype(self.kept_as(ir.DType.F32).numpy)

    def environment(self, dtype: np.dtype[Any]) -> Environment:
        """How arrays of a type that numbers are kept as are computed with."""
        wide = dtype if dtype.kind == "f" else np.dtype(np.int64)
        arithmetic = FLOAT if dtype.kind == "f" else FIXED[dtype.itemsize]
        return Environment(
            arithmetic,
            self.is_inverse,
            lambda _, number: number,
            lambda number: number.astype(dtype).astype(wide),
        )

    def transformed(self, at: Environment, numbers: ir.Array, dtype: np.dtype[Any]) -> ir.Array:
        """The transform of complex numbers [rows,count,2], of the type that is computed in."""
        rows = len(numbers)
        unit = roots(self.count, dtype, is_inverse=self.is_inverse).astype(numbers.dtype)
        places = np.arange(self.count).reshape([stage.radix for stage in stages(self.count)])
        numbers = numbers[:, places.transpose().reshape(-1)]
        for stage in stages(self.count):
            groups = numbers.reshape(rows, -1, stage.radix, stage.size, 2)
            points = [_parts(groups[:, :, number]) for number in range(stage.radix)]
            places = np.arange(stage.size) * stage.stride
            turns = [_parts(unit[places * number]) for number in range(1, stage.radix)]
            steps = [_parts(unit[stage.stride * stage.size * n % self.count]) for n in (1, 2)]
            found = butterfly(at, points, turns, steps)
            numbers = np.stack([np.stack(pair, -1) for pair in found], 2)
            numbers = at.wrapped(numbers).reshape(rows, self.count, 2)
        return numbers


def _parts(numbers: ir.Array) -> Complex:
    return numbers[..., 0], numbers[..., 1]


class _RealTransform(Transform):
    """Abstract: between samples and their spectra.

    Attributes:
        length: Samples of a transform, an even number.
    """

    __slots__ = ()
    length: int

    @property
    def count(self) -> int:
        """Pairs of samples."""
        return self.length // 2

    def require_rows(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, int, int]:
        """As of every transform, of an even length."""
        require(self.length % 2 == 0, f"a transform of {self.length} samples, an odd number")
        return Transform.require_rows(self, inputs)


@dataclass(frozen=True, slots=True)
class TflRealFft(_RealTransform):
    """samples i16, i32 or f32 [R,N] -> spectrum [R,length+2] of the same type, as kissfft computes it.

    N is `length` at most; what is missing are zeros. Of integers the spectrum is divided by the length. Floats may be
    computed with in double precision, as LiteRT's RFFT2D does.
    """

    name: ClassVar[str] = "tfl_real_fft"
    is_inverse: ClassVar[bool] = False
    length: int
    is_double: bool = False

    def kept_as(self, dtype: ir.DType) -> ir.DType:
        """Doubles, where they are asked for."""
        return ir.DType.F64 if self.is_double else dtype

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """A spectrum a row."""
        operand, rows, samples = self.require_rows(inputs)
        require(1 <= samples <= self.length, f"{samples} samples in a transform of {self.length}")
        return (ir.TensorType((rows, self.length + 2), operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; floats in the order of the reference."""
        (given,), count = inputs, self.count
        dtype = self.kept_as(ir.DType.of(given.dtype)).numpy
        at, samples = self.environment(dtype), self.widened(given)
        padded = np.zeros((len(given), self.length), samples.dtype)
        padded[:, : given.shape[1]] = samples
        numbers = self.transformed(at, padded.reshape(-1, count, 2), dtype)
        result = np.zeros((len(given), count + 1, 2), numbers.dtype)
        result[:, 0, 0], result[:, count, 0] = spectrum_of_zero(at, _parts(numbers[:, 0]))
        low = np.arange(1, count // 2 + 1)
        turns = _parts(super_roots(count, dtype, is_inverse=False).astype(numbers.dtype)[low - 1])
        ends = spectrum_ends(at, _parts(numbers[:, low]), _parts(numbers[:, count - low]), turns)
        for places, pair in zip((low, count - low), ends, strict=True):
            result[:, places] = np.stack(pair, -1)
        return (at.wrapped(result).astype(given.dtype).reshape(len(given), -1),)


@dataclass(frozen=True, slots=True)
class TflInverseRealFft(_RealTransform):
    """spectrum i16, i32 or f32 [R,length+2] -> samples [R,length] of the same type, as kissfft computes it.

    Of floats the samples are divided by the length at the end, of integers at each stage.
    """

    name: ClassVar[str] = "tfl_inverse_real_fft"
    is_inverse: ClassVar[bool] = True
    length: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Samples of each row."""
        operand, rows, numbers = self.require_rows(inputs)
        require(numbers == self.length + 2, f"a spectrum of {numbers} elements for {self.length} samples")
        return (ir.TensorType((rows, self.length), operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; floats in the order of the reference."""
        (given,) = inputs
        dtype, count = given.dtype, self.count
        at = self.environment(dtype)
        spectrum = self.widened(given).reshape(len(given), -1, 2)
        numbers = np.zeros((len(given), count, 2), spectrum.dtype)
        numbers[:, 0] = np.stack(transform_of_zero(at, spectrum[:, 0, 0], spectrum[:, count, 0]), -1)
        low = np.arange(1, count // 2 + 1)
        turns = _parts(super_roots(count, dtype, is_inverse=True).astype(numbers.dtype)[low - 1])
        ends = transform_ends(at, _parts(spectrum[:, low]), _parts(spectrum[:, count - low]), turns)
        for places, pair in zip((low, count - low), ends, strict=True):
            numbers[:, places] = at.wrapped(np.stack(pair, -1))
        found = self.transformed(at, numbers, dtype).reshape(len(given), -1)
        divided = np.divide(found, np.float32(self.length)) if dtype.kind == "f" else found
        return (divided.astype(dtype),)


@dataclass(frozen=True, slots=True)
class TflFft(Transform):
    """complex numbers f32 [R,2N] -> their spectra f32 [R,2N], in double precision and kissfft's order of operations."""

    name: ClassVar[str] = "tfl_fft"
    is_inverse: ClassVar[bool] = False
    numbers: int

    @property
    def count(self) -> int:
        """All numbers of a row."""
        return self.numbers

    def kept_as(self, dtype: ir.DType) -> ir.DType:  # noqa: ARG002
        """Doubles."""
        return ir.DType.F64

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """As many numbers as there are."""
        operand, _, size = self.require_rows(inputs)
        require(size == 2 * self.numbers, f"{size} elements of {self.numbers} complex numbers")
        return (operand,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Rounded to float32 at the end."""
        (given,) = inputs
        numbers = self.widened(given).reshape(len(given), self.count, 2)
        found = self.transformed(self.environment(numbers.dtype), numbers, numbers.dtype)
        return (found.reshape(given.shape).astype(np.float32),)


OPERATIONS = (TflFft, TflInverseRealFft, TflRealFft)
