"""What follows a network that detects objects: boxes from their encodings, and the best ones that do not overlap."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.checks import require, require_dtype, two

F32, I32 = ir.DType.F32, ir.DType.I32
COORDINATES = 4
"""Of a box: the least y and x, and the greatest."""
_Floats = NDArray[np.float32]


def _require_boxes(operand: ir.TensorType, role: str, *, may_have_more: bool = False) -> None:
    """One row a box, of four numbers."""
    require_dtype(operand, (F32,), role)
    shape = operand.shape
    fits = len(shape) == 2 and all(isinstance(extent, int) for extent in shape)
    require(fits, f"{role} is not a row of [{ir.format_shape(shape)}]")
    found = operand.fixed_shape[1]
    is_enough = found > COORDINATES and may_have_more
    require(found == COORDINATES or is_enough, f"{role} has {found} numbers")


@dataclass(frozen=True, slots=True)
class TflDecodeBoxes(ir.Operation):
    """encodings f32 [N,E], anchors f32 [N,4] -> boxes f32 [N,4].

    An encoding has y, x, height and width, and more that is not read; an anchor has its centre's y and x, height and
    width. Centres and halves are computed in double precision and rounded, then added and subtracted.

    Attributes:
        scales: What each of the four numbers is divided by.
    """

    name: ClassVar[str] = "tfl_decode_boxes"
    operand_names: ClassVar[tuple[str, ...]] = ("encodings", "anchors")
    scales: tuple[float, ...]

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The type of the anchors."""
        encodings, anchors = two(inputs)
        _require_boxes(encodings, "an encoding", may_have_more=True)
        _require_boxes(anchors, "an anchor")
        counts = encodings.fixed_shape[0], anchors.fixed_shape[0]
        require(counts[0] == counts[1], f"{counts[0]} encodings, {counts[1]} anchors")
        require(len(self.scales) == COORDINATES and all(self.scales), f"the scales {self.scales} of boxes")
        return (ir.TensorType(anchors.shape, F32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact where the exponential function is."""
        encodings, anchors = (each.astype(np.float64) for each in inputs)
        with np.errstate(all="ignore"):
            given = encodings[:, :COORDINATES] / np.array(self.scales)
            centres = (given[:, :2] * anchors[:, 2:] + anchors[:, :2]).astype(np.float32)
            halves = (0.5 * np.exp(given[:, 2:]) * anchors[:, 2:]).astype(np.float32)
            return (np.concatenate([centres - halves, centres + halves], axis=1),)


@dataclass(frozen=True, slots=True)
class TflSelectDetections(ir.Operation):
    """boxes f32 [N,4], scores f32 [1,N,B+C] -> boxes [1,D,4], classes [1,D], scores [1,D], their number [1], in f32.

    B is 0, or 1 where the first class is the background, which nothing is. A box is left out that overlaps one with a
    greater score, or an earlier one with the same. What is behind the detections is 0.

    Attributes:
        num_classes: C.
        num_kept: The most boxes that are kept.
        num_places: The most classes that one of them may have: D is the product.
        num_of_class: Where each class is looked at by itself, the most boxes that it has; then each box has one class,
            and those of all classes are kept in the order of their scores. Else 0: of the best class of each box, and
            each of those kept has its best classes, `num_places` apart.
        least_score: Scores below it are none.
        most_overlap: Boxes that have more of their union in common overlap.
    """

    name: ClassVar[str] = "tfl_select_detections"
    operand_names: ClassVar[tuple[str, ...]] = ("boxes", "scores")
    num_classes: int
    num_kept: int
    num_places: int
    num_of_class: int
    least_score: float
    most_overlap: float

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Of as many detections as there may be."""
        boxes, scores = two(inputs)
        _require_boxes(boxes, "a box")
        require_dtype(scores, (F32,), "the scores")
        background = self.background(scores)
        require(
            len(scores.shape) == 3 and scores.shape[:2] == (1, boxes.shape[0]) and background in (0, 1),
            f"scores [{ir.format_shape(scores.shape)}] of {self.num_classes} classes and {boxes.shape[0]} boxes",
        )
        counts = (self.num_classes, self.num_kept, self.num_places)
        require(min(counts) >= 1 and self.num_of_class >= 0, "nothing is detected")
        require(0 < self.most_overlap <= 1, f"boxes overlap from {self.most_overlap} on")
        count = self.num_kept * self.num_places
        shapes = ((1, count, COORDINATES), (1, count), (1, count), (1,))
        return tuple(ir.TensorType(shape, F32) for shape in shapes)

    def background(self, scores: ir.TensorType) -> int:
        """How many classes stand before those that are detected; none of an open extent does."""
        extent = scores.shape[-1] if scores.shape else 0
        return extent - self.num_classes if isinstance(extent, int) else -1

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        boxes, scores = (each.astype(np.float32) for each in inputs)
        scores = scores[0, :, -self.num_classes :]
        found = self._of_each_class(boxes, scores) if self.num_of_class else self._of_all(boxes, scores)
        count = self.num_kept * self.num_places
        results = tuple(np.zeros((1, count, *rest), np.float32) for rest in ((COORDINATES,), (), ()))
        kept = 0
        for box, classes in found:
            for number, each in enumerate(classes):
                values = boxes[box], each, scores[box, each]
                for result, value in zip(results, values, strict=True):
                    result[0, kept * (1 if self.num_of_class else self.num_places) + number] = value
            kept += 1
        return (*results, np.array([kept], np.float32))

    def _of_each_class(self, boxes: _Floats, scores: _Floats) -> list[tuple[int, list[int]]]:
        """The best boxes and their classes."""
        found = [
            (box, [each])
            for each in range(self.num_classes)
            for box in self._apart(boxes, scores[:, each], self.num_of_class)
        ]
        return sorted(found, key=lambda item: -scores[item[0], item[1][0]])[: self.num_kept]

    def _of_all(self, boxes: _Floats, scores: _Floats) -> Iterator[tuple[int, list[int]]]:
        """The boxes with the best classes, and their classes."""
        for box in self._apart(boxes, scores.max(axis=1), self.num_kept):
            order = np.argsort(-scores[box], kind="stable")
            yield box, order[: self.num_places].tolist()

    def _apart(self, boxes: _Floats, scores: _Floats, most: int) -> list[int]:
        """Of boxes in the order of their scores those that overlap none before them."""
        order = [
            box for box in np.argsort(-scores, kind="stable").tolist() if scores[box] >= self.least_score
        ]
        kept: list[int] = []
        for box in order:
            if len(kept) < most and not any(self._overlap(boxes[each], boxes[box]) for each in kept):
                kept.append(box)
        return kept

    def _overlap(self, first: _Floats, second: _Floats) -> bool:
        """Whether boxes have more in common than they may; one without an area has nothing."""
        areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (first, second)]
        if areas[0] <= 0 or areas[1] <= 0:
            return False
        sides = np.minimum(first[2:], second[2:]) - np.maximum(first[:2], second[:2])
        height, width = np.maximum(sides, np.float32(0))
        common = height * width
        return bool(common / (areas[0] + areas[1] - common) > np.float32(self.most_overlap))


@dataclass(frozen=True, slots=True)
class TflSuppress(ir.Operation):
    """boxes f32 [N,4], scores f32 [N] -> numbers of boxes i32 [D], their scores f32 [D], and how many there are i32 [].

    The best box is taken, the first of those that score alike, until there are D. What is behind them is 0. A box has
    two opposite corners, in either order. Where one without an area is taken, it is taken again, as long as there are
    fewer than boxes at first, which is what LiteRT does.

    Attributes:
        num_kept: D.
        least_score: Scores at or below it are none.
        most_overlap: Boxes that have this part of their union in common, or more, with one that is taken are left out.
        sigma: Where it is not 0, scores of other boxes become less: by exp(-overlap^2 / 2 sigma).
    """

    name: ClassVar[str] = "tfl_suppress"
    operand_names: ClassVar[tuple[str, ...]] = ("boxes", "scores")
    num_kept: int
    least_score: float
    most_overlap: float
    sigma: float = 0.0

    @property
    def decay(self) -> float:
        """What a squared overlap is multiplied with."""
        return float(np.float32(-0.5 / self.sigma)) if self.sigma else 0.0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Of as many boxes as there may be."""
        boxes, scores = two(inputs)
        _require_boxes(boxes, "a box")
        require_dtype(scores, (F32,), "the scores")
        shapes = f"scores [{ir.format_shape(scores.shape)}] of {boxes.fixed_shape[0]} boxes"
        require(scores.shape == boxes.shape[:1], shapes)
        require(self.num_kept >= 1, "nothing is kept")
        require(self.sigma >= 0, f"a sigma of {self.sigma}")
        places, count = (self.num_kept,), ()
        return ir.TensorType(places, I32), ir.TensorType(places, F32), ir.TensorType(count, I32)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact, but for the exponential function."""
        boxes, scores = (each.astype(np.float32) for each in inputs)
        is_left = scores > np.float32(self.least_score)
        numbers, best = np.zeros(self.num_kept, np.int32), np.zeros(self.num_kept, np.float32)
        most, count = min(self.num_kept, int(is_left.sum())), 0
        while count < most and is_left.any():
            chosen = int(np.argmax(np.where(is_left, scores, -np.inf)))
            numbers[count], best[count] = chosen, scores[chosen]
            count += 1
            overlaps = _shares(boxes[chosen], boxes)
            is_left &= ~(overlaps >= np.float32(self.most_overlap))
            if self.sigma:
                scores = scores * np.exp(np.float32(self.decay) * overlaps * overlaps)
                is_left &= scores > np.float32(self.least_score)
        return numbers, best, np.array(count, np.int32)


def _shares(box: _Floats, boxes: _Floats) -> _Floats:
    """What boxes and one have in common, as parts of their unions; none where one has no area."""
    (low, high), (lows, highs) = (
        (np.minimum(each[..., :2], each[..., 2:]), np.maximum(each[..., :2], each[..., 2:]))
        for each in (box, boxes)
    )
    area, areas = np.prod(high - low), np.prod(highs - lows, axis=-1)
    sides = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), np.float32(0))
    common = sides[:, 0] * sides[:, 1]
    with np.errstate(all="ignore"):
        shares = common / (area + areas - common)
    return np.where((area > 0) & (areas > 0), shares, np.float32(0)).astype(np.float32)


OPERATIONS = (TflDecodeBoxes, TflSelectDetections, TflSuppress)
