"""Extents that a file leaves open, other than the batch: for the import, and the option that opens them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic, compile_error
from bytewright.frontends.tflite.model import ModelRecord, TensorRecord
from bytewright.frontends.tflite.names import border_names
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.options import OpenAxis
from bytewright.options.forms import OTHER_RANGE

UNKNOWN_EXTENT = -1
MOST_READ = 64
"""For how many extents of a range a file is read, one by one."""


def read_samples(
    model: ModelRecord,
    file_name: str,
    axes: Sequence[OpenAxis],
    read: Callable[[ModelRecord], ir.Module],
) -> tuple[tuple[Mapping[str, int], ir.Module], ...]:
    """The graphs of a file for some extents along the axes, with these by their names, the largest first.

    Of a file that cannot be resized it is the one that there is, under the largest extent.

    Raises:
        CompileError: As of `read`; BW204, an axis is of no input; BW121, the file cannot be read for an extent while it
            can for most, or computes with sizes and cannot be resized.
    """
    samples, of_file = _samples(axes), with_extents(model, axes)
    found: list[tuple[Mapping[str, int], ir.Module]] = []
    failed: list[tuple[Mapping[str, int], CompileError]] = []
    for extents in samples:
        resized = with_extents(model, axes, extents)
        try:
            with model.file.once_more():
                found.append((extents, read(resized)))
        except CompileError as error:
            failed.append((extents, error))
            if not found:
                break
    if not failed:
        return tuple(found)
    module = read(of_file)  # says what is wrong with the file whatever its extents are
    (extents, error), (first, *_) = failed[0], failed[0][1].diagnostics
    if 2 * len(found) > len(samples):
        raise _unreadable(axes, extents, first) from error
    reading = reading_sizes(model)
    if not reading:
        return ((samples[0], module),)
    operators = f"operator{'s' if len(reading) > 1 else ''} {', '.join(reading)}"
    message = f"{operators} of '{file_name}' read sizes, and the file is for one size alone: {first.message}"
    raise compile_error("BW121", message, help="leave out --open", where=first.where) from error


def reading_sizes(model: ModelRecord) -> list[str]:
    """Operators that make numbers of shapes, for people."""
    kinds = {kind for kind, folded in FOLDED.items() if folded.reads_shape and kind != "RANK"}
    return [operator.label for operator in model.operators if operator.kind in kinds]


def _unreadable(axes: Sequence[OpenAxis], extents: Mapping[str, int], first: Diagnostic) -> CompileError:
    named = " and ".join(f"{name}={extent}" for name, extent in extents.items())
    message = f"the file cannot be opened along {' and '.join(map(str, axes))}: for {named}, {first.message}"
    return compile_error("BW121", message, help=OTHER_RANGE, where=first.where)


def with_extents(
    model: ModelRecord, axes: Sequence[OpenAxis], extents: Mapping[str, int] | None = None
) -> ModelRecord:
    """The model for extents along the axes, by their names; or, where it has none, for the largest.

    Raises:
        CompileError: BW204, an axis is of no input.
    """
    names = [port.name for port in border_names(model).inputs]
    model = model if extents is None else loosened(model)
    tensors = list(model.tensors)
    for axis in axes:
        index = model.inputs[names.index(axis.input_among(names))]
        tensor = tensors[index]
        stated = tensor.stated_shape
        if axis.axis < len(stated) and (extents is not None or stated[axis.axis] == UNKNOWN_EXTENT):
            extent = axis.upper if extents is None else extents[axis.name]
            signature, shape = (
                (*before[: axis.axis], extent, *before[axis.axis + 1 :]) for before in (stated, tensor.shape)
            )
            tensors[index] = replace(tensor, signature=signature, shape=shape)
    return replace(model, tensors=tuple(tensors))


def loosened(model: ModelRecord) -> ModelRecord:
    """The model for inputs of other shapes: what follows from these has no shape of its own."""
    tensors = list(map(_loosened, model.tensors))
    for index in model.inputs:
        tensors[index] = model.tensors[index]
    called = {
        number: replace(each, tensors=tuple(map(_loosened, each.tensors)))
        for number, each in model.called.items()
    }
    return replace(model, tensors=tuple(tensors), called=called)


def _loosened(tensor: TensorRecord) -> TensorRecord:
    """A tensor whose extents are what operators make them, but for a batch that the file leaves open."""
    if tensor.has_values or tensor.is_variable:
        return tensor
    return replace(tensor, signature=(UNKNOWN_EXTENT,) * len(tensor.shape))


def _samples(axes: Sequence[OpenAxis]) -> list[dict[str, int]]:
    return samples_of({axis.name: (axis.lower, axis.upper) for axis in axes})


def samples_of(ranges: Mapping[str, tuple[int, int]]) -> list[dict[str, int]]:
    """Extents that a file is read for, the largest first, by the ranges of each.

    Of several extents each has all of `_of_range` while the others have their largest, and all have their least in
    the end.
    """
    largest = {name: last for name, (_, last) in ranges.items()}
    least = {name: first for name, (first, _) in ranges.items()}
    found = [largest]
    for name, (first, last) in ranges.items():
        found += [{**largest, name: extent} for extent in _of_range(first, last)]
    return [each for n, each in enumerate((*found, least)) if each not in (*found, least)[:n]]


def _of_range(first: int, last: int) -> list[int]:
    """All extents of a range of at most `MOST_READ`; of a longer one half of that at its least, the rest spread."""
    if last - first < MOST_READ:
        return list(range(last, first - 1, -1))
    half, quarter = MOST_READ // 2, MOST_READ // 4
    begins, ends = range(first, first + half), range(last - quarter + 1, last + 1)
    between = (begins.stop + (ends.start - begins.stop) * n // quarter for n in range(quarter))
    return sorted({*begins, *between, *ends}, reverse=True)


def opening_options(model: ModelRecord) -> str:
    """`--open 'input:1=time:1..200'` for each open extent of the inputs; further ones of an input have own names."""
    options: list[str] = []
    for port, index in zip(border_names(model).inputs, model.inputs, strict=True):
        open_axes = [
            n for n, extent in enumerate(model.tensors[index].signature) if n and extent == UNKNOWN_EXTENT
        ]
        for axis in open_axes:
            name = "time" if axis == open_axes[0] else f"extent_{axis}"
            options.append(f"--open {port.name}:{axis}={name}:1..200")
    return " ".join(options)
