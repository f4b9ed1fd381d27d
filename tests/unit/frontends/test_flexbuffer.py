"""Options of custom operators, against the library that writes them; damaged ones end in one error."""

from __future__ import annotations

from typing import Any

import pytest
from flatbuffers import flexbuffers

from bytewright.frontends.tflite.flatbuffer import DamagedError
from bytewright.frontends.tflite.flexbuffer import numbers_by_name


def written(entries: dict[str, Any]) -> bytes:
    builder: Any = flexbuffers.Builder()
    with builder.Map():
        for name, value in entries.items():
            builder.Key(name)
            builder.Add(value)
    return bytes(builder.Finish())


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"a": 1},
        {"least": -(2**31), "most": 2**40, "is_set": True, "is_not": False},
        {"half": 0.5, "third": 1 / 3, "small": 1e-300},
        {f"name_{n}": n * n for n in range(300)},
    ],
)
def test_numbers_are_those_that_were_written(entries: dict[str, int | float]) -> None:
    assert numbers_by_name(written(entries)) == entries


def test_what_is_no_number_is_passed_over() -> None:
    assert numbers_by_name(written({"text": "x", "list": [1, 2], "n": 3, "map": {"n": 4}})) == {"n": 3}
    assert numbers_by_name(b"") == {}


def test_indirect_numbers() -> None:
    builder: Any = flexbuffers.Builder()
    with builder.Map():
        for key, add, value in (
            ("f", builder.IndirectFloat, 0.25),
            ("i", builder.IndirectInt, -7),
            ("u", builder.IndirectUInt, 7),
        ):
            builder.Key(key)
            add(value)
    assert numbers_by_name(bytes(builder.Finish())) == {"f": 0.25, "i": -7, "u": 7}


def test_damaged_bytes_end_in_one_error() -> None:
    content = written({"max_detections": 10, "y_scale": 10.0, "use_regular_nms": True})
    refused = 0
    for place in range(len(content)):
        for value in (0, 1, 127, 255):
            damaged = bytearray(content)
            damaged[place] = value
            try:
                numbers_by_name(bytes(damaged))
            except DamagedError:
                refused += 1
    assert refused > 40
    for end in range(1, len(content)):
        with pytest.raises(DamagedError):
            numbers_by_name(content[:end])


def test_another_root_is_refused() -> None:
    for content in (b"\x01", b"\x05\x04\x01", flexbuffers.Dumps([1, 2])):
        with pytest.raises(DamagedError):
            numbers_by_name(bytes(content))
