"""Unit-test data of CMSIS-NN, read from headers of a copy of its repository, as models of one operator.

A folder of TestData has arrays, and constants whose names begin with the folder's. Padding that is neither SAME nor
VALID is an operator before, and limits that no activation has are MINIMUM and MAXIMUM behind; both are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.exact_scales import exact_quotient, exact_scales, quantized_multiplier
from support.recurrent_models import Writer
from tflite_writer import OPTIONAL, ModelBuilder

Array = NDArray[Any]
VARIABLE = "BYTEWRIGHT_CMSIS_NN"
TEST_DATA = Path("Tests/UnitTest/TestCases/TestData")
_INCLUDE = re.compile(r'#include "(\w+\.h)"')
_ARRAY = re.compile(r"const (u?int\d+)_t (\w+)\[\d*\]\s*=\s*\{([^}]*)\}")
_CONSTANT = re.compile(r"#define (\w+)\s+(?:\{([^}]*)\}|(\S+))")


@dataclass(frozen=True, slots=True)
class Case:
    """A model, the inputs of its runs, and what the last one gives."""

    content: bytes
    batch: list[list[Array]]
    wanted: Array


@dataclass(frozen=True)
class Vector:
    """A folder of test data."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's."""
        return self.folder.name

    @cached_property
    def _text(self) -> str:
        headers = _INCLUDE.findall((self.folder / "test_data.h").read_text(encoding="utf-8"))
        return "\n".join((self.folder / header).read_text(encoding="utf-8") for header in headers)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """By their names behind the folder's."""
        found = {name: (dtype, values) for dtype, name, values in _ARRAY.findall(self._text)}
        return {
            name.removeprefix(f"{self.name}_"): np.array(_integers(values), np.int64).astype(dtype)
            for name, (dtype, values) in found.items()
        }

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Likewise: numbers, words, or lists of numbers."""
        flat = self._text.replace("\\\n", " ")
        return {
            name.removeprefix(f"{self.name.upper()}_"): _integers(values) if values else _number(word)
            for name, values, word in _CONSTANT.findall(flat)
        }

    def __getitem__(self, name: str) -> int:
        return self.constants[name]

    def array(self, *names: str) -> Array:
        """The first of these that is there."""
        return next(self.arrays[name] for name in names if name in self.arrays)

    @property
    def is_narrow(self) -> bool:
        """Whether weights are int4."""
        return "int4" in self.name or self.constants.get("W_TYPE") == "INT4"

    def weights(self, shape: tuple[int, ...], *names: str) -> Array:
        """In a shape; two of int4 are in a byte, the lower first."""
        values = self.array(*(names or ("weights", "input_weights")))
        if self.is_narrow:
            low, high = (values << 4).astype(np.int8) >> 4, values >> 4
            values = np.stack([low, high], axis=1).reshape(-1)[: int(np.prod(shape))]
        return values.reshape(shape)

    @property
    def bias(self) -> Array | None:
        """None where the data has none; zeros where the type of none says that int16 is rounded as with 32 bits."""
        names = [name for name in ("biases", "bias", "input_bias") if name in self.arrays]
        if not names and "xint32" in self.name:
            return np.zeros(self["OUT_CH"], np.int32)
        return self.arrays[names[0]] if names else None


def _integers(text: str) -> list[int]:
    return [int(word, 0) for word in text.replace(",", " ").split()]


def _number(word: str) -> Any:
    return int(word) if re.fullmatch(r"-?\d+", word) else word


class InexpressibleError(Exception):
    """Why no file has these numbers."""


class _Model:
    """A model while it is written, whose value so far has a type and quantisation."""

    def __init__(self, given: Array, affine: tuple[float, int]) -> None:
        self.builder = ModelBuilder()
        self.dtype, self.number = str(given.dtype), 0
        self.source = self.value = self.tensor(given.shape, self.dtype, affine)
        self.shape, self.affine = given.shape, affine

    def tensor(self, shape: tuple[int, ...], dtype: str, affine: tuple[float, int]) -> int:
        self.number += 1
        scale, zero_point = affine
        return self.builder.tensor(f"t{self.number}", shape, dtype, scale=scale, zero_point=zero_point)

    def constant(self, values: Array, **affine: Any) -> int:
        self.number += 1
        narrow = affine.pop("dtype", str(values.dtype))
        return self.builder.tensor(f"t{self.number}", values.shape, narrow, data=values, **affine)

    def add(
        self, kind: str, shape: tuple[int, ...], affine: tuple[float, int], *operands: int, **options: Any
    ) -> None:
        result = self.tensor(shape, options.pop("dtype", self.dtype), affine)
        self.builder.operator(kind, [self.value, *operands], [result], **options)
        self.value, self.shape, self.affine = result, shape, affine

    def pad(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        """Rows and columns of zero points."""
        widths = [[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]]
        shape = tuple(extent + sum(width) for extent, width in zip(self.shape, widths, strict=True))
        self.add("PAD", shape, self.affine, self.constant(np.array(widths, np.int32)))

    def limit(self, low: int, high: int) -> None:
        """Between two numbers of the type, where they say anything."""
        limits = np.iinfo(self.dtype)
        scale, zero_point = self.affine
        for kind, bound, is_free in (
            ("MINIMUM", high, high >= limits.max),
            ("MAXIMUM", low, low <= limits.min),
        ):
            if not is_free:
                value = np.full((1,) * len(self.shape), bound, self.dtype)
                constant = self.constant(value, scale=scale, zero_point=zero_point)
                self.add(kind, self.shape, self.affine, constant)

    def case(self, given: Array, wanted: Array, *further: tuple[int, Array]) -> Case:
        inputs = [self.source, *(index for index, _ in further)]
        batch = [[given, *(array for _, array in further)]]
        return Case(self.builder.build(inputs, [self.value]), batch, wanted.reshape(self.shape))


def _convolution(vector: Vector) -> Iterator[Case]:
    """CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV; several of some channels each, where no scales suit all."""
    name = vector.name
    kind = "TRANSPOSE_CONV" if "transpose_conv" in name else "CONV_2D"
    kind = "DEPTHWISE_CONV_2D" if name.startswith(("depthwise", "dw_")) else kind
    given = vector.array("input").reshape(
        vector["INPUT_BATCHES"], vector["INPUT_H"], vector["INPUT_W"], vector["IN_CH"]
    )
    multipliers, shifts = vector.array("output_mult", "output_multiplier"), vector.array("output_shift")
    channels = vector["OUT_CH"]
    shape = (vector["INPUT_BATCHES"], vector["OUTPUT_H"], vector["OUTPUT_W"], channels)
    wanted = vector.array("output_ref", "output").reshape(shape)
    depth = vector.constants.get("FILTER_CH", vector["IN_CH"])
    window = (vector["FILTER_Y"], vector["FILTER_X"])
    is_depthwise = kind == "DEPTHWISE_CONV_2D"
    weights = vector.weights((1, *window, channels) if is_depthwise else (channels, *window, depth))
    parts = [slice(0, channels)]
    while parts:
        part = parts.pop()
        scales = exact_scales(multipliers[part].tolist(), shifts[part].tolist())
        if scales is None and part.stop - part.start > 1 and not is_depthwise:
            middle = (part.start + part.stop) // 2
            parts += [slice(part.start, middle), slice(middle, part.stop)]
            continue
        if scales is None:
            raise InexpressibleError("no scales of float32 make its multipliers")
        own = weights[..., part] if is_depthwise else weights[part]
        yield _of_window(vector, kind, given, own, part, scales, wanted[..., part])


def _of_window(
    vector: Vector, kind: str, given: Array, weights: Array, part: slice, scales: Any, wanted: Array
) -> Case:
    before, by_channel, after = scales
    model = _Model(given, (before, -vector["INPUT_OFFSET"]))
    window, axis = weights.shape[1:3], 3 if kind == "DEPTHWISE_CONV_2D" else 0
    strides = (vector["STRIDE_Y"], vector["STRIDE_X"])
    dilations = (vector["DILATION_Y"], vector["DILATION_X"])
    pads = (vector["PAD_Y"], vector["PAD_X"])
    options = {"stride_h": strides[0], "stride_w": strides[1]}
    operands = [
        model.constant(
            weights,
            scale=by_channel,
            quantized_dimension=axis,
            dtype="int4" if vector.is_narrow else "int8",
        )
    ]
    if vector.bias is not None:
        bias = vector.bias[part]
        operands.append(
            model.constant(bias, scale=[before * scale for scale in by_channel], quantized_dimension=0)
        )
    elif kind != "TRANSPOSE_CONV":
        operands.append(OPTIONAL)
    affine = (after, vector["OUTPUT_OFFSET"])
    if kind == "TRANSPOSE_CONV":
        is_same = all(wanted.shape[n + 1] == given.shape[n + 1] * strides[n] for n in (0, 1))
        source, form = model.value, model.constant(np.array(wanted.shape, np.int32))
        model.value = form
        model.add(
            kind, wanted.shape, affine, operands[0], source, *operands[1:], padding="SAME" if is_same else "VALID",
            **options,
        )  # fmt: skip
    else:
        padding = _padded(model, window, strides, dilations, pads, wanted.shape[1:3])
        if dilations != (1, 1):
            options |= {"dilation_h_factor": dilations[0], "dilation_w_factor": dilations[1]}
        if kind == "DEPTHWISE_CONV_2D":
            options["depth_multiplier"] = vector["CH_MULT"]
        model.add(kind, wanted.shape, affine, *operands, padding=padding, **options)
    model.limit(vector["OUT_ACTIVATION_MIN"], vector["OUT_ACTIVATION_MAX"])
    return model.case(given, wanted)


def _quotient(multiplier: int, shift: int) -> tuple[float, float]:
    found = exact_quotient(multiplier, shift)
    if found is None:
        raise InexpressibleError("no two scales of float32 make its multiplier")
    return found


Pair = tuple[int, int]


def _padded(model: _Model, window: Any, strides: Pair, dilations: Pair, pads: Pair, extents: Any) -> str:
    """What padding an operator is given, with what else there is before it."""
    reach = [(extent - 1) * dilation + 1 for extent, dilation in zip(window, dilations, strict=True)]
    rows = model.shape[1:3]
    total = [max(0, (extents[n] - 1) * strides[n] + reach[n] - rows[n]) for n in (0, 1)]
    is_same = all(extents[n] == -(-rows[n] // strides[n]) and pads[n] == total[n] // 2 for n in (0, 1))
    if is_same:
        return "SAME"
    if any(total):
        model.pad(pads, (total[0] - pads[0], total[1] - pads[1]))
    fits = all((model.shape[n + 1] - reach[n]) // strides[n] + 1 == extents[n] for n in (0, 1))
    if not fits:
        raise InexpressibleError("its result is smaller than its windows allow")
    return "VALID"


def _fully_connected(vector: Vector) -> Iterator[Case]:
    depth, channels = vector["ACCUMULATION_DEPTH"], vector["OUT_CH"]
    given = vector.array("input").reshape(-1, depth)
    weights = vector.weights((channels, depth))
    if "OUTPUT_MULTIPLIER" in vector.constants:
        weight, after = _quotient(vector["OUTPUT_MULTIPLIER"], vector["OUTPUT_SHIFT"])
        before, by_channel = 1.0, [weight]
    else:
        found = exact_scales(
            vector.array("output_multiplier").tolist(), vector.array("output_shift").tolist()
        )
        if found is None:
            raise InexpressibleError("no scales of float32 make its multipliers")
        before, by_channel, after = found
    model = _Model(given, (before, -vector["INPUT_OFFSET"]))
    zero_point = -vector.constants.get("FILTER_OFFSET", 0)
    dtype = "int4" if vector.is_narrow else "int8"
    zeros = {"zero_point": zero_point} if zero_point else {}
    full = model.constant(weights, scale=by_channel, quantized_dimension=0, dtype=dtype, **zeros)
    operands = [full, OPTIONAL]
    if vector.bias is not None:
        scales = [before * scale for scale in by_channel]
        operands[1] = model.constant(vector.bias, scale=scales, quantized_dimension=0)
    affine = (after, vector["OUTPUT_OFFSET"])
    model.add("FULLY_CONNECTED", (len(given), channels), affine, *operands)
    model.limit(vector["OUT_ACTIVATION_MIN"], vector["OUT_ACTIVATION_MAX"])
    yield model.case(given, vector.array("output_ref", "output"))


def _pool(vector: Vector) -> Iterator[Case]:
    given = vector.array("input_tensor", "input").reshape(
        -1, vector["INPUT_H"], vector["INPUT_W"], vector["INPUT_C"]
    )
    kind = "AVERAGE_POOL_2D" if vector.name.startswith("avg") else "MAX_POOL_2D"
    shape = (len(given), vector["OUTPUT_H"], vector["OUTPUT_W"], vector["OUTPUT_C"])
    model = _Model(given, (0.5, 0))
    model.add(
        kind, shape, model.affine, padding=vector["PAD"], stride_h=vector["STRIDE_H"], stride_w=vector["STRIDE_W"],
        filter_height=vector["FILTER_H"], filter_width=vector["FILTER_W"],
    )  # fmt: skip
    model.limit(vector["ACTIVATION_MIN"], vector["ACTIVATION_MAX"])
    yield model.case(given, vector.array("output", "output_ref"))


def _softmax(vector: Vector) -> Iterator[Case]:
    given = vector.array("input").reshape(vector["NUM_ROWS"], vector["ROW_SIZE"])
    wanted = vector.array("output_ref")
    multiplier, shift = vector["INPUT_MULT"], vector["INPUT_LEFT_SHIFT"]
    # Of int8 a difference is shifted left by 26, of int16 a step is a part of 10 in 65535.
    scale = multiplier * 2.0 ** (shift - 31)
    scale = scale * 10.0 / 65535.0 if given.dtype == np.int16 else scale / 2.0**26
    model = _Model(given, (float(np.float32(scale)), 0))
    affine = (1 / 256, -128) if wanted.dtype == np.int8 else (1 / 32768, 0)
    affine = (1 / 65536, -32768) if wanted.dtype != given.dtype else affine
    model.add("SOFTMAX", given.shape, affine, dtype=str(wanted.dtype), beta=1.0)
    yield model.case(given, wanted)


def _arithmetic(vector: Vector) -> Iterator[Case]:
    """ADD and MUL."""
    first, second = vector.array("input1"), vector.array("input2")
    if vector.name.startswith("mul"):
        kind, (scale, after) = "MUL", _quotient(vector["OUTPUT_MULT"], vector["OUTPUT_SHIFT"])
        scales = (scale, 1.0)
    else:
        # Each is scaled by twice the larger of both, and that by the result's.
        kind = "ADD"
        parts = [vector[f"INPUT{n}_MULT"] * 2.0 ** (vector[f"INPUT{n}_SHIFT"] - 31) for n in (1, 2)]
        scales = (2 * parts[0], 2 * parts[1])
        real = vector["OUTPUT_MULT"] * 2.0 ** (vector["OUTPUT_SHIFT"] - 31)
        after = 2 * max(scales) / (real * 2.0 ** vector["LEFT_SHIFT"])
    model = _Model(first, (scales[0], -vector["INPUT1_OFFSET"]))
    other = model.tensor(second.shape, model.dtype, (scales[1], -vector["INPUT2_OFFSET"]))
    model.add(kind, first.shape, (after, vector["OUTPUT_OFFSET"]), other)
    model.limit(vector["OUT_ACTIVATION_MIN"], vector["OUT_ACTIVATION_MAX"])
    yield model.case(first, vector.array("output_ref"), (other, second))


def _matrices(vector: Vector) -> Iterator[Case]:
    left, right = (
        vector.array(f"{side.lower()}_input_tensor").reshape(
            *(vector[f"{side}_{part}"] for part in ("BATCH", "HEIGHT", "ROWS", "COLS"))
        )
        for side in ("LHS", "RHS")
    )
    shape = tuple(vector[f"OUTPUT_{part}"] for part in ("BATCH", "HEIGHT", "ROWS", "COLS"))
    scale, after = _quotient(vector["OUTPUT_MULTIPLIER"], vector["OUTPUT_SHIFT"])
    model = _Model(left, (scale, -vector["LHS_OFFSET"]))
    other = model.tensor(right.shape, model.dtype, (1.0, -vector["RHS_OFFSET"]))
    flags = {"adj_x": bool(vector["ADJ_X"]), "adj_y": bool(vector["ADJ_Y"])}
    model.add("BATCH_MATMUL", shape, (after, vector["OUTPUT_OFFSET"]), other, **flags)
    yield model.case(left, vector.array("output"), (other, right))


def _extreme(vector: Vector) -> Iterator[Case]:
    """MAXIMUM and MINIMUM, one of whose operands may be repeated."""
    first, second = (
        vector.array(f"input_tensor_{n}").reshape(
            *(vector[f"{part}_{n}"] for part in ("BATCH", "HEIGHT", "WIDTH", "CHANNEL"))
        )
        for n in (1, 2)
    )
    model = _Model(first, (0.5, 3))
    other = model.tensor(second.shape, model.dtype, model.affine)
    shape = np.broadcast_shapes(first.shape, second.shape)
    model.add(vector.constants["LAYER_TYPE"].upper(), shape, model.affine, other)
    yield model.case(first, vector.array("output"), (other, second))


def _pad(vector: Vector) -> Iterator[Case]:
    given = vector.array("input_tensor").reshape(*(vector[f"INPUT_{axis}"] for axis in "NHWC"))
    widths = [[vector[f"PRE_PAD_{axis}"], vector[f"POST_PAD_{axis}"]] for axis in "NHWC"]
    model = _Model(given, (0.5, vector["PAD_VALUE"]))
    shape = tuple(extent + sum(width) for extent, width in zip(given.shape, widths, strict=True))
    model.add("PAD", shape, model.affine, model.constant(np.array(widths, np.int32)))
    yield model.case(given, vector.array("output"))


def _transpose(vector: Vector) -> Iterator[Case]:
    rank = vector["PERM_SIZE"]
    axes = vector.constants["PERM"][:rank]
    given = vector.array("input_tensor").reshape(vector.constants["IN_DIM"][:rank])
    model = _Model(given, (0.5, 0))
    shape = tuple(given.shape[axis] for axis in axes)
    model.add("TRANSPOSE", shape, model.affine, model.constant(np.array(axes, np.int32)))
    yield model.case(given, vector.array("output"))


def _svdf(vector: Vector) -> Iterator[Case]:
    batches, filters, memory = vector["INPUT_BATCHES"], vector["FEATURE_BATCHES"], vector["TIME_BATCHES"]
    runs = vector.array("input_sequence").reshape(-1, batches, vector["INPUT_SIZE"])
    state, wanted = vector.array("state"), vector.array("output_ref").reshape(batches, -1)
    if state.any():
        raise InexpressibleError("its state does not begin with zeros")
    limits = [vector["OUT_ACTIVATION_MIN"], vector["OUT_ACTIVATION_MAX"]]
    if limits != [-128, 127]:
        raise InexpressibleError(f"it is limited to {limits}")
    first, middle = _quotient(vector["MULTIPLIER_IN"], vector["SHIFT_1"])
    second, after = _quotient(vector["MULTIPLIER_OUT"], vector["SHIFT_2"])
    writer = Writer()
    features = vector.weights((filters, vector["INPUT_SIZE"]), "weights_feature")
    time = vector.weights((filters, memory), "weights_time")
    bias = vector.bias
    operands = [
        writer.tensor(
            (batches, vector["INPUT_SIZE"]), "int8", (1.0, vector["INPUT_OFFSET"])
        ),  # a zero point here
        writer.tensor(features.shape, "int8", (first, 0), features),
        writer.tensor(time.shape, str(time.dtype), (second / middle, 0), time),
        -1 if bias is None else writer.tensor(bias.shape, "int32", (second, 0), bias),
        writer.tensor((batches, filters * memory), str(state.dtype), (middle, 0), is_variable=True),
    ]
    result = writer.tensor(wanted.shape, "int8", (after, vector["OUTPUT_OFFSET"]))
    writer.operator("SVDF", operands, [result], ("SVDFOptions", {"rank": vector["RANK"]}))
    yield Case(writer.build(operands[:1], [result]), [[run] for run in runs], wanted)


_GATES = ("input", "forget", "cell", "output")
_GATE_SCALE = 2.0**-12


def _lstm(vector: Vector) -> Iterator[Case]:
    samples, steps = vector["BATCH_SIZE"], vector["TIME_STEPS"]
    depth, units = vector["INPUT_SIZE"], vector["HIDDEN_SIZE"]
    cell = 2.0 ** vector["CELL_SCALE_POWER"]
    if vector["INPUT_TO_CELL_MULTIPLIER"] != 2**30:
        raise InexpressibleError("what goes into its cell is scaled by no power of two")
    given, wanted = vector.array("input_tensor"), vector.array("output")
    is_time_major = vector.constants["TIME_MAJOR"] == "true"
    lead = (steps, samples) if is_time_major else (samples, steps)
    hidden_scale = _near(2.0**-30 / _real(vector, "OUTPUT"), lambda scale: 2.0**-30 / scale, vector, "OUTPUT")
    affines = {"INPUT": 2.0**-7, "HIDDEN": hidden_scale}
    writer, zero_point = Writer(), vector["OUTPUT_ZERO_POINT"]

    def weights(gate: str, side: str, width: int) -> int:
        name, over = f"{gate.upper()}_GATE_{side}", np.float32(affines[side])
        scale = _near(
            _real(vector, name) * _GATE_SCALE / float(over),
            lambda scale: float(over * np.float32(scale)) / _GATE_SCALE,
            vector,
            name,
        )
        values = vector.array(f"{name.lower()}_weights").reshape(units, width)
        return writer.tensor(values.shape, "int8", (scale, 0), values)

    source = writer.tensor((*lead, depth), "int8", (affines["INPUT"], -vector["INPUT_ZERO_POINT"]))
    over_input = [weights(gate, "INPUT", depth) for gate in _GATES]
    over_hidden = [weights(gate, "HIDDEN", units) for gate in _GATES]
    biases = [
        writer.tensor((units,), "int32", (1e-4, 0), vector.array(f"{gate}_gate_bias")) for gate in _GATES
    ]
    hidden = writer.tensor((samples, units), "int8", (hidden_scale, zero_point), is_variable=True)
    state = writer.tensor((samples, units), "int16", (cell, 0), is_variable=True)
    result = writer.tensor((*lead, units), "int8", (hidden_scale, zero_point))
    between = [writer.tensor((0,), "float32") for _ in range(4)]
    between.append(writer.tensor((0,), "int8", (hidden_scale, zero_point)))
    inputs = [source, *over_input, *over_hidden, -1, -1, -1, *biases, -1, -1, hidden, state, -1, -1, -1, -1]
    options = {
        "fusedActivationFunction": 4,
        "cellClip": 0.0 if vector["CELL_CLIP"] == 32767 else vector["CELL_CLIP"] * cell,
        "timeMajor": is_time_major,
    }
    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    writer.operator(kind, inputs, [result], ("UnidirectionalSequenceLSTMOptions", options), *between)
    batch = [[given.reshape(*lead, depth)]]
    yield Case(writer.build([source], [result]), batch, wanted.reshape(*lead, units))


def _real(vector: Vector, name: str) -> float:
    return vector[f"{name}_MULTIPLIER"] * 2.0 ** (vector[f"{name}_SHIFT"] - 31)


def _near(guess: float, real: Callable[[float], float], vector: Vector, name: str) -> float:
    """The float32 number near a guess, of which what is scaled by has the multiplier of that name."""
    steps = np.float32(guess) * (1 + np.arange(-4, 5) * np.float32(2.0**-24))
    for scale in map(float, dict.fromkeys(steps.astype(np.float32))):
        multiplier, _ = quantized_multiplier(np.array(real(scale)))
        if multiplier == vector[f"{name}_MULTIPLIER"]:
            return scale
    raise InexpressibleError(f"no scale of float32 makes {name}'s multiplier")


KINDS: dict[str, Callable[[Vector], Iterator[Case]]] = {
    "transpose_conv": _convolution,
    "reverse_transpose": _convolution,
    "depthwise": _convolution,
    "dw_": _convolution,
    "fully_connected": _fully_connected,
    "fc_": _fully_connected,
    "avgpool": _pool,
    "maxpool": _pool,
    "softmax": _softmax,
    "add": _arithmetic,
    "mul": _arithmetic,
    "batch_matmul": _matrices,
    "maximum": _extreme,
    "minimum": _extreme,
    "pad": _pad,
    "transpose": _transpose,
    "svdf": _svdf,
    "lstm": _lstm,
    "conv": _convolution,
    "basic": _convolution,
    "grouped_conv": _convolution,
    "in_ch": _convolution,
    "int16xint8": _convolution,
    "kernel1x1": _convolution,
    "requantize": _convolution,
    "stride2pad1": _convolution,
}
"""What makes the models of a folder, by how its name begins; the first that fits."""


def cases_of(vector: Vector) -> list[Case]:
    """The models of a folder.

    Raises:
        InexpressibleError: No file has its numbers.
    """
    return list(next(make for start, make in KINDS.items() if vector.name.startswith(start))(vector))


def vectors(copy: Path) -> list[Vector]:
    """The folders of integers that have models here, in alphabetical order."""
    folders = sorted(path.parent for path in (copy / TEST_DATA).glob("*/test_data.h"))
    return [
        Vector(folder)
        for folder in folders
        if not re.search(r"_f(16|32)(_|$)", folder.name) and folder.name.startswith(tuple(KINDS))
    ]
