"""The TFLite operators: one row for each that Bytewright compiles, and advice on others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from bytewright import ir
from bytewright.frontends.registry import SupportedOperator
from bytewright.frontends.tflite.activation import (
    convert_gelu,
    convert_leaky_relu,
    convert_log_softmax,
    convert_relu,
    convert_softmax,
    convert_unary,
)
from bytewright.frontends.tflite.activation16 import absolute16, interpolated16, sigmoid16
from bytewright.frontends.tflite.batches import convert_batch_to_space, convert_space_to_batch
from bytewright.frontends.tflite.cast import convert_cast
from bytewright.frontends.tflite.control import convert_if, convert_while
from bytewright.frontends.tflite.conv3d import convert_conv3d
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import (
    convert_conv2d,
    convert_depthwise,
    convert_transpose_conv,
)
from bytewright.frontends.tflite.detection import convert_detections
from bytewright.frontends.tflite.elementwise import (
    convert_add_n,
    convert_binary,
    convert_div,
    convert_extremum,
    convert_l2_normalization,
    convert_plain_binary,
    convert_prelu,
    convert_square,
    convert_squared_difference,
    emit_magnitude,
    emit_negated,
    emit_sign,
    product_form,
    sum_form,
)
from bytewright.frontends.tflite.kernels_of import Absent
from bytewright.frontends.tflite.logic import convert_comparison, convert_logical, convert_select
from bytewright.frontends.tflite.lstm import convert_lstm
from bytewright.frontends.tflite.matmul import convert_batch_matmul, convert_fully_connected
from bytewright.frontends.tflite.moves import (
    convert_broadcast_to,
    convert_depth_to_space,
    convert_embedding_lookup,
    convert_gather,
    convert_mirror_pad,
    convert_pack,
    convert_reverse,
    convert_space_to_depth,
    convert_split_v,
    convert_tile,
    convert_unpack,
)
from bytewright.frontends.tflite.places import (
    convert_arg_extremum,
    convert_cumsum,
    convert_fill,
    convert_gather_nd,
    convert_one_hot,
    convert_top_k,
    convert_update_slice,
)
from bytewright.frontends.tflite.pooling import convert_l2_pool, convert_pool
from bytewright.frontends.tflite.quantization import convert_dequantize, convert_quantize
from bytewright.frontends.tflite.reduction import convert_extremum as convert_reduced_extremum
from bytewright.frontends.tflite.reduction import convert_mean, convert_product, convert_sum, convert_truths
from bytewright.frontends.tflite.resize import convert_resize
from bytewright.frontends.tflite.shape import (
    convert_concatenation,
    convert_expand_dims,
    convert_pad,
    convert_reshape,
    convert_slice,
    convert_split,
    convert_squeeze,
    convert_transpose,
)
from bytewright.frontends.tflite.strided_slice import convert_strided_slice
from bytewright.frontends.tflite.variables import (
    convert_assign_variable,
    convert_nothing,
    convert_read_variable,
)
from bytewright.ops import elementwise, float_functions, pooling
from bytewright.ops.arithmetic import tables
from bytewright.ops.arithmetic.interpolation import exponential, logarithm, reciprocal_square_root
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.places import ArgMax, ArgMin
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.target.isa.ethos_u import DECODED_PRODUCTS

INDEX_TYPES = ("int32", "int64")
"""Element types of what counts elements."""


@dataclass(frozen=True, slots=True)
class TfliteOperator:
    """An operator that compiles.

    Attributes:
        convert: Reads it, and emits the graph's operators.
        options: The schema's name of its table of options; empty where none is read.
        limits: What is not supported, or asked for, in words.
        types: Element types of its activations.
        results: Element types that results may have beside those of the activations.
        indices: The position of an operand of one of `INDEX_TYPES`, whatever the activations are.
        cost_ms: What compiling it costs, roughly, in milliseconds (`limits.py`).
        int8_cost_ms: The same for an int8 result, where that is another.
        scale_cost_ms: What each scale of its weights costs besides.
        hybrid: Where its second operand is weights: the types that these may have, by set of kernels, under activations
            of float32 besides that.
        narrow_weights: Types that a constant second operand may have beside int8 and float32.
        input_at: The position of its first operand that is data: what is multiplied with weights, moved or chosen.
        absent: What sets of kernels lack of it (`kernels_of.py`).
        has_state: Its variables survive runs, and are of types of their own.
    """

    convert: Callable[[Conversion], None]
    options: str = ""
    limits: str = ""
    types: tuple[str, ...] = ("int8", "float32")
    results: tuple[str, ...] = ()
    indices: int | None = None
    cost_ms: float = 0.15
    int8_cost_ms: float | None = None
    scale_cost_ms: float = 0.0
    hybrid: Mapping[Numerics, tuple[str, ...]] = field(default_factory=dict[Numerics, tuple[str, ...]])
    narrow_weights: tuple[str, ...] = ()
    input_at: int = 0
    absent: Absent = field(default_factory=dict[Numerics, tuple[str, ...]])
    has_state: bool = False


def _convert_ethos_u(conversion: Conversion) -> None:
    """What knows streams is loaded when a file has one."""
    from bytewright.frontends.tflite.ethos_u import convert_ethos_u

    convert_ethos_u(conversion)


_CLAMPS = "fused activation: none, RELU, RELU6, RELU_N1_TO_1"
_WEIGHTS = "constant weights, per tensor or per channel, zero point 0"
_INT8_OR_INT4 = "weights also int4, and either under float32 (not with tflm)"
_INT8_UNDER_FLOAT = "int8 weights also under float32 (not with tflm)"
_HYBRID_INT8 = {Numerics.LITERT_REF: ("int8",)}
_HYBRID = {Numerics.LITERT_REF: ("int8", "int4")}
_INT4 = ("int4",)
_NUMBERS = ("int8", "int16", "float32", "int32", "int64")
_BUT_INT16 = ("int8", "float32", "int32", "int64")
_MOVED = (*_NUMBERS, "bool")
_ACTIVATIONS = ("int8", "int16", "float32")
_KEPT = (*_MOVED, "uint8", "resource")
_FLOAT = ("float32",)
_BOTH = ("int8", "float32")
_BOTH_AND_INT32 = (*_BOTH, "int32")
_NOT_IN_TFLM = {Numerics.TFLM: _BOTH}
_FLOAT_ALONE = dict.fromkeys(Numerics, ("int8",))
_FLOAT_IN_TFLM = {Numerics.TFLM: ("int8", "int16")}
_NO_INT16_IN_TFLM: Absent = {Numerics.TFLM: ("int16",)}
# What moves bytes there is for some types alone.
_MOVED_IN_TFLM: Absent = {Numerics.TFLM: ("int16", "int32", "int64", "bool")}
_ALSO_INT16_MOVED_IN_TFLM: Absent = {Numerics.TFLM: ("int32", "int64", "bool")}
_NO_INT64_IN_TFLM: Absent = {Numerics.TFLM: ("int64",)}
_FEW_MOVED = "tflm: int8 and float32 alone"
_ALSO_INT16_MOVED = "tflm: int8, int16 and float32 alone"
_ARG = (
    "constant axis; raw values; results int32 or int64 (int32 alone with tflm); tflm: int8 and float32 alone"
)
_ARG_IN_TFLM: Absent = {
    Numerics.TFLM: (
        *(f"{source} to {result}" for source in ("uint8", "int32", "bool") for result in INDEX_TYPES),
        *("int8 to int64", "float32 to int64"),
    )
}
_BUT_INT16_MOVED = (*_BUT_INT16, "bool")
_OF_BELOW_ONE = "int8: scales below 1"
_POOLS = f"tflm: input and output quantised alike; {_CLAMPS}"

_RESIZED = "constant size; align_corners or half_pixel_centers, or neither"

OPERATORS: dict[str, TfliteOperator] = {
    "ABS": TfliteOperator(
        partial(
            convert_unary,
            operation=float_functions.Abs(),
            int8=tables.absolute,
            int16=absolute16,
            integers=emit_magnitude,
        ),
        limits="tflm: not int32",
        int8_cost_ms=0.4,
        types=(*_ACTIVATIONS, "int32"),
        absent={Numerics.TFLM: ("int32",)},
    ),
    "ADD": TfliteOperator(
        partial(
            convert_binary,
            operation=elementwise.Add(),
            wrapping=elementwise.WrappingAdd(),
            quantised=sum_form,
        ),
        "AddOptions",
        f"broadcasting; {_CLAMPS}; int32 and int64 wrap; tflm: no int64, and no fused activation of int32",
        types=_NUMBERS,
        absent=_NO_INT64_IN_TFLM,
        int8_cost_ms=1.4,
    ),
    "ADD_N": TfliteOperator(
        partial(convert_add_n, operation=elementwise.Add()),
        limits="int32 wraps; tflm: float32 alone",
        types=("float32", "int32"),
        absent={Numerics.TFLM: ("int32",)},
    ),
    "ARG_MAX": TfliteOperator(
        partial(convert_arg_extremum, kind=ArgMax),
        "ArgMaxOptions",
        _ARG,
        types=("int8", "uint8", "float32", "int32", "bool"),
        results=INDEX_TYPES,
        cost_ms=2.0,
        absent=_ARG_IN_TFLM,
    ),
    "ARG_MIN": TfliteOperator(
        partial(convert_arg_extremum, kind=ArgMin),
        "ArgMinOptions",
        _ARG,
        types=("int8", "uint8", "float32", "int32", "bool"),
        results=INDEX_TYPES,
        cost_ms=2.0,
        absent=_ARG_IN_TFLM,
    ),
    "ASSIGN_VARIABLE": TfliteOperator(convert_assign_variable, types=_KEPT),
    "AVERAGE_POOL_2D": TfliteOperator(
        partial(convert_pool, kind=pooling.TflAveragePool2d),
        "Pool2DOptions",
        _POOLS,
        cost_ms=2.0,
        types=_ACTIVATIONS,
    ),
    "BATCH_MATMUL": TfliteOperator(
        convert_batch_matmul,
        "BatchMatMulOptions",
        f"either operand constant, or none; 2 to 5 axes; one scale for each operand; {_INT8_UNDER_FLOAT}, one matrix",
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        types=_ACTIVATIONS,
    ),
    "BATCH_TO_SPACE_ND": TfliteOperator(
        convert_batch_to_space,
        limits=f"3 or 4 axes; constant block shape and crops; {_FEW_MOVED}",
        cost_ms=1.5,
        types=_MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "BROADCAST_TO": TfliteOperator(convert_broadcast_to, limits="constant shape", cost_ms=1.5, types=_MOVED),
    "CALL_ONCE": TfliteOperator(
        convert_nothing, limits="of a subgraph that assigns constants to variables", types=("resource",)
    ),
    "CAST": TfliteOperator(
        convert_cast,
        limits="raw values; integers wrap, floats are truncated and saturate; tflm: neither uint8 nor int64",
        types=(*_NUMBERS, "uint8", "bool"),
        absent={Numerics.TFLM: ("uint8", "int64")},
    ),
    "CEIL": TfliteOperator(
        partial(convert_unary, operation=float_functions.Ceil()), types=_FLOAT, absent=_FLOAT_ALONE
    ),
    "CONCATENATION": TfliteOperator(
        convert_concatenation,
        "ConcatenationOptions",
        "operands quantised as the result is; no fused activation",
        cost_ms=1.5,
        types=_MOVED,
    ),
    "CONV_2D": TfliteOperator(
        convert_conv2d,
        "Conv2DOptions",
        f"{_WEIGHTS}; {_INT8_OR_INT4}; {_CLAMPS}",
        cost_ms=2.5,
        hybrid=_HYBRID,
        narrow_weights=_INT4,
        types=_ACTIVATIONS,
    ),
    "CONV_3D": TfliteOperator(
        convert_conv3d,
        "Conv3DOptions",
        f"constant weights; {_CLAMPS}; not with tflm",
        types=_FLOAT,
        cost_ms=5.0,
        absent={Numerics.TFLM: _FLOAT},
    ),
    "COS": TfliteOperator(
        partial(convert_unary, operation=float_functions.Cos()), types=_FLOAT, absent=_FLOAT_ALONE
    ),
    "CUMSUM": TfliteOperator(
        convert_cumsum,
        "CumsumOptions",
        "constant axis; int32 and int64 wrap; int8 with tflm alone, of about 16 elements; tflm: not int32",
        types=_BUT_INT16,
        cost_ms=2.0,
        absent={Numerics.LITERT_REF: ("int8",), Numerics.TFLM: INDEX_TYPES},
    ),
    "CUSTOM 'TFLite_Detection_PostProcess'": TfliteOperator(
        convert_detections,
        limits="one image; boxes and anchors alike float32 or uint8, scores either; tflm: neither uint8, nor several "
        "classes of one box unless classes are looked at one by one",
        types=("float32", "uint8"),
        cost_ms=5.0,
        absent={Numerics.TFLM: ("uint8",)},
    ),
    "CUSTOM 'ethos-u'": TfliteOperator(
        _convert_ethos_u, limits=f"made by Vela for {DECODED_PRODUCTS}; tflm", types=("int8",), cost_ms=5.0
    ),
    "DEPTHWISE_CONV_2D": TfliteOperator(
        convert_depthwise,
        "DepthwiseConv2DOptions",
        f"{_WEIGHTS}; weights of int8 activations also int4; {_INT8_UNDER_FLOAT}; {_CLAMPS}",
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        narrow_weights=_INT4,
        types=_ACTIVATIONS,
    ),
    "DEPTH_TO_SPACE": TfliteOperator(
        convert_depth_to_space,
        "DepthToSpaceOptions",
        _FEW_MOVED,
        cost_ms=1.5,
        types=_BUT_INT16,
        absent=_MOVED_IN_TFLM,
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
        f"broadcasting; {_CLAMPS}; small quotients of int8 are zero; a divisor of zero is one step, or one",
        types=_BOTH_AND_INT32,
        int8_cost_ms=1.0,
    ),
    "DYNAMIC_UPDATE_SLICE": TfliteOperator(
        convert_update_slice,
        limits="a start from which the update leaves means the nearest; tflm: neither int64 nor bool",
        types=_MOVED,
        indices=2,
        cost_ms=2.0,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "ELU": TfliteOperator(
        partial(convert_unary, operation=float_functions.TflElu(), int8=tables.elu), int8_cost_ms=5.0
    ),
    "EMBEDDING_LOOKUP": TfliteOperator(
        convert_embedding_lookup,
        limits="rows of float32, int8 or int4, per tensor or per row, zero point 0 (tflm: neither int4 nor per row); "
        "indices int32, or constant; one that is outside means the nearest",
        types=("float32",),
        indices=0,
        hybrid={Numerics.LITERT_REF: ("int8", "int4"), Numerics.TFLM: ("int8",)},
        narrow_weights=_INT4,
        cost_ms=1.5,
    ),
    "EQUAL": TfliteOperator(
        convert_comparison,
        limits=f"broadcasting; {_OF_BELOW_ONE}",
        types=(*_BUT_INT16, "bool"),
        int8_cost_ms=1.0,
    ),
    "EXP": TfliteOperator(
        partial(
            convert_unary,
            operation=float_functions.Exp(),
            int8=tables.exponential,
            int16=interpolated16(exponential),
        ),
        limits="tflm: float32 alone",
        int8_cost_ms=5.0,
        absent=_FLOAT_IN_TFLM,
        types=_ACTIVATIONS,
    ),
    "EXPAND_DIMS": TfliteOperator(
        convert_expand_dims,
        limits=f"constant axis; {_ALSO_INT16_MOVED}",
        types=_MOVED,
        absent=_ALSO_INT16_MOVED_IN_TFLM,
    ),
    "FILL": TfliteOperator(
        convert_fill,
        limits="constant shape; not with tflm",
        types=_MOVED,
        indices=0,
        input_at=1,
        cost_ms=1.5,
        absent={Numerics.TFLM: _MOVED},
    ),
    "FLOOR": TfliteOperator(
        partial(convert_unary, operation=float_functions.Floor()), types=_FLOAT, absent=_FLOAT_ALONE
    ),
    "FLOOR_DIV": TfliteOperator(
        partial(convert_plain_binary, operation=elementwise.TflFloorDiv(), dtypes=(ir.DType.I32,)),
        limits="broadcasting; int8 and int16: of raw values; a divisor of zero is one; tflm: float32 alone",
        types=(*_ACTIVATIONS, "int32"),
        absent={Numerics.TFLM: ("int8", "int16", "int32")},
    ),
    "FLOOR_MOD": TfliteOperator(
        partial(
            convert_plain_binary, operation=elementwise.TflFloorMod(), dtypes=(ir.DType.I32, ir.DType.I64)
        ),
        limits="broadcasting; int8 and int16: of raw values; a divisor of zero is one; tflm: float32 alone",
        types=_NUMBERS,
        absent={Numerics.TFLM: ("int8", "int16", "int32", "int64")},
    ),
    "FULLY_CONNECTED": TfliteOperator(
        convert_fully_connected,
        "FullyConnectedOptions",
        f"{_WEIGHTS}, or computed, with one scale; {_INT8_OR_INT4}; not shuffled; {_CLAMPS}",
        cost_ms=2.5,
        scale_cost_ms=0.7,  # each is fitted to double precision
        hybrid=_HYBRID,
        narrow_weights=_INT4,
        types=_ACTIVATIONS,
    ),
    "GATHER": TfliteOperator(
        convert_gather,
        "GatherOptions",
        f"indices int32 or int64, or constant; one that is outside means the nearest; {_FEW_MOVED}",
        types=_MOVED,
        indices=1,
        cost_ms=1.5,
        absent=_MOVED_IN_TFLM,
    ),
    "GATHER_ND": TfliteOperator(
        convert_gather_nd,
        limits=f"indices int32 or int64; one that is outside means the nearest; {_FEW_MOVED}",
        types=_MOVED,
        indices=1,
        cost_ms=1.5,
        absent=_MOVED_IN_TFLM,
    ),
    "GELU": TfliteOperator(
        convert_gelu,
        "GeluOptions",
        "as defined, or approximated by tanh; not with tflm",
        int8_cost_ms=5.0,
        absent={Numerics.TFLM: _ACTIVATIONS},
        types=_ACTIVATIONS,
    ),
    "GREATER": TfliteOperator(
        convert_comparison, limits=f"broadcasting; {_OF_BELOW_ONE}", types=_BUT_INT16, int8_cost_ms=1.0
    ),
    "GREATER_EQUAL": TfliteOperator(
        convert_comparison, limits=f"broadcasting; {_OF_BELOW_ONE}", types=_BUT_INT16, int8_cost_ms=1.0
    ),
    "HARD_SWISH": TfliteOperator(
        partial(convert_unary, operation=float_functions.TflHardSwish(), int8=tables.hard_swish),
        limits="int8: input scale at most 128 times the output's",
        int8_cost_ms=0.6,
    ),
    "IF": TfliteOperator(
        convert_if, "IfOptions", "results of fixed shapes", types=(*_MOVED, "uint8"), cost_ms=1.0
    ),
    "L2_NORMALIZATION": TfliteOperator(
        convert_l2_normalization, "L2NormOptions", "last axis; no fused activation", types=_FLOAT, cost_ms=2.0
    ),
    "L2_POOL_2D": TfliteOperator(convert_l2_pool, "Pool2DOptions", _CLAMPS, types=_FLOAT, cost_ms=2.0),
    "LEAKY_RELU": TfliteOperator(
        convert_leaky_relu, "LeakyReluOptions", int8_cost_ms=0.4, types=_ACTIVATIONS
    ),
    "LESS": TfliteOperator(
        convert_comparison, limits=f"broadcasting; {_OF_BELOW_ONE}", types=_BUT_INT16, int8_cost_ms=1.0
    ),
    "LESS_EQUAL": TfliteOperator(
        convert_comparison, limits=f"broadcasting; {_OF_BELOW_ONE}", types=_BUT_INT16, int8_cost_ms=1.0
    ),
    "LOG": TfliteOperator(
        partial(
            convert_unary,
            operation=float_functions.Log(),
            int8=tables.logarithm,
            int16=interpolated16(logarithm),
        ),
        limits="tflm: float32 alone",
        int8_cost_ms=5.0,
        absent=_FLOAT_IN_TFLM,
        types=_ACTIVATIONS,
    ),
    "LOGICAL_AND": TfliteOperator(
        partial(convert_logical, operation=elementwise.LogicalAnd()), limits="broadcasting", types=("bool",)
    ),
    "LOGICAL_NOT": TfliteOperator(
        partial(convert_logical, operation=elementwise.LogicalNot(), count=1), types=("bool",)
    ),
    "LOGICAL_OR": TfliteOperator(
        partial(convert_logical, operation=elementwise.LogicalOr()), limits="broadcasting", types=("bool",)
    ),
    "LOGISTIC": TfliteOperator(
        partial(convert_unary, operation=float_functions.Sigmoid(), int8=tables.logistic, int16=sigmoid16),
        limits="int8: output scale 1/256 with any zero point (litert-ref), zero point -128 with any scale (tflm)",
        int8_cost_ms=5.0,
        types=_ACTIVATIONS,
    ),
    "LOG_SOFTMAX": TfliteOperator(
        convert_log_softmax,
        limits="last axis; int8: output scale 1/16, zero point 127, at most 4095 values a row",
        cost_ms=2.5,
    ),
    "MAXIMUM": TfliteOperator(
        partial(convert_extremum, operation=elementwise.Maximum()),
        limits="broadcasting; int8: of raw values",
        types=_NUMBERS,
    ),
    "MAX_POOL_2D": TfliteOperator(
        partial(convert_pool, kind=pooling.MaxPool2d),
        "Pool2DOptions",
        _POOLS,
        cost_ms=2.0,
        types=_ACTIVATIONS,
    ),
    "MEAN": TfliteOperator(
        convert_mean,
        "ReducerOptions",
        f"constant axes; int32 and int64 truncate; {_ALSO_INT16_MOVED}",
        cost_ms=2.0,
        types=_NUMBERS,
        absent={Numerics.TFLM: ("int32", "int64")},
    ),
    "MINIMUM": TfliteOperator(
        partial(convert_extremum, operation=elementwise.Minimum()),
        limits="broadcasting; int8: of raw values",
        types=_NUMBERS,
    ),
    "MIRROR_PAD": TfliteOperator(
        convert_mirror_pad,
        "MirrorPadOptions",
        f"constant paddings around axes of at most 65,536; {_FEW_MOVED}",
        cost_ms=3.0,
        types=_MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "MUL": TfliteOperator(
        partial(
            convert_binary,
            operation=elementwise.Mul(),
            wrapping=elementwise.WrappingMul(),
            quantised=product_form,
        ),
        "MulOptions",
        f"broadcasting; {_CLAMPS}; int32 and int64 wrap; tflm: not int64",
        types=_NUMBERS,
        absent=_NO_INT64_IN_TFLM,
        int8_cost_ms=1.2,
    ),
    "NEG": TfliteOperator(
        partial(convert_unary, operation=float_functions.Negate(), int8=tables.negate, integers=emit_negated),
        limits="int8: of raw values; tflm: float32 alone",
        types=_BUT_INT16,
        absent={Numerics.TFLM: ("int8", "int32", "int64")},
    ),
    "NOT_EQUAL": TfliteOperator(
        convert_comparison,
        limits=f"broadcasting; {_OF_BELOW_ONE}",
        types=(*_BUT_INT16, "bool"),
        int8_cost_ms=1.0,
    ),
    "ONE_HOT": TfliteOperator(
        convert_one_hot,
        "OneHotOptions",
        "constant depth; indices int32 or int64; not with tflm",
        types=_BUT_INT16_MOVED,
        indices=0,
        input_at=2,
        cost_ms=1.0,
        absent={Numerics.TFLM: _BUT_INT16_MOVED},
    ),
    "PACK": TfliteOperator(
        convert_pack, "PackOptions", "operands quantised as the result is", cost_ms=1.5, types=_NUMBERS
    ),
    "PAD": TfliteOperator(
        convert_pad,
        limits="constant paddings; tflm: neither int64 nor bool",
        cost_ms=1.5,
        types=_MOVED,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "PADV2": TfliteOperator(
        convert_pad,
        limits="constant paddings and value; int8: value quantised as the result is; tflm: neither int64 nor bool",
        cost_ms=1.5,
        types=_MOVED,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "POW": TfliteOperator(
        partial(convert_plain_binary, operation=elementwise.Pow()),
        limits="broadcasting; not with tflm",
        types=_FLOAT,
        absent=_NOT_IN_TFLM,
    ),
    "PRELU": TfliteOperator(convert_prelu, limits="a slope that broadcasts to the input", int8_cost_ms=2.0),
    "QUANTIZE": TfliteOperator(
        convert_quantize,
        limits="to int8, uint8 or int16, but from int16 to uint8; tflm: to uint8 from int8 alone, from uint8 to int8",
        types=("int8", "uint8", "int16", "float32"),
        absent={
            Numerics.LITERT_REF: ("int16 to uint8",),
            Numerics.TFLM: ("float32 to uint8", "uint8 to uint8", "int16 to uint8", "uint8 to int16"),
        },
    ),
    "READ_VARIABLE": TfliteOperator(
        convert_read_variable, limits="of a variable that is assigned, in a run or once", types=_KEPT
    ),
    "REDUCE_ALL": TfliteOperator(
        partial(convert_truths, kind=pooling.ReduceAll),
        "ReducerOptions",
        "constant axes",
        types=("bool",),
        cost_ms=2.0,
    ),
    "REDUCE_ANY": TfliteOperator(
        partial(convert_truths, kind=pooling.ReduceAny),
        "ReducerOptions",
        "constant axes; not with tflm",
        types=("bool",),
        cost_ms=2.0,
        absent={Numerics.TFLM: ("bool",)},
    ),
    "REDUCE_MAX": TfliteOperator(
        partial(convert_reduced_extremum, kind=pooling.ReduceMax),
        "ReducerOptions",
        f"constant axes; int8: input and output quantised alike; {_FEW_MOVED}",
        cost_ms=2.0,
        types=_NUMBERS,
        absent={Numerics.TFLM: ("int16", "int32", "int64")},
    ),
    "REDUCE_MIN": TfliteOperator(
        partial(convert_reduced_extremum, kind=pooling.ReduceMin),
        "ReducerOptions",
        f"constant axes; int8: input and output quantised alike; {_FEW_MOVED}",
        cost_ms=2.0,
        types=_NUMBERS,
        absent={Numerics.TFLM: ("int16", "int32", "int64")},
    ),
    "REDUCE_PROD": TfliteOperator(
        convert_product,
        "ReducerOptions",
        "constant axes; int32 and int64 wrap; not with tflm",
        types=("float32", "int32", "int64"),
        cost_ms=2.0,
        absent={Numerics.TFLM: ("float32", "int32", "int64")},
    ),
    "RELU": TfliteOperator(convert_relu, types=_ACTIVATIONS),
    "RELU6": TfliteOperator(convert_relu, types=_ACTIVATIONS),
    "RELU_0_TO_1": TfliteOperator(convert_relu, limits="not with tflm", absent=_NOT_IN_TFLM),
    "RELU_N1_TO_1": TfliteOperator(convert_relu, limits="not with tflm", absent=_NOT_IN_TFLM),
    "RESHAPE": TfliteOperator(convert_reshape, "ReshapeOptions", "constant shape", types=_MOVED),
    "RESIZE_BILINEAR": TfliteOperator(
        partial(convert_resize, kind=TflResizeBilinear),
        "ResizeBilinearOptions",
        _RESIZED,
        cost_ms=2.0,
        types=_ACTIVATIONS,
        absent=_NO_INT16_IN_TFLM,
    ),
    "RESIZE_NEAREST_NEIGHBOR": TfliteOperator(
        partial(convert_resize, kind=TflResizeNearest),
        "ResizeNearestNeighborOptions",
        _RESIZED,
        cost_ms=1.5,
        types=_ACTIVATIONS,
    ),
    "REVERSE_V2": TfliteOperator(
        convert_reverse, "ReverseV2Options", "constant axes", cost_ms=1.5, types=_MOVED
    ),
    "ROUND": TfliteOperator(
        partial(convert_unary, operation=float_functions.TflRound()), types=_FLOAT, absent=_FLOAT_ALONE
    ),
    "RSQRT": TfliteOperator(
        partial(
            convert_unary,
            operation=float_functions.Rsqrt(),
            int8=tables.reciprocal_square_root,
            int16=interpolated16(reciprocal_square_root),
        ),
        int8_cost_ms=10.0,
        types=_ACTIVATIONS,
        absent=_NO_INT16_IN_TFLM,
    ),
    "SELECT": TfliteOperator(
        convert_select,
        limits="choices of one shape; a condition of theirs, of their first axis, or of one element; not with tflm",
        types=(*_NUMBERS, "bool"),
        input_at=1,
        absent={Numerics.TFLM: (*_NUMBERS, "bool")},
    ),
    "SELECT_V2": TfliteOperator(
        convert_select,
        limits=f"broadcasting; {_ALSO_INT16_MOVED}",
        types=(*_NUMBERS, "bool"),
        input_at=1,
        absent={Numerics.TFLM: ("int32", "int64", "bool")},
    ),
    "SIGN": TfliteOperator(
        partial(convert_unary, operation=float_functions.TflSign(), integers=emit_sign),
        limits="not with tflm",
        types=("float32", "int32"),
        absent={Numerics.TFLM: ("float32", "int32")},
    ),
    "SIN": TfliteOperator(
        partial(convert_unary, operation=float_functions.Sin()), types=_FLOAT, absent=_FLOAT_ALONE
    ),
    "SLICE": TfliteOperator(
        convert_slice,
        limits="constant begin and size; tflm: not int64",
        cost_ms=1.5,
        types=_MOVED,
        absent=_NO_INT64_IN_TFLM,
    ),
    "SOFTMAX": TfliteOperator(
        convert_softmax,
        "SoftmaxOptions",
        "last axis; int8: output scale 1/256, zero point -128, at most 4095 values a row",
        cost_ms=2.5,
        types=_ACTIVATIONS,
    ),
    "SPACE_TO_BATCH_ND": TfliteOperator(
        convert_space_to_batch,
        limits=f"3 or 4 axes; constant block shape and paddings; {_FEW_MOVED}, without paddings",
        cost_ms=2.0,
        types=_MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "SPACE_TO_DEPTH": TfliteOperator(
        convert_space_to_depth,
        "SpaceToDepthOptions",
        _FEW_MOVED,
        cost_ms=1.5,
        types=_BUT_INT16,
        absent=_MOVED_IN_TFLM,
    ),
    "SPLIT": TfliteOperator(
        convert_split,
        "SplitOptions",
        "constant axis; tflm: not int64",
        cost_ms=1.5,
        types=_NUMBERS,
        absent=_NO_INT64_IN_TFLM,
        input_at=1,
    ),
    "SPLIT_V": TfliteOperator(
        convert_split_v,
        "SplitVOptions",
        "constant sizes and axis; tflm: not int64",
        cost_ms=1.5,
        types=_NUMBERS,
        absent=_NO_INT64_IN_TFLM,
    ),
    "SQRT": TfliteOperator(
        partial(convert_unary, operation=float_functions.TflSqrt(), int8=tables.square_root),
        limits="tflm: float32 alone",
        absent=_FLOAT_IN_TFLM,
    ),
    "SQUARE": TfliteOperator(convert_square, types=_FLOAT, absent=_FLOAT_ALONE),
    "SQUARED_DIFFERENCE": TfliteOperator(
        convert_squared_difference,
        limits="broadcasting; int8: a rescale below 1; int32 wraps",
        types=_BOTH_AND_INT32,
        int8_cost_ms=1.4,
    ),
    "SQUEEZE": TfliteOperator(convert_squeeze, "SqueezeOptions", types=_MOVED),
    "STRIDED_SLICE": TfliteOperator(
        convert_strided_slice,
        "StridedSliceOptions",
        "constant begin, end and strides; all masks; strides of either sign; tflm: not int64",
        cost_ms=1.5,
        types=_MOVED,
        absent=_NO_INT64_IN_TFLM,
    ),
    "SUB": TfliteOperator(
        partial(
            convert_binary,
            operation=elementwise.Sub(),
            wrapping=elementwise.WrappingSub(),
            quantised=sum_form,
        ),
        "SubOptions",
        f"broadcasting; {_CLAMPS}; int32 and int64 wrap; tflm: not int64",
        types=_NUMBERS,
        absent=_NO_INT64_IN_TFLM,
        int8_cost_ms=1.4,
    ),
    "SUM": TfliteOperator(
        convert_sum,
        "ReducerOptions",
        f"constant axes; int32 and int64 wrap; {_FEW_MOVED}",
        cost_ms=2.0,
        types=_BUT_INT16,
        absent={Numerics.TFLM: ("int32", "int64")},
    ),
    "TANH": TfliteOperator(
        partial(convert_unary, operation=float_functions.Tanh(), int8=tables.tanh, int16=sigmoid16),
        limits="tflm: the result is taken to have scale 1/128 and zero point 0, as its kernel does",
        int8_cost_ms=5.0,
        types=_ACTIVATIONS,
    ),
    "TILE": TfliteOperator(
        convert_tile,
        limits="constant multiples; not with tflm",
        cost_ms=1.5,
        types=_MOVED,
        absent={Numerics.TFLM: _MOVED},
    ),
    "TOPK_V2": TfliteOperator(
        convert_top_k,
        "TopKV2Options",
        "constant count; raw values; not with tflm",
        types=_NUMBERS,
        results=("int32",),
        cost_ms=3.0,
        absent={Numerics.TFLM: _NUMBERS},
    ),
    "TRANSPOSE": TfliteOperator(
        convert_transpose,
        limits=f"constant permutation; {_ALSO_INT16_MOVED}",
        cost_ms=1.5,
        types=_MOVED,
        absent=_ALSO_INT16_MOVED_IN_TFLM,
    ),
    "TRANSPOSE_CONV": TfliteOperator(
        convert_transpose_conv,
        "TransposeConvOptions",
        f"constant output shape; {_WEIGHTS}; {_INT8_UNDER_FLOAT}; {_CLAMPS}",
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        input_at=2,
        types=_ACTIVATIONS,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": TfliteOperator(
        convert_lstm,
        "UnidirectionalSequenceLSTMOptions",
        "constant weights and biases; activation TANH; no peepholes, projection or layer normalisation; int8: a cell "
        "of int16, in units of a power of two",
        cost_ms=6.0,
        has_state=True,
    ),
    "UNPACK": TfliteOperator(
        convert_unpack,
        "UnpackOptions",
        "results quantised as the operand is; tflm: not bool",
        cost_ms=1.5,
        types=(*_ACTIVATIONS, "int32", "bool"),
        absent={Numerics.TFLM: ("bool",)},
    ),
    "VAR_HANDLE": TfliteOperator(convert_nothing, types=("resource",)),
    "WHILE": TfliteOperator(
        convert_while,
        "WhileOptions",
        "a number of turns that constants say, at most 65,536, or the run, up to `--bound`; operands of fixed shapes",
        types=(*_MOVED, "uint8"),
        cost_ms=1.0,
    ),
}

SUPPORTED = tuple(SupportedOperator(name, row.types, row.limits) for name, row in OPERATORS.items())

CONTROL_FLOW = ("IF", "WHILE", "CALL", "CALL_ONCE")
