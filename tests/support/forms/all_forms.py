"""Every form of an operator once: models of one operator by element type, rank, padding, broadcasting and quantisation.

`all_forms()` is a fixed list, not a drawing: what compiles of it is a number that documents state. Which reference runs
which form is in tests/data/operator_forms.json, measured by `support.forms.measure`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from support.forms import elements, moves, numbered, rows, windows
from support.forms.sketch import ALL, BOOL, F32, I8, I16, I32, I64, NUMBERS, U8, Form

WITNESSES = Path(__file__).resolve().parents[2] / "data" / "operator_forms.json"
Maker = Callable[[str, str], Iterator[Form]]

_MAKERS: Mapping[str, tuple[Maker, Sequence[str]]] = {
    "ABS": (elements.unary, (F32, I8, I16, I32)),
    **dict.fromkeys(("RELU", "RELU6"), (elements.unary, (F32, I8, I16))),
    **dict.fromkeys(("LEAKY_RELU", "LOGISTIC", "TANH"), (elements.unary, (F32, I8, I16))),
    **dict.fromkeys(("COS", "SIN", "CEIL", "FLOOR", "ROUND", "SQUARE"), (elements.unary, (F32,))),
    **dict.fromkeys(
        ("ELU", "GELU", "HARD_SWISH", "RELU_0_TO_1", "RELU_N1_TO_1"), (elements.unary, (F32, I8))
    ),
    **dict.fromkeys(("EXP", "LOG", "RSQRT", "SQRT"), (elements.unary, (F32, I8, I16))),
    "NEG": (elements.unary, (F32, I8, I16, I32, I64)),
    "SIGN": (elements.unary, (F32, I32)),
    **dict.fromkeys(("ADD", "SUB", "MUL"), (elements.binary, (*NUMBERS,))),
    "DIV": (elements.binary, (F32, I8, I32)),
    **dict.fromkeys(("FLOOR_DIV", "FLOOR_MOD"), (elements.binary, (F32, I8, I16, I32, I64))),
    "POW": (elements.binary, (F32, I32)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), (elements.binary, NUMBERS)),
    "SQUARED_DIFFERENCE": (elements.binary, (F32, I8, I32)),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), (elements.binary, NUMBERS)),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), (elements.binary, ALL)),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), (elements.binary, (BOOL,))),
    "LOGICAL_NOT": (elements.unary, (BOOL,)),
    "ADD_N": (elements.add_n, (F32, I8, I32)),
    "PRELU": (elements.prelu, (F32, I8, I16)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (elements.select, ALL)),
    "CAST": (elements.cast, (*ALL, U8)),
    "QUANTIZE": (elements.quantize, (F32, I8, I16, U8, I32)),
    "DEQUANTIZE": (elements.dequantize, (I8, I16, U8)),
    "CONV_2D": (windows.convolution_and_groups, (F32, I8, I16)),
    "DEPTHWISE_CONV_2D": (windows.convolution, (F32, I8, I16)),
    "CONV_3D": (windows.conv3d, (F32,)),
    "CONV_3D_TRANSPOSE": (windows.conv3d_transpose, (F32,)),
    **dict.fromkeys(("DILATE", "STABLEHLO_PAD"), (moves.spread, ALL)),
    "TRANSPOSE_CONV": (windows.transposed, (F32, I8, I16)),
    "FULLY_CONNECTED": (windows.fully_connected, (F32, I8, I16)),
    "BATCH_MATMUL": (windows.matmul, (F32, I8, I16)),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), (windows.pool, (F32, I8, I16))),
    "L2_POOL_2D": (windows.pool, (F32,)),
    "RESIZE_BILINEAR": (windows.resize, (F32, I8, I16)),
    "RESIZE_NEAREST_NEIGHBOR": (windows.resize, (F32, I8, I16, I32, BOOL)),
    **dict.fromkeys(("MEAN", "SUM"), (rows.reduction, (F32, I8, I16, I32, I64))),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), (rows.reduction, ALL)),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY"), (rows.reduction, (BOOL,))),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), (rows.arg, (F32, I8, U8, I32, BOOL))),
    "SOFTMAX": (rows.softmax, (F32, I8, I16)),
    "LOG_SOFTMAX": (rows.softmax, (F32, I8)),
    "L2_NORMALIZATION": (rows.norm, (F32, I8)),
    **dict.fromkeys(("COMPLEX_ABS", "IMAG", "REAL"), (rows.spectrum, (F32,))),
    "CUMSUM": (rows.cumsum, (F32, I8, I32, I64)),
    "TOPK_V2": (rows.topk, (F32, I8, I16, I32, I64)),
    **dict.fromkeys(moves.MOVES, (moves.move, ALL)),
    **dict.fromkeys(("CONCATENATION", "PACK"), (moves.several, ALL)),
    "PADV2": (moves.padv2, ALL),
    "GATHER": (moves.gather, ALL),
    "GATHER_ND": (moves.gather_nd, ALL),
    "SCATTER_ND": (moves.scatter_nd, (F32, I8, I32, I64, BOOL)),
    "EMBEDDING_LOOKUP": (moves.embedding, ALL),
    "ONE_HOT": (moves.one_hot, (F32, I8, I32, I64, BOOL)),
    "FILL": (moves.fill, ALL),
    "ZEROS_LIKE": (moves.zeros_like, (F32, I8, I32, I64)),
    "DYNAMIC_UPDATE_SLICE": (moves.dynamic_update, ALL),
    "SHAPE": (moves.shape_of, (F32, I8, I32)),
    "ATAN2": (elements.alike, (F32,)),
    "BUCKETIZE": (elements.bucketize, (F32, I32, I64)),
    "BITWISE_XOR": (elements.binary, (I8, I16, I32)),
    "RIGHT_SHIFT": (elements.shift, (I8, I16, I32)),
    **dict.fromkeys(
        ("STABLEHLO_ADD", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_MULTIPLY"),
        (elements.alike, (F32, I32, I64)),
    ),
    "STABLEHLO_AND": (elements.alike, (I8, I16, I32, I64, BOOL)),
    "STABLEHLO_SHIFT_LEFT": (elements.left_shift, (I8, I16, I32)),
    "STABLEHLO_GATHER": (numbered.gather, NUMBERS),
    "STABLEHLO_SCATTER": (numbered.scatter, ALL),
    **dict.fromkeys(("STABLEHLO_REDUCE_WINDOW", "REDUCE_WINDOW"), (numbered.reduce_window, ALL)),
    "FAKE_QUANT": (elements.fake_quant, (F32,)),
    "LOCAL_RESPONSE_NORMALIZATION": (windows.local_response, (F32,)),
    **dict.fromkeys(("MATRIX_DIAG", "MATRIX_SET_DIAG"), (moves.diagonal, NUMBERS)),
    "REVERSE_SEQUENCE": (moves.reverse_sequence, (F32, I16, I32, I64)),
    "SPARSE_TO_DENSE": (moves.sparse_to_dense, (F32, I8, I32, I64)),
    "SEGMENT_SUM": (moves.segment_sum, (F32, I32)),
    **dict.fromkeys(
        (f"UNSORTED_SEGMENT_{each}" for each in ("MAX", "MIN", "PROD", "SUM")),
        (moves.unsorted_segment, (F32, I32)),
    ),
}


def all_forms() -> tuple[Form, ...]:
    """Every form, whether a reference runs it or not, by operator and type."""
    made = (
        form
        for kind, (maker, dtypes) in sorted(_MAKERS.items())
        for dtype in dtypes
        for form in maker(kind, dtype)
    )
    return tuple(made)


@cache
def witnesses() -> Mapping[str, str]:
    """By a form's name, the references that run it: L for LiteRT, M for TensorFlow Lite Micro."""
    return json.loads(WITNESSES.read_text(encoding="utf-8"))
