"""Graphs with detections, evaluated, against LiteRT; and operands that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.detection import TflDecodeBoxes, TflSelectDetections
from support.detection_models import DetectionModel
from support.evaluate.evaluate_graph import evaluate_graph
from support.reference import LiteRt

F32 = ir.DType.F32
ALL = TflSelectDetections(
    num_classes=2, num_kept=5, num_places=1, num_of_class=0, least_score=0.1, most_overlap=0.5
)


def kind(*shape: int, dtype: ir.DType = F32) -> ir.TensorType:
    return ir.TensorType(shape, dtype)


@pytest.mark.parametrize(
    "model",
    [
        DetectionModel(num_places=2, num_kept=6),
        DetectionModel(num_of_class=3, num_kept=6),
        DetectionModel(num_boxes=5, num_of_class=30, num_kept=40, is_dense=False),
    ],
)
def test_evaluated_graphs_equal_litert(model: DetectionModel) -> None:
    library, module = LiteRt(model.content), import_content(model.content, "m.tflite")
    for seed in range(3):
        inputs = model.inputs(seed)
        wanted = library.run(*inputs)
        found = evaluate_graph(module, inputs)
        count = int(wanted[3][0]) * model.num_places
        np.testing.assert_array_equal(found[3], wanted[3])
        for own, reference in zip(found[:3], wanted[:3], strict=True):
            np.testing.assert_array_equal(own[:, :count], reference[:, :count])
            assert not own[:, count:].any()


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        (TflDecodeBoxes((1, 1, 1, 1)), (kind(3, 3), kind(3, 4)), "an encoding has 3 numbers"),
        (TflDecodeBoxes((1, 1, 1, 1)), (kind(3, 4), kind(3, 5)), "an anchor has 5 numbers"),
        (TflDecodeBoxes((1, 1, 1, 1)), (kind(3, 4), kind(2, 4)), "3 encodings, 2 anchors"),
        (TflDecodeBoxes((1, 0, 1, 1)), (kind(3, 4), kind(3, 4)), r"the scales \(1, 0, 1, 1\)"),
        (TflDecodeBoxes((1, 1, 1, 1)), (kind(3, 4, dtype=ir.DType.I8), kind(3, 4)), "an encoding is i8"),
        (ALL, (kind(3, 4), kind(1, 3, 4)), r"scores \[1x3x4\] of 2 classes and 3 boxes"),
        (ALL, (kind(3, 4), kind(1, 3, 1)), "of 2 classes and 3 boxes"),
        (ALL, (kind(3, 4), kind(1, 2, 2)), "of 2 classes and 3 boxes"),
        (ALL, (kind(3, 4), kind(2)), "of 2 classes and 3 boxes"),
        (ALL, (kind(3, 5), kind(1, 3, 2)), "a box has 5 numbers"),
    ],
)
def test_operands_that_do_not_fit(
    operation: ir.Operation, operands: tuple[ir.TensorType, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        operation.infer(operands)
