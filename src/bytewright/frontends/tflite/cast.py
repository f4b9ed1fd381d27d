"""CAST: between element types, of raw values."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite import known as growing
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import DTYPES
from bytewright.frontends.tflite.known import Known
from bytewright.frontends.tflite.shape import emit_part
from bytewright.frontends.tflite.unsigned import UNSIGNED, raw_value, signed_value, with_sign, without_sign
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.cast import CASTS, TflCast


def emit_cast(at: Conversion, value: str, dtype: ir.DType, role: str) -> str:
    """In another type, in which integers wrap; floats lose what is behind their point, and saturate."""
    return at.emit(TflCast(dtype), (value,), role)


def convert_cast(at: Conversion) -> None:
    """CAST of an activation; of values that are known, at import, where int64 is possible too.

    What is not a number becomes LiteRT's greatest integer, and zero in TensorFlow Lite Micro.
    """
    at.require_counts((1,))
    source = at.operand(0, "input")
    if source.data is not None:
        _cast_known(at)
        return
    result = at.output_tensor()
    dtype = DTYPES.get(result.element_type)
    for tensor, found in ((source.tensor, source.dtype), (result, dtype)):
        if found not in CASTS:
            at.fail(f"'{tensor.name}' is {tensor.element_type}", code="BW105", tensor=tensor)
    assert dtype is not None  # of None there is no cast
    if "COMPLEX64" in (source.tensor.element_type, result.element_type):
        at.require(result.element_type == "FLOAT32", f"{source.tensor.element_type} to {result.element_type}")
        at.define(emit_part(at, source, 0))
        return
    if result.element_type == source.tensor.element_type:
        at.define(at.value_of(source))
        return
    is_unsigned = result.element_type == UNSIGNED
    dtype = ir.DType.U8 if is_unsigned else dtype
    saturates = source.is_float and dtype.is_integer and at.numerics is Numerics.LITERT_REF
    operation = TflCast(dtype, dtype.bounds[1] if saturates else 0)
    found = at.emit(operation, (raw_value(at, source),), "result")
    at.define(signed_value(at, found) if is_unsigned else found)


def _cast_known(at: Conversion) -> None:
    """CAST: floats lose what is behind the point; a number that the type does not have is refused."""
    source, result = at.known_operand(0, "input"), at.output_tensor().element_type
    if at.operand(0, "input").tensor.element_type == UNSIGNED:
        source = growing.computed(without_sign, source)
    dtype = ir.DType.U8 if result == UNSIGNED else DTYPES.get(result)
    if dtype is None:
        at.fail(f"the result is {at.output_tensor().element_type}", code="BW105")
    if source.array.dtype.kind == "f" and dtype.is_integer:
        low, high = dtype.bounds
        fits = bool(((source.array > low - 1.0) & (source.array < high + 1.0)).all())
        at.require(fits, f"numbers outside of {low}..{high}")
    at.charge(source.array.size)
    # A boolean says whether a number is 0, which a batch may change.
    growth = growing.computed(np.abs, source).growth if dtype is ir.DType.BOOL else source.growth
    value = Known(source.array.astype(dtype.numpy), growth)
    at.define_known(growing.computed(with_sign, value) if dtype is ir.DType.U8 else value)
