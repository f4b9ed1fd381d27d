"""Networks that BW104 refuses, and the same with its advice followed: the fixtures of tests/run/test_advice.py.

    python -m venv build/keras && build/keras/bin/pip install tensorflow-cpu==2.21.0 tf-keras==2.21.0
    build/keras/bin/python tools/advice_networks.py [NAME...]

Each pair goes to tests/data/advice as `NAME-refused.tflite` and `NAME-followed.tflite`, converted as
`tools/keras_networks.py` does it, in float32, with a batch of one and with the same weights in both. tf-keras is
Keras 2, whose LSTM the converter knows as one operator; that of Keras 3 becomes a loop. What no converter writes today
is written here with the schema of TensorFlow Lite. A network that keeps something, and the same with that as an input
and an output, go to tests/data/state, and what is supported since it was refused.
"""

# TensorFlow is not there when types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import keras
import numpy as np
import tensorflow as tf
import tf_keras
from keras import Input, Model, layers
from tensorflow.lite.python import schema_py_generated as schema

from keras_networks import converted, randomise

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
FOLDER, STATE_FOLDER = DATA / "advice", DATA / "state"


class Function(layers.Layer):
    """A function of TensorFlow as a layer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def call(self, *values: Any) -> Any:
        return self.function(*values)


def after_dense(function: Callable[..., Any], units: int = 4) -> Model:
    """A layer, and a function of its result."""
    x = Input((4,), batch_size=1, name="x")
    return Model(x, Function(function)(layers.Dense(units)(x)))


def recurrent(layer: Any, library: Any = keras, steps: int = 4) -> Any:
    """A recurrent layer over a few steps of three features."""
    x = library.Input((steps, 3), batch_size=1, name="x")
    return library.Model(x, layer(x))


def lstm(unroll: bool) -> Any:
    return recurrent(tf_keras.layers.LSTM(2, unroll=unroll), tf_keras)


def bidirectional_lstm(unroll: bool) -> Any:
    layer = tf_keras.layers.LSTM(1, unroll=unroll)
    return recurrent(tf_keras.layers.Bidirectional(layer), tf_keras, steps=2)


def keras3_lstm(unroll: bool) -> Model:
    return recurrent(layers.LSTM(2, unroll=unroll))


def gru(unroll: bool) -> Model:
    return recurrent(layers.GRU(2, unroll=unroll, reset_after=False))


def rnn(unroll: bool) -> Model:
    return recurrent(layers.SimpleRNN(2, unroll=unroll))


def loop(is_written_out: bool) -> Model:
    """A recurrence of a fixed number of steps: as a loop of TensorFlow, and as a loop of Python."""

    def step(count: Any, x: Any) -> Any:
        return count + 1, tf.tanh(x * 1.5 + 0.25)

    def looped(x: Any) -> Any:
        return tf.while_loop(lambda count, _: count < 3, step, [tf.constant(0), x])[1]

    def written_out(x: Any) -> Any:
        for count in range(3):
            _, x = step(count, x)
        return x

    return after_dense(written_out if is_written_out else looped)


def branch(is_chosen: bool) -> Model:
    """One of two functions, by the sign of a sum: as two branches, and as a choice between both results."""

    def branches(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x), lambda: x * 2.0)

    def choice(x: Any) -> Any:
        return tf.where(tf.reduce_sum(x) > 0, tf.tanh(x), x * 2.0)

    return after_dense(choice if is_chosen else branches)


def arg_max(is_left_out: bool) -> Model:
    return after_dense(tf.identity if is_left_out else lambda x: tf.argmax(x, -1, output_type=tf.int32))


def arg_min(is_left_out: bool) -> Model:
    return after_dense(tf.identity if is_left_out else lambda x: tf.argmin(x, -1, output_type=tf.int32))


def top_k(is_left_out: bool) -> Model:
    return after_dense(tf.identity if is_left_out else lambda x: tf.math.top_k(x, 2))


def detections(suppress: Callable[..., Any] | None, **options: float) -> Model:
    """Boxes and scores of eight places, and a choice of three among them, or none."""
    x = Input((8, 6), batch_size=1, name="x")
    raw = layers.Dense(5)(x)

    def chosen(values: Any) -> Any:
        boxes, scores = values[0, :, :4], tf.sigmoid(values[0, :, 4])
        if suppress is None:
            return boxes, scores
        limits = {"max_output_size": 3, "iou_threshold": 0.5, "score_threshold": 0.1}
        return tuple(suppress(boxes=boxes, scores=scores, pad_to_max_output_size=True, **limits, **options))

    return Model(x, Function(chosen)(raw))


def suppression_v4(is_left_out: bool) -> Model:
    return detections(None if is_left_out else tf.raw_ops.NonMaxSuppressionV4)


def suppression_v5(is_left_out: bool) -> Model:
    return detections(None) if is_left_out else detections(tf.raw_ops.NonMaxSuppressionV5, soft_nms_sigma=0.5)


def where(is_left_out: bool) -> Model:
    def above_the_least(x: Any) -> Any:
        return x > tf.reduce_min(x)

    return after_dense(above_the_least if is_left_out else lambda x: tf.where(above_the_least(x)))


def over_rows(function: Callable[..., Any]) -> Model:
    """A layer over three rows, and a function of its result."""
    x = Input((3, 4), batch_size=1, name="x")
    return Model(x, Function(function)(layers.Dense(4)(x)))


def cumulative_sum(is_product: bool) -> Model:
    sums = np.tril(np.ones((1, 3, 3), np.float32))
    return over_rows((lambda x: tf.matmul(sums, x)) if is_product else lambda x: tf.cumsum(x, axis=1))


def one_hot(is_gather: bool) -> Model:
    token = Input((3,), batch_size=1, dtype="int32", name="token")
    function = (lambda t: tf.gather(tf.eye(8), t)) if is_gather else lambda t: tf.one_hot(t, 8)
    return Model(token, layers.Dense(2)(Function(function)(token)))


def fill(is_sum: bool) -> Model:
    return over_rows(
        (lambda x: x[0, 0, 0] + tf.zeros((2, 3))) if is_sum else lambda x: tf.fill((2, 3), x[0, 0, 0])
    )


def floor_division(is_floor: bool) -> Model:
    return over_rows((lambda x: tf.floor(x / 0.375)) if is_floor else lambda x: x // 0.375)


def floor_remainder(is_floor: bool) -> Model:
    return over_rows((lambda x: x - tf.floor(x / 0.375) * 0.375) if is_floor else lambda x: x % 0.375)


def all_of(is_minimum: bool) -> Model:
    def minimum(x: Any) -> Any:
        return tf.reduce_min(tf.cast(x > -1.0, tf.float32), -1) > 0.5

    return over_rows(minimum if is_minimum else lambda x: tf.reduce_all(x > -1.0, -1))


def any_of(is_maximum: bool) -> Model:
    def maximum(x: Any) -> Any:
        return tf.reduce_max(tf.cast(x > 1.0, tf.float32), -1) > 0.5

    return over_rows(maximum if is_maximum else lambda x: tf.reduce_any(x > 1.0, -1))


def product(is_of_parts: bool) -> Model:
    def of_parts(x: Any) -> Any:
        first, second, third = tf.unstack(x, axis=1)
        return first * second * third

    return over_rows(of_parts if is_of_parts else lambda x: tf.reduce_prod(x, 1))


class Average(layers.Layer):
    """A moving average, in a variable of the layer."""

    def build(self, _: Any) -> None:
        self.average = self.add_weight(shape=(1, 4), initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        self.average.assign(self.average * 0.75 + x * 0.25)
        return tf.identity(self.average)


def average(is_a_port: bool) -> Model:
    """A moving average of a layer's results, which the layer keeps, or which comes in and goes out again."""
    x = Input((4,), batch_size=1, name="x")
    now = layers.Dense(4)(x)
    if not is_a_port:
        return Model(x, Average()(now))
    before = Input((4,), batch_size=1, name="average")
    return Model([x, before], Function(lambda a, b: b * 0.75 + a * 0.25)(now, before))


def fake_quant(_: bool) -> Model:
    """A layer that was trained with rounding."""
    return after_dense(lambda x: tf.quantization.fake_quant_with_min_max_args(x, -3.0, 3.0))


def written(tensors: list[tuple[str, tuple[int, ...], Any]], operator: Any, code: int) -> bytes:
    """A file of one operator: its tensors' names, shapes and constants; None for what is computed."""
    buffers = [schema.BufferT()]
    records = []
    for name, shape, values in tensors:
        record = schema.TensorT()
        record.name, record.shape, record.type = name, list(shape), schema.TensorType.FLOAT32
        record.buffer = 0
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.asarray(values, np.float32).tobytes(), np.uint8)
            record.buffer = len(buffers)
            buffers.append(buffer)
        records.append(record)
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = records, [operator]
    graph.inputs, graph.outputs = [0], [len(records) - 1]
    kind = schema.OperatorCodeT()
    kind.deprecatedBuiltinCode = kind.builtinCode = code
    kind.version = 1
    model = schema.ModelT()
    model.version, model.description = 3, "written with the schema"
    model.operatorCodes, model.subgraphs, model.buffers = [kind], [graph], buffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def fake_quant_file(_: Model) -> bytes:
    """The operator that converters wrote before TensorFlow 2."""
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [0], [1]
    operator.builtinOptionsType = schema.BuiltinOptions.FakeQuantOptions
    operator.builtinOptions = schema.FakeQuantOptionsT()
    operator.builtinOptions.min, operator.builtinOptions.max, operator.builtinOptions.numBits = -3.0, 3.0, 8
    return written([("x", (1, 4), None), ("y", (1, 4), None)], operator, schema.BuiltinOperator.FAKE_QUANT)


Network = Callable[[bool], Any]
NETWORKS: tuple[Network, ...] = (
    keras3_lstm, gru, rnn, loop, branch, arg_max, arg_min, top_k, suppression_v4,
    suppression_v5, where, cumulative_sum, one_hot, fill, floor_division, floor_remainder, all_of,
    any_of, product, fake_quant,
)  # fmt: skip
KEPT: tuple[Network, ...] = (lstm, bidirectional_lstm)
"""What is converted to operators that keep something, and not refused."""
WRITTEN: dict[str, Callable[[Model], bytes]] = {"fake_quant": fake_quant_file}


def pair(network: Network) -> tuple[bytes, bytes]:
    """The file that is refused, and the one that follows the advice."""
    models = []
    for is_followed in (False, True):
        for library in (keras, tf_keras):
            library.backend.clear_session()  # the names in a file do not depend on the files before it
        keras.utils.set_random_seed(1)
        model = network(is_followed)
        randomise(model) if isinstance(model, Model) else model.set_weights(weights_for(model))
        for layer in model.layers:
            if isinstance(layer, Average):
                layer.average.assign(np.zeros((1, 4)))
        models.append(model)
    write = WRITTEN.get(network.__name__)
    refused = write(models[1]) if write else converted(models[0], "float32")
    return refused, converted(models[1], "float32")


def weights_for(model: Any) -> list[Any]:
    """Weights of a network of Keras 2."""
    generator = np.random.default_rng(7)
    return [generator.normal(0.0, 0.4, value.shape) for value in model.get_weights()]


def main(names: list[str]) -> None:
    """Writes the files of the named networks, or of all."""
    for network in NETWORKS:
        if not names or network.__name__ in names:
            for part, content in zip(("refused", "followed"), pair(network), strict=True):
                write(FOLDER / f"{network.__name__}-{part}.tflite", content)
    for network in KEPT:
        if not names or network.__name__ in names:
            write(STATE_FOLDER / f"{network.__name__}.tflite", pair(network)[0])
    if not names or average.__name__ in names:
        for name, content in zip(("average", "average-ports"), pair(average), strict=True):
            write(STATE_FOLDER / f"{name}.tflite", content)


def write(path: Path, content: bytes) -> None:
    """Writes a file, and says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"{path.name}: {len(content)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
