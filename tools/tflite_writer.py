"""Write small .tflite files: the models that tests, measurements and the shipped example are made of.

    builder = ModelBuilder()
    x = builder.tensor("x", [1, 8, 8, 3], "int8", scale=0.5, zero_point=3)
    w = builder.tensor("w", [4, 3, 3, 3], "int8", data=weights, scale=weight_scales, quantized_dimension=0)
    b = builder.tensor("b", [4], "int32", data=bias, scale=bias_scales, quantized_dimension=0)
    y = builder.tensor("y", [1, 8, 8, 4], "int8", scale=0.25, zero_point=-1)
    builder.operator("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1, activation="RELU")
    model = builder.build(inputs=[x], outputs=[y])

The writer checks names and options, not shapes or quantisation: tests also want files that a compiler must
refuse. Option names are those of the schema in snake case (`fused_activation_function` may be written
`activation`); enumerations are given by name. Operator versions are the lowest that allow the given types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import flatbuffers
import numpy as np
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray

OPTIONAL = -1
"""Stands for an absent optional input, such as the bias of a FULLY_CONNECTED."""

# What is younger than the package of the schema.
_BLOCKWISE = 2
_CASE, _CASE_OPTIONS_NUMBER = "STABLEHLO_CASE", 23
YOUNGER_OPERATORS = {_CASE: 209}
"""Numbers of operators that the package of the schema does not name."""

Option = int | float | bool | str | bytes | Sequence[int] | Sequence[float]

_schema = cast(Any, tflite)

_DTYPES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "float64": "FLOAT64",
    "complex64": "COMPLEX64",
    "int4": "INT4",
    "int8": "INT8",
    "uint8": "UINT8",
    "uint32": "UINT32",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "resource": "RESOURCE",
}

_ENUMERATIONS = {
    "padding": "Padding",
    "fused_activation_function": "ActivationFunctionType",
    "weights_format": "FullyConnectedOptionsWeightsFormat",
    "out_type": "TensorType",
    "quantized_bias_type": "TensorType",
    "output_type": "TensorType",
    "mode": "MirrorPadMode",
    "reduce_function": "ReduceWindowFunction",
}

_CONVOLUTION: dict[str, Option] = {
    "padding": "SAME",
    "stride_w": 1,
    "stride_h": 1,
    "fused_activation_function": "NONE",
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
}
# FLOAT32 is the schema's default, and says nothing.
_BIAS: dict[str, Option] = {"quantized_bias_type": "FLOAT32"}
_POOL: dict[str, Option] = {
    "padding": "VALID",
    "stride_w": 1,
    "stride_h": 1,
    "filter_width": 1,
    "filter_height": 1,
    "fused_activation_function": "NONE",
}
_ACTIVATION: dict[str, Option] = {"fused_activation_function": "NONE"}
_RECURRENT: dict[str, Option] = {
    "fused_activation_function": "NONE",
    "asymmetric_quantize_inputs": False,
}
_LSTM: dict[str, Option] = {**_RECURRENT, "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False}
_RESIZE: dict[str, Option] = {"align_corners": False, "half_pixel_centers": False}
_STRIDED_SLICE: dict[str, Option] = {
    "begin_mask": 0,
    "end_mask": 0,
    "ellipsis_mask": 0,
    "new_axis_mask": 0,
    "shrink_axis_mask": 0,
    "offset": False,
}


@dataclass(frozen=True, slots=True)
class _OperatorForm:
    """How one operator is written: its options table, the options' defaults, and its versions."""

    options_table: str
    options: Mapping[str, Option]
    version_float: int = 1
    version_int8: int = 2


def _flexbuffer(options: Mapping[str, Option]) -> bytes:
    """A map from names to numbers."""
    builder: Any = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            builder.Add(value)
    return bytes(builder.Finish())


_FORMS: dict[str, _OperatorForm] = {
    "CONV_2D": _OperatorForm("Conv2DOptions", {**_CONVOLUTION, **_BIAS}, 1, 3),
    "DEPTHWISE_CONV_2D": _OperatorForm(
        "DepthwiseConv2DOptions", {**_CONVOLUTION, "depth_multiplier": 1}, 2, 3
    ),
    "FULLY_CONNECTED": _OperatorForm(
        "FullyConnectedOptions",
        {
            **_ACTIVATION,
            "weights_format": "DEFAULT",
            "keep_num_dims": False,
            "asymmetric_quantize_inputs": False,
            **_BIAS,
        },
        5,
        5,
    ),
    "AVERAGE_POOL_2D": _OperatorForm("Pool2DOptions", _POOL),
    "MAX_POOL_2D": _OperatorForm("Pool2DOptions", _POOL),
    "MEAN": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "ADD": _OperatorForm("AddOptions", {**_ACTIVATION, "pot_scale_int16": True}),
    "SUB": _OperatorForm("SubOptions", {**_ACTIVATION, "pot_scale_int16": True}),
    "MUL": _OperatorForm("MulOptions", _ACTIVATION),
    "PAD": _OperatorForm("PadOptions", {}),
    "PADV2": _OperatorForm("PadV2Options", {}),
    "RESHAPE": _OperatorForm("ReshapeOptions", {"new_shape": ()}, 1, 1),
    "SQUEEZE": _OperatorForm("SqueezeOptions", {"squeeze_dims": ()}, 1, 1),
    "EXPAND_DIMS": _OperatorForm("ExpandDimsOptions", {}, 1, 1),
    "CONCATENATION": _OperatorForm("ConcatenationOptions", {"axis": 0, **_ACTIVATION}),
    "STRIDED_SLICE": _OperatorForm("StridedSliceOptions", _STRIDED_SLICE),
    "SLICE": _OperatorForm("SliceOptions", {}),
    "SPLIT": _OperatorForm("SplitOptions", {"num_splits": 1}),
    "TRANSPOSE": _OperatorForm("TransposeOptions", {}),
    "SOFTMAX": _OperatorForm("SoftmaxOptions", {"beta": 1.0}),
    "LOGISTIC": _OperatorForm("", {}),
    "TANH": _OperatorForm("", {}),
    "REAL": _OperatorForm("", {}, 1, 1),
    "IMAG": _OperatorForm("", {}, 1, 1),
    "RFFT2D": _OperatorForm("Rfft2dOptions", {}, 1, 1),
    "NON_MAX_SUPPRESSION_V4": _OperatorForm("NonMaxSuppressionV4Options", {}, 1, 1),
    "NON_MAX_SUPPRESSION_V5": _OperatorForm("NonMaxSuppressionV5Options", {}, 1, 1),
    "RELU": _OperatorForm("", {}),
    "RELU6": _OperatorForm("", {}),
    "RELU_N1_TO_1": _OperatorForm("", {}, 1, 1),
    "L2_NORMALIZATION": _OperatorForm("L2NormOptions", _ACTIVATION),
    "LEAKY_RELU": _OperatorForm("LeakyReluOptions", {"alpha": 0.0}),
    "HARD_SWISH": _OperatorForm("HardSwishOptions", {}, 1, 1),
    "QUANTIZE": _OperatorForm("QuantizeOptions", {}, 1, 2),
    "DEQUANTIZE": _OperatorForm("DequantizeOptions", {}, 2, 2),
    "DENSIFY": _OperatorForm("DensifyOptions", {}, 1, 1),
    "ABS": _OperatorForm("AbsOptions", {}),
    "COMPLEX_ABS": _OperatorForm("", {}, 1, 1),
    "COS": _OperatorForm("CosOptions", {}),
    "ELU": _OperatorForm("", {}, 1, 1),
    "EXP": _OperatorForm("ExpOptions", {}),
    "GELU": _OperatorForm("GeluOptions", {"approximate": False}),
    "LOG": _OperatorForm("", {}),
    "LOG_SOFTMAX": _OperatorForm("LogSoftmaxOptions", {}),
    "PRELU": _OperatorForm("", {}, 1, 1),
    "RELU_0_TO_1": _OperatorForm("", {}, 1, 1),
    "ROUND": _OperatorForm("", {}),
    "RSQRT": _OperatorForm("", {}),
    "SIGN": _OperatorForm("", {}),
    "SIN": _OperatorForm("", {}),
    "SQRT": _OperatorForm("", {}),
    "SQUARE": _OperatorForm("SquareOptions", {}),
    "SQUARED_DIFFERENCE": _OperatorForm("SquaredDifferenceOptions", {}),
    # What arithmetic of shapes is written with.
    "SHAPE": _OperatorForm("ShapeOptions", {"out_type": "INT32"}, 1, 1),
    "RANK": _OperatorForm("RankOptions", {}, 1, 1),
    "REDUCE_PROD": _OperatorForm("ReducerOptions", {"keep_dims": False}, 1, 1),
    "REDUCE_MAX": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "REDUCE_MIN": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "REDUCE_ANY": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "REDUCE_ALL": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "SUM": _OperatorForm("ReducerOptions", {"keep_dims": False}),
    "FILL": _OperatorForm("FillOptions", {}, 1, 1),
    "CAST": _OperatorForm("CastOptions", {}, 1, 1),
    "RANGE": _OperatorForm("RangeOptions", {}, 1, 1),
    "ZEROS_LIKE": _OperatorForm("ZerosLikeOptions", {}, 1, 1),
    "SELECT": _OperatorForm("SelectOptions", {}, 1, 1),
    "SELECT_V2": _OperatorForm("SelectV2Options", {}, 1, 1),
    "DIV": _OperatorForm("DivOptions", _ACTIVATION, 1, 2),
    "FLOOR_DIV": _OperatorForm("FloorDivOptions", {}, 1, 1),
    "FLOOR_MOD": _OperatorForm("FloorModOptions", {}, 1, 1),
    "POW": _OperatorForm("PowOptions", {}, 1, 1),
    "NEG": _OperatorForm("NegOptions", {}, 1, 1),
    "FLOOR": _OperatorForm("", {}, 1, 1),
    "CEIL": _OperatorForm("", {}, 1, 1),
    "MAXIMUM": _OperatorForm("MaximumMinimumOptions", {}, 1, 2),
    "MINIMUM": _OperatorForm("MaximumMinimumOptions", {}, 1, 2),
    "EQUAL": _OperatorForm("EqualOptions", {}),
    "NOT_EQUAL": _OperatorForm("NotEqualOptions", {}),
    "LESS": _OperatorForm("LessOptions", {}),
    "LESS_EQUAL": _OperatorForm("LessEqualOptions", {}),
    "GREATER": _OperatorForm("GreaterOptions", {}),
    "GREATER_EQUAL": _OperatorForm("GreaterEqualOptions", {}),
    "LOGICAL_AND": _OperatorForm("LogicalAndOptions", {}, 1, 1),
    "LOGICAL_OR": _OperatorForm("LogicalOrOptions", {}, 1, 1),
    "LOGICAL_NOT": _OperatorForm("LogicalNotOptions", {}, 1, 1),
    "PACK": _OperatorForm("PackOptions", {"values_count": 1, "axis": 0}),
    "UNPACK": _OperatorForm("UnpackOptions", {"num": 1, "axis": 0}),
    "TILE": _OperatorForm("TileOptions", {}, 1, 2),
    "BROADCAST_ARGS": _OperatorForm("", {}, 1, 1),
    "BROADCAST_TO": _OperatorForm("BroadcastToOptions", {}, 3, 3),
    "SPLIT_V": _OperatorForm("SplitVOptions", {"num_splits": 1}),
    "GATHER": _OperatorForm("GatherOptions", {"axis": 0, "batch_dims": 0}),
    "REVERSE_V2": _OperatorForm("ReverseV2Options", {}),
    "DEPTH_TO_SPACE": _OperatorForm("DepthToSpaceOptions", {"block_size": 1}, 1, 1),
    "SPACE_TO_DEPTH": _OperatorForm("SpaceToDepthOptions", {"block_size": 1}, 1, 2),
    "SPACE_TO_BATCH_ND": _OperatorForm("SpaceToBatchNDOptions", {}),
    "BATCH_TO_SPACE_ND": _OperatorForm("BatchToSpaceNDOptions", {}),
    "MIRROR_PAD": _OperatorForm("MirrorPadOptions", {"mode": "REFLECT"}),
    "EMBEDDING_LOOKUP": _OperatorForm("", {}, 1, 1),
    "RESIZE_NEAREST_NEIGHBOR": _OperatorForm("ResizeNearestNeighborOptions", _RESIZE),
    "RESIZE_BILINEAR": _OperatorForm("ResizeBilinearOptions", _RESIZE),
    "TRANSPOSE_CONV": _OperatorForm(
        "TransposeConvOptions",
        {"padding": "SAME", "stride_w": 1, "stride_h": 1, **_ACTIVATION, **_BIAS},
        4,
        4,
    ),
    "BATCH_MATMUL": _OperatorForm(
        "BatchMatMulOptions", {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
    ),
    "ADD_N": _OperatorForm("AddNOptions", {}),
    "ARG_MAX": _OperatorForm("ArgMaxOptions", {"output_type": "INT32"}),
    "ARG_MIN": _OperatorForm("ArgMinOptions", {"output_type": "INT32"}),
    "CONV_3D": _OperatorForm(
        "Conv3DOptions",
        {
            "padding": "SAME",
            "stride_d": 1,
            "stride_w": 1,
            "stride_h": 1,
            **_ACTIVATION,
            "dilation_d_factor": 1,
            "dilation_w_factor": 1,
            "dilation_h_factor": 1,
        },
        1,
        1,
    ),
    "CONV_3D_TRANSPOSE": _OperatorForm(
        "Conv3DOptions", {"padding": "SAME", "stride_d": 1, "stride_w": 1, "stride_h": 1, **_ACTIVATION}, 1, 1
    ),
    "DILATE": _OperatorForm("", {}, 1, 1),
    "STABLEHLO_PAD": _OperatorForm(
        "StablehloPadOptions", {"edge_padding_low": (), "edge_padding_high": (), "interior_padding": ()}, 1, 1
    ),
    "STABLEHLO_GATHER": _OperatorForm(
        "StablehloGatherOptions",
        {
            "offset_dims": (),
            "collapsed_slice_dims": (),
            "start_index_map": (),
            "index_vector_dim": 0,
            "slice_sizes": (),
        },
        1,
        1,
    ),
    "STABLEHLO_SCATTER": _OperatorForm(
        "StablehloScatterOptions",
        {
            "update_window_dims": (),
            "inserted_window_dims": (),
            "scatter_dims_to_operand_dims": (),
            "index_vector_dim": 0,
            "update_computation_subgraph_index": 0,
        },
        1,
        1,
    ),
    "STABLEHLO_REDUCE_WINDOW": _OperatorForm(
        "StablehloReduceWindowOptions",
        {
            "window_dimensions": (),
            "window_strides": (),
            "base_dilations": (),
            "window_dilations": (),
            "padding": (),
            "body_subgraph_index": 0,
        },
        1,
        1,
    ),
    "STABLEHLO_SHIFT_LEFT": _OperatorForm("", {}, 1, 1),
    "REDUCE_WINDOW": _OperatorForm("ReduceWindowOptions", {"reduce_function": "ADD"}, 1, 1),
    _CASE: _OperatorForm("StablehloCaseOptions", {"branch_subgraph_indices": ()}, 1, 1),
    "CUMSUM": _OperatorForm("CumsumOptions", {"exclusive": False, "reverse": False}, 1, 1),
    "DYNAMIC_UPDATE_SLICE": _OperatorForm("DynamicUpdateSliceOptions", {}, 1, 1),
    "GATHER_ND": _OperatorForm("GatherNdOptions", {}, 1, 1),
    "IF": _OperatorForm("IfOptions", {"then_subgraph_index": 0, "else_subgraph_index": 0}, 1, 1),
    "WHILE": _OperatorForm("WhileOptions", {"cond_subgraph_index": 0, "body_subgraph_index": 0}, 1, 1),
    "L2_POOL_2D": _OperatorForm("Pool2DOptions", _POOL, 1, 1),
    "ONE_HOT": _OperatorForm("OneHotOptions", {"axis": -1}, 1, 1),
    "SCATTER_ND": _OperatorForm("ScatterNdOptions", {}, 1, 1),
    "SVDF": _OperatorForm("SVDFOptions", {**_RECURRENT, "rank": 1}, 1, 1),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _OperatorForm("UnidirectionalSequenceLSTMOptions", _LSTM, 1, 1),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _OperatorForm(
        "BidirectionalSequenceLSTMOptions", {**_LSTM, "merge_outputs": False}, 1, 1
    ),
    "TOPK_V2": _OperatorForm("TopKV2Options", {}, 1, 1),
    "VAR_HANDLE": _OperatorForm("VarHandleOptions", {"container": "", "shared_name": ""}, 1, 1),
    "READ_VARIABLE": _OperatorForm("ReadVariableOptions", {}, 1, 1),
    "ASSIGN_VARIABLE": _OperatorForm("AssignVariableOptions", {}, 1, 1),
    "CALL_ONCE": _OperatorForm("CallOnceOptions", {"init_subgraph_index": 0}, 1, 1),
    "STABLEHLO_COMPOSITE": _OperatorForm(
        "StableHLOCompositeOptions",
        {"name": "composite", "decomposition_subgraph_index": 0, "composite_attributes": _flexbuffer({})},
        1,
        1,
    ),
    "ATAN2": _OperatorForm("", {}, 1, 1),
    "BITWISE_XOR": _OperatorForm("BitwiseXorOptions", {}, 1, 1),
    "BUCKETIZE": _OperatorForm("BucketizeOptions", {"boundaries": (0.0,)}, 1, 1),
    "FAKE_QUANT": _OperatorForm(
        "FakeQuantOptions", {"min": -1.0, "max": 1.0, "num_bits": 8, "narrow_range": False}, 1, 1
    ),
    "LOCAL_RESPONSE_NORMALIZATION": _OperatorForm(
        "LocalResponseNormalizationOptions", {"radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 0.5}, 1, 1
    ),
    "MATRIX_DIAG": _OperatorForm("MatrixDiagOptions", {}, 1, 1),
    "MATRIX_SET_DIAG": _OperatorForm("MatrixSetDiagOptions", {}, 1, 1),
    "REVERSE_SEQUENCE": _OperatorForm("ReverseSequenceOptions", {"seq_dim": 1, "batch_dim": 0}, 1, 1),
    "RIGHT_SHIFT": _OperatorForm("RightShiftOptions", {}, 1, 1),
    "SEGMENT_SUM": _OperatorForm("SegmentSumOptions", {}, 1, 1),
    "SPARSE_TO_DENSE": _OperatorForm("SparseToDenseOptions", {"validate_indices": False}, 2, 3),
    **{
        f"STABLEHLO_{kind}": _OperatorForm("", {}, 1, 1)
        for kind in ("ADD", "AND", "MAXIMUM", "MINIMUM", "MULTIPLY")
    },
    **{
        f"UNSORTED_SEGMENT_{kind.upper()}": _OperatorForm(f"UnsortedSegment{kind}Options", {}, 1, 1)
        for kind in ("Max", "Min", "Prod", "Sum")
    },
    "UNIQUE": _OperatorForm("UniqueOptions", {"idx_out_type": 2}, 1, 1),
    "WHERE": _OperatorForm("WhereOptions", {}, 1, 1),
    # Not an operator that Bytewright compiles: it makes the models that it must refuse.
    "RNN": _OperatorForm("RNNOptions", {}, 1, 1),
}


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    quantized_dimension: int
    shape_signature: tuple[int, ...] | None
    data: bytes | None
    is_variable: bool = False
    blocks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Operator:
    name: str
    custom_code: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option]
    intermediates: tuple[int, ...] = ()
    structure: bytes = b""


@dataclass(frozen=True, slots=True)
class _Signature:
    key: str
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What one file holds."""

    description: str
    subgraph_name: str
    tensors: Sequence[_Tensor]
    operators: Sequence[_Operator]
    inputs: Sequence[int]
    outputs: Sequence[int]
    signatures: Sequence[_Signature]


def _packed_nibbles(array: NDArray[Any]) -> bytes:
    """Two numbers of 4 bits a byte, the first in the lower half."""
    numbers = array.reshape(-1).astype(np.uint8) & 15
    padded = np.append(numbers, np.zeros(len(numbers) % 2, np.uint8))
    return (padded[::2] | (padded[1::2] << 4)).astype(np.uint8).tobytes()


class ModelBuilder:
    """Collects one subgraph's tensors and operators, then writes the file."""

    def __init__(self, description: str = "", subgraph_name: str = "main") -> None:
        self._description = description
        self._subgraph_name = subgraph_name
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []
        self._signatures: list[_Signature] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        *,
        scale: float | Sequence[float] | NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | NDArray[Any] = 0,
        quantized_dimension: int = 0,
        shape_signature: Sequence[int] | None = None,
        data: NDArray[Any] | Sequence[Any] | None = None,
        is_variable: bool = False,
        blocks: tuple[int, ...] | None = None,
    ) -> int:
        """Add a tensor and return its index; with `data` it is a constant, and a variable survives runs.

        `blocks` are the index of a tensor with a scale for each block, and how many elements a block has, and the index
        of one with zero points, if there is.

        A sequence of scales means per-channel quantisation along `quantized_dimension`. One zero point
        serves all scales. `shape_signature` has -1 where the extent is open. Values of int4 are from -8 to 7.
        """
        if dtype not in _DTYPES:
            raise ValueError(f"unknown dtype {dtype!r}; known: {', '.join(_DTYPES)}")
        scales = () if scale is None else tuple(float(s) for s in np.atleast_1d(np.asarray(scale)))
        zeros = tuple(int(z) for z in np.atleast_1d(np.asarray(zero_point)))
        if len(zeros) == 1:
            zeros *= len(scales)
        content: bytes | None = None
        if data is not None:
            array = np.ascontiguousarray(np.asarray(data, dtype="int8" if dtype == "int4" else dtype))
            if array.size != int(np.prod(shape, dtype=np.int64)):
                raise ValueError(f"tensor {name!r}: {array.size} values for shape {list(shape)}")
            content = array.astype(array.dtype.newbyteorder("<")).tobytes()
            content = _packed_nibbles(array) if dtype == "int4" else content
        signature = None if shape_signature is None else tuple(int(d) for d in shape_signature)
        dimensions = tuple(int(d) for d in shape)
        self._tensors.append(
            _Tensor(
                name,
                dimensions,
                dtype,
                scales,
                zeros,
                quantized_dimension,
                signature,
                content,
                is_variable,
                blocks,
            )
        )
        return len(self._tensors) - 1

    def constant(
        self,
        name: str,
        data: NDArray[Any],
        *,
        scale: float | Sequence[float] | NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | NDArray[Any] = 0,
        quantized_dimension: int = 0,
    ) -> int:
        """Add a constant whose shape and dtype are those of `data`."""
        return self.tensor(
            name,
            data.shape,
            str(data.dtype),
            scale=scale,
            zero_point=zero_point,
            quantized_dimension=quantized_dimension,
            data=data,
        )

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        version: int | None = None,
        intermediates: Sequence[int] = (),
        **options: Option,
    ) -> None:
        """Add an operator by its schema name, with its options by keyword (see the module's docstring).

        Intermediates are tensors that say how an LSTM of integers rounds between its steps.
        """
        if name not in _FORMS:
            raise ValueError(f"unknown operator {name!r}; known: {', '.join(_FORMS)}")
        form = _FORMS[name]
        if "activation" in options:
            options["fused_activation_function"] = options.pop("activation")
        unknown = sorted(set(options) - set(form.options))
        if unknown:
            raise ValueError(f"{name} has no option {unknown}; it has {sorted(form.options)}")
        if version is None:
            touched = [self._tensors[i].dtype for i in (*inputs, *outputs) if i != OPTIONAL]
            version = form.version_int8 if "int8" in touched else form.version_float
            if name == "QUANTIZE" and self._tensors[inputs[0]].dtype == "float32":
                version = 1
        merged: dict[str, Option] = {**form.options, **options}
        self._operators.append(
            _Operator(name, "", version, tuple(inputs), tuple(outputs), merged, tuple(intermediates))
        )

    def custom_operator(
        self,
        custom_code: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        structure: bytes = b"",
        **options: int | float | bool,
    ) -> None:
        """Add a custom operator, with its options as a FlexBuffer, a map from names to numbers, or as bytes of C."""
        self._operators.append(
            _Operator("CUSTOM", custom_code, 1, tuple(inputs), tuple(outputs), options, structure=structure)
        )

    def signature(self, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        """Add a signature: names of this subgraph's tensors for those who run it."""
        self._signatures.append(_Signature(key, dict(inputs), dict(outputs)))

    def subgraph(self, inputs: Sequence[int], outputs: Sequence[int]) -> Subgraph:
        """What was added, as a subgraph that another builder can have after its own."""
        return Subgraph(
            self._description,
            self._subgraph_name,
            self._tensors,
            self._operators,
            inputs,
            outputs,
            self._signatures,
        )

    def build(self, inputs: Sequence[int], outputs: Sequence[int], *others: Subgraph) -> bytes:
        """The file's bytes. The same calls give the same bytes."""
        return _FileWriter().model((self.subgraph(inputs, outputs), *others))


class _FileWriter:
    """The flatbuffer side: children before parents, as the format wants."""

    def __init__(self) -> None:
        self._builder: Any = flatbuffers.Builder(4096)

    def model(self, parts: Sequence[Subgraph]) -> bytes:
        builder = self._builder
        operators = [op for part in parts for op in part.operators]
        codes = list(dict.fromkeys((op.name, op.custom_code, op.version) for op in operators))
        data = [b"", *(t.data for part in parts for t in part.tensors if t.data is not None)]
        buffers = self._offsets([self._buffer(content) for content in data])
        written: list[int] = []
        num_constants = 0
        for part in parts:
            written.append(self._subgraph(part, codes, num_constants))
            num_constants += sum(tensor.data is not None for tensor in part.tensors)
        subgraphs = self._offsets(written)
        signed = [(signature, i) for i, part in enumerate(parts) for signature in part.signatures]
        signatures = self._offsets([self._signature(*each) for each in signed]) if signed else None
        operator_codes = self._offsets([self._operator_code(*code) for code in codes])
        text = builder.CreateString(parts[0].description)
        _schema.ModelStart(builder)
        _schema.ModelAddVersion(builder, 3)
        _schema.ModelAddOperatorCodes(builder, operator_codes)
        _schema.ModelAddSubgraphs(builder, subgraphs)
        _schema.ModelAddDescription(builder, text)
        _schema.ModelAddBuffers(builder, buffers)
        if signatures is not None:
            _schema.ModelAddSignatureDefs(builder, signatures)
        builder.Finish(_schema.ModelEnd(builder), b"TFL3")
        return bytes(builder.Output())

    def _signature(self, signature: _Signature, subgraph: int) -> int:
        builder = self._builder
        maps: list[int] = []
        for named in (signature.inputs, signature.outputs):
            entries: list[int] = []
            for name, index in named.items():
                text = builder.CreateString(name)
                _schema.TensorMapStart(builder)
                _schema.TensorMapAddName(builder, text)
                _schema.TensorMapAddTensorIndex(builder, index)
                entries.append(_schema.TensorMapEnd(builder))
            maps.append(self._offsets(entries))
        key = builder.CreateString(signature.key)
        _schema.SignatureDefStart(builder)
        _schema.SignatureDefAddInputs(builder, maps[0])
        _schema.SignatureDefAddOutputs(builder, maps[1])
        _schema.SignatureDefAddSignatureKey(builder, key)
        _schema.SignatureDefAddSubgraphIndex(builder, subgraph)
        return _schema.SignatureDefEnd(builder)

    def _subgraph(self, contents: Subgraph, codes: Sequence[tuple[str, str, int]], num_constants: int) -> int:
        builder = self._builder
        tensor_offsets: list[int] = []
        for tensor in contents.tensors:
            num_constants += tensor.data is not None
            tensor_offsets.append(self._tensor(tensor, 0 if tensor.data is None else num_constants))
        tensor_vector = self._offsets(tensor_offsets)
        operator_vector = self._offsets([self._operator(op, codes) for op in contents.operators])
        input_vector = self._int32_vector(contents.inputs)
        output_vector = self._int32_vector(contents.outputs)
        text = builder.CreateString(contents.subgraph_name)
        _schema.SubGraphStart(builder)
        _schema.SubGraphAddTensors(builder, tensor_vector)
        _schema.SubGraphAddInputs(builder, input_vector)
        _schema.SubGraphAddOutputs(builder, output_vector)
        _schema.SubGraphAddOperators(builder, operator_vector)
        _schema.SubGraphAddName(builder, text)
        return _schema.SubGraphEnd(builder)

    def _tensor(self, tensor: _Tensor, buffer_index: int) -> int:
        builder = self._builder
        name = builder.CreateString(tensor.name)
        shape = self._int32_vector(tensor.shape)
        signature = None if tensor.shape_signature is None else self._int32_vector(tensor.shape_signature)
        quantization = self._quantization(tensor) if tensor.scales or tensor.blocks else None
        _schema.TensorStart(builder)
        _schema.TensorAddShape(builder, shape)
        _schema.TensorAddType(builder, getattr(_schema.TensorType, _DTYPES[tensor.dtype]))
        _schema.TensorAddBuffer(builder, buffer_index)
        _schema.TensorAddName(builder, name)
        if quantization is not None:
            _schema.TensorAddQuantization(builder, quantization)
        if signature is not None:
            _schema.TensorAddShapeSignature(builder, signature)
        if tensor.is_variable:
            _schema.TensorAddIsVariable(builder, True)
        return _schema.TensorEnd(builder)

    def _quantization(self, tensor: _Tensor) -> int:
        builder = self._builder
        scales = builder.CreateNumpyVector(np.asarray(tensor.scales, dtype=np.float32))
        zero_points = builder.CreateNumpyVector(np.asarray(tensor.zero_points, dtype=np.int64))
        details = None
        if tensor.blocks is not None:
            # The table BlockwiseQuantization, which is younger than the package of the schema.
            builder.StartObject(3)
            scale, size, zero_point = (*tensor.blocks, OPTIONAL)[:3]
            for slot, number in enumerate((scale, zero_point, size)):
                builder.PrependInt32Slot(slot, number, 0)
            details = builder.EndObject()
        _schema.QuantizationParametersStart(builder)
        if details is not None:
            _schema.QuantizationParametersAddDetailsType(builder, _BLOCKWISE)
            _schema.QuantizationParametersAddDetails(builder, details)
        _schema.QuantizationParametersAddScale(builder, scales)
        _schema.QuantizationParametersAddZeroPoint(builder, zero_points)
        _schema.QuantizationParametersAddQuantizedDimension(builder, tensor.quantized_dimension)
        return _schema.QuantizationParametersEnd(builder)

    def _operator(self, op: _Operator, codes: Sequence[tuple[str, str, int]]) -> int:
        builder = self._builder
        table = _FORMS[op.name].options_table if op.name in _FORMS else ""
        custom = op.structure or (_flexbuffer(op.options) if op.custom_code and op.options else None)
        custom_options = builder.CreateByteVector(custom) if custom else None
        options = self._options(table, op.options) if table else None
        inputs = self._int32_vector(op.inputs)
        outputs = self._int32_vector(op.outputs)
        intermediates = self._int32_vector(op.intermediates) if op.intermediates else None
        _schema.OperatorStart(builder)
        _schema.OperatorAddOpcodeIndex(builder, codes.index((op.name, op.custom_code, op.version)))
        _schema.OperatorAddInputs(builder, inputs)
        _schema.OperatorAddOutputs(builder, outputs)
        if intermediates is not None:
            _schema.OperatorAddIntermediates(builder, intermediates)
        if options is not None and hasattr(_schema.BuiltinOptions, table):
            _schema.OperatorAddBuiltinOptionsType(builder, getattr(_schema.BuiltinOptions, table))
            _schema.OperatorAddBuiltinOptions(builder, options)
        elif options is not None:
            number = getattr(_schema.BuiltinOptions2, table, _CASE_OPTIONS_NUMBER)
            _schema.OperatorAddBuiltinOptions2Type(builder, number)
            _schema.OperatorAddBuiltinOptions2(builder, options)
        if custom_options is not None:
            _schema.OperatorAddCustomOptions(builder, custom_options)
        return _schema.OperatorEnd(builder)

    def _options(self, table: str, options: Mapping[str, Option]) -> int:
        builder = self._builder
        if table == _FORMS[_CASE].options_table:
            (branches,) = options.values()
            vector = self._int32_vector(cast("Sequence[int]", branches))
            builder.StartObject(1)
            builder.PrependUOffsetTRelativeSlot(0, vector, 0)
            return builder.EndObject()
        values: dict[str, Any] = {}
        for key, value in options.items():
            if isinstance(value, str) and key not in _ENUMERATIONS:
                values[key] = builder.CreateString(value)
            elif isinstance(value, str):
                values[key] = getattr(getattr(_schema, _ENUMERATIONS[key]), value)
            elif isinstance(value, bytes):
                values[key] = builder.CreateByteVector(value)
            elif isinstance(value, Sequence):
                integers = np.int64 if table.startswith("Stablehlo") else np.int32
                are_real = any(isinstance(number, float) for number in value)
                values[key] = builder.CreateNumpyVector(
                    np.asarray(value, np.float32 if are_real else integers)
                )
            else:
                values[key] = value
        getattr(_schema, f"{table}Start")(builder)
        for key, value in values.items():
            field = "".join(part.capitalize() for part in key.split("_"))
            getattr(_schema, f"{table}Add{field}")(builder, value)
        return getattr(_schema, f"{table}End")(builder)

    def _operator_code(self, name: str, custom_code: str, version: int) -> int:
        builder = self._builder
        code = YOUNGER_OPERATORS.get(name) or getattr(_schema.BuiltinOperator, name)
        text = builder.CreateString(custom_code) if custom_code else None
        _schema.OperatorCodeStart(builder)
        _schema.OperatorCodeAddDeprecatedBuiltinCode(builder, min(code, 127))
        if text is not None:
            _schema.OperatorCodeAddCustomCode(builder, text)
        _schema.OperatorCodeAddVersion(builder, version)
        _schema.OperatorCodeAddBuiltinCode(builder, code)
        return _schema.OperatorCodeEnd(builder)

    def _buffer(self, content: bytes) -> int:
        builder = self._builder
        data = None
        if content:
            # Interpreters read constants in place, so they stand at multiples of 16.
            builder.StartVector(1, len(content), 16)
            builder.head -= len(content)
            start = builder.Head()
            builder.Bytes[start : start + len(content)] = content
            data = builder.EndVector()
        _schema.BufferStart(builder)
        if data is not None:
            _schema.BufferAddData(builder, data)
        return _schema.BufferEnd(builder)

    def _int32_vector(self, values: Sequence[int]) -> int:
        return self._builder.CreateNumpyVector(np.asarray(values, dtype=np.int32))

    def _offsets(self, offsets: Sequence[int]) -> int:
        builder = self._builder
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
