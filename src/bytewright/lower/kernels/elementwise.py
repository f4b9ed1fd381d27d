"""Element-wise operators without an anchor: one loop nest over the output."""

from bytewright.lower.epilogue import Epilogue
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.kernels.context import elements


def lower_elementwise(kernel: KernelBuilder, epilogue: Epilogue) -> None:
    """Writes the kernel of a group that is nothing but element-wise operators."""
    shape = epilogue.types[epilogue.group.output.name].shape
    # Without the operators' names: a kernel whose text is the same is shared, and its head says whom it serves.
    kernel.body.note("element by element: load, compute, store")
    with elements(kernel, shape) as coordinates:
        epilogue.store(coordinates)
