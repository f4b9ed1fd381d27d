"""What the benchmarks share: the models, where tables go, and time taken by turns."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "models"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
INT8_MODELS = {
    "kws": "kws_ref_model.tflite",
    "vww": "vww_96_int8.tflite",
    "ResNet8": "pretrainedResnet_quant.tflite",
    "ad01": "ad01_int8.tflite",
}
FLOAT_MODELS = {
    "vww f32": "vww_96_float.tflite",
    "ResNet8 f32": "pretrainedResnet.tflite",
    "ad01 f32": "ad01_fp32.tflite",
}
HOST_FLAGS = ("-O3", "-march=native")
ROUNDS = 31
_TARGET_SECONDS = 0.02


def has_models() -> bool:
    """Whether there is anything to measure; says so if not."""
    if MODELS.is_dir():
        return True
    print(f"there are no models in {MODELS.relative_to(ROOT.parent)}: nothing to measure", file=sys.stderr)
    return False


def show(text: str, name: str, *, write: bool, document: Path = DOCUMENT) -> None:
    """Prints tables, and puts them between the marks of that name in a document if they are to be written."""
    print(text)
    if write:
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = document.read_text().split(begin)
        _, after = rest.split(end)
        document.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def by_turns(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Median over the rounds, by contender; in a round each runs a burst, and its median counts.

    Args:
        contenders: Each runs once, and tells its microseconds.
        rounds: How often all have their turn.
    """
    bursts = {name: max(1, min(200, int(_TARGET_SECONDS * 1e6 / run()))) for name, run in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    gc.disable()
    for _ in range(rounds):
        for name, run in contenders.items():
            samples[name].append(statistics.median(run() for _ in range(bursts[name])))
    gc.enable()
    return {name: statistics.median(values) for name, values in samples.items()}
