"""The header of a parameter blob, and its digest."""

from __future__ import annotations

import pytest

from bytewright.record.fnv1a import fnv1a_64
from bytewright.record.parameter_bytes import blob_header


@pytest.mark.parametrize(
    ("data", "digest"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_fnv(data: bytes, digest: int) -> None:
    """The published test vectors of FNV-1a 64."""
    assert fnv1a_64(data) == digest


def test_the_header_of_a_blob_is_32_bytes() -> None:
    header = blob_header((b"foo", b"bar"))
    assert len(header) == 32
    assert header == b"BYTEWRT1" + bytes([6, *7 * [0]]) + 0x85944171F73967E8.to_bytes(8, "little") + bytes(8)
