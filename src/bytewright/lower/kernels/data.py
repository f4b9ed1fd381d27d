"""Operators that move data: each output element is loaded from where it comes from, then finished and stored."""

from __future__ import annotations

from contextlib import AbstractContextManager

from bytewright.ir.builder import load
from bytewright.ir.expr import TRUE, Expr, both, const, select
from bytewright.lower.kernels.context import Template, axis_names, nest
from bytewright.lower.scalar import element
from bytewright.ops.data import Concat, Identity, Pad, Slice, Transpose


def lower_pad(template: Template, operation: Pad) -> None:
    """Writes the kernel of a pad: the input, or the constant around it."""
    source = template.input(0)
    shape = template.type(0).fixed_shape
    with _output_loops(template) as coordinates:
        inside: Expr = TRUE
        indices: list[Expr] = []
        for index, extent, before, after in zip(
            coordinates, shape, operation.before, operation.after, strict=True
        ):
            own = index - before
            indices.append(own)
            if before > 0:
                inside = both(inside, own >= 0)
            if after > 0:
                inside = both(inside, own < extent)
        value = select(inside, load(source, *indices), const(operation.value, source.dtype))
        template.epilogue.store(coordinates, element(value))


def lower_slice(template: Template, operation: Slice) -> None:
    """Writes the kernel of a slice, strides included."""
    source = template.input(0)
    with _output_loops(template) as coordinates:
        indices = [
            index * stride + start
            for index, start, stride in zip(coordinates, operation.start, operation.stride, strict=True)
        ]
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_transpose(template: Template, operation: Transpose) -> None:
    """Writes the kernel of a transpose: axis i of the result is axis permutation[i] of the input."""
    source = template.input(0)
    with _output_loops(template) as coordinates:
        indices: list[Expr] = [const(0)] * len(coordinates)
        for index, axis in zip(coordinates, operation.permutation, strict=True):
            indices[axis] = index
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_concat(template: Template, operation: Concat) -> None:
    """Writes the kernel of a concatenation: one loop nest an operand."""
    rank = len(template.result_type.shape)
    axis = operation.axis % rank
    first = 0
    for operand in range(len(template.anchor.inputs)):
        source = template.input(operand)
        shape = template.type(operand).fixed_shape
        with nest(template.body, axis_names(rank), shape) as coordinates:
            own = list(coordinates)
            own[axis] = own[axis] + first
            template.epilogue.store(tuple(own), element(load(source, *coordinates)))
        first += shape[axis]


def lower_identity(template: Template, operation: Identity) -> None:
    """Writes a copy: where one tensor must exist twice, at two outputs of the model."""
    del operation
    source = template.input(0)
    with _output_loops(template) as coordinates:
        template.epilogue.store(coordinates, element(load(source, *coordinates)))


def _output_loops(template: Template) -> AbstractContextManager[tuple[Expr, ...]]:
    shape = template.result_type.fixed_shape
    return nest(template.body, axis_names(len(shape)), shape)
