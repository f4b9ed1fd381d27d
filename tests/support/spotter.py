"""A keyword spotter in one file: samples in, classes out, as TensorFlow Lite Micro's micro_speech does it in two.

Each run takes 20 ms of sound at 16 kHz: a framer keeps 10 ms of the last run, a front end makes 40 features of both, a
circular buffer keeps those of 49 runs, and a classifier reads them all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.audio_models import ELEMENT_TYPES, SUBTRACTION, gains
from support.recurrent_models import Writer, schema

Array = NDArray[Any]
RATE, STEP, FRAME, LENGTH = 16000, 320, 480, 512
FEATURES, FRAMES, CLASSES = 40, 49, 4
_START, _END = 5, 241


def _bands() -> tuple[list[Array], int]:
    """Triangles over mel frequencies: weights, those of the next band, and where bands begin; and the first energy."""

    def mel(hertz: float) -> float:
        return 1127.0 * float(np.log1p(hertz / 700.0))

    low, high = mel(125.0), mel(7500.0)
    ends = low + (high - low) / (FEATURES + 1) * np.arange(1, FEATURES + 2)
    mels = [mel(number * RATE / LENGTH) for number in range(LENGTH // 2 + 1)]
    own: list[float] = []
    starts, firsts, widths = [], [], []
    place = next(number for number, value in enumerate(mels) if value >= low)
    for channel, end in enumerate(ends):
        begin = ends[channel - 1] if channel else low
        starts.append(place)
        firsts.append(len(own))
        while mels[place] < end:
            own.append((end - mels[place]) / (end - begin))
            place += 1
        widths.append(place - starts[-1])
    weights = np.floor(np.array(own) * 4096 + 0.5)
    return [np.asarray(each) for each in (weights, 4096 - weights, starts, firsts, widths)], starts[0]


def front_end() -> bytes:
    """A frame [1,480] of samples to features int8 [40], operator by operator as `audio_preprocessor_int8.tflite`."""
    writer = Writer()
    window = np.round(4096 * (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(FRAME) + 0.5) / FRAME)))

    def constant(values: Any, dtype: str = "int16") -> int:
        array = np.asarray(values).astype(dtype)
        return writer.tensor(array.shape, dtype, values=array)

    def custom(
        kind: str, inputs: list[int], *results: tuple[tuple[int, ...], str], **options: int
    ) -> list[int]:
        outputs = [writer.tensor(*result) for result in results]
        writer.custom(f"Signal{kind}", inputs, outputs, **options)
        return outputs

    def builtin(kind: str, inputs: list[int], shape: tuple[int, ...], dtype: str, options: str) -> int:
        result = writer.tensor(shape, dtype)
        writer.operator(kind, inputs, [result], (options, {}))
        return result

    bands, _ = _bands()
    count = LENGTH // 2 + 1
    source = writer.tensor((1, FRAME), "int16")
    (windowed,) = custom("Window", [source, constant(window)], ((1, FRAME), "int16"), shift=12)
    flat = builtin("RESHAPE", [windowed, constant([FRAME], "int32")], (FRAME,), "int16", "ReshapeOptions")
    scaled, bits = custom("FftAutoScale", [flat], ((FRAME,), "int16"), ((), "int32"))
    (spectrum,) = custom(
        "Rfft", [scaled], ((LENGTH + 2,), "int16"), T=ELEMENT_TYPES["int16"], fft_length=LENGTH
    )
    (energies,) = custom("Energy", [spectrum], ((count,), "uint32"), start_index=_START, end_index=_END)
    (sums,) = custom(
        "FilterBank",
        [energies, *(constant(each) for each in bands)],
        ((FEATURES,), "uint64"),
        num_channels=FEATURES,
    )
    (roots,) = custom("FilterBankSquareRoot", [sums, bits], ((FEATURES,), "uint32"))
    kinds = ((FEATURES,), "uint32")
    options = {**SUBTRACTION, "num_channels": FEATURES}
    cleaned, noise = custom("FilterBankSpectralSubtraction", [roots], kinds, kinds, **options)
    (controlled,) = custom("PCAN", [cleaned, noise, constant(gains())], kinds, snr_shift=6)
    (logarithms,) = custom(
        "FilterBankLog", [controlled], ((FEATURES,), "int16"), input_correction_bits=3, output_scale=64
    )
    value = builtin("CAST", [logarithms], (FEATURES,), "int32", "CastOptions")
    for kind, number in (("MUL", 256), ("ADD", 333), ("DIV", 666), ("ADD", -128), ("MINIMUM", 127)):
        named = "MaximumMinimumOptions" if kind == "MINIMUM" else f"{kind.capitalize()}Options"
        value = builtin(kind, [value, constant(number, "int32")], (FEATURES,), "int32", named)
    result = builtin("CAST", [value], (FEATURES,), "int8", "CastOptions")
    return writer.build([source], [result])


def classifier() -> bytes:
    """Features int8 [1,1960] to classes, a layer of each kind with random weights, in the shapes of micro_speech."""
    writer, random = Writer(), np.random.default_rng(5)
    pixel, sums = (0.1, -128), (0.04, -128)

    def weights(shape: tuple[int, ...], scale: float, width: int, over: float) -> tuple[int, int]:
        values = random.integers(-127, 128, shape).astype(np.int8)
        bias = random.integers(-999, 1000, width).astype(np.int32)
        return writer.tensor(shape, "int8", (scale, 0), values), writer.tensor(
            (width,), "int32", (scale * over, 0), bias
        )

    source = writer.tensor((1, FRAMES * FEATURES), "int8", pixel)
    image = writer.tensor((1, FRAMES, FEATURES, 1), "int8", pixel)
    shape = writer.tensor((4,), "int32", values=np.array([1, FRAMES, FEATURES, 1], np.int32))
    writer.operator("RESHAPE", [source, shape], [image], ("ReshapeOptions", {}))
    hidden = writer.tensor((1, 25, 20, 8), "int8", sums)
    options = {"strideW": 2, "strideH": 2, "depthMultiplier": 8, "fusedActivationFunction": 1}
    kernel = weights((1, 10, 8, 8), 0.004, 8, pixel[0])
    writer.operator("DEPTHWISE_CONV_2D", [image, *kernel], [hidden], ("DepthwiseConv2DOptions", options))
    logits = writer.tensor((1, CLASSES), "int8", (0.03, 10))
    full = weights((CLASSES, 4000), 0.003, CLASSES, sums[0])
    writer.operator("FULLY_CONNECTED", [hidden, *full], [logits], ("FullyConnectedOptions", {}))
    result = writer.tensor((1, CLASSES), "int8", (1 / 256, -128))
    writer.operator("SOFTMAX", [logits], [result], ("SoftmaxOptions", {"beta": 1.0}))
    return writer.build([source], [result])


def joined(first: bytes, second: bytes) -> bytes:
    """One file: a framer, the front end, a circular buffer of its features, and the classifier."""
    writer = Writer()
    samples = writer.tensor((1, STEP), "int16")
    framed, valid = writer.tensor((1, 1, FRAME), "int16"), writer.tensor((), "bool")
    writer.custom("SignalFramer", [samples], [framed, valid], frame_size=FRAME, frame_step=STEP, prefill=1)
    given, features = _appended(writer, first)
    _reshape(writer, framed, given)
    own, result = _appended(writer, second)
    graph = writer.graph
    affine = graph.tensors[own].quantization
    scale = float(affine.scale[0]), int(affine.zeroPoint[0])
    frame = writer.tensor((1, 1, FEATURES, 1), "int8", scale)
    graph.tensors[features].quantization = graph.tensors[frame].quantization
    kept = writer.tensor((1, FRAMES, FEATURES, 1), "int8", scale, is_variable=True)
    _reshape(writer, features, frame)
    writer.custom("CIRCULAR_BUFFER", [frame], [kept], cycles_max=1)
    _reshape(writer, kept, own)
    graph.operators = _in_order(graph, samples)
    return writer.build([samples], [result])


def _appended(writer: Writer, content: bytes) -> tuple[int, int]:
    """A model's operators behind those that there are; its first input and output."""
    other, graph = schema.ModelT.InitFromPackedBuf(content, 0), writer.graph
    codes, buffers, tensors = len(writer.model.operatorCodes), len(writer.model.buffers), len(graph.tensors)
    writer.model.operatorCodes += other.operatorCodes
    writer.model.buffers += other.buffers
    (own,) = other.subgraphs
    for tensor in own.tensors:
        tensor.buffer += buffers
        tensor.name = f"{buffers}_{tensor.name}"
    for operator in own.operators:
        operator.opcodeIndex += codes
        operator.inputs = [index + tensors if index >= 0 else index for index in operator.inputs]
        operator.outputs = [index + tensors for index in operator.outputs]
    graph.tensors += own.tensors
    graph.operators += own.operators
    return own.inputs[0] + tensors, own.outputs[0] + tensors


def _reshape(writer: Writer, source: int, result: int) -> None:
    shape = np.array(writer.graph.tensors[result].shape, np.int32)
    values = writer.tensor(shape.shape, "int32", values=shape)
    writer.operator("RESHAPE", [source, values], [result], ("ReshapeOptions", {}))


def _in_order(graph: Any, source: int) -> list[Any]:
    """The operators, each behind those that it reads."""
    made = {index for operator in graph.operators for index in operator.outputs} | {source}
    known, found, left = {source}, [], list(graph.operators)
    while left:
        ready = [op for op in left if all(index in known or index not in made for index in op.inputs)]
        found += ready
        known |= {index for op in ready for index in op.outputs}
        left = [op for op in left if not any(op is each for each in ready)]
    return found


def sound(seconds: float, seed: int = 0) -> Array:
    """Chirps of several loudnesses in noise that grows, a knock at both ends of the type, and silence."""
    random, count = np.random.default_rng(seed), int(seconds * RATE)
    time = np.arange(count) / RATE
    chirp = np.sin(2 * np.pi * (200 * time + 1500 * time**2)) * (0.5 + 0.5 * np.sin(2 * np.pi * 3 * time))
    tone = 0.3 * np.sin(2 * np.pi * 440 * time) * (np.sin(2 * np.pi * 1.5 * time) > 0)
    noise = random.normal(0, 0.05, count) * time / max(seconds, 1e-9)
    whole = np.clip(np.rint(20000 * (chirp + tone + noise)), -(2**15), 2**15 - 1)
    whole[count // 3 : count // 3 + 8] = [32767, -32768] * 4
    whole[count // 2 : count // 2 + 2 * STEP] = 0
    return whole.astype(np.int16)
