"""Runs a kernel with its input and its output in one array of bytes, at a distance of the caller's choice.

The evaluator notices every read of a byte that another buffer has overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.copy import copy_kernel
from support.evaluate.evaluate import Evaluator

Array = NDArray[Any]
_POOL = ir.pool_scope("pool")


def run_in_one_array(
    kernel: ir.PrimFunc,
    arguments: Mapping[str, Array | int],
    source: str,
    output: str,
    distance: int,
) -> Array | None:
    """What the kernel writes; None if it read a byte that was overwritten.

    Args:
        kernel: The kernel.
        arguments: For each of its parameters but the output an array or a number.
        source: The parameter of the input.
        output: The parameter of the output.
        distance: From where the input begins to where the output does, in bytes.
    """
    buffers = {p.name: p.buffer for p in kernel.buffer_parameters}
    given = [p for p in kernel.buffer_parameters if p.name not in (source, output)]
    parts = {
        name: ir.Allocate(
            ir.Buffer(f"planned_{name}", buffers[name].shape, buffers[name].dtype),
            ir.Storage(_POOL, offset=offset),
        )
        for name, offset in ((source, max(0, -distance)), (output, max(0, distance)))
    }
    ends = {
        name: ir.Buffer(f"whole_{name}", buffers[name].shape, buffers[name].dtype)
        for name in (source, output)
    }
    regions: dict[str, ir.Region] = {name: ir.Region(part.buffer) for name, part in parts.items()}
    regions |= {p.name: ir.Region(p.buffer) for p in given}
    passed = tuple(
        regions[p.name] if isinstance(p, ir.BufferParameter) else ir.const(int(np.asarray(arguments[p.name])))
        for p in kernel.parameters
    )
    copies = {name: copy_kernel(f"copy_{name}", buffers[name], "cpu") for name in (source, output)}
    body = (
        *parts.values(),
        ir.Call(copies[source].name, (ir.Region(ends[source]), regions[source])),
        ir.Call(kernel.name, passed),
        ir.Call(copies[output].name, (regions[output], ir.Region(ends[output]))),
    )
    parameters = (
        ir.BufferParameter(ends[source], ir.Access.READ),
        *given,
        ir.BufferParameter(ends[output], ir.Access.WRITE),
    )
    entry = ir.PrimFunc("main", parameters, ir.Seq(body))
    evaluator = Evaluator(ir.Module("m", kernels=(*copies.values(), kernel), entries=(entry,)))
    arrays: dict[str, Any] = {p.name: arguments[p.name] for p in given}
    try:
        return evaluator.run("main", {ends[source].name: arguments[source], **arrays})[ends[output].name]
    except InternalError as error:
        if "is read before it is written" not in str(error):
            raise
        return None
