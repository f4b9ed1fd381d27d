"""The payload of an Ethos-U operator: what is in it, and each way in which it is refused."""

from __future__ import annotations

import struct

import pytest

from bytewright.diagnostics import CompileError
from bytewright.ethos_u.payload import as_cop1, parse_payload
from support.ethos_u import DEDICATED, SEPARATE, SHARED, U55, U65, needs_vela, vela, vela_operators
from support.shared_models import AD01, KWS, model_path

U55_128, ARCHITECTURE = 0x00001807, 0x10066001
STOP = 0xFFFF0000


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def cop1(*code: int, configuration: int = U55_128, action: int = 5) -> bytes:
    stream = 2 | len(code) << 16
    return words(0x31504F43, 0x00100001, configuration, ARCHITECTURE, action, 5, 5, stream, *code)


def refused(payload: bytes) -> str:
    """The code and the message with which a payload is refused."""
    with pytest.raises(CompileError) as error:
        parse_payload(payload)
    (found,) = error.value.diagnostics
    assert found.help
    return f"{found.code}: {found.message}"


@needs_vela
@pytest.mark.parametrize(
    ("accelerator", "options", "macs"),
    [(U55, (), 128), (U65, (), 256), (U55, SEPARATE, 128), (U65, SEPARATE, 256)],
)
def test_a_payload_names_its_accelerator(accelerator: str, options: tuple[str, ...], macs: int) -> None:
    content = vela(model_path(AD01).read_bytes(), accelerator, SHARED, *options)
    (operator,) = vela_operators(content)
    payload = parse_payload(operator.payload)
    assert (payload.accelerator.name, 1 << payload.accelerator.log2_macs) == (accelerator, macs)
    assert payload.code[-1] == STOP


@needs_vela
@pytest.mark.parametrize("mode", [SHARED, DEDICATED])
def test_wrapping_the_code_again_gives_the_bytes_that_vela_wrote(mode: str) -> None:
    (operator,) = vela_operators(vela(model_path(KWS).read_bytes(), U65, mode))
    assert as_cop1(parse_payload(operator.payload)) == operator.payload


@needs_vela
def test_the_code_of_cop2_is_carried_as_cop1_from_a_multiple_of_16_bytes() -> None:
    (operator,) = vela_operators(vela(model_path(AD01).read_bytes(), U55, SHARED, *SEPARATE))
    payload = parse_payload(operator.payload)
    wrapped = as_cop1(payload)
    assert wrapped[:4] == b"COP1"
    assert wrapped[32:] == operator.payload[64:]
    assert parse_payload(wrapped) == payload


def test_a_long_stream_states_its_length_in_24_bits() -> None:
    payload = parse_payload(cop1(STOP))
    code = (0,) * 70000
    again = parse_payload(
        as_cop1(type(payload)(payload.configuration, payload.identity, payload.accelerator, code))
    )
    assert len(again.code) == 70000


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "BW740: a payload of 0 bytes"),
        (b"COP1ab", "BW740: a payload of 6 bytes"),
        (words(1, 2), "BW740: a payload begins with 0x00000001"),
        (words(0x31504F43, 5), "BW740: the payload ends after 2 words without a configuration"),
        (cop1(STOP)[:-4], "BW740: the code of 1 words begins at word 8 of a payload of 8: it is cut short"),
        (words(0x31504F43, 1, U55_128), "BW740: the configuration of 2 words begins at word 2"),
        (
            words(0x31504F43, 1, U55_128, ARCHITECTURE),
            "BW740: the payload ends after 4 words without a stream",
        ),
        (words(0x31504F43, 1, U55_128, ARCHITECTURE, 1 << 16 | 2, 0), "BW740: the code begins at byte 20"),
        (cop1(STOP, action=4), "BW741: word 4 of the payload is driver action 4"),
        (cop1(STOP, action=0x93), "BW741: word 4 of the payload is driver action 147"),
        (cop1(STOP) + words(1 << 16 | 2, STOP), "BW741: word 9 of the payload is a second action 2"),
        (cop1(STOP, configuration=0x20003008), "BW742: the stream is for an Ethos-U85 with 48 KiB"),
        (cop1(STOP, configuration=0x00001806), "BW742: the stream is for an Ethos-U55 with 24 KiB"),
    ],
)
def test_a_payload_that_cannot_be_read_is_refused(payload: bytes, message: str) -> None:
    assert refused(payload).startswith(message)


def test_a_stream_for_another_npu_is_to_be_made_again_for_a_known_one() -> None:
    with pytest.raises(CompileError) as error:
        parse_payload(cop1(STOP, configuration=0x20003008))
    (found,) = error.value.diagnostics
    assert found.help == "compile the model again with Vela for one of these (--accelerator-config)"
    assert "known are Ethos-U55 or Ethos-U65" in found.message


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (1, 2, "BW741: the COP2 payload is of version 2"),
        (2, 12, "BW740: the COP2 payload states 12 bytes after its header"),
        (4, 7, "BW741: the COP2 payload begins with action 7"),
        (5, 12, "BW740: the stream of the COP2 payload states 12 bytes"),
        (7, 12, "BW741: the properties of the COP2 payload"),
        (15, 0, "BW741: the properties of the COP2 payload"),
    ],
)
def test_a_word_of_cop2_that_is_not_as_it_should_be_is_refused(index: int, value: int, message: str) -> None:
    good = [
        0x32504F43,
        1,
        52,
        0,
        1,
        44,
        36,
        0x4D554556,
        1,
        20,
        U55_128,
        ARCHITECTURE,
        2,
        0,
        0,
        0xFFFFFFFF,
        STOP,
    ]
    assert parse_payload(words(*good)).code == (STOP,)
    good[index] = value
    assert refused(words(*good)).startswith(message)
    assert refused(words(*good[:12])).startswith("BW740: a COP2 payload of 48 bytes")
