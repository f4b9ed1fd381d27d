"""`--calling-form packed`: the entry calls every kernel of its own device through its packed form.

What is launched on another device is handed over as a job, and what is called by name stays so: neither has a packed
form by symbol. Calls from kernel to kernel stay as they are.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.rewrite import Rewriting, rewrite_function


def pack_calls(module: ir.Module) -> ir.Module:
    """The module with the entry's calls in this form; it is lowered, and so it stays."""
    return replace(module, entries=tuple(_packed(module, entry) for entry in module.entries))


def _packed(module: ir.Module, entry: ir.PrimFunc) -> ir.PrimFunc:
    own = {kernel.name for kernel in module.kernels if kernel.device == entry.device and kernel.job is None}

    def statement(node: ir.Statement) -> tuple[ir.Statement, ...]:
        if isinstance(node, ir.Call) and node.kind is ir.CallKind.EXTERN and node.callee in own:
            return (replace(node, kind=ir.CallKind.CPACKED),)
        return (node,)

    return rewrite_function(entry, Rewriting(statement=statement))
