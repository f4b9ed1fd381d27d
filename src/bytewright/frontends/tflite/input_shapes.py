"""Shapes that the user gives to inputs whose extents a file leaves open."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.model import ModelRecord, TensorRecord
from bytewright.frontends.tflite.names import BorderNames, border_names
from bytewright.frontends.tflite.open_extents import UNKNOWN_EXTENT, loosened
from bytewright.options import InputShape, OpenAxis

_OF_IMAGES, _OF_OTHERS = 224, 64
"""Examples: halved five times they are whole, and tables of positions seldom have less."""


def with_input_shapes(
    models: Sequence[ModelRecord],
    names: Sequence[BorderNames],
    shapes: Sequence[InputShape],
    open_axes: Sequence[OpenAxis],
) -> tuple[ModelRecord, ...]:
    """The models, each for the shapes of those inputs that it has.

    Args:
        models: The signatures of a file.
        names: What their inputs are called.
        shapes: At most one for each name.
        open_axes: Axes that each run is given the extent of: the shape's is the largest there, if it has one.

    Raises:
        CompileError: BW204, a shape is of no input, the second of one, of another rank, or has another extent than the
            file, or than an open axis has as its largest.
    """
    inputs = [[port.name for port in each.inputs] for each in names]
    known = tuple(dict.fromkeys(name for each in inputs for name in each))
    wanted: dict[str, InputShape] = {}
    for shape in shapes:
        name = shape.input_among(known)
        if name in wanted:
            message = f"input '{name}' has two shapes: --input-shape {wanted[name]} and {shape}"
            raise compile_error("BW204", message, help="give one of them")
        wanted[name] = shape
    for axis in open_axes if wanted else ():
        name = axis.input_among(known)
        if name in wanted:
            _require_largest(wanted[name], axis)
    return tuple(_shaped(*each, wanted) for each in zip(models, inputs, strict=True))


def _require_largest(shape: InputShape, axis: OpenAxis) -> None:
    if shape.extents[axis.axis : axis.axis + 1] not in ((), (None,), (axis.upper,)):
        extents = list(shape.extents)
        extents[axis.axis] = None
        reason = (
            f"axis {axis.axis} has {shape.extents[axis.axis]} elements, and --open {axis} up to {axis.upper}"
        )
        raise shape.refused(reason, extents)


def _shaped(model: ModelRecord, names: Sequence[str], wanted: Mapping[str, InputShape]) -> ModelRecord:
    found = {
        index: _extents(name, wanted[name], model.tensors[index])
        for name, index in zip(names, model.inputs, strict=True)
        if name in wanted
    }
    if all(model.tensors[index].stated_shape == extents for index, extents in found.items()):
        return model
    model = loosened(model)
    tensors = list(model.tensors)
    for index, extents in found.items():
        sizes = zip(extents, tensors[index].shape, strict=True)
        shape = tuple(own if extent == UNKNOWN_EXTENT else extent for extent, own in sizes)
        tensors[index] = replace(tensors[index], signature=extents, shape=shape)
    return replace(model, tensors=tuple(tensors))


def _extents(name: str, shape: InputShape, tensor: TensorRecord) -> tuple[int, ...]:
    """The extents of an input; a batch that is open, and is to be 1, stays open: that of a run is then 1.

    Raises:
        CompileError: BW204, the shape is of another rank, or has another extent than the file.
    """
    stated = tensor.stated_shape
    if len(shape.extents) != len(stated):
        reason = f"{len(shape.extents)} extents for input '{name}', which has {len(stated)}: {list(stated)}"
        raise shape.refused(reason, _example(tensor))
    found = list(stated)
    for axis, (extent, own) in enumerate(zip(shape.extents, stated, strict=True)):
        if extent is None or (axis == 0 and extent == 1 and own == UNKNOWN_EXTENT):
            continue
        if own not in (UNKNOWN_EXTENT, extent):
            reason = (
                f"axis {axis} of input '{name}' has {own} elements in the file, whose shape is {list(stated)}"
            )
            raise shape.refused(reason, [*shape.extents[:axis], own, *shape.extents[axis + 1 :]])
        found[axis] = extent
    return tuple(found)


def shape_options(model: ModelRecord) -> str:
    """`--input-shape x=1x224x224x3` for each input with open extents: what the file says beyond 1, or an example."""
    options: list[str] = []
    for port, index in zip(border_names(model).inputs, model.inputs, strict=True):
        tensor = model.tensors[index]
        if UNKNOWN_EXTENT in tensor.signature[1:]:
            options.append(f"--input-shape {InputShape(_example(tensor), port.name)}")
    return " ".join(options)


def _example(tensor: TensorRecord) -> tuple[int, ...]:
    largest = _OF_IMAGES if len(tensor.shape) == 4 else _OF_OTHERS
    return tuple(
        extent if extent != UNKNOWN_EXTENT else own if own > 1 or not axis else largest
        for axis, (extent, own) in enumerate(zip(tensor.stated_shape, tensor.shape, strict=True))
    )
