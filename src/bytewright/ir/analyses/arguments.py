"""What a call passes for the parameters of its callee.

Where a module is not verified yet, numbers and kinds may differ: what does not match is left out.
"""

from bytewright import ir
from bytewright.ir.address import num_elements


def buffer_arguments(callee: ir.PrimFunc, call: ir.Call) -> list[tuple[ir.BufferParameter, ir.Region]]:
    """Each parameter that is passed by address, with what is passed for it."""
    return [
        (parameter, argument)
        for parameter, argument in zip(callee.parameters, call.arguments, strict=False)
        if isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region)
    ]


def has_same_rows(parameter: ir.BufferParameter, region: ir.Region, axis: int) -> bool:
    """Whether an argument is all of a buffer whose rows along an axis are those of the parameter.

    Within a row the two may count axes in other ways.
    """
    given, asked = region.buffer, parameter.buffer
    return (
        not region.indices
        and given.dtype is asked.dtype
        and given.shape[: axis + 1] == asked.shape[: axis + 1]
        and num_elements(given) == num_elements(asked)
    )


def scalar_arguments(callee: ir.PrimFunc, call: ir.Call) -> list[tuple[ir.ScalarParameter, ir.Expr]]:
    """Each parameter that is passed by value, with what is passed for it."""
    return [
        (parameter, argument)
        for parameter, argument in zip(callee.parameters, call.arguments, strict=False)
        if isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr)
    ]
