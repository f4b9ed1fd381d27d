"""BITWISE_XOR and RIGHT_SHIFT: of raw values, whatever the quantisations."""

from bytewright import ir
from bytewright.frontends.tflite.accumulator import limited
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import two_operands
from bytewright.frontends.tflite.unsigned import UNSIGNED, bits_of, raw_value, signed_value
from bytewright.ops.elementwise import BitwiseXor, RightShift

_MOST_PLACES = 7


def convert_xor(at: Conversion) -> None:
    """BITWISE_XOR of raw values; of two that stand for uint8 the upper bit is lost."""
    first, second = two_operands(at, dtypes=(ir.DType.I32,))
    result = at.emit(BitwiseXor(), (at.value_of(first, "first"), at.value_of(second, "second")), "result")
    at.define(bits_of(at, result) if first.tensor.element_type == UNSIGNED else result)


def convert_right_shift(at: Conversion) -> None:
    """RIGHT_SHIFT of raw values: of uint8 without a sign, by its greatest number of a bit at most."""
    first, second = two_operands(at, dtypes=(ir.DType.I32,))
    if first.tensor.element_type != UNSIGNED:
        operands = (at.value_of(first, "first"), at.value_of(second, "second"))
        at.define(at.emit(RightShift(), operands, "result"))
        return
    wide, places = (emit_cast(at, raw_value(at, each), ir.DType.I16, "wide") for each in (first, second))
    shifted = at.emit(RightShift(), (wide, limited(at, places, 0, _MOST_PLACES, "places")), "shifted")
    at.define(signed_value(at, emit_cast(at, shifted, ir.DType.U8, "result")))
