"""The models of TensorFlow Lite Micro's own tests, which lie in its repository, compile and equal it over ten runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from micro_models import Outcome, model_files, outcome
from support.compilers import QUICK, UNOPTIMISED
from support.tiers import some

VARIABLE = "BYTEWRIGHT_TFLITE_MICRO"
MOST_BYTES = 100_000  # of files that tcc is the quicker compiler for
REASON = f"{VARIABLE} does not name a copy of github.com/tensorflow/tflite-micro"
# A stream of an NPU, which TensorFlow Lite Micro runs on one alone; and 300 million products, ten times.
NOT_RUN = {"person_detect_vela", "mobilenet_v2_quantized_1x3x224x224"}


def _files() -> list[Path]:
    folder = os.environ.get(VARIABLE)
    found = model_files(Path(folder)) if folder else []
    return [path for path in found if path.stem not in NOT_RUN]


FILES = _files()


@pytest.mark.skipif(not FILES, reason=REASON)
def test_every_file_is_there() -> None:
    """A copy is that of the repository: it has 144 files."""
    assert len(FILES) == 144 - len(NOT_RUN)


@pytest.mark.skipif(not FILES, reason=REASON)
@pytest.mark.parametrize(
    "path", some(FILES, every=8) or [None], ids=lambda path: path.stem if path else "none"
)
def test_a_file_equals_its_reference(path: Path) -> None:
    options = QUICK if path.stat().st_size < MOST_BYTES else UNOPTIMISED
    assert outcome(path, options) == Outcome(path)
