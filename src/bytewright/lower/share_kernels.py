"""Layers whose kernels are the same function share one: nothing in it differs but what the caller passes.

Sizes, zero points and clamps are constants of a kernel, so this costs no speed.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.rewrite import rename_callees


def share_kernels(module: ir.Module) -> ir.Module:
    """Returns the module with each distinct kernel once, under the name of its first user."""
    first_by_body: dict[tuple[object, ...], ir.PrimFunc] = {}
    renamed: dict[str, str] = {}
    for each in module.kernels:  # what a kernel calls comes before it
        kernel = rename_callees(each, renamed)
        external = kernel.external and replace(kernel.external, symbol=kernel.symbol)
        key = (kernel.device, kernel.job, kernel.parameters, kernel.body, external)
        renamed[kernel.name] = first_by_body.setdefault(key, kernel).name
    entries = tuple(rename_callees(entry, renamed) for entry in module.entries)
    return replace(module, kernels=tuple(first_by_body.values()), entries=entries)
