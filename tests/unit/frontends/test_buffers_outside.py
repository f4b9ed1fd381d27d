"""Buffers that stand outside of the flatbuffer, and those that say so and have data too: read as LiteRT reads them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import tflite

import tflite_writer
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.reader import read_model
from support.reference import run_litert
from tflite_writer import ModelBuilder

VALUES = (1.0, 2.0, 3.0, 4.0)
OUTSIDE = (10.0, 20.0, 30.0, 40.0)
ASKED: dict[str, Any] = {}  # how the next model has its buffers written


@pytest.fixture
def written_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers with content are written as the last model asked for."""
    plain = tflite_writer._FileWriter._buffer

    def buffer(writer: Any, content: bytes) -> int:
        if not content:
            return plain(writer, content)
        builder = writer._builder
        data = (
            None
            if ASKED["data"] == "no"
            else builder.CreateByteVector(content if ASKED["data"] == "yes" else b"")
        )
        tflite.BufferStart(builder)
        if data is not None:
            tflite.BufferAddData(builder, data)
        tflite.BufferAddOffset(builder, ASKED["offset"])
        tflite.BufferAddSize(builder, ASKED["size"])
        return tflite.BufferEnd(builder)

    monkeypatch.setattr(tflite_writer._FileWriter, "_buffer", buffer)


def model(keeps_data: str, size_bytes: int = 16) -> bytes:
    """x + a constant; behind the flatbuffer stand OUTSIDE, where the constant's offset leads."""

    def build(offset: int) -> bytes:
        ASKED.update(data=keeps_data, offset=offset, size=size_bytes)
        builder = ModelBuilder()
        x, y = (builder.tensor(name, [1, 4], "float32") for name in ("x", "y"))
        addend = builder.tensor("addend", [1, 4], "float32", data=np.array([VALUES], np.float32))
        builder.operator("ADD", [x, addend], [y], activation="NONE")
        return builder.build([x], [y])

    length = (len(build(1 << 40)) + 15) // 16 * 16
    return build(length).ljust(length, b"\0") + struct.pack("<4f", *OUTSIDE)


@pytest.mark.usefixtures("written_as_asked")
@pytest.mark.parametrize("size_bytes", [16, 1, 0])
@pytest.mark.parametrize("data", ["no", "yes", "empty"])
def test_data_and_offset_are_read_as_litert_reads_them(data: str, size_bytes: int) -> None:
    content = model(data, size_bytes)
    try:
        (wanted,) = run_litert(content, [np.zeros((1, 4), np.float32)])
    except ValueError:
        with pytest.raises(CompileError, match="BW103"):
            read_model(content, "m.tflite")
        return
    found = read_model(content, "m.tflite")
    (addend,) = (tensor for tensor in found.tensors if tensor.name == "addend")
    assert np.array_equal(np.frombuffer(found.buffers[addend.buffer], np.float32), wanted[0])
    assert tuple(wanted[0]) == (OUTSIDE if data == "no" else VALUES)
