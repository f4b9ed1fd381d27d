"""Inputs, outputs and extents in C: the heads of functions that are about them, and what addresses must be."""

from collections.abc import Mapping, Sequence

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def run_head(
    plan: Plan, names: Names, name: str | None = None, arguments: Sequence[str] | None = None
) -> str:
    """The head of the run function, as the header declares and the entry defines it, or of another of its kind."""
    types = {
        "context": f"{names.context_type} *",
        "inputs": f"const {names.inputs_type} *",
        "outputs": f"const {names.outputs_type} *",
    }
    types |= {"devices": f"const {names.devices_type} *"} if plan.devices else {}
    given = plan.run_arguments if arguments is None else arguments
    arguments_text = ", ".join(f"{types.get(each, 'int32_t ')}{each}" for each in given)
    return f"int32_t {name or names.run}({arguments_text})"


def described(tensor: PlannedTensor) -> str:
    """`i8[1,49,10,1], scale 0.5847, zero point 83`."""
    text = f"{tensor.dtype.value}[{','.join(map(str, tensor.sized or tensor.extents))}]"
    if tensor.scale is not None:
        text += f", scale {tensor.scale:.9g}, zero point {tensor.zero_point}"
    return text


def address_head(names: Names, border: ir.Border, tensor: PlannedTensor) -> str:
    """The head of the function that returns the address of an input, to be written, or of an output, to be read."""
    constness = "const " if border is ir.Border.OUTPUT else ""
    name = names.address(border, tensor)
    return f"{constness}{memory_type(tensor.dtype)} *{name}(const {names.context_type} *context)"


def address_in_pool(base: str, offset: str, dtype: ir.DType, access: ir.Access) -> str:
    """The address of a buffer in a pool, typed, from the C text of the pool's base and of the offset."""
    constness = "const " if access is ir.Access.READ else ""
    through = f"({constness}void *)" if dtype.size_bytes > 1 else ""
    return f"({constness}{memory_type(dtype)} *){through}({base} + {offset})"


def strict_alignments(plan: Plan) -> Mapping[str, int]:
    """The alignment of each input and output that the application brings to a run, where it is more than the type asks
    for. Of what no step touches nothing is asked.
    """
    tensors = [tensor for tensor in (*plan.inputs, *plan.outputs) if tensor.buffer in plan.buffers]
    alignments = {tensor.buffer: plan.buffers[tensor.buffer].alignment for tensor in tensors}
    return {t.buffer: alignments[t.buffer] for t in tensors if alignments[t.buffer] > t.dtype.size_bytes}
