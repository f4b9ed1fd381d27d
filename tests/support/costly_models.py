"""Models of any size, to see what compiling them costs: chains of small layers, and small files that ask for much."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflite_writer import OPTIONAL, ModelBuilder

EXTENT, CHANNELS = 4, 8


class _Chain:
    """An int8 model under construction whose operators follow each other."""

    def __init__(self) -> None:
        self.builder = ModelBuilder()
        self.generator = np.random.default_rng(0)
        self.number = 0
        self.first = self.recent = self.tensor()

    def tensor(self, extent: int = EXTENT) -> int:
        self.number += 1
        shape = (1, extent, extent, CHANNELS)
        return self.builder.tensor(f"tensor_{self.number}", shape, "int8", scale=0.5, zero_point=-3)

    def convolution(self) -> None:
        weights = self.generator.integers(-127, 128, (CHANNELS, 1, 1, CHANNELS)).astype(np.int8)
        bias = self.generator.integers(-1000, 1000, CHANNELS).astype(np.int32)
        scales = self.generator.uniform(0.001, 0.01, CHANNELS).astype(np.float32)
        operands = [
            self.recent,
            self.builder.constant("weights", weights, scale=scales),
            self.builder.constant("bias", bias),
        ]
        self.recent = self._made("CONV_2D", operands, activation="RELU")

    def addition(self, other: int) -> None:
        self.recent = self._made("ADD", [self.recent, other])

    def pool(self) -> None:
        self.recent = self._made(
            "MAX_POOL_2D", [self.recent], padding="SAME", filter_width=2, filter_height=2
        )

    def _made(self, kind: str, operands: list[int], **options: str | int) -> int:
        result = self.tensor()
        self.builder.operator(kind, operands, [result], **options)
        return result

    def finish(self) -> bytes:
        return self.builder.build([self.first], [self.recent])


def layers(count: int) -> bytes:
    """A chain of small convolutions, each with weights of its own."""
    chain = _Chain()
    for _ in range(count):
        chain.convolution()
    return chain.finish()


def residual_layers(count: int) -> bytes:
    """The same, where every second layer's result has the tensor two layers before added to it."""
    chain = _Chain()
    for _ in range(count // 2):
        shortcut = chain.recent
        chain.convolution()
        chain.convolution()
        chain.addition(shortcut)
    return chain.finish()


def pools(count: int) -> bytes:
    """A chain of poolings, which all have the same kernel."""
    chain = _Chain()
    for _ in range(count):
        chain.pool()
    return chain.finish()


def additions_of_input(count: int) -> bytes:
    """int8 additions in a chain, each of the input to what was computed so far."""
    chain = _Chain()
    for _ in range(count):
        chain.addition(chain.first)
    return chain.finish()


def doublings(count: int) -> bytes:
    """float32 additions in a chain, each of a tensor to itself."""
    builder = ModelBuilder()
    first = recent = builder.tensor("x", [1, 8], "float32")
    for number in range(count):
        result = builder.tensor(f"y{number}", [1, 8], "float32")
        builder.operator("ADD", [recent, recent], [result])
        recent = result
    return builder.build([first], [recent])


def elementwise_chain(count: int, kind: str = "TANH") -> bytes:
    """float32 element-wise operators in a chain."""
    builder = ModelBuilder()
    first = recent = builder.tensor("x", [1, 8], "float32")
    for number in range(count):
        result = builder.tensor(f"y{number}", [1, 8], "float32")
        builder.operator(kind, [recent], [result])
        recent = result
    return builder.build([first], [recent])


def output_stated_often(count: int) -> bytes:
    """One operator, whose result is stated as an output over and over."""
    builder = ModelBuilder()
    first = builder.tensor("x", [1, 8], "float32")
    result = builder.tensor("y", [1, 8], "float32")
    builder.operator("RELU", [first], [result])
    return builder.build([first], [result] * count)


def constant_pad(extent: int) -> bytes:
    """A constant padded to `extent` floats, and added to the input."""
    builder = ModelBuilder()
    first = builder.tensor("x", [1, extent], "float32")
    constant = builder.constant("c", np.ones((1, 8), np.float32))
    paddings = builder.constant("paddings", np.array([[0, 0], [0, extent - 8]], np.int32))
    padded = builder.tensor("padded", [1, extent], "float32")
    builder.operator("PAD", [constant, paddings], [padded])
    result = builder.tensor("y", [1, extent], "float32")
    builder.operator("ADD", [first, padded], [result])
    return builder.build([first], [result])


def shared_weights(count: int, size: int = 1024) -> bytes:
    """Fully connected layers that all have the same int8 weights of `size` squared bytes."""
    builder = ModelBuilder()
    generator = np.random.default_rng(0)
    weights = generator.integers(-127, 128, (size, size)).astype(np.int8)
    shared = builder.constant("weights", weights, scale=0.002)
    first = recent = builder.tensor("x", [1, size], "int8", scale=0.5, zero_point=-3)
    for number in range(count):
        result = builder.tensor(f"y{number}", [1, size], "int8", scale=0.5, zero_point=-3)
        builder.operator("FULLY_CONNECTED", [recent, shared, OPTIONAL], [result], activation="RELU")
        recent = result
    return builder.build([first], [recent])


def absent_operands(count: int) -> bytes:
    """One addition with absent operands after its two."""
    builder = ModelBuilder()
    first = builder.tensor("x", [1, 8], "float32")
    result = builder.tensor("y", [1, 8], "float32")
    builder.operator("ADD", [first, first, *([OPTIONAL] * count)], [result])
    return builder.build([first], [result])


def heavy(num_bytes: int, num_layers: int = 4) -> bytes:
    """Fully connected int8 layers with `num_bytes` of weights together."""
    builder = ModelBuilder()
    generator = np.random.default_rng(0)
    size = int((num_bytes / num_layers) ** 0.5)
    first = recent = builder.tensor("x", [1, size], "int8", scale=0.5, zero_point=-3)
    for number in range(num_layers):
        weights = builder.constant(
            f"weights_{number}", generator.integers(-127, 128, (size, size), dtype=np.int8), scale=0.002
        )
        result = builder.tensor(f"y{number}", [1, size], "int8", scale=0.5, zero_point=-3)
        builder.operator("FULLY_CONNECTED", [recent, weights, OPTIONAL], [result], activation="RELU")
        recent = result
    return builder.build([first], [recent])


FAMILIES: dict[str, Callable[[int], bytes]] = {
    "layers": layers,
    "residual": residual_layers,
    "pools": pools,
    "additions of the input": additions_of_input,
    "doublings": doublings,
    "element-wise chain": elementwise_chain,
    "one output stated often": output_stated_often,
    "constant pad": constant_pad,
    "shared weights": shared_weights,
    "absent operands": absent_operands,
    "heavy": heavy,
}
