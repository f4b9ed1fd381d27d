"""Composites, which a subgraph spells out: equal to LiteRT, which runs the subgraph; and what is refused of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.options import Options, Rows
from support.against_reference import assert_equals_reference
from support.random_models import RandomModel
from tflite_writer import ModelBuilder, Subgraph

SHAPE = (2, 5, 8)


def composite(builder: ModelBuilder, number: int, inputs: Sequence[int], count: int = 1) -> list[int]:
    """Results of a composite of so many float tensors."""
    results = [builder.tensor(f"result_{number}", SHAPE, "float32") for _ in range(count)]
    builder.operator("STABLEHLO_COMPOSITE", inputs, results, decomposition_subgraph_index=number)
    return results


def centred() -> Subgraph:
    """Rows less their mean, and scaled by constants."""
    part = ModelBuilder(subgraph_name="centred")
    x, mean = part.tensor("x", SHAPE, "float32"), part.tensor("mean", (2, 5, 1), "float32")
    part.operator("MEAN", [x, part.constant("axes", np.array([-1], np.int32))], [mean], keep_dims=True)
    rest, y = part.tensor("rest", SHAPE, "float32"), part.tensor("y", SHAPE, "float32")
    part.operator("SUB", [x, mean], [rest])
    part.operator("MUL", [rest, part.constant("scales", np.linspace(-1, 2, 8, dtype=np.float32))], [y])
    return part.subgraph([x], [y])


def twice(number: int) -> Subgraph:
    """A composite, and the same of its result: two results."""
    part = ModelBuilder(subgraph_name=f"twice_{number}")
    x = part.tensor("x", SHAPE, "float32")
    (first,) = composite(part, number, [x])
    (second,) = composite(part, number, [first])
    return part.subgraph([x], [second, first])


def same() -> Subgraph:
    part = ModelBuilder(subgraph_name="same")
    x = part.tensor("x", SHAPE, "float32")
    return part.subgraph([x], [x])


def network(*parts: Subgraph, number: int = 1, results: int = 1, inputs: int = 1) -> bytes:
    """A sum with results of the composite that is subgraph `number`, through a RELU."""
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "float32")
    found = composite(builder, number, [x] * inputs, results)
    y, z = (builder.tensor(name, SHAPE, "float32") for name in "yz")
    builder.operator("ADD", [found[0], found[-1]], [y])
    builder.operator("RELU", [y], [z])
    return builder.build([x], [z], *parts)


@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.MAX])
def test_results_are_those_of_the_subgraphs(rows: Rows, tmp_path: Path) -> None:
    contents = {
        "one": network(centred()),
        "of one": network(centred(), twice(1), number=2, results=2),
        "of one of one": network(centred(), twice(1), _first(2), number=3),
    }
    models = [RandomModel(content, name, (SHAPE,), "float32") for name, content in contents.items()]
    assert_equals_reference(models, tmp_path, options=Options(rows=rows))


def _first(number: int) -> Subgraph:
    """The first result of a composite of two."""
    part = ModelBuilder(subgraph_name="first")
    x = part.tensor("x", SHAPE, "float32")
    return part.subgraph([x], composite(part, number, [x], 2)[:1])


def _doubled(levels: int) -> list[Subgraph]:
    """Subgraph n + 1 runs subgraph n twice."""
    parts = [centred()]
    for number in range(1, levels):
        part = ModelBuilder(subgraph_name=f"level_{number}")
        x = part.tensor("x", SHAPE, "float32")
        parts.append(part.subgraph([x], composite(part, number, composite(part, number, [x]))))
    return parts


REFUSED = {
    "a result that is an input": (network(same()), "BW104", "STABLEHLO_COMPOSITE"),
    "other inputs": (
        network(centred(), inputs=2),
        "BW103",
        "has 2 inputs and 1 outputs, its subgraph 1 and 1",
    ),
    "no such subgraph": (network(centred(), number=5), "BW103", "runs subgraph 5 of 2"),
    "itself": (network(twice(1)), "BW103", "subgraph 1 runs itself"),
    "too many": (network(*_doubled(20), number=20), "BW103", "more than 65536 operators"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    content, code, said = REFUSED[name]
    with pytest.raises(CompileError, match=said) as caught:
        import_content(content, "composite.tflite")
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {code}
