"""Models of one recurrent operator, written with the schema of LiteRT: LSTM layers and SVDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as untyped_schema
from flatbuffers import flexbuffers
from numpy.typing import NDArray

Array = NDArray[Any]
schema: Any = untyped_schema
_TYPES = {
    "float32": "FLOAT32",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "uint64": "UINT64",
    "bool": "BOOL",
}
Affine = tuple[float, int]


@dataclass(slots=True)
class Writer:
    """One subgraph while it is written, of a new model or behind those of one."""

    model: Any = field(default_factory=schema.ModelT)
    graph: Any = field(default_factory=schema.SubGraphT)

    def __post_init__(self) -> None:
        if self.model.subgraphs is None:
            self.model.version, self.model.description = 3, "recurrent"
            self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
            self.model.subgraphs = []
        self.model.subgraphs.append(self.graph)
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

    def custom(self, code: str, inputs: list[int], outputs: list[int], **options: float) -> None:
        """Adds a custom operator, whose options are numbers by their names."""
        kind = schema.OperatorCodeT()
        kind.builtinCode = schema.BuiltinOperator.CUSTOM
        kind.deprecatedBuiltinCode, kind.version, kind.customCode = kind.builtinCode, 1, code
        self.model.operatorCodes.append(kind)
        found = schema.OperatorT()
        found.opcodeIndex, found.inputs, found.outputs = len(self.model.operatorCodes) - 1, inputs, outputs
        builder: Any = flexbuffers.Builder()
        with builder.Map():
            for name, value in sorted(options.items()):
                builder.Key(name)
                builder.Add(value)
        found.customOptions = np.frombuffer(bytes(builder.Finish()), np.uint8)
        self.graph.operators.append(found)

    def build(self, inputs: list[int], outputs: list[int]) -> bytes:
        """The file."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        builder = flatbuffers.Builder(0)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class TensorWriter(Protocol):
    """Who can add tensors to a model."""

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
        ...


@dataclass(slots=True)
class LstmWriter:
    """Tensors of LSTM layers in one of the forms float32, hybrid (int8 weights under floats), int8 or int16."""

    writer: TensorWriter
    random: np.random.Generator
    form: str

    @property
    def data(self) -> str:
        """The element type of activations."""
        return "float32" if self.is_float else self.form

    @property
    def is_float(self) -> bool:
        return self.form in ("float32", "hybrid")

    def affine(self, low: float, high: float) -> Affine | None:
        if self.is_float:
            return None
        scale = float(np.float32(self.random.uniform(low, high)))
        zero_point = int(self.random.integers(-128, 128))
        return (scale / 256, 0) if self.form == "int16" else (scale, zero_point)

    def weights(self, shape: tuple[int, ...]) -> int:
        if self.form == "float32":
            values = self.random.normal(0, 0.8, shape).astype(np.float32)
            return self.writer.tensor(shape, self.data, values=values)
        scale = float(np.float32(self.random.uniform(0.002, 0.02)))
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        return self.writer.tensor(shape, "int8", (scale, 0), values)

    def bias(self, units: int) -> int:
        """Of int16 int64, which needs more than 32 bits now and then."""
        if self.is_float:
            values = self.random.normal(0, 0.5, units).astype(np.float32)
            return self.writer.tensor((units,), self.data, values=values)
        values = self.random.integers(-4000, 4000, units)
        if self.form == "int16":
            values = values * int(self.random.choice([256, 2**20]))
        kind = "int64" if self.form == "int16" else "int32"
        return self.writer.tensor((units,), kind, (1e-4, 0), values.astype(kind))

    def constants(self, depth: int, units: int) -> tuple[list[int], list[int], list[int]]:
        """Weights, recurrent weights and biases of four gates."""
        over_input = [self.weights((units, depth)) for _ in range(4)]
        over_hidden = [self.weights((units, units)) for _ in range(4)]
        return over_input, over_hidden, [self.bias(units) for _ in range(4)]

    def states(
        self, samples: int, units: int, affine: Affine | None = None, cell: Affine | None = None
    ) -> list[int]:
        """Hidden state and cell."""
        hidden = self.writer.tensor((samples, units), self.data, affine, is_variable=True)
        kind = "float32" if self.is_float else "int16"
        return [hidden, self.writer.tensor((samples, units), kind, cell, is_variable=True)]


def lstm_model(
    seed: int,
    *,
    form: str,
    one_hidden_scale: bool = False,
    cell_scale: float | None = None,
    sizes: tuple[int, int, int, int] | None = None,
    first_step: int = 0,
) -> bytes:
    """A random LSTM layer; with `one_hidden_scale` hidden state, intermediate and result are quantised alike.

    Sizes are samples, steps, elements of the input and units. The layer is given the steps from `first_step` on.
    """
    random, writer = np.random.default_rng(seed), Writer()
    at = LstmWriter(writer, random, form)
    drawn = [int(random.integers(1, most)) for most in (3, 5, 7, 9)]
    samples, steps, depth, units = sizes or drawn
    is_time_major = bool(random.integers(2))
    lead = (steps, samples) if is_time_major else (samples, steps)
    options = _options(random, is_time_major)
    affine = at.affine(0.005, 0.05)
    image = source = writer.tensor((*lead, depth), at.data, affine)
    if first_step:
        axis = 0 if is_time_major else 1
        begin = np.array([first_step if each == axis else 0 for each in range(3)], np.int32)
        size = np.array([*lead, depth], np.int32) - begin
        lead = (int(size[0]), int(size[1]))
        source = writer.tensor((*lead, depth), at.data, affine)
        operands = [writer.tensor((3,), "int32", values=each) for each in (begin, size)]
        writer.operator("SLICE", [image, *operands], [source], ("SliceOptions", {}))
    over_input, over_hidden, biases = at.constants(depth, units)
    hidden_affine = at.affine(0.004, 0.02)
    exponent = int(random.integers(-15, -8))
    states = at.states(
        samples, units, hidden_affine, None if at.is_float else (cell_scale or 2.0**exponent, 0)
    )
    effective = hidden_affine if one_hidden_scale else at.affine(0.004, 0.02)
    result = writer.tensor((*lead, units), at.data, effective)
    between = (
        ()
        if at.is_float
        else (
            *(writer.tensor((0,), "float32") for _ in range(4)),
            writer.tensor((0,), at.data, effective),
        )
    )
    inputs = [source, *over_input, *over_hidden, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    writer.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [result],
        ("UnidirectionalSequenceLSTMOptions", options),
        *between,
    )
    return writer.build([image], [result])


def _options(random: np.random.Generator, is_time_major: bool) -> dict[str, Any]:
    """Those that both operators have, with a clip now and then; of hybrid layers also zero points."""
    return {
        "fusedActivationFunction": 4,
        "cellClip": float(random.choice([0.0, 0.75, 10.0])),
        "timeMajor": is_time_major,
        "asymmetricQuantizeInputs": bool(random.integers(2)),
    }


def bidirectional_model(seed: int, *, form: str, units: tuple[int, int] | None = None) -> bytes:
    """Two random layers of float32, or hybrid ones, results joined or not."""
    random, writer = np.random.default_rng(seed), Writer()
    at = LstmWriter(writer, random, form)
    samples, steps, depth = (int(random.integers(1, most)) for most in (3, 6, 7))
    is_time_major = bool(random.integers(2))
    # LiteRT overwrites tensors of its own where it joins results of several samples that come first.
    merges = bool(random.integers(2)) and (is_time_major or samples == 1)
    sides = [*(units or (int(random.integers(1, 9)),) * 2)]
    lead = (steps, samples) if is_time_major else (samples, steps)
    source = writer.tensor((*lead, depth), "float32")
    inputs = [source]
    for size in sides:
        over_input, over_hidden, biases = at.constants(depth, size)
        inputs += [*over_input, *over_hidden, -1, -1, -1, *biases, -1, -1]
    for size in sides:
        inputs += at.states(samples, size)
    widths = [sum(sides)] if merges else sides
    results = [writer.tensor((*lead, width), "float32") for width in widths]
    options = {**_options(random, is_time_major), "mergeOutputs": merges}
    kind = "BIDIRECTIONAL_SEQUENCE_LSTM"
    writer.operator(kind, [*inputs, *[-1] * 9], results, ("BidirectionalSequenceLSTMOptions", options))
    return writer.build([source], results)


def saturated_svdf(units: int, frames: int, rank: int = 2, depth: int = 6) -> bytes:
    """An SVDF layer whose state is mostly the ends of int16, as are its weights over time: sums leave 32 bits."""
    random, writer, filters = np.random.default_rng(units), Writer(), units * rank
    source = writer.tensor((1, depth), "int8", (0.05, 3))
    features = random.integers(-127, 128, (filters, depth)).astype(np.int8)
    time = random.choice([-32767, 32767, 30001], (filters, frames)).astype(np.int16)
    bias = random.integers(-(2**20), 2**20, units).astype(np.int32)
    inputs = [
        source,
        writer.tensor(features.shape, "int8", (0.02, 0), features),
        writer.tensor(time.shape, "int16", (1e-4, 0), time),
        writer.tensor(bias.shape, "int32", (float(np.float32(1e-4) * np.float32(1e-4)), 0), bias),
        writer.tensor((1, filters * frames), "int16", (1e-4, 0), is_variable=True),
    ]
    result = writer.tensor((1, units), "int8", (0.15, 5))
    writer.operator("SVDF", inputs, [result], ("SVDFOptions", {"rank": rank, "fusedActivationFunction": 1}))
    return writer.build([source], [result])


def svdf_model(seed: int, *, form: str, has_state_offset: bool = False, **changed: Any) -> bytes:
    """A random SVDF layer of float32, or of int8 with a state of the type that `form` names; or hybrid.

    With `has_state_offset` a state of int8 has a zero point. What is `changed`: "rank", "state_shape", "activation".
    """
    random, writer = np.random.default_rng(seed), Writer()
    samples, depth, units, rank, frames = (int(random.integers(1, most)) for most in (3, 9, 6, 4, 12))
    filters, is_float = units * rank, form in ("float32", "hybrid")

    def affine(low: float, high: float, zero_point: int = 0) -> Affine | None:
        return None if is_float else (float(np.float32(random.uniform(low, high))), zero_point)

    def weights(shape: tuple[int, ...], kind: str, scale: float) -> int:
        if kind == "float32":
            return writer.tensor(shape, kind, values=random.normal(0, 0.5, shape).astype(np.float32))
        most = np.iinfo(kind).max
        values = random.integers(-most, most + 1, shape).astype(kind)
        return writer.tensor(shape, kind, (float(np.float32(scale)), 0), values)

    state_kind = "float32" if is_float else form
    source = writer.tensor(
        (samples, depth),
        "float32" if is_float else "int8",
        affine(0.01, 0.05, int(random.integers(-128, 128))),
    )
    features = weights(
        (filters, depth), {"float32": "float32"}.get(form, "int8"), random.uniform(0.002, 0.02)
    )
    time_scale = float(np.float32(random.uniform(0.002, 0.02) / (256 if form == "int16" else 1)))
    time = weights((filters, frames), {"float32": "float32", "hybrid": "int8"}.get(form, form), time_scale)
    offset = int(random.integers(-20, 20)) if has_state_offset else 0
    state_affine = affine(0.0005, 0.01, offset) if form == "int16" else affine(0.02, 0.2, offset)
    if is_float:
        bias = writer.tensor((units,), "float32", values=random.normal(0, 0.5, units).astype(np.float32))
    else:
        assert state_affine is not None
        scale = float(np.float32(np.float32(state_affine[0]) * np.float32(time_scale)))
        values = random.integers(-4000, 4000, units).astype(np.int32)
        bias = writer.tensor((units,), "int32", (scale, 0), values)
    shape = changed.get("state_shape", (samples, filters * frames))
    state = writer.tensor(shape, state_kind, state_affine, is_variable=True)
    result = writer.tensor(
        (samples, units),
        "float32" if is_float else "int8",
        affine(0.02, 0.3, int(random.integers(-128, 128))),
    )
    options = {
        "rank": changed.get("rank", rank),
        "fusedActivationFunction": changed.get("activation", int(random.integers(2))),
        "asymmetricQuantizeInputs": bool(random.integers(2)),
    }
    inputs = [source, features, time, bias, state]
    writer.operator("SVDF", inputs, [result], ("SVDFOptions", options))
    return writer.build([source], [result])
