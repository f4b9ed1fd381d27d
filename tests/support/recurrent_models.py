"""Models of one recurrent operator, written with the schema of LiteRT: LSTM layers and SVDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as untyped_schema
from numpy.typing import NDArray

Array = NDArray[Any]
schema: Any = untyped_schema
_TYPES = {"float32": "FLOAT32", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64"}
Affine = tuple[float, int]


@dataclass(slots=True)
class Writer:
    """One subgraph while it is written."""

    model: Any = field(default_factory=schema.ModelT)
    graph: Any = field(default_factory=schema.SubGraphT)

    def __post_init__(self) -> None:
        self.model.version, self.model.description = 3, "recurrent"
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.model.subgraphs = [self.graph]
        self.graph.tensors, self.graph.operators = [], []

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: str,
        affine: Affine | None = None,
        values: Array | None = None,
        *,
        is_variable: bool = False,
    ) -> int:
        """The index of a new tensor."""
        found = schema.TensorT()
        found.name, found.shape = f"t{len(self.graph.tensors)}", list(shape)
        found.type = getattr(schema.TensorType, _TYPES[dtype])
        found.isVariable, found.buffer = is_variable, 0
        if affine is not None:
            found.quantization = schema.QuantizationParametersT()
            found.quantization.scale, found.quantization.zeroPoint = [affine[0]], [affine[1]]
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            found.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(found)
        return len(self.graph.tensors) - 1

    def operator(
        self,
        kind: str,
        inputs: list[int],
        outputs: list[int],
        options: tuple[str, dict[str, Any]],
        *intermediates: int,
    ) -> None:
        """Adds an operator."""
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        self.model.operatorCodes.append(code)
        found = schema.OperatorT()
        found.opcodeIndex, found.inputs, found.outputs = len(self.model.operatorCodes) - 1, inputs, outputs
        found.intermediates = list(intermediates) or None
        name, values = options
        found.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        found.builtinOptions = getattr(schema, f"{name}T")()
        for key, value in values.items():
            assert hasattr(found.builtinOptions, key), key
            setattr(found.builtinOptions, key, value)
        self.graph.operators.append(found)

    def build(self, inputs: list[int], outputs: list[int]) -> bytes:
        """The file."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        builder = flatbuffers.Builder(0)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def lstm_model(
    seed: int,
    *,
    is_float: bool,
    one_hidden_scale: bool = False,
    cell_scale: float | None = None,
    is_wide: bool = False,
) -> bytes:
    """A random LSTM layer; with `one_hidden_scale` hidden state, intermediate and result are quantised alike.

    With `is_wide` activations are int16, and biases int64, one of which needs more than 32 bits now and then.
    """
    random, writer = np.random.default_rng(seed), Writer()
    samples, steps, depth, units = (int(random.integers(1, most)) for most in (3, 5, 7, 9))
    is_time_major = bool(random.integers(2))
    lead = (steps, samples) if is_time_major else (samples, steps)
    clip = float(random.choice([0.0, 0.75, 10.0]))
    data = "float32" if is_float else "int16" if is_wide else "int8"

    def affine(low: float, high: float) -> Affine | None:
        if is_float:
            return None
        scale, zero_point = float(np.float32(random.uniform(low, high))), int(random.integers(-128, 128))
        return (scale / 256, 0) if is_wide else (scale, zero_point)

    def weights(shape: tuple[int, ...]) -> int:
        if is_float:
            return writer.tensor(shape, data, values=random.normal(0, 0.8, shape).astype(np.float32))
        scale = float(np.float32(random.uniform(0.002, 0.02)))
        return writer.tensor(shape, "int8", (scale, 0), random.integers(-127, 128, shape).astype(np.int8))

    def bias() -> int:
        if is_float:
            return writer.tensor((units,), data, values=random.normal(0, 0.5, units).astype(np.float32))
        values = random.integers(-4000, 4000, units)
        if is_wide:
            values = values * int(random.choice([256, 2**20]))
        kind = "int64" if is_wide else "int32"
        return writer.tensor((units,), kind, (1e-4, 0), values.astype(kind))

    source = writer.tensor((*lead, depth), data, affine(0.005, 0.05))
    over_input = [weights((units, depth)) for _ in range(4)]
    over_hidden = [weights((units, units)) for _ in range(4)]
    biases = [bias() for _ in range(4)]
    hidden_affine = affine(0.004, 0.02)
    exponent = int(random.integers(-15, -8))
    hidden = writer.tensor((samples, units), data, hidden_affine, is_variable=True)
    cell = writer.tensor(
        (samples, units),
        "float32" if is_float else "int16",
        None if is_float else (cell_scale or 2.0**exponent, 0),
        is_variable=True,
    )
    effective = hidden_affine if one_hidden_scale else affine(0.004, 0.02)
    result = writer.tensor((*lead, units), data, effective)
    between = (
        ()
        if is_float
        else (
            *(writer.tensor((0,), "float32") for _ in range(4)),
            writer.tensor((0,), data, effective),
        )
    )
    options = {"fusedActivationFunction": 4, "cellClip": clip, "timeMajor": is_time_major}
    inputs = [source, *over_input, *over_hidden, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1]
    writer.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [result],
        ("UnidirectionalSequenceLSTMOptions", options),
        *between,
    )
    return writer.build([source], [result])
