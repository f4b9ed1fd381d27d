"""Networks of docs/benchmarks.md that Keras writes, true in architecture and small: the files of tests/data/networks.

    python -m venv build/keras && build/keras/bin/pip install tensorflow-cpu==2.19.0
    build/keras/bin/python tools/benchmark_networks.py [NAME...]

Weights are random by fixed seeds, and batch normalisation has the statistics of the samples that the converter
calibrates with, so that values are alive to the end. A network that is given its state hands it back: such a pair of
input and output has one name but for its end. TensorFlow is no dependency of the project; only this script needs it.
"""

# TensorFlow is not there when types are checked.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import Input, Model, layers, ops

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "networks"
SAMPLES = 12
INT8, INT16, FLOAT = "int8", "int16", "float32"

Tensor = Any


def _normed(x: Tensor, activation: str | None = "relu6") -> Tensor:
    x = layers.BatchNormalization(momentum=0.5)(x)
    return layers.Activation(activation)(x) if activation else x


def _convolution(x: Tensor, filters: int, size: int = 3, strides: int = 1, **options: Any) -> Tensor:
    activation = options.pop("activation", "relu6")
    return _normed(layers.Conv2D(filters, size, strides, "same", use_bias=False, **options)(x), activation)


def _squeezed(x: Tensor) -> Tensor:
    channels = x.shape[-1]
    s = layers.GlobalAveragePooling2D(keepdims=True)(x)
    s = layers.Conv2D(max(8, channels // 4), 1, activation="relu")(s)
    return layers.Multiply()([x, layers.Conv2D(channels, 1, activation="hard_sigmoid")(s)])


def _inverted(x: Tensor, expanded: int, filters: int, size: int, strides: int, **options: Any) -> Tensor:
    """An inverted residual, squeezed if asked for."""
    source, activation = x, options.get("activation", "relu6")
    if expanded != x.shape[-1]:
        x = _convolution(x, expanded, 1, activation=activation)
    x = layers.DepthwiseConv2D(size, strides, "same", use_bias=False)(x)
    x = _normed(x, activation)
    if options.get("is_squeezed"):
        x = _squeezed(x)
    x = _convolution(x, filters, 1, activation=None)
    return layers.Add()([source, x]) if x.shape == source.shape else x


def mobilenet_v3() -> Model:
    """MobileNetV3-Small (Howard and others, 2019, table 2), width 0.35, 96 x 96."""

    def wide(channels: float) -> int:
        return max(8, int(channels * 0.35 + 4) // 8 * 8)

    x = image = Input((96, 96, 3), 1)
    x = _convolution(x, 16, 3, 2, activation="hard_swish")
    rows = (
        (3, 16, 16, True, "relu", 2), (3, 72, 24, False, "relu", 2), (3, 88, 24, False, "relu", 1),
        (5, 96, 40, True, "hard_swish", 2), (5, 240, 40, True, "hard_swish", 1),
        (5, 240, 40, True, "hard_swish", 1), (5, 120, 48, True, "hard_swish", 1),
        (5, 144, 48, True, "hard_swish", 1), (5, 288, 96, True, "hard_swish", 2),
        (5, 576, 96, True, "hard_swish", 1), (5, 576, 96, True, "hard_swish", 1),
    )  # fmt: skip
    for size, expanded, filters, is_squeezed, activation, strides in rows:
        x = _inverted(
            x, wide(expanded), wide(filters), size, strides, activation=activation, is_squeezed=is_squeezed
        )
    x = _convolution(x, wide(576), 1, activation="hard_swish")
    x = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = layers.Conv2D(wide(1024), 1, activation="hard_swish")(x)
    return Model(image, layers.Softmax()(layers.Flatten()(layers.Conv2D(10, 1)(x))))


def efficientnet_lite() -> Model:
    """EfficientNet-Lite0: no squeezing, ReLU6; width 0.25, 96 x 96."""

    def wide(channels: int) -> int:
        return max(8, int(channels * 0.25 + 4) // 8 * 8)

    x = image = Input((96, 96, 3), 1)
    x = _convolution(x, 32, 3, 2)
    rows = (
        (3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 3, 2), (5, 6, 112, 3, 1),
        (5, 6, 192, 4, 2), (3, 6, 320, 1, 1),
    )  # fmt: skip
    for size, expansion, filters, repeats, strides in rows:
        for turn in range(repeats):
            expanded = x.shape[-1] * expansion
            x = _inverted(x, expanded, wide(filters), size, 1 if turn else strides)
    x = layers.GlobalAveragePooling2D()(_convolution(x, 320, 1))
    return Model(image, layers.Dense(10, activation="softmax")(x))


def yolo() -> Model:
    """A tiny YOLO: strided convolutions, two scales with up-sampling, boxes and scores for a detection's end."""
    x = image = Input((96, 96, 3), 1)
    for filters in (8, 16, 32):
        x = _convolution(x, filters, 3, 2, activation="leaky_relu")
    fine = _convolution(x, 48, 3, 2, activation="leaky_relu")
    coarse = _convolution(fine, 64, 3, 2, activation="leaky_relu")
    up = _convolution(coarse, 32, 1, activation="leaky_relu")
    up = layers.Lambda(lambda x: tf.image.resize(x, fine.shape[1:3], "nearest"), (*fine.shape[1:3], 32))(up)
    boxes, scores = [], []
    for seen in (layers.Concatenate()([up, fine]), coarse):
        x = _convolution(seen, 32, 3, activation="leaky_relu")
        boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(3 * 4, 1)(x)))
        scores.append(layers.Reshape((-1, 5))(layers.Conv2D(3 * 5, 1, kernel_initializer="random_normal")(x)))
    found = layers.Activation("sigmoid")(layers.Concatenate(axis=1)(scores))
    return Model(image, {"boxes": layers.Concatenate(axis=1)(boxes), "scores": found})


def unet() -> Model:
    """A U-Net of three levels on 64 x 64 with transposed convolutions."""
    x = image = Input((64, 64, 1), 1)
    skips = []
    for filters in (8, 16, 32):
        x = _convolution(_convolution(x, filters, activation="relu"), filters, activation="relu")
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = _convolution(_convolution(x, 64, activation="relu"), 64, activation="relu")
    for filters, skip in zip((32, 16, 8), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, 2, "same", activation="relu")(x)
        x = layers.Concatenate()([skip, x])
        x = _convolution(_convolution(x, filters, activation="relu"), filters, activation="relu")
    return Model(image, layers.Conv2D(1, 1, activation="sigmoid")(x))


def _lstm(x: Tensor, units: int, number: int, states: dict[str, Tensor]) -> Tensor:
    """One step of an LSTM, whose states come from outside and go there."""
    hidden = Input((units,), 1, name=f"hidden{number}_in")
    cell = Input((units,), 1, name=f"cell{number}_in")
    gates = layers.Dense(4 * units)(layers.Concatenate()([x, hidden]))
    i, f, o = (layers.Activation("sigmoid")(gates[:, n * units : (n + 1) * units]) for n in range(3))
    g = layers.Activation("tanh")(gates[:, 3 * units :])
    new = layers.Add()([layers.Multiply()([f, cell]), layers.Multiply()([i, g])])
    result = layers.Multiply()([o, layers.Activation("tanh")(new)])
    states |= {hidden.name: (hidden, result), cell.name: (cell, new)}
    return result


def _with_states(sources: list[Tensor], result: Tensor, states: dict[str, tuple[Tensor, Tensor]]) -> Model:
    outputs = {"result": result}
    outputs |= {f"{name[:-3]}_out": after for name, (_, after) in states.items()}
    return Model([*sources, *(before for before, _ in states.values())], outputs)


def dtln_first() -> Model:
    """The first half of a DTLN (Westhausen and Meyer, 2020): magnitudes of 257 bins to a mask; 64 units, not 128."""
    states: dict[str, Any] = {}
    magnitudes = Input((257,), 1, name="magnitudes")
    x = _lstm(_lstm(magnitudes, 64, 1, states), 64, 2, states)
    return _with_states([magnitudes], layers.Dense(257, activation="sigmoid")(x), states)


def dtln_second() -> Model:
    """The second half: a learned transform of 512 samples, normalised, masked and transformed back."""
    states: dict[str, Any] = {}
    samples = Input((512,), 1, name="samples")
    encoded = layers.Dense(128, use_bias=False)(samples)
    x = layers.LayerNormalization(epsilon=1e-3)(encoded)
    x = _lstm(_lstm(x, 64, 1, states), 64, 2, states)
    masked = layers.Multiply()([encoded, layers.Dense(128, activation="sigmoid")(x)])
    return _with_states([samples], layers.Dense(512, use_bias=False)(masked), states)


def keyword_transformer() -> Model:
    """KWT (Berg and others, 2021): 98 patches of 40 features, two blocks of one head; SiLU, as TFLM has no GELU."""
    x = features = Input((98, 40), 1)
    x = layers.Dense(64)(x)
    x = layers.Add()([x, _positions(x)])
    for _ in range(2):
        x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(1, 64)(x, x)]))
        y = layers.Dense(64)(layers.Dense(128, activation="silu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    return Model(features, layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling1D()(x)))


def _positions(x: Tensor) -> Tensor:
    values = np.random.default_rng(3).normal(0, 0.5, (1, *x.shape[1:])).astype(np.float32)
    return ops.convert_to_tensor(values)


def gru_denoiser() -> Model:
    """RNNoise (Valin, 2018): 42 features, three GRUs of 24, 48 and 96 units, 22 gains and whether one speaks."""
    states: dict[str, Any] = {}
    features = Input((42,), 1, name="features")
    first = layers.Dense(24, activation="tanh")(features)
    voice = _gru(first, 24, 1, states)
    noise = _gru(layers.Concatenate()([voice, first, features]), 48, 2, states)
    clean = _gru(layers.Concatenate()([voice, noise, features]), 96, 3, states)
    gains = layers.Dense(22, activation="sigmoid")(clean)
    speaks = layers.Dense(1, activation="sigmoid")(voice)
    return _with_states([features], layers.Concatenate()([gains, speaks]), states)


def _gru(x: Tensor, units: int, number: int, states: dict[str, Tensor]) -> Tensor:
    """One step of a GRU, whose state comes from outside and goes there."""
    hidden = Input((units,), 1, name=f"hidden{number}_in")
    gates = layers.Add()([layers.Dense(2 * units)(x), layers.Dense(2 * units, use_bias=False)(hidden)])
    gates = layers.Activation("sigmoid")(gates)
    update, reset = gates[:, :units], gates[:, units:]
    seen = layers.Dense(units, use_bias=False)(layers.Multiply()([reset, hidden]))
    other = layers.ReLU()(layers.Add()([layers.Dense(units)(x), seen]))
    kept = layers.Multiply()([update, hidden])
    result = layers.Add()([kept, layers.Multiply()([1.0 - update, other])])
    states[hidden.name] = (hidden, result)
    return result


def tcn() -> Model:
    """A TCN over 98 frames of 40 features: residual blocks of causal convolutions whose dilation doubles."""
    x = features = Input((98, 40), 1)
    x = layers.Conv1D(32, 1, activation="relu")(x)
    for dilation in (1, 2, 4, 8):
        y = layers.Conv1D(32, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        y = layers.Conv1D(32, 3, padding="causal", dilation_rate=dilation)(y)
        x = layers.ReLU()(layers.Add()([x, y]))
    return Model(features, layers.Dense(12, activation="softmax")(x[:, -1, :]))


NETWORKS: dict[Callable[[], Model], tuple[str, ...]] = {
    mobilenet_v3: (INT8,),
    efficientnet_lite: (INT8,),
    yolo: (INT8,),
    unet: (INT8, INT16),
    dtln_first: (INT8, INT16),
    dtln_second: (INT8,),
    keyword_transformer: (INT8,),
    gru_denoiser: (INT8, INT16, FLOAT),
    tcn: (INT8, INT16, FLOAT),
}


def samples(model: Model) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Inputs that normalisation and the converter are given, by the names of the file's signature."""
    generator = np.random.default_rng(8)
    for _ in range(SAMPLES):
        yield {
            value.name: (
                generator.uniform(-1, 1, value.shape)
                if value.name.endswith("_in")
                else generator.normal(0, 1, value.shape)
            ).astype(np.float32)
            for value in model.inputs
        }


def converted(model: Model, form: str) -> bytes:
    """The file of one form; detections need real numbers."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    kinds = tf.lite.OpsSet
    if form != FLOAT:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: samples(model)
        converter.target_spec.supported_ops = [
            kinds.TFLITE_BUILTINS_INT8
            if form == INT8
            else kinds.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
        # CMSIS-NN has no 16x8 FULLY_CONNECTED with a scale for each channel.
        converter._experimental_disable_per_channel_quantization_for_dense_layers = form == INT16
        converter.inference_input_type = converter.inference_output_type = getattr(tf, form)
    return converter.convert()


def main(names: list[str]) -> None:
    """Writes the files of the named networks, or of all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for build, forms in NETWORKS.items():
        if names and build.__name__ not in names:
            continue
        keras.utils.set_random_seed(1)
        model = build()
        for _ in range(3):
            for sample in samples(model):
                model([sample[value.name] for value in model.inputs], training=True)
        for form in forms:
            content = converted(model, form)
            (FOLDER / f"{build.__name__}-{form}.tflite").write_bytes(content)
            print(f"{build.__name__}-{form}: {len(content)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
