"""Extents that a file leaves open, other than the batch: for the import, and the option that opens them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.tflite.model import ModelRecord, TensorRecord
from bytewright.frontends.tflite.names import border_names
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.options import OpenAxis

_UNKNOWN = -1


def read_samples(
    model: ModelRecord,
    file_name: str,
    axes: Sequence[OpenAxis],
    read: Callable[[ModelRecord], ir.Module],
) -> tuple[tuple[Mapping[str, int], ir.Module], ...]:
    """The graphs of a file for some extents along the axes, with these by their names, the largest first.

    Of a file that cannot be resized it is the one that there is, under the largest extent.

    Raises:
        CompileError: As of `read`; BW204, an axis is of no input; BW121, the file computes with sizes, and cannot be
            resized.
    """
    samples, of_file = _samples(axes), with_extents(model, axes)
    try:
        return tuple((each, read(with_extents(model, axes, each))) for each in samples)
    except CompileError as error:
        module = read(of_file)  # says what is wrong with the file whatever its extents are
        kinds = {kind for kind, folded in FOLDED.items() if folded.reads_shape and kind != "RANK"}
        found = [operator.label for operator in model.operators if operator.kind in kinds]
        if not found:
            return ((samples[0], module),)
        (first, *_) = error.diagnostics
        operators = f"operator{'s' if len(found) > 1 else ''} {', '.join(found)}"
        message = (
            f"{operators} of '{file_name}' read sizes, and the file is for one size alone: {first.message}"
        )
        raise compile_error("BW121", message, help="leave out --open", where=first.where) from error


def with_extents(
    model: ModelRecord, axes: Sequence[OpenAxis], extents: Mapping[str, int] | None = None
) -> ModelRecord:
    """The model for extents along the axes, by their names; or, where it has none, for the largest.

    Raises:
        CompileError: BW204, an axis is of no input.
    """
    names = [port.name for port in border_names(model).inputs]
    tensors = list(model.tensors if extents is None else map(_loosened, model.tensors))
    for index in model.inputs:
        tensors[index] = model.tensors[index]
    for axis in axes:
        index = model.inputs[names.index(axis.input_among(names))]
        tensor = tensors[index]
        stated = tensor.signature or tensor.shape
        if axis.axis < len(stated) and (extents is not None or stated[axis.axis] == _UNKNOWN):
            extent = axis.upper if extents is None else extents[axis.name]
            signature, shape = (
                (*before[: axis.axis], extent, *before[axis.axis + 1 :]) for before in (stated, tensor.shape)
            )
            tensors[index] = replace(tensor, signature=signature, shape=shape)
    called = model.called
    if extents is not None:
        called = {
            number: replace(each, tensors=tuple(map(_loosened, each.tensors)))
            for number, each in called.items()
        }
    return replace(model, tensors=tuple(tensors), called=called)


def _loosened(tensor: TensorRecord) -> TensorRecord:
    """A tensor whose extents are what operators make them, but for a batch that the file leaves open."""
    if tensor.has_values or tensor.is_variable:
        return tensor
    return replace(tensor, signature=(_UNKNOWN,) * len(tensor.shape))


def _samples(axes: Sequence[OpenAxis]) -> list[dict[str, int]]:
    """Some extents of each range, the largest first: those beside it, one from the middle, and nearly the least.

    Of several extents each has such a one while the others have their largest, and all their least in the end. Where
    an extent is 1, operators are written in other ways.
    """
    ranges = {axis.name: (axis.lower, axis.upper) for axis in axes}
    largest = {name: last for name, (_, last) in ranges.items()}
    least = {name: max(first, min(3, last)) for name, (first, last) in ranges.items()}
    found = [largest]
    for name, (first, last) in ranges.items():
        found += [{**largest, name: extent} for extent in (last - 1, (first + last) // 2, least[name])]
    return [each for n, each in enumerate((*found, least)) if each not in (*found, least)[:n]]


def opening_options(model: ModelRecord) -> str:
    """`--open 'input:1=time:1..200'` for each open extent of the inputs; further ones of an input have own names."""
    options: list[str] = []
    for port, index in zip(border_names(model).inputs, model.inputs, strict=True):
        open_axes = [n for n, extent in enumerate(model.tensors[index].signature) if n and extent == _UNKNOWN]
        for axis in open_axes:
            name = "time" if axis == open_axes[0] else f"extent_{axis}"
            options.append(f"--open {port.name}:{axis}={name}:1..200")
    return " ".join(options)
