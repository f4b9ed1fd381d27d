"""Recognises files that are models, but not TFLite ones, and says how each is converted today.

Only the first bytes, the suffix and a ZIP file's table are looked at, however large the file is.
"""

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import compile_error

HEAD_BYTES = 16
_KERAS = (
    'python -c "import tensorflow as tf; model = tf.keras.models.load_model({name!r}); '
    "open({result!r}, 'wb').write(tf.lite.TFLiteConverter.from_keras_model(model).convert())\""
)
_SAVED_MODEL = (
    'python -c "import tensorflow as tf; '
    "open({result!r}, 'wb').write(tf.lite.TFLiteConverter.from_saved_model({name!r}).convert())\""
)
_EXPORTED = (
    'python -c "import torch, ai_edge_torch; program = torch.export.load({name!r}); '
    'ai_edge_torch.convert(program.module(), program.example_inputs[0]).export({result!r})"'
)


@dataclass(frozen=True, slots=True)
class _Format:
    """A kind of model.

    Attributes:
        what: What the file is, with its article.
        package: What has the converter.
        command: How it is called; `{name}` and `{result}` are the files.
    """

    what: str
    package: str
    command: str


_H5 = _Format("a Keras model in HDF5", "tensorflow", _KERAS)
_KERAS_ZIP = _Format("a Keras model", "tensorflow", _KERAS)
_FOLDER = _Format("a TensorFlow SavedModel", "tensorflow", _SAVED_MODEL)
_ONNX = _Format("an ONNX model", "onnx2tf", "onnx2tf -i {name} -o {stem}_tflite")
_PT2 = _Format("a program that PyTorch exported", "ai-edge-torch", _EXPORTED)
_PT = _Format(
    "weights or a script of PyTorch, without the program",
    "ai-edge-torch",
    'python -c "import ai_edge_torch; ai_edge_torch.convert(model.eval(), inputs).export({result!r})", '
    "where `model` is the module that it was saved from",
)
_MLIR = _Format(
    "a program in MLIR",
    "TensorFlow's sources",
    "flatbuffer_translate --mlir-to-tflite-flatbuffer {name} -o {result}, which takes the dialect `tfl`",
)
_BY_SUFFIX = {".onnx": _ONNX, ".mlir": _MLIR, ".mlirbc": _MLIR, ".h5": _H5, ".hdf5": _H5, ".pt2": _PT2}


def refuse_other_formats(path: Path, head: bytes) -> None:
    """Nothing, if the file is none of the formats that are known.

    Args:
        path: A file, or a folder.
        head: Its first bytes.

    Raises:
        CompileError: BW102, with the command that converts it.
    """
    found = _recognised(path, head)
    if found is None:
        return
    name = str(path)
    command = found.command.format(name=name, result=f"{path.stem}.tflite", stem=path.stem)
    raise compile_error(
        "BW102",
        f"'{path.name}' is not a TFLite model but {found.what}",
        help=f"convert it (with {found.package}): {command}",
    )


def _recognised(path: Path, head: bytes) -> _Format | None:
    if path.is_dir():
        is_saved = (path / "saved_model.pb").is_file() or (path / "saved_model.pbtxt").is_file()
        return _FOLDER if is_saved else None
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return _H5
    if head.startswith(b"PK\x03\x04"):
        return _of_zip(path)
    if head.startswith(b"ML\xefR") or head.lstrip().startswith((b"module ", b"module{", b"builtin.module")):
        return _MLIR
    if head.startswith(b"\x80\x02") and path.suffix in (".pt", ".pth"):
        return _PT
    # A message of protocol buffers whose first field is a small version number, then a name or the graph.
    if len(head) > 2 and head[0] == 0x08 and 0 < head[1] < 32 and head[2] in (0x12, 0x1A, 0x3A, 0x42):
        return _ONNX
    return _BY_SUFFIX.get(path.suffix.lower())


def _of_zip(path: Path) -> _Format | None:
    names: Sequence[str] = ()
    with (
        suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError),
        zipfile.ZipFile(path) as file,
    ):
        names = file.namelist()
    ends = {name.rpartition("/")[2] for name in names}
    if "model.weights.h5" in ends or path.suffix == ".keras":
        return _KERAS_ZIP
    if {"archive_format", "serialized_exported_program.json"} & ends or path.suffix == ".pt2":
        return _PT2
    return _PT if "data.pkl" in ends else None
