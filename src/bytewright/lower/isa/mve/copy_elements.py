"""Copies of a known number of elements on MVE."""

from collections.abc import Iterable
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.mve.assembly import Assembly, Registers
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
    comment = f"Copies {num} {'bytes' if is_bytes else f'elements of {element.value}'}."
    text = _text(num, element.size_bytes)
    return ir.Instruction(name, (target, source), body.finish(), text, FEATURE, comment)


def _text(num: int, size: int) -> str:
    num_bytes, c_type = num * size, f"int{8 * size}_t *"
    if num_bytes < 4:
        return "\n".join(f"target[{i}] = source[{i}];" for i in range(num))
    assembly = Assembly()
    target = assembly.operand("target", c_type, Registers.LOW)
    source = assembly.operand("source", f"const {c_type}", Registers.LOW)
    value = assembly.take("value", Registers.VECTOR)

    def copy(load: str, store: str, places: Iterable[int]) -> None:
        for at in places:
            assembly.line(f"{load} {value}, [{source}, #{at}]", f"{store} {value}, [{target}, #{at}]")

    whole, rest = divmod(num_bytes, _BYTES)
    if not whole:  # bytes as wider lanes, since loads of words need not be allowed to be unaligned
        width, lanes = (8, 16) if num_bytes >= 8 else (4, 32)
        places = [0, num_bytes - width] if num_bytes > width else [0]
        copy(f"vldrb.u{lanes}", f"vstrb.{lanes}", places)
    elif whole <= _MAX_UNROLLED:
        places = [i * _BYTES for i in range(whole)] + ([num_bytes - _BYTES] if rest else [])
        copy("vldrb.u8", "vstrb.8", places)
    else:
        turns = assembly.take("turns", Registers.LOOP)
        assembly.line(f"movw {turns}, #{whole}", "1:")
        assembly.line(
            f"vldrb.u8 {value}, [{source}], #16", f"vstrb.8 {value}, [{target}], #16", f"le {turns}, 1b"
        )
        copy("vldrb.u8", "vstrb.8", [rest - _BYTES] if rest else [])
    return assembly.text()
