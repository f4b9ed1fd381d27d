"""Packed constants say in the plan which tensor of the model's file they hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import tflite

from bytewright.compiler.pipeline import compile_model
from bytewright.record.buffers import BufferRole
from bytewright.target import load_target

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


def tensors_of_operators() -> list[tuple[str, str]]:
    """Names of weights and bias of each operator that has them, in the file's order."""
    graph = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0).Subgraphs(0)
    operators = [graph.Operators(index) for index in range(graph.OperatorsLength())]

    def name(index: int) -> str:
        return graph.Tensors(index).Name().decode()

    model = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0)
    layers = {tflite.BuiltinOperator.CONV_2D, tflite.BuiltinOperator.FULLY_CONNECTED}
    layers.add(tflite.BuiltinOperator.DEPTHWISE_CONV_2D)

    def is_layer(operator: tflite.Operator) -> bool:
        code = model.OperatorCodes(operator.OpcodeIndex())
        return max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) in layers

    return [(name(o.Inputs(1)), name(o.Inputs(2))) for o in operators if is_layer(o)]


@pytest.mark.parametrize("target", ["host", "mps3-an547", "mps2-an386", "aarch64", "x86-64-v4-vnni"])
def test_weights_and_biases_have_the_names_of_their_tensors(target: str) -> None:
    plan = compile_model(DIGITS, load_target(target)).plan
    own = {b.tensor: b.name for b in plan.buffers_of(BufferRole.PARAMETER) if b.tensor is not None}
    for weights, bias in tensors_of_operators():
        assert own[weights].endswith("/weights")
        assert own[bias].endswith(("/bias", "/scales", "/channels"))
