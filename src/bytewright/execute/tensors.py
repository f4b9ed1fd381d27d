"""Arrays at the border of a run: checks against the model's tensors, random inputs, and raw bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bytewright.diagnostics import Collector, CompileError, Diagnostic
from bytewright.execute.description import Array, Bundle, Tensor


def check_inputs(bundle: Bundle, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The inputs as contiguous arrays.

    Raises:
        CompileError: BW205 for a wrong number of arrays, or one diagnostic for each wrong shape or type.
    """
    if len(inputs) != len(bundle.inputs):
        names = ", ".join(f"'{tensor.name}'" for tensor in bundle.inputs)
        raise CompileError(
            Diagnostic(
                "BW205",
                f"model '{bundle.model}' has {len(bundle.inputs)} inputs, {len(inputs)} were given",
                notes=(f"in this order: {names}",),
            )
        )
    problems = Collector()
    for tensor, array in zip(bundle.inputs, inputs, strict=True):
        if array.shape != tensor.shape or array.dtype != tensor.dtype:
            problems.add(
                Diagnostic(
                    "BW205",
                    f"input '{tensor.name}' must be {tensor.dtype}{list(tensor.shape)}, "
                    f"the array is {array.dtype}{list(array.shape)}",
                )
            )
    problems.stop_if_any()
    return tuple(np.ascontiguousarray(array).reshape(array.shape) for array in inputs)


def random_inputs(bundle: Bundle, seed: int) -> list[Array]:
    """Inputs from a seed: integers over their full range, floats in [-1, 1).

    numpy keeps the stream of the legacy generator for ever, so a seed means the same bytes in any version.
    """
    generator = np.random.RandomState(seed)
    return [_random_array(generator, tensor) for tensor in bundle.inputs]


def _random_array(generator: np.random.RandomState, tensor: Tensor) -> Array:
    if tensor.dtype.kind == "f":
        return generator.uniform(-1.0, 1.0, tensor.shape).astype(tensor.dtype)
    if tensor.dtype.kind == "b":
        return generator.randint(0, 2, tensor.shape).astype(tensor.dtype)
    raw = generator.randint(0, 256, tensor.size_bytes, dtype=np.uint8)
    return raw.view(tensor.dtype).reshape(tensor.shape)


def pack(batch: Sequence[Sequence[Array]]) -> bytes:
    """The inputs of all inferences, one after another, as the harnesses read them."""
    return b"".join(array.tobytes() for inputs in batch for array in inputs)


def unpack_outputs(bundle: Bundle, data: bytes, num_inferences: int) -> tuple[tuple[Array, ...], ...]:
    """The outputs of all inferences from what a harness wrote; its length must have been checked."""
    results: list[tuple[Array, ...]] = []
    offset = 0
    for _ in range(num_inferences):
        arrays: list[Array] = []
        for tensor in bundle.outputs:
            piece = data[offset : offset + tensor.size_bytes]
            arrays.append(np.frombuffer(piece, dtype=tensor.dtype).reshape(tensor.shape).copy())
            offset += tensor.size_bytes
        results.append(tuple(arrays))
    return tuple(results)


def output_size_bytes(bundle: Bundle) -> int:
    """Bytes of all outputs of one inference."""
    return sum(tensor.size_bytes for tensor in bundle.outputs)
