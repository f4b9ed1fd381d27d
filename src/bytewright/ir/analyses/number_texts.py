"""Numbers of an entry as plans write them: sums as `Form.written`, and all others as C computes them, names resolved.

Of what is no sum of variables each operation stands there with the type that it has, so that two texts are the same
only where C computes the same: `min_i32(4*turn + 3, 7)`, `(f32(turn) * 0.5f)`, `((time - 2) / 2)`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.open_extents import extent_of

_NARROW = (ir.DType.I8, ir.DType.U8, ir.DType.I16)
_PROMOTED = (ir.DType.BOOL, *_NARROW)
_LIMITS = (ir.BinaryOperator.MIN, ir.BinaryOperator.MAX)
# A name that stands for a longer text stands for its digest: names of names may double it each time.
_LONGEST = 400
_WORD = re.compile(r"[\w.]+", re.ASCII)


def side(text: int | str) -> str:
    """A text as it stands beside an operator."""
    return str(text) if isinstance(text, int) or _is_closed(text) else f"({text})"


def _is_closed(text: str) -> bool:
    """Whether a text is a word, or the parenthesis that it ends with begins it, or stands behind a name."""
    if not text.endswith(")"):
        return _WORD.fullmatch(text) is not None
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] == ")") - (text[position] == "(")
        if depth == 0:
            return position == 0 or text[:position].isidentifier()
    return False


def text_of_name(text: int | str | None) -> int | str | None:
    """What stands for a name in the texts of others."""
    if not isinstance(text, str) or len(text) <= _LONGEST:
        return text
    return f"sha256_{sha256(text.encode()).hexdigest()[:32]}"


def scaled(text: int | str, factor: int) -> int | str:
    """What is no sum, a number of times."""
    return text if factor == 1 else f"{factor}*{side(text)}"


def context_text(device: str) -> str:
    """What stands for the context of a device among numbers."""
    return f"context({device})"


def text_of_float(value: float, dtype: ir.DType) -> str:
    """The shortest digits that read back as a float."""
    with np.errstate(over="ignore"):
        rounded = np.float32(value) if dtype is ir.DType.F32 else np.float64(value)
    suffix = "f" if dtype is ir.DType.F32 and np.isfinite(rounded) else ""
    return f"{'-' if np.signbit(rounded) else ''}{np.abs(rounded)!s}{suffix}"


@dataclass(frozen=True, slots=True)
class NumberTexts:
    """The numbers of one entry.

    Attributes:
        names: What names stand for.
        extents: Those that runs are given, by name; what follows from one is written as an extent.
    """

    names: Definitions
    extents: Mapping[str, ir.Symbol] = field(default_factory=dict[str, ir.Symbol])
    _of_names: dict[str, int | str | None] = field(default_factory=dict[str, "int | str | None"])

    def text(self, expression: ir.Expr) -> int | str | None:
        """What C passes for an expression; None of what reads memory."""
        found = self._text(expression)
        is_promoted = expression.dtype in _NARROW and _is_promoted(expression)
        return f"{expression.dtype.value}({found})" if is_promoted and isinstance(found, str) else found

    def compared(self, condition: ir.Expr) -> str | None:
        """A condition on numbers: `2*turn + 1 < 7`."""
        if not (isinstance(condition, ir.Binary) and condition.operator.is_comparison):
            found = self._text(condition)
            return None if found is None else str(found)
        sides = [self._text(each) for each in (condition.left, condition.right)]
        return None if None in sides else f"{sides[0]} {condition.operator.value} {sides[1]}"

    def _text(self, expression: ir.Expr) -> int | str | None:
        if expression.dtype.is_integer or expression.dtype is ir.DType.BOOL:
            form = self.names.form(expression)
            if form is not None:
                return form.written
            extent = extent_of(expression, self.extents, self.names.values)
            if extent is not None:
                return ir.extent_text(extent)
        match expression:
            case ir.Const():
                return text_of_float(expression.value, expression.dtype)
            case ir.Var(name=name):
                return self._of_name(name, expression.dtype)
            case ir.Cast(operand=operand):
                return self._cast(expression, operand)
            case ir.Select():
                return self._joined(
                    "({} ? {} : {})", expression.condition, expression.if_true, expression.if_false
                )
            case ir.ScalarCall():
                return self._called(expression.function.name, *expression.operands)
            case ir.Binary():
                return self._binary(expression)
            case _:
                return None

    def _of_name(self, name: str, dtype: ir.DType) -> int | str | None:
        """What a name stands for, in its own type: that of a counter says nothing."""
        if name not in self._of_names and name in self.names.values:
            found = self.text(self.names.values[name])
            is_said = found is not None and dtype not in (ir.DType.I32, ir.DType.BOOL)
            self._of_names[name] = text_of_name(f"{dtype.value}({found})") if is_said else text_of_name(found)
        return self._of_names.get(name)

    def _cast(self, cast: ir.Cast, operand: ir.Expr) -> int | str | None:
        if cast.dtype is operand.dtype is ir.DType.BOOL or (
            operand.dtype in _PROMOTED and cast.dtype is ir.DType.I32
        ):
            return self._text(operand)
        is_truth = cast.dtype is ir.DType.BOOL
        return self._joined(
            "({} != 0)" if is_truth else f"{cast.dtype.value}({{}})", operand, is_apart=is_truth
        )

    def _binary(self, node: ir.Binary) -> str | None:
        match node:
            case ir.Binary(
                ir.BinaryOperator.MIN,
                ir.Binary(ir.BinaryOperator.MAX, value, ir.Const() as low),
                ir.Const() as high,
            ):
                return self._called(f"clamp_{node.dtype.value}", value, low, high)
            case ir.Binary() if node.operator in _LIMITS:
                return self._called(f"{node.operator.value}_{node.dtype.value}", node.left, node.right)
            case _:
                return self._joined(f"({{}} {node.operator.value} {{}})", node.left, node.right)

    def _called(self, name: str, *operands: ir.Expr) -> str | None:
        given = [self.text(operand) for operand in operands]
        return None if None in given else f"{name}({', '.join(map(str, given))})"

    def _joined(self, form: str, *operands: ir.Expr, is_apart: bool = True) -> str | None:
        """Operands in a form, in parentheses where operators stand beside them."""
        found: list[int | str] = []
        for operand in operands:
            text = self._text(operand)
            if text is None:
                return None
            found.append(side(text) if is_apart else text)
        return form.format(*found)


def _is_promoted(expression: ir.Expr) -> bool:
    """Whether C gives an `int` where the IR has a narrower type."""
    match expression:
        case ir.Binary():
            return expression.operator not in _LIMITS
        case ir.Select():
            return _is_promoted(expression.if_true) or _is_promoted(expression.if_false)
        case _:
            return False
