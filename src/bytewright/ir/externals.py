"""Which kernels of a module the application defines, and which the bundle has the C of."""

from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc


def externals(module: Module) -> tuple[PrimFunc, ...]:
    """The functions of the application that the module calls."""
    return tuple(kernel for kernel in module.kernels if kernel.external is not None)


def own_kernels(module: Module, device: str | None = None) -> tuple[PrimFunc, ...]:
    """The kernels that the bundle has the C of, of one device or of all: a job is none, but on the entry's device."""
    entry = entry_device(module)
    return tuple(
        kernel
        for kernel in module.kernels
        if kernel.external is None
        and device in (None, kernel.device)
        and (kernel.job is None or kernel.device == entry)
    )


def entry_device(module: Module) -> str | None:
    """The device that the entry runs on; None for kernels alone."""
    return module.entries[0].device if module.entries else None
