"""Each way in which a model is refused: the code, the place, and that all places come in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.registry import import_model
from bytewright.frontends.tflite import import_content, import_tflite
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from tflite_writer import ModelBuilder

SHAPE = (1, 4, 4, 2)


def refused(content: bytes, numerics: Numerics = Numerics.LITERT_REF) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        import_content(content, "model.tflite", numerics=numerics)
    return caught.value.diagnostics


def only(content: bytes, numerics: Numerics = Numerics.LITERT_REF) -> Diagnostic:
    (diagnostic,) = refused(content, numerics)
    return diagnostic


def integers(builder: ModelBuilder, name: str, values: Any) -> int:
    return builder.constant(name, np.asarray(values, dtype=np.int32))


def unary(
    kind: str = "RELU",
    *,
    source: tuple[str, float | None, int] = ("int8", 0.5, 0),
    target: tuple[str, float | None, int] = ("int8", 0.5, 0),
    **options: Any,
) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, source[0], scale=source[1], zero_point=source[2])
    y = builder.tensor("y", SHAPE, target[0], scale=target[1], zero_point=target[2])
    builder.operator(kind, [x], [y], **options)
    return builder.build([x], [y])


def convolution(**changes: Any) -> bytes:
    """A CONV_2D of 2 to 3 channels with parts of it changed."""
    builder = ModelBuilder()
    weights = changes.get("weights", np.ones((3, 1, 1, 2), dtype=np.int8))
    bias = changes.get("bias", np.zeros(3, dtype=np.int32))
    x = builder.tensor("x", SHAPE, changes.get("source", "int8"), scale=0.5, zero_point=0)
    w = builder.constant(
        "w",
        weights,
        scale=changes.get("scales", 0.25),
        zero_point=changes.get("zero_point", 0),
        quantized_dimension=changes.get("axis", 0),
    )
    b = builder.constant("b", bias, scale=0.125)
    y = builder.tensor("y", (1, 4, 4, 3), changes.get("target", "int8"), scale=changes.get("out", 0.5))
    builder.operator("CONV_2D", [x, w, b], [y], **changes.get("options", {}))
    return builder.build([x], [y])


def test_what_is_advised_where_a_library_lacks_an_operator() -> None:
    for kind, numerics, text in (
        ("EXP", Numerics.TFLM, "compile for --numerics litert-ref, or take the operator out"),
        ("COS", Numerics.TFLM, "take the operator out of the model"),
    ):
        builder = ModelBuilder()
        x, y = (builder.tensor(name, SHAPE, "int8", scale=0.5) for name in ("x", "y"))
        builder.operator(kind, [x], [y])
        content = builder.build([x], [y])
        with pytest.raises(CompileError) as caught:
            import_content(content, "model.tflite", numerics=numerics)
        assert (caught.value.diagnostics[0].help or "").startswith(text)
        if kind == "EXP":
            assert import_content(content, "model.tflite").graph.nodes


def test_reductions_of_raw_values_between_two_quantisations() -> None:
    for kind in ("REDUCE_MAX", "REDUCE_MIN"):
        builder = ModelBuilder()
        x, y = (
            builder.tensor("x", SHAPE, "int8", scale=0.5),
            builder.tensor("y", (1, 4, 4), "int8", scale=0.25),
        )
        builder.operator(kind, [x, integers(builder, "axes", [3])], [y])
        assert "they must be equal" in only(builder.build([x], [y])).message


def test_truth_values_are_no_numbers() -> None:
    builder = ModelBuilder()
    x, t = builder.tensor("x", SHAPE, "float32"), builder.tensor("t", SHAPE, "bool")
    y = builder.tensor("y", SHAPE, "bool")
    builder.operator("GREATER", [x, x], [t])
    builder.operator("LOGICAL_AND", [t, x], [y])
    assert "second operand is FLOAT32" in only(builder.build([x], [y])).message


# Files


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    empty = tmp_path / "empty.tflite"
    empty.write_bytes(b"")
    for path in (tmp_path / "missing.tflite", tmp_path, empty, Path("a\0b"), Path("/dev/zero")):
        with pytest.raises(CompileError) as caught:
            import_tflite(path)
        assert caught.value.diagnostics[0].code == "BW101"


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "weights.h5"
    for content in (b"x", b"\x89HDF\r\n\x1a\n" + bytes(100), b"version https://git-lfs.github.com/spec/v1"):
        path.write_bytes(content)
        with pytest.raises(CompileError) as caught:
            import_tflite(path)
        assert caught.value.diagnostics[0].code == "BW102"
        assert "weights.h5" in caught.value.diagnostics[0].message


def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(unary())
    with pytest.raises(CompileError) as caught:
        import_model(path, load_target("host"), Options(name="my model"))
    assert caught.value.diagnostics[0].code == "BW204"
    assert "my_model" in (caught.value.diagnostics[0].help or "")


# The whole model


def test_unsupported_operators_come_in_one_diagnostic() -> None:
    builder = ModelBuilder()
    tensors = [builder.tensor(f"t{i}", SHAPE, "float32") for i in range(5)]
    builder.operator("RNN", [tensors[0]], [tensors[1]])
    builder.operator("RELU", [tensors[1]], [tensors[2]])
    builder.custom_operator("Mystery", [tensors[2]], [tensors[3]])
    builder.operator("RNN", [tensors[3]], [tensors[4]])
    diagnostic = only(builder.build([tensors[0]], [tensors[4]]))
    assert diagnostic.code == "BW104"
    assert diagnostic.notes == (
        "operator 0 (RNN), tensor 't1'",
        "operator 2 (CUSTOM 'Mystery'), tensor 't3'",
        "operator 3 (RNN), tensor 't4'",
    )


def test_operators_types_hybrids_and_shapes_are_reported_together() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4, 4, 2), "float32", shape_signature=(-1, -1, 4, 2))
    u = builder.tensor("u", (1, 4), "uint8", scale=0.5)
    v = builder.tensor("v", (1, 4), "uint8", scale=0.5)
    w = builder.constant("w", np.ones((3, 1, 1, 2), dtype=np.uint8), scale=0.25)
    b = builder.constant("b", np.zeros(3, dtype=np.float32))
    y, z = builder.tensor("y", (1, 4, 4, 3), "float32"), builder.tensor("z", (1, 4, 4, 3), "float32")
    builder.operator("CONV_2D", [x, w, b], [y])
    builder.operator("RNN", [y], [z])
    builder.operator("NEG", [u], [v])
    diagnostics = refused(builder.build([x, u], [z, v]))
    assert [d.code for d in diagnostics] == ["BW104", "BW108", "BW105", "BW106"]
    assert diagnostics[1].notes == ("operator 0 (CONV_2D), tensor 'y': weights are UINT8",)
    assert diagnostics[2].notes == (
        "tensor 1 ('u') is UINT8, which NEG does not have",
        "tensor 2 ('v') is UINT8, which NEG does not have",
    )
    assert diagnostics[3].notes == ("input tensor 0 ('x') has the shape [-1, -1, 4, 2]",)


def test_errors_of_several_operators_are_reported_together() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "float32")
    ys = [builder.tensor(f"y{i}", SHAPE, "float32") for i in range(4)]
    builder.operator("RESHAPE", [x, integers(builder, "s", [1, 3])], [ys[0]])
    builder.operator("RELU", [ys[0]], [ys[1]])
    builder.operator("TRANSPOSE", [x, integers(builder, "p", [0, 1, 1, 2])], [ys[2]])
    builder.operator("ADD", [ys[1], ys[2]], [ys[3]])
    diagnostics = refused(builder.build([x], [ys[3]]))
    assert [d.code for d in diagnostics] == ["BW107", "BW107"]
    assert [d.where for d in diagnostics] == [
        "model.tflite, operator 0 (RESHAPE), tensor 'y0'",
        "model.tflite, operator 2 (TRANSPOSE), tensor 'y2'",
    ]


def reshaped(dtype: str) -> ModelBuilder:
    """x [4] -> RESHAPE -> y [2, 2]; tensors 0 and 1."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (4,), dtype), builder.tensor("y", (2, 2), dtype)
    builder.operator("RESHAPE", [x, integers(builder, "s", [2, 2])], [y])
    return builder


def test_integer_tensors_at_run_time_are_moved_or_refused_and_constant_ones_are_not() -> None:
    for dtype in ("int32", "int64"):
        assert import_content(reshaped(dtype).build([0], [1]), "model.tflite").graph.nodes
    builder = reshaped("int32")
    z = builder.tensor("z", (2, 2), "int32")
    builder.operator("RELU", [1], [z])
    diagnostic = only(builder.build([0], [z]))
    assert diagnostic.code == "BW105"
    assert diagnostic.notes == (
        "tensor 1 ('y') is INT32, which RELU does not have",
        "tensor 3 ('z') is INT32, which RELU does not have",
    )

    builder = ModelBuilder()
    x, y = builder.tensor("x", (4,), "float32"), builder.tensor("y", (2, 2), "float32")
    joined = builder.tensor("joined", (2,), "int32")
    parts = [integers(builder, f"part_{i}", [2]) for i in range(2)]
    builder.operator("CONCATENATION", parts, [joined], axis=0)
    builder.operator("RESHAPE", [x, joined], [y])
    assert import_content(builder.build([x], [y]), "model.tflite").outputs[0].type.shape == (2, 2)


def test_what_tflm_has_no_kernel_for_on_integers_and_truth_values() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (4,), "int32") for name in "xy")
    builder.operator("ADD", [x, x], [y], activation="RELU6")
    content = builder.build([x], [y])
    assert import_content(content, "model.tflite").graph.nodes
    assert "leaves out the fused activation RELU6 on int32" in only(content, Numerics.TFLM).message
    for dtype, text in (("bool", "does not have it for bool"), ("int32", "does not have it for int32")):
        builder = ModelBuilder()
        condition, y = builder.tensor("c", (4,), "bool"), builder.tensor("y", (4,), dtype)
        choices = [builder.tensor(name, (4,), dtype) for name in "ab"]
        builder.operator("SELECT_V2", [condition, *choices], [y])
        content = builder.build([condition, *choices], [y])
        assert import_content(content, "model.tflite").graph.nodes
        assert text in only(content, Numerics.TFLM).message


def test_tensors_without_elements() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 0, 2), "float32"), builder.tensor("y", (1, 0, 2), "float32")
    builder.operator("RELU", [x], [y])
    assert only(builder.build([x], [y])).code == "BW107"


def test_a_model_without_inputs_or_outputs() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    builder.operator("RELU", [x], [y])
    assert only(builder.build([x], [])).code == "BW107"


# Order and references


def test_tensors_used_before_they_are_computed() -> None:
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, SHAPE, "float32") for name in "xyz")
    builder.operator("ADD", [x, z], [y])
    builder.operator("RELU", [y], [z])
    diagnostic = only(builder.build([x], [z]))
    assert diagnostic.code == "BW103"
    assert "before it is computed" in diagnostic.message


def test_tensors_computed_twice_and_never() -> None:
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, SHAPE, "float32") for name in "xyz")
    builder.operator("RELU", [x], [y])
    builder.operator("RELU6", [x], [y])
    assert "has a value already" in only(builder.build([x], [y])).message
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, SHAPE, "float32") for name in "xyz")
    builder.operator("RELU", [x], [y])
    assert "never computed" in only(builder.build([x], [z])).message
    assert only(builder.build([x, x], [y])).code == "BW103"


def test_indices_outside_the_file() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    builder.operator("RELU", [x], [y])
    for inputs, outputs in (([x], [99]), ([-1], [y]), ([x], [-1])):
        assert only(builder.build(inputs, outputs)).code == "BW103"


def test_a_declared_shape_that_is_not_the_computed_one() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", (1, 4, 4, 3), "float32")
    builder.operator("RELU", [x], [y])
    diagnostic = only(builder.build([x], [y]))
    assert diagnostic.code == "BW103"
    assert "[1x4x4x3]" in diagnostic.message


# Quantisation


@pytest.mark.parametrize(
    ("scale", "zero_point", "text"),
    [
        (0.0, 0, "not positive"),
        (-0.5, 0, "not positive"),
        (float("nan"), 0, "not positive"),
        (float("inf"), 0, "not positive"),
        (0.5, 128, "no int8 value"),
        (None, 0, "0 scales"),
    ],
)
def test_quantisation_of_activations(scale: float | None, zero_point: int, text: str) -> None:
    diagnostic = only(unary(target=("int8", scale, zero_point)))
    assert diagnostic.code == "BW107"
    assert text in diagnostic.message


def test_an_activation_quantised_per_channel() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "int8", scale=[0.5, 0.25], quantized_dimension=3)
    y = builder.tensor("y", SHAPE, "int8", scale=0.5)
    builder.operator("RELU", [x], [y])
    assert "2 scales" in only(builder.build([x], [y])).message


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"scales": [0.25, 0.25]}, "3 channels have 2 scales"),
        ({"scales": [0.25] * 3, "axis": 3}, "axis 3, not 0"),
        ({"scales": [0.25, 0.0, 0.25]}, "not positive"),
        ({"zero_point": 1}, "zero point that is not 0"),
        ({"bias": np.zeros(2, dtype=np.int32)}, "2 biases for 3 channels"),
        ({"bias": np.zeros(3, dtype=np.float32)}, "the bias is FLOAT32"),
        ({"weights": np.ones((3, 1, 1, 2), dtype=np.float32)}, "the weights are FLOAT32"),
        ({"weights": np.ones((3, 1, 1, 1), dtype=np.int8)}, "do not fit weights of 1"),
        ({"weights": np.ones((3, 2), dtype=np.int8)}, "4 axes"),
        ({"options": {"stride_h": 0}}, "stride (0, 1)"),
        ({"options": {"dilation_w_factor": -1}}, "dilation (1, -1)"),
        ({"options": {"activation": "TANH"}}, "TANH"),
        ({"weights": np.ones((3, 5, 1, 2), dtype=np.int8), "options": {"padding": "VALID"}}, "does not fit"),
        ({"target": "float32"}, "different types"),
    ],
)
def test_convolutions(changes: dict[str, Any], text: str) -> None:
    diagnostic = only(convolution(**changes))
    assert diagnostic.code == "BW107"
    assert text in diagnostic.message
    assert diagnostic.where is not None
    assert diagnostic.where.startswith("model.tflite, operator 0 (CONV_2D), tensor '")


def test_accumulators_that_could_overflow() -> None:
    huge = np.array([0, 2**31 - 100, 0], dtype=np.int32)
    diagnostic = only(convolution(bias=huge))
    assert diagnostic.code == "BW110"
    assert "channel 1" in diagnostic.message
    # Nearly the same bias is provably fine where weights are zero.
    weights = np.ones((3, 1, 1, 2), dtype=np.int8)
    weights[1] = 0
    bias = np.array([0, 2**31 - 1000, 0], dtype=np.int32)
    assert import_content(convolution(bias=bias, weights=weights), "model.tflite").graph.nodes


def test_left_shifts_that_could_overflow() -> None:
    assert only(convolution(bias=np.full(3, 2**29, dtype=np.int32), out=0.01)).code == "BW110"
    for kind, dtype in (("ADD", "int8"), ("MUL", "int16")):
        builder = ModelBuilder()
        x = builder.tensor("x", SHAPE, dtype, scale=1e5)
        y = builder.tensor("y", SHAPE, dtype, scale=1e-5)
        builder.operator(kind, [x, x], [y])
        assert only(builder.build([x], [y])).message.startswith(f"{kind}: the output's scale is too small")


def test_a_bias_scale_that_litert_refuses() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4), "int8", scale=0.25)
    w = builder.constant("w", np.ones((3, 4), dtype=np.int8), scale=0.125)
    b = builder.constant("b", np.zeros(3, dtype=np.int32), scale=0.3)
    y = builder.tensor("y", (1, 3), "int8", scale=1.0)
    builder.operator("FULLY_CONNECTED", [x, w, b], [y])
    content = builder.build([x], [y])
    assert "the bias has scale" in only(content).message
    assert import_content(content, "model.tflite", numerics=Numerics.TFLM).graph.nodes


# Operators


@pytest.mark.parametrize(
    ("kind", "target", "options", "numerics", "text"),
    [
        ("LOGISTIC", ("int8", 0.5, 0), {}, Numerics.LITERT_REF, "1/256"),
        ("SOFTMAX", ("int8", 0.5, 0), {}, Numerics.LITERT_REF, "1/256"),
        ("SOFTMAX", ("int8", 1 / 255.9, -128), {}, Numerics.TFLM, "1/256"),
        ("SOFTMAX", ("int8", 1 / 256, -128), {"beta": -1.0}, Numerics.LITERT_REF, "not positive"),
        ("SOFTMAX", ("int8", 1 / 256, -128), {"beta": 1e-9}, Numerics.LITERT_REF, "flat softmax"),
        ("HARD_SWISH", ("int8", 0.0001, 0), {}, Numerics.LITERT_REF, "128 times"),
        ("PACK", ("int8", 0.25, 0), {}, Numerics.LITERT_REF, "quantised in another way"),
        ("UNPACK", ("int8", 0.5, 1), {}, Numerics.TFLM, "quantised in another way"),
        ("PACK", ("float32", None, 0), {}, Numerics.LITERT_REF, "different types"),
        ("RELU_N1_TO_1", ("int8", 0.5, 0), {}, Numerics.TFLM, "does not have it,"),
        ("EXP", ("int8", 0.5, 0), {}, Numerics.TFLM, "TensorFlow Lite Micro does not have it for int8"),
        ("GELU", ("int8", 0.5, 0), {}, Numerics.TFLM, "TensorFlow Lite Micro does not have it,"),
        ("COS", ("int8", 0.5, 0), {}, Numerics.LITERT_REF, "LiteRT does not have it for int8"),
        ("LOG_SOFTMAX", ("int8", 0.5, 0), {}, Numerics.LITERT_REF, "1/16"),
        ("DEQUANTIZE", ("int8", 0.5, 0), {}, Numerics.LITERT_REF, "not FLOAT32"),
        ("RELU", ("float32", None, 0), {}, Numerics.LITERT_REF, "different types"),
    ],
)
def test_unary_operators(
    kind: str, target: tuple[str, float | None, int], options: dict[str, Any], numerics: Numerics, text: str
) -> None:
    diagnostic = only(unary(kind, target=target, **options), numerics)
    assert diagnostic.code == "BW107"
    assert text in diagnostic.message


def test_pools_between_two_scales_are_for_litert_alone() -> None:
    content = unary("MAX_POOL_2D", target=("int8", 0.25, 0), filter_width=1, filter_height=1)
    assert import_content(content, "model.tflite").graph.nodes
    assert "must be equal" in only(content, Numerics.TFLM).message


def test_casts_of_other_types_are_refused_by_name() -> None:
    diagnostic = only(unary("CAST", source=("float64", None, 0), target=("float32", None, 0)))
    assert diagnostic.code == "BW105"
    diagnostic = only(unary("CAST", source=("uint8", 0.5, 0), target=("float32", None, 0)), Numerics.TFLM)
    assert "TensorFlow Lite Micro does not have it for uint8" in diagnostic.message


def test_what_is_read_as_a_variable_must_be_one() -> None:
    diagnostic = only(unary("READ_VARIABLE"))
    assert diagnostic.code == "BW107"
    assert "is no variable of the model's own" in diagnostic.message


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            unary("ADD_N", source=("float32", None, 0), target=("float32", None, 0)),
            "1 operands, 2 are needed",
        ),
        (unary("L2_NORMALIZATION"), "an int8 result has scale 1/128 and zero point 0, of uint8 128"),
        (
            unary(
                "L2_NORMALIZATION",
                source=("float32", None, 0),
                target=("float32", None, 0),
                activation="RELU",
            ),
            "the fused activation RELU is not supported",
        ),
    ],
)
def test_sums_and_norms(content: bytes, text: str) -> None:
    diagnostic = only(content)
    assert diagnostic.code == "BW107"
    assert text in diagnostic.message


def test_operands_that_must_be_constant() -> None:
    builder = ModelBuilder()
    x, w = builder.tensor("x", (1, 2, 2, 4), "float32"), builder.tensor("w", (3, 1, 1, 4), "float32")
    y = builder.tensor("y", (1, 2, 2, 3), "float32")
    builder.operator("CONV_2D", [x, w], [y])
    diagnostic = only(builder.build([x, w], [y]))
    assert diagnostic.code == "BW107"
    assert "the weights must be constant" in diagnostic.message
    assert diagnostic.where == "model.tflite, operator 0 (CONV_2D), tensor 'w'"


def layer_of_computed_weights(biases: int, dtype: str = "int32", depth: int = 4) -> bytes:
    builder = ModelBuilder()
    affine = {"scale": 0.25, "zero_point": -128}
    x, w = (
        builder.tensor("x", (1, depth), "int8", **affine),
        builder.tensor("w", (3, depth), "int8", **affine),
    )
    b, y = builder.constant("b", np.zeros(biases, dtype)), builder.tensor("y", (1, 3), "int8", **affine)
    builder.operator("FULLY_CONNECTED", [x, w, b], [y])
    return builder.build([x, w], [y])


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (layer_of_computed_weights(3, "float32"), "BW107", "the bias is FLOAT32"),
        (layer_of_computed_weights(4), "BW107", "biases [4] for 3 channels"),
        (layer_of_computed_weights(3, depth=40000), "BW110", "the sum of 40000 products can reach"),
    ],
)
def test_layers_of_computed_weights(content: bytes, code: str, text: str) -> None:
    diagnostic = only(content)
    assert diagnostic.code == code
    assert text in diagnostic.message


@pytest.mark.parametrize(
    ("kind", "operands", "options", "text"),
    [
        ("RESHAPE", [[3, 11]], {}, "cannot take the shape"),
        ("RESHAPE", [[-1, -1]], {}, "not valid"),
        ("SQUEEZE", [], {"squeeze_dims": [1]}, "extent 1"),
        ("SQUEEZE", [], {"squeeze_dims": [4]}, "rank 4"),
        ("EXPAND_DIMS", [[7]], {}, "axis 7"),
        ("CONCATENATION", [], {"axis": 4}, "axis 4"),
        ("CONCATENATION", [], {"axis": 0, "activation": "RELU"}, "RELU"),
        ("SLICE", [[0, 0, 0, 0], [1, 5, 4, 2]], {}, "leave the extent"),
        ("SLICE", [[0, 0, 0], [1, 4, 4]], {}, "rank 4"),
        ("SLICE", [[0, 5, 0, 0], [1, -1, 4, 2]], {}, "negative extent"),
        ("SLICE", [[0, 5, 0, 0], [1, 0, 4, 2]], {}, "leave the extent"),
        ("STRIDED_SLICE", [[0], [1], [0]], {}, "stride is 0"),
        ("STRIDED_SLICE", [[0, 0], [1], [1]], {}, "differ in length"),
        ("STRIDED_SLICE", [[0, 0], [0, 0], [1, 1]], {"ellipsis_mask": 3}, "more than one ellipsis"),
        ("STRIDED_SLICE", [[0] * 5, [1, 0, 4, 4, 2], [1] * 5], {"ellipsis_mask": 2}, "stands for no axis"),
        ("STRIDED_SLICE", [[5], [6], [1]], {"shrink_axis_mask": 1}, "element 5"),
        ("TRANSPOSE", [[0, 1, 2]], {}, "no permutation"),
        ("MEAN", [[4]], {}, "axes [4]"),
        ("PAD", [[[0, 0], [0, -1], [0, 0], [0, 0]]], {}, "negative"),
        ("PAD", [[0, 0, 0, 0, 0, 0, 0, 0]], {}, "paddings of shape"),
        ("AVERAGE_POOL_2D", [], {"filter_width": 0}, "no element"),
        ("MAX_POOL_2D", [], {"filter_width": 9}, "does not fit"),
        ("ADD", [], {}, "operands where"),
        ("PACK", [], {"values_count": 0}, "1 operands where 0"),
        ("PACK", [], {"values_count": 2}, "1 operands where 2"),
        ("PACK", [], {"values_count": 1, "axis": 5}, "axis 5 of a tensor of rank 5"),
        ("UNPACK", [], {"num": 1, "axis": -5}, "axis -5"),
        ("UNPACK", [], {"num": 1, "axis": 1}, "an extent of 4 is not 1 results"),
        ("UNPACK", [], {"num": 4, "axis": 1}, "1 results where 4"),
        ("SPLIT_V", [[4, 1], [1]], {"num_splits": 1}, "2 sizes for 1 results"),
        ("SPLIT_V", [[5], [1]], {"num_splits": 1}, "parts of [5] do not fill an extent of 4"),
        ("SPLIT_V", [[-2], [1]], {"num_splits": 1}, "not valid"),
        ("SPLIT_V", [[4], [4]], {"num_splits": 1}, "axis 4"),
        ("TILE", [[1, 2, 3]], {}, "multiples [1, 2, 3] for a tensor of rank 4"),
        ("TILE", [[1, 1, 1, 0]], {}, "has no elements"),
        ("BROADCAST_TO", [[4, 4, 2]], {}, "does not broadcast"),
        ("BROADCAST_TO", [[1, 4, 5, 2]], {}, "does not broadcast to [1, 4, 5, 2]"),
        ("GATHER", [[4]], {"axis": 1}, "element [4] of an axis of extent 4"),
        ("GATHER", [[-1]], {"axis": 1}, "element [-1]"),
        ("GATHER", [[0]], {"axis": 4}, "axis 4"),
        ("GATHER", [[0]], {"axis": 0, "batch_dims": 1}, "1 batch axes for axis 0"),
        ("GATHER", [[]], {"axis": 1}, "no element"),
        ("REVERSE_V2", [[4]], {}, "axes [4]"),
        ("DEPTH_TO_SPACE", [], {"block_size": 2}, "2 channels are no blocks of 2 by 2"),
        ("DEPTH_TO_SPACE", [], {"block_size": 0}, "blocks of 0"),
        ("SPACE_TO_DEPTH", [], {"block_size": 3}, "4 by 4 pixels are no blocks of 3 by 3"),
        ("BATCH_TO_SPACE_ND", [[2, 2], [[0, 0], [0, 0]]], {}, "1 samples are no blocks of [2, 2]"),
        ("BATCH_TO_SPACE_ND", [[1, 1], [[4, 0], [0, 0]]], {}, "nothing is left of [4, 4]"),
        ("MIRROR_PAD", [[[0, 0], [4, 0], [0, 0], [0, 0]]], {}, "at most 3 are mirrored"),
        ("MIRROR_PAD", [[[0, 0], [0, -1], [0, 0], [0, 0]]], {}, "paddings 0 and -1"),
        ("MIRROR_PAD", [[[0, 0], [5, 0], [0, 0], [0, 0]]], {"mode": "SYMMETRIC"}, "at most 4 are mirrored"),
    ],
)
def test_parameters_that_cannot_be(
    kind: str, operands: list[Any], options: dict[str, Any], text: str
) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    constants = [integers(builder, f"c{i}", values) for i, values in enumerate(operands)]
    builder.operator(kind, [x, *constants], [y], **options)
    diagnostic = only(builder.build([x], [y]))
    assert diagnostic.code == "BW107"
    assert text in diagnostic.message


def gathered(dtype: str) -> bytes:
    builder = ModelBuilder()
    x, numbers = builder.tensor("x", (4, 2), "float32"), builder.tensor("numbers", (3,), dtype)
    y = builder.tensor("y", (3, 2), "float32")
    builder.operator("GATHER", [x, numbers], [y])
    return builder.build([x, numbers], [y])


def test_elements_are_counted_in_integers() -> None:
    assert only(gathered("float32")).code == "BW107"
    assert import_content(gathered("int64"), "model.tflite").graph.nodes
    diagnostic = only(gathered("int64"), Numerics.TFLM)
    assert "does not have it for indices of INT64" in diagnostic.message


def test_long_axes_are_not_mirrored() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1 << 28,), "int8", scale=0.5) for name in "xy")
    builder.operator("MIRROR_PAD", [x, integers(builder, "paddings", [[1, 0]])], [y])
    assert "an axis of 268435456 elements is mirrored, at most 65536" in only(builder.build([x], [y])).message


def test_micro_has_no_tile() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 2), "int8", scale=0.5), builder.tensor("y", (2, 2), "int8", scale=0.5)
    builder.operator("TILE", [x, integers(builder, "multiples", [2, 1])], [y])
    content = builder.build([x], [y])
    assert import_content(content, "model.tflite").graph.nodes
    diagnostic = only(content, Numerics.TFLM)
    assert "does not have it, so" in diagnostic.message
    assert (diagnostic.help or "").startswith("compile for --numerics litert-ref, or take")


def test_what_is_packed_has_one_shape() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (2, 3), "float32"), builder.tensor("y", (3, 2), "float32")
    z = builder.tensor("z", (2, 2, 3), "float32")
    builder.operator("PACK", [x, y], [z], values_count=2)
    assert "operands of shapes [2, 3] and [3, 2]" in only(builder.build([x, y], [z])).message


def test_shapes_that_do_not_broadcast() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (2, 3), "float32"), builder.tensor("y", (2, 4), "float32")
    z = builder.tensor("z", (2, 3), "float32")
    builder.operator("ADD", [x, y], [z])
    assert "do not broadcast" in only(builder.build([x, y], [z])).message


def test_concatenation_of_two_quantisations() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 2), "int8", scale=scale) for name, scale in (("x", 0.5), ("y", 0.25)))
    z = builder.tensor("z", (1, 4), "int8", scale=0.5)
    builder.operator("CONCATENATION", [x, y], [z], axis=1)
    assert "quantised in another way" in only(builder.build([x, y], [z])).message


# Variables


def variable(kind: str) -> bytes:
    """A variable that the model adds to; what runs once assigns it the result of an operator of a constant."""
    builder, once, arm = ModelBuilder(), ModelBuilder(), ModelBuilder()
    builder.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    x, before, after = (builder.tensor(name, (2,), "float32") for name in ("x", "before", "after"))
    resource, own = (each.tensor("resource", (), "resource") for each in (builder, once))
    for each, handle in ((builder, resource), (once, own)):
        each.operator("VAR_HANDLE", [], [handle], shared_name="v")
    builder.operator("READ_VARIABLE", [resource], [before])
    builder.operator("ADD", [x, before], [after])
    builder.operator("ASSIGN_VARIABLE", [resource, after], [])
    start = once.constant("start", np.ones(2, np.float32))
    first = once.tensor("first", (2,), "float32")
    if kind == "IF":
        yes = once.constant("yes", TRUE)
        once.operator(kind, [yes, start], [first], then_subgraph_index=2, else_subgraph_index=2)
    else:
        once.operator(kind, [start], [first])
    once.operator("ASSIGN_VARIABLE", [own, first], [])
    taken, given = (arm.tensor(name, (2,), "float32") for name in ("taken", "given"))
    arm.operator("RELU", [taken], [given])
    return builder.build([x], [after], once.subgraph([], []), arm.subgraph([taken], [given]))


TRUE = np.array([True])


def test_what_runs_once_is_checked_as_the_model_is() -> None:
    assert import_content(variable("EXP"), "model.tflite").state[0].initial is not None
    unknown = only(variable("RNN"))
    assert (unknown.code, unknown.where) == ("BW104", "model.tflite, what runs once")


def test_what_a_branch_computes_once_is_computed_at_import() -> None:
    (state,) = import_content(variable("IF"), "model.tflite").state
    assert state.initial is not None
    np.testing.assert_array_equal(state.initial.array, np.ones(2, np.float32))


def test_a_branch_that_leaves_a_variable_without_a_value() -> None:
    """Of what runs once, the arm that is taken assigns nothing."""
    once, arms = ModelBuilder(), [ModelBuilder(), ModelBuilder()]
    builder = ModelBuilder()
    builder.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    resource, y = builder.tensor("resource", (), "resource"), builder.tensor("y", (2,), "float32")
    builder.operator("VAR_HANDLE", [], [resource], shared_name="v")
    builder.operator("READ_VARIABLE", [resource], [y])
    builder.operator("ASSIGN_VARIABLE", [resource, y], [])
    own, unused = once.tensor("own", (), "resource"), once.tensor("unused", (2,), "float32")
    once.operator("VAR_HANDLE", [], [own], shared_name="v")
    operands = [once.constant("no", ~TRUE), own]
    once.operator("IF", operands, [unused], then_subgraph_index=2, else_subgraph_index=3)
    parts = []
    for number, arm in enumerate(arms):
        handle, value = arm.tensor("handle", (), "resource"), arm.constant("two", np.full(2, 2, np.float32))
        if number == 0:
            arm.operator("ASSIGN_VARIABLE", [handle, value], [])
        parts.append(arm.subgraph([handle], [value]))
    content = builder.build([], [y], once.subgraph([], []), *parts)
    found = only(content)
    assert (found.code, found.message) == (
        "BW107",
        "what runs once leaves in variable 'v' is what it was before, in a branch that does not assign it",
    )


def in_branch(kind: str) -> bytes:
    """An IF that is given the handle of a variable; what its arms do with it is of a kind that is refused."""
    builder, arm = ModelBuilder(), ModelBuilder()
    holds = builder.tensor("holds", (), "bool")
    resource, y = builder.tensor("resource", (), "resource"), builder.tensor("y", (2,), "float32")
    builder.operator("VAR_HANDLE", [], [resource], shared_name="v")
    handle, value = arm.tensor("handle", (), "resource"), arm.tensor("value", (2,), "float32")
    results, given = [y], [value]
    if kind == "handle":
        results, given = [builder.tensor("other", (), "resource")], [handle]
    if kind == "once":
        arm.operator("CALL_ONCE", [], [], init_subgraph_index=2)
    if kind != "unassigned":
        builder.operator("ASSIGN_VARIABLE", [resource, builder.constant("start", np.ones(2, np.float32))], [])
    arm.operator("READ_VARIABLE", [handle], [value])
    builder.operator("IF", [holds, resource], results, then_subgraph_index=1, else_subgraph_index=1)
    if kind == "handle":
        builder.operator("READ_VARIABLE", results, [y])
    return builder.build([holds], [y], arm.subgraph([handle], given), ModelBuilder().subgraph([], []))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("unassigned", "the model reads variables that nothing assigns"),
        ("once", "CALL_ONCE: what runs once is run by a loop or branch, and not before all else"),
        ("handle", "IF: a result is the handle of a variable"),
    ],
)
def test_a_variable_that_a_branch_reads(kind: str, message: str) -> None:
    found = only(in_branch(kind))
    assert (found.code, found.message) == ("BW107", message)
    if kind == "unassigned":
        assert found.notes == ("variable 'v', operator 0 (READ_VARIABLE)",)


def in_loop(kind: str) -> bytes:
    """A WHILE whose condition assigns a variable of another shape, or whose body hands on another variable."""
    builder, test, body = (ModelBuilder() for _ in range(3))
    resource, x = builder.tensor("resource", (), "resource"), builder.tensor("x", (2,), "float32")
    results = [builder.tensor("kept", (), "resource"), builder.tensor("y", (2,), "float32")]
    builder.operator("VAR_HANDLE", [], [resource], shared_name="v")
    builder.operator("ASSIGN_VARIABLE", [resource, x], [])
    builder.operator("WHILE", [resource, x], results, cond_subgraph_index=1, body_subgraph_index=2)
    handles, values = zip(
        *(
            (part.tensor("handle", (), "resource"), part.tensor("value", (2,), "float32"))
            for part in (test, body)
        ),
        strict=True,
    )
    false = test.constant("false", np.array(False))
    if kind == "shape":
        test.operator("ASSIGN_VARIABLE", [handles[0], test.constant("ones", np.ones(3, np.float32))], [])
    given = [handles[1], values[1]]
    if kind == "other":
        given[0] = body.tensor("other", (), "resource")
        body.operator("VAR_HANDLE", [], [given[0]], shared_name="w")
    parts = (test.subgraph([handles[0], values[0]], [false]), body.subgraph([handles[1], values[1]], given))
    return builder.build([x], results[1:], *parts)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("shape", "WHILE: variable 'v' is tensor<2xf32>, and tensor<3xf32> is assigned"),
        ("other", "WHILE: operand 0 is the handle of a variable, and of another after a turn of the body"),
    ],
)
def test_a_variable_that_a_loop_is_given(kind: str, message: str) -> None:
    found = only(in_loop(kind))
    assert (found.code, found.message) == ("BW107", message)


@pytest.mark.parametrize("is_input", [True, False])
def test_the_handle_of_a_variable_is_no_input_or_output_of_a_model(is_input: bool) -> None:
    builder = ModelBuilder()
    resource, y = builder.tensor("resource", (), "resource"), builder.tensor("y", (2,), "float32")
    if not is_input:
        builder.operator("VAR_HANDLE", [], [resource], shared_name="v")
    one = builder.constant("one", np.ones(2, np.float32))
    builder.operator("ASSIGN_VARIABLE", [resource, one], [])
    builder.operator("READ_VARIABLE", [resource], [y])
    found = only(builder.build([resource] if is_input else [], [y] if is_input else [y, resource]))
    assert (found.code, found.message) == ("BW105", "tensors have types that are not supported")
