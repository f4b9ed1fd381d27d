"""Inputs, outputs and extents in C: the heads of functions that are about them, and what addresses must be."""

from collections.abc import Mapping

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def run_head(plan: Plan, names: Names, name: str | None = None) -> str:
    """The head of the run function, as the header declares and the entry defines it, or of another of its kind.

    That which begins a run by rows has nothing to do with devices yet.
    """
    types = {"inputs": names.inputs_type, "outputs": names.outputs_type}
    ports = "".join(f", const {types[name]} *{name}" for name in plan.structures_of_run)
    extents = "".join(f", int32_t {symbol.name}" for symbol in plan.symbols)
    devices = devices_argument(plan, names) if name != names.begin else ""
    arguments = f"{names.context_type} *context{ports}{extents}{devices}"
    return f"int32_t {name or names.run}({arguments})"


def devices_argument(plan: Plan, names: Names) -> str:
    """The argument that is the devices, behind others."""
    return f", const {names.devices_type} *devices" if plan.devices else ""


def address_head(names: Names, border: ir.Border, tensor: PlannedTensor) -> str:
    """The head of the function that returns the address of an input, to be written, or of an output, to be read."""
    constness = "const " if border is ir.Border.OUTPUT else ""
    name = names.address(border, tensor)
    return f"{constness}{memory_type(tensor.dtype)} *{name}(const {names.context_type} *context)"


def strict_alignments(plan: Plan) -> Mapping[str, int]:
    """The alignment of each input and output that the application brings to a run, where it is more than the type asks
    for. Of what no step touches nothing is asked.
    """
    tensors = [tensor for tensor in (*plan.inputs, *plan.outputs) if tensor.buffer in plan.buffers]
    alignments = {tensor.buffer: plan.buffers[tensor.buffer].alignment for tensor in tensors}
    return {t.buffer: alignments[t.buffer] for t in tensors if alignments[t.buffer] > t.dtype.size_bytes}
