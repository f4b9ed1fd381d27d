"""Inputs and outputs are called as the file's signature calls them, whatever the converter called their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bytewright import compile as compile_file
from bytewright.cli.main import bytewright
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.registry import import_model
from bytewright.frontends.tflite import import_content
from bytewright.frontends.tflite.vela import content_for
from bytewright.ir.module import Module
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.reference import LiteRt
from tflite_writer import ModelBuilder

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "keras3"


def builder_of(
    names: tuple[str, str, str, str], signature: Mapping[str, Mapping[str, int]] | None, key: str = "serve"
) -> ModelBuilder:
    """Two inputs and two outputs, which are MINIMUM-like halves of their sum, tensors 0 to 3."""
    builder = ModelBuilder()
    first, second, total, active = (builder.tensor(name, (1, 4), "float32") for name in names)
    builder.operator("ADD", [first, second], [total])
    builder.operator("RELU", [total], [active])
    if signature is not None:
        builder.signature(key, signature["inputs"], signature["outputs"])
    return builder


TENSORS = ("serving_default_a:0", "serving_default_b:0", "Stateful:1", "Stateful:0")


def model(names: tuple[str, str, str, str], **signature: Mapping[str, int]) -> bytes:
    return builder_of(names, signature or None).build([0, 1], [3, 2])


def names_of(module: Module) -> tuple[list[str], list[str]]:
    return [port.name for port in module.inputs], [port.name for port in module.outputs]


def test_names_are_the_signature_s_in_the_file_s_order() -> None:
    content = model(TENSORS, inputs={"Gyro": 1, "accel": 0}, outputs={"alpha": 2, "zeta": 3})
    assert names_of(import_content(content, "m.tflite")) == (["accel", "Gyro"], ["zeta", "alpha"])


def test_a_file_without_a_signature_has_the_names_of_its_tensors() -> None:
    found = names_of(import_content(model(TENSORS), "m.tflite"))
    assert found == (["serving_default_a_0", "serving_default_b_0"], ["stateful_0", "stateful_1"])


def test_a_tensor_that_the_signature_does_not_name_keeps_its_own() -> None:
    content = model(TENSORS, inputs={"x": 0}, outputs={"y": 1})
    assert names_of(import_content(content, "m.tflite")) == (
        ["x", "serving_default_b_0"],
        ["stateful_0", "stateful_1"],
    )


def test_one_tensor_under_two_names() -> None:
    builder = builder_of(TENSORS, {"inputs": {"a": 0, "b": 1}, "outputs": {"one": 2, "two": 2}})
    module = import_content(builder.build([0, 1], [2, 2]), "m.tflite")
    assert names_of(module)[1] == ["one", "two"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"x:0": 0, "x_0": 1}, ["x_0", "x_0_1"]),
        ({"int": 0, "int_": 1}, ["int_", "int__1"]),
        ({"?": 0, "!": 1}, ["input_0", "input_1"]),
        ({"x": 0, "X": 1}, ["x", "X"]),
    ],
)
def test_names_that_c_cannot_have(names: dict[str, int], expected: list[str]) -> None:
    module = import_content(model(TENSORS, inputs=names, outputs={}), "m.tflite")
    assert names_of(module)[0] == expected
    stated = list(names)[1] if expected[1].endswith("_1") and expected[1] != "input_1" else None
    assert [port.stated for port in module.inputs] == [None, stated]


def several() -> bytes:
    """Two signatures, each of a subgraph of its own; the second one's has constants as well."""
    first = builder_of(TENSORS, {"inputs": {"a": 0, "b": 1}, "outputs": {"y": 3}}, "sum")
    second = ModelBuilder(subgraph_name="other")
    x, y = second.tensor("x", (1, 3), "float32"), second.tensor("y", (1, 3), "float32")
    factors = second.constant("k", np.array([[1.0, 2.0, 4.0]], np.float32))
    second.operator("MUL", [x, factors], [y])
    second.signature("scale", {"in": x}, {"out": y})
    return first.build([0, 1], [3], second.subgraph([x], [y]))


def refused(content: bytes, signature: str | None) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", signature=signature)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_of_several_signatures_one_is_chosen() -> None:
    content = several()
    assert names_of(import_content(content, "m.tflite", signature="sum")) == (["a", "b"], ["y"])
    module = import_content(content, "m.tflite", signature="scale")
    assert names_of(module) == (["in"], ["out"])
    assert [constant.data.array.tolist() for constant in module.constants] == [[[1.0, 2.0, 4.0]]]


def test_a_signature_that_is_missing_or_unknown_is_refused_with_the_names() -> None:
    missing = refused(several(), None)
    assert (missing.code, missing.help) == ("BW204", "--signature sum")
    assert missing.message == "'m.tflite' has 2 signatures: 'sum', 'scale'; say which of them to compile"
    assert missing.notes == ("--signature '*' compiles all, each as an entry of one model",)
    unknown = refused(several(), "mean")
    assert (unknown.code, unknown.help) == ("BW204", "--signature sum")
    assert unknown.message == "'m.tflite' has no signature 'mean'; it has 'sum', 'scale'"
    none = refused(model(TENSORS), "sum")
    assert (none.code, none.help) == ("BW204", "leave out --signature")


def test_help_that_names_a_signature_works_for_a_run_as_well(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(several())
    refusal = CliRunner().invoke(bytewright, ["run", str(path)])
    assert refusal.exit_code == 1
    assert "help: --signature sum\n" in refusal.stderr
    assert CliRunner().invoke(bytewright, ["run", str(path), "--signature", "sum"]).exit_code == 0


def test_a_text_has_no_signatures(tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    path.write_text("module m\n")
    with pytest.raises(CompileError) as caught:
        import_model(path, load_target("host"), Options(signature=("x",)))
    assert caught.value.diagnostics[0].code == "BW204"


def test_the_command_line_names_what_got_a_number(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(model(("a", "b", "Identity", "Identity")))
    done = CliRunner().invoke(bytewright, ["compile", str(path), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0
    assert "  output 'Identity' is called 'identity_1' in C: another output has its name\n" in done.stdout


def test_python_and_plan_have_the_names_of_users(tmp_path: Path) -> None:
    """alpha and zeta have one shape; which is which is seen in what they hold."""
    path = tmp_path / "m.tflite"
    path.write_bytes(model(TENSORS, inputs={"gyro": 1, "accel": 0}, outputs={"alpha": 2, "zeta": 3}))
    compiled = compile_file(path)
    assert [tensor.name for tensor in compiled.plan.outputs] == ["zeta", "alpha"]
    accel, gyro = np.array([[1, -2, 3, -4]], np.float32), np.ones((1, 4), np.float32)
    zeta, alpha = LiteRt(path).run(accel, gyro)
    assert [tensor.name for tensor in compiled.plan.inputs] == ["accel", "gyro"]
    for found in (compiled.run(accel, gyro), compiled.run(gyro=gyro, accel=accel)):
        np.testing.assert_array_equal(found[0], zeta)
        np.testing.assert_array_equal(found[1], alpha)
    # And so does the command line; a file may have a sign of equality in its name all the same.
    np.save(tmp_path / "a=1.npy", accel)
    np.save(tmp_path / "g.npy", gyro)
    files = {"gyro": tmp_path / "g.npy", "accel": tmp_path / "a=1.npy"}
    named = [part for name, path in files.items() for part in ("--input", f"{name}={path}")]
    wanted = [part for name in ("alpha", "zeta") for part in ("--output", f"{name}={tmp_path / name}.npy")]
    done = CliRunner().invoke(bytewright, ["run", str(compiled.write(tmp_path / "out")), *named, *wanted])
    assert done.exit_code == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "alpha.npy"), alpha)
    np.testing.assert_array_equal(np.load(tmp_path / "zeta.npy"), zeta)


def test_the_case_of_two_inputs_and_outputs() -> None:
    path = CASES / "twoio.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    module = import_content(path.read_bytes(), path.name)
    assert names_of(module) == (["accel", "gyro"], ["zeta", "alpha"])


def test_names_outlast_vela(tmp_path: Path) -> None:
    """What Vela makes of a file has no signature."""
    pytest.importorskip("ethosu.vela")
    path = tmp_path / "m.tflite"
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 4, 4, 8), "int8", scale=0.5) for name in ("t:0", "t:1"))
    builder.operator("MAX_POOL_2D", [x], [y])
    builder.signature("serve", {"camera": x}, {"peaks": y})
    path.write_bytes(builder.build([x], [y]))
    target = load_target("corstone-300-u55")
    _, has_streams, _ = content_for(path, target, wanted=True)
    assert has_streams
    assert names_of(import_model(path, target, Options()).module) == (["camera"], ["peaks"])
