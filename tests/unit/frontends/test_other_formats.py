"""Models of other formats are recognised by a few bytes, however large they are, and the help is a command."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite import import_tflite

GIGABYTES = 3 << 30
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(64)
ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.1.0" + bytes(64)
MLIR = b"module attributes {tfl.schema_version = 3 : i32} {\n  func.func @main() { return }\n}\n"


def refusal(path: Path) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        import_tflite(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW102"
    assert diagnostic.help is not None
    assert "\n" not in diagnostic.help
    return diagnostic


@pytest.mark.parametrize(
    ("name", "content", "what", "tool"),
    [
        ("m.h5", HDF5, "a Keras model in HDF5", "tf.keras.models.load_model('"),
        ("m.bin", HDF5, "a Keras model in HDF5", "tf.lite.TFLiteConverter.from_keras_model(model)"),
        ("m.onnx", ONNX, "an ONNX model", "onnx2tf -i "),
        ("m.bin", ONNX, "an ONNX model", "onnx2tf -i "),
        ("m.mlir", MLIR, "a program in MLIR", "flatbuffer_translate --mlir-to-tflite-flatbuffer "),
        ("m.mlir", b"// a comment\n" + MLIR, "a program in MLIR", "flatbuffer_translate "),
        ("m.txt", MLIR, "a program in MLIR", "flatbuffer_translate "),
        ("m.mlirbc", b"ML\xefR" + bytes(64), "a program in MLIR", "flatbuffer_translate "),
        ("m.pt", b"\x80\x02\x8a\x0a" + bytes(64), "weights or a script of PyTorch", "ai_edge_torch.convert("),
    ],
)
@pytest.mark.parametrize("is_vast", [False, True])
def test_other_formats_are_recognised(
    tmp_path: Path, name: str, content: bytes, what: str, tool: str, is_vast: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if is_vast:
        with path.open("ab") as stream:
            stream.truncate(GIGABYTES)  # without taking room
    diagnostic = refusal(path)
    assert diagnostic.message.startswith(f"'{name}' is not a TFLite model but {what}")
    assert tool in (diagnostic.help or "")


@pytest.mark.parametrize(
    ("name", "member", "what", "tool"),
    [
        ("m.keras", "model.weights.h5", "a Keras model", "from_keras_model(model)"),
        ("m.zip", "model.weights.h5", "a Keras model", "from_keras_model(model)"),
        ("m.pt2", "m/archive_format", "a program that PyTorch exported", "torch.export.load('"),
        (
            "m.pt2",
            "serialized_exported_program.json",
            "a program that PyTorch exported",
            "ai_edge_torch.convert(",
        ),
        ("m.pt", "m/data.pkl", "weights or a script of PyTorch", "ai_edge_torch.convert("),
    ],
)
def test_formats_within_zip_files_are_recognised(
    tmp_path: Path, name: str, member: str, what: str, tool: str
) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as file:
        file.writestr(member, "content")
    diagnostic = refusal(tmp_path / name)
    assert f"but {what}" in diagnostic.message
    assert tool in (diagnostic.help or "")


def test_a_saved_model_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"\x08\x01")
    diagnostic = refusal(tmp_path / "saved")
    assert diagnostic.message == "'saved' is not a TFLite model but a TensorFlow SavedModel"
    assert "tf.lite.TFLiteConverter.from_saved_model('" in (diagnostic.help or "")
    assert "open('saved.tflite', 'wb')" in (diagnostic.help or "")


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04", b"PK\x03\x04" + bytes(99), b"\x08", b"nothing that is known" * 9]
)
def test_what_is_not_recognised_is_said_as_before(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.tflite").write_bytes(content)
    assert "where b'TFL3' should be" in refusal(tmp_path / "m.tflite").message


def test_a_folder_of_something_else_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="BW101"):
        import_tflite(tmp_path)
