"""plan.json both ways: nothing is lost, and whatever is missing or of a wrong type is named (BW207)."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.ir.types import DType
from bytewright.options import Options
from bytewright.record.buffers import BufferRole
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of, hash_document, plan_of, read_plan
from bytewright.target import Overrides, load_target
from bytewright.target.options import ResizeOption
from support.arena_cases import CASES
from support.arena_cases import compiled as with_arenas
from support.digits_bundle import DIGITS, digits_document

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src" / "bytewright"
Keys = tuple[str | int, ...]
# Members with a default, which older bundles do not have.
OPTIONAL = {
    "load",
    "load_memory",
    "read_cost",
    "write_cost",
    "externals",
    "files_hash",
    "model_files",
    "options",
}
OPTIONAL |= {"is_packed", "num_packed_arguments", "has_packed_entry"}
OPTIONAL |= {"overlaps", "runs_down"}
OPTIONAL |= {"num_rows", "scalars", "arguments", "starts"}
OPTIONAL |= {"template", "remarks", "work"}
OPTIONAL |= {"tensor", "shape", "dtype", "scale", "zero_point"}
OPTIONAL |= {"segments", "plain_workspace_bytes", "rows", "ring"}
OF_LOOPS = {"variable", "begin", "end"}
# What has keys of its own: a description of a target, and mappings by name.
OPEN = {"target_description", "stack", "files", "alive", "model_files"}


def members(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """Every member of every object that the schema knows, of lists that of the first and of the last item."""
    if isinstance(value, dict):
        for key, item in value.items():
            if path[-1:] == () or path[-1] not in OPEN:
                yield (*path, key)
            if key != "target_description":
                yield from members(item, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index in sorted({0, len(value) - 1}):
            yield from members(value[index], (*path, index))


DOCUMENT = digits_document(caller_parameters=True)
MEMBERS = tuple(dict.fromkeys(members(DOCUMENT)))


def changed(path: Keys, value: object = None, *, gone: bool = False) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    owner: Any = document
    for key in path[:-1]:
        owner = owner[key]
    if gone:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return document


def refusal(document: dict[str, Any], folder: Path) -> str:
    (folder / "plan.json").write_text(json.dumps(document))
    with pytest.raises(CompileError) as caught:
        read_plan(folder)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW207"
    return diagnostic.message


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
@pytest.mark.parametrize("caller_parameters", [False, True])
def test_a_plan_comes_back_as_it_was(target: str, caller_parameters: bool) -> None:
    document = digits_document(target, caller_parameters)
    plan = plan_of(json.loads(json.dumps(document)))
    assert document_of(plan) == document
    assert plan_of(document_of(plan)) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert hash_document(document) == plan.plan_hash


@pytest.mark.parametrize("name", CASES)
def test_a_plan_with_arenas_comes_back_as_it_was(name: str) -> None:
    plan = with_arenas(name).plan
    assert plan_of(json.loads(json.dumps(document_of(plan)))) == plan


def test_every_missing_member_is_named(tmp_path: Path) -> None:
    assert len(MEMBERS) > 90
    for path in MEMBERS:
        is_optional = path[-1] in (OPTIONAL | OF_LOOPS if path[0] == "loops" else OPTIONAL)
        if is_optional and path[:1] not in (("inputs",), ("outputs",)):
            assert isinstance(plan_of(changed(path, gone=True)), Plan)
        else:
            assert f"has no '{path[-1]}'" in refusal(changed(path, gone=True), tmp_path), path


def test_every_member_of_a_wrong_type_is_named(tmp_path: Path) -> None:
    """An object with a list of objects in it is what no member is."""
    wrong = [{"": [{}]}, None, True]
    for path in MEMBERS:
        if path == ("schema",):
            continue
        message = refusal(changed(path, wrong), tmp_path)
        assert f"'{path[-1]}' is not " in message, (path, message)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("pools", 0, "role"), "laundry", "pools[0]: 'role' is not one of workspace, parameters, state, io"),
        (("pools", 0, "used_bytes"), -1, "pools[0]: 'used_bytes' is not a natural number"),
        (("pools", 0, "used_bytes"), True, "pools[0]: 'used_bytes' is not a natural number"),
        (("pools", 0, "optimal"), 1, "pools[0]: 'optimal' is not true or false"),
        (("buffers", 0, "live"), [1, 2, 3], "buffers[0]: 'live' is not two integers"),
        (
            ("buffers", 0, "place", "kind"),
            "heap",
            "buffers[0]: place: 'kind' is not one of planned, constant,",
        ),
        (("steps", 0, "alive", "image"), [1], "steps[0]: alive: 'image' is not two integers"),
        (("inputs", 0, "scale"), float("nan"), "inputs[0]: 'scale' is not a number"),
        (("inputs", 0, "scale"), float("inf"), "inputs[0]: 'scale' is not a number"),
        pytest.param(("inputs", 0, "scale"), 10**400, "inputs[0]: 'scale' is not a number", id="huge"),
        (("inputs", 0, "zero_point"), 0.5, "inputs[0]: 'zero_point' is not a number"),
        (("pools",), [1], "'pools' is not a list of objects"),
        (("buffers",), [*DOCUMENT["buffers"], DOCUMENT["buffers"][0]], "two buffers are named 'image'"),
        (("schema",), "2", "it has schema '2', this version reads schema"),
    ],
)
def test_what_is_wrong_is_said(path: Keys, value: object, reason: str, tmp_path: Path) -> None:
    assert reason in refusal(changed(path, value), tmp_path)


def test_a_text_with_half_a_character_cannot_be_read(tmp_path: Path) -> None:
    reason = refusal({**digits_document(), "model": "\ud800"}, tmp_path)
    assert "plan.json cannot be read" in reason
    reason.encode()


def test_a_negative_zero_point_is_a_number() -> None:
    assert plan_of(changed(("inputs", 0, "zero_point"), -128)).inputs[0].zero_point == -128


def test_nothing_else_reads_or_writes_plan_json() -> None:
    """Files that know its name import it from the record; none of them has the text, or a reader of JSON beside it."""
    own = SRC / "record" / "plan_file.py"
    texts = {path: path.read_text(encoding="utf-8") for path in SRC.rglob("*.py") if path != own}
    assert [path.name for path, text in texts.items() if '"plan.json"' in text or "'plan.json'" in text] == []
    users = [path for path, text in texts.items() if "PLAN_FILE" in text]
    assert {path.name for path in users} >= {"folder.py", "write.py", "install.py"}
    assert [path.name for path in users if "json.load" in texts[path]] == []


def test_a_plan_says_what_its_buffers_are_in_the_model() -> None:
    """Names, shapes and quantisation as the `tflite` package reads them from the file.

    A buffer may have more axes of one element than its tensor: matrices are multiplied as convolutions.
    """
    graph = tflite.Model.GetRootAs(DIGITS.read_bytes()).Subgraphs(0)
    tensors = {(t := graph.Tensors(index)).Name().decode(): t for index in range(graph.TensorsLength())}
    known = [b for b in plan_of(DOCUMENT).buffers.values() if b.tensor is not None]
    assert {b.tensor for b in known} <= set(tensors)
    found = [b for b in known if b.role is not BufferRole.PARAMETER]  # weights are packed for their kernels
    assert len(found) >= 6
    for buffer in found:
        tensor = tensors[buffer.tensor or ""]
        quantization = tensor.Quantization()
        extents = [extent for extent in buffer.shape or () if extent > 1]
        assert extents == [extent for extent in tensor.ShapeAsNumpy() if extent > 1], buffer.name
        assert np.float32(buffer.scale) == quantization.Scale(0)
        assert buffer.zero_point == quantization.ZeroPoint(0)
        assert buffer.dtype is DType.I8


def test_a_plan_says_what_it_was_made_from(tmp_path: Path) -> None:
    """The files' digests, the options as they are written, Bytewright's version, and no path of the machine."""
    model = tmp_path / "text.bw"
    model.write_text((ROOT / "tests" / "golden" / "input" / "requests.bw").read_text())
    np.savez(tmp_path / "own.npz", w=np.arange(4, dtype=np.int8))
    options = Options(
        Overrides(resize=(ResizeOption("ram", 4096),)), io=Io.WORKSPACE, constants=tmp_path / "own.npz"
    )
    plan = compile_model(model, load_target("host"), options).plan
    assert plan.model_files == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (model, tmp_path / "own.npz")
    }
    assert plan.options == ("--resize ram=4096", "--io workspace", "--constants own.npz")
    assert plan.build.bytewright == bytewright.__version__
    assert str(tmp_path) not in json.dumps(document_of(plan))
    assert compile_model(DIGITS, load_target("host")).plan.options == ()


def test_a_pool_has_the_cost_of_its_memory() -> None:
    target = load_target("mps3-an547")
    for pool in plan_of(DOCUMENT).pools.values():
        memory = target.memory(pool.memory)
        assert (pool.read_cost, pool.write_cost) == (memory.read_cost, memory.write_cost)
