"""What is said of tensors that lie in others: in plan.json, by `explain`, and by `check` where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.target.registry import load_target
from support.digits_bundle import write_document
from support.part_models import branches, detector
from support.random_models import RandomModel
from support.views import explanation_document, explanation_lines


def compiled(model: RandomModel, folder: Path) -> Compiled:
    path = folder / "model.tflite"
    path.write_bytes(model.content)
    return compile_model(path, load_target("host"))


def test_the_plan_has_the_parts_of_buffers_and_of_the_callers_tensors(tmp_path: Path) -> None:
    plan = compiled(detector(), tmp_path).plan
    boxes = plan.buffers["concatenation_15/out"]
    assert boxes.place.kind == "caller"
    assert [(part.offset_bytes, part.size_bytes) for part in boxes.parts] == [(0, 512), (512, 128), (640, 32)]
    assert sum(part.size_bytes for part in boxes.parts) == boxes.size_bytes
    assert not {part.name for part in boxes.parts} & set(plan.buffers)


@pytest.mark.parametrize("name", ["slice_2/out", "fully_connected_0/rescaled"])
def test_explain_finds_a_part_in_its_buffer(name: str, tmp_path: Path) -> None:
    plan = compiled(branches(), tmp_path).plan
    text = "\n".join(explanation_lines(plan, name))
    assert text.startswith("fully_connected_0/rescaled\n")
    assert "'slice_2/out', bytes 32 to 64: nothing is copied" in text
    assert explanation_document(plan, name)["parts"][1] == {
        "name": "slice_2/out",
        "offset_bytes": 32,
        "size_bytes": 32,
        "tensor": "tensor_3",
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"size_bytes": 33},
            "part 'slice_2/out' ends at byte 65 of 'fully_connected_0/rescaled', which has 64 B",
        ),
        ({"name": "slice_1/out"}, "is a buffer, or another part, as well"),
        (
            {"name": "concatenation_5/out"},
            "part 'concatenation_5/out' of 'fully_connected_0/rescaled' is a buffer",
        ),
    ],
)
def test_check_refuses_parts_that_cannot_be(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    write_bundle(compiled(branches(), tmp_path).files, folder)
    check_bundle(folder)
    document = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    buffer = next(b for b in document["buffers"] if "parts" in b)
    buffer["parts"][1].update(change)
    write_document(folder, document)
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    assert sentence in str(caught.value)
