"""Layers: their multiply-accumulates against LiteRT's shapes and numpy, sorting, CSV with hostile names, totals."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.lstm import TflLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.record.plan import Plan
from bytewright.report.layers import (
    COLUMNS,
    CSV_COLUMNS,
    Costs,
    StepAmount,
    layers_of,
    layers_table,
    layers_view,
    require_column,
)
from bytewright.show.as_json import document_of
from bytewright.show.spreadsheet import csv_text
from bytewright.show.view import Body, Column, Table
from bytewright.target.registry import load_target
from support.digits_bundle import digits_plan
from support.row_bundle import row_plan
from support.shared_models import model_content, model_path
from support.views import text_of

COSTS = Costs(
    "instructions",
    FrozenMapping({step: StepAmount(100 + 7 * step % 5, 1000 - step) for step in range(7)}),
    StepAmount(1000, 7000),
    "a board",
)


def litert_macs(content: bytes) -> dict[str, int]:
    """By operator, from the shapes that LiteRT has: filters and results, and nothing else."""
    interpreter: Any = Interpreter(model_content=content)
    shape = {tensor["index"]: tuple(map(int, tensor["shape"])) for tensor in interpreter.get_tensor_details()}
    found: dict[str, int] = {}
    for operator in interpreter._get_ops_details():
        kind = operator["op_name"]
        if kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            weights, result = shape[int(operator["inputs"][1])], shape[int(operator["outputs"][0])]
            taps = prod(weights[1:3]) if kind == "DEPTHWISE_CONV_2D" else prod(weights[1:])
            found[f"{operator['index']} ({kind})"] = taps * prod(result)
    return found


@pytest.mark.parametrize("name", ["kws_ref_model", "ad01_int8", "pretrainedResnet_quant"])
@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_multiply_accumulates_are_those_of_the_shapes(name: str, target: str) -> None:
    plan = compile_model(model_path(name), load_target(target)).plan
    assert plan.narrowed is None
    counted = {
        operator: layer.macs for layer in layers_of(plan) for operator in layer.operators if layer.macs
    }
    wanted = litert_macs(model_content(name))
    assert counted.items() >= wanted.items()
    assert sum(layer.macs or 0 for layer in layers_of(plan)) == sum(wanted.values()) > 0


def counted_taps(operation: Any, operand: tuple[int, ...], weights: tuple[int, ...], channels: int) -> int:
    """How often a product of the operator's loops is added, in a run where all factors are ones and padding too.

    Ones in place of the padding are made by a zero point of -1 with an input of zeros.
    """
    ones = dataclasses.replace(operation, input_zero_point=-1)
    result = ones.evaluate(
        (np.zeros(operand, np.int8), np.ones(weights, np.int8), np.zeros(channels, np.int32))
    )[0]
    return int(result.sum())


@pytest.mark.parametrize(
    ("operation", "operand", "weights", "channels"),
    [
        (Conv2d((1, 1), (0, 0, 0, 0), (1, 1)), (2, 5, 4, 3), (6, 2, 3, 3), 6),
        (Conv2d((2, 1), (0, 0, 0, 0), (1, 2)), (1, 7, 9, 2), (4, 3, 3, 2), 4),
        (DepthwiseConv2d((1, 2), (0, 0, 0, 0), (1, 1)), (1, 5, 6, 3), (3, 2, 3, 2), 6),
        (GroupedConv2d((1, 1), (0, 0, 0, 0), (1, 1), groups=2), (1, 4, 4, 6), (4, 3, 1, 3), 4),
        (TransposeConv2d((2, 2), (0, 0, 0, 0)), (1, 3, 2, 2), (5, 2, 3, 2), 5),
    ],
)
def test_products_are_counted_as_numpy_adds_them(
    operation: ir.Operation, operand: tuple[int, ...], weights: tuple[int, ...], channels: int
) -> None:
    types = (
        ir.TensorType(operand, ir.DType.I8),
        ir.TensorType(weights, ir.DType.I8),
        ir.TensorType((channels,), ir.DType.I32),
    )
    assert operation.num_macs(types, operation.infer(types)) == counted_taps(
        operation, operand, weights, channels
    )


def test_taps_in_the_padding_count() -> None:
    padded = Conv2d((1, 1), (1, 1, 1, 1), (1, 1))
    types = tuple(
        ir.TensorType(shape, dtype)
        for shape, dtype in (((1, 4, 4, 2), ir.DType.I8), ((3, 3, 3, 2), ir.DType.I8), ((3,), ir.DType.I32))
    )
    assert padded.num_macs(types, padded.infer(types)) == 4 * 4 * 3 * (3 * 3 * 2)


@pytest.mark.parametrize(("first", "second"), list(product((False, True), repeat=2)))
def test_a_matrix_product_counts_a_row_for_each_element(first: bool, second: bool) -> None:
    operation = TflBatchMatMul(first, second)
    shapes = ((2, 3, 5), (5, 4))
    operands = tuple(
        np.ones((*shape[:-2], *(shape[:-3:-1] if swapped else shape[-2:])), np.int8)
        for shape, swapped in zip(shapes, (first, second), strict=True)
    )
    types = tuple(ir.TensorType(each.shape, ir.DType.I8) for each in operands)
    assert operation.num_macs(types, operation.infer(types)) == int(operation.evaluate(operands)[0].sum())


def test_a_recurrent_layer_counts_all_gates_of_all_steps() -> None:
    """As the equations of Hochreiter and Schmidhuber have it: W x + R h for each of four gates, in each step."""
    samples, steps, width, units = 2, 5, 3, 4
    shapes = (
        (samples, steps, width),
        (samples, units),
        (samples, units),
        (4, units, width),
        (4, units, units),
    )
    types = tuple(ir.TensorType(shape, ir.DType.F32) for shape in (*shapes, (4, units)))
    gate = np.ones((units, width)).size + np.ones((units, units)).size
    assert TflLstm().num_macs(types, TflLstm().infer(types)) == samples * steps * 4 * gate


def test_of_a_batch_that_is_open_one_sample_counts() -> None:
    batch = ir.Symbol("n", 1, 4)
    types = (
        ir.TensorType((batch, 1, 1, 8), ir.DType.I8),
        ir.TensorType((3, 1, 1, 8), ir.DType.I8),
        ir.TensorType((3,), ir.DType.I32),
    )
    operation = Conv2d((1, 1), (0, 0, 0, 0), (1, 1))
    assert operation.num_macs(types, operation.infer(types)) == 24


def test_a_layer_in_a_loop_counts_all_turns_and_a_segment_each_row_once() -> None:
    plan = row_plan()
    assert plan.segments
    layers = layers_of(plan)
    first = plan.steps[0]
    assert first.work is not None
    assert plan.surroundings(0)
    assert layers[0].macs == first.work.macs
    alone = dataclasses.replace(plan, segments=())
    turns = prod(
        loop.end - loop.begin
        for loop in plan.loops
        if loop.steps[0] <= 0 and isinstance(loop.begin, int) and isinstance(loop.end, int)
    )
    assert turns > 1
    assert layers_of(alone)[0].macs == turns * first.work.macs
    unknown = dataclasses.replace(
        alone, loops=tuple(dataclasses.replace(each, end=None) for each in plan.loops)
    )
    assert layers_of(unknown)[0].macs is None
    written = dataclasses.replace(plan, steps=tuple(dataclasses.replace(s, work=None) for s in plan.steps))
    total = document_of(layers_view(written))["total"][0]
    assert (total["macs"], total["parameter_bytes"]) == (None, sum(each.parameter_bytes for each in layers))


def test_the_total_is_of_all_layers() -> None:
    plan = digits_plan()
    document = document_of(layers_view(plan, COSTS))
    rows, (total,) = document["layers"], document["total"]
    for key in ("macs", "parameter_bytes"):
        assert total[key] == sum(row[key] for row in rows)
    assert total["live_bytes"] == max(row["live_bytes"] for row in rows)
    assert (total["instructions"], total["cycles"]) == (1000, 7000)
    assert total["parameter_bytes"] <= plan.parameter_bytes
    assert rows[1]["instructions"] == COSTS.by_step[1].amount


def member(row: dict[str, Any], column: str) -> Any:
    return row[{"parameters": "parameter_bytes", "live": "live_bytes"}.get(column, column)]


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_sorts(column: str) -> None:
    costs = dataclasses.replace(COSTS, unit="microseconds") if column == "microseconds" else COSTS
    rows = document_of(layers_view(digits_plan(), costs, column))["layers"]
    assert sorted(row["step"] for row in rows) == list(range(7))
    if column not in ("step", "layer", "shape"):
        found = [member(row, column) for row in rows]
        assert found == sorted(found, reverse=True)
    else:
        assert [row["step"] for row in rows] == list(range(7)) or column == "shape"


@pytest.mark.parametrize(
    ("ask", "message", "help_text"),
    [
        (
            lambda: require_column("mac", is_measured=False),
            "layers have no column 'mac'",
            "did you mean 'macs'?",
        ),
        (
            lambda: require_column("cycles", is_measured=False),
            "there are no cycles to sort by: nothing",
            "--profile",
        ),
        (
            lambda: layers_view(digits_plan(), COSTS, "microseconds"),
            "there are no microseconds to sort by: on a board instructions are counted",
            "--sort instructions",
        ),
        (
            lambda: layers_view(
                digits_plan(), Costs("microseconds", FrozenMapping({}), StepAmount(1.5), "host"), "cycles"
            ),
            "there are no cycles to sort by: on host microseconds are counted",
            "--sort microseconds",
        ),
    ],
)
def test_a_column_that_there_is_not_is_refused(
    ask: Callable[[], object], message: str, help_text: str
) -> None:
    with pytest.raises(CompileError) as caught:
        ask()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    assert message in diagnostic.message
    assert diagnostic.help == help_text


HOSTILE = (
    '=HYPERLINK("http://x","y")',
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "  =1",
    "\ufeff=1",
    "\uff1d1",
    'a "quoted", name',
    "two\r\nlines",
    "Größe 模型",
    "'plain",
)


def renamed(plan: Plan, names: tuple[str, ...]) -> Plan:
    """The plan with other names of tensors in the model's file, and of operators."""
    buffers = dict(plan.buffers)
    steps = list(plan.steps)
    for number, name in enumerate(names[: len(steps)]):
        written = steps[number].writes[0]
        buffers[written] = dataclasses.replace(buffers[written], tensor=name)
        steps[number] = dataclasses.replace(steps[number], operators=(name,))
    return dataclasses.replace(plan, buffers=FrozenMapping(buffers), steps=tuple(steps))


@pytest.mark.parametrize("names", [HOSTILE[:6], HOSTILE[6:]])
def test_csv_reads_back_and_no_text_is_a_formula(names: tuple[str, ...]) -> None:
    view = layers_view(renamed(digits_plan(), names))
    text = csv_text(layers_table(view), CSV_COLUMNS)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert text.count("\r\n") == len(rows) + 1 + sum("\r\n" in name for name in names) * 2
    wanted = document_of(view)["layers"]
    for number, (row, want) in enumerate(zip(rows, wanted, strict=True)):
        for key in ("step", "macs", "parameter_bytes", "live_bytes", "shape"):
            assert row[key] == str(want[key])
        for key in ("layer", "tensor"):
            assert row[key].removeprefix("'") == str(want[key]).removeprefix("'")
            assert not row[key].lstrip(" \ufeff").startswith(("=", "+", "-", "@", "\t", "\uff1d"))
        if number < len(names):
            assert row["tensor"].lstrip("'") == names[number].lstrip("'")


def test_csv_leaves_numbers_and_gaps_as_they_are() -> None:
    columns = tuple(Column(None, f"c{number}") for number in range(4))
    table = Table(None, columns, (Body("rows", ((-5, None, 2.5, ("a", "b")), (7, "x", -0.5, ()))),))
    assert (
        csv_text(table, ("c3", "c0", "missing", "c1", "c2"))
        == "c3,c0,c1,c2\r\na + b,-5,,2.5\r\n,7,x,-0.5\r\n"
    )


def test_fused_operators_are_one_row_with_its_last_shape() -> None:
    text = text_of(layers_view(digits_plan()))
    (row,) = [line.split() for line in text.splitlines() if "2 (CONV_2D) + 3 (ADD)" in line]
    assert row[0] == "2"
    assert row[-4] == "1x8x8x16"
