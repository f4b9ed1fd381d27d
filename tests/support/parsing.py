"""Printed IR read back, for tests: a module, a function, an expression."""

from __future__ import annotations

from collections.abc import Mapping

from bytewright.ir.data import TensorData
from bytewright.ir.expr import Buffer, Expr, Var
from bytewright.ir.graph import Operation
from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc
from bytewright.ir.text.expressions import Defined, read_expression
from bytewright.ir.text.modules import parse_text
from bytewright.ir.text.primfuncs import read_primfunc
from bytewright.ir.text.reader import Constants, Reader


def parse_module(
    text: str, data: Mapping[str, TensorData], operations: Mapping[str, type[Operation]]
) -> Module:
    """The module that printed as `text`.

    Args:
        text: What `print_module` gave.
        data: The module's constants by digest.
        operations: Operators by name.

    Raises:
        ParseError: The text is not printed IR, or names a constant or an operator that is not given.
    """
    return parse_text(text, Constants(data), operations).module


def parse_primfunc(text: str) -> PrimFunc:
    """The kernel or entry that printed as `text`, which names no constants."""
    reader = Reader(text, Constants())
    is_external = reader.accept("extern")
    if not is_external and not reader.accept("kernel"):
        reader.expect("entry")
    function = read_primfunc(reader, Defined(), is_external)
    return function if reader.at_end else reader.fail("the end")


def parse_expression(text: str, variables: tuple[Var, ...] = (), buffers: tuple[Buffer, ...] = ()) -> Expr:
    """The expression that printed as `text`, over the given names."""
    reader = Reader(text, Constants())
    names = Defined({v.name: v for v in variables}, {b.name: b for b in buffers})
    expression = read_expression(reader, names)
    return expression if reader.at_end else reader.fail("the end")
