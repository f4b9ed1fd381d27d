"""Which floats may be infinite where no input is: of EXP and LOG, and what is computed of these.

The reference limits what its sums and products give to the largest float32 numbers; elsewhere an infinity goes on. So
the logarithm of 1 + EXP(x), which is how softplus is exported, is 88.7 there for each large x.
"""

from collections.abc import Collection
from math import isfinite

from bytewright import ir
from bytewright.ops.elementwise import Clamp
from bytewright.ops.float_functions import Cos, Exp, Log, Sigmoid, Sin, Tanh, TflSign

_MAKE_INFINITIES = (Exp, Log)
_BOUNDED = (Cos, Sigmoid, Sin, Tanh, TflSign)


def may_be_infinite(node: ir.Node, infinite: Collection[str]) -> bool:
    """Whether results of a node are floats that may be infinite, as operands in `infinite` may."""
    if node.outputs[0].type.dtype is not ir.DType.F32:
        return False
    match node.operation:
        case Clamp(minimum=low, maximum=high) if isfinite(low) and isfinite(high):
            return False
        case operation if isinstance(operation, _BOUNDED):
            return False
        case operation:
            return isinstance(operation, _MAKE_INFINITIES) or any(name in infinite for name in node.inputs)
