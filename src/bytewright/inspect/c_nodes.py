"""What the nodes of parsed C say: their text, the numbers that they are, and the forms that generated C has.

Numbers are read as sums, in the form in which plan.json has them. What C may make another number of is none: a cast to
a narrower or an unsigned type, and arithmetic without a sign.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from operator import add, floordiv, mul, sub

from pycparser import c_ast
from pycparser.c_generator import CGenerator
from pycparser.c_parser import ParseError

from bytewright import ir
from bytewright.inspect.c_source import CSource, descend
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.open_extents import combined_extent

# What C has no literals for, and truth values.
_NAMED = {"INT32_MIN": -(2**31), "INT64_MIN": -(2**63), "false": 0, "true": 1}
OF_CONSTANTS = "INT64_C"  # the macro around numbers of 64 bits
# What generated C counts in, and which numbers other types of constants have.
_COUNTED = "int32_t"
LONG = "int64_t"
_NUMBERS = {
    "bool": range(2),
    **{f"int{bits}_t": range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": range(2**bits) for bits in (8, 16, 32, 64)},
}
# Operators with a number, none of which makes less of more.
_RISING: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul, "/": floordiv}


class _Spelling(CGenerator):
    """C as it is generated: with parentheses around what stands between operators, and none around casts."""

    def _operand(self, node: c_ast.Node) -> str:
        text = self.visit(node)
        is_open = isinstance(node, c_ast.BinaryOp | c_ast.TernaryOp | c_ast.Assignment | c_ast.ExprList)
        return f"({text})" if is_open else text

    def visit_ID(self, n: c_ast.ID) -> str:  # noqa: N802
        return plain_name(n.name)

    def visit_Cast(self, n: c_ast.Cast) -> str:  # noqa: N802
        return f"({self.visit(n.to_type)}){self._operand(n.expr)}"

    def visit_UnaryOp(self, n: c_ast.UnaryOp) -> str:  # noqa: N802
        is_prefix = n.op in {"*", "&", "-", "+", "~", "!", "++", "--"}
        return f"{n.op}{self._operand(n.expr)}" if is_prefix else super().visit_UnaryOp(n)

    def visit_BinaryOp(self, n: c_ast.BinaryOp) -> str:  # noqa: N802
        is_chain = isinstance(n.left, c_ast.BinaryOp) and n.left.op == n.op
        left = self.visit(n.left) if is_chain else self._operand(n.left)
        return f"{left} {n.op} {self._operand(n.right)}"


def spell(node: c_ast.Node) -> str:
    """The text of a node, in one layout."""
    return _Spelling().visit(node)


def plain_name(name: str) -> str:
    """What a variable is called in C."""
    return name.partition("@")[0]


def statement(text: str) -> c_ast.Node:
    """The statement that a text is.

    Raises:
        ParseError: It is none.
    """
    function = CSource(f"void f(void) {{ {text} }}").function("f")
    items = [] if function is None else function.body.block_items or []
    if len(items) != 1:
        raise ParseError(f"'{text}' is not one statement")
    return items[0]


def expression(text: str) -> c_ast.Node:
    """The expression that a text is.

    Raises:
        ParseError: It is none.
    """
    match statement(f"return {text};"):
        case c_ast.Return(expr=c_ast.Node() as node):
            return node
        case _:
            raise ParseError(f"'{text}' is no expression")


def names_in(node: c_ast.Node) -> frozenset[str]:
    """The names that stand in a node, members among them."""
    return frozenset(inner.name for inner in descend(node) if isinstance(inner, c_ast.ID))


def parameters_of(function: c_ast.FuncDef) -> list[str]:
    """The names of a function's parameters."""
    given = function.decl.type.args
    return [] if given is None else [node.name for node in given.params if isinstance(node, c_ast.Decl)]


def call_of(node: c_ast.Node | None) -> tuple[str, tuple[c_ast.Node, ...]]:
    """The name of the function that a node calls, and what it passes; an empty name for what is no call of one."""
    match node:
        case c_ast.FuncCall(name=c_ast.ID(name=name), args=given):
            return name, () if given is None else tuple(given.exprs)
        case _:
            return "", ()


@dataclass(frozen=True, slots=True)
class LongForm(Form):
    """A sum in 64 bits, of which 32 would lose some."""


def loop_of(node: c_ast.Node) -> tuple[str, c_ast.Node, c_ast.Node] | None:
    """Of a loop that counts a variable of its own up by one: that, and where it begins and ends; None for another."""
    match node:
        case c_ast.For(
            init=c_ast.DeclList(decls=[c_ast.Decl(name=variable, init=c_ast.Node() as begin) as declared]),
            cond=c_ast.BinaryOp(op="<", left=c_ast.ID(name=compared), right=end),
            next=c_ast.UnaryOp(op="++" | "p++", expr=c_ast.ID(name=counted)),
        ) if variable == compared == counted and type_name(declared.type) in {_COUNTED, LONG}:
            return variable, begin, end
        case _:
            return None


def constant_of(node: c_ast.Node) -> tuple[str, c_ast.Node] | None:
    """The name and the value of a number that does not change, where a node declares one.

    The value is under a cast, but for an `int32_t`: the type makes of it what that does.
    """
    match node:
        case c_ast.Decl(name=name, init=c_ast.Node() as value, type=c_ast.TypeDecl() as declared):
            if type_name(declared) not in {*_NUMBERS, "float", "double"} or "const" not in node.quals:
                return None
            return name, value if type_name(declared) == _COUNTED else c_ast.Cast(declared, value)
        case _:
            return None


def type_name(node: c_ast.Node) -> str:
    """The name of a type, or of what a pointer points to; empty for what has none."""
    while isinstance(node, c_ast.TypeDecl | c_ast.PtrDecl | c_ast.Typename | c_ast.ArrayDecl):
        node = node.type
    return " ".join(node.names) if isinstance(node, c_ast.IdentifierType) else ""


def pointed_type(cast: c_ast.Cast) -> str | None:
    """What a cast makes something point to; None for a cast to no pointer."""
    return type_name(cast.to_type) if isinstance(cast.to_type.type, c_ast.PtrDecl) else None


def points_to_const(cast: c_ast.Cast) -> bool:
    """Whether nothing is written through the pointer that a cast makes."""
    pointer = cast.to_type.type
    return isinstance(pointer, c_ast.PtrDecl) and "const" in pointer.type.quals


def integer_of(node: c_ast.Node | None) -> int | None:
    """The number that a constant is; None for what is none."""
    if not isinstance(node, c_ast.Constant) or "int" not in node.type:
        return None
    digits = node.value.rstrip("uUlL")
    is_octal = len(digits) > 1 and digits.isdecimal() and digits[0] == "0"
    return int(digits, 8 if is_octal else 0)


def form_of(node: c_ast.Node, known: Mapping[str, Form], others: Container[str] = ()) -> Form | None:
    """An expression as a sum, if it is one.

    Args:
        node: The expression.
        known: What names stand for; others are variables,
        others: but for these, which stand for what is no sum.
    """
    match node:
        case c_ast.Constant(type="int"):
            return _in_width(Form(integer_of(node) or 0), is_long=False)
        case c_ast.ID(name=name) if name in _NAMED:
            return _in_width(Form(_NAMED[name]), is_long=False)
        case c_ast.ID(name=name):
            return None if name in others else known.get(name) or Form(0, ((plain_name(name), 1),))
        case c_ast.Cast(to_type=to, expr=inner) if pointed_type(node) is None:
            return _converted(form_of(inner, known, others), type_name(to))
        case c_ast.FuncCall(name=c_ast.ID(name=name), args=c_ast.ExprList(exprs=[inner])) if (
            name == OF_CONSTANTS
        ):
            return _converted(form_of(inner, known, others), LONG)
        case c_ast.UnaryOp(op="-", expr=inner):
            form = form_of(inner, known, others)
            return None if form is None else _combined("*", form, Form(-1))
        case c_ast.BinaryOp(op="+" | "-" | "*" as operator, left=left, right=right):
            one, other = form_of(left, known, others), form_of(right, known, others)
            return None if one is None or other is None else _combined(operator, one, other)
        case _:
            return None


def _combined(operator: str, one: Form, other: Form) -> Form | None:
    """The result of an operator, if it is a sum; None too for one of 32 bits with numbers that have more."""
    if operator != "*":
        form = one.plus(other, 1 if operator == "+" else -1)
    elif one.terms and other.terms:
        return None
    else:
        form = other.times(one.constant) if not one.terms else one.times(other.constant)
    is_long = isinstance(one, LongForm) or isinstance(other, LongForm)
    numbers = (form.constant, *(coefficient for _, coefficient in form.terms))
    is_known = is_long or all(number in _NUMBERS[_COUNTED] for number in numbers)
    return _in_width(form, is_long=is_long) if is_known else None


def _converted(form: Form | None, to: str) -> Form | None:
    """A sum in another type, if that has all its values: 64 bits those of any, other types those of some numbers."""
    if form is None:
        return None
    if not form.terms:
        is_same = form.constant in _NUMBERS.get(to, ())
    else:
        is_same = to == LONG or (to == _COUNTED and not isinstance(form, LongForm))
    return _in_width(form, is_long=to == LONG) if is_same else None


def _in_width(form: Form, *, is_long: bool) -> Form:
    """A sum in 64 bits or in 32, but a number that these have not."""
    is_long = is_long or (not form.terms and form.constant not in _NUMBERS[_COUNTED])
    return (LongForm if is_long else Form)(form.constant, form.terms)


def extent_in_c(
    node: c_ast.Node, symbols: Mapping[str, ir.Symbol], named: Mapping[str, c_ast.Node] | None = None
) -> ir.Extent | None:
    """The extent that an expression of C is, of those that the run is given, by name; None for what is none.

    `named` are other names, and what they stand for.
    """
    match node:
        case c_ast.Constant(type="int"):
            return integer_of(node)
        case c_ast.ID(name=name) if named is not None and name in named:
            return extent_in_c(named[name], symbols, named)
        case c_ast.ID(name=name):
            return symbols.get(plain_name(name))
        case c_ast.BinaryOp(op=operator, left=left, right=right):
            sides = [extent_in_c(side, symbols, named) for side in (left, right)]
            if sides[0] is None or sides[1] is None:
                return None
            return combined_extent(operator, sides[0], sides[1])
        case _:
            return None


def definitions_of(
    constants: Mapping[str, c_ast.Node], variables: Mapping[str, Form]
) -> tuple[dict[str, Form], dict[str, c_ast.Node]]:
    """What names of numbers stand for that are sums of `variables`, each of those before it; and what the others do."""
    known, others = dict(variables), dict[str, c_ast.Node]()
    for name, value in constants.items():
        form = form_of(value, known, others)
        if name in variables:
            continue
        if form is not None:
            known[name] = form
        else:
            others[name] = value
    return known, others


def most_bytes(size: c_ast.Node, upper: Mapping[str, int]) -> int | None:
    """The value of a product of extents and numbers, with every extent at its largest; None if it is none."""
    match size:
        case c_ast.Constant():
            return integer_of(size)
        case c_ast.Cast(to_type=to, expr=extent) if type_name(to) in {"uint32_t", "uint64_t"}:
            return _largest_extent(extent, upper)
        case c_ast.BinaryOp(op="*", left=left, right=right):
            factors = [most_bytes(side, upper) for side in (left, right)]
            return None if factors[0] is None or factors[1] is None else factors[0] * factors[1]
        case _:
            return None


def _largest_extent(extent: c_ast.Node, upper: Mapping[str, int]) -> int | None:
    """The value of what is never less for more of an extent, with that at its largest; None if it is none."""
    match extent:
        case c_ast.ID(name=name):
            return upper.get(name)
        case c_ast.BinaryOp(op=operator, left=left, right=c_ast.Constant() as right) if operator in _RISING:
            value, number = _largest_extent(left, upper), integer_of(right)
            if value is None or number is None or (operator == "/" and number == 0):
                return None
            return _RISING[operator](value, number)
        case c_ast.BinaryOp(op="*", left=c_ast.Constant() as left, right=right):
            value, number = _largest_extent(right, upper), integer_of(left)
            return None if value is None or number is None else value * number
        case _:
            return None
