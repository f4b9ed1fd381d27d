"""What is said of models that are refused: the cause first, the first ten places, and what can be done."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite.advice import ADVICE, CUSTOM_ADVICE
from bytewright.frontends.tflite.importer import import_content
from bytewright.frontends.tflite.reader import read_model
from bytewright.frontends.tflite.survey import survey
from bytewright.frontends.tflite.table import OPERATORS
from tflite_writer import ModelBuilder


def refusals(content: bytes) -> list[Diagnostic]:
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite")
    return list(caught.value.diagnostics)


def chain(kind: str, count: int) -> bytes:
    """A model with many operators of a kind that is not supported."""
    builder = ModelBuilder()
    tensors = [builder.tensor(f"t{index}", [1, 4], "float32") for index in range(count + 1)]
    for source, result in pairwise(tensors):
        builder.custom_operator(kind, [source], [result])
    return builder.build([tensors[0]], [tensors[-1]])


def test_two_hundred_places_are_ten_and_a_count() -> None:
    (diagnostic,) = refusals(chain("Mystery", 200))
    assert len(diagnostic.notes) == 11
    assert diagnostic.notes[-1] == "and 190 more"
    (diagnostic,) = refusals(chain("Mystery", 10))
    assert len(diagnostic.notes) == 10


def test_places_that_conversion_refuses_are_ten_and_a_count_too() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 4], "float32")
    results = [builder.tensor(f"y{index}", [1, 5], "float32") for index in range(200)]
    for result in results:
        builder.operator("TANH", [x], [result])
    found = refusals(builder.build([x], results))
    assert len(found) == 10
    assert found[-1].notes[-1] == "and 190 more places of this kind"


def test_an_operator_of_vela_without_what_vela_writes_is_damaged() -> None:
    (diagnostic,) = refusals(chain("ethos-u", 1))
    assert diagnostic.code == "BW103"
    assert "OfflineMemoryAllocation" in diagnostic.message


def test_state_of_an_operator_that_is_refused_is_not_the_cause() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 4], "float32") for name in ("x", "y"))
    state = builder.tensor("state", [1, 4], "float32", data=np.zeros((1, 4), np.float32))
    builder.custom_operator("LikeAnLSTM", [x, state], [y])
    model = read_model(builder.build([x], [y]), "m.tflite")
    tensors = tuple(replace(tensor, is_variable=tensor.index == state) for tensor in model.tensors)
    with pytest.raises(CompileError) as caught:
        survey(replace(model, tensors=tensors, num_subgraphs=3), "m.tflite")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["BW104", "BW107"]
    assert caught.value.diagnostics[1].notes == ("it has 3 subgraphs; one is supported",)


def test_integers_from_an_operator_that_is_refused_are_not_the_cause() -> None:
    """SHAPE gives int32, which is no reason to quantise anything."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 4], "float32") for name in ("x", "y"))
    shape = builder.tensor("shape", [2], "int32")
    builder.custom_operator("LikeSHAPE", [x], [shape])
    builder.operator("RESHAPE", [x, shape], [y])
    assert [diagnostic.code for diagnostic in refusals(builder.build([x], [y]))] == ["BW104"]


def test_a_uint8_input_is_told_of_the_converters_option() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 4], "uint8", scale=0.5, zero_point=3) for name in ("x", "y"))
    builder.operator("NEG", [x], [y])
    (diagnostic,) = refusals(builder.build([x], [y]))
    assert diagnostic.code == "BW105"
    assert "inference_input_type and inference_output_type to int8" in (diagnostic.help or "")


def test_strings_are_not_told_of_quantisation() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 4], "float32") for name in ("x", "y"))
    builder.operator("NEG", [x], [y])
    model = read_model(builder.build([x], [y]), "m.tflite")
    tensors = tuple(replace(tensor, element_type="STRING") for tensor in model.tensors)
    with pytest.raises(CompileError) as caught:
        survey(replace(model, tensors=tensors), "m.tflite")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW105"
    assert "without its operators on text" in (diagnostic.help or "")


def test_advice_names_only_operators_that_are_supported() -> None:
    words = {word.strip(",.;") for text in ADVICE.values() for word in text.split()}
    operators = {word for word in words if word.isupper() and len(word) > 2}
    assert operators <= set(OPERATORS)


def test_one_advice_about_several_operators_is_said_once() -> None:
    model = read_model(chain("Mystery", 4), "m.tflite")
    kinds = ("MULTINOMIAL", "RNN", "LSTM", "CUSTOM")
    operators = tuple(
        replace(operator, kind=kind) for operator, kind in zip(model.operators, kinds, strict=True)
    )
    with pytest.raises(CompileError) as caught:
        survey(replace(model, operators=operators), "m.tflite")
    (diagnostic,) = (found for found in caught.value.diagnostics if found.code == "BW104")
    assert diagnostic.help == (
        f"LSTM, RNN: {ADVICE['RNN']}; `bytewright ops` lists the operators that are supported"
    )


@pytest.mark.parametrize(
    "kind", ["FlexMultinomial", "edgetpu-custom-op", "DISPATCH_OP", "NeutronGraph", "XC_conv2d_v2"]
)
def test_customs_of_other_compilers_have_advice(kind: str) -> None:
    (diagnostic,) = refusals(chain(kind, 2))
    (text,) = (text for name, text in CUSTOM_ADVICE.items() if kind.startswith(name))
    assert diagnostic.code == "BW104"
    assert (
        diagnostic.help == f"CUSTOM '{kind}': {text}; `bytewright ops` lists the operators that are supported"
    )


def test_customs_of_one_origin_are_advised_about_once() -> None:
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, [1, 4], "float32") for name in "xyz")
    builder.custom_operator("FlexB", [x], [y])
    builder.custom_operator("FlexA", [y], [z])
    (diagnostic,) = refusals(builder.build([x], [z]))
    assert diagnostic.help is not None
    assert diagnostic.help.startswith(f"CUSTOM 'FlexA', CUSTOM 'FlexB': {CUSTOM_ADVICE['Flex']}; ")
