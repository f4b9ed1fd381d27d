"""`bytewright.compile` and what it returns, as far as no C compiler is needed."""

import dataclasses
import json
from pathlib import Path

import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.target import load_target
from support.digits_bundle import DIGITS, digits_document


def test_the_plan_is_typed_and_is_that_of_the_file(tmp_path: Path) -> None:
    model = bytewright.compile(DIGITS, target="mps3-an547", rows="off")
    folder = model.write(tmp_path / "out")
    document = json.loads((folder / "plan.json").read_text())
    assert document == digits_document()
    plan = model.plan
    assert plan.pools["dtcm"].used_bytes == document["pools"][0]["used_bytes"]
    (first,) = (buffer for buffer in document["buffers"] if buffer["name"] == "conv2d_0/out")
    assert plan.buffers["conv2d_0/out"].place.offset == first["place"]["offset"]
    assert plan.stack["cpu"].limit_bytes == 8192 - 1024
    assert [step.kernel for step in plan.steps] == [step["kernel"] for step in document["steps"]]
    assert plan.inputs[0].shape == (1, 8, 8, 1)
    assert plan.hardware == load_target("mps3-an547")


def test_the_files_are_those_that_the_command_writes(tmp_path: Path) -> None:
    model = bytewright.compile(str(DIGITS), name="reader", numerics="tflm", target=load_target("host"))
    folder = model.write(str(tmp_path / "out"))
    written = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert written == dict(model.files)
    assert set(model.plan.files) == set(written) - {"plan.json"}


def test_options_are_those_of_the_command_line() -> None:
    model = bytewright.compile(
        DIGITS,
        target="mps3-an547",
        workspace=["small=1KiB@dtcm", "big@isram"],
        parameters=["weights=100KiB@sram"],
        resize=["small=2KiB"],
        provider=["weights=caller"],
        pins=["conv2d_0/out=big"],
        max_stack_size="4KiB",
        max_stack_alloca_size=0,
        use_backend_alloc_workspace=True,
    )
    assert list(model.plan.pools) == ["small", "big", "weights"]
    assert model.plan.pools["small"].capacity_bytes == 2048
    assert model.plan.pools["weights"].provider == "caller"
    assert model.plan.buffers["conv2d_0/out"].place.name == "big"
    assert model.plan.stack["cpu"].limit_bytes == 3072
    assert model.plan.hardware.default_device.use_backend_alloc_workspace


def test_stages_are_told_in_order() -> None:
    stages: list[str] = []
    bytewright.compile(DIGITS, progress=stages.append)
    assert stages == ["frontends", "place", "lower", "storage", "plan", "codegen", "bundle"]


def test_refusals_are_compile_errors_with_diagnostics(tmp_path: Path) -> None:
    for arguments, code in (
        ({"target": "hots"}, "BW203"),
        ({"resize": ["ram=16"]}, "BW301"),
        ({"name": "not a name"}, "BW204"),
    ):
        with pytest.raises(CompileError) as caught:
            bytewright.compile(DIGITS, **arguments)  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code == code
    with pytest.raises(CompileError) as caught:
        bytewright.compile(tmp_path / "missing.tflite")
    assert caught.value.diagnostics[0].code == "BW101"


@pytest.mark.parametrize(
    "arguments", [{"resize": ["ram"]}, {"numerics": "exact"}, {"max_stack_size": "much"}, {"pins": ["x"]}]
)
def test_malformed_arguments_are_value_errors(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        bytewright.compile(DIGITS, **arguments)  # type: ignore[arg-type]


def test_a_compiled_model_cannot_be_changed(tmp_path: Path) -> None:
    model = bytewright.compile(DIGITS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.plan = model.plan  # type: ignore[misc]
    with pytest.raises(TypeError):
        model.files["plan.json"] = b""  # type: ignore[index]
    (tmp_path / "mine").write_text("x")
    with pytest.raises(CompileError) as caught:
        model.write(tmp_path)
    assert caught.value.diagnostics[0].code == "BW206"
