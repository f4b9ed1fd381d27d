"""Copies of a known number of elements on MVE."""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.mve.assembly import Operand, assembly, repeated
from bytewright.lower.isa.mve.lanes import FEATURE
from bytewright.lower.isa.vector_unit import memory_parameter

I8 = ir.DType.I8
_BYTES = 16
_MAX_UNROLLED = 8


@cache
def copy_elements(num: int, element: ir.DType = I8) -> ir.Instruction:
    """Copies integers of a type to where they do not overlap: target and source, [num] each."""
    target = memory_parameter("target", num, element, ir.Access.WRITE)
    source = memory_parameter("source", num, element)
    is_bytes = element.size_bytes == 1
    name = f"mve_copy_{num}" if is_bytes else f"mve_copy_{num}_{element.value}"
    body = BodyBuilder()
    with body.for_(f"{name}.i", 0, num) as i:
        body.store(target.buffer, i, load(source.buffer, i))
    text, comment = (
        _text(num, element.size_bytes),
        f"Copies {num} {'bytes' if is_bytes else f'elements of {element.value}'}.",
    )
    return ir.Instruction(name, (target, source), body.finish(), text, FEATURE, comment)


def _text(num: int, size: int) -> str:
    num_bytes, c_type = num * size, f"int{8 * size}_t *"
    operands = (Operand("target", "r0", c_type), Operand("source", "r1", f"const {c_type}"))
    if num_bytes < 4:
        return "\n".join(f"target[{i}] = source[{i}];" for i in range(num))
    if num_bytes < _BYTES:  # bytes as wider lanes, since loads of words need not be allowed to be unaligned
        width, lanes = (8, 16) if num_bytes >= 8 else (4, 32)
        places = [0, num_bytes - width] if num_bytes > width else [0]
        lines = [
            line
            for at in places
            for line in (f"vldrb.u{lanes} q0, [r1, #{at}]", f"vstrb.{lanes} q0, [r0, #{at}]")
        ]
        return assembly(operands, lines, ("q0",))
    whole, rest = divmod(num_bytes, _BYTES)
    if whole <= _MAX_UNROLLED:
        places = [i * _BYTES for i in range(whole)] + ([num_bytes - _BYTES] if rest else [])
        lines = [line for at in places for line in (f"vldrb.u8 q0, [r1, #{at}]", f"vstrb.8 q0, [r0, #{at}]")]
    else:
        lines = [*repeated(whole, "1"), "vldrb.u8 q0, [r1], #16", "vstrb.8 q0, [r0], #16", "le lr, 1b"]
        back = rest - _BYTES
        lines += [f"vldrb.u8 q0, [r1, #{back}]", f"vstrb.8 q0, [r0, #{back}]"] if rest else []
    return assembly(operands, lines, ("q0", "lr"))
