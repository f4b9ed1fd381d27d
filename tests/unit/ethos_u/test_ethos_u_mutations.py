"""Files of Vela's with damaged streams and weights: a clear error each, or a run; never the end of the process.

BYTEWRIGHT_TESTS=thorough takes 500 of each model.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.ethos_u.decoder import WeightDecoder
from bytewright.ethos_u.operations import Convolution, DmaCopy
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.ethos_u import SHARED, U55, VelaOperator, needs_vela, vela, vela_operators
from support.shared_models import AD01, KWS, RESNET8, model_path
from support.tiers import THOROUGH

pytestmark = needs_vela
NUM_FILES = 500 if THOROUGH else 25
KNOWN = {"BW740", "BW741", "BW742", "BW743", "BW744"}


def mutated(generator: np.random.Generator, content: bytes, operator: VelaOperator) -> bytes:
    """The file with one word of its payload changed, or some bytes of its weights."""
    words = np.frombuffer(operator.payload, "<u4").copy()
    at = int(generator.integers(words.size))
    match int(generator.integers(5)):
        case 0:
            words[at] ^= np.uint32(1 << int(generator.integers(32)))
        case 1:
            words[at] = generator.integers(1 << 32)
        case 2:  # a command with another parameter
            words[at] = int(words[at]) & 0xFFFF | int(generator.integers(1 << 16)) << 16
        case 3:
            words[at] = words[int(generator.integers(words.size))]
        case _:
            constants = np.frombuffer(operator.read_only.data or b"", np.uint8)
            changed = constants.copy()
            changed[generator.integers(changed.size, size=20)] = generator.integers(256, size=20)
            return content.replace(constants.tobytes(), changed.tobytes())
    return content.replace(operator.payload, words.tobytes())


def outcome(content: bytes, operator: VelaOperator) -> str:
    """Imports a file and carries out its stream: the codes of the errors, or that there were none."""
    (shape,) = (tensor.shape for tensor in operator.inputs)
    try:
        module = import_content(content, "m.tflite", numerics=Numerics.TFLM)
        (node,) = [node for node in module.graph.nodes if node.operation.name == "ethos_u"]
        constants = {constant.name: constant.data.content for constant in module.constants}
        given = [np.frombuffer(constants[name], np.uint8) for name in node.inputs[:2]]
        node.operation.evaluate((*given, np.ones(shape, np.int8)))
    except CompileError as error:
        return " ".join(diagnostic.code for diagnostic in error.diagnostics)
    return "ran"


@pytest.mark.parametrize("name", [AD01, KWS, RESNET8])
def test_a_damaged_file_is_a_clear_error_or_runs(name: str) -> None:
    content = vela(model_path(name).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    assert (content.count(operator.payload), content.count(operator.read_only.data or b"")) == (1, 1)
    found = [
        outcome(mutated(np.random.default_rng(seed), content, operator), operator)
        for seed in range(NUM_FILES)
    ]
    assert set(found) <= KNOWN | {"ran"}
    assert len(set(found)) >= 3


def weight_stream() -> bytes:
    """The first one of a model."""
    (operator,) = vela_operators(vela(model_path(KWS).read_bytes(), U55, SHARED))
    operations = operator.operations
    number, convolution = next((n, o) for n, o in enumerate(operations) if isinstance(o, Convolution))
    (span,) = convolution.weights
    copies = [o for o in operations[:number] if isinstance(o, DmaCopy)]
    (copy,) = [o for o in copies if 0 <= span.first - o.destination < o.row_bytes]
    first = copy.source + span.first - copy.destination
    return (operator.read_only.data or b"")[first : first + span.size_bytes]


def test_a_damaged_weight_stream_is_an_error_and_the_next_one_is_decoded() -> None:
    stream, own = weight_stream(), importlib.import_module("ethosu.mlw_codec")
    decoder = WeightDecoder()
    right = own.decode(bytearray(stream))
    assert len(right) > 500
    for broken in (b"abc", stream[: len(stream) // 2], np.random.default_rng(1).bytes(600)):
        with pytest.raises(CompileError, match=r"\[BW740\]") as caught:
            decoder.decode(broken)
        message = caught.value.diagnostics[0].message
        assert message.startswith(
            f"a weight stream of {len(broken)} bytes cannot be decoded: Vela's decoder ended with status "
        )
        assert "underrun" in message
        assert decoder.decode(stream).tolist() == right


def test_a_decoder_that_does_not_end_is_stopped() -> None:
    decoder = WeightDecoder()
    with pytest.raises(CompileError, match=r"BW740.* Vela's decoder did not end in time \(no word\)"):
        decoder.decode(weight_stream(), timeout_seconds=0.0)
    assert decoder.decode(weight_stream()).size > 500
