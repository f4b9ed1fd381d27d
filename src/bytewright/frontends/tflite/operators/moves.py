"""Operators that move elements, and compute none."""

from collections.abc import Callable
from functools import partial
from typing import Any

from bytewright.frontends.tflite.batches import convert_batch_to_space, convert_space_to_batch
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.diagonals import convert_matrix_diag, convert_matrix_set_diag
from bytewright.frontends.tflite.kernels_of import Absent
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
from bytewright.frontends.tflite.numbered_windows import convert_stablehlo_gather, convert_stablehlo_scatter
from bytewright.frontends.tflite.operators.row import (
    ACTIVATIONS,
    ALSO_INT16_MOVED,
    BUT_INT16,
    FEW_MOVED,
    INDEX_TYPES,
    INT4,
    MOVED,
    NO_INT64_IN_TFLM,
    NUMBERS,
    TfliteOperator,
)
from bytewright.frontends.tflite.places import (
    convert_fill,
    convert_gather_nd,
    convert_one_hot,
    convert_range,
    convert_unique,
    convert_update_slice,
    convert_where,
)
from bytewright.frontends.tflite.segments import (
    convert_reverse_sequence,
    convert_scatter_nd,
    convert_segment_sum,
    convert_sparse_to_dense,
    convert_unsorted_segment,
)
from bytewright.frontends.tflite.shape import (
    convert_concatenation,
    convert_expand_dims,
    convert_pad,
    convert_reshape,
    convert_split,
    convert_squeeze,
    convert_transpose,
)
from bytewright.frontends.tflite.slices import convert_slice
from bytewright.frontends.tflite.spread import convert_dilate, convert_stablehlo_pad
from bytewright.frontends.tflite.strided_slice import convert_strided_slice
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.places import ScatterMax, ScatterMin, ScatterNd, ScatterProduct

# What moves bytes there is for some types alone.
_MOVED_IN_TFLM: Absent = {Numerics.TFLM: ("int16", "int32", "int64", "bool")}
_ALSO_INT16_MOVED_IN_TFLM: Absent = {Numerics.TFLM: ("int32", "int64", "bool")}
_BUT_INT16_MOVED = (*BUT_INT16, "bool")
_RESHAPED = (*MOVED, "complex64")
_OF_LITERT_ALONE: Absent = {Numerics.TFLM: _BUT_INT16_MOVED}

_OF_SEGMENTS = ("float32", "int32")


def _in_litert_alone(
    convert: Callable[[Conversion], None],
    limits: str,
    types: tuple[str, ...],
    options: str = "",
    **others: Any,
) -> TfliteOperator:
    """The row of an operator that TensorFlow Lite Micro does not have."""
    absent = {Numerics.TFLM: types}
    return TfliteOperator(
        convert, options, f"{limits}; not with tflm", types=types, absent=absent, cost_ms=2.0, **others
    )


def _unsorted_segment(kind: type[ScatterMax | ScatterMin | ScatterNd | ScatterProduct]) -> TfliteOperator:
    """The row of a combination of parts by the numbers of their segments."""
    return _in_litert_alone(
        partial(convert_unsorted_segment, kind=kind),
        "a constant number of segments; what is of none of them is left out; int32 wraps",
        _OF_SEGMENTS,
        of_own_types=(1,),
    )


MOVES: dict[str, TfliteOperator] = {
    "BATCH_TO_SPACE_ND": TfliteOperator(
        convert_batch_to_space,
        limits=f"3 or 4 axes; constant block shape and crops; {FEW_MOVED}",
        cost_ms=1.5,
        types=MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "BROADCAST_TO": TfliteOperator(
        convert_broadcast_to,
        limits="tflm: constant shape",
        cost_ms=1.5,
        types=MOVED,
        unsigned_in_tflm=True,
    ),
    "CONCATENATION": TfliteOperator(
        convert_concatenation,
        "ConcatenationOptions",
        "operands quantised as the result is, but of uint8; no fused activation",
        cost_ms=1.5,
        types=MOVED,
    ),
    "DEPTH_TO_SPACE": TfliteOperator(
        convert_depth_to_space,
        "DepthToSpaceOptions",
        FEW_MOVED,
        cost_ms=1.5,
        types=BUT_INT16,
        absent=_MOVED_IN_TFLM,
    ),
    "DILATE": _in_litert_alone(convert_dilate, "constant dilations and padding value; raw values", MOVED),
    "DYNAMIC_UPDATE_SLICE": TfliteOperator(
        convert_update_slice,
        limits="a start from which the update leaves means the nearest; tflm: neither int64 nor bool",
        types=MOVED,
        indices=2,
        cost_ms=2.0,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "EMBEDDING_LOOKUP": TfliteOperator(
        convert_embedding_lookup,
        limits="rows of float32, int8 or int4, per tensor, per row or of int4 per block, zero point 0 (tflm: neither "
        "int4 nor per row); integers and bool also as raw values; indices int32, or constant; one that is outside "
        "means the nearest; "
        f"{FEW_MOVED}",
        types=MOVED,
        absent=_MOVED_IN_TFLM,
        indices=0,
        input_at=1,
        hybrid={Numerics.LITERT_REF: ("int8", "int4"), Numerics.TFLM: ("int8",)},
        narrow_weights=INT4,
        cost_ms=1.5,
    ),
    "EXPAND_DIMS": TfliteOperator(
        convert_expand_dims,
        limits=f"constant axis; {ALSO_INT16_MOVED}",
        types=_RESHAPED,
        absent=_ALSO_INT16_MOVED_IN_TFLM,
    ),
    "FILL": TfliteOperator(
        convert_fill,
        limits="tflm: int8, float32 and int32 alone, of a constant shape",
        types=MOVED,
        indices=0,
        input_at=1,
        cost_ms=1.5,
        absent={Numerics.TFLM: ("int16", "int64", "bool")},
    ),
    "GATHER": TfliteOperator(
        convert_gather,
        "GatherOptions",
        f"indices int32 or int64, or constant; one that is outside means the nearest; {FEW_MOVED}",
        types=MOVED,
        indices=1,
        cost_ms=1.5,
        absent=_MOVED_IN_TFLM,
    ),
    "GATHER_ND": TfliteOperator(
        convert_gather_nd,
        limits=f"indices int32 or int64; one that is outside means the nearest; {FEW_MOVED}",
        types=MOVED,
        indices=1,
        cost_ms=1.5,
        absent=_MOVED_IN_TFLM,
    ),
    "MATRIX_DIAG": _in_litert_alone(convert_matrix_diag, "raw values", NUMBERS),
    "MATRIX_SET_DIAG": _in_litert_alone(convert_matrix_set_diag, "raw values", NUMBERS),
    "MIRROR_PAD": TfliteOperator(
        convert_mirror_pad,
        "MirrorPadOptions",
        f"constant paddings around axes of at most 65,536; {FEW_MOVED}",
        cost_ms=3.0,
        types=MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "ONE_HOT": TfliteOperator(
        convert_one_hot,
        "OneHotOptions",
        "constant depth; indices int32 or int64; not with tflm",
        types=_BUT_INT16_MOVED,
        indices=0,
        input_at=2,
        cost_ms=1.0,
        absent=_OF_LITERT_ALONE,
    ),
    "PACK": TfliteOperator(
        convert_pack, "PackOptions", "operands quantised as the result is", cost_ms=1.5, types=NUMBERS
    ),
    "PAD": TfliteOperator(
        convert_pad,
        limits="constant paddings; tflm: neither int64 nor bool",
        cost_ms=1.5,
        types=MOVED,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "PADV2": TfliteOperator(
        convert_pad,
        limits="constant paddings and value; int8: value quantised as the result is; tflm: neither int64 nor bool",
        cost_ms=1.5,
        types=MOVED,
        absent={Numerics.TFLM: ("int64", "bool")},
    ),
    "RESHAPE": TfliteOperator(
        convert_reshape,
        "ReshapeOptions",
        "tflm: constant shape",
        types=_RESHAPED,
        unsigned_in_tflm=True,
    ),
    "REVERSE_SEQUENCE": _in_litert_alone(
        convert_reverse_sequence,
        "lengths int32 or int64; one beyond the steps means the nearest",
        ("float32", "int16", *INDEX_TYPES),
        "ReverseSequenceOptions",
        indices=1,
    ),
    "REVERSE_V2": TfliteOperator(
        convert_reverse, "ReverseV2Options", "constant axes", cost_ms=1.5, types=MOVED, unsigned_in_tflm=True
    ),
    "SCATTER_ND": TfliteOperator(
        convert_scatter_nd,
        "ScatterNdOptions",
        "constant shape; indices int32; one that is outside means the nearest; integers wrap; not with tflm",
        cost_ms=1.5,
        indices=0,
        input_at=1,
        absent=_OF_LITERT_ALONE,
        types=_BUT_INT16_MOVED,
    ),
    "SEGMENT_SUM": _in_litert_alone(
        convert_segment_sum,
        "segments that begin at 0 and leave none out; int32 wraps",
        _OF_SEGMENTS,
        of_own_types=(1,),
    ),
    "SLICE": TfliteOperator(
        convert_slice,
        limits="tflm: constant begin and size, and not int64",
        cost_ms=1.5,
        types=MOVED,
        absent=NO_INT64_IN_TFLM,
    ),
    "SPACE_TO_BATCH_ND": TfliteOperator(
        convert_space_to_batch,
        limits=f"3 or 4 axes; constant block shape and paddings; {FEW_MOVED}, without paddings",
        cost_ms=2.0,
        types=MOVED,
        absent=_MOVED_IN_TFLM,
    ),
    "SPACE_TO_DEPTH": TfliteOperator(
        convert_space_to_depth,
        "SpaceToDepthOptions",
        FEW_MOVED,
        cost_ms=1.5,
        types=BUT_INT16,
        absent=_MOVED_IN_TFLM,
    ),
    "SPARSE_TO_DENSE": _in_litert_alone(
        convert_sparse_to_dense,
        "constant shape, of at most 4 axes, and default value; indices int32 or int64; one that is outside means the "
        "nearest",
        BUT_INT16,
        indices=0,
        input_at=2,
    ),
    "SPLIT": TfliteOperator(
        convert_split,
        "SplitOptions",
        "constant axis; tflm: not int64",
        cost_ms=1.5,
        types=NUMBERS,
        absent=NO_INT64_IN_TFLM,
        input_at=1,
    ),
    "SPLIT_V": TfliteOperator(
        convert_split_v,
        "SplitVOptions",
        "constant sizes and axis; tflm: not int64",
        cost_ms=1.5,
        types=NUMBERS,
        absent=NO_INT64_IN_TFLM,
    ),
    "SQUEEZE": TfliteOperator(convert_squeeze, "SqueezeOptions", types=_RESHAPED, unsigned_in_tflm=True),
    "STABLEHLO_GATHER": _in_litert_alone(
        convert_stablehlo_gather,
        "indices int32 or int64; a window that leaves the tensor means the nearest; raw values",
        NUMBERS,
        "StablehloGatherOptions",
        indices=1,
    ),
    "STABLEHLO_PAD": _in_litert_alone(
        convert_stablehlo_pad, "constant padding value; raw values", MOVED, "StablehloPadOptions"
    ),
    "STABLEHLO_SCATTER": _in_litert_alone(
        convert_stablehlo_scatter,
        "indices int32 or int64; what is outside is left out; updates that replace, are added or multiplied, or of "
        "which the greatest or the least counts; integers wrap; raw values",
        MOVED,
        "StablehloScatterOptions",
        indices=1,
        signed_alone=True,
    ),
    "STRIDED_SLICE": TfliteOperator(
        convert_strided_slice,
        "StridedSliceOptions",
        "constant strides, of either sign; all masks; tflm: constant begin and end, and not int64",
        cost_ms=1.5,
        types=MOVED,
        absent=NO_INT64_IN_TFLM,
    ),
    "TILE": TfliteOperator(
        convert_tile,
        limits="not with tflm",
        cost_ms=1.5,
        types=MOVED,
        absent={Numerics.TFLM: MOVED},
    ),
    "TRANSPOSE": TfliteOperator(
        convert_transpose,
        limits=f"constant permutation; {ALSO_INT16_MOVED}",
        cost_ms=1.5,
        types=MOVED,
        absent=_ALSO_INT16_MOVED_IN_TFLM,
    ),
    "UNPACK": TfliteOperator(
        convert_unpack,
        "UnpackOptions",
        "results quantised as the operand is; tflm: not bool",
        cost_ms=1.5,
        types=(*ACTIVATIONS, "int32", "bool"),
        absent={Numerics.TFLM: ("bool",)},
    ),
    "RANGE": _in_litert_alone(
        convert_range,
        "to a limit that the run computes, in steps of 1 from a constant on; a constant limit, of any type and steps",
        INDEX_TYPES,
        of_own_types=(0, 1, 2),
    ),
    "UNIQUE": _in_litert_alone(
        convert_unique,
        "a list; the data decides how many values there are",
        BUT_INT16,
        "UniqueOptions",
        results=INDEX_TYPES,
        signed_alone=True,
    ),
    "WHERE": _in_litert_alone(
        convert_where,
        "one operand, a condition; the data decides how many rows there are",
        ("bool", "float32", "int32", "int64", "int8"),
        results=("int64",),
        signed_alone=True,
    ),
    "UNSORTED_SEGMENT_MAX": _unsorted_segment(ScatterMax),
    "UNSORTED_SEGMENT_MIN": _unsorted_segment(ScatterMin),
    "UNSORTED_SEGMENT_PROD": _unsorted_segment(ScatterProduct),
    "UNSORTED_SEGMENT_SUM": _unsorted_segment(ScatterNd),
}
