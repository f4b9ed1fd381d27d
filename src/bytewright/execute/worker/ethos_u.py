"""Ethos-U on the host: the functional model, with the spans of a job as the regions of its stream.

All accesses are known before the first one is made, so a stream that goes beyond what it was given changes nothing.
"""

from collections.abc import Sequence

import numpy as np

from bytewright.diagnostics import CompileError
from bytewright.ethos_u.accesses import Access, accesses
from bytewright.ethos_u.decode import decode
from bytewright.ethos_u.decoder import require_decoder
from bytewright.ethos_u.execute import execute
from bytewright.ethos_u.payload import parse_payload
from bytewright.execute.worker.streams import OutOfReachError, StreamRegion


class EthosUModel:
    """Carries out the streams of one accelerator.

    Attributes:
        isa: The accelerator's name; streams for another one are refused.
    """

    def __init__(self, isa: str) -> None:
        """Raises BW501 where Vela's decoder of weights is not installed."""
        require_decoder()
        self.isa = isa

    def execute(self, code: bytes, regions: Sequence[StreamRegion]) -> None:
        """Carries out a stream in the form that Arm's core driver takes.

        Raises:
            OutOfReachError: It reads or writes what the job was not given, or not for that.
            ValueError: It is damaged, for another accelerator, or not known exactly.
        """
        try:
            payload = parse_payload(code)
            if payload.accelerator.name != self.isa:
                raise ValueError(f"the stream is for {payload.accelerator.name}, and this is {self.isa}")
            operations = decode(payload.code, payload.accelerator)
            _check_reach(accesses(operations), regions)
            given = {number: region.data for number, region in enumerate(regions)}
            execute(operations, given, payload.accelerator)
        except CompileError as error:
            reasons = (f"{each.code}: {each.message}" for each in error.diagnostics)
            raise ValueError("\n".join(reasons)) from error


def _check_reach(found: Sequence[Access], regions: Sequence[StreamRegion]) -> None:
    """Whether all that is touched is given. What may only be written is read where the stream has written before."""
    written = [np.zeros(region.data.size, np.bool_) for region in regions]
    for access in found:
        if not 0 <= access.region < len(regions):
            raise ValueError(
                f"operation {access.operation} names region {access.region}, and the job has {len(regions)}"
            )
        region, size_bytes = regions[access.region], regions[access.region].data.size
        if access.first < 0 or (access.writes and not region.is_writable):
            raise OutOfReachError(access.region, access.first, access.writes)
        if access.last >= size_bytes:
            raise OutOfReachError(access.region, max(access.first, size_bytes), access.writes)
        touched = written[access.region][access.first : access.last + 1]
        if access.writes:
            touched[:] = True
        elif not region.is_readable and not touched.all():
            raise OutOfReachError(access.region, access.first + int(touched.argmin()), False)
