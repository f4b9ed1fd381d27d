"""The first layer that differs: tensors between the kernels, beside those of LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bytewright.execute.step_tensors import WrittenTensor
from bytewright.execute.tensors import Array
from bytewright.ir import DType
from bytewright.record.plan import Plan
from bytewright.validate.agreement import distance, is_equal


@dataclass(frozen=True, slots=True, eq=False)
class ComparedTensor:
    """A tensor of the model's file in one inference.

    Attributes:
        name: In the model's file.
        step: The step that wrote it.
        operators: Of the model, which that step carries out.
        own: What the bundle computed; without channels that are constant and were removed.
        reference: What the reference did.
        num_different: Elements that differ; 0 if it is exact.
        worst: The largest difference of two elements.
    """

    name: str
    step: int
    operators: tuple[str, ...]
    own: Array
    reference: Array
    num_different: int
    worst: float


def compare_tensors(
    plan: Plan, written: Sequence[WrittenTensor], references: Mapping[str, Array]
) -> tuple[ComparedTensor, ...]:
    """Those tensors that both have, in the order of the steps; what the reference keeps otherwise is left out."""
    found: list[ComparedTensor] = []
    for tensor in written:
        reference = references.get(tensor.name)
        if reference is None:
            continue
        arrays = [_array(content, tensor, reference) for content in tensor.contents]
        fitting = [array for array in arrays if array is not None]
        if not fitting:
            continue
        compared = [(array, _beside(array, tensor, reference)) for array in fitting]
        # A part is right if it once was: later steps may have written over it.
        own, other = next((pair for pair in compared if is_equal(*pair)), compared[-1])
        num_different = 0 if is_equal(own, other) else int((own.reshape(-1) != other.reshape(-1)).sum())
        operators = plan.steps[tensor.step].operators
        found.append(
            ComparedTensor(
                tensor.name, tensor.step, operators, own, other, num_different, distance(own, other)
            )
        )
    return tuple(found)


def _array(content: bytes, tensor: WrittenTensor, reference: Array) -> Array | None:
    """The bytes as an array like the reference's, or with fewer channels; None if they are none."""
    buffer = tensor.buffer
    if (buffer.dtype, reference.dtype) == (DType.I8, np.uint8):
        # uint8 of files is int8 between the kernels, 128 less.
        content = (np.frombuffer(content, np.uint8) ^ 0x80).tobytes()
    elif not tensor.is_part and buffer.dtype is not None and buffer.dtype.numpy != reference.dtype:
        return None
    if len(content) % reference.dtype.itemsize:
        return None
    flat = np.frombuffer(content, reference.dtype)
    if flat.size == reference.size:
        return flat.reshape(reference.shape)
    is_narrowed = buffer.shape_before == reference.shape and bool(buffer.kept_channels) and not tensor.is_part
    return flat.reshape(buffer.shape or ()) if is_narrowed else None


def _beside(own: Array, tensor: WrittenTensor, reference: Array) -> Array:
    """What to compare with: the reference, or those of its channels that are left."""
    if own.shape == reference.shape:
        return reference
    return reference[..., list(tensor.buffer.kept_channels)]
