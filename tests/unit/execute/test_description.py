import json
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from support.tiny_bundle import write_tiny_bundle

TENSOR = {
    "name": "a",
    "c_name": "a",
    "buffer": "a",
    "dtype": "i8",
    "shape": [4],
    "extents": [4],
    "size_bytes": 4,
    "scale": None,
    "zero_point": None,
}


def refusal(directory: Path) -> str:
    with pytest.raises(CompileError) as caught:
        read_bundle(directory)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW207"
    return diagnostic.message


def edit_plan(directory: Path, **changes: object) -> Path:
    path = directory / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return directory


def test_a_bundle_is_understood(tmp_path: Path) -> None:
    bundle = read_bundle(write_tiny_bundle(tmp_path))
    assert bundle.plan.model == "tiny"
    assert bundle.plan.target == "mps3-an547"
    assert [(tensor.c_name, tensor.dtype.numpy, tensor.shape) for tensor in bundle.plan.inputs] == [
        ("left", np.int8, (1, 16))
    ]
    assert [source.name for source in bundle.sources] == ["tiny.c", "tiny_kernels.c", "tiny_parameters.c"]
    # The C has nothing of the other, which is empty.
    assert [(pool.name, pool.used_bytes) for pool in bundle.plan.caller_workspaces] == [("dtcm", 16)]
    assert bundle.plan.caller_parameters == ()
    assert bundle.plan.workspace_bytes == 16
    assert bundle.plan.own_workspaces == ()


def test_error_codes_are_named_as_in_the_header(tmp_path: Path) -> None:
    bundle = read_bundle(write_tiny_bundle(tmp_path))
    assert bundle.status_name(-7) == "TINY_ERROR_NOT_SET (-7)"
    assert bundle.status_name(-99) == "-99"


def test_error_codes_may_be_enumerators(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path)
    header = tmp_path / "include" / "tiny.h"
    header.write_text(
        header.read_text().replace("#define TINY_ERROR_SIZE (-2)", "enum { TINY_ERROR_SIZE = -12 };")
    )
    assert read_bundle(tmp_path).status_name(-12) == "TINY_ERROR_SIZE (-12)"


def test_a_folder_without_a_plan_is_refused(tmp_path: Path) -> None:
    assert "it has no plan.json" in refusal(tmp_path)
    assert "it has no plan.json" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[]", "nonsense", '{"schema": 0}', "[" * 100_000, "\x00"])
def test_a_damaged_plan_is_refused(tmp_path: Path, text: str) -> None:
    write_tiny_bundle(tmp_path)
    (tmp_path / "plan.json").write_text(text)
    assert "plan.json" in refusal(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "../tiny"},
        {"inputs": None},
        {"outputs": [{"name": "sum"}]},
        {"inputs": [{**TENSOR, "dtype": "i7"}]},
        {"inputs": [{**TENSOR, "size_bytes": 5}]},
        {"inputs": [{**TENSOR, "extents": [5]}]},
        {"inputs": [{**TENSOR, "extents": ["n"]}]},
        {"files": {"../tiny.c": "0"}},
        {"pools": [{"name": "dtcm", "memory": "dtcm", "role": "laundry", "provider": "caller"}]},
    ],
)
def test_a_plan_with_a_wrong_entry_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    assert "plan.json cannot be understood" in refusal(edit_plan(write_tiny_bundle(tmp_path), **changes))


def test_a_missing_header_is_named(tmp_path: Path) -> None:
    assert "include/tiny.h is missing" in refusal(write_tiny_bundle(tmp_path, left_out=["include/tiny.h"]))


def test_missing_sources_are_refused(tmp_path: Path) -> None:
    names = ["src/tiny.c", "src/tiny_kernels.c", "src/tiny_parameters.c"]
    assert "plan.json lists no C files" in refusal(write_tiny_bundle(tmp_path, left_out=names))


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, blob=True)
    (tmp_path / "parameters" / "flash.bin").unlink()
    assert "parameters/flash.bin is missing" in refusal(tmp_path)
