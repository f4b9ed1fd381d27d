"""IR text as a frontend: constants from files, ports, places, and mistakes with file, line and column."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.registry import import_model
from bytewright.frontends.text import import_text
from bytewright.frontends.text.constants_file import constants_archive, read_constants
from bytewright.ir.data import TensorData
from bytewright.ir.types import DType
from bytewright.ir.verify.stages import Stage
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.ir_text import SMALL, WEIGHTS, write_small

HOST = load_target("host")


def refusals(path: Path, constants: Path | None = None, name: str | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        import_model(path, HOST, Options(name=name, constants=constants))
    return caught.value.diagnostics


def refused_text(folder: Path, text: str) -> tuple[Diagnostic, ...]:
    return refusals(write_small(folder, text))


def test_a_text_has_its_constants_and_the_ports_of_its_entry(tmp_path: Path):
    text = import_text(write_small(tmp_path), HOST)
    assert text.stage is Stage.OPEN
    module = text.module
    assert np.array_equal(module.constant_buffers[0].data.array, WEIGHTS)
    assert [(port.name, str(port.type)) for port in module.inputs] == [("x", "tensor<8xi8>")]
    assert [(port.name, str(port.type)) for port in module.outputs] == [("y", "tensor<8xi32>")]
    assert [str(kernel.where) for kernel in module.kernels] == ["small.bw:7", "small.bw:13", "small.bw:23"]


def test_constants_are_found_beside_the_text_or_where_the_option_says(tmp_path: Path):
    path = write_small(tmp_path)
    (tmp_path / "small.npz").rename(tmp_path / "others.npz")
    (missing,) = refusals(path)
    assert (missing.code, missing.where) == ("BW112", "small.bw:4:46")
    assert missing.message == "no constant with the name 'w' was given"
    assert (
        missing.help
        == "put its arrays into 'small.npz' beside the text, or name a file with --constants FILE.npz"
    )
    assert (
        import_text(path, HOST, constants=tmp_path / "others.npz").module.constant_buffers[0].data.array[0]
        == 3
    )
    (tmp_path / "others.npz").rename(tmp_path / "constants.npz")
    assert import_text(path, HOST).module.constant_buffers[0].data.array[0] == 3


def test_the_error_says_which_file_lacks_the_array(tmp_path: Path):
    path = write_small(tmp_path, SMALL.replace('"w"', '"v"'))
    assert refusals(path)[0].help == f"'{tmp_path / 'small.npz'}' has no such array"


def test_a_mistake_of_the_text_has_its_place(tmp_path: Path):
    (error,) = refused_text(tmp_path, SMALL.replace("x[i]) * 2", "z[i]) * 2"))
    assert (error.code, error.where, error.message) == (
        "BW112",
        "small.bw:9:20",
        "no buffer 'z' is defined here",
    )


def test_all_mistakes_of_the_program_have_their_places(tmp_path: Path):
    text = SMALL.replace("y[k] = work[k]", "y[k] = x[k]").replace(
        "call_extern small_add(&scaled,", "call_extern small_add(&x,"
    )
    errors = refused_text(tmp_path, text)
    assert [error.where for error in errors] == ["small.bw:19:5", "small.bw:34:3"]
    assert {error.code for error in errors} == {"BW113"}
    assert "store to 'y'" in errors[0].message


def test_many_mistakes_are_counted(tmp_path: Path):
    stores = "\n".join(f"    y[0] = {value}:i8" for value in range(30))
    errors = refused_text(tmp_path, SMALL.replace("    y[k] = work[k]", stores))
    assert len(errors) == 20
    assert errors[-1].notes == ("and 10 more mistakes",)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("module small", 'module "a b"', "the module's name 'a b' is not a C identifier, such as 'a_b'"),
        ("module small", "module int", "the module's name 'int' is not a C identifier, such as 'int_'"),
        (
            "module small\n",
            "module small\ninput %x : tensor<8xi8>\n",
            "the module states 0 outputs, its entry has 1",
        ),
        (
            "module small\n",
            "module small\ninput %x : tensor<4xi8>\noutput %y : tensor<8xi32>\n",
            "input 'x' is 4xi8, 'x' of the entry is 8xi8",
        ),
        (
            "module small\n",
            "module small\ninput %x.1 : tensor<8xi8>\noutput %y : tensor<8xi32>\n",
            "the port's name 'x.1' is not a C identifier, such as 'x_1'",
        ),
        ("module small\n", "module small\nstate %s : tensor<8xi8>\n", "has 1 states, and allocates 0"),
        ("entry main(", "entry main() on cpu {}\nentry main(", "function 'main' exists 2 times"),
        ("on cpu {\n  allocate doubled", "on gpu {\n  allocate doubled", "has no device 'gpu'"),
        (
            "allocate work : buffer<8xi32>",
            'allocate work : buffer<8xi32, "global.dtcm">',
            "neither a pool nor a tag",
        ),
    ],
)
def test_a_program_that_cannot_be_compiled_is_refused(tmp_path: Path, before: str, after: str, message: str):
    assert SMALL.count(before) == 1
    with pytest.raises(CompileError) as caught:
        compile_model(write_small(tmp_path, SMALL.replace(before, after)), HOST)
    assert any(message in diagnostic.message for diagnostic in caught.value.diagnostics)
    assert all(diagnostic.code in ("BW113", "BW209") for diagnostic in caught.value.diagnostics)


def test_a_module_with_nothing_to_run_is_refused(tmp_path: Path):
    (error,) = refused_text(tmp_path, "module m")
    assert (
        error.message
        == "the module has neither an entry nor a graph function, so there is nothing to compile"
    )


def test_files_that_are_no_text_are_refused(tmp_path: Path):
    path = tmp_path / "small.bw"
    assert refusals(path)[0].code == "BW101"
    path.write_bytes(b"module m\n\xff\xfe")
    (error,) = refusals(path)
    assert (error.code, error.where) == ("BW112", "small.bw:2")
    path.write_bytes(b"")
    assert refusals(path)[0].code == "BW112"
    path.unlink()
    path.mkdir()
    assert refusals(path)[0].code == "BW101"


def test_the_name_can_be_chosen(tmp_path: Path):
    path = write_small(tmp_path)
    assert import_text(path, HOST, name="other").module.name == "other"
    (error,) = refusals(path, name="a b")
    assert (error.code, error.help) == ("BW204", "--name a_b")


def test_options_that_are_for_models_are_refused(tmp_path: Path):
    path = write_small(tmp_path)
    for options, code in (({"numerics": "tflm"}, "BW204"), ({"batch_max": 2}, "BW111")):
        with pytest.raises(CompileError) as caught:
            bytewright.compile(path, **options)  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code == code
    with pytest.raises(CompileError, match="there is no file"):
        bytewright.compile(path, constants=tmp_path / "none.npz")
    with pytest.raises(CompileError, match="leave out --constants"):
        bytewright.compile("examples/digits/digits.tflite", constants=path)


# Files of constants


def test_what_is_written_is_read_again_and_the_same_every_time():
    constants = {
        f"{dtype.value}/x": TensorData.from_array(np.arange(6).reshape(2, 3) % 2, dtype) for dtype in DType
    }
    constants["scalar"] = TensorData.from_array(np.array(7), DType.I32)
    constants["empty"] = TensorData.from_array(np.zeros((0, 4)), DType.F32)
    archive = constants_archive(constants)
    assert archive == constants_archive(constants)
    read = _read(archive)
    assert dict(read.by_name) == constants
    assert read.by_digest[constants["i16/x"].digest] == constants["i16/x"]


def _read(content: bytes):
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        file.write(content)
        file.flush()
        return read_constants(Path(file.name))


def saved(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_arrays_of_any_order_are_read():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    read = _read(saved(a=np.asfortranarray(array), b=array.astype(">i4"), c=array[::2, ::3]))
    assert np.array_equal(read.by_name["a"].array, array)
    assert np.array_equal(read.by_name["b"].array, array)
    assert np.array_equal(read.by_name["c"].array, array[::2, ::3])


def damaged_header() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        array = io.BytesIO()
        np.lib.format.write_array(array, np.zeros(4, np.int8))
        archive.writestr("a.npy", array.getvalue().replace(b"(4,)", b"(9,)"))
    return stream.getvalue()


def of_one_member(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is damaged"),
        (b"PK\3\4 no archive", "it is damaged"),
        (saved(a=np.zeros(4))[:-30], "it is damaged"),
        (saved(a=np.zeros(4, np.uint16)), "'a' is an array of uint16; constants are of bool, int8"),
        (saved(a=np.zeros(4, np.complex64)), "'a' is an array of complex64"),
        (saved(a=np.array(["x"])), "'a' is an array of <U1"),
        (saved(a=np.array([None])), "'a' is an array of object"),
        (damaged_header(), "'a' states 9 B and has 4 B"),
        (of_one_member(b"hello"), "'a' is no array"),
        (of_one_member(b"\x93NUMPY\1\0\x10\0{'descr': 1}    "), "'a' is no array"),
    ],
)
def test_what_holds_no_constants_is_refused(content: bytes, reason: str):
    with pytest.raises(CompileError) as caught:
        _read(content)
    (error,) = caught.value.diagnostics
    assert error.code == "BW101"
    assert reason in error.message


def test_a_second_entry_is_refused_at_its_own_place(tmp_path: Path):
    text = SMALL.rstrip() + '\n  entry other() on cpu { allocate s : buffer<4xi8> {io="state"} }\n'
    (found,) = refused_text(tmp_path, text)
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "entry other" in line)
    assert (found.code, found.where) == ("BW113", f"small.bw:{line}:9")
    assert "has 0 states, and allocates 1" in found.message
