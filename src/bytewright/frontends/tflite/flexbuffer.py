"""The options of custom operators: a FlexBuffer whose root maps names to numbers, every access checked.

Layout: https://flatbuffers.dev/flexbuffers/. A value is as wide as its container says, and a type is a byte: six bits
of kind, and two of the width of what it refers to. Offsets point back.
"""

from dataclasses import dataclass
from typing import Any

from bytewright.frontends.tflite.flatbuffer import DamagedError, File

_INTEGER, _UNSIGNED, _REAL, _MAP, _BOOLEAN = 1, 2, 3, 9, 26
_INDIRECT = {6: _INTEGER, 7: _UNSIGNED, 8: _REAL}
_FORMS = {
    **{(_INTEGER, 1 << n): form for n, form in enumerate("bhiq")},
    **{(kind, 1 << n): form for kind in (_UNSIGNED, _BOOLEAN) for n, form in enumerate("BHIQ")},
    (_REAL, 2): "e",
    (_REAL, 4): "f",
    (_REAL, 8): "d",
}
_MOST_NAME_BYTES = 64


def numbers_by_name(content: bytes) -> dict[str, int | float]:
    """The entries of the map that are numbers or truth values; none of an empty buffer.

    Raises:
        DamagedError: It is no FlexBuffer of a map.
    """
    if not content:
        return {}
    if len(content) < 3:
        raise DamagedError("its options are no FlexBuffer")
    buffer = _Buffer(File.of(content))
    kind, width, end = content[-2] >> 2, content[-1], len(content) - 2
    if kind != _MAP:
        raise DamagedError("its options are no map of names")
    return buffer.map_at(buffer.back(end - width, width), 1 << (content[-2] & 3))


@dataclass(frozen=True, slots=True)
class _Buffer:
    file: File

    def number(self, position: int, kind: int, width: int) -> Any:
        """One scalar of a kind and a width in bytes."""
        form = _FORMS.get((kind, width))
        if form is None:
            raise DamagedError(f"its options have a number of kind {kind} in {width} bytes")
        self.file.charge(width)
        return self.file.number(position, form)

    def back(self, position: int, width: int) -> int:
        """Where the offset at a position points."""
        return position - self.number(position, _UNSIGNED, width)

    def map_at(self, values: int, width: int) -> dict[str, int | float]:
        """The entries of a map: its values, behind which their types stand, and names in a vector of their own."""
        count = self.number(values - width, _UNSIGNED, width)
        names = self.back(values - 3 * width, width)
        name_width = self.number(values - 2 * width, _UNSIGNED, width)
        found: dict[str, int | float] = {}
        for index in range(count):
            packed = self.number(values + count * width + index, _UNSIGNED, 1)
            position, kind, own_width = values + index * width, packed >> 2, width
            if kind in _INDIRECT:
                position, kind, own_width = self.back(position, width), _INDIRECT[kind], 1 << (packed & 3)
            if kind in (_INTEGER, _UNSIGNED, _REAL, _BOOLEAN):
                name = self._name(self.back(names + index * name_width, name_width))
                found[name] = self.number(position, kind, own_width)
        return found

    def _name(self, position: int) -> str:
        """A name up to its zero."""
        rest = self.file.read(position, min(_MOST_NAME_BYTES, len(self.file.content) - position))
        self.file.charge(len(rest))
        name, end, _ = bytes(rest).partition(b"\0")
        if not end:
            raise DamagedError("a name in its options has no end")
        return name.decode("utf-8", errors="replace")
