"""Ordinary Keras 3 networks, converted as a tutorial does it: fixtures of tests/run.

    python -m venv build/keras && build/keras/bin/pip install tensorflow-cpu==2.21.0
    build/keras/bin/python tools/keras_networks.py [NAME...]

Each network has random weights and is small. It is converted with its batch open and with a batch of 1, in three
forms: int8 all through, int8 with float inputs and outputs, and float32. The files go to tests/data/keras as
`NAME-FORM[-open].tflite`, for tests/run/test_keras_networks.py. Networks over time, whose number of steps the file
leaves open, go to tests/data/keras_over_time in int8 and float32, for tests/run/test_open_recurrence.py; with loops,
which the converter cannot calibrate, in float32 alone (2.19.1 wrote them). TensorFlow is no dependency of the
project; only this script needs it, and the tests compare with LiteRT on what is checked in.
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
from keras import Input, Model, layers

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "keras"
OVER_TIME = FOLDER.parent / "keras_over_time"
FORMS = ("int8", "int8_float_edges", "float32")
SAMPLES = 24

Batch = int | None
Build = Callable[[Batch], Model]


def tutorial(batch: Batch) -> Model:
    """The first network of every tutorial: convolution, normalisation, pool, flatten, dense."""
    x = image = Input((12, 12, 1), batch_size=batch)
    x = layers.Conv2D(4, 3, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dropout(0.5)(x)
    return Model(image, layers.Dense(5, activation="softmax")(x))


def crop_pad_permute(batch: Batch) -> Model:
    """Layers that move elements."""
    x = image = Input((9, 8, 3), batch_size=batch)
    x = layers.Cropping2D(((1, 0), (2, 1)))(x)
    x = layers.Conv2D(4, 3, activation="relu")(layers.ZeroPadding2D(((1, 2), (0, 1)))(x))
    x = layers.Permute((3, 1, 2))(x)
    x = layers.Reshape((-1, 4))(x)
    return Model(image, layers.Dense(3)(x))


def squeeze_excite(batch: Batch) -> Model:
    """A block that weighs its channels."""
    x = image = Input((8, 8, 3), batch_size=batch)
    x = layers.Conv2D(8, 3, padding="same", activation="relu6")(x)
    s = layers.GlobalAveragePooling2D()(x)
    s = layers.Reshape((1, 1, 8))(s)
    s = layers.Dense(4, activation="relu")(s)
    s = layers.Dense(8, activation="sigmoid")(s)
    x = layers.Multiply()([x, s])
    return Model(image, layers.Dense(3)(layers.GlobalAveragePooling2D(keepdims=True)(x)))


def mobilenet_dilated(batch: Batch) -> Model:
    """An inverted residual whose depthwise convolution is dilated."""
    image = Input((10, 10, 4), batch_size=batch)
    x = layers.Conv2D(8, 1, use_bias=False)(image)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.DepthwiseConv2D(3, padding="same", dilation_rate=2, use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.BatchNormalization()(layers.Conv2D(4, 1, use_bias=False)(x))
    x = layers.Add()([image, x])
    return Model(image, layers.Conv2D(2, 3, strides=2, padding="same", dilation_rate=1)(x))


def tcn(batch: Batch) -> Model:
    """A temporal network: causal convolutions whose dilation doubles."""
    x = signal = Input((16, 3), batch_size=batch)
    x = layers.Conv1D(4, 1)(x)
    for dilation in (1, 2, 4):
        y = layers.Conv1D(4, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        x = layers.Add()([x, y])
    return Model(signal, layers.Dense(2)(x[:, -1, :]))


def two_inputs_two_outputs(batch: Batch) -> Model:
    """Named inputs and outputs, two of them of one shape."""
    image = Input((6, 6, 2), batch_size=batch, name="image")
    facts = Input((4,), batch_size=batch, name="facts")
    x = layers.Flatten()(layers.Conv2D(3, 3, activation="relu")(image))
    x = layers.Concatenate()([x, layers.Dense(4, activation="relu")(facts)])
    zeta, alpha = layers.Dense(3, name="zeta")(x), layers.Dense(3, activation="softmax", name="alpha")(x)
    return Model([image, facts], {"zeta": zeta, "alpha": alpha})


def residual_activations(batch: Batch) -> Model:
    """hard_swish and LeakyReLU around a residual."""
    x = image = Input((8, 8, 3), batch_size=batch)
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="hard_swish")(x)
    y = layers.Conv2D(6, 3, padding="same")(x)
    x = layers.Add()([x, layers.LeakyReLU(0.1)(y)])
    return Model(image, layers.Dense(4)(layers.GlobalAveragePooling2D()(layers.LeakyReLU(0.2)(x))))


def time_distributed(batch: Batch) -> Model:
    """One small network at each time step."""
    x = frames = Input((3, 6, 6, 2), batch_size=batch)
    x = layers.TimeDistributed(layers.Conv2D(3, 3, activation="relu"))(x)
    x = layers.TimeDistributed(layers.Flatten())(x)
    return Model(frames, layers.Dense(4)(layers.TimeDistributed(layers.Dense(4))(x)))


def lstm(batch: Batch) -> Model:
    """An unrolled LSTM."""
    signal = Input((4, 3), batch_size=batch)
    return Model(signal, layers.Dense(2)(layers.LSTM(4, unroll=True)(signal)))


def gru(batch: Batch) -> Model:
    """An unrolled GRU that returns its sequence."""
    signal = Input((4, 3), batch_size=batch)
    return Model(signal, layers.Dense(2)(layers.GRU(4, unroll=True, return_sequences=True)(signal)))


def repeat_vector(batch: Batch) -> Model:
    """A vector repeated over time."""
    vector = Input((5,), batch_size=batch)
    x = layers.RepeatVector(4)(layers.Dense(6, activation="tanh")(vector))
    return Model(vector, layers.Conv1D(3, 2)(x))


def upsampling_nearest(batch: Batch) -> Model:
    """A decoder that repeats pixels, and a skip."""
    return _upsampling(batch, "nearest")


def upsampling_bilinear(batch: Batch) -> Model:
    """A decoder that interpolates pixels, and a skip."""
    return _upsampling(batch, "bilinear")


def _upsampling(batch: Batch, interpolation: str) -> Model:
    image = Input((8, 8, 2), batch_size=batch)
    skip = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(skip)
    x = layers.UpSampling2D(2, interpolation=interpolation)(x)
    return Model(image, layers.Conv2D(2, 3, padding="same")(layers.Concatenate()([x, skip])))


def convolutions_1d(batch: Batch) -> Model:
    """Conv1D and SeparableConv1D with a global maximum."""
    x = signal = Input((20, 2), batch_size=batch)
    x = layers.Conv1D(4, 5, strides=2, padding="same", activation="relu")(x)
    x = layers.MaxPooling1D()(layers.SeparableConv1D(6, 3, activation="relu")(x))
    return Model(signal, layers.Dense(3)(layers.GlobalMaxPooling1D()(x)))


def transposed_convolution(batch: Batch) -> Model:
    """Conv2DTranspose with and without overlap."""
    x = image = Input((5, 6, 3), batch_size=batch)
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu")(x)
    return Model(image, layers.Conv2DTranspose(2, 2, strides=1, use_bias=False)(x))


def attention(batch: Batch) -> Model:
    """Self attention over a sequence."""
    x = sequence = Input((6, 8), batch_size=batch)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 4)(x, x)])
    return Model(sequence, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def layer_normalization(batch: Batch) -> Model:
    """A normalised residual block of a mixer."""
    x = sequence = Input((6, 8), batch_size=batch)
    y = layers.Dense(8, activation="relu")(layers.LayerNormalization()(x))
    return Model(sequence, layers.Dense(3)(layers.LayerNormalization()(layers.Add()([x, y]))))


def groups(batch: Batch) -> Model:
    """A convolution of three groups."""
    x = image = Input((7, 7, 6), batch_size=batch)
    x = layers.Conv2D(9, 3, groups=3, padding="same", activation="relu")(x)
    return Model(image, layers.Dense(4)(layers.GlobalMaxPooling2D()(x)))


def smooth_activations(batch: Batch) -> Model:
    """elu, gelu and softplus."""
    x = image = Input((6, 6, 3), batch_size=batch)
    x = layers.Conv2D(4, 3, activation="elu")(x)
    x = layers.Conv2D(4, 2, activation="gelu")(x)
    return Model(image, layers.Dense(4, activation="softplus")(layers.Flatten()(x)))


def ssd_heads(batch: Batch) -> Model:
    """MobileNet-SSD-like: boxes and classes of two scales, joined over their anchors."""
    x = image = Input((16, 16, 3), batch_size=batch, name="image")
    boxes: list[Any] = []
    classes: list[Any] = []
    for channels in (6, 8):
        x = layers.SeparableConv2D(channels, 3, strides=2, padding="same", activation="relu6")(x)
        boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(8, 3, padding="same")(x)))
        classes.append(layers.Reshape((-1, 3))(layers.Conv2D(6, 3, padding="same")(x)))
    scores = layers.Activation("sigmoid")(layers.Concatenate(axis=1)(classes))
    return Model(image, {"boxes": layers.Concatenate(axis=1)(boxes), "scores": scores})


def yolo_heads(batch: Batch) -> Model:
    """YOLO-like: two scales with up-sampling between, sigmoid of centres, exp of sizes."""
    image = Input((16, 16, 3), batch_size=batch, name="image")
    fine = layers.Conv2D(4, 3, strides=2, padding="same", activation="leaky_relu")(image)
    coarse = layers.Conv2D(6, 3, strides=2, padding="same", activation="leaky_relu")(fine)
    up = layers.UpSampling2D(2)(layers.Conv2D(4, 1)(coarse))
    heads: list[Any] = []
    for x in (coarse, layers.Concatenate()([up, fine])):
        raw = layers.Reshape((-1, 6))(layers.Conv2D(12, 1)(x))
        centres = layers.Activation("sigmoid")(raw[..., 0:2])
        sizes = layers.Activation("exponential")(raw[..., 2:4])
        heads.append(layers.Concatenate()([centres, sizes, layers.Activation("sigmoid")(raw[..., 4:])]))
    return Model(image, layers.Concatenate(axis=1)(heads))


def fomo(batch: Batch) -> Model:
    """FOMO-like: a MobileNet cut at an eighth, and a class for each of its cells."""
    x = image = Input((24, 24, 1), batch_size=batch)
    for channels in (4, 6, 8):
        x = layers.DepthwiseConv2D(3, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        x = layers.Conv2D(channels, 1, activation="relu6")(x)
    return Model(image, layers.Softmax()(layers.Conv2D(3, 1)(x)))


NETWORKS: tuple[Build, ...] = (
    tutorial, crop_pad_permute, squeeze_excite, mobilenet_dilated, tcn, two_inputs_two_outputs,
    residual_activations, time_distributed, lstm, gru, repeat_vector, upsampling_nearest, upsampling_bilinear,
    convolutions_1d, transposed_convolution, attention, layer_normalization, groups, smooth_activations,
    ssd_heads, yolo_heads, fomo,
)  # fmt: skip


def gru_over_time() -> Model:
    """A GRU behind a convolution with a stride."""
    x = signal = Input((None, 10), batch_size=1)
    x = layers.Conv1D(6, 3, strides=2, padding="same", activation="relu")(x)
    return Model(signal, layers.Dense(3)(layers.GRU(6)(x)))


def lstm_over_time() -> Model:
    """Two LSTMs, the second of which gives its last step."""
    x = signal = Input((None, 10), batch_size=1)
    x = layers.LSTM(6, return_sequences=True)(x)
    return Model(signal, layers.Dense(3)(layers.LSTM(5)(x)))


def both_ways_over_time() -> Model:
    """A GRU in both directions, and a class of each step."""
    x = signal = Input((None, 10), batch_size=1)
    x = layers.Bidirectional(layers.GRU(4, return_sequences=True))(x)
    return Model(signal, layers.Dense(3, activation="softmax")(x))


def simple_over_time() -> Model:
    """The simplest recurrence."""
    signal = Input((None, 10), batch_size=1)
    return Model(signal, layers.Dense(3)(layers.SimpleRNN(5)(signal)))


def attention_over_time() -> Model:
    """A block of a transformer."""
    signal = Input((None, 10), batch_size=1)
    x = layers.Dense(8)(signal)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 4)(x, x)]))
    return Model(signal, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def upsampled_over_time() -> Model:
    """Steps that are repeated, and windows over them."""
    x = signal = Input((None, 10), batch_size=1)
    x = layers.Conv1D(4, 3, padding="causal", activation="relu")(x)
    return Model(signal, layers.Conv1D(3, 3, padding="same")(layers.UpSampling1D(2)(x)))


def transposed_over_time() -> Model:
    """Transposed convolutions with and without overlap."""
    x = signal = Input((None, 10), batch_size=1)
    x = layers.Conv1DTranspose(4, 3, strides=2, padding="same", activation="relu")(x)
    return Model(signal, layers.Conv1DTranspose(3, 4, strides=2)(x))


NETWORKS_OVER_TIME = (
    gru_over_time, lstm_over_time, both_ways_over_time, simple_over_time, attention_over_time, upsampled_over_time,
    transposed_over_time,
)  # fmt: skip
LOOPS = (gru_over_time, lstm_over_time, both_ways_over_time, simple_over_time)


def randomise(model: Model) -> None:
    """Weights that are not the symmetric ones of a fresh network: statistics and biases included."""
    generator = np.random.default_rng(7)
    for variable in model.variables:
        if "seed" in variable.path:
            continue
        values = generator.normal(0.0, 0.4, variable.shape)
        positive = "variance" in variable.path or "gamma" in variable.path
        variable.assign(np.abs(values) + 0.5 if positive else values)


def samples(model: Model) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Inputs that a converter calibrates with, by the names of the file's signature."""
    generator = np.random.default_rng(8)
    for _ in range(SAMPLES):
        yield {
            value.name: generator.normal(0, 1, (1, *(n or 12 for n in value.shape[1:]))).astype(np.float32)
            for value in model.inputs
        }


def converted(model: Model, form: str) -> bytes:
    """The file of one form."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if form != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: samples(model)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if form == "int8":
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def main(names: list[str]) -> None:
    """Writes the files of the named networks, or of all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for build in NETWORKS:
        if names and build.__name__ not in names:
            continue
        for batch in (None, 1):
            keras.utils.set_random_seed(1)
            model = build(batch)
            randomise(model)
            for form in FORMS:
                name = f"{build.__name__}-{form}{'' if batch else '-open'}.tflite"
                try:
                    content = converted(model, form)
                except Exception as error:  # a converter that cannot is worth a line, and the others go on
                    print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
                    continue
                (FOLDER / name).write_bytes(content)
                print(f"{name}: {len(content)} bytes", flush=True)
    OVER_TIME.mkdir(parents=True, exist_ok=True)
    for network in NETWORKS_OVER_TIME:
        for form in ("float32",) if network in LOOPS else ("int8", "float32"):
            if not names or network.__name__ in names:
                keras.utils.set_random_seed(1)
                model = network()
                randomise(model)
                (OVER_TIME / f"{network.__name__}-{form}.tflite").write_bytes(converted(model, form))


if __name__ == "__main__":
    main(sys.argv[1:])
