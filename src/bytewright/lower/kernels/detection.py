"""Boxes from their encodings, and the best of boxes: greedily, without sorting.

The best box that is left is taken, and what overlaps it is struck out, until none is left or enough are taken. Where
classes are looked at one by one, results lie in the order of their scores all along: what is found is inserted.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import both, either, equal
from bytewright.ir.scalar_functions import EXP, EXP_WIDE
from bytewright.lower.kernels.context import Template, counted
from bytewright.ops.detection import COORDINATES, TflDecodeBoxes, TflSelectDetections, TflSuppress

I32, F32, F64, BOOL = ir.DType.I32, ir.DType.F32, ir.DType.F64, ir.DType.BOOL
_Score = Callable[[ir.Expr], ir.Expr]


def lower_decode_boxes(template: Template, operation: TflDecodeBoxes) -> None:
    """Writes the kernel of boxes: of each axis a centre, and a half to either side."""
    body, output = template.body, template.epilogue.output
    encodings, anchors = template.input(0), template.input(1)

    def wide(buffer: ir.Buffer, box: ir.Expr, number: int) -> ir.Expr:
        return ir.cast(load(buffer, box, number), F64)

    with counted(body, "box", template.type(0).fixed_shape[0]) as box:
        for axis in range(2):
            extent = body.let("extent", wide(anchors, box, axis + 2))
            given = [wide(encodings, box, axis + n) / operation.scales[axis + n] for n in (0, 2)]
            centre = body.let("centre", ir.cast(given[0] * extent + wide(anchors, box, axis), F32))
            half = body.let("half", ir.cast(EXP_WIDE(given[1]) * 0.5 * extent, F32))
            body.store(output, (box, axis), centre - half)
            body.store(output, (box, axis + 2), centre + half)


def lower_select_detections(template: Template, operation: TflSelectDetections) -> None:
    """Writes the kernel of detections."""
    selection = _Selection(template, operation)
    selection.clear()
    if operation.num_of_class:
        selection.write_each_class()
    else:
        selection.write_all()
    template.body.store(selection.number, 0, ir.cast(load(selection.count), F32))


class _Selection:
    """Its results so far, and which boxes are left."""

    def __init__(self, template: Template, operation: TflSelectDetections) -> None:
        self.template, self.operation, self.body = template, operation, template.body
        self.boxes, self.scores = template.input(0), template.input(1)
        self.num_boxes = template.type(0).fixed_shape[0]
        self.background = operation.background(template.type(1))
        self.places, self.classes, self.best, self.number = (
            template.epilogue.output,
            *(template.output(number) for number in range(1, 4)),
        )
        self.is_left = template.kernel.scratch("is_left", (self.num_boxes,), BOOL)
        self.count = self.body.scalar("count", I32, 0)

    def clear(self) -> None:
        """Results of 0."""
        with counted(self.body, "n", self.classes.shape[1]) as n:
            for coordinate in range(COORDINATES):
                self.body.store(self.places, (0, n, coordinate), 0.0)
            self.body.store(self.classes, (0, n), 0.0)
            self.body.store(self.best, (0, n), 0.0)

    def score(self, box: ir.Expr, number: ir.Expr) -> ir.Expr:
        """Of a box for a class."""
        return load(self.scores, 0, box, number + self.background)

    def write_each_class(self) -> None:
        """Class by class; a class ends at the first of its boxes that all results are better than."""
        body, most = self.body, self.operation.num_kept
        with counted(body, "each", self.operation.num_classes) as each:

            def score(box: ir.Expr) -> ir.Expr:
                return self.score(box, each)

            taken = body.scalar("taken", I32, 0)
            with self._best_left(score, self.operation.num_of_class, taken) as box:
                own = body.let("own", score(box))
                place = body.scalar("place", I32, 0)
                with body.for_("n", 0, load(self.count)) as n, body.if_(load(self.best, 0, n) >= own):
                    body.store(place, (), n + 1)
                with body.if_(load(place) < most):
                    body.store(self.count, (), ir.minimum(load(self.count) + 1, most))
                    self._make_room(load(place))
                    self._store(load(place), box, each, own)
                    body.add_to(taken, (), 1)

    def _make_room(self, place: ir.Expr) -> None:
        """Moves what is at a place and behind it on by one."""
        last = self.body.let("last", load(self.count) - 1)
        with self.body.for_("back", 0, last - place) as back:
            to = self.body.let("to", last - back)
            for buffer, inner in self._columns():
                self.body.store(buffer, (0, to, *inner), load(buffer, 0, to - 1, *inner))

    def _columns(self) -> list[tuple[ir.Buffer, tuple[int, ...]]]:
        coordinates = [(self.places, (number,)) for number in range(COORDINATES)]
        return [*coordinates, (self.classes, ()), (self.best, ())]

    def write_all(self) -> None:
        """By the greatest score of each box, with its best classes, each the best of those after the last."""
        body, operation = self.body, self.operation
        greatest = self.template.kernel.scratch("greatest", (self.num_boxes,), F32)
        with counted(body, "box", self.num_boxes) as box:
            most = body.scalar("most", F32, self.score(box, ir.const(0)))
            with body.for_("each", 1, operation.num_classes) as each:
                own = body.let("own", self.score(box, each))
                body.store(most, (), ir.maximum(load(most), own))
            body.store(greatest, box, load(most))
        with self._best_left(lambda box: load(greatest, box), operation.num_kept, self.count) as box:
            first = body.let("first", load(self.count) * operation.num_places)
            self._write_classes(box, first)
            body.add_to(self.count, (), 1)

    def _write_classes(self, box: ir.Expr, first: ir.Expr) -> None:
        body, operation = self.body, self.operation
        last = body.scalar("last", I32, -1)
        with counted(body, "rank", min(operation.num_places, operation.num_classes)) as rank:
            found = body.scalar("found", I32, -1)
            with body.for_("each", 0, operation.num_classes) as each:
                own = body.let("own", self.score(box, each))
                before = body.let("before", self.score(box, ir.maximum(load(last), 0)))
                comes_later = either(own < before, both(equal(own, before), each > load(last)))
                is_candidate = either(load(last) < 0, comes_later)
                beats = either(load(found) < 0, own > self.score(box, ir.maximum(load(found), 0)))
                with body.if_(both(is_candidate, beats)):
                    body.store(found, (), each)
            chosen = body.let("chosen", ir.maximum(load(found), 0))
            self._store(first + rank, box, chosen, self.score(box, chosen))
            body.store(last, (), chosen)

    def _store(self, place: ir.Expr, box: ir.Expr, each: ir.Expr, score: ir.Expr) -> None:
        for coordinate in range(COORDINATES):
            self.body.store(self.places, (0, place, coordinate), load(self.boxes, box, coordinate))
        self.body.store(self.classes, (0, place), ir.cast(each, F32))
        self.body.store(self.best, (0, place), score)

    @contextmanager
    def _best_left(self, score: _Score, limit: int, taken: ir.Buffer) -> Generator[ir.Expr, None, None]:
        """Boxes by their scores, up to a limit: what the caller writes is done for each; it counts those it takes.

        None is looked for after one that is not taken, or that is not there.
        """
        body = self.body
        with counted(body, "box", self.num_boxes) as box:
            body.store(self.is_left, box, score(box) >= ir.const(self.operation.least_score, F32))
        with body.for_("turn", 0, limit) as turn, body.if_(equal(load(taken), turn)):
            found = body.scalar("best", I32, -1)
            with (
                counted(body, "candidate", self.num_boxes) as candidate,
                body.if_(load(self.is_left, candidate)),
            ):
                beats = score(candidate) > score(ir.maximum(load(found), 0))
                with body.if_(either(load(found) < 0, beats)):
                    body.store(found, (), candidate)
            with body.if_(load(found) >= 0):
                box = body.let("box", load(found))
                body.store(self.is_left, box, ir.const(False, BOOL))
                self._strike_out(box)
                yield box

    def _strike_out(self, box: ir.Expr) -> None:
        """What overlaps a box is left no more."""
        body = self.body
        own = _Box.of(body, self.boxes, box)
        with counted(body, "other", self.num_boxes) as other, body.if_(load(self.is_left, other)):
            share = own.share(body, _Box(tuple(load(self.boxes, other, n) for n in range(COORDINATES))))
            with body.if_(share > ir.const(self.operation.most_overlap, F32)):
                body.store(self.is_left, other, ir.const(False, BOOL))


@dataclass(frozen=True, slots=True)
class _Box:
    """The ends of a box, the lower ones first: of y and x each."""

    ends: tuple[ir.Expr, ...]

    @classmethod
    def of(cls, body: BodyBuilder, boxes: ir.Buffer, number: ir.Expr, *, are_corners: bool = False) -> Self:
        """One of a buffer; of any two opposite corners, where these are what it has."""
        ends = tuple(load(boxes, number, n) for n in range(COORDINATES))
        if are_corners:
            given = [body.let("corner", end) for end in ends]
            ends = tuple(
                bound(given[axis], given[axis + 2]) for bound in (ir.minimum, ir.maximum) for axis in range(2)
            )
        names = ("y0", "x0", "y1", "x1")
        return cls(tuple(body.let(name, end) for name, end in zip(names, ends, strict=True)))

    @property
    def area(self) -> ir.Expr:
        """What it covers, or less than 0."""
        return (self.ends[2] - self.ends[0]) * (self.ends[3] - self.ends[1])

    def share(self, body: BodyBuilder, other: Self) -> ir.Expr:
        """What two boxes have in common, as a part of their union; none where one has no area."""
        first, second = body.let("first_area", self.area), body.let("second_area", other.area)
        sides = [
            body.let(
                "side",
                ir.minimum(self.ends[axis + 2], other.ends[axis + 2])
                - ir.maximum(self.ends[axis], other.ends[axis]),
            )
            for axis in range(2)
        ]
        common = body.let("common", ir.maximum(sides[0], 0.0) * ir.maximum(sides[1], 0.0))
        share = common / (first + second - common)
        return body.let("share", ir.select(both(first > 0.0, second > 0.0), share, ir.const(0.0, F32)))


def lower_suppress(template: Template, operation: TflSuppress) -> None:
    """Writes the kernel of the best boxes that overlap none before them."""
    body, boxes, given = template.body, template.input(0), template.input(1)
    count, least = template.type(0).fixed_shape[0], ir.const(operation.least_score, F32)
    numbers, best, number = template.epilogue.output, template.output(1), template.output(2)
    is_left = template.kernel.scratch("is_left", (count,), BOOL)
    scores = template.kernel.scratch("scores", (count,), F32)
    num_left, taken = body.scalar("num_left", I32, 0), body.scalar("taken", I32, 0)
    with counted(body, "box", count) as box:
        body.store(scores, box, load(given, box))
        body.store(is_left, box, load(given, box) > least)
        with body.if_(load(is_left, box)):
            body.add_to(num_left, (), 1)
    with body.for_("place", 0, operation.num_kept) as place:
        found = body.scalar("best_box", I32, -1)
        with (
            body.if_(both(equal(load(taken), place), place < load(num_left))),
            counted(body, "box", count) as box,
            body.if_(load(is_left, box)),
        ):
            beats = load(scores, box) > load(scores, ir.maximum(load(found), 0))
            with body.if_(either(load(found) < 0, beats)):
                body.store(found, (), box)
        body.store(numbers, place, 0)
        body.store(best, place, 0.0)
        with body.if_(load(found) >= 0):
            chosen = body.let("chosen", load(found))
            body.store(numbers, place, chosen)
            body.store(best, place, load(scores, chosen))
            body.add_to(taken, (), 1)
            own = _Box.of(body, boxes, chosen, are_corners=True)
            with counted(body, "box", count) as box, body.if_(load(is_left, box)):
                share = own.share(body, _Box.of(body, boxes, box, are_corners=True))
                stays = share < ir.const(operation.most_overlap, F32)
                if operation.sigma:
                    body.store(scores, box, load(scores, box) * EXP(share * operation.decay * share))
                    stays = both(stays, load(scores, box) > least)
                body.store(is_left, box, stays)
    body.store(number, (), load(taken))
