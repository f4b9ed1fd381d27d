"""The words of the text: printer and parser both spell them from this table."""

from enum import StrEnum

from bytewright.ir.prim import CallKind
from bytewright.ir.scalar_functions import MATH_FUNCTIONS
from bytewright.ir.types import DType


class Word(StrEnum):
    """A word that the text has of its own; a bracket, a parenthesis or `=` behind it is part of the grammar."""

    # Sections of a module
    MODULE = "module"
    CONSTANT = "constant"
    AT = "at"
    FUNC = "func"
    INSTRUCTION = "instruction"
    KERNEL = "kernel"
    EXTERN = "extern"
    ENTRY = "entry"
    # Heads of functions and of instructions
    ON = "on"
    STACK = "stack"
    STATUS = "status"
    SYMBOL = "symbol"
    JOB = "job"
    TEMPLATE = "template"
    REMARK = "remark"
    NOALIAS = "noalias"
    FEATURE = "feature"
    TEXT = "text"
    COMMENT = "comment"
    # Statements
    FOR = "for"
    IN = "in"
    PRIVATE = "private"
    NOTE = "note"
    IF = "if"
    ELSE = "else"
    LET = "let"
    ALLOCATE = "allocate"
    VIEW = "view"
    EXECUTE = "execute"
    # Expressions and arguments
    MIN = "min"
    MAX = "max"
    SELECT = "select"
    TRUE = "true"
    FALSE = "false"
    CONTEXT_OF = "context_of"
    # Types, and what a buffer's has besides elements and scope
    BUFFER = "buffer"
    ALIGN = "align"
    RING = "ring"
    LINES = "lines"
    REGISTER = "register"
    TENSOR = "tensor"
    TARGET = "target"
    DATA = "data"
    CONTEXT = "context"
    # Values of a graph
    QUANT = "quant"
    BECAUSE = "because"
    NONE = "none"


# What stands where a name may stand, so that no bare name is one of them.
RESERVED = frozenset(
    {
        *(dtype.value for dtype in DType),
        *(function.name for function in MATH_FUNCTIONS),
        *(kind.value for kind in CallKind),
        *("inf", "nan"),  # as Python prints them
        *(Word.MIN, Word.MAX, Word.SELECT, Word.TRUE, Word.FALSE),
        *(
            Word.FOR,
            Word.IN,
            Word.PRIVATE,
            Word.IF,
            Word.ELSE,
            Word.LET,
            Word.ALLOCATE,
            Word.VIEW,
            Word.EXECUTE,
        ),
        *(Word.ON, Word.NOALIAS, Word.BUFFER, Word.TENSOR, Word.DATA),
    }
)
