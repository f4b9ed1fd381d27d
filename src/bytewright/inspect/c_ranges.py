"""Between which values the integers of a function of C lie, in blocks of turns of the loops around.

A loop is an axis of arrays: one block with all of its turns, or each turn by itself. Whatever the blocks are, what is
computed is in the range that is told, so that finer ones never say less. Arithmetic is that of C's types: what leaves
its type may be any number of it, and what is not known at all is None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray
from pycparser import c_ast

from bytewright.inspect.c_nodes import OF_CONSTANTS, call_of, integer_of, type_name
from bytewright.inspect.c_source import descend

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_] | np.bool_
# Sums and products of numbers below it are those of 64 bits.
_MOST = 2**62
BOUNDS: Mapping[str, tuple[int, int]] = {
    "bool": (0, 1),
    "int": (-(2**31), 2**31 - 1),
    **{f"int{bits}_t": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)},
    **{f"uint{bits}_t": (0, 2**bits - 1) for bits in (8, 16, 32)},
}
SIZES = {
    "bool": 1,
    "float": 4,
    "double": 8,
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_RANKS = ("int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double")
_TRUTHS = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value, for each combination of blocks."""

    low: Numbers
    high: Numbers


Known = Range | None


def exactly(value: int) -> Known:
    """One number."""
    return (
        Range(np.array(value, dtype=np.int64), np.array(value, dtype=np.int64))
        if abs(value) < _MOST
        else None
    )


def any_of(kind: str) -> Known:
    """Any number of a type; None for one of 64 bits, and for what is none."""
    bounds = BOUNDS.get(kind)
    if bounds is None:
        return None
    return Range(np.array(bounds[0], dtype=np.int64), np.array(bounds[1], dtype=np.int64))


def within(found: Known, kind: str) -> Known:
    """A number as one of a type: what that does not have may be any of it."""
    bounds = BOUNDS.get(kind)
    if found is None:
        return any_of(kind)
    if bounds is None:
        is_whole = kind == "int64_t" or (kind == "uint64_t" and bool((found.low >= 0).all()))
        return found if is_whole else None
    fits = (found.low >= bounds[0]) & (found.high <= bounds[1])
    return Range(np.where(fits, found.low, bounds[0]), np.where(fits, found.high, bounds[1]))


@dataclass(slots=True)
class Scope:
    """What names stand for at one statement.

    Attributes:
        ranges: Of integers.
        kinds: The types of variables.
        truths: What constants of type bool were defined as, of what does not change.
        changing: What variables that change may be at any time.
        functions: Those of the file that expressions may call, by name.
    """

    functions: Callable[[str], c_ast.FuncDef | None]
    ranges: dict[str, Known] = field(default_factory=dict[str, Known])
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    truths: dict[str, c_ast.Node] = field(default_factory=dict[str, c_ast.Node])
    changing: dict[str, Known] = field(default_factory=dict[str, Known])

    def copy(self) -> "Scope":
        """The same, to be narrowed."""
        return Scope(self.functions, dict(self.ranges), dict(self.kinds), dict(self.truths), self.changing)

    def kind(self, node: c_ast.Node) -> str:
        """The type of an expression, after C's conversions; empty where it is not known."""
        match node:
            case c_ast.ID(name="true" | "false" | "INT32_MIN"):
                return "int32_t"
            case c_ast.ID(name=name):
                return _promoted(self.kinds.get(name, ""))
            case c_ast.Constant(type=kind, value=text):
                return kind if kind in ("float", "double") else _kind_of_number(text, integer_of(node))
            case c_ast.Cast(to_type=to):
                return _promoted(type_name(to))
            case c_ast.BinaryOp(op=operator) if operator in _TRUTHS:
                return "int32_t"
            case c_ast.BinaryOp(op="<<" | ">>", left=left):
                return self.kind(left)
            case c_ast.BinaryOp(left=left, right=right) | c_ast.TernaryOp(iftrue=left, iffalse=right):
                return _wider(self.kind(left), self.kind(right))
            case c_ast.UnaryOp(op="-" | "~" | "+", expr=inner):
                return self.kind(inner)
            case c_ast.UnaryOp(op="!"):
                return "int32_t"
            case c_ast.ArrayRef(name=c_ast.ID(name=name)) | c_ast.UnaryOp(op="*", expr=c_ast.ID(name=name)):
                return _promoted(self.kinds.get(f"{name}[]", ""))
            case c_ast.FuncCall(name=c_ast.ID(name=name)):
                function = self.functions(name)
                return (
                    "int64_t"
                    if name == OF_CONSTANTS
                    else ""
                    if function is None
                    else _promoted(_result(function))
                )
            case _:
                return ""

    def range_of(self, node: c_ast.Node) -> Known:
        """The range of an integer; None if it is not known, or none."""
        match node:
            case c_ast.Constant():
                value = integer_of(node)
                return None if value is None else exactly(value)
            case c_ast.ID(name="true" | "false" as name):
                return exactly(int(name == "true"))
            case c_ast.ID(name="INT32_MIN"):
                return exactly(-(2**31))
            case c_ast.ID(name=name):
                return self.ranges.get(name)
            case c_ast.Cast(to_type=to, expr=inner):
                return within(self.range_of(inner), type_name(to))
            case c_ast.UnaryOp(op="-", expr=inner):
                found = self.range_of(inner)
                return None if found is None else within(Range(-found.high, -found.low), self.kind(node))
            case c_ast.TernaryOp(cond=condition, iftrue=one, iffalse=other):
                return within(self._either(condition, one, other), self.kind(node))
            case c_ast.BinaryOp(op=operator) if operator in _TRUTHS:
                may_hold, may_fail = self.truth_of(node)
                return Range(np.asarray(~may_fail, dtype=np.int64), np.asarray(may_hold, dtype=np.int64))
            case c_ast.BinaryOp(op=operator, left=left, right=right):
                if operator in ("/", "%", ">>") and not self._keeps_signs(left, right):
                    return within(None, self.kind(node))
                found = _combined(operator, self.range_of(left), self.range_of(right), self.kind(node))
                return within(found, self.kind(node))
            case c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
                return any_of(self.kinds.get(f"{_pointer(node)}[]", ""))
            case c_ast.FuncCall():
                return self._called(*call_of(node))
            case _:
                return None

    def _keeps_signs(self, left: c_ast.Node, right: c_ast.Node) -> bool:
        """Whether two numbers stay what they are in the type that C computes both in, which may have no sign."""
        kind = _wider(self.kind(left), self.kind(right))
        sides = [self.range_of(side) for side in (left, right)] if kind[:1] in ("u", "") else []
        return all(side is not None and bool((side.low >= 0).all()) for side in sides)

    def _either(self, condition: c_ast.Node, one: c_ast.Node, other: c_ast.Node) -> Known:
        """The value of a choice: each side as the condition leaves it."""
        may_hold, may_fail = self.truth_of(condition)
        sides = [
            self.assumed(condition, holds).range_of(side) for side, holds in ((one, True), (other, False))
        ]
        if not may_hold.any() or not may_fail.any():
            return sides[0] if may_hold.any() else sides[1]
        if sides[0] is None or sides[1] is None:
            return None
        is_open = may_hold & may_fail
        low: Numbers = np.where(may_hold, sides[0].low, sides[1].low)
        high: Numbers = np.where(may_hold, sides[0].high, sides[1].high)
        low = np.where(is_open, np.minimum(sides[0].low, sides[1].low), low)
        return Range(low, np.where(is_open, np.maximum(sides[0].high, sides[1].high), high))

    def _called(self, name: str, given: tuple[c_ast.Node, ...]) -> Known:
        """What a function of numbers returns, which computes it of what it is given alone."""
        if name == OF_CONSTANTS and len(given) == 1:
            return self.range_of(given[0])
        function = self.functions(name)
        parameters = (
            [] if function is None or function.decl.type.args is None else function.decl.type.args.params
        )
        if function is None or len(parameters) != len(given):
            return None
        if not all(isinstance(each, c_ast.Decl) for each in parameters):
            return None
        inner = Scope(self.functions)
        for parameter, value in zip(parameters, given, strict=True):
            inner.define(parameter.name, type_name(parameter.type), self.range_of(value))
        for item in function.body.block_items or ():
            match item:
                case c_ast.Decl(name=str(label), init=c_ast.Node() as value, type=c_ast.TypeDecl()) if (
                    "const" in item.quals
                ):
                    inner.define(label, type_name(item.type), inner.range_of(value))
                case c_ast.Return(expr=c_ast.Node() as value):
                    return within(inner.range_of(value), _result(function))
                case _:
                    break
        return any_of(_result(function))

    def define(self, name: str, kind: str, found: Known) -> None:
        """A variable of a type gets a value."""
        self.ranges[name], self.kinds[name] = within(found, kind), kind

    def forget(self, node: c_ast.Node) -> None:
        """What is known of the variables that a node changes, but what they may be at any time."""
        for name in map(changed, descend(node)):
            if name in self.changing:
                self.ranges[name] = self.changing[name]

    # Conditions

    def truth_of(self, node: c_ast.Node) -> tuple[Truths, Truths]:
        """In which blocks a condition may hold, and in which it may not."""
        match node:
            case c_ast.BinaryOp(op="&&" | "||" as operator, left=left, right=right):
                one = self.truth_of(left)
                other = self.assumed(left, operator == "&&").truth_of(right)
                return (
                    (one[0] & other[0], one[1] | other[1])
                    if operator == "&&"
                    else (one[0] | other[0], one[1] & other[1])
                )
            case c_ast.UnaryOp(op="!", expr=inner):
                may_hold, may_fail = self.truth_of(inner)
                return may_fail, may_hold
            case c_ast.ID(name=name) if name in self.truths:
                return self.truth_of(self.truths[name])
            case c_ast.BinaryOp(op=str(operator), left=left, right=right) if operator in _NEGATED:
                if not self._keeps_signs(left, right):
                    return np.bool_(True), np.bool_(True)
                return _compared(operator, self.range_of(left), self.range_of(right))
            case _:
                found = self.range_of(node)
                return _compared("!=", found, exactly(0))

    def assumed(self, node: c_ast.Node, holds: bool) -> "Scope":
        """The scope where a condition holds, or does not."""
        inner = self.copy()
        inner._assume(node, holds)
        return inner

    def _assume(self, node: c_ast.Node, holds: bool) -> None:
        match node:
            case c_ast.BinaryOp(op="&&" | "||" as operator, left=left, right=right):
                if holds == (operator == "&&"):
                    self._assume(left, holds)
                    self._assume(right, holds)
            case c_ast.UnaryOp(op="!", expr=inner):
                self._assume(inner, not holds)
            case c_ast.ID(name=name) if name in self.truths:
                self._assume(self.truths[name], holds)
            case c_ast.BinaryOp(op=str(operator), left=left, right=right) if (
                operator in _NEGATED and self._keeps_signs(left, right)
            ):
                operator = operator if holds else _NEGATED[operator]
                self._narrow(left, operator, self.range_of(right))
                self._narrow(right, _SWAPPED[operator], self.range_of(left))
            case _:
                pass

    def _narrow(self, node: c_ast.Node, operator: str, other: Known) -> None:
        """A variable is as a comparison leaves it."""
        known = self.ranges.get(node.name) if isinstance(node, c_ast.ID) else None
        if known is None or other is None:
            return
        low, high = known.low, known.high
        if operator in ("<", "<=", "=="):
            high = np.minimum(high, other.high - (operator == "<"))
        if operator in (">", ">=", "=="):
            low = np.maximum(low, other.low + (operator == ">"))
        self.ranges[cast("c_ast.ID", node).name] = Range(low, high)


def _kind_of_number(text: str, value: int | None) -> str:
    """The type of a constant: the first that has it, of those with a sign alone if it is decimal; empty for `long`."""
    suffix = text.lower()[len(text.rstrip("uUlL")) :]
    signs = ("u",) if "u" in suffix else ("",) if text[:1] != "0" else ("", "u")
    kinds = [(sign, bits) for bits in ((64,) if "ll" in suffix else (32, 64)) for sign in signs]
    if value is None or suffix.count("l") == 1:
        return ""
    return next((f"{sign}int{bits}_t" for sign, bits in kinds if value < 2 ** (bits - (not sign))), "")


def changed(node: c_ast.Node) -> str:
    """The variable that a node changes; empty for none."""
    match node:
        case c_ast.Assignment(lvalue=c_ast.ID(name=name)):
            return name
        case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--", expr=c_ast.ID(name=name)):
            return name
        case _:
            return ""


def _pointer(node: c_ast.Node) -> str:
    inner = node.name if isinstance(node, c_ast.ArrayRef) else cast("c_ast.UnaryOp", node).expr
    return inner.name if isinstance(inner, c_ast.ID) else ""


def _result(function: c_ast.FuncDef) -> str:
    return type_name(function.decl.type.type)


def _promoted(kind: str) -> str:
    """The type that C computes a number of a type in."""
    return "int32_t" if kind in BOUNDS and kind not in ("uint32_t",) else kind


def _wider(one: str, other: str) -> str:
    return max(one, other, key=_RANKS.index) if one in _RANKS and other in _RANKS else ""


def _compared(operator: str, left: Known, right: Known) -> tuple[Truths, Truths]:
    if left is None or right is None:
        return np.bool_(True), np.bool_(True)
    match operator:
        case "<":
            return left.low < right.high, left.high >= right.low
        case "<=":
            return left.low <= right.high, left.high > right.low
        case ">" | ">=":
            return _compared("<" if operator == ">" else "<=", right, left)
        case _:
            may_equal = (left.low <= right.high) & (left.high >= right.low)
            may_differ = (left.low != right.high) | (left.high != right.low)
            return (may_equal, may_differ) if operator == "==" else (may_differ, may_equal)


def _size(found: Range) -> int:
    return max(
        abs(int(found.low.min())),
        abs(int(found.high.max())),
        abs(int(found.low.max())),
        abs(int(found.high.min())),
    )


def _combined(operator: str, left: Known, right: Known, kind: str) -> Known:
    """The range of an operation on whole numbers, computed in a type; None where nothing is said of it."""
    if left is None or right is None or not left.low.size or not right.low.size:
        return None
    sizes = _size(left), _size(right)
    is_constant = right.low.shape == () and bool(right.low == right.high)
    match operator:
        case "+" if sum(sizes) < _MOST:
            return Range(left.low + right.low, left.high + right.high)
        case "-" if sum(sizes) < _MOST:
            return Range(left.low - right.high, left.high - right.low)
        case "*" if sizes[0] * sizes[1] < _MOST:
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Range(
                np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3])),
                np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3])),
            )
        case "/" if is_constant and right.low > 0:
            return Range(_divided(left.low, right.low), _divided(left.high, right.low))
        case "%" if is_constant and right.low > 0:
            return _remainder(left, int(right.low))
        case ">>" if is_constant and 0 <= right.low < (62 if "64" in kind else 32):
            return Range(left.low >> right.low, left.high >> right.low)
        case "<<" if is_constant and 0 <= right.low < 31 and sizes[0] < 2**31:
            return Range(left.low << right.low, left.high << right.low)
        case "&" if is_constant and right.low >= 0:
            return Range(
                np.zeros_like(left.low),
                np.where(left.low >= 0, np.minimum(left.high, right.high), right.high),
            )
        case _:
            return None


def _divided(left: Numbers, right: Numbers) -> Numbers:
    """The quotient as C has it, towards zero."""
    return np.where(left >= 0, left // right, -(-left // right))


def _remainder(left: Range, divisor: int) -> Range:
    """Of blocks that lie between two multiples exactly; C's is negative for a negative number."""
    same = (left.low >= 0) & (left.low // divisor == left.high // divisor)
    low = np.where(same, left.low % divisor, np.where(left.low >= 0, 0, 1 - divisor))
    return Range(
        low,
        np.where(
            same,
            left.high % divisor,
            np.where(left.high < 0, 0, np.minimum(divisor - 1, np.maximum(left.high, 0))),
        ),
    )
