"""C text of instructions that are several machine instructions: one statement of assembly, the same for every compiler.

Left to themselves, gcc 12 and clang 14 spill the eight sums of a block and reload pointers; a statement with its own
registers costs the same with each of them, at every level. Operands are bound to registers by name: sums take all
even ones (`vmladava` accepts no others), so a compiler would have little to choose from. r7 stays free, as it may be
the frame pointer. A statement touches no flags, registers or memory but those that it names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VECTORS = tuple(f"q{number}" for number in range(8))


@dataclass(frozen=True, slots=True)
class Operand:
    """What a statement is given, in a register of its own that it may change.

    Attributes:
        name: The parameter of the C function.
        register: `r0` to `r12`.
        c_type: Of the parameter, such as `const int8_t *`.
    """

    name: str
    register: str
    c_type: str


@dataclass(frozen=True, slots=True)
class Result:
    """A vector that a statement computes.

    Attributes:
        target: What stands before it in C: `return ` or an assignment.
        register: `q0` to `q7`.
        c_type: Of the vector.
    """

    target: str
    register: str
    c_type: str


def assembly(
    operands: Sequence[Operand],
    lines: Iterable[str],
    clobbered: Iterable[str],
    results: Sequence[Result] = (),
) -> str:
    """The body of a C function that is one statement.

    Args:
        operands: Parameters of the function.
        lines: Machine instructions.
        clobbered: Registers that they change beside those of operands and results.
        results: Vectors that they leave.
    """
    text = [f'register {each.c_type} r{i} __asm__("{each.register}");' for i, each in enumerate(results)]
    text += [f'register {_declared(each)} __asm__("{each.register}") = {each.name};' for each in operands]
    text.append("__asm volatile(")
    text += [f'    "{line}\\n"' for line in lines]
    outputs = [f'"=w"(r{i})' for i in range(len(results))] + [f'"+r"({each.name}_)' for each in operands]
    taken = {each.register for each in (*operands, *results)}
    others = [f'"{name}"' for name in (*clobbered, "cc", "memory") if name not in taken]
    text += [*_wrapped("    : ", outputs), "    :", *_wrapped("    : ", others)]
    text[-1] += ");"
    text += [f"{each.target}r{i};" for i, each in enumerate(results)]
    return "\n".join(text)


def _declared(operand: Operand) -> str:
    space = "" if operand.c_type.endswith("*") else " "
    return f"{operand.c_type}{space}{operand.name}_"


def _wrapped(head: str, items: Sequence[str], width: int = 5) -> list[str]:
    """Items after a head, some on each line."""
    rows = [", ".join(items[i : i + width]) for i in range(0, len(items), width)]
    return [
        f"{head if i == 0 else ' ' * len(head)}{row}{',' if i + 1 < len(rows) else ''}"
        for i, row in enumerate(rows)
    ]


def moved(register: str, distance: int) -> list[str]:
    """Adds a constant to a register."""
    if distance == 0:
        return []
    name = "add" if distance > 0 else "sub"
    rest = abs(distance)
    found: list[str] = []
    while rest:  # twelve bits at a time
        part = min(rest, 4095)
        found.append(f"{name}w {register}, {register}, #{part}")
        rest -= part
    return found


def repeated(count: int, label: str) -> list[str]:
    """What starts a loop of `count` turns that ends with `le lr, <label>b`."""
    return [] if count == 1 else [f"movw lr, #{count}", f"{label}:"]
