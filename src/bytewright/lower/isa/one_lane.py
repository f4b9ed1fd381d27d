"""A unit of one lane: values in registers of their own, of cores without vectors, and plain C on them.

What it serves are templates that keep results of neighbouring channels in registers, where portable ones have arrays.
"""

from collections.abc import Mapping

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width

# The IR's minimum and maximum keep the left one where neither is less, as where one is no number.
_BINARIES = {
    BinaryOperator.ADD: "left + right",
    BinaryOperator.SUB: "left - right",
    BinaryOperator.MUL: "left * right",
    BinaryOperator.MIN: "(right < left) ? right : left",
    BinaryOperator.MAX: "(left < right) ? right : left",
}


def one_lane(lane: Width, elements: Mapping[ir.DType, str], num: int = 1) -> VectorUnit:
    """The unit of a lane, with elements of some types in memory; in C they are of these types."""
    (dtype,) = lane.types
    return lane.unit(
        loads=dict.fromkeys(elements, "return elements[0];"),
        stores={each: f"elements[0] = ({c_type})values;" for each, c_type in elements.items()},
        broadcasts={dtype: "value"},
        binaries={(operator, dtype): text for operator, text in _BINARIES.items()},
        functions=(),
        num=num,
    )
