"""The names of the numerics sets: which reference a compiled model must equal, bit for bit."""

import enum


class Numerics(enum.StrEnum):
    """A named set of kernels (`--numerics`)."""

    LITERT_REF = "litert-ref"
    """LiteRT's reference kernels (`OpResolverType.BUILTIN_REF`)."""

    TFLM = "tflm"
    """TensorFlow Lite Micro's portable kernels."""


class Rounding(enum.StrEnum):
    """How an accumulator is scaled to the output; each `rescale` carries one (`rescale.py` has the formulas)."""

    DOUBLE_ROUND = "DOUBLE_ROUND"
    """High multiply with one rounding, then a shift with a second one (TOSA's name)."""

    SINGLE_ROUND = "SINGLE_ROUND"
    """64-bit product and one rounding shift (TOSA's name)."""

    REAL_ROUND = "REAL_ROUND"
    """Product in double precision, rounded half away from zero."""


def convolution_rounding(operator: str, numerics: Numerics, *, is_wide: bool = False) -> Rounding:
    """The rounding of a convolution, a matrix product or FULLY_CONNECTED.

    Measured: only LiteRT's FULLY_CONNECTED multiplies by the real scale in double precision. Sums that the references
    keep in 64 bits (`is_wide`) are multiplied by 16 bits and rounded once.
    """
    if operator == "FULLY_CONNECTED" and numerics is Numerics.LITERT_REF:
        return Rounding.REAL_ROUND
    return Rounding.SINGLE_ROUND if is_wide else Rounding.DOUBLE_ROUND
