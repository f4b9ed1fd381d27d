"""TFLite_Detection_PostProcess in C gives LiteRT's detections, and TensorFlow Lite Micro's, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.detection_models import DetectionModel, SuppressionModel
from support.evaluate.evaluate_graph import evaluate_graph
from support.many_models import SANITIZERS, Job, build
from support.reference import LiteRt, TfLiteMicro
from support.ssd_model import SIDE, ssd_model

_RUNS = 6
FORMS = (
    DetectionModel(),
    DetectionModel(has_background=False, extra=2, is_static=False),
    DetectionModel(num_places=2, num_kept=7),
    DetectionModel(num_classes=1, num_places=3, has_background=False),
    DetectionModel(num_classes=5, num_places=5, num_kept=60, least_score=0.0, most_overlap=1.0),
    DetectionModel(num_of_class=100),
    DetectionModel(num_of_class=2, num_classes=6, num_kept=5),
    DetectionModel(num_of_class=50, num_kept=200, has_background=False, is_dense=False),
    DetectionModel(num_of_class=3, num_boxes=1, num_kept=1, num_classes=1),
    DetectionModel(num_boxes=1, num_kept=4, least_score=-1.0),
)
BYTES = (
    DetectionModel(dtype="uint8", num_boxes=12),
    DetectionModel(dtype="uint8", num_boxes=12, num_of_class=20, extra=1),
)


def _assert_detects(
    models: tuple[DetectionModel, ...], numerics: Numerics, folder: Path, flags: tuple[str, ...] = ("-O1",)
) -> None:
    """What is behind the detections the references leave as it was, and Bytewright makes 0."""
    jobs: list[Job] = []
    for number, model in enumerate(models):
        path = folder / f"m{number}.tflite"
        path.write_bytes(model.content)
        compiled = compile_model(path, load_target("host"), Options(numerics=numerics))
        jobs.append(Job(compiled.files, compiled.document, [model.inputs(seed) for seed in range(_RUNS)]))
    found = build(jobs, folder / "build", flags).run()
    for model, job, runs in zip(models, jobs, found, strict=True):
        is_litert = numerics is Numerics.LITERT_REF
        library = LiteRt(model.content) if is_litert else TfLiteMicro(model.content)
        counts: set[int] = set()
        for inputs, outputs in zip(job.batch, runs, strict=True):
            wanted = library.run(*inputs)
            count = int(wanted[3][0])
            counts.add(count)
            assert outputs[3].tobytes() == wanted[3].tobytes(), model.description
            step = 1 if model.num_of_class is not None else model.num_places
            places = min(step, model.num_classes)
            for own, reference in zip(outputs[:3], wanted[:3], strict=True):
                rows = own[0].reshape(-1, step, *own.shape[2:])
                others = reference[0].reshape(rows.shape)
                np.testing.assert_array_equal(rows[:count, :places], others[:count, :places])
                assert not rows[count:].any()
                assert not rows[:, places:].any()
        assert len(counts) > 1 or model.num_boxes == 1 or model.least_score <= 0, model.description


def test_detections_are_those_of_litert(tmp_path: Path) -> None:
    _assert_detects((*FORMS, *BYTES), Numerics.LITERT_REF, tmp_path, SANITIZERS)


def test_detections_are_those_of_tensorflow_lite_micro(tmp_path: Path) -> None:
    models = tuple(
        each for each in FORMS if each.is_static and (each.num_places == 1 or each.num_of_class is not None)
    )
    _assert_detects(models, Numerics.TFLM, tmp_path)


@pytest.mark.parametrize(
    ("model", "numerics", "reason"),
    [
        (DetectionModel(most_overlap=0.0), Numerics.LITERT_REF, "boxes overlap from 0.0 on"),
        (DetectionModel(num_of_class=0), Numerics.LITERT_REF, "at most 0 boxes of a class"),
        (DetectionModel(num_places=2), Numerics.TFLM, "TensorFlow Lite Micro misplaces 2 classes of one box"),
        (BYTES[0], Numerics.TFLM, "TensorFlow Lite Micro does not have it for uint8"),
    ],
)
def test_what_is_refused(model: DetectionModel, numerics: Numerics, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(model.content)
    with pytest.raises(CompileError, match=reason) as caught:
        compile_model(path, load_target("host"), Options(numerics=numerics))
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW107"}


SSD_FORMS = [("int8", Numerics.LITERT_REF), ("int8", Numerics.TFLM), ("float32", Numerics.LITERT_REF)]


@pytest.mark.parametrize(("dtype", "numerics"), SSD_FORMS)
def test_a_network_with_its_post_processing_is_one_bundle(
    dtype: str, numerics: Numerics, tmp_path: Path
) -> None:
    """Of int8 every bit of every detection is the reference's."""
    content, path = ssd_model(dtype), tmp_path / "ssd.tflite"
    path.write_bytes(content)
    generator = np.random.default_rng(2)
    images = generator.normal(0, 36, (5, 1, SIDE, SIDE, 3)) * np.linspace(0.4, 1, 5).reshape(5, 1, 1, 1, 1)
    given = np.clip(np.rint(images), -128, 127).astype(np.int8) if dtype == "int8" else images / 24
    batch = [[image.astype(dtype)] for image in given]
    compiled = compile_model(path, load_target("host"), Options(numerics=numerics))
    (found,) = build([Job(compiled.files, compiled.document, batch)], tmp_path / "build", ("-O1",)).run()
    library = (LiteRt if numerics is Numerics.LITERT_REF else TfLiteMicro)(content)
    counts: list[int] = []
    for inputs, outputs in zip(batch, found, strict=True):
        wanted = library.run(*inputs)
        counts.append(int(wanted[3][0]))
        assert outputs[3].tolist() == wanted[3].tolist()
        for own, reference in zip(outputs[:3], wanted[:3], strict=True):
            kept, expected = own[:, : counts[-1]], reference[:, : counts[-1]]
            if dtype == "int8":
                np.testing.assert_array_equal(kept, expected)
            else:
                np.testing.assert_allclose(
                    kept, expected, rtol=0, atol=1e-5 * np.abs(expected).max(initial=1)
                )
    assert max(counts) > min(counts), counts


SUPPRESSIONS = [
    SuppressionModel(num_boxes, num_kept, least_score, most_overlap, sigma)
    for num_boxes, num_kept in ((1, 3), (37, 9), (12, 20))
    for least_score, most_overlap in ((0.0, 0.5), (-1.0, 0.2), (0.3, 1.0))
    for sigma in (None, 0.0, 0.4)
]


def test_suppressed_boxes_are_those_of_litert(tmp_path: Path) -> None:
    """In all forms the same boxes are taken, those without an area too; scores that became less, to the last bits."""
    jobs: list[Job] = []
    for number, model in enumerate(SUPPRESSIONS):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(model.content)
        compiled = compile_model(path, load_target("host"), Options())
        jobs.append(Job(compiled.files, compiled.document, [model.inputs(seed) for seed in range(6)]))
    found = build(jobs, tmp_path / "build", SANITIZERS).run()
    for model, job, runs in zip(SUPPRESSIONS, jobs, found, strict=True):
        library, module = LiteRt(model.content), import_content(model.content, "m.tflite")
        for inputs, outputs in zip(job.batch, runs, strict=True):
            wanted = library.run(*inputs)
            for results in (outputs, evaluate_graph(module, inputs)):
                np.testing.assert_array_equal(results[0], wanted[0], err_msg=repr(model))
                np.testing.assert_array_equal(results[-1], wanted[-1])
                np.testing.assert_allclose(results[1], wanted[1], rtol=2e-6)


def test_scores_that_are_alike_are_taken_in_order() -> None:
    model = SuppressionModel(5, 4, 0.1, 0.5, None)
    module = import_content(model.content, "m.tflite")
    apart = np.arange(20, dtype=np.float32).reshape(5, 4)
    numbers, count = evaluate_graph(module, [apart, np.full(5, 0.5, np.float32)])
    assert (numbers.tolist(), count.tolist()) == ([0, 1, 2, 3], 4)
