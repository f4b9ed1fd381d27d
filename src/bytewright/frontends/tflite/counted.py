"""Graphs of a file for several sizes that the data decides, from which follows what depends on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.tflite.bounds import Bounds
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.open_extents import reading_sizes, samples_of, with_extents
from bytewright.options import OpenAxis
from bytewright.options.forms import ELSEWHERE

Sample = tuple[Mapping[str, int], ir.Module]


def read_counted(
    model: ModelRecord,
    axes: Sequence[OpenAxis],
    opened: Sequence[Sample],
    bounds: Bounds,
    read: Callable[[ModelRecord], ir.Module],
) -> tuple[Sample, ...]:
    """The graphs with what each is for, all sizes at their largest first.

    What a run may cut off has a size of its own where the file can be read so; else it is the number that the run says,
    which then may be no other. A file that makes no numbers of shapes need not be readable without rows.

    Args:
        model: The file.
        axes: Those of inputs that are open,
        opened: and the graphs for extents along them, with these, the largest first.
        bounds: Of the sizes. Those behind others, whose shapes are not the file's, get known here.
        read: Reads a graph for the sizes that are chosen there.

    Raises:
        CompileError: As of `read`; BW121, the file cannot be read for a size.
    """
    while True:
        try:
            return _read_counted(model, axes, opened, bounds, read)
        except CompileError:
            if not bounds.join():
                raise


def _read_counted(
    model: ModelRecord,
    axes: Sequence[OpenAxis],
    opened: Sequence[Sample],
    bounds: Bounds,
    read: Callable[[ModelRecord], ir.Module],
) -> tuple[Sample, ...]:
    largest = dict(opened[0][0]) if opened else {}
    resized = with_extents(model, axes, largest)
    module = _read_largest(resized, bounds, read)
    by_extent = {each.extent.name: name for name, each in bounds.counted.items()}
    ranges = {each.extent.name: (each.extent.lower, each.extent.upper) for each in bounds.counted.values()}
    most = {**largest, **{extent: upper for extent, (_, upper) in ranges.items()}}
    found: list[Sample] = [(most, module)]
    _, *others = samples_of(ranges)
    for sizes in others:
        bounds.chosen.update({by_extent[extent]: size for extent, size in sizes.items()})
        try:
            with model.file.once_more():
                found.append(({**largest, **sizes}, _sharing(read(resized), module)))
        except CompileError as error:
            if bounds.allows_none and not reading_sizes(model):
                continue
            first, *_ = error.diagnostics
            named = " and ".join(f"'{name}' is {size}" for name, size in {**largest, **sizes}.items())
            message = (
                f"what depends on a size that the data decides is not known: where {named}, {first.message}"
            )
            raise compile_error("BW121", message, help=ELSEWHERE, where=first.where) from error
    return (found[0], *((({**most, **extents}), own) for extents, own in opened[1:]), *found[1:])


def _sharing(module: ir.Module, other: ir.Module) -> ir.Module:
    """The graph with the constants of another in place of its own where these are equal: weights are kept once."""
    known = {constant.name: constant for constant in other.constants}
    shared = (known[own.name] if known.get(own.name) == own else own for own in module.constants)
    return replace(module, constants=tuple(shared))


def _read_largest(model: ModelRecord, bounds: Bounds, read: Callable[[ModelRecord], ir.Module]) -> ir.Module:
    """The graph with all sizes at their largest, read until no further size is found, and none is less than it was."""
    while True:
        known = dict(bounds.counted)
        try:
            module = read(model)
        except CompileError:
            if bounds.counted == known:
                raise
        else:
            if bounds.counted == known:
                return module
