"""Trains the network of network.py and writes weights.npz (float32) and heldout.npz (the 360 held-out digits).

    python examples/digits/train.py

Needs scikit-learn, for its bundled digits; nothing is downloaded. The seed is fixed, so that two runs on one
machine give the same weights; other machines may differ in the last bits, since their sums are ordered
differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from network import (
    HELD_OUT_FILE,
    WEIGHT_SHAPES,
    WEIGHTS_FILE,
    Array,
    Weights,
    as_float,
    forward,
    gradients,
    load_digits,
)

SEED = 2024
NUM_EPOCHS = 40
BATCH_SIZE = 32
FIRST_STEP = 0.004
WEIGHT_DECAY = 1e-4


def initial_weights(random: np.random.Generator) -> dict[str, Array]:
    """He's initialisation; biases are zero."""
    weights: dict[str, Array] = {}
    for name, shape in WEIGHT_SHAPES.items():
        inputs = int(np.prod(shape[1:3])) if name == "depthwise" else int(np.prod(shape[1:]))
        outputs = shape[-1] if name == "depthwise" else shape[0]
        weights[name] = random.normal(0.0, np.sqrt(2.0 / inputs), shape).astype(np.float32)
        weights[f"{name}_bias"] = np.zeros(outputs, dtype=np.float32)
    return weights


def shifted(images: Array, random: np.random.Generator) -> Array:
    """Half of the images moved by up to one pixel each way: the writer's hand is not always in the middle."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    moved = images.copy()
    for index in np.flatnonzero(random.random(len(images)) < 0.5):
        y, x = random.integers(0, 3, size=2)
        moved[index] = padded[index, y : y + 8, x : x + 8]
    return moved


def train(images: Array, labels: Array) -> dict[str, Array]:
    """Adam with a step that falls to zero along a cosine."""
    random = np.random.default_rng(SEED)
    weights = initial_weights(random)
    means = {name: np.zeros_like(value) for name, value in weights.items()}
    squares = {name: np.zeros_like(value) for name, value in weights.items()}
    num_batches = len(images) // BATCH_SIZE
    step = 0
    for epoch in range(NUM_EPOCHS):
        order = random.permutation(len(images))
        losses: list[float] = []
        for batch in np.array_split(order, num_batches):
            step += 1
            inputs = shifted(images[batch], random)
            loss, by = gradients(weights, forward(weights, inputs), labels[batch])
            losses.append(loss)
            size = FIRST_STEP * 0.5 * (1 + np.cos(np.pi * step / (NUM_EPOCHS * num_batches)))
            for name, gradient in by.items():
                means[name] += 0.1 * (gradient - means[name])
                squares[name] += 0.001 * (gradient * gradient - squares[name])
                mean = means[name] / (1 - 0.9**step)
                square = squares[name] / (1 - 0.999**step)
                decay = 0.0 if name.endswith("_bias") else WEIGHT_DECAY
                change = size * (mean / (np.sqrt(square) + 1e-8)) + FIRST_STEP * decay * weights[name]
                weights[name] -= change.astype(np.float32)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:3}: loss {np.mean(losses):.4f}")
    return weights


def accuracy(weights: Weights, images: Array, labels: Array) -> float:
    """The share of images whose largest logit is that of their label."""
    return float((forward(weights, as_float(images))["logits"].argmax(axis=1) == labels).mean())


def main() -> None:
    """Trains, prints both accuracies and writes the two files."""
    training, held_out = load_digits()
    weights = train(as_float(training.images), training.labels)
    print(f"training digits: {accuracy(weights, training.images, training.labels):.2%} right")
    print(f"held-out digits: {accuracy(weights, held_out.images, held_out.labels):.2%} right")
    save: Any = np.savez_compressed
    save(WEIGHTS_FILE, **weights)
    save(HELD_OUT_FILE, images=held_out.images, labels=held_out.labels)


if __name__ == "__main__":
    main()
