"""The shared models: the imported graph, evaluated, equals LiteRT's reference kernels and tflm's checksums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.frontends.tflite import import_tflite
from bytewright.ir.graph import Array
from bytewright.ir.module import Module
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.softmax import TflSoftmax
from support.evaluation import evaluate_function
from support.random_draft import FLOAT_TOLERANCE
from support.reference import LiteRt

MODELS = Path(__file__).resolve().parents[4] / "shared" / "models"
INT8 = ("kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8")
FLOAT = ("ad01_fp32", "pretrainedResnet", "vww_96_float")
# FNV-1a 32 of the output under tflm for a ramp and for zeros, from the numerics note.
CHECKSUMS = {
    "kws_ref_model": (119849144, 2287096408),
    "vww_96_int8": (2150813085, 2772717821),
    "pretrainedResnet_quant": (4165154186, 2220957671),
    "ad01_int8": (2194976754, 1441320309),
}


def model_path(stem: str) -> Path:
    path = MODELS / f"{stem}.tflite"
    if not path.exists():
        pytest.skip("the shared models are not beside the project")
    return path


def run(module: Module, array: Array) -> dict[str, Array]:
    return evaluate_function(module.graph, module.constants, (array,))


def logits(module: Module) -> tuple[str, int] | None:
    """Name of the tensor before the softmax, and the index of its producer in the file."""
    for node in module.graph.nodes:
        if isinstance(node.operation, TflSoftmax):
            return node.inputs[0], int(node.inputs[0].split("/")[0].rsplit("_", 1)[1])
    return None


@pytest.mark.parametrize("stem", INT8)
def test_int8_models_equal_litert_bit_for_bit(stem: str) -> None:
    path = model_path(stem)
    module = import_tflite(path)
    reference = LiteRt(path, keep_all_tensors=True)
    generator = np.random.default_rng(7)
    shape = module.inputs[0].type.fixed_shape
    before = logits(module)
    assert (before is None) == (stem == "ad01_int8")
    for _ in range(10):
        array = generator.integers(-128, 128, shape).astype(np.int8)
        values = run(module, array)
        (expected,) = reference.run(array)
        np.testing.assert_array_equal(values[module.graph.results[0]], expected)
        if before is not None:
            name, operator = before
            tensor = _output_tensor(path, operator)
            np.testing.assert_array_equal(values[name], reference.tensor(tensor))


def _output_tensor(path: Path, operator: int) -> int:
    import tflite

    subgraph = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0)
    return int(subgraph.Operators(operator).Outputs(0))


@pytest.mark.parametrize("stem", FLOAT)
def test_float_models_agree_with_litert(stem: str) -> None:
    path = model_path(stem)
    module = import_tflite(path)
    reference = LiteRt(path, keep_all_tensors=True)
    generator = np.random.default_rng(8)
    before = logits(module)
    for _ in range(3):
        array = generator.normal(size=module.inputs[0].type.fixed_shape).astype(np.float32)
        values = run(module, array)
        pairs = [(values[module.graph.results[0]], reference.run(array)[0])]
        if before is not None:
            pairs.append((values[before[0]], reference.tensor(_output_tensor(path, before[1]))))
        for found, expected in pairs:
            assert float(np.abs(found - expected).max()) <= FLOAT_TOLERANCE * float(np.abs(expected).max())


def fnv1a(content: bytes) -> int:
    value = 0x811C9DC5
    for byte in content:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


@pytest.mark.parametrize("stem", INT8)
def test_tflm_numerics_give_the_known_checksums(stem: str) -> None:
    module = import_tflite(model_path(stem), numerics=Numerics.TFLM)
    shape = module.inputs[0].type.fixed_shape
    index = np.arange(int(np.prod(shape)))
    ramp = (((index * 37 + 11 * (index >> 5)) & 255) - 128).astype(np.int8).reshape(shape)
    found = tuple(
        fnv1a(run(module, array)[module.graph.results[0]].tobytes())
        for array in (ramp, np.zeros(shape, dtype=np.int8))
    )
    assert found == CHECKSUMS[stem]


def test_the_two_numerics_sets_differ_on_ad01() -> None:
    path = model_path("ad01_int8")
    array = np.random.default_rng(3).integers(-128, 128, (1, 640)).astype(np.int8)
    outputs = [
        run(module, array)[module.graph.results[0]]
        for module in (import_tflite(path, numerics=numerics) for numerics in Numerics)
    ]
    assert not np.array_equal(*outputs)


@pytest.mark.parametrize("stem", INT8 + FLOAT)
def test_modules_are_well_formed(stem: str) -> None:
    module = import_tflite(model_path(stem))
    assert module == import_tflite(model_path(stem))
    assert module.name == stem
    assert [port.name for port in module.inputs] == [value.name for value in module.graph.parameters]
    names = [value.name for value in module.graph.parameters] + [c.name for c in module.constants]
    names += [value.name for node in module.graph.nodes for value in node.outputs]
    assert len(names) == len(set(names))
    defined = {value.name for value in module.graph.parameters} | {c.name for c in module.constants}
    for node in module.graph.nodes:
        assert defined.issuperset(node.inputs)
        defined.update(value.name for value in node.outputs)
        assert node.where.model == f"{stem}.tflite"
        assert node.where.operator is not None
    assert module.inputs[0].type.shape[0] == 1


def test_kws_has_the_names_that_users_see() -> None:
    module = import_tflite(model_path("kws_ref_model"), name="kws")
    assert module.name == "kws"
    assert (module.inputs[0].name, module.outputs[0].name) == ("input_1", "identity")
    quantization = module.inputs[0].quantization
    assert quantization is not None
    assert quantization.zero_point == 83
    assert "conv2d_0/out" in {value.name for node in module.graph.nodes for value in node.outputs}
    assert {"conv2d_0/weights", "conv2d_0/bias"} <= {constant.name for constant in module.constants}
