"""A device that carries out command streams, as a process: the protocol of worker.h, with a model in Python.

Its memory is mapped, and each region of a job is an array of just its bytes; arrays of what may only be read are read
only. So whatever the model computes with, it has what the job was given and no more.
"""

import mmap
import os
import struct
import sys

import numpy as np
from numpy.typing import NDArray

from bytewright.execute.jobs import REASON_BYTES, Failure
from bytewright.execute.worker.streams import OutOfReachError, StreamModel, StreamRegion, find_stream_model

_COMMANDS, _REPLIES, _MEMORY = 3, 4, 5
_OPEN = 2  # JOB_OPEN of jobs.h
_READ, _WRITE = 1, 2
_DONE, _FAULTED, _FAILED = Failure.FINE, Failure.FAULTED, Failure.OUT_OF_TURN
_MESSAGE = struct.Struct("=IIQII")
_REGION = struct.Struct("=QQQQII")
_SPAN = struct.Struct("=IIQQ")
_REPLY = struct.Struct(f"=IiQIIQ{REASON_BYTES}s")
_NO_REGION = (1 << 32) - 1
_UNKNOWN = -1


class _Process:
    """The state of the process: the memory and its regions."""

    def __init__(self, model: StreamModel) -> None:
        self.model = model
        self.regions: list[NDArray[np.uint8]] | None = None  # all pages of each

    def open(self, num_regions: int, size_bytes: int) -> bytes:
        """Maps what is lent."""
        lent = np.frombuffer(mmap.mmap(_MEMORY, size_bytes), np.uint8)
        self.regions = []
        for _ in range(num_regions):
            offset, mapped_bytes, _, _, _, memory = _REGION.unpack(_receive(_REGION.size))
            pages = lent[offset : offset + mapped_bytes]
            if memory:
                pages = np.frombuffer(mmap.mmap(_MEMORY + memory, mapped_bytes), np.uint8)
            self.regions.append(pages)
        return _reply(_DONE)

    def execute(self, num_spans: int, code_bytes: int) -> bytes:
        """Carries out one job."""
        spans = [_SPAN.unpack(_receive(_SPAN.size)) for _ in range(num_spans)]
        code = _receive(code_bytes)
        if self.regions is None:
            return _reply(_FAILED, _UNKNOWN)
        given: list[StreamRegion] = []
        for region, access, offset, size_bytes in spans:
            part = self.regions[region][offset : offset + size_bytes]
            part.flags.writeable = bool(access & _WRITE)
            given.append(StreamRegion(part, bool(access & _READ), bool(access & _WRITE)))
        try:
            self.model.execute(code, given)
        except OutOfReachError as error:
            region, _, offset, _ = spans[error.region]
            return _REPLY.pack(
                _FAULTED, 0, 0, int(error.is_write), region, (offset + error.offset) % (1 << 64), b""
            )
        except ValueError as error:
            return _reply(_DONE, _UNKNOWN, str(error))
        return _reply(_DONE)


def _reply(outcome: int, status: int = 0, reason: str = "") -> bytes:
    """A reply that speaks of no address; a reason that is too long is cut between two characters."""
    text = reason.encode()[: REASON_BYTES - 1].decode(errors="ignore").encode()
    return _REPLY.pack(outcome, status, 0, 0, _NO_REGION, 0, text)


def _receive(size_bytes: int) -> bytes:
    parts: list[bytes] = []
    while size_bytes > 0:
        part = os.read(_COMMANDS, size_bytes)
        if not part:
            sys.exit(0)  # the run is over
        parts.append(part)
        size_bytes -= len(part)
    return b"".join(parts)


def main(isa: str) -> None:
    """Carries out commands until there are no more."""
    model = find_stream_model(isa)
    if model is None:
        sys.exit(f"no model of '{isa}'")
    process = _Process(model)
    while True:
        command, num_items, code_bytes, _, _ = _MESSAGE.unpack(_receive(_MESSAGE.size))
        answer = (
            process.open(num_items, code_bytes)
            if command == _OPEN
            else process.execute(num_items, code_bytes)
        )
        os.write(_REPLIES, answer)


if __name__ == "__main__":
    main(sys.argv[1])
