"""Element types that a convolution is of, and which of them a template takes."""

from collections.abc import Collection

from bytewright import ir
from bytewright.lower.kernels.context import Template

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
Types = tuple[ir.DType, ...]
"""Of activations, weights and sums."""
SUMS_OF_32_BITS: frozenset[Types] = frozenset({(I8, I8, I32), (I16, I8, I32)})

OF_NINE_BITS: Types = (I8, I16, I32)
"""Of bytes by weights of two, of which nine bits are taken: those of uint8 without their zero point."""


def types_decline(template: Template, taken: Collection[Types]) -> str | None:
    """Why a convolution of other types than those that are taken is none for a template."""
    types = tuple(each.dtype for each in (template.type(0), template.type(1), template.result_type))
    return None if types in taken else f"it is of {', '.join(dtype.value for dtype in types)}"
