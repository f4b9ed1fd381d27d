"""Models whose one operator is TFLite_Detection_PostProcess, and inputs on which its choices differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflite_writer import ModelBuilder

CODE = "TFLite_Detection_PostProcess"


@dataclass(frozen=True)
class DetectionModel:
    """A form of the operator.

    Attributes:
        has_background: Whether a class that is not detected stands before the others.
        num_of_class: For classes that are looked at one by one; else None.
        is_dense: Whether many boxes lie over each other.
        dtype: Of boxes, anchors and scores.
        extra: Numbers behind the four of an encoding.
        is_static: Whether the file says the shapes of the results.
    """

    num_boxes: int = 40
    num_classes: int = 3
    has_background: bool = True
    num_kept: int = 10
    num_places: int = 1
    num_of_class: int | None = None
    least_score: float = 0.2
    most_overlap: float = 0.5
    is_dense: bool = True
    dtype: str = "float32"
    extra: int = 0
    is_static: bool = True

    @property
    def description(self) -> str:
        """Every attribute."""
        return repr(self)

    @property
    def content(self) -> bytes:
        """The file."""
        builder = ModelBuilder()
        generator = np.random.default_rng(3)
        scales = {"scale": 1 / 128, "zero_point": 3} if self.dtype == "uint8" else {}
        depth = self.num_classes + self.has_background
        encodings = builder.tensor("boxes", [1, self.num_boxes, 4 + self.extra], self.dtype, **scales)
        scores = builder.tensor("scores", [1, self.num_boxes, depth], self.dtype, **scales)
        anchors = generator.uniform(0.1, 0.9, (self.num_boxes, 4))
        anchors[:, 2:] = generator.uniform(0.2, 0.5, (self.num_boxes, 2))
        if self.dtype == "uint8":
            values = np.clip(np.rint(anchors * 128) + 3, 0, 255).astype(np.uint8)
        else:
            values = anchors.astype(np.float32)
        own = builder.constant("anchors", values, **scales)
        count = self.num_kept * self.num_places
        shapes = ([1, count, 4], [1, count], [1, count], [1])
        names = ("locations", "categories", "likelihoods", "number")
        results = [
            builder.tensor(name, shape if self.is_static else [], "float32")
            for name, shape in zip(names, shapes, strict=True)
        ]
        regular = {} if self.num_of_class is None else {"detections_per_class": self.num_of_class}
        builder.custom_operator(
            CODE,
            [encodings, scores, own],
            results,
            max_detections=self.num_kept,
            max_classes_per_detection=self.num_places,
            use_regular_nms=self.num_of_class is not None,
            nms_score_threshold=self.least_score,
            nms_iou_threshold=self.most_overlap,
            num_classes=self.num_classes,
            y_scale=10.0,
            x_scale=10.0,
            h_scale=5.0,
            w_scale=5.0,
            **regular,
        )
        return builder.build([encodings, scores], results)

    def inputs(self, seed: int) -> list[NDArray[np.generic]]:
        """Boxes and scores, no two of which are alike unless they are uint8."""
        generator = np.random.default_rng(seed + 10)
        spread = 1.0 if self.is_dense else 8.0
        shape = (1, self.num_boxes, 4 + self.extra)
        depth = self.num_classes + self.has_background
        boxes = generator.normal(0, spread, shape).astype(np.float32)
        scores = generator.uniform(0, 1, (1, self.num_boxes, depth)).astype(np.float32)
        if seed == 0:
            scores *= np.float32(self.least_score or 1.0)  # none is found
        if self.dtype == "float32":
            return [boxes, scores]
        return [np.clip(np.rint(each * 128) + 3, 0, 255).astype(np.uint8) for each in (boxes, scores)]


@dataclass(frozen=True)
class SuppressionModel:
    """A NON_MAX_SUPPRESSION_V5, or with `sigma` None a V4."""

    num_boxes: int
    num_kept: int
    least_score: float
    most_overlap: float
    sigma: float | None

    @property
    def content(self) -> bytes:
        """The file."""
        builder, kept = ModelBuilder(), (self.num_kept,)
        boxes = builder.tensor("boxes", (self.num_boxes, 4), "float32")
        scores = builder.tensor("scores", (self.num_boxes,), "float32")
        most = builder.constant("most", np.array(self.num_kept, np.int32))
        numbers = (self.most_overlap, self.least_score, *(() if self.sigma is None else (self.sigma,)))
        given = [builder.constant(f"n{i}", np.array(number, np.float32)) for i, number in enumerate(numbers)]
        results = [builder.tensor("places", kept, "int32")]
        results += [] if self.sigma is None else [builder.tensor("likelihoods", kept, "float32")]
        results += [builder.tensor("number", (), "int32")]
        kind = f"NON_MAX_SUPPRESSION_V{4 if self.sigma is None else 5}"
        builder.operator(kind, [boxes, scores, most, *given], results)
        return builder.build([boxes, scores], results)

    def inputs(self, seed: int) -> list[NDArray[np.generic]]:
        """Corners in either order; in every third input on lines of a grid, so that boxes meet or have no area."""
        generator = np.random.default_rng(seed)
        centres, halves = (generator.uniform(0, 1, (self.num_boxes, 2)) for _ in range(2))
        boxes = np.concatenate([centres - halves / 3, centres + halves / 3], axis=1).astype(np.float32)
        if seed % 3 == 0:
            boxes = np.round(boxes * 4) / 4
        if seed % 2:
            boxes = boxes[:, [2, 3, 0, 1]]
        # No two alike: LiteRT leaves the order of such to its C++ library.
        scores = generator.permutation(self.num_boxes).astype(np.float32) / np.float32(self.num_boxes)
        return [np.ascontiguousarray(boxes), scores - np.float32(0.1)]
