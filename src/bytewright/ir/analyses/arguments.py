"""What a call passes for the parameters of its callee.

Where a module is not verified yet, numbers and kinds may differ: what does not match is left out.
"""

from bytewright import ir


def buffer_arguments(callee: ir.PrimFunc, call: ir.Call) -> list[tuple[ir.BufferParameter, ir.Region]]:
    """Each parameter that is passed by address, with what is passed for it."""
    return [
        (parameter, argument)
        for parameter, argument in zip(callee.parameters, call.arguments, strict=False)
        if isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region)
    ]


def is_whole(parameter: ir.BufferParameter, region: ir.Region) -> bool:
    """Whether an argument is all of a buffer that has the parameter's shape, so rows of the two are the same."""
    return not region.indices and region.buffer.shape == parameter.buffer.shape


def scalar_arguments(callee: ir.PrimFunc, call: ir.Call) -> list[tuple[ir.ScalarParameter, ir.Expr]]:
    """Each parameter that is passed by value, with what is passed for it."""
    return [
        (parameter, argument)
        for parameter, argument in zip(callee.parameters, call.arguments, strict=False)
        if isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr)
    ]
