"""The TFLite operators that Bytewright compiles."""

from bytewright.frontends.registry import SupportedOperator
from bytewright.frontends.tflite.operators.control import CONTROL
from bytewright.frontends.tflite.operators.elementwise import ELEMENTWISE
from bytewright.frontends.tflite.operators.moves import MOVES
from bytewright.frontends.tflite.operators.reductions import REDUCTIONS
from bytewright.frontends.tflite.operators.row import TfliteOperator, with_unsigned

OPERATORS: dict[str, TfliteOperator] = {
    kind: with_unsigned(row) for kind, row in sorted((CONTROL | ELEMENTWISE | MOVES | REDUCTIONS).items())
}

SUPPORTED = tuple(SupportedOperator(name, row.types, row.limits) for name, row in OPERATORS.items())
