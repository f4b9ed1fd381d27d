"""Which model carries out the command streams of which instruction set on the host: the one visible table.

A model is given the stream's bytes and the memories that the job names, and nothing else; what the stream reads and
writes beyond them it reports as `OutOfReachError`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bytewright.diagnostics import compile_error
from bytewright.record.devices import PlannedDevice
from bytewright.target.isa.ethos_u import ACCELERATORS


@dataclass(frozen=True, slots=True)
class StreamRegion:
    """A memory of a job.

    Attributes:
        data: Its bytes; those that may only be read cannot be written.
        is_readable, is_writable: What the job may do with it.
    """

    data: NDArray[np.uint8]
    is_readable: bool
    is_writable: bool


class OutOfReachError(Exception):
    """A stream touches bytes that it was not given.

    Attributes:
        region: Which memory of the job, by its number.
        offset: The first such byte, from the memory's first.
    """

    def __init__(self, region: int, offset: int, is_write: bool) -> None:
        super().__init__(f"region {region}, byte {offset}")
        self.region, self.offset, self.is_write = region, offset, is_write


class StreamModel(Protocol):
    """Carries out a command stream.

    Raises:
        OutOfReachError: The stream touches what it was not given.
        ValueError: It is none, or has what the model does not know.
    """

    def execute(self, code: bytes, regions: Sequence[StreamRegion]) -> None:
        """Carries it out."""
        ...


def _ethos_u(isa: str) -> StreamModel:
    from bytewright.execute.worker.ethos_u import EthosUModel

    return EthosUModel(isa)


# By the name of an instruction set, of which a row makes the model; it is imported when it is used.
STREAM_MODELS: dict[str, Callable[[str], StreamModel]] = {each.name: _ethos_u for each in ACCELERATORS}


def find_stream_model(isa: str) -> StreamModel | None:
    """The model for an instruction set; None if none is known."""
    make = STREAM_MODELS.get(isa)
    return None if make is None else make(isa)


def require_stream_model(device: PlannedDevice) -> None:
    """Refuses a device whose streams nothing here carries out.

    Raises:
        CompileError: BW731, or BW501 where what its model is made with is not installed.
    """
    if device.isa not in STREAM_MODELS:
        known = ", ".join(STREAM_MODELS) or "none"
        raise compile_error(
            "BW731",
            f"no model of '{device.isa}' is known here, so device '{device.name}' cannot run on the host",
            (f"known: {known}",),
        )
    find_stream_model(device.isa)
