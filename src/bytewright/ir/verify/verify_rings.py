"""Checks what is said of rings where buffers are defined, before anything asks how large they are.

A ring keeps at least one row and at most all rows of an axis of constant extent, and these lie one behind the other.
"""

from bytewright import ir
from bytewright.ir.remember import remembered
from bytewright.ir.verify.violation import Context
from bytewright.ir.walk import statements_of


def check_rings(context: Context) -> bool:
    """Reports rings that are none; whether there are none of these."""
    num_before = len(context.violations)
    for constant in context.module.constant_buffers:
        fault = _fault(constant.buffer)
        if fault is not None:
            context.report(None, constant, fault)
    for function in (*context.module.kernels, *context.module.entries):
        for node, fault in _faults_in(function):
            context.report(function, node, fault)
    return len(context.violations) == num_before


@remembered
def _faults_in(function: ir.PrimFunc) -> tuple[tuple[object, str], ...]:
    """What is wrong with rings that a function defines, with where it does."""
    defining = (s for s in statements_of(function) if isinstance(s, ir.Allocate | ir.View))
    found = ((node, _fault(node.buffer)) for node in (*function.buffer_parameters, *defining))
    return tuple((node, fault) for node, fault in found if fault is not None)


def _fault(buffer: ir.Buffer) -> str | None:
    """What is wrong with the ring that a buffer is, if it is one."""
    ring = buffer.rows
    if ring is None:
        return None
    what = f"'{buffer.name}' has a ring of {ring.num_rows} rows on axis {ring.axis}"
    if not 0 <= ring.axis < len(buffer.shape):
        return f"{what} of {len(buffer.shape)} axes"
    extent, before = buffer.shape[ring.axis], buffer.shape[: ring.axis]
    if not isinstance(extent, int) or not 1 <= ring.num_rows <= extent:
        return f"{what}, which has {ir.format_shape((extent,))}"
    if any(outer != 1 for outer in before):
        return f"{what}, but its rows do not lie one behind the other: its shape is {ir.format_shape(buffer.shape)}"
    return None
