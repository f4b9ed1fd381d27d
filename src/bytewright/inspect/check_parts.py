"""Whether the calls of the C begin where the plan says that parts of buffers lie."""

import re
from collections.abc import Iterator, Mapping

from bytewright.inspect.read_c import CallText
from bytewright.record.plan import PlannedBuffer

# An address with a number of elements behind it: `inputs->image + 20`, `(const float *)(ram + KWS_AT_RAM_X) + 20`.
_PLACE = re.compile(r"(?:(\w+)\)|(\w+->\w+)) \+ (\d+)u?$")


def differences_of_parts(call: CallText, buffers: Mapping[str, PlannedBuffer]) -> Iterator[str]:
    """What one call is given from a byte on that is neither in its buffer nor, if that has parts, the first of one.

    Args:
        call: As it was read.
        buffers: What the step touches, by what the C calls it.
    """
    for argument in call.arguments:
        found = _PLACE.search(argument)
        buffer = buffers.get(found[1] or found[2]) if found is not None else None
        if found is None or buffer is None or buffer.dtype is None:
            continue
        first = int(found[3]) * buffer.dtype.size_bytes
        starts = {0, *(part.offset_bytes for part in buffer.parts)}
        if first >= buffer.size_bytes or (buffer.parts and first not in starts):
            yield f"'{buffer.name}' is passed from byte {first} on, where no part of it lies"
