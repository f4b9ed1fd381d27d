"""Whether the calls of the C begin where the plan says that parts of buffers lie."""

from collections.abc import Iterator, Mapping

from bytewright.inspect.c_nodes import integer_of
from bytewright.inspect.read_entry import CallText, read_place
from bytewright.record.names import Names
from bytewright.record.plan import PlannedBuffer


def differences_of_parts(call: CallText, names: Names, buffers: Mapping[str, PlannedBuffer]) -> Iterator[str]:
    """What one call is given from a byte on that is neither in its buffer nor, if that has parts, the first of one.

    Args:
        call: As it was read.
        names: Of the bundle.
        buffers: What the step touches, by what the C calls it.
    """
    for argument in call.arguments:
        place = read_place(argument, names)
        index = None if place is None else integer_of(place.index)
        buffer = None if place is None else buffers.get(place.name)
        if index is None or buffer is None or buffer.dtype is None:
            continue
        first = index * buffer.dtype.size_bytes
        starts = {0, *(part.offset_bytes for part in buffer.parts)}
        if first >= buffer.size_bytes or (buffer.parts and first not in starts):
            yield f"'{buffer.name}' is passed from byte {first} on, where no part of it lies"
