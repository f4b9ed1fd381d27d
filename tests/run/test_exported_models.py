"""Models as exporters write them, and such that people run today, compile and give the outputs that lie beside them.

The files are data beside the project: Keras networks by TensorFlow's converter, PyTorch networks by litert-torch, and
models from public repositories. Expected outputs were made with LiteRT's reference kernels; of models that come without
any, LiteRT makes them here. What is refused is listed, by reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite import import_tflite
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference, differences
from support.many_models import Job, build
from support.model_files import EXPORTS, ZOO, ModelFile, model_files
from support.tiers import some

Array = NDArray[Any]

FORMS = ("i8", "i8f", "float", "open", "u8io", "f16", "i16", "dyn")
# Those of `ae` come from LiteRT's default kernels, as the reference ones have no ELU: their int8 fully connected layers
# round in another way, so that an output may be a step off.
BY_OTHER_KERNELS = {"keras/ae_i8": 1.0, "keras/ae_i8f": 0.01, "keras/ae_u8io": 1.0}
# The results beside these come from the same default kernels, for want of TILE's version 3; the reference kernels do
# the same as of version 2, and are asked here.
ASKED_HERE = {f"keras/unet_{form}" for form in ("i8", "i8f", "u8io")}
REFUSED = {
    # Scales that do not match its channels: LiteRT refuses them, too.
    **{f"litert_torch/convnext_{form}": "BW103" for form in ("i8", "i16")},
}


def exported() -> list[ModelFile]:
    """The files of int8 or float32 activations."""
    keras = [file for form in FORMS for file in model_files(EXPORTS / "keras", f"*_{form}")]
    torch = [
        file
        for form in ("i8", "i16", "float", "wo4", "dyn8")
        for file in model_files(EXPORTS / "litert_torch", f"*_{form}")
    ]
    return [*keras, *torch, *model_files(ZOO)]


def name_of(file: ModelFile) -> str:
    return f"{file.path.parent.name}/{file.path.stem}"


FILES = exported()


def samples(file: ModelFile) -> tuple[list[list[Array]], list[list[Array]]]:
    """Inputs and outputs of each sample, in the order of the file."""
    with np.load(file.path.with_suffix(".npz")) as arrays:
        names = list(arrays)
        inputs = [arrays[name] for name in names if name.startswith("x")]
        outputs = [arrays[name] for name in names if name.startswith("y")]
    count = len(inputs[0])
    return [[a[n] for a in inputs] for n in range(count)], [[a[n] for a in outputs] for n in range(count)]


def in_order_of(ports: Sequence[dict[str, Any]], arrays: Sequence[Array]) -> list[Array]:
    """The arrays beside a file, which may be sorted by name, in the order of its ports, by their shapes."""
    rest, found = list(arrays), list[Array]()
    for port in ports:
        index = next(k for k, a in enumerate(rest) if math.prod(a.shape) == math.prod(port["shape"]))
        found.append(rest.pop(index).reshape(port["shape"]))
    return found


@pytest.mark.skipif(not FILES, reason="the data that is not part of the project is missing: ../shared/models")
def test_what_is_refused_is_refused_for_its_reason() -> None:
    """Every row of the list is a file, and says why."""
    by_name = {name_of(file): file for file in FILES}
    missing = [name for name in REFUSED if name not in by_name]
    assert missing == []
    for name in some(list(REFUSED), every=4):
        with pytest.raises(CompileError) as caught:
            compile_model(by_name[name].path, load_target("host"))
        assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {REFUSED[name]}, name


@pytest.mark.skipif(not FILES, reason="the data that is not part of the project is missing: ../shared/models")
def test_nothing_else_is_refused_at_import() -> None:
    refused = {name_of(file) for file in FILES if is_refused(file)}
    assert refused == set(REFUSED)


def is_refused(file: ModelFile) -> bool:
    try:
        import_tflite(file.path)
    except CompileError:
        return True
    return False


# `test_streams.py`
STREAMS = {"zoo/mww_choo", "zoo/mww_hey_jarvis_v2", "keras/legacy_lstmst_float", "keras/legacy_lstmst_open"}
COMPILED = [file for file in FILES if name_of(file) not in {*REFUSED, *STREAMS}]


@pytest.mark.parametrize("file", some(COMPILED, every=10), ids=name_of)
def test_outputs_equal_those_beside_the_file(file: ModelFile, tmp_path: Path) -> None:
    if file.path.parent == ZOO or name_of(file) in ASKED_HERE:
        assert_equals_reference([file], tmp_path)
        return
    path = tmp_path / "m0.tflite"
    path.write_bytes(file.content)
    compiled = compile_model(path, load_target("host"))
    inputs, outputs = samples(file)
    batch = [in_order_of(compiled.document["inputs"], sample) for sample in inputs]
    if compiled.plan.states:  # the references keep it from sample to sample
        write_bundle(compiled.files, tmp_path / "bundle")
        results = run_batch(tmp_path / "bundle", batch, keep_state=True).outputs
    else:
        (results,) = build(
            [Job(compiled.files, compiled.document, batch)], tmp_path / "build", ("-O1",)
        ).run()
    for found, beside in zip(results, outputs, strict=True):
        wanted = in_order_of(compiled.document["outputs"], beside)
        step = BY_OTHER_KERNELS.get(name_of(file))
        if step is None:
            assert differences(found, wanted) == []
        else:
            np.testing.assert_allclose(
                found[0].astype(np.float64), wanted[0].astype(np.float64), atol=step, rtol=0
            )
