"""Writes reader.tflite: two layers that make an image of 8x8 of a camera's, and behind them the network of ../digits.

    python examples/camera/write_model.py [OUTPUT]

    frame [120,120,1], pixels of 0 (black) to 1 (white)
      -> ink    3x3 convolution, stride 3, relu: the mean, dark on bright turned round, contrast raised  [40,40,1]
      -> image  5x5 convolution, stride 5: the mean                                                     [8,8,1]
      -> the network of ../digits/network.py, with the weights that were trained there                  [10]

The two layers have weights that nobody trained: each takes the mean of a square. The same ../digits/weights.npz gives
the same bytes on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "digits"))

import network  # noqa: E402
from quantise import Activation, ModelWriter, calibrate  # noqa: E402

MODEL_FILE = HERE / "reader.tflite"
SIDE = 120
"""Rows and columns of the frame."""
PAPER, INK = 0.9, 0.1
"""From this brightness on, a pixel is paper and nothing else, and up to this one ink: what lies beyond is cut off."""
UNIT = Activation(float(np.float32(1 / 255)), -128)
"""0 to 1, in all 256 steps: what is above 1 becomes 1."""


def build(weights: network.Weights, training_images: network.Array) -> bytes:
    """The model file, with the weights of ../digits; the images give the ranges of its activations."""
    contrast = 1 / (PAPER - INK)
    shrinking = {
        "ink": np.full((1, 3, 3, 1), -contrast / 9, np.float32),
        "ink_bias": np.array([contrast * PAPER], np.float32),
        "image": np.full((1, 5, 5, 1), 1 / 25, np.float32),
        "image_bias": np.zeros(1, np.float32),
    }
    activations = {**calibrate(weights, training_images), "frame": UNIT, "ink": UNIT}
    writer = ModelWriter({**weights, **shrinking}, activations, "digits before a camera, int8")
    frame = writer.activation("frame", (1, SIDE, SIDE, 1))
    squares = {"padding": "VALID"}
    writer.weighted(
        "CONV_2D", "ink", "frame", (1, 40, 40, 1), activation="RELU", stride_h=3, stride_w=3, **squares
    )
    writer.weighted("CONV_2D", "image", "ink", (1, 8, 8, 1), stride_h=5, stride_w=5, **squares)
    return writer.build(frame, writer.layers())


def main() -> None:
    """Writes the file named on the command line, or the one beside this script."""
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL_FILE
    training, _ = network.load_digits()
    with np.load(network.WEIGHTS_FILE) as weights:
        content = build(dict(weights), training.images)
    output.write_bytes(content)
    print(f"{output}: {len(content)} bytes")


if __name__ == "__main__":
    main()
