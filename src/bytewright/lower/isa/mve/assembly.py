"""Instructions that are several machine instructions: one statement of assembly, the same for every compiler.

Left to themselves, gcc 12 and clang 14 spill the eight sums of a block and reload pointers; a statement with its own
registers costs the same with each of them, at every level. A register is taken by a name, of a class of those that
machine instructions accept, and what is most constrained is taken first: sums need even ones (`vmladava`), addresses of
narrow loads low ones. r7 is in no class, as it may be the frame pointer. A statement touches no flags, registers or
memory but those that it names.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from bytewright.diagnostics import InternalError


class Registers(Enum):
    """Classes of registers, each in the order in which they are taken: those that fewer classes have come first."""

    GENERAL = "r1 r3 r5 r9 r11 r0 r2 r4 r6 r8 r10 r12"
    LOW = "r1 r3 r5 r0 r2 r4 r6"
    EVEN = "r0 r2 r4 r6 r8 r10 r12 lr"
    LOOP = "lr"
    """The count of a loop that ends with `le`."""
    VECTOR = "q0 q1 q2 q3 q4 q5 q6 q7"


@dataclass(frozen=True, slots=True)
class _Bound:
    """A register that C knows: a parameter of the function, or a vector that the statement leaves.

    Attributes:
        register: That it is in.
        c_type: Of the parameter, or of the vector.
        name: The parameter; of a vector what stands before it in C: `return ` or an assignment.
    """

    register: str
    c_type: str
    name: str

    @property
    def constraint(self) -> str:
        """What stands for its class in C."""
        return "w" if self.register in Registers.VECTOR.value else "r"


class Assembly:
    """A statement under construction: its lines, and who has which register."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._holders: dict[str, str] = {}
        self._changed: list[str] = []
        self._operands: list[_Bound] = []
        self._results: list[_Bound] = []

    def take(self, name: str, kind: Registers) -> str:
        """A register that nobody has.

        Raises:
            InternalError: There is none left.
        """
        members = kind.value.split()
        register = next((each for each in members if each not in self._holders), None)
        if register is None:
            holders = ", ".join(f"{each}: {self._holders[each]}" for each in members)
            raise InternalError(f"no register of {kind.name} is left for '{name}' ({holders})")
        self._hold(register, name)
        return register

    def _hold(self, register: str, name: str) -> None:
        self._holders[register] = name
        if register not in self._changed:
            self._changed.append(register)

    def take_all(self, name: str, count: int, kind: Registers) -> list[str]:
        """So many of them."""
        return [self.take(f"{name} {i}", kind) for i in range(count)]

    def free(self, *registers: str) -> None:
        """Nobody has them any longer."""
        for register in registers:
            del self._holders[register]

    def operand(self, name: str, c_type: str, kind: Registers = Registers.GENERAL) -> str:
        """The register of a parameter of the C function, such as `const int8_t *`; the statement may change it."""
        register = self.take(name, kind)
        self._operands.append(_Bound(register, c_type, name))
        return register

    def result(self, target: str, c_type: str, vector: str) -> None:
        """What C gets of a vector in the end.

        Args:
            target: What stands before it in C: `return ` or an assignment.
            c_type: Of the vector.
            vector: Its register.
        """
        self._results.append(_Bound(vector, c_type, target))

    def line(self, *lines: str) -> None:
        """Machine instructions and labels."""
        self._lines += lines

    @contextmanager
    def parked(self, pair: Sequence[str], vector: str, lanes: tuple[int, int]) -> Generator[None, None, None]:
        """Two registers wait in lanes of a vector, so that others may have them meanwhile."""
        first, second = pair
        names = [self._holders[each] for each in pair]
        high, low = (f"{vector}[{lane}]" for lane in lanes)
        self.line(f"vmov {high}, {low}, {first}, {second}")
        self.free(*pair)
        yield
        for register, name in zip(pair, names, strict=True):
            if register in self._holders:
                raise InternalError(f"{register} of '{name}' is still that of '{self._holders[register]}'")
            self._hold(register, name)
        self.line(f"vmov {first}, {second}, {high}, {low}")

    def move(self, register: str, distance: int) -> None:
        """Adds a constant to a register."""
        name = "add" if distance > 0 else "sub"
        rest = abs(distance)
        while rest:  # twelve bits at a time
            part = min(rest, 4095)
            self.line(f"{name}w {register}, {register}, #{part}")
            rest -= part

    def text(self) -> str:
        """The body of the C function."""
        text = [
            f'register {each.c_type} r{i} __asm__("{each.register}");' for i, each in enumerate(self._results)
        ]
        text += [
            f'register {_declared(each)} __asm__("{each.register}") = {each.name};' for each in self._operands
        ]
        text.append("__asm volatile(")
        text += [f'    "{line}\\n"' for line in self._lines]
        outputs = [f'"={each.constraint}"(r{i})' for i, each in enumerate(self._results)]
        outputs += [f'"+{each.constraint}"({each.name}_)' for each in self._operands]
        bound = {each.register for each in (*self._operands, *self._results)}
        others = [f'"{name}"' for name in (*self._changed, "cc", "memory") if name not in bound]
        text += [*_wrapped("    : ", outputs), "    :", *_wrapped("    : ", others)]
        text[-1] += ");"
        text += [f"{each.name}r{i};" for i, each in enumerate(self._results)]
        return "\n".join(text)


def _declared(operand: _Bound) -> str:
    space = "" if operand.c_type.endswith("*") else " "
    return f"{operand.c_type}{space}{operand.name}_"


def _wrapped(head: str, items: Sequence[str], width: int = 5) -> list[str]:
    """Items after a head, some on each line."""
    rows = [", ".join(items[i : i + width]) for i in range(0, len(items), width)]
    return [
        f"{head if i == 0 else ' ' * len(head)}{row}{',' if i + 1 < len(rows) else ''}"
        for i, row in enumerate(rows)
    ]
