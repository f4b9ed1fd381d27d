"""`check` compares where calls begin in buffers with where the plan has parts of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.target.registry import load_target
from support.digits_bundle import change_file
from support.part_models import branches, detector
from support.plan_mutations import write_consistently
from support.random_models import RandomModel

SOURCE = "src/model.c"


def bundle(folder: Path, content: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(content)
    write_bundle(compile_model(path, load_target("host")).files, folder / "b")
    return folder / "b"


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param(branches(), r"(\w+\) \+ )32\b", id="a slice in the workspace"),
        pytest.param(detector(), r"(outputs->\w+ \+ )512\b", id="an operand in a result"),
    ],
)
@pytest.mark.parametrize("first", [31, 5000])
def test_a_call_that_begins_elsewhere_is_found(
    model: RandomModel, place: str, first: int, tmp_path: Path
) -> None:
    folder = bundle(tmp_path, model.content)
    assert check_bundle(folder).num_steps > 0
    found = re.search(place, (folder / SOURCE).read_text(encoding="utf-8"))
    assert found is not None
    before = int(found[0].rpartition(" ")[2])
    change_file(folder, SOURCE, found[0], f"{found[1]}{first}")
    assert f" on, by the plan from element {before}" in refusal(folder)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    document = json.loads(files["plan.json"])
    for step in document["steps"]:
        step["starts"] = [first if start == before else start for start in step.get("starts", ())]
    write_consistently(folder, files, document)  # now plan and C say the same
    assert f"is passed from byte {first} on, where no part of it lies" in refusal(folder)


def refusal(folder: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    return "\n".join(diagnostic.notes)
