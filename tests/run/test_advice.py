"""What BW104 advises works: each network is refused with the advice, and with the advice followed it compiles.

The files were written by `tools/advice_networks.py`, with TensorFlow's converter, in pairs of the same weights. LiteRT
runs both, and says that what follows the advice is still the same network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from bytewright.frontends.tflite.advice import ADVICE, CUSTOM_ADVICE
from bytewright.frontends.tflite.reader import read_model
from support.against_reference import assert_equals_reference
from support.model_files import DATA, ModelFile

Array = NDArray[Any]

FOLDER = DATA / "advice"
TAKEN = (
    "fake_quant",
    "keras3_lstm",
    "gru",
    "rnn",
    "loop",
    "branch",
    "floor_division",
    "floor_remainder",
    "all_of",
    "any_of",
    "product",
    "arg_max",
    "arg_min",
    "cumulative_sum",
    "one_hot",
    "fill",
    "top_k",
    "suppression_v4",
    "suppression_v5",
)
"""Networks with operators that were refused once, and are compiled."""
SIZED = ("where",)
"""Such networks whose data decides sizes (`test_sizes_of_data.py`)."""

_NO_CONVERTER = (
    "no converter of TensorFlow 2 writes it: the layer becomes UNIDIRECTIONAL_SEQUENCE_LSTM or WHILE"
)
WITHOUT_A_PAIR = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _NO_CONVERTER,
    "BIDIRECTIONAL_SEQUENCE_RNN": _NO_CONVERTER,
    "LSTM": _NO_CONVERTER,
    "RNN": _NO_CONVERTER,
    **dict.fromkeys(
        ("edgetpu-custom-op", "DISPATCH_OP", "NeutronGraph", "XC_"),
        "only that compiler writes it, and the file that it was given is any other",
    ),
    "Flex": "the model is less than what was converted: nothing is there to compare",
}
LAYERS_OF_THESE = {"keras3_lstm", "rnn"}


def refused(network: str) -> ModelFile:
    return ModelFile(FOLDER / f"{network}-refused.tflite")


def followed(network: str) -> ModelFile:
    return ModelFile(FOLDER / f"{network}-followed.tflite")


def test_every_advice_has_a_reason() -> None:
    assert set(WITHOUT_A_PAIR) == {*ADVICE, *CUSTOM_ADVICE}
    assert {*TAKEN} >= LAYERS_OF_THESE, "the layers of those without a pair are followed all the same"
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {
        f"{network}-{part}.tflite" for network in (*TAKEN, *SIZED) for part in ("refused", "followed")
    }


@pytest.mark.parametrize("network", TAKEN)
def test_what_was_refused_once_equals_the_reference(network: str, tmp_path: Path) -> None:
    assert_equals_reference([refused(network)], tmp_path)


@pytest.mark.parametrize("network", [*TAKEN, *SIZED])
def test_what_follows_the_advice_equals_the_reference(network: str, tmp_path: Path) -> None:
    assert_equals_reference([followed(network)], tmp_path)


class Running:
    """A file in LiteRT, from its start, with the default kernels, as the reference ones have no loops.

    What the file keeps stays from call to call.
    """

    def __init__(self, file: ModelFile) -> None:
        kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self._interpreter: Any = Interpreter(model_content=file.content, experimental_op_resolver_type=kind)
        self._interpreter.allocate_tensors()

    def __call__(self, *inputs: Array) -> list[Array]:
        """Outputs, in the order of the file, for inputs in that order."""
        for detail, array in zip(self._interpreter.get_input_details(), inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        details = self._interpreter.get_output_details()
        return [np.array(self._interpreter.get_tensor(detail["index"])) for detail in details]


SAME = (
    "keras3_lstm", "gru", "rnn", "loop", "branch", "cumulative_sum", "one_hot", "fill",
    "floor_division", "floor_remainder", "all_of", "any_of", "product",
)  # fmt: skip


@pytest.mark.parametrize("network", SAME)
def test_the_network_is_still_the_same(network: str) -> None:
    """From its start in each run: in LiteRT, the operator of an LSTM goes on where it stopped."""
    for seed in range(8):
        before, after = Running(refused(network)), Running(followed(network))
        inputs = followed(network).inputs(seed)
        np.testing.assert_allclose(after(*inputs)[0], before(*inputs)[0], rtol=1e-5, atol=1e-6)


LEFT_OUT: dict[str, Callable[[Sequence[Array]], list[Array]]] = {
    "where": lambda results: [np.argwhere(results[0])],
}


@pytest.mark.parametrize("network", LEFT_OUT)
def test_the_application_can_compute_what_was_left_out(network: str) -> None:
    before, after = Running(refused(network)), Running(followed(network))
    for seed in range(8):
        inputs = followed(network).inputs(seed)
        for own, wanted in zip(LEFT_OUT[network](after(*inputs)), before(*inputs), strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-6)


def test_tensorflow_2_writes_roundings_as_quantize_and_dequantize() -> None:
    model = read_model(followed("fake_quant").content, "followed.tflite")
    assert [operator.kind for operator in model.operators] == ["FULLY_CONNECTED", "QUANTIZE", "DEQUANTIZE"]
