"""The text of buffers and variables where they are defined, printed and read."""

from bytewright import ir
from bytewright.ir.text.notation import (
    prim_name,
    quoted,
)
from bytewright.ir.text.reader import Reader
from bytewright.ir.text.words import Word


def format_buffer(buffer: ir.Buffer, scope: ir.Scope | None) -> str:
    """`input : buffer<1x64xi8, "global.sram", align=16, ring=1:3>`."""
    shape = ir.format_shape(buffer.shape) + "x" if buffer.shape else ""
    parts = [f"{shape}{buffer.dtype.value}"]
    if scope is not None:
        parts.append(f'"{scope}"')
    parts.append(f"{Word.ALIGN}={buffer.alignment}")
    if buffer.rows is not None:
        parts.append(f"{Word.RING}={buffer.rows.axis}:{buffer.rows.num_rows}")
    if buffer.line_bytes:
        parts.append(f"{Word.LINES}={buffer.line_bytes}")
    if buffer.register:
        parts.append(f"{Word.REGISTER}={quoted(buffer.register)}")
    return f"{prim_name(buffer.name)} : {Word.BUFFER}<{', '.join(parts)}>"


def read_buffer(reader: Reader) -> tuple[ir.Buffer, ir.Scope | None]:
    """The same, with the scope that stands in it; without `align=` it is aligned to its elements."""
    name = reader.prim_name()
    reader.expect(":")
    reader.expect(f"{Word.BUFFER}<")
    shape, dtype = reader.shape_and_dtype()
    scope, alignment, rows, line_bytes, register = None, dtype.size_bytes, None, 0, ""
    while reader.accept(","):
        if reader.sees('"') and scope is None:
            scope = reader.scope()
        elif reader.accept(f"{Word.ALIGN}="):
            alignment = reader.integer()
        elif reader.accept(f"{Word.RING}=") and rows is None:
            axis = reader.integer()
            reader.expect(":")
            rows = ir.RingRows(axis, reader.integer())
        elif reader.accept(f"{Word.LINES}="):
            line_bytes = reader.integer()
        elif reader.accept(f"{Word.REGISTER}="):
            register = reader.string()
        else:
            parts = ", ".join(f"'{part}='" for part in (Word.ALIGN, Word.RING, Word.LINES))
            reader.fail(f"a scope in quotes, {parts} or '{Word.REGISTER}='")
    reader.expect(">")
    return ir.Buffer(name, shape, dtype, alignment, rows, line_bytes, register), scope


def format_variable(variable: ir.Var) -> str:
    """`i : i32`."""
    return f"{prim_name(variable.name)} : {variable.dtype.value}"


def read_variable(reader: Reader) -> ir.Var:
    """The same."""
    name = reader.prim_name()
    reader.expect(":")
    return ir.Var(name, reader.dtype())
