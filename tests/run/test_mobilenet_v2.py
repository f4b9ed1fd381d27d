"""MobileNetV2 of the project's own writing: it is the published network, its values are alive, and C computes them.

The reference is LiteRT. Bytes are compared behind the last layer and before its softmax.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tflite

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target.registry import load_target
from mobilenet_v2 import divisible_by_8, mobilenet_v2, random_image
from support.reference import LiteRt
from support.shared_models import without_softmax
from support.tiers import THOROUGH

SMALL, LARGE = ("0.35", 144), ("1.0", 224)
# Of the files: numpy's generator and integer sums are the same on every machine.
DIGESTS = {SMALL: "d153f53ea26043da", LARGE: "0ec5d73f50381b0a"}
_WEIGHTED = (
    tflite.BuiltinOperator.CONV_2D,
    tflite.BuiltinOperator.DEPTHWISE_CONV_2D,
    tflite.BuiltinOperator.FULLY_CONNECTED,
)
IMAGE_SEEDS = (1, 2)


@cache
def content(width: str, size: int) -> bytes:
    return mobilenet_v2(width, size)


@pytest.mark.parametrize(("width", "size"), [SMALL, LARGE])
def test_the_same_bytes_everywhere(width: str, size: int) -> None:
    assert hashlib.sha256(content(width, size)).hexdigest()[:16] == DIGESTS[width, size]
    assert mobilenet_v2(width, size, seed=1) != content(width, size)


def test_widths_follow_the_published_rule() -> None:
    widths = (32, 16, 24, 32, 64, 96, 160, 320)
    assert [divisible_by_8(Fraction(n * 35, 100)) for n in widths] == [16, 8, 8, 16, 24, 32, 56, 112]
    assert [divisible_by_8(n) for n in widths] == list(widths)


def test_it_is_the_published_network() -> None:
    """Parameters with two of each batch normalisation, which folding makes one; multiply-accumulates as published."""
    num_parameters, num_normalised, operations = count(content(*LARGE))
    assert num_parameters + num_normalised == 3_504_872
    assert operations == 300_774_272
    num_parameters, num_normalised, operations = count(mobilenet_v2("0.35", 224))
    assert round((num_parameters + num_normalised) / 1e6, 2) == 1.68
    assert round(operations / 1e6) == 59


def count(content: bytes) -> tuple[int, int, int]:
    """Weights and biases, channels that convolutions make, and multiply-accumulates."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    num_parameters = num_normalised = operations = 0
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        kind = model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode()
        if kind not in _WEIGHTED:
            continue
        weights = graph.Tensors(operator.Inputs(1)).ShapeAsNumpy()
        result = graph.Tensors(operator.Outputs(0)).ShapeAsNumpy()
        num_parameters += int(np.prod(weights)) + int(result[-1])
        operations += int(np.prod(result)) * int(np.prod(weights)) // int(result[-1])
        num_normalised += int(result[-1]) if kind != tflite.BuiltinOperator.FULLY_CONNECTED else 0
    return num_parameters, num_normalised, operations


@pytest.mark.parametrize(("width", "size"), [SMALL, LARGE])
def test_every_tensor_uses_its_range(width: str, size: int) -> None:
    """On an image that the scales were not chosen for: values neither saturate nor vanish, to the last layer."""
    model = content(width, size)
    reference = LiteRt(model, keep_all_tensors=True)
    reference.run(random_image(size, IMAGE_SEEDS[0]))
    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    num_seen = 0
    for number in range(graph.OperatorsLength() - 1):  # without the softmax
        index = graph.Operators(number).Outputs(0)
        name = graph.Tensors(index).Name().decode()
        values = reference.tensor(int(index))
        num_seen += 1
        assert len(np.unique(values)) >= 150, name
        assert values.std() >= 20, name
        assert (values == 127).mean() <= 0.05, name
        assert (values == -128).mean() <= 0.33, name  # what ReLU6 makes zero
    assert num_seen == 35 + 17 + 10 + 2  # convolutions, depthwise, additions, mean and logits


@pytest.mark.slow
@pytest.mark.parametrize(("is_logits", "io"), [(False, Io.WORKSPACE), (True, Io.CALLER)])
@pytest.mark.parametrize(
    ("width", "size"),
    [
        SMALL,
        pytest.param(
            *LARGE, marks=pytest.mark.skipif(not THOROUGH, reason="only thorough runs take this long")
        ),
    ],
)
def test_c_computes_what_litert_does(width: str, size: int, is_logits: bool, io: Io, tmp_path: Path) -> None:
    """Under sanitizers. The softmax of a thousand classes is nearly all zeros: so what it is given is compared too."""
    model = without_softmax(content(width, size)) if is_logits else content(width, size)
    path = tmp_path / "mobilenet.tflite"
    path.write_bytes(model)
    folder = tmp_path / "bundle"
    write_bundle(compile_model(path, load_target("host"), Options(io=io)).files, folder)
    check_bundle(folder)
    batch = [[random_image(size, seed)] for seed in IMAGE_SEEDS]
    found = run_batch(folder, batch, options=BuildOptions(flags=("-O0",), sanitize=True)).outputs
    reference = LiteRt(model)
    for inputs, outputs in zip(batch, found, strict=True):
        wanted = np.array(reference.run(*inputs)[0])
        assert wanted.max() > wanted.min()
        np.testing.assert_array_equal(outputs[0], wanted, strict=True)
