"""Numbers of an entry's C as plans write them: what `ir/analyses/number_texts.py` says of the IR, read back.

Sums are those of `c_nodes.form_of`; of all else each operation is read with the type that C computes it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pycparser import c_ast

from bytewright import ir
from bytewright.inspect.c_nodes import call_of, extent_in_c, form_of, pointed_type, type_name
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.number_texts import context_text, side, text_of_float, text_of_name

_IR_TYPES = {
    **{f"{sign}int{bits}_t": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "float": "f32",
    "double": "f64",
}
_FLOATS = {"NAN": "nan", "INFINITY": "inf"}
_TRUTHS = frozenset({"<=", ">=", "==", "!=", "<", ">", "&&", "||"})


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one entry.

    Attributes:
        forms: What names stand for that are sums,
        others: and what those do that are not.
        symbols: The extents that the run is given, by name.
        contexts: The devices that variables are the contexts of.
    """

    forms: Mapping[str, Form]
    others: Mapping[str, c_ast.Node] = field(default_factory=dict[str, c_ast.Node])
    symbols: Mapping[str, ir.Symbol] = field(default_factory=dict[str, ir.Symbol])
    contexts: Mapping[str, str] = field(default_factory=dict[str, str])
    _of_names: dict[str, int | str | None] = field(default_factory=dict[str, "int | str | None"])

    @property
    def without_extents(self) -> "Numbers":
        """The same, with each extent a variable."""
        return Numbers(self.forms, self.others)

    def passed(self, node: c_ast.Node) -> int | str | None:
        """What a call is given by value; None for what is no number that is generated."""
        if isinstance(node, c_ast.ID) and node.name in self.contexts:
            return context_text(self.contexts[node.name])
        return self.text(node)

    def text(self, node: c_ast.Node) -> int | str | None:
        """A number; None for what is none."""
        number = _float_of(node)
        if number is not None:
            return number
        form = form_of(node, self.forms, self.others)
        if form is not None:
            return form.written
        extent = extent_in_c(node, self.symbols, self.others)
        return self._text(node) if extent is None else ir.extent_text(extent)

    def compared(self, node: c_ast.Node) -> int | str | None:
        """A condition on numbers; None for what is none."""
        match node:
            case c_ast.BinaryOp(op=operator, left=left, right=right) if operator in _TRUTHS:
                sides = [self.text(each) for each in (left, right)]
                return None if None in sides else f"{sides[0]} {operator} {sides[1]}"
            case _:
                found = self.text(node)
                return None if found is None else str(found)

    def _text(self, node: c_ast.Node) -> int | str | None:
        match node:
            case c_ast.ID(name=name):
                return self._of_name(name)
            case c_ast.Cast() if pointed_type(node) is None:
                return self._cast(node)
            case c_ast.TernaryOp():
                return self._joined("({} ? {} : {})", node.cond, node.iftrue, node.iffalse)
            case c_ast.BinaryOp(op=operator):
                return self._joined(f"({{}} {operator} {{}})", node.left, node.right)
            case c_ast.FuncCall(name=c_ast.ID()):
                name, given = call_of(node)
                found = [self.text(each) for each in given]
                return None if None in found else f"{name}({', '.join(map(str, found))})"
            case _:
                return None

    def _of_name(self, name: str) -> int | str | None:
        """What a name stands for; that of nothing that is known is its own."""
        if name not in self.others:
            return None
        if name not in self._of_names:
            self._of_names[name] = None  # of one that stands for itself
            self._of_names[name] = text_of_name(self.text(self.others[name]))
        return self._of_names[name]

    def _cast(self, node: c_ast.Cast) -> int | str | None:
        """A conversion; that of a truth value to one is none."""
        found, to = self.text(node.expr), _IR_TYPES.get(type_name(node.to_type))
        if found is None or to is None:
            return None
        if to == ir.DType.BOOL.value:
            return found if _is_truth(node.expr) else None
        return f"{to}({found})"

    def _joined(self, form: str, *operands: c_ast.Node) -> str | None:
        found = [self.text(operand) for operand in operands]
        return (
            None if None in found else form.format(*map(side, (each for each in found if each is not None)))
        )


def _is_truth(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.BinaryOp) and node.op in _TRUTHS


def _float_of(node: c_ast.Node) -> str | None:
    """The text of a floating-point constant; None for what is none."""
    match node:
        case c_ast.UnaryOp(op="-", expr=inner):
            found = _float_of(inner)
            return None if found is None else f"-{found}"
        case c_ast.ID(name=name):
            return _FLOATS.get(name)
        case c_ast.Constant(type="float" | "double", value=value):
            is_single = value.endswith(("f", "F"))
            return text_of_float(float(value.rstrip("fF")), ir.DType.F32 if is_single else ir.DType.F64)
        case _:
            return None
