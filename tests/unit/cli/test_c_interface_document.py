"""docs/c-interface.md has every name that a generated header declares; its programs run at level `board`."""

import re
from pathlib import Path

import pytest

import bytewright
from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.graph.open.rules import RULES
from bytewright.ops import sizes
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.dynamic_quantization import OPERATIONS as DYNAMIC_QUANTIZATION
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.lstm import TflHybridLstm, TflLstm, TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, GatherNd, TopKPlaces, UpdateSlice
from bytewright.ops.pooling import (
    MaxPool2d,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProduct,
    ReduceSum,
    TflAveragePool2d,
    TflIntegerMean,
    TflMean,
    TflQuantizedProduct,
    WrappingReduceSum,
)
from bytewright.ops.registry import ELEMENTWISE
from bytewright.ops.rescale import TflFloatRescale
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.options import Options
from support.digits_bundle import DIGITS
from support.loaded_parameters import COMBINATIONS, Loader, Provider, board_target

DOCUMENT = (Path(__file__).parents[3] / "docs" / "c-interface.md").read_text(encoding="utf-8")
# What stands for what in the document.
NAMES = {
    "DTCM": "<POOL>",
    "FLASH": "<POOL>",
    "dtcm": "<pool>",
    "flash": "<pool>",
    **dict.fromkeys(("FAST", "MIDDLE", "ISRAM"), "<POOL>"),
    **dict.fromkeys(("fast", "middle", "isram"), "<pool>"),
    "IMAGE": "<INPUT>",
    "PROBABILITIES": "<OUTPUT>",
    "image": "<input>",
    "probabilities": "<output>",
}


def declared(header: str) -> set[str]:
    """Names of macros, enumerators, types, functions and arrays, as the document writes them."""
    names = set(
        re.findall(r"\b(?:DIGITS|digits)_\w+", re.sub(r"/\*.*?\*/|\".*?\"", "", header, flags=re.DOTALL))
    )
    general = {re.sub(r"^DIGITS", "<M>", re.sub(r"^digits", "<m>", name)) for name in names}
    general = {re.sub(r"^<M>_[A-Z0-9_]+?_BASE$", "<M>_<MEMORY>_BASE", text) for text in general}
    general = {re.sub(r"^<M>_[A-Z0-9_]+?_ALIAS_\d+$", "<M>_<MEMORY>_ALIAS_<N>", text) for text in general}
    for name, stands_for in NAMES.items():
        general = {re.sub(rf"(?<=_){name}(?=_|$)", stands_for, text) for text in general}
    return general - {"<M>_H"}


@pytest.mark.parametrize("io", ["caller", "workspace"])
@pytest.mark.parametrize("provider", ["caller", "generated"])
def test_every_name_of_the_header_is_documented(io: str, provider: str) -> None:
    pools = [f"dtcm={provider}", f"flash={provider}"]
    options = {"workspace": ["dtcm"], "provider": pools, "target": "mps3-an547", "io": io}
    model = bytewright.compile(DIGITS, **options)  # type: ignore[arg-type]
    names = declared(model.files["include/digits.h"].decode())
    assert "<M>_<POOL>_WORKSPACE_SIZE" in names
    assert ("<m>_set_parameters" in names) == (provider == "caller")
    is_compared = (provider, io) != ("generated", "workspace")  # else no address is the application's
    assert ({"<M>_<MEMORY>_BASE", "<M>_<MEMORY>_ALIAS_<N>"} <= names) == is_compared
    missing = sorted(name for name in names if not re.search(rf"{re.escape(name)}(?!\w)", DOCUMENT))
    assert missing == []


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_every_name_of_parameters_that_are_loaded_is_documented(load: Loader, provider: Provider) -> None:
    files = compile_model(DIGITS, board_target(load, provider), Options(name="digits")).files
    names = declared(files["include/digits.h"].decode())
    assert ("<m>_set_parameters" in names) == ((load, provider) != ("linker", "generated"))
    assert ("<m>_<pool>_parameters_load" in names) == ((load, provider) == ("copy", "generated"))
    assert ("<m>_copy" in names) == ((load, provider) == ("copy", "caller"))
    missing = sorted(name for name in names if not re.search(rf"{re.escape(name)}(?!\w)", DOCUMENT))
    assert missing == []


def test_errors_have_the_values_that_the_document_gives() -> None:
    values: dict[str, str] = {}
    for io in ("caller", "rows"):
        header = bytewright.compile(DIGITS, io=io).files["include/digits.h"].decode()
        values |= dict(re.findall(r"DIGITS_(OK|ERROR_\w+) = (-?\d+)", header))
    assert dict(re.findall(r"\| `<M>_(OK|ERROR_\w+)` \| (-?\d+) \|", DOCUMENT)) == values


# What operators of the table, besides element-wise ones, are in the graph. Others are made of the same.
OPEN_OPERATORS: dict[str, tuple[type[ir.Operation], ...]] = {
    "CONV_2D": (Conv2d, GroupedConv2d),
    "DEPTHWISE_CONV_2D": (DepthwiseConv2d,),
    "MAX_POOL_2D": (MaxPool2d,),
    "AVERAGE_POOL_2D": (TflAveragePool2d,),
    "FULLY_CONNECTED": (Reshape, Conv2d, *DYNAMIC_QUANTIZATION),
    "BATCH_MATMUL": (TflBatchMatMul,),
    **dict.fromkeys(("PAD", "PADV2"), (Pad,)),
    "MIRROR_PAD": (Slice, Concat),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), (Reshape,)),
    "CONCATENATION": (Concat,),
    "TRANSPOSE": (Transpose,),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "REVERSE_V2"), (Slice,)),
    **dict.fromkeys(
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"),
        (TflLstm, TflHybridLstm, TflQuantizedLstm),
    ),
    "WHILE": (Loop,),
    "IF": (CondIf,),
    "SHAPE": (),
    "TRANSPOSE_CONV": (TransposeConv2d,),
    "GATHER_ND": (GatherNd,),
    "DYNAMIC_UPDATE_SLICE": (UpdateSlice,),
    "MEAN": (TflMean, TflIntegerMean),
    "SUM": (ReduceSum, WrappingReduceSum, TflFloatRescale),
    "REDUCE_MAX": (ReduceMax,),
    "REDUCE_MIN": (ReduceMin,),
    "REDUCE_ALL": (ReduceAll,),
    "REDUCE_ANY": (ReduceAny,),
    "REDUCE_PROD": (ReduceProduct, TflQuantizedProduct),
    "SOFTMAX": (TflSoftmax, TflSoftmax16),
    "LOG_SOFTMAX": (TflLogSoftmax,),
    "ARG_MAX": (ArgMax,),
    "ARG_MIN": (ArgMin,),
    "TOPK_V2": (TopKPlaces,),
    "CUMSUM": (CumulativeSum,),
    "L2_NORMALIZATION": (TflL2Normalization,),
    "GATHER": (Gather,),
    "TILE": (Tile,),
    "RESIZE_NEAREST_NEIGHBOR": (TflResizeNearest,),
    "RESIZE_BILINEAR": (TflResizeBilinear,),
}
ON_EACH_ELEMENT = {*ELEMENTWISE, Interpolate, TflInverseRoot, TflSigmoid16, Identity}


def test_the_table_of_operators_along_an_open_axis_is_that_of_the_rules() -> None:
    table = DOCUMENT.partition("| operators | along the open axis | otherwise |\n|---|---|---|\n")[2]
    first, *rows = table.partition("\n\n")[0].splitlines()
    assert first.startswith("| element-wise ones, ")
    listed = {name for row in rows for name in re.findall(r"\b[A-Z][A-Z_0-9]+\b", row.split("|")[1])}
    assert listed == set(OPEN_OPERATORS)
    taken = {operation for operations in OPEN_OPERATORS.values() for operation in operations}
    # What finds a size out has a rule for that (`test_sizes_of_data.py`).
    assert set(RULES) - {*sizes.OPERATIONS} == ON_EACH_ELEMENT | taken
