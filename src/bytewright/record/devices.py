"""Devices and kernels of a plan, as frozen values: what runs where, and what the application lends it."""

from dataclasses import dataclass
from enum import StrEnum

from bytewright import ir


class DeviceKind(StrEnum):
    """How a device is told what to do."""

    C = "c"  # it runs kernels that are compiled for it, by their numbers
    STREAM = "stream"  # it carries out command streams
    COPY = "copy"  # it only copies
    CONTEXT = "context"  # functions of the application drive it, and the model hands it nothing


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel that is handed over.

    Attributes:
        number: Its place among those of its device, and what a device that runs C is told to run.
        name: What steps call it.
        job: What it is where no compiled code carries it out.
    """

    number: int
    name: str
    job: ir.Job | None = None


@dataclass(frozen=True, slots=True)
class PlannedDevice:
    """A device beside the entry's that takes part in a run.

    Attributes:
        name: As the target calls it.
        c_name: Its name in C.
        isa: Its instruction set.
        kernels: Those that the entry hands over.
    """

    name: str
    c_name: str
    isa: str
    kind: DeviceKind
    kernels: tuple[PlannedKernel, ...]


@dataclass(frozen=True, slots=True)
class Lent:
    """A part of a pool that a device may touch during a run: from the first byte that it touches to the last.

    Attributes:
        pool: The pool.
        offset: Where it begins, in bytes.
        size_bytes: How much it is.
        is_written: Whether the device may write there.
        is_obtained: Whether the device is to obtain the memory, which is then all of the pool, with every byte that
            others are lent of it.
    """

    pool: str
    offset: int
    size_bytes: int
    is_written: bool
    is_obtained: bool = False
