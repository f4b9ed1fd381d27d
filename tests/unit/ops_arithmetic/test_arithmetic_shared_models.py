"""FULLY_CONNECTED layers of real models: LiteRT's own inputs and outputs of each layer, in two forms of REAL_ROUND."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from arithmetic_models import on_line, to_int8

from bytewright.ops.arithmetic.fit import fit_linear
from bytewright.ops.arithmetic.multiplier import activation_range, convolution_scale
from bytewright.ops.arithmetic.rescale import real_round
from support.reference import LiteRt

MODELS = Path(__file__).resolve().parents[4] / "shared" / "models"


def constant(model: Any, tensor: Any, dtype: type) -> np.ndarray:
    content = model.Buffers(tensor.Buffer()).DataAsNumpy().tobytes()
    return np.frombuffer(content, dtype).astype(np.int64).reshape(tensor.ShapeAsNumpy())


def check_layer(model: Any, graph: Any, operator: Any, interpreter: LiteRt) -> None:
    """One layer's output from its input, by the formula and by the fitted line."""
    x, w, b = (graph.Tensors(operator.Inputs(i)) for i in range(3))
    y = graph.Tensors(operator.Outputs(0))
    weights, bias = constant(model, w, np.int8), constant(model, b, np.int32)
    input_zero, output_zero = int(x.Quantization().ZeroPoint(0)), int(y.Quantization().ZeroPoint(0))
    values = (
        interpreter.tensor(operator.Inputs(0)).astype(np.int64).reshape(-1, weights.shape[1]) - input_zero
    )
    accumulator = values @ weights.T + bias
    scale = convolution_scale(*(float(t.Quantization().Scale(0)) for t in (x, w, y)))
    options = tflite.FullyConnectedOptions()
    options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
    activation = {0: "NONE", 1: "RELU"}[options.FusedActivationFunction()]
    low, high = activation_range(activation, float(y.Quantization().Scale(0)), output_zero)
    expected = interpreter.tensor(operator.Outputs(0)).reshape(accumulator.shape)
    np.testing.assert_array_equal(to_int8(real_round(accumulator, scale), output_zero, low, high), expected)
    reach = int(np.max(np.abs(weights).sum(axis=1) * 255 + np.abs(bias)))
    outputs = (low - output_zero, high - output_zero)
    fitted = fit_linear(lambda points: real_round(points, scale), (-reach, reach), outputs)
    assert fitted is not None
    line = on_line(accumulator, fitted)
    np.testing.assert_array_equal(to_int8(line, output_zero, low, high), expected)


@pytest.mark.parametrize(("name", "num_layers"), [("ad01_int8", 10), ("pretrainedResnet_quant", 1)])
def test_fully_connected_layers(name: str, num_layers: int) -> None:
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"shared model {path.name} is missing")
    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
    graph = model.Subgraphs(0)
    interpreter = LiteRt(path, keep_all_tensors=True)
    generator = np.random.default_rng(3)
    checked = 0
    for _ in range(5):
        interpreter.run(generator.integers(-128, 128, interpreter.inputs[0]["shape"]).astype(np.int8))
        for index in range(graph.OperatorsLength()):
            operator = graph.Operators(index)
            code = model.OperatorCodes(operator.OpcodeIndex())
            if (
                max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
                == tflite.BuiltinOperator.FULLY_CONNECTED
            ):
                check_layer(model, graph, operator, interpreter)
                checked += 1
    assert checked == 5 * num_layers
