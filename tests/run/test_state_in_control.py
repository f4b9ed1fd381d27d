"""Layers that keep something, in subgraphs of IF and WHILE: LiteRT sets them back, TensorFlow Lite Micro does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.ops.arithmetic.numerics import Numerics
from run.test_streams import assert_equal, drawn
from support.model_files import DATA
from support.recurrent_models import Writer, schema, svdf_model
from support.reference import LiteRt, TfLiteMicro

pytestmark = pytest.mark.run

Array = NDArray[Any]
LITERT, TFLM = Numerics.LITERT_REF, Numerics.TFLM
TURNS = 3


class Around(Writer):
    """A subgraph whose tensors are typed as those of another one are."""

    def like(self, tensor: Any, *, is_constant: bool = False) -> int:
        """A tensor of the same shape, type and quantisation; a constant one is zeros."""
        types = {schema.TensorType.FLOAT32: "float32", schema.TensorType.INT8: "int8"}
        values = np.zeros(tensor.shape, types[tensor.type]) if is_constant else None
        index = self.tensor(tuple(tensor.shape), types[tensor.type], None, values)
        self.graph.tensors[index].quantization = tensor.quantization
        return index

    def number(self, value: int | None = None) -> int:
        return self.tensor((), "int32", None, None if value is None else np.array(value, np.int32))


MAIN, LAYER, OTHER = range(3)


def in_control(content: bytes, kind: str) -> bytes:
    """A model of one input and output in a branch ("IF"), in two that share it ("IF IF"), or in a loop ("WHILE")."""
    model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    (layer,), model.signatureDefs = model.subgraphs, None
    main, other = Around(model), Around(model)
    model.subgraphs = [main.graph, layer, other.graph]
    write = _loop if kind == "WHILE" else _branches
    inputs, outputs = write(main, other, layer, len(kind.split()))
    return main.build(inputs, outputs)


def _branches(main: Around, other: Around, layer: Any, count: int) -> tuple[list[int], list[int]]:
    """So many branches: the layer where a truth value holds, and zeros elsewhere; the second the other way round."""
    x, y = (layer.tensors[own[0]] for own in (layer.inputs, layer.outputs))
    other.graph.inputs, other.graph.outputs = [other.like(x)], [other.like(y, is_constant=True)]
    truth, source = main.tensor((), "bool"), main.like(x)
    results = [main.like(y) for _ in range(count)]
    for result, (then, otherwise) in zip(results, ((LAYER, OTHER), (OTHER, LAYER)), strict=False):
        options = {"thenSubgraphIndex": then, "elseSubgraphIndex": otherwise}
        main.operator("IF", [truth, source], [result], ("IfOptions", options))
    return [truth, source], results


def _loop(main: Around, other: Around, layer: Any, _: int) -> tuple[list[int], list[int]]:
    """Turns of the layer on one input, of which the last gives the result."""
    x, y = (layer.tensors[own[0]] for own in (layer.inputs, layer.outputs))
    number, holds = other.number(), other.tensor((), "bool")
    other.operator("LESS", [number, other.number(TURNS)], [holds], ("LessOptions", {}))
    other.graph.inputs, other.graph.outputs = [number, other.like(x), other.like(y)], [holds]
    body = Around(other.model)
    body.graph = other.model.subgraphs[LAYER]
    other.model.subgraphs.pop()
    number, before, more = body.number(), body.like(y), body.number()
    body.operator("ADD", [number, body.number(1)], [more], ("AddOptions", {}))
    layer.inputs, layer.outputs = (
        [number, layer.inputs[0], before],
        [more, layer.inputs[0], layer.outputs[0]],
    )
    source, results = main.like(x), [main.number(), main.like(x), main.like(y)]
    options = {"condSubgraphIndex": OTHER, "bodySubgraphIndex": LAYER}
    carried = [main.number(0), source, main.like(y, is_constant=True)]
    main.operator("WHILE", carried, results, ("WhileOptions", options))
    return [source], results[2:]


FORMS: dict[str, tuple[Numerics, bytes]] = {
    "litert-lstm": (LITERT, (DATA / "state" / "lstm.tflite").read_bytes()),
    "litert-svdf": (LITERT, svdf_model(3, form="float32")),
    "tflm-svdf": (TFLM, svdf_model(3, form="int8")),
}


@pytest.mark.parametrize("kind", ["IF", "IF IF", "WHILE"])
@pytest.mark.parametrize("form", FORMS)
def test_a_layer_in_a_branch_or_loop_begins_as_its_reference_says(
    form: str, kind: str, tmp_path: Path
) -> None:
    numerics, content = FORMS[form]
    path = tmp_path / "model.tflite"
    path.write_bytes(in_control(content, kind))
    model = bytewright.compile(path, numerics=numerics.value)
    assert bool(model.plan.states) == (numerics is TFLM)
    details, random = LiteRt(path).inputs, np.random.default_rng(2)
    inputs = [[drawn_or_truth(each, random) for each in details] for _ in range(12)]
    witness = LiteRt(path) if numerics is LITERT else TfLiteMicro(path)
    wanted = [witness.run(*arrays) for arrays in inputs]
    session = model.session()
    found = [session.run(*arrays) for arrays in inputs]
    assert_equal([each if isinstance(each, tuple) else (each,) for each in found], wanted)


def drawn_or_truth(details: dict[str, Any], random: np.random.Generator) -> Array:
    is_truth = details["dtype"] is np.bool_
    return np.array(random.random(details["shape"]) < 0.6) if is_truth else drawn(details, random)
