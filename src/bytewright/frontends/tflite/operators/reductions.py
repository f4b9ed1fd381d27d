"""Operators whose results are of many elements each: of windows, products of matrices, axes, or runs of time."""

from functools import partial

from bytewright.frontends.tflite.activation import (
    convert_log_softmax,
    convert_softmax,
)
from bytewright.frontends.tflite.complex_numbers import convert_rfft2d
from bytewright.frontends.tflite.conv3d import convert_conv3d, convert_conv3d_transpose
from bytewright.frontends.tflite.convolution import (
    convert_conv2d,
    convert_depthwise,
    convert_transpose_conv,
)
from bytewright.frontends.tflite.detection import convert_suppression
from bytewright.frontends.tflite.elementwise import (
    convert_l2_normalization,
)
from bytewright.frontends.tflite.kernels_of import Absent
from bytewright.frontends.tflite.lstm import convert_bidirectional_lstm, convert_lstm
from bytewright.frontends.tflite.matmul import convert_batch_matmul, convert_fully_connected
from bytewright.frontends.tflite.operators.row import (
    ACTIVATIONS,
    ALSO_INT16_MOVED,
    BUT_INT16,
    CLAMPS,
    FEW_MOVED,
    FLOAT,
    INDEX_TYPES,
    INT4,
    MOVED,
    NO_INT16_IN_TFLM,
    NUMBERS,
    TfliteOperator,
)
from bytewright.frontends.tflite.places import (
    convert_arg_extremum,
    convert_cumsum,
    convert_top_k,
)
from bytewright.frontends.tflite.pooling import (
    convert_l2_pool,
    convert_local_response_normalization,
    convert_pool,
)
from bytewright.frontends.tflite.reduce_window import convert_reduce_window, convert_stablehlo_reduce_window
from bytewright.frontends.tflite.reduction import convert_extremum as convert_reduced_extremum
from bytewright.frontends.tflite.reduction import convert_mean, convert_product, convert_sum, convert_truths
from bytewright.frontends.tflite.resize import convert_resize
from bytewright.frontends.tflite.svdf import convert_svdf
from bytewright.ops import pooling
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.places import ArgMax, ArgMin
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest

_WEIGHTS = "constant weights, per tensor or per channel, zero point 0"
_INT8_OR_INT4 = "weights also int4, and either under float32 (not with tflm)"
_INT8_UNDER_FLOAT = "int8 weights also under float32 (not with tflm)"
_HYBRID_INT8 = {Numerics.LITERT_REF: ("int8",)}
_HYBRID = {Numerics.LITERT_REF: ("int8", "int4")}
_SUPPRESSED = "constant thresholds and sigma; results behind the boxes are 0; not with tflm"
_ARG = (
    "constant axis; raw values; results int32 or int64 (int32 alone with tflm); tflm: int8 and float32 alone"
)
_ARG_IN_TFLM: Absent = {
    Numerics.TFLM: (
        *(f"{source} to {result}" for source in ("uint8", "int32", "bool") for result in INDEX_TYPES),
        *("int8 to int64", "float32 to int64"),
    )
}
_POOLS = f"tflm: input and output quantised alike; {CLAMPS}"
_WINDOWS = (
    "a constant to begin with; sums, products, greatest and least values of numbers, which wrap; of bool whether all "
    "or any are true; raw values; not with tflm"
)
_RESIZED = "constant size; align_corners or half_pixel_centers, or neither"

_SUPPRESSION = TfliteOperator(
    convert_suppression,
    limits=_SUPPRESSED,
    types=FLOAT,
    results=("int32",),
    cost_ms=5.0,
    of_own_types=(2,),
    absent={Numerics.TFLM: FLOAT},
)

REDUCTIONS: dict[str, TfliteOperator] = {
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
    "AVERAGE_POOL_2D": TfliteOperator(
        partial(convert_pool, kind=pooling.TflAveragePool2d),
        "Pool2DOptions",
        _POOLS,
        cost_ms=2.0,
        types=ACTIVATIONS,
    ),
    "BIDIRECTIONAL_SEQUENCE_LSTM": TfliteOperator(
        convert_bidirectional_lstm,
        "BidirectionalSequenceLSTMOptions",
        "constant weights, also int8, and biases; as many units each way; activation TANH; no peepholes, projection or "
        "auxiliary input; not with tflm",
        types=FLOAT,
        cost_ms=12.0,
        hybrid=_HYBRID_INT8,
        absent={Numerics.TFLM: FLOAT},
        has_state=True,
    ),
    "BATCH_MATMUL": TfliteOperator(
        convert_batch_matmul,
        "BatchMatMulOptions",
        "either operand constant, or none; 2 to 5 axes; one scale for each operand, or one constant matrix with one a "
        f"column (not with tflm); the second also int8 under int16 (not with tflm); {_INT8_UNDER_FLOAT}, one matrix",
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        types=ACTIVATIONS,
        signed_alone=True,
    ),
    "CONV_2D": TfliteOperator(
        convert_conv2d,
        "Conv2DOptions",
        f"{_WEIGHTS}; {_INT8_OR_INT4}; {CLAMPS}",
        cost_ms=2.5,
        hybrid=_HYBRID,
        narrow_weights=INT4,
        types=ACTIVATIONS,
    ),
    "CONV_3D": TfliteOperator(
        convert_conv3d,
        "Conv3DOptions",
        f"constant weights; {CLAMPS}; not with tflm",
        types=FLOAT,
        cost_ms=5.0,
        absent={Numerics.TFLM: FLOAT},
    ),
    "CONV_3D_TRANSPOSE": TfliteOperator(
        convert_conv3d_transpose,
        "Conv3DOptions",
        f"constant output shape and weights; no dilations; {CLAMPS}; not with tflm",
        types=FLOAT,
        cost_ms=4.0,
        input_at=2,
        absent={Numerics.TFLM: FLOAT},
    ),
    "CUMSUM": TfliteOperator(
        convert_cumsum,
        "CumsumOptions",
        "constant axis; int32 and int64 wrap; int8 with tflm alone, of about 16 elements; tflm: not int32",
        types=BUT_INT16,
        cost_ms=2.0,
        absent={Numerics.LITERT_REF: ("int8",), Numerics.TFLM: INDEX_TYPES},
        signed_alone=True,
    ),
    "DEPTHWISE_CONV_2D": TfliteOperator(
        convert_depthwise,
        "DepthwiseConv2DOptions",
        f"{_WEIGHTS}; weights of int8 activations also int4; {_INT8_UNDER_FLOAT}; {CLAMPS}",
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        narrow_weights=INT4,
        types=ACTIVATIONS,
    ),
    "FULLY_CONNECTED": TfliteOperator(
        convert_fully_connected,
        "FullyConnectedOptions",
        f"{_WEIGHTS}, or computed, with one scale; {_INT8_OR_INT4}; int4 under float32 also with a scale a block, "
        f"without a fused activation; not shuffled; {CLAMPS}",
        cost_ms=2.5,
        scale_cost_ms=0.7,  # each is fitted to double precision
        hybrid=_HYBRID,
        narrow_weights=INT4,
        types=ACTIVATIONS,
    ),
    "L2_NORMALIZATION": TfliteOperator(
        convert_l2_normalization,
        "L2NormOptions",
        "last axis, of at most 4; no fused activation; int8: output scale 1/128 and zero point 0, at most 33025 values "
        "a row",
        cost_ms=2.0,
    ),
    "L2_POOL_2D": TfliteOperator(convert_l2_pool, "Pool2DOptions", CLAMPS, types=FLOAT, cost_ms=2.0),
    "LOCAL_RESPONSE_NORMALIZATION": TfliteOperator(
        convert_local_response_normalization,
        "LocalResponseNormalizationOptions",
        "4 axes; not with tflm",
        cost_ms=4.0,
        types=FLOAT,
        absent={Numerics.TFLM: FLOAT},
    ),
    "LOG_SOFTMAX": TfliteOperator(
        convert_log_softmax,
        limits="last axis; int8: output scale 1/16, zero point 127, at most 4095 values a row",
        cost_ms=2.5,
    ),
    "MAX_POOL_2D": TfliteOperator(
        partial(convert_pool, kind=pooling.MaxPool2d),
        "Pool2DOptions",
        _POOLS,
        cost_ms=2.0,
        types=ACTIVATIONS,
    ),
    "MEAN": TfliteOperator(
        convert_mean,
        "ReducerOptions",
        f"constant axes; int32 and int64 truncate; {ALSO_INT16_MOVED}",
        cost_ms=2.0,
        types=NUMBERS,
        absent={Numerics.TFLM: ("int32", "int64")},
    ),
    "NON_MAX_SUPPRESSION_V4": _SUPPRESSION,
    "NON_MAX_SUPPRESSION_V5": _SUPPRESSION,
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
        f"constant axes; int8: input and output quantised alike; {FEW_MOVED}",
        cost_ms=2.0,
        types=MOVED,
        absent={Numerics.TFLM: ("int16", "int32", "int64", "bool")},
    ),
    "REDUCE_MIN": TfliteOperator(
        partial(convert_reduced_extremum, kind=pooling.ReduceMin),
        "ReducerOptions",
        f"constant axes; int8: input and output quantised alike; {FEW_MOVED}",
        cost_ms=2.0,
        types=MOVED,
        absent={Numerics.TFLM: ("int16", "int32", "int64", "bool")},
    ),
    "REDUCE_PROD": TfliteOperator(
        convert_product,
        "ReducerOptions",
        "constant axes; int8 and int16 are scaled at each step; int32 and int64 wrap; not with tflm",
        types=MOVED,
        cost_ms=2.0,
        absent={Numerics.TFLM: MOVED},
        signed_alone=True,
    ),
    "REDUCE_WINDOW": TfliteOperator(
        convert_reduce_window,
        "ReduceWindowOptions",
        _WINDOWS,
        cost_ms=2.5,
        types=MOVED,
        absent={Numerics.TFLM: MOVED},
        signed_alone=True,
    ),
    "RESIZE_BILINEAR": TfliteOperator(
        partial(convert_resize, kind=TflResizeBilinear),
        "ResizeBilinearOptions",
        _RESIZED,
        cost_ms=2.0,
        types=ACTIVATIONS,
        absent=NO_INT16_IN_TFLM,
    ),
    "RESIZE_NEAREST_NEIGHBOR": TfliteOperator(
        partial(convert_resize, kind=TflResizeNearest),
        "ResizeNearestNeighborOptions",
        f"{_RESIZED}; tflm: neither int32 nor bool",
        cost_ms=1.5,
        types=(*ACTIVATIONS, "int32", "bool"),
        absent={Numerics.TFLM: ("int32", "bool")},
    ),
    "RFFT2D": TfliteOperator(
        convert_rfft2d,
        limits="lengths of a power of two up to 32,768, of rows from 4 on; complex64 results inside of a model, for "
        "COMPLEX_ABS, IMAG, REAL, CAST and reshapes; not with tflm",
        types=FLOAT,
        results=("complex64",),
        cost_ms=6.0,
        of_own_types=(1,),
        absent={Numerics.TFLM: FLOAT},
    ),
    "SOFTMAX": TfliteOperator(
        convert_softmax,
        "SoftmaxOptions",
        "last axis; int8: output scale 1/256, zero point -128, or int16 with 1/65536 and -32768; at most 4095 values "
        "a row",
        cost_ms=2.5,
        types=ACTIVATIONS,
    ),
    "STABLEHLO_REDUCE_WINDOW": TfliteOperator(
        convert_stablehlo_reduce_window,
        "StablehloReduceWindowOptions",
        _WINDOWS,
        cost_ms=2.5,
        types=MOVED,
        absent={Numerics.TFLM: MOVED},
        signed_alone=True,
    ),
    "SUM": TfliteOperator(
        convert_sum,
        "ReducerOptions",
        f"constant axes; int32 and int64 wrap; {ALSO_INT16_MOVED}",
        cost_ms=2.0,
        types=NUMBERS,
        absent={Numerics.TFLM: ("int32", "int64")},
    ),
    "TOPK_V2": TfliteOperator(
        convert_top_k,
        "TopKV2Options",
        "raw values; not with tflm",
        types=NUMBERS,
        results=("int32",),
        cost_ms=3.0,
        absent={Numerics.TFLM: NUMBERS},
    ),
    "TRANSPOSE_CONV": TfliteOperator(
        convert_transpose_conv,
        "TransposeConvOptions",
        f"constant output shape, or with tflm any, of which the result's declared shape is taken; {_WEIGHTS}; "
        f"{_INT8_UNDER_FLOAT}; {CLAMPS}",
        indices=0,
        cost_ms=2.5,
        hybrid=_HYBRID_INT8,
        input_at=2,
        types=ACTIVATIONS,
    ),
    "SVDF": TfliteOperator(
        convert_svdf,
        "SVDFOptions",
        "constant weights and bias; of int8 a state of int16 (tflm: also int8); float32: fused activation: none, RELU, "
        "RELU6, RELU_N1_TO_1; int8 features also under float32 (not with tflm); tflm: not without a bias",
        cost_ms=4.5,
        hybrid=_HYBRID_INT8,
        has_state=True,
        of_own_types=(2,),
        signed_alone=True,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": TfliteOperator(
        convert_lstm,
        "UnidirectionalSequenceLSTMOptions",
        "constant weights and biases; activation TANH; no peepholes, projection or layer normalisation; int8 and "
        f"int16: a cell of int16, in units of a power of two; int16 with tflm alone; {_INT8_UNDER_FLOAT}",
        types=ACTIVATIONS,
        cost_ms=6.0,
        hybrid=_HYBRID_INT8,
        absent={Numerics.LITERT_REF: ("int16",)},
        has_state=True,
        signed_alone=True,
    ),
}
