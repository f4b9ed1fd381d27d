"""The functions of scalars that the C may define: those of the IR, and operators that C has none for."""

from bytewright import ir
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS


def _clamp(dtype: ir.DType) -> ir.ScalarFunction:
    value, low, high, raised = (ir.Var(name, dtype) for name in ("value", "low", "high", "raised"))
    steps = ((raised, ir.select(value < low, low, value)),)
    result = ir.select(high < raised, high, raised)
    return ir.ScalarFunction(f"clamp_{dtype.value}", (value, low, high), dtype, result, steps)


def _extreme(operator: ir.BinaryOperator, dtype: ir.DType) -> ir.ScalarFunction:
    first, second = ir.Var("first", dtype), ir.Var("second", dtype)
    is_second = first < second if operator is ir.BinaryOperator.MAX else second < first
    result = ir.select(is_second, second, first)
    return ir.ScalarFunction(f"{operator.value}_{dtype.value}", (first, second), dtype, result)


# Operators that C has none for, as functions; what is not a number is passed on where C++ does so.
CLAMPS = {dtype: _clamp(dtype) for dtype in ir.DType}
EXTREMES = {
    (operator, dtype): _extreme(operator, dtype)
    for operator in (ir.BinaryOperator.MAX, ir.BinaryOperator.MIN)
    for dtype in ir.DType
}
# What expressions may call, whatever the module, in the order of the text: nothing else is called so.
FUNCTIONS = {f.name: f for f in (*CLAMPS.values(), *EXTREMES.values(), *SCALAR_FUNCTIONS.values())}
