"""Frames of the serial line, as bytes and back: serial/port_serial.c says what they are."""

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

_HEAD, _CHECK = struct.Struct("<BBHHH"), struct.Struct("<I")
_MOST_IN_BLOCK = 254


class Kind(IntEnum):
    """`enum frame_type`."""

    HELLO = 1
    OPEN = 2
    READ = 3
    WRITE = 4
    EXIT = 5
    BEGIN = 16
    ANSWER = 17
    AGAIN = 18


REQUESTS = frozenset({Kind.HELLO, Kind.OPEN, Kind.READ, Kind.WRITE, Kind.EXIT})


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: Kind
    session: int
    sequence: int
    content: bytes = b""


def encode(frame: Frame) -> bytes:
    """The bytes that go over the line, those between frames among them."""
    head = _HEAD.pack(frame.kind, 0, frame.session, frame.sequence, len(frame.content))
    plain = head + frame.content
    return b"\0" + _stuffed(plain + _CHECK.pack(zlib.crc32(plain))) + b"\0"


def decode(stuffed: bytes) -> Frame | None:
    """The frame in what came between two bytes that are 0; None if it is damaged."""
    plain = _unstuffed(stuffed)
    if plain is None or len(plain) < _HEAD.size + _CHECK.size:
        return None
    body, check = plain[: -_CHECK.size], plain[-_CHECK.size :]
    kind, _, session, sequence, length = _HEAD.unpack(body[: _HEAD.size])
    content = body[_HEAD.size :]
    if _CHECK.unpack(check)[0] != zlib.crc32(body) or len(content) != length or kind not in set(Kind):
        return None
    return Frame(Kind(kind), session, sequence, content)


def _stuffed(plain: bytes) -> bytes:
    """Without zeros: each block begins with how far it is to the next zero, or 255 if 254 bytes have none."""
    blocks: list[bytes] = []
    for piece in plain.split(b"\0"):
        whole = len(piece) // _MOST_IN_BLOCK * _MOST_IN_BLOCK
        blocks += [
            b"\xff" + piece[first : first + _MOST_IN_BLOCK] for first in range(0, whole, _MOST_IN_BLOCK)
        ]
        blocks.append(bytes([len(piece) - whole + 1]) + piece[whole:])
    return b"".join(blocks)


def _unstuffed(stuffed: bytes) -> bytes | None:
    plain = bytearray()
    position = 0
    while position < len(stuffed):
        code = stuffed[position]
        block = stuffed[position + 1 : position + code]
        if not code or len(block) != code - 1:
            return None
        plain += block
        position += code
        if code <= _MOST_IN_BLOCK and position < len(stuffed):
            plain.append(0)
    return bytes(plain)
