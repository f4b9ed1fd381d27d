"""Windows of dilations and strides that are as large as the references take: exact and defined, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.target.registry import load_target
from support.reference import LiteRt
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)
LARGEST = 2**15 - 1
Pair = tuple[int, int]


def convolution(kind: str, dtype: str, kernel: Pair, stride: Pair, dilation: Pair) -> bytes:
    """A convolution of a 5x4 image with SAME padding."""
    builder = ModelBuilder()
    integer = dtype == "int8"
    image = {"scale": 0.5, "zero_point": 3} if integer else {}
    rows, columns = (-(-extent // step) for extent, step in zip((5, 4), stride, strict=True))
    x = builder.tensor("x", [1, 5, 4, 2], dtype, **image)
    y = builder.tensor("y", [1, rows, columns, 2], dtype, **image)
    shape = (2, *kernel, 2) if kind == "CONV_2D" else (1, *kernel, 2)
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(np.int8 if integer else np.float32)
    w = builder.constant("w", values, **({"scale": 0.5} if integer else {}))
    bias = np.array([1, -2], np.int32 if integer else np.float32)
    b = builder.constant("b", bias, **({"scale": 0.25} if integer else {}))
    options = {"stride_h": stride[0], "stride_w": stride[1], "padding": "SAME"}
    dilations = {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    builder.operator(kind, [x, w, b], [y], **options, **dilations)
    return builder.build([x], [y])


def outcome(content: bytes, folder: Path, target: str = "host") -> str:
    """Runs with the sanitizers and compares with LiteRT, unless it is refused: the code then."""
    (folder / "model.tflite").write_bytes(content)
    try:
        compiled = compile_model(folder / "model.tflite", load_target(target))
    except CompileError as error:
        return error.diagnostics[0].code
    write_bundle(compiled.files, folder / "bundle")
    shape, dtype = LiteRt(content).inputs[0]["shape"], LiteRt(content).inputs[0]["dtype"]
    x = (np.arange(int(np.prod(shape))) * 37 % 61 - 30).reshape(shape).astype(dtype)
    (ours,) = run_bundle(folder / "bundle", [x], options=SANITIZED).outputs
    np.testing.assert_array_equal(ours, LiteRt(content).run(x)[0])
    return "exact"


@pytest.mark.parametrize(
    ("kernel", "dilation", "expected"),
    [
        ((2, 1), (LARGEST, LARGEST), "exact"),
        ((3, 3), (LARGEST, 2), "exact"),
        ((2, 2), (LARGEST + 1, 1), "BW107"),
        ((1, 3), (1, 2**30), "BW107"),
        ((5, 5), (2**31 - 1, 2**31 - 1), "BW107"),
    ],
)
def test_dilations(kernel: Pair, dilation: Pair, expected: str, tmp_path: Path) -> None:
    cases = [("CONV_2D", "int8", "host"), ("DEPTHWISE_CONV_2D", "float32", "mps3-an547")]
    if THOROUGH:
        cases = [
            (kind, dtype, target)
            for kind in ("CONV_2D", "DEPTHWISE_CONV_2D")
            for dtype in ("int8", "float32")
            for target in ("host", "mps3-an547")
        ]
    for kind, dtype, target in cases:
        folder = tmp_path / f"{kind}{dtype}{target}"
        folder.mkdir()
        assert outcome(convolution(kind, dtype, kernel, (1, 1), dilation), folder, target) == expected


@pytest.mark.parametrize(
    ("stride", "expected"), [((LARGEST, 1), "exact"), ((3, LARGEST), "exact"), ((1, 2**31 - 1), "BW107")]
)
def test_strides(stride: Pair, expected: str, tmp_path: Path) -> None:
    assert outcome(convolution("CONV_2D", "int8", (2, 3), stride, (1, 1)), tmp_path) == expected


def test_a_window_that_32_bits_cannot_address(tmp_path: Path) -> None:
    assert outcome(convolution("CONV_2D", "int8", (1, 65540), (1, 1), (1, LARGEST)), tmp_path) == "BW107"
