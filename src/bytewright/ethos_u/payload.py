"""The payload of the custom operator: which accelerator it is for, and the code that the NPU reads.

Two formats are known. COP1 is a list of driver actions, of which the configuration and the stream are read and the
padding is skipped. COP2 is one action that holds a table of properties and the code. Arm's core driver takes COP1
alone, so `as_cop1` wraps the code of either: from byte 32 on, as the NPU wants its code at a multiple of 16 bytes.
"""

import struct
from dataclasses import dataclass

from bytewright.ethos_u.faults import another_npu, damaged, unknown_action
from bytewright.target.isa.accelerator import Accelerator
from bytewright.target.isa.ethos_u import DECODED_PRODUCTS, of_configuration, product_name

WORD_BYTES = 4
CODE_ALIGNMENT = 16
_COP1 = 0x31504F43
_PROPERTIES = 0x4D554556
_END_OF_PROPERTIES = 0xFFFFFFFF
_CONFIGURATION, _STREAM, _PADDING = 1, 2, 5
_PROPERTIES_BYTES = 36
_COP2_CODE_OFFSET = 64
_ARCHITECTURE_MAJOR = 1
# Vela's words of the architecture's version: 1.0.6 and 1.1.0 differ in nothing that a stream says.


@dataclass(frozen=True, slots=True)
class Payload:
    """An opened payload.

    Attributes:
        configuration: The word that names the accelerator.
        identity: The word with the version of the architecture.
        accelerator: What the configuration means.
        code: The NPU's code, in words.
    """

    configuration: int
    identity: int
    accelerator: Accelerator
    code: tuple[int, ...]


def parse_payload(data: bytes) -> Payload:
    """Opens a payload of either format.

    Raises:
        CompileError: BW740 where it is cut short or damaged, BW741 for an action that is not known, BW742 for another
            NPU.
    """
    if len(data) % WORD_BYTES or len(data) < 2 * WORD_BYTES:
        raise damaged(f"a payload of {len(data)} bytes is no whole number of words, or has no action")
    words = struct.unpack(f"<{len(data) // WORD_BYTES}I", data)
    match words[0]:
        case 0x31504F43:
            return _parse_cop1(words)
        case 0x32504F43:
            return _parse_cop2(words)
        case first:
            raise damaged(f"a payload begins with 0x{first:08x}, and neither with 'COP1' nor with 'COP2'")


def as_cop1(payload: Payload) -> bytes:
    """The payload as a list of driver actions, with the code at byte 32."""
    length = len(payload.code)
    padding = [_PADDING] * 3
    stream = _STREAM | (length >> 16) << 8 | (length & 0xFFFF) << 16
    words = [
        _COP1,
        1 << 20 | _CONFIGURATION,
        payload.configuration,
        payload.identity,
        *padding,
        stream,
        *payload.code,
    ]
    return struct.pack(f"<{len(words)}I", *words)


def _parse_cop1(words: tuple[int, ...]) -> Payload:
    configuration: tuple[int, ...] | None = None
    code: tuple[int, ...] | None = None
    index = 1
    while index < len(words):
        action = words[index] & 0xFF
        index += 1
        if action == _PADDING:
            continue
        if action == _CONFIGURATION and configuration is None:
            configuration = _words(words, index, 2, "the configuration")
            index += 2
        elif action == _STREAM and code is None:
            length = words[index - 1] >> 16 | (words[index - 1] & 0xFF00) << 8
            if index * WORD_BYTES % CODE_ALIGNMENT:
                raise damaged(
                    f"the code begins at byte {index * WORD_BYTES}, which is no multiple of {CODE_ALIGNMENT}"
                )
            code = _words(words, index, length, "the code")
            index += length
        elif action in {_CONFIGURATION, _STREAM}:
            raise unknown_action(
                f"word {index - 1} of the payload is a second action {action}; one is expected"
            )
        else:
            raise unknown_action(
                f"word {index - 1} of the payload is driver action {action}; known are {_CONFIGURATION} "
                f"(configuration), {_STREAM} (stream) and {_PADDING} (padding)"
            )
    if configuration is None or code is None:
        missing = "configuration" if configuration is None else "stream"
        raise damaged(f"the payload ends after {len(words)} words without a {missing}")
    return _payload(configuration[0], configuration[1], code)


def _parse_cop2(words: tuple[int, ...]) -> Payload:
    size_bytes = len(words) * WORD_BYTES
    if len(words) < _COP2_CODE_OFFSET // WORD_BYTES:
        raise damaged(
            f"a COP2 payload of {size_bytes} bytes is shorter than its header of {_COP2_CODE_OFFSET}"
        )
    _, version, rest_bytes, reserved, action, action_bytes, properties_bytes = words[:7]
    if (version, reserved) != (1, 0):
        raise unknown_action(
            f"the COP2 payload is of version {version}, with {reserved} in reserve; known is 1, with 0"
        )
    if rest_bytes != size_bytes - 16:
        raise damaged(
            f"the COP2 payload states {rest_bytes} bytes after its header and has {size_bytes - 16}"
        )
    if action != 1:
        raise unknown_action(f"the COP2 payload begins with action {action}; known is 1 (stream)")
    if action_bytes != rest_bytes - 8:
        raise damaged(f"the stream of the COP2 payload states {action_bytes} bytes and has {rest_bytes - 8}")
    tag, properties_version, length_bytes = words[7:10]
    known = (_PROPERTIES, 1, _PROPERTIES_BYTES, 20, _END_OF_PROPERTIES)
    if (tag, properties_version, properties_bytes, length_bytes, words[15]) != known:
        raise unknown_action(
            "the properties of the COP2 payload are not those that Vela 5.2 writes (36 bytes, version 1)"
        )
    return _payload(words[10], words[11], words[_COP2_CODE_OFFSET // WORD_BYTES :])


def _words(words: tuple[int, ...], index: int, count: int, what: str) -> tuple[int, ...]:
    if index + count > len(words):
        raise damaged(
            f"{what} of {count} words begins at word {index} of a payload of {len(words)}: it is cut short"
        )
    return words[index : index + count]


def _payload(configuration: int, identity: int, code: tuple[int, ...]) -> Payload:
    accelerator = of_configuration(configuration)
    if accelerator is None or identity >> 28 != _ARCHITECTURE_MAJOR:
        raise another_npu(
            f"the stream is for an {product_name(configuration)} with {configuration >> 8 & 0xFF} KiB of shared buffer "
            f"and 2^{configuration & 0xF} MACs (configuration 0x{configuration:08x}, architecture 0x{identity:08x}); "
            f"known are {DECODED_PRODUCTS}, of architecture {_ARCHITECTURE_MAJOR}"
        )
    return Payload(configuration, identity, accelerator, code)
