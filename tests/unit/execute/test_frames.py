"""Frames of the serial line: any content comes back, nothing inside is 0, and no damage of one bit goes unseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.base.option import OptionSyntaxError
from bytewright.execute.machine import SerialPort, machine_of
from bytewright.execute.serial.frames import Frame, Kind, decode, encode

FRAMES = st.builds(
    Frame,
    st.sampled_from(Kind),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.one_of(
        st.binary(max_size=300), st.binary(min_size=240, max_size=270).map(lambda b: b.replace(b"\0", b"\1"))
    ),
)


@given(FRAMES)
def test_a_frame_comes_back_and_has_no_zero_inside(frame: Frame) -> None:
    line = encode(frame)
    assert (line[0], line[-1]) == (0, 0)
    assert 0 not in line[1:-1]
    assert decode(line[1:-1]) == frame


@given(FRAMES, st.data())
def test_a_bit_that_flips_is_seen(frame: Frame, data: st.DataObject) -> None:
    stuffed = bytearray(encode(frame)[1:-1])
    place = data.draw(st.integers(0, len(stuffed) - 1))
    stuffed[place] ^= 1 << data.draw(st.integers(0, 7))
    assert all(decode(piece) is None for piece in bytes(stuffed).split(b"\0") if piece)


@given(st.binary(max_size=40))
def test_noise_is_no_frame(noise: bytes) -> None:
    assert decode(noise) is None


def test_the_bytes_on_the_line() -> None:
    """By hand: before each run of other bytes stands how far it is to the next zero."""
    empty = encode(Frame(Kind.BEGIN, 0x0102, 0))
    assert empty[:11] == bytes([0, 2, 16, 3, 2, 1, 1, 1, 1, 5]) + empty[10:11]
    content = encode(Frame(Kind.ANSWER, 0x1111, 0x2222, b"123456789"))
    assert content[1:13] == bytes([2, 17, 6, 0x11, 0x11, 0x22, 0x22, 9, 14]) + b"123"


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        ("host", "host"),
        ("serial:/dev/ttyACM0", SerialPort("/dev/ttyACM0")),
        ("serial:COM3,9600", SerialPort("COM3", 9600)),
        ("serial:socket://board:5555", SerialPort("socket://board:5555")),
        ("serial:a,b", SerialPort("a,b")),
    ],
)
def test_machines_by_their_names(text: str, machine: object) -> None:
    assert machine_of(text) == machine
    assert str(machine_of(text)) == text


@pytest.mark.parametrize("text", ["", "board", "serial:", "serial:,9600", "serial:x,0", "/dev/ttyACM0"])
def test_what_is_no_machine(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        machine_of(text)
