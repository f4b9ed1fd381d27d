"""Extents that a file leaves open, other than the batch: for the import, and the option that opens them."""

from collections.abc import Callable, Sequence
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
) -> tuple[tuple[int, ir.Module], ...]:
    """The graphs of a file for some extents along the axes, with these, the largest first.

    Of a file that cannot be resized it is the one that there is, under the largest extent.

    Raises:
        CompileError: As of `read`; BW204, an axis is of no input; BW121, the file computes with sizes, and cannot be
            resized.
    """
    extents, of_file = _extents(axes), with_extent(model, axes)
    try:
        return tuple((extent, read(with_extent(model, axes, extent))) for extent in extents)
    except CompileError as error:
        module = read(of_file)  # says what is wrong with the file whatever its extents are
        kinds = {kind for kind, folded in FOLDED.items() if folded.reads_shape and kind != "RANK"}
        found = [operator.label for operator in model.operators if operator.kind in kinds]
        if not found:
            return ((extents[0], module),)
        (first, *_) = error.diagnostics
        operators = f"operator{'s' if len(found) > 1 else ''} {', '.join(found)}"
        message = (
            f"{operators} of '{file_name}' read sizes, and the file is for one size alone: {first.message}"
        )
        raise compile_error("BW121", message, help="leave out --open", where=first.where) from error


def with_extent(model: ModelRecord, axes: Sequence[OpenAxis], extent: int | None = None) -> ModelRecord:
    """The model for an extent along the axes that are to be opened; for the largest, where the file says none.

    Raises:
        CompileError: BW204, an axis is of no input.
    """
    names = [port.name for port in border_names(model).inputs]
    tensors = list(model.tensors if extent is None else map(_loosened, model.tensors))
    for axis in axes:
        index = model.inputs[names.index(axis.input_among(names))]
        tensor = tensors[index]
        stated = model.tensors[index].signature or tensor.shape
        if axis.axis < len(stated) and (extent is not None or stated[axis.axis] == _UNKNOWN):
            signature, shape = (
                (*extents[: axis.axis], extent or axis.upper, *extents[axis.axis + 1 :])
                for extents in (stated, tensor.shape)
            )
            tensors[index] = replace(tensor, signature=signature, shape=shape)
    called = model.called
    if extent is not None:
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


def _extents(axes: Sequence[OpenAxis]) -> tuple[int, ...]:
    """Some extents of the range, the largest first: those beside it, one from the middle, and nearly the least.

    Where an extent is 1, operators are written in other ways.
    """
    first, last = axes[0].lower, axes[0].upper
    return tuple(dict.fromkeys((last, last - 1, (first + last) // 2, max(first, min(3, last)))))


def opening_options(model: ModelRecord) -> str | None:
    """`--open 'input:1=time:1..200'` for each input with an open extent; None where one has several."""
    options: list[str] = []
    for port, index in zip(border_names(model).inputs, model.inputs, strict=True):
        open_axes = [n for n, extent in enumerate(model.tensors[index].signature) if n and extent == _UNKNOWN]
        if len(open_axes) > 1:
            return None
        options += [f"--open {port.name}:{axis}=time:1..200" for axis in open_axes]
    return " ".join(options)
