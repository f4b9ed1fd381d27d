"""The registers of the NPU as a stream sets them, read with their checks.

A register that an operation needs and that the stream never set has no known value: that is refused. So is every bit
whose meaning is not known.
"""

from dataclasses import dataclass, field

from bytewright.ethos_u.faults import unsupported

MAX_REGIONS = 8
_ADDRESS_BITS = 40


@dataclass(slots=True)
class Registers:
    """Values by name: 16 bits of a command, and of commands with a payload the payload's 32 bits below them."""

    values: dict[str, int] = field(default_factory=dict[str, int])
    operation: str = ""

    def get(self, name: str) -> int:
        """The bits of a register.

        Raises:
            CompileError: BW742 where the stream never set it.
        """
        value = self.values.get(name)
        if value is None:
            raise unsupported(f"{self.operation} needs the register {name}, which the stream never set")
        return value

    def bits(self, name: str, known: int) -> int:
        """The bits of a register in which no bit but those of `known` may be set."""
        value = self.get(name)
        if value & ~known:
            raise unsupported(
                f"{self.operation} has the register {name} at 0x{value:x}, with bits that are not known"
            )
        return value

    def signed(self, name: str) -> int:
        """A signed number of 16 bits."""
        value = self.get(name) & 0xFFFF
        return value - 0x10000 if value & 0x8000 else value

    def plus_one(self, name: str) -> int:
        """An extent, of which the register holds one less."""
        return self.get(name) + 1

    def payload(self, name: str) -> int:
        """The 32 bits of the payload."""
        return self.get(name) & 0xFFFFFFFF

    def parameter(self, name: str) -> int:
        """The 16 bits beside the payload."""
        return self.get(name) >> 32

    def address(self, name: str) -> int:
        """An offset in a region, of 40 bits."""
        return self.bits(name, (1 << _ADDRESS_BITS) - 1)

    def stride(self, name: str) -> int:
        """A distance in bytes; negative ones are of 32 bits, or of 40."""
        value = self.get(name)
        low, high = value & 0xFFFFFFFF, value >> 32 & 0xFFFF
        if high in {0xFF, 0xFFFF}:
            return low - (1 << 32)
        if high:
            raise unsupported(
                f"{self.operation} has the register {name} at 0x{value:x}, a stride beyond 32 bits"
            )
        return low - (1 << 32) if low & 0x80000000 else low

    def region(self, name: str) -> int:
        """A base pointer's number."""
        value = self.get(name)
        if value >= MAX_REGIONS:
            raise unsupported(
                f"{self.operation} has the register {name} at {value}; there are {MAX_REGIONS} regions"
            )
        return value

    def choice(self, name: str, value: int, limit: int) -> int:
        """A field of a register that has `limit` known values."""
        if value >= limit:
            raise unsupported(
                f"{self.operation} has value {value} in the register {name}, which is not known"
            )
        return value
