"""Extents that a file leaves open, other than the batch: for the import, and the option that opens them."""

from collections.abc import Sequence
from dataclasses import replace

from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.names import border_names
from bytewright.options import OpenAxis

_UNKNOWN = -1


def with_largest(model: ModelRecord, axes: Sequence[OpenAxis]) -> ModelRecord:
    """The model for the largest extents along the axes that are to be opened, where the file says none."""
    names = [port.name for port in border_names(model).inputs]
    tensors = list(model.tensors)
    for axis in axes:
        position = 0 if axis.input is None else names.index(axis.input) if axis.input in names else len(names)
        if position >= len(model.inputs):
            continue  # no such input, which `open_axis` says
        index = model.inputs[position]
        tensor = tensors[index]
        if tensor.signature[axis.axis : axis.axis + 1] == (_UNKNOWN,):
            signature, shape = (
                (*extents[: axis.axis], axis.upper, *extents[axis.axis + 1 :])
                for extents in (tensor.signature, tensor.shape)
            )
            tensors[index] = replace(tensor, signature=signature, shape=shape)
    return replace(model, tensors=tuple(tensors))


def opening_options(model: ModelRecord) -> str | None:
    """`--open 'input:1=time:1..200'` for each input with an open extent; None where one has several."""
    options: list[str] = []
    for port, index in zip(border_names(model).inputs, model.inputs, strict=True):
        open_axes = [n for n, extent in enumerate(model.tensors[index].signature) if n and extent == _UNKNOWN]
        if len(open_axes) > 1:
            return None
        options += [f"--open {port.name}:{axis}=time:1..200" for axis in open_axes]
    return " ".join(options)
