"""Recordings of a camera that looks at handwritten digits, which take the sensor's place in the example.

    python examples/camera/recording.py OUTPUT

writes seven frames, of which some do not come as they should. Each is a digit that ../digits has held out of its
training, drawn with dark ink on bright paper, noise over it, and a dark table on both sides.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HELD_OUT = Path(__file__).resolve().parents[1] / "digits" / "heldout.npz"
WIDTH, HEIGHT = 160, 120
MARGIN = (WIDTH - HEIGHT) // 2
"""Columns on either side that the model does not see."""
BLOCK = HEIGHT // 8
PAPER, INK, TABLE, NOISE = 230, 26, 90, 12
LARGEST_PIXEL = 16
HARD = (261, 252, 62, 93, 5, 336, 103)
"""Held-out digits that are hard to read: their scores are more than one 255 and nine zeros."""

Frame = NDArray[np.uint8]
Events = list[bytes]


def held_out() -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Images of 8x8, and which digits they are."""
    with np.load(HELD_OUT) as stored:
        return stored["images"][..., 0], stored["labels"]


def photograph(image: NDArray[np.int8], seed: int) -> Frame:
    """What the camera sees of a digit: grey pixels [HEIGHT, WIDTH], 0 is black."""
    bright = PAPER - (PAPER - INK) * image.astype(np.float64) / LARGEST_PIXEL
    scene = np.full((HEIGHT, WIDTH), float(TABLE))
    scene[:, MARGIN:-MARGIN] = bright.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
    noise = np.random.default_rng(seed).integers(-NOISE, NOISE + 1, scene.shape)
    return np.clip(np.rint(scene) + noise, 0, 255).astype(np.uint8)


def square_of(frame: Frame) -> NDArray[np.int8]:
    """The model's input for a frame, [1, HEIGHT, HEIGHT, 1]: a pixel p stands for p / 255, stored as p - 128."""
    return (frame[:, MARGIN:-MARGIN].astype(np.int16) - 128).astype(np.int8)[np.newaxis, ..., np.newaxis]


def events(frame: Frame) -> Events:
    """A frame as it should come, and some time after it."""
    return [b"F", *(b"L" + line.tobytes() for line in frame), b"E", *(2 * [b"-"])]


def faulty_recording(frames: Sequence[Frame]) -> tuple[Events, list[int]]:
    """Seven frames, and the positions of those that a program can read."""
    whole = [events(frame) for frame in frames]
    recording: Events = []
    recording += whole[0][80:]  # switched on in the middle of a frame
    recording += whole[1]
    recording += whole[2][:61] + whole[2][62:]  # a line is missing
    recording += whole[3]
    recording += whole[4][:50] + whole[4][49:]  # a line comes twice
    recording += whole[5][:90]  # no end: the next frame begins in the middle
    recording += whole[6]
    return recording, [1, 3, 6]


def demonstration() -> tuple[list[Frame], Any, Events, list[int]]:
    """Seven frames, the digits on them, their recording, and the positions of those that can be read."""
    images, labels = held_out()
    frames = [photograph(images[number], number) for number in HARD]
    recording, readable = faulty_recording(frames)
    return frames, labels[list(HARD)], recording, readable


def main() -> None:
    """Writes the recording of the demonstration."""
    _, labels, recording, readable = demonstration()
    Path(sys.argv[1]).write_bytes(b"".join(recording))
    print(f"whole frames with the digits {', '.join(str(labels[i]) for i in readable)}")


if __name__ == "__main__":
    main()
