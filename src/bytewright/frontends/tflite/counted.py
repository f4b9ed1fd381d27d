"""Graphs of a file for several sizes that the data decides, from which follows what depends on them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.tflite.bounds import LEAST_ROOM, Bounds
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.open_extents import with_extents
from bytewright.options import OpenAxis

Sample = tuple[Mapping[str, int], ir.Module]
ELSEWHERE = "let the model end before that operator, and compute the rest in the application"


def read_counted(
    model: ModelRecord,
    axes: Sequence[OpenAxis],
    opened: Sequence[Sample],
    bounds: Bounds,
    read: Callable[[ModelRecord], ir.Module],
) -> tuple[Sample, ...]:
    """The graphs with what each is for, all sizes at their largest first.

    Args:
        model: The file.
        axes: Those of inputs that are open,
        opened: and the graphs for extents along them, with these, the largest first.
        bounds: Of the sizes, which are known by now.
        read: Reads a graph for the sizes that are chosen there.

    Raises:
        CompileError: As of `read`; BW121, the file cannot be read for a size.
    """
    largest = dict(opened[0][0]) if opened else {}
    found: list[Sample] = []
    for sizes in _sizes(bounds):
        bounds.chosen.update(sizes)
        extents = {**largest, **{bounds.counted[name].extent.name: size for name, size in sizes.items()}}
        try:
            found.append((extents, read(with_extents(model, axes, largest))))
        except CompileError as error:
            if not found:
                raise
            first, *_ = error.diagnostics
            named = " and ".join(f"'{name}' is {extents[name]}" for name in extents)
            message = (
                f"what depends on a size that the data decides is not known: where {named}, {first.message}"
            )
            raise compile_error("BW121", message, help=ELSEWHERE, where=first.where) from error
    most = {each.extent.name: each.extent.upper for each in bounds.counted.values()}
    return (found[0], *((({**extents, **most}), own) for extents, own in opened[1:]), *found[1:])


def _sizes(bounds: Bounds) -> Iterator[dict[str, int]]:
    """Sizes by operators: all at their largest, and each at two others; of a bound of 1 at one beyond it."""
    most = {name: each.extent.upper for name, each in bounds.counted.items()}
    yield most
    for name, upper in most.items():
        for other in dict.fromkeys((upper - 1 or LEAST_ROOM, (upper + 1) // 2)):
            if other != upper:
                yield {**most, name: other}
