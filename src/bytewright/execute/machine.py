"""Where a bundle runs: on this machine, in QEMU, or on a board behind a serial line."""

from dataclasses import dataclass
from typing import Literal

from bytewright.base.option import OptionSyntaxError

BAUD = 115200
_SERIAL = "serial:"


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A serial line with a board behind it.

    Attributes:
        address: A device, or a URL that pyserial knows, such as `socket://localhost:5555`.
        baud: Bits a second.
    """

    address: str
    baud: int = BAUD

    def __str__(self) -> str:
        return f"{_SERIAL}{self.address}{'' if self.baud == BAUD else f',{self.baud}'}"


Machine = Literal["host", "qemu"] | SerialPort


def machine_of(text: str) -> Machine:
    """The machine that a text names: `host`, `qemu`, or `serial:PORT`, with `,BAUD` if it is not 115200.

    Raises:
        OptionSyntaxError: It names none.
    """
    by_name: dict[str, Machine] = {"host": "host", "qemu": "qemu"}
    if text in by_name:
        return by_name[text]
    address, comma, baud = text.removeprefix(_SERIAL).rpartition(",")
    if not (comma and baud.isascii() and baud.isdigit()):
        address, baud = text.removeprefix(_SERIAL), str(BAUD)
    if not text.startswith(_SERIAL) or not address or not int(baud):
        raise OptionSyntaxError(f"{text!r} is not host, qemu, serial:PORT or serial:PORT,BAUD")
    return SerialPort(address, int(baud))
