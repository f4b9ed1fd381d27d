"""Operators that compute each element of a result from one of each operand."""

from collections.abc import Callable
from functools import partial

from bytewright import ir
from bytewright.frontends.tflite.activation import (
    convert_gelu,
    convert_leaky_relu,
    convert_relu,
    convert_unary,
)
from bytewright.frontends.tflite.activation16 import (
    Int16,
    absolute16,
    interpolated16,
    inverse_root16,
    negated16,
    root16,
    sigmoid16,
)
from bytewright.frontends.tflite.bits import convert_right_shift, convert_xor
from bytewright.frontends.tflite.cast import convert_cast
from bytewright.frontends.tflite.complex_numbers import convert_magnitude, convert_part
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import (
    QuantisedForm,
    convert_add_n,
    convert_alike,
    convert_binary,
    convert_bucketize,
    convert_div,
    convert_plain_binary,
    convert_pow,
    convert_prelu,
    convert_square,
    convert_squared_difference,
    convert_unquantised_binary,
    convert_unquantised_extremum,
    emit_magnitude,
    emit_negated,
    emit_sign,
    product_form,
    sum_form,
)
from bytewright.frontends.tflite.logic import convert_comparison, convert_logical, convert_select
from bytewright.frontends.tflite.operators.row import (
    ACTIVATIONS,
    ALSO_INT16_MOVED,
    CLAMPS,
    FLOAT,
    INDEX_TYPES,
    NO_INT16_IN_TFLM,
    NO_INT64_IN_TFLM,
    NUMBERS,
    TfliteOperator,
)
from bytewright.frontends.tflite.quantization import (
    convert_densify,
    convert_dequantize,
    convert_fake_quant,
    convert_quantize,
)
from bytewright.ops import comparisons, elementwise, float_functions
from bytewright.ops.arithmetic import tables
from bytewright.ops.arithmetic.interpolation import exponential, logarithm
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.tables import Int8Function
from bytewright.ops.checks import WIDE

_BOTH = ("int8", "float32")
_COMPLEX = ("complex64",)
_NO_COMPLEX_IN_TFLM = {Numerics.TFLM: _COMPLEX}
_TO_FLOAT = "to float32; not with tflm"
_BOTH_AND_INT32 = (*_BOTH, "int32")
_NOT_IN_TFLM = {Numerics.TFLM: _BOTH}
_SPARSE = ("int8", "float32", "float16")
_FLOAT_ALONE = dict.fromkeys(Numerics, ("int8",))
_FLOAT_IN_TFLM = {Numerics.TFLM: ("int8", "int16")}
_OF_BELOW_ONE = "int8: scales below 1"
_OF_INT_BELOW_ONE = "int8 and int16: scales below 1"
_NOT_QUANTISED = ("float32", *INDEX_TYPES)
_WITH_BITS = ("int8", "int16", "int32")
_RAW = "raw values; not with tflm"
_BITS = f"broadcasting; {_RAW}"
_EQUALITY = TfliteOperator(
    convert_comparison,
    limits=f"broadcasting; {_OF_INT_BELOW_ONE}; int16 not with tflm",
    types=(*NUMBERS, "bool"),
    int8_cost_ms=1.0,
    absent=NO_INT16_IN_TFLM,
)
_ORDER = TfliteOperator(
    convert_comparison,
    limits=f"broadcasting; {_OF_BELOW_ONE}; int16: of raw values, not with tflm",
    types=NUMBERS,
    int8_cost_ms=1.0,
    absent=NO_INT16_IN_TFLM,
)


def _unary(
    operation: ir.Operation,
    int8: Int8Function | None = None,
    int16: Int16 | None = None,
    integers: Callable[[Conversion, str], str] | None = None,
) -> Callable[[Conversion], None]:
    return partial(convert_unary, operation=operation, int8=int8, int16=int16, integers=integers)


def _of_floats(operation: ir.Operation) -> TfliteOperator:
    """The row of a function that there is on floats alone."""
    return TfliteOperator(_unary(operation), types=FLOAT, absent=_FLOAT_ALONE)


def _extremum(operation: ir.Operation) -> TfliteOperator:
    """The row of one of two values, whatever their quantisations."""
    convert = partial(convert_plain_binary, operation=operation, dtypes=WIDE)
    return TfliteOperator(convert, limits="broadcasting; int8: of raw values", types=NUMBERS)


def _of_shapes_alike(convert: Callable[[Conversion], None], *limits: str) -> TfliteOperator:
    """The row of an operator as StableHLO has it."""
    return TfliteOperator(
        convert,
        limits="; ".join(("operands of one shape", *limits, "not with tflm")),
        types=_NOT_QUANTISED,
        absent={Numerics.TFLM: _NOT_QUANTISED},
    )


def _wrapping_alike(operation: ir.Operation, wrapping: ir.Operation) -> TfliteOperator:
    """The row of a sum or a product as StableHLO has it: of integers `wrapping`."""
    convert = partial(convert_unquantised_binary, operation=operation, wrapping=wrapping)
    return _of_shapes_alike(convert, "int32 and int64 wrap")


def _extremum_alike(operation: ir.Operation) -> TfliteOperator:
    """The row of one of two values as StableHLO has it."""
    return _of_shapes_alike(partial(convert_unquantised_extremum, operation=operation))


def _arithmetic(
    operation: ir.Operation,
    wrapping: ir.Operation,
    quantised: QuantisedForm,
    options: str,
    tflm: str,
    int8_cost_ms: float,
) -> TfliteOperator:
    """The row of a sum, a difference or a product."""
    return TfliteOperator(
        partial(convert_binary, operation=operation, wrapping=wrapping, quantised=quantised),
        options,
        f"broadcasting; {CLAMPS}; int32 and int64 wrap; {tflm}",
        types=NUMBERS,
        absent=NO_INT64_IN_TFLM,
        int8_cost_ms=int8_cost_ms,
    )


ELEMENTWISE: dict[str, TfliteOperator] = {
    "ABS": TfliteOperator(
        _unary(float_functions.Abs(), int8=tables.absolute, int16=absolute16, integers=emit_magnitude),
        limits="tflm: not int32",
        int8_cost_ms=0.4,
        types=(*ACTIVATIONS, "int32"),
        absent={Numerics.TFLM: ("int32",)},
        signed_alone=True,
    ),
    "ADD": _arithmetic(
        elementwise.Add(),
        elementwise.WrappingAdd(),
        sum_form,
        "AddOptions",
        "tflm: no int64, and no fused activation of int32",
        1.4,
    ),
    "ADD_N": TfliteOperator(
        partial(convert_add_n, operation=elementwise.Add()),
        limits="int32 wraps; int8: operands quantised alike, with tflm alone; tflm: not int32",
        types=_BOTH_AND_INT32,
        absent={Numerics.LITERT_REF: ("int8",), Numerics.TFLM: ("int32",)},
        int8_cost_ms=1.4,
        signed_alone=True,
    ),
    "ATAN2": TfliteOperator(
        partial(convert_plain_binary, operation=elementwise.Atan2()),
        limits="operands of one shape; not with tflm",
        types=FLOAT,
        absent={Numerics.TFLM: FLOAT},
    ),
    "BITWISE_XOR": TfliteOperator(
        convert_xor, limits=_BITS, types=_WITH_BITS, absent={Numerics.TFLM: _WITH_BITS}
    ),
    "BUCKETIZE": TfliteOperator(
        convert_bucketize,
        "BucketizeOptions",
        "to int32; integers are compared as floats; not with tflm",
        types=("float32", *INDEX_TYPES),
        absent={Numerics.TFLM: ("float32", *INDEX_TYPES)},
    ),
    "CAST": TfliteOperator(
        convert_cast,
        limits="raw values; integers wrap, floats are truncated and saturate; of complex64 the real part, to float32; "
        "tflm: neither uint8 nor int64 nor complex64",
        types=(*NUMBERS, "uint8", "uint32", "bool", "complex64"),
        absent={Numerics.TFLM: ("uint8", "int64", "complex64")},
    ),
    "CEIL": _of_floats(float_functions.Ceil()),
    "COMPLEX_ABS": TfliteOperator(
        convert_magnitude, limits=_TO_FLOAT, types=_COMPLEX, absent=_NO_COMPLEX_IN_TFLM
    ),
    "COS": _of_floats(float_functions.Cos()),
    "DENSIFY": TfliteOperator(
        convert_densify,
        limits="of a sparse constant",
        types=_SPARSE,
        absent={Numerics.TFLM: _SPARSE},
        signed_alone=True,
    ),
    "DEQUANTIZE": TfliteOperator(
        convert_dequantize,
        limits="to float32; constants also per channel, of int4 or float16 (none of these with tflm)",
        types=("int8", "uint8", "int16", "int4", "float16"),
        absent={Numerics.TFLM: ("int4", "float16")},
    ),
    "DIV": TfliteOperator(
        convert_div,
        "DivOptions",
        f"broadcasting; {CLAMPS}; small quotients of int8 are zero; a divisor of zero is one step, or one",
        types=_BOTH_AND_INT32,
        int8_cost_ms=1.0,
    ),
    "ELU": TfliteOperator(
        _unary(float_functions.TflElu(), int8=tables.elu), int8_cost_ms=5.0, signed_alone=True
    ),
    "EQUAL": _EQUALITY,
    "EXP": TfliteOperator(
        _unary(float_functions.Exp(), int8=tables.exponential, int16=interpolated16(exponential)),
        limits="tflm: float32 alone",
        int8_cost_ms=5.0,
        absent=_FLOAT_IN_TFLM,
        types=ACTIVATIONS,
        signed_alone=True,
    ),
    "FAKE_QUANT": TfliteOperator(
        convert_fake_quant,
        "FakeQuantOptions",
        "2 to 16 bits, a range with 0, which is not narrow; not with tflm",
        types=FLOAT,
        absent={Numerics.TFLM: FLOAT},
    ),
    "FLOOR": _of_floats(float_functions.Floor()),
    "FLOOR_DIV": TfliteOperator(
        partial(convert_plain_binary, operation=elementwise.TflFloorDiv(), dtypes=(ir.DType.I32,)),
        limits="broadcasting; int8 and int16: of raw values; a divisor of zero is one; tflm: float32 alone",
        types=(*ACTIVATIONS, "int32"),
        absent={Numerics.TFLM: ("int8", "int16", "int32")},
        signed_alone=True,
    ),
    "FLOOR_MOD": TfliteOperator(
        partial(convert_plain_binary, operation=elementwise.TflFloorMod(), dtypes=WIDE),
        limits="broadcasting; int8 and int16: of raw values; a divisor of zero is one; tflm: float32 alone",
        types=NUMBERS,
        absent={Numerics.TFLM: ("int8", "int16", "int32", "int64")},
        signed_alone=True,
    ),
    "GELU": TfliteOperator(
        convert_gelu,
        "GeluOptions",
        "as defined, or approximated by tanh; not with tflm",
        int8_cost_ms=5.0,
        absent={Numerics.TFLM: ACTIVATIONS},
        types=ACTIVATIONS,
    ),
    "GREATER": _ORDER,
    "GREATER_EQUAL": _ORDER,
    "HARD_SWISH": TfliteOperator(
        _unary(float_functions.TflHardSwish(), int8=tables.hard_swish),
        limits="int8: input scale at most 128 times the output's",
        int8_cost_ms=0.6,
    ),
    "IMAG": TfliteOperator(convert_part, limits=_TO_FLOAT, types=_COMPLEX, absent=_NO_COMPLEX_IN_TFLM),
    "LEAKY_RELU": TfliteOperator(convert_leaky_relu, "LeakyReluOptions", int8_cost_ms=0.4, types=ACTIVATIONS),
    "LESS": _ORDER,
    "LESS_EQUAL": _ORDER,
    "LOG": TfliteOperator(
        _unary(float_functions.Log(), int8=tables.logarithm, int16=interpolated16(logarithm)),
        limits="tflm: float32 alone",
        int8_cost_ms=5.0,
        absent=_FLOAT_IN_TFLM,
        types=ACTIVATIONS,
        signed_alone=True,
    ),
    "LOGICAL_AND": TfliteOperator(
        partial(convert_logical, operation=comparisons.LogicalAnd()), limits="broadcasting", types=("bool",)
    ),
    "LOGICAL_NOT": TfliteOperator(
        partial(convert_logical, operation=comparisons.LogicalNot(), count=1), types=("bool",)
    ),
    "LOGICAL_OR": TfliteOperator(
        partial(convert_logical, operation=comparisons.LogicalOr()), limits="broadcasting", types=("bool",)
    ),
    "LOGISTIC": TfliteOperator(
        _unary(float_functions.Sigmoid(), int8=tables.logistic, int16=sigmoid16),
        limits="int8: output scale 1/256 with any zero point (litert-ref), zero point -128 with any scale (tflm)",
        int8_cost_ms=5.0,
        types=ACTIVATIONS,
    ),
    "MAXIMUM": _extremum(elementwise.Maximum()),
    "MINIMUM": _extremum(elementwise.Minimum()),
    "MUL": _arithmetic(
        elementwise.Mul(), elementwise.WrappingMul(), product_form, "MulOptions", "tflm: not int64", 1.2
    ),
    "NEG": TfliteOperator(
        _unary(float_functions.Negate(), int8=tables.negate, int16=negated16, integers=emit_negated),
        limits="int8 and int16: of raw values; tflm: float32 alone",
        types=NUMBERS,
        absent={Numerics.TFLM: ("int8", "int16", "int32", "int64")},
        signed_alone=True,
    ),
    "NOT_EQUAL": _EQUALITY,
    "POW": TfliteOperator(
        convert_pow,
        limits="broadcasting; int32: an exponent below zero is taken for zero; not with tflm",
        types=("float32", "int32"),
        absent={Numerics.TFLM: ("float32", "int32")},
    ),
    "PRELU": TfliteOperator(
        convert_prelu,
        limits="a slope that broadcasts to the input, of int16 one of int8",
        types=ACTIVATIONS,
        int8_cost_ms=2.0,
    ),
    "QUANTIZE": TfliteOperator(
        convert_quantize,
        limits="to int8, uint8 or int16, and from int16 to int32; neither from int16 nor int32 to uint8; tflm: to "
        "uint8 from int8 alone, from uint8 to int8, from int8 to int32 too",
        types=("int8", "uint8", "int16", "float32", "int32"),
        absent={
            Numerics.LITERT_REF: (
                *("float32 to int32", "uint8 to int32", "int8 to int32"),
                *("int16 to uint8", "int32 to uint8", "int32 to int32"),
            ),
            Numerics.TFLM: (
                *("float32 to uint8", "uint8 to uint8", "int16 to uint8", "int32 to uint8", "uint8 to int16"),
                *("float32 to int32", "uint8 to int32", "int32 to int32"),
            ),
        },
    ),
    "REAL": TfliteOperator(convert_part, limits=_TO_FLOAT, types=_COMPLEX, absent=_NO_COMPLEX_IN_TFLM),
    "RELU": TfliteOperator(convert_relu, types=ACTIVATIONS),
    "RELU6": TfliteOperator(convert_relu, types=ACTIVATIONS),
    "RELU_0_TO_1": TfliteOperator(convert_relu, limits="not with tflm", absent=_NOT_IN_TFLM),
    "RELU_N1_TO_1": TfliteOperator(convert_relu, limits="not with tflm", absent=_NOT_IN_TFLM),
    "RIGHT_SHIFT": TfliteOperator(
        convert_right_shift, limits=_BITS, types=_WITH_BITS, absent={Numerics.TFLM: _WITH_BITS}
    ),
    "ROUND": _of_floats(float_functions.TflRound()),
    "RSQRT": TfliteOperator(
        _unary(float_functions.Rsqrt(), int8=tables.reciprocal_square_root, int16=inverse_root16),
        int8_cost_ms=10.0,
        types=ACTIVATIONS,
        signed_alone=True,
    ),
    "SELECT": TfliteOperator(
        convert_select,
        limits="choices of one shape; a condition of theirs, of their first axis, or of one element; not with tflm",
        types=(*NUMBERS, "bool"),
        input_at=1,
        absent={Numerics.TFLM: (*NUMBERS, "bool")},
    ),
    "SELECT_V2": TfliteOperator(
        convert_select,
        limits=f"broadcasting; {ALSO_INT16_MOVED}",
        types=(*NUMBERS, "bool"),
        input_at=1,
        absent={Numerics.TFLM: ("int32", "int64", "bool")},
    ),
    "SIGN": TfliteOperator(
        _unary(float_functions.TflSign(), integers=emit_sign),
        limits="not with tflm",
        types=("float32", "int32"),
        absent={Numerics.TFLM: ("float32", "int32")},
    ),
    "SIN": _of_floats(float_functions.Sin()),
    "SQRT": TfliteOperator(
        _unary(float_functions.TflSqrt(), int8=tables.square_root, int16=root16),
        limits="tflm: float32 alone",
        absent=_FLOAT_IN_TFLM,
        types=ACTIVATIONS,
        signed_alone=True,
    ),
    "SQUARE": TfliteOperator(convert_square, types=FLOAT, absent=_FLOAT_ALONE),
    "SQUARED_DIFFERENCE": TfliteOperator(
        convert_squared_difference,
        limits="broadcasting; int8: a rescale below 1; int32 wraps",
        types=_BOTH_AND_INT32,
        int8_cost_ms=1.4,
        signed_alone=True,
    ),
    "STABLEHLO_ADD": _wrapping_alike(elementwise.Add(), elementwise.WrappingAdd()),
    "STABLEHLO_AND": TfliteOperator(
        partial(
            convert_alike,
            operation=elementwise.BitwiseAnd(),
            dtypes=(*WIDE, ir.DType.BOOL),
            of_truths=comparisons.LogicalAnd(),
        ),
        limits=f"operands of one shape; {_RAW}",
        types=(*_WITH_BITS, "int64", "bool"),
        absent={Numerics.TFLM: (*_WITH_BITS, "int64", "bool")},
        signed_alone=True,
    ),
    "STABLEHLO_MAXIMUM": _extremum_alike(elementwise.Maximum()),
    "STABLEHLO_MINIMUM": _extremum_alike(elementwise.Minimum()),
    "STABLEHLO_MULTIPLY": _wrapping_alike(elementwise.Mul(), elementwise.WrappingMul()),
    "STABLEHLO_SHIFT_LEFT": TfliteOperator(
        partial(convert_alike, operation=elementwise.LeftShift(), dtypes=(ir.DType.I32,)),
        limits=f"operands of one shape; {_RAW}",
        types=_WITH_BITS,
        absent={Numerics.TFLM: _WITH_BITS},
        signed_alone=True,
    ),
    "SUB": _arithmetic(
        elementwise.Sub(), elementwise.WrappingSub(), sum_form, "SubOptions", "tflm: not int64", 1.4
    ),
    "TANH": TfliteOperator(
        _unary(float_functions.Tanh(), int8=tables.tanh, int16=sigmoid16),
        limits="tflm: the result is taken to have scale 1/128 and zero point 0, as its kernel does",
        int8_cost_ms=5.0,
        types=ACTIVATIONS,
    ),
}
