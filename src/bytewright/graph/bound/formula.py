"""Formulas over the facts of an operator, in a file of the user: `2 * weights.shape[0] * input.shape[3]`.

Numbers, texts and truth values; names of facts, their members and elements; `+ - * // %`, comparisons, `and`, `or`,
`not`, `min` and `max`. The text is parsed as a Python expression, and what else stands in it is refused.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub
from typing import Any, cast

from bytewright import ir

_MOST_CHARACTERS = 500
_MOST_LEVELS = 50  # of what stands inside each other
_ARITHMETIC: dict[type[ast.operator], Any] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
}
_COMPARISONS: dict[type[ast.cmpop], Any] = {
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
}
_FUNCTIONS: dict[str, Any] = {"min": min, "max": max}
_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.Load),
    *(ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Call),
    *_ARITHMETIC,
    *_COMPARISONS,
)


class FormulaError(ValueError):
    """A formula is none, or means nothing for an operator; the message says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """A fact that has others: `input` has `shape`, `elements` and `bytes`.

    Attributes:
        title: What it is, in a message.
        items: What `[0]`, `[1]` and so on are.
        data: The array, where it is a constant; its elements are counted row by row.
    """

    title: str
    members: Mapping[str, object] = field(default_factory=dict[str, object])
    items: Sequence[object] = ()
    data: ir.TensorData | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, as it is written."""

    text: str

    def value(self, facts: Mapping[str, object]) -> object:
        """What it is for an operator.

        Raises:
            FormulaError: A fact does not exist, or the arithmetic makes no sense.
        """
        return _value(_parsed(self.text).body, facts)

    def integer(self, facts: Mapping[str, object]) -> int:
        """The same, where it must be a whole number."""
        value = self.value(facts)
        if isinstance(value, bool) or not isinstance(value, int):
            raise FormulaError(f"'{self.text}' is {described(value)}, not a whole number")
        return value

    def facts_used(self, facts: Mapping[str, object]) -> list[str]:
        """Each fact that it names, with its value: `stride is (2, 2)`."""
        waiting: list[ast.AST] = [_parsed(self.text).body]
        found: list[str] = []
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                found.append(f"{ast.unparse(node)} is {described(_value(node, facts))}")
            else:
                waiting.extend(
                    child
                    for child in ast.iter_child_nodes(node)
                    if not (isinstance(node, ast.Call) and child is node.func)
                )
        return list(dict.fromkeys(found))


def parse_formula(text: str) -> Formula:
    """The formula of a text.

    Raises:
        FormulaError: It is none.
    """
    if len(text) > _MOST_CHARACTERS:
        raise FormulaError(f"a formula has {len(text)} characters, {_MOST_CHARACTERS} are the most")
    tree = _parsed(text)
    if _num_levels(tree) > _MOST_LEVELS:
        raise FormulaError(f"a formula has {_num_levels(tree)} levels, {_MOST_LEVELS} are the most")
    for node in ast.walk(tree):
        is_known = isinstance(node, _NODES)
        if isinstance(node, ast.Constant):
            is_known = isinstance(node.value, int | float | str)
        if isinstance(node, ast.Call):
            is_known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
            is_known &= len(node.args) > 1
        if not is_known:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise FormulaError(f"'{text}' is no formula: it has '{what}'")
    return Formula(text)


def _num_levels(tree: ast.AST) -> int:
    """How deep the nodes of a text lie inside each other."""
    level: list[ast.AST] = [tree]
    num_levels = 0
    while level:
        level = [
            child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        num_levels += bool(level)
    return num_levels


def described(value: object) -> str:
    """A value in a message."""
    return value.title if isinstance(value, Record) else repr(value)


def _parsed(text: str) -> ast.Expression:
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"'{text}' is no formula") from None


def _value(node: ast.expr, facts: Mapping[str, object]) -> object:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return _member(facts, node.id, "the operator")
        case ast.Attribute():
            owner = _value(node.value, facts)
            if not isinstance(owner, Record):
                raise FormulaError(f"'{ast.unparse(node.value)}' has no '{node.attr}'")
            return _member(owner.members, node.attr, owner.title)
        case ast.Subscript():
            return _item(_value(node.value, facts), _value(node.slice, facts), ast.unparse(node))
        case ast.Tuple():
            return tuple(_value(item, facts) for item in node.elts)
        case ast.BoolOp():
            values = (bool(_value(item, facts)) for item in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        case ast.Compare():
            return _compared(node, facts)
        case _:
            return _arithmetic(node, facts)


def _arithmetic(node: ast.expr, facts: Mapping[str, object]) -> object:
    try:
        match node:
            case ast.BinOp():
                function, operands = _ARITHMETIC[type(node.op)], [node.left, node.right]
            case ast.UnaryOp(op=ast.Not()):
                return not _value(node.operand, facts)
            case ast.UnaryOp():
                return -_number(node.operand, facts)
            case ast.Call():
                function, operands = _FUNCTIONS[cast("ast.Name", node.func).id], node.args
            case _:
                raise FormulaError(f"'{ast.unparse(node)}' is no formula")
        return function(*(_number(operand, facts) for operand in operands))
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise FormulaError(f"'{ast.unparse(node)}': {error}") from None


def _number(node: ast.expr, facts: Mapping[str, object]) -> Any:
    value = _value(node, facts)
    if isinstance(value, ir.OpenExtent):
        raise FormulaError(
            f"'{ast.unparse(node)}' is known only at run time: it can be passed, not calculated with"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormulaError(f"'{ast.unparse(node)}' is {described(value)}, not a number")
    return value


def _compared(node: ast.Compare, facts: Mapping[str, object]) -> bool:
    values = [_value(item, facts) for item in (node.left, *node.comparators)]
    try:
        return all(
            _COMPARISONS[type(operator)](left, right)
            for operator, left, right in zip(node.ops, values, values[1:], strict=False)
        )
    except TypeError:
        raise FormulaError(f"'{ast.unparse(node)}' compares what has no order") from None


def _member(members: Mapping[str, object], name: str, title: str) -> object:
    if name not in members:
        raise FormulaError(f"{title} has no '{name}'; it has {', '.join(members)}")
    return members[name]


def _item(owner: object, index: object, text: str) -> object:
    items = owner
    if isinstance(owner, Record):
        items = owner.items if owner.data is None else owner.data.array.reshape(-1).tolist()
    if not isinstance(items, tuple | list) or isinstance(index, bool) or not isinstance(index, int):
        raise FormulaError(f"'{text}' is no element of anything")
    known = cast("Sequence[object]", items)
    if not -len(known) <= index < len(known):
        raise FormulaError(f"'{text}': there are {len(known)} elements")
    return known[index]
