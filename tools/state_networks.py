"""Modules of TensorFlow whose branches and loops have variables, and a file of several signatures that share some.

    python -m venv build/tensorflow && build/tensorflow/bin/pip install tensorflow-cpu==2.19.0
    build/tensorflow/bin/python tools/state_networks.py

Each goes to tests/data/state, converted with resource variables.
"""

# TensorFlow is not there when types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false, reportArgumentType=false
# pyright: reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportReturnType=false, reportGeneralTypeIssues=false
from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "state"
RANDOM = np.random.default_rng(0)
ROW = tf.TensorSpec((1, 8), tf.float32)


class Mean(tf.Module):
    """A mean that is updated where the input's sum is above zero; how often is counted."""

    def __init__(self) -> None:
        self.mean = tf.Variable(tf.zeros((1, 8)), name="mean")
        self.count = tf.Variable(0, name="count")

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        def update() -> Any:
            self.mean.assign(0.9 * self.mean + 0.1 * x)
            self.count.assign_add(1)
            return x - self.mean

        y = tf.cond(tf.reduce_sum(x) > 0, update, lambda: x * 2.0)
        return {"y": y, "mean": self.mean.read_value(), "n": self.count.read_value()}


class Held(tf.Module):
    """The last input that was large, in int8 around a variable of floats."""

    def __init__(self) -> None:
        self.held = tf.Variable(tf.ones((1, 8)), name="held")
        self.scale = tf.constant(RANDOM.normal(size=(1, 8)).astype(np.float32))

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        y = tf.nn.relu(x * self.scale)

        def hold() -> Any:
            self.held.assign(y)
            return y + x

        z = tf.cond(tf.reduce_max(x) > 1.5, hold, lambda: self.held.read_value() * 0.5)
        return {"y": z + y}


class BranchInOpenLoop(tf.Module):
    """Turns that the run alone knows: their condition reads a variable; a branch in the body assigns another."""

    def __init__(self) -> None:
        self.left = tf.Variable(0, name="left")
        self.sum = tf.Variable(tf.zeros((1, 8)), name="sum")

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        self.left.assign_add(tf.cast(tf.reduce_max(x) * 3.0, tf.int32))

        def body(x: Any) -> Any:
            self.left.assign_sub(1)

            def add() -> Any:
                self.sum.assign(self.sum * 0.5 + x)
                return x * 0.5 - self.sum

            return (tf.cond(tf.reduce_sum(x) > 0, add, lambda: x * 0.5 + 0.25),)

        (x,) = tf.while_loop(lambda _: self.left > 2, body, [x])
        return {"y": x, "sum": self.sum.read_value(), "left": self.left.read_value()}


class LoopInBranch(tf.Module):
    """A sum over the turns of a loop, and the last rows."""

    def __init__(self) -> None:
        self.sum = tf.Variable(tf.zeros((1, 8)), name="sum")
        self.rows = tf.Variable(tf.zeros((4, 8)), name="rows")

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        def run() -> Any:
            def body(i: Any, v: Any) -> Any:
                self.sum.assign(self.sum * 0.5 + v)
                return i + 1, v * 0.7

            _, v = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), x])
            self.rows.assign(tf.concat([self.rows[1:], v], 0))
            return v

        z = tf.cond(tf.reduce_sum(x) > 0, run, lambda: x * 2.0)
        return {"y": z + self.sum, "h": tf.reduce_sum(self.rows, 0, keepdims=True)}


class AssigningCondition(tf.Module):
    """Conditions that count how often they are asked, of a loop of three turns and of one that the run ends."""

    def __init__(self) -> None:
        self.asked = tf.Variable(0, name="asked")
        self.last = tf.Variable(tf.ones((1, 8)), name="last")

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        def is_below(i: Any, _: Any) -> Any:
            self.asked.assign_add(1)
            return i < 3

        def body(i: Any, x: Any) -> Any:
            self.last.assign(x + tf.cast(self.asked, tf.float32))
            return i + 1, x * 0.5

        def is_large(x: Any) -> Any:
            self.asked.assign_add(2)
            return tf.reduce_max(tf.abs(x)) > 0.3

        _, x = tf.while_loop(is_below, body, [tf.constant(0), x])
        (x,) = tf.while_loop(is_large, lambda x: (x * 0.7,), [x])
        return {"y": x + self.last, "n": self.asked.read_value()}


class Swap(tf.Module):
    """Two variables change places, in a branch and in a loop."""

    def __init__(self) -> None:
        self.a = tf.Variable(np.arange(8, dtype=np.float32)[None], name="a")
        self.b = tf.Variable(np.ones((1, 8), np.float32), name="b")

    def swap(self) -> None:
        kept = self.a.read_value()
        self.a.assign(self.b)
        self.b.assign(kept)

    @tf.function(input_signature=[ROW])
    def step(self, x: Any) -> Any:
        def first() -> Any:
            self.swap()
            return x

        def second() -> Any:
            self.b.assign(self.a + x)
            return x

        def body(i: Any) -> Any:
            self.swap()
            self.a.assign_add(x)
            return (i + 1,)

        tf.cond(tf.reduce_sum(x) > 0, first, second)
        tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
        return {"y": self.a * 2.0 + self.b * 0.25}


class Tied(tf.Module):
    """An encoder and its decoder of one matrix, a signature that trains it, and one that runs what is kept to rest."""

    def __init__(self) -> None:
        self.weights = tf.Variable((0.3 * RANDOM.normal(size=(8, 8))).astype(np.float32), name="weights")
        self.hidden = tf.Variable(tf.zeros((1, 8)), name="hidden")

    @tf.function(input_signature=[ROW])
    def encode(self, x: Any) -> Any:
        self.hidden.assign(tf.tanh(tf.matmul(x, self.weights) + self.hidden * 0.5))
        return {"code": self.hidden.read_value()}

    @tf.function(input_signature=[ROW])
    def decode(self, code: Any) -> Any:
        return {"x": tf.matmul(code + self.hidden, tf.transpose(self.weights))}

    @tf.function(input_signature=[ROW, ROW])
    def train(self, x: Any, t: Any) -> Any:
        y = tf.matmul(x, self.weights)
        gradient, loss = tf.matmul(x, y - t, transpose_a=True), tf.reduce_mean(tf.square(y - t))

        def step() -> Any:
            self.weights.assign_sub(0.01 * gradient)
            return loss

        tf.cond(loss > 1.0, step, lambda: loss)
        return {"loss": loss}

    @tf.function(input_signature=[tf.TensorSpec((), tf.float32)])
    def settle(self, limit: Any) -> Any:
        def body(i: Any) -> Any:
            self.hidden.assign(tf.tanh(tf.matmul(self.hidden, self.weights)) * 0.7)
            return (i + 1,)

        (i,) = tf.while_loop(lambda _: tf.reduce_max(tf.abs(self.hidden)) > limit, body, [tf.constant(0)])
        return {"turns": i, "hidden": self.hidden.read_value()}


def samples() -> Iterator[list[np.ndarray]]:
    for _ in range(20):
        yield [RANDOM.normal(size=(1, 8)).astype(np.float32)]


def write(name: str, module: tf.Module, *keys: str, is_int8: bool = False) -> None:
    """The file of a module, of whose functions those are signatures."""
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={key: getattr(module, key) for key in keys})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(keys))
        converter.experimental_enable_resource_variables = True
        if is_int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = samples
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = converter.inference_output_type = tf.int8
        (FOLDER / f"{name}.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    write("mean_in_branch", Mean(), "step")
    write("held_int8", Held(), "step", is_int8=True)
    write("branch_in_open_loop", BranchInOpenLoop(), "step")
    write("loop_in_branch", LoopInBranch(), "step")
    write("assigning_condition", AssigningCondition(), "step")
    write("swap", Swap(), "step")
    write("tied", Tied(), "encode", "decode", "train", "settle")
