"""Reads back which steps of the entry are in which loop and in which arm of a branch, and what these depend on.

Numbers are read as sums, in the form in which plan.json has them: whatever else C says of an expression, its casts and
its parentheses, is how it is written and not what it is.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bytewright.ir.analyses.affine import Form

_LIMITS = {"INT32_MIN": -(2**31), "INT64_MIN": -(2**63)}  # which C has no literals for
_COMPARED = re.compile(r"(.+?) (<=|>=|==|<|>) (.+)")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BlockText:
    """A block in braces, of a loop or of an arm.

    Attributes:
        head: What stands before it: `for (...)`, `if (...)` or `else`,
        head_begin: and where: behind the statement or the block before.
        begin: Where its brace opens,
        end: and where it closes, as positions in the text.
    """

    head: str
    head_begin: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class LoopText:
    """A loop.

    Attributes:
        steps: The first of them and the last.
        variable, begin, end: As they stand there.
    """

    steps: tuple[int, int]
    variable: str
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class BranchText:
    """A branch.

    Attributes:
        condition: As it stands there.
        then: The steps of the first arm, half-open.
        otherwise: Those of the second.
        num_loops: How many loops it is in.
    """

    condition: str
    then: tuple[int, int]
    otherwise: tuple[int, int]
    num_loops: int


def read_blocks(text: str) -> list[BlockText]:
    """The blocks of loops and arms in the body of a function, in the order in which they begin."""
    text = _COMMENT.sub(lambda found: " " * len(found[0]), text)
    found: list[BlockText] = []
    opened: list[tuple[str, int, int]] = []
    depth, begin = 0, 0
    for position, character in enumerate(text):
        if character in "()":
            depth = (
                depth + 1 if character == "(" else max(depth - 1, 0)
            )  # the text begins in a function's head
        elif character == "{":
            opened.append((" ".join(text[begin:position].split()), begin, position))
        elif character == "}" and opened:
            found.append(BlockText(*opened.pop(), position))
        if character in "{}" or (character == ";" and depth == 0):
            begin = position + 1
    blocks = (block for block in found if re.match(r"(?:for|if) \(|else\b", block.head))
    return sorted(blocks, key=lambda block: block.begin)


def read_loops(blocks: Sequence[BlockText], calls: Sequence[int]) -> list[LoopText]:
    """The loops that have steps, outer ones first; `calls` are the positions of the steps."""
    found: list[LoopText] = []
    for block in blocks:
        first, end = _steps(block, calls)
        if block.head.startswith("for") and first < end:
            head = re.fullmatch(r"for \(\w+ (\w+) = (.+?); \1 < (.+?); \+\+\1\)", block.head)
            variable, low, high = head.groups() if head else ("", block.head, "")
            found.append(LoopText((first, end - 1), variable, low, high))
    return found


def read_branches(blocks: Sequence[BlockText], calls: Sequence[int], granted: str) -> list[BranchText]:
    """The branches, outer ones first, but for those without steps that are on numbers; `granted` matches no branches.

    It is for what only asks whether a request was granted.
    """
    found: list[BranchText] = []
    for index, block in enumerate(blocks):
        condition = re.fullmatch(r"if \((.*)\)", block.head)
        if condition is None or re.fullmatch(granted, condition[1]):
            continue
        arms = (b for b in blocks[index + 1 :] if b.head == "else" and b.head_begin == block.end + 1)
        other, then = next(arms, None), _steps(block, calls)
        otherwise = (then[1], then[1]) if other is None else _steps(other, calls)
        if then[0] < otherwise[1] or condition[1].startswith("*"):
            loops = [b for b in blocks[:index] if b.head.startswith("for") and b.end > block.end]
            found.append(BranchText(condition[1], then, otherwise, len(loops)))
    return found


def _steps(block: BlockText, calls: Sequence[int]) -> tuple[int, int]:
    """The steps inside of a block, half-open."""
    before = sum(position < block.begin for position in calls)
    return before, sum(position < block.end for position in calls)


def read_definitions(text: str, variables: Mapping[str, Form]) -> dict[str, Form]:
    """What names in the body of a function stand for: the variables of loops, and numbers, as far as they are sums."""
    named = re.compile(r"^ +const (?:u?int\d+_t|bool) (\w+) =\s+([^;]+);$", re.MULTILINE)
    known = dict(variables)
    for name, value in named.findall(text):
        form = read_form(value, known)
        if form is not None:
            known[name] = form
    return known


def read_number(text: str, known: Mapping[str, Form]) -> int | str | None:
    """A number or a sum of C, in the form of the plan; None for what is neither."""
    form = read_form(text, known)
    return None if form is None else form.written


def read_comparison(text: str, known: Mapping[str, Form]) -> str | None:
    """A comparison of sums of C, in the form of the plan; None for what is none."""
    found = _COMPARED.fullmatch(text)
    if found is None:
        return None
    sides = [read_number(found[side], known) for side in (1, 3)]
    return None if None in sides else f"{sides[0]} {found[2]} {sides[1]}"


def read_form(text: str, known: Mapping[str, Form]) -> Form | None:
    """An expression of C as a sum, if it is one; `known` says what names stand for."""
    plain = re.sub(r"\(u?int\d+_t\)", "", " ".join(text.split()))
    plain = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", plain)
    try:
        return _form(ast.parse(plain.strip(), mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _form(node: ast.expr, known: Mapping[str, Form]) -> Form | None:
    match node:
        case ast.Constant(value=int(value)):
            return Form(value)
        case ast.Name(id=name) if name in _LIMITS:
            return Form(_LIMITS[name])
        case ast.Name(id=name):
            return known.get(name) or Form(0, ((name, 1),))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _form(operand, known)
            return None if inner is None else inner.times(-1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
            one, other = _form(left, known), _form(right, known)
            if one is None or other is None:
                return None
            if not isinstance(operator, ast.Mult):
                return one.plus(other, 1 if isinstance(operator, ast.Add) else -1)
            if one.terms and other.terms:
                return None
            return other.times(one.constant) if not one.terms else one.times(other.constant)
        case _:
            return None
