"""The MLPerf Tiny models beside the project: files, variants, inputs, and bundles that are compiled once a process.

Random inputs saturate a softmax, so what stands before it is compared too: `without_softmax` makes the model that
ends there.
"""

from __future__ import annotations

import struct
import tempfile
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
import tflite
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides, parse_provider_option
from bytewright.target.registry import load_target

Array = NDArray[Any]

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
KWS, VWW, RESNET8, AD01 = "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8"
INT8 = (KWS, VWW, RESNET8, AD01)
FLOAT = ("vww_96_float", "pretrainedResnet", "ad01_fp32")
WITH_SOFTMAX = (KWS, VWW, RESNET8, "vww_96_float", "pretrainedResnet")
HOST, BOARD = "host", "mps3-an547"

_OUTPUTS_FIELD, _OPERATORS_FIELD = 8, 10  # of a SubGraph in TFLite's schema
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def model_path(name: str) -> Path:
    """A model's file; the test is skipped where it is missing."""
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"the data that is not part of the project is missing: ../shared/models/{path.name}")
    return path


def without_softmax(content: bytes) -> bytes:
    """The model whose output is the input of its last operator, a SOFTMAX, which goes."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    last = graph.Operators(graph.OperatorsLength() - 1)
    code = model.OperatorCodes(last.OpcodeIndex())
    kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    assert kind == tflite.BuiltinOperator.SOFTMAX
    assert graph.OutputsLength() == 1
    assert last.Outputs(0) == graph.Outputs(0)
    table = graph._tab
    edited = bytearray(content)
    struct.pack_into("<i", edited, table.Vector(table.Offset(_OUTPUTS_FIELD)), last.Inputs(0))
    length = table.Vector(table.Offset(_OPERATORS_FIELD)) - 4
    struct.pack_into("<I", edited, length, graph.OperatorsLength() - 1)
    return bytes(edited)


@cache
def model_content(name: str, logits: bool = False) -> bytes:
    """The bytes of a model, or of its variant without softmax."""
    content = model_path(name).read_bytes()
    return without_softmax(content) if logits else content


def random_inputs(name: str, count: int, seed: int) -> list[list[Array]]:
    """A batch for a model of one input: random int8 values, or floats of a normal distribution."""
    graph = tflite.Model.GetRootAs(model_content(name), 0).Subgraphs(0)
    tensor = graph.Tensors(graph.Inputs(0))
    shape = tuple(int(extent) for extent in tensor.ShapeAsNumpy())
    generator = np.random.default_rng(seed)
    if tensor.Type() == tflite.TensorType.FLOAT32:
        return [[generator.standard_normal(shape).astype(np.float32)] for _ in range(count)]
    return [[_random_int8(generator, shape, index)] for index in range(count)]


def _random_int8(generator: np.random.Generator, shape: tuple[int, ...], index: int) -> Array:
    """In turn the whole range, and values round a centre: large models tell pure noise hardly apart."""
    if index % 2 == 0:
        return generator.integers(-128, 128, shape).astype(np.int8)
    centre, spread = generator.uniform(-128, 127), generator.uniform(5, 60)
    return np.clip(np.rint(generator.normal(centre, spread, shape)), -128, 127).astype(np.int8)


def ramp(shape: tuple[int, ...]) -> Array:
    """The input of the published checksums: `((i*37 + 11*(i>>5)) & 255) - 128`."""
    index = np.arange(int(np.prod(shape)))
    return (((index * 37 + 11 * (index >> 5)) & 255) - 128).astype(np.int8).reshape(shape)


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits."""
    digest = 0x811C9DC5
    for byte in data:
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return digest


TFLM_CHECKSUMS = {
    KWS: (119849144, 2287096408),
    VWW: (2150813085, 2772717821),
    RESNET8: (4165154186, 2220957671),
    AD01: (2194976754, 1441320309),
}
"""FNV-1a 32 of the output of TensorFlow Lite Micro for the ramp and for zeros."""


def target_with(name: str, *providers: str) -> Target:
    """A built-in target with other providers: `target_with("host", "ram=generated")`."""
    overrides = Overrides(provider=tuple(parse_provider_option(text) for text in providers))
    return apply_overrides(load_target(name), overrides)


def compiled(
    name: str,
    target: Target,
    numerics: Numerics = Numerics.LITERT_REF,
    logits: bool = False,
    io: Io = Io.CALLER,
) -> Compiled:
    """A model compiled for a target."""
    return _compiled(name, target, numerics, logits, io)[0]


def compile_seconds(name: str, target: Target) -> float:
    """The processor time that it took to compile a model for a target."""
    return _compiled(name, target, Numerics.LITERT_REF, False, Io.CALLER)[1]


@cache
def _compiled(name: str, target: Target, numerics: Numerics, logits: bool, io: Io) -> tuple[Compiled, float]:
    path = model_path(name)
    if logits:
        path = new_folder() / f"{name}_logits.tflite"
        path.write_bytes(model_content(name, logits=True))
    begin = process_time()
    return compile_model(path, target, Options(numerics=numerics, io=io)), process_time() - begin


@cache
def bundle(
    name: str,
    target: Target,
    numerics: Numerics = Numerics.LITERT_REF,
    logits: bool = False,
    io: Io = Io.CALLER,
) -> Path:
    """The folder of a compiled model."""
    folder = new_folder() / "bundle"
    write_bundle(compiled(name, target, numerics, logits, io).files, folder)
    return folder


def new_folder() -> Path:
    """A folder that lives as long as the process."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="bytewright-test-"))
    return Path(_FOLDERS[-1].name)
