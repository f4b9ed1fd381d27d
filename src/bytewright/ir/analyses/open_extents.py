"""Numbers that follow from open extents: what `extent_expr` writes, read back in lowest terms."""

from collections.abc import Mapping

from bytewright import ir


def combined_extent(operator: str, left: ir.Extent, right: ir.Extent) -> ir.Extent | None:
    """What an operator of C makes of two extents, if it is one; None too where C's division would round up.

    Args:
        operator: `+`, `-`, `*` or `/`.
        left: One extent,
        right: and the other one; a number but for a sum, and a positive one but for sums and differences.
    """
    match operator, left, right:
        case "+", _, _:
            return ir.total(left, right)
        case "-", _, int():
            return ir.quotient(left, -right)
        case "*", int(), ir.Symbol() | ir.Quotient() if left >= 1:
            return ir.multiple(right, left)
        case "*", _, int() if right >= 1:
            return ir.multiple(left, right)
        case "/", _, int() if right >= 1 and ir.lower_bound(left) >= 0:
            return ir.quotient(left, 0, right)
        case _:
            return None


def extent_of(
    expression: ir.Expr, symbols: Mapping[str, ir.Symbol], values: Mapping[str, ir.Expr]
) -> ir.Extent | None:
    """The extent that an expression is, if it is one.

    Args:
        expression: Of an entry.
        symbols: The extents that its runs are given, by name.
        values: What other names stand for.
    """
    match expression:
        case ir.Const(value=int(value)):
            return value
        case ir.Var(name=name) if name in symbols:
            return symbols[name]
        case ir.Var(name=name) if name in values:
            return extent_of(values[name], symbols, values)
        case ir.Binary():
            sides = [extent_of(side, symbols, values) for side in (expression.left, expression.right)]
            if sides[0] is None or sides[1] is None:
                return None
            return combined_extent(expression.operator.value, sides[0], sides[1])
        case _:
            return None
