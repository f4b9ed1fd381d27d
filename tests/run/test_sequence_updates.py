"""Loops that write a step of a sequence by cutting it around the step, as TensorFlow 2.19 writes recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from support.against_reference import assert_equals_reference
from support.random_models import RandomModel
from tflite_writer import ModelBuilder, Subgraph

SHAPE = (6, 2, 3)


@dataclass(frozen=True)
class Loop:
    """Each turn doubles a step of the input and writes it into the sequence; what is not so is said here.

    Attributes:
        gap: From the step on so many are replaced.
        rest: What the size of the part before the step says of other axes.
        is_packed: Whether sizes are made by PACK, and not by RESHAPE and CONCATENATION.
        is_reversed: Whether the constant stands before the number that it is added to.
        reads_parts: Whether the part behind the step is a result of its own.
    """

    gap: int = 1
    rest: int = -1
    axis: int = 0
    is_packed: bool = False
    is_reversed: bool = False
    reads_parts: bool = False

    def model(self) -> RandomModel:
        builder = ModelBuilder()
        x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
        start = builder.constant("start", np.array(0, np.int32))
        empty = builder.constant("empty", np.full(SHAPE, 7, np.float32))
        results = [builder.tensor("i", (), "int32"), y, builder.tensor("same", SHAPE, "float32")]
        builder.operator("WHILE", [start, empty, x], results, cond_subgraph_index=1, body_subgraph_index=2)
        content = builder.build([x], [y], self._condition(), self._body())
        return RandomModel(content, str(self), (SHAPE,), "float32")

    def _condition(self) -> Subgraph:
        test = ModelBuilder()
        inputs = [test.tensor("i", (), "int32"), *(test.tensor(n, SHAPE, "float32") for n in "ab")]
        truth = test.tensor("truth", (), "bool")
        test.operator("LESS", [inputs[0], test.constant("end", np.array(SHAPE[0], np.int32))], [truth])
        return test.subgraph(inputs, [truth])

    def _place(self, body: ModelBuilder, number: int, rest: int) -> int:
        place = body.tensor("place", (3,), "int32")
        if self.is_packed:
            others = [body.constant("rest", np.array(rest, np.int32)) for _ in range(2)]
            body.operator("PACK", [number, *others], [place], values_count=3)
            return place
        flat = body.tensor("flat", (1,), "int32")
        body.operator(
            "RESHAPE", [number, body.constant("one", np.array([1], np.int32))], [flat], new_shape=[1]
        )
        others = body.constant("rest", np.array([rest, rest], np.int32))
        body.operator("CONCATENATION", [flat, others], [place], axis=0)
        return place

    def _body(self) -> Subgraph:
        body = ModelBuilder()
        i, sequence, x = inputs = [
            body.tensor("i", (), "int32"),
            *(body.tensor(n, SHAPE, "float32") for n in ("sequence", "x")),
        ]
        more, after = body.tensor("more", (), "int32"), body.tensor("after", (), "int32")
        body.operator("ADD", [i, body.constant("one", np.array(1, np.int32))], [more])
        gap = body.constant("gap", np.array(self.gap, np.int32))
        body.operator("ADD", [gap, i] if self.is_reversed else [i, gap], [after])
        step, twice = body.tensor("step", SHAPE[1:], "float32"), body.tensor("twice", SHAPE[1:], "float32")
        body.operator("GATHER", [x, i], [step], axis=0)
        body.operator("ADD", [step, step], [twice])
        new = body.tensor("new", (1, *SHAPE[1:]), "float32")
        body.operator("EXPAND_DIMS", [twice, body.constant("axis", np.array([0], np.int32))], [new])
        open_ = {"shape_signature": (-1, -1, -1)}
        parts = [body.tensor(name, (1, 1, 1), "float32", **open_) for name in ("before", "behind")]
        zeros, all_ = (body.constant("all", np.full(3, value, np.int32)) for value in (0, -1))
        body.operator("SLICE", [sequence, zeros, self._place(body, i, self.rest)], [parts[0]])
        body.operator("SLICE", [sequence, self._place(body, after, 0), all_], [parts[1]])
        joined = body.tensor("joined", SHAPE, "float32")
        body.operator("CONCATENATION", [parts[0], new, parts[1]], [joined], axis=self.axis)
        if self.reads_parts:
            joined, kept = body.tensor("greater", SHAPE, "float32"), joined
            axes = body.constant("axes", np.array([0], np.int32))
            most = body.tensor("most", (1, *SHAPE[1:]), "float32")
            body.operator("REDUCE_MAX", [parts[1], axes], [most], keep_dims=True)
            body.operator("ADD", [kept, most], [joined])
        return body.subgraph(inputs, [more, joined, x])


@pytest.mark.parametrize("loop", [Loop(), Loop(is_packed=True), Loop(is_reversed=True)], ids=str)
def test_the_sequence_is_the_reference_s(loop: Loop, tmp_path: Path) -> None:
    model = loop.model()
    names = {node.operation.name for f in import_content(model.content, "f").functions for node in f.nodes}
    assert "update_slice" in names
    assert_equals_reference([model], tmp_path)


@pytest.mark.parametrize("loop", [Loop(gap=2), Loop(rest=2), Loop(axis=1), Loop(reads_parts=True)], ids=str)
def test_what_is_no_such_step_is_refused_for_its_sizes(loop: Loop, tmp_path: Path) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(loop.model().content)
    with pytest.raises(
        CompileError, match="SLICE: how many elements are taken is known in the run alone, in a loop"
    ):
        bytewright.compile(path)
