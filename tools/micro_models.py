"""The models that TensorFlow Lite Micro has for its own tests, compiled and held against it, ten runs each.

    python tools/micro_models.py FOLDER

FOLDER is a copy of github.com/tensorflow/tflite-micro, or any other with .tflite files. States go on from run to run,
on both sides. Integers must be equal, floats within 1e-5 of the greatest. Printed is how many compile and agree, and
for the others why, the commonest reason first.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.execute.tensors import random_inputs
from bytewright.record.plan import Plan

RUNS = 10
UNOPTIMISED = BuildOptions(flags=("-O0",))
TOLERANCE = 1e-5
_ENDS = ("min", "max")
Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What became of a file.

    Attributes:
        reason: Empty where it compiles and every value agrees.
    """

    path: Path
    reason: str = ""


def model_files(folder: Path) -> list[Path]:
    """Every .tflite file, in alphabetical order."""
    return sorted(folder.rglob("*.tflite"))


def outcome(path: Path, options: BuildOptions = UNOPTIMISED) -> Outcome:
    """Compiles a file, and runs both."""
    try:
        compiled = bytewright.compile(path, numerics="tflm", name="model")
    except CompileError as error:
        return Outcome(path, f"refused: {error.diagnostics[0].code} {error.diagnostics[0].message}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "bundle"
        compiled.write(folder)
        batch = [_inputs(compiled.plan, number) for number in range(RUNS)]
        try:
            wanted = _by_micro(path, batch)
        except RuntimeError as error:
            return Outcome(path, f"compiles, and TensorFlow Lite Micro does not run it: {error}")
        found = run_batch(folder, batch, keep_state=True, options=options).outputs
    pairs = (
        (own, reference)
        for a, b in zip(found, wanted, strict=True)
        for own, reference in zip(a, b, strict=True)
    )
    worst = max((_difference(own, reference) for own, reference in pairs), default=0.0)
    return Outcome(path, f"differs by up to {worst:g}" if worst else "")


def _inputs(plan: Plan, number: int) -> list[Array]:
    """Inputs of one run: integers at the least and the greatest of their type first, then random values."""
    drawn = random_inputs(plan, number)
    if number >= len(_ENDS):
        return drawn
    return [
        np.full_like(array, getattr(np.iinfo(array.dtype), _ENDS[number]))
        if array.dtype.kind in "iu"
        else array
        for array in drawn
    ]


def _by_micro(path: Path, batch: list[list[Array]]) -> list[list[Array]]:
    """The reference's outputs, run after run."""
    from tflite_micro.python.tflite_micro import runtime

    content = path.read_bytes()
    interpreter: Any = runtime.Interpreter.from_bytes(content, arena_size=max(1 << 20, 10 * len(content)))
    found: list[list[Array]] = []
    for inputs in batch:
        for index, array in enumerate(inputs):
            interpreter.set_input(np.ascontiguousarray(array), index)
        interpreter.invoke()
        found.append([np.array(interpreter.get_output(index)) for index in range(_num_outputs(content))])
    return found


def _num_outputs(content: bytes) -> int:
    import tflite

    model: Any = tflite.Model.GetRootAs(content, 0)
    return model.Subgraphs(0).OutputsLength()


def _difference(found: Array, wanted: Array) -> float:
    """How far a result is off: 0 where it agrees."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    worst = float(np.abs(found.astype(np.float64) - wanted).max(initial=0.0))
    allowed = TOLERANCE * float(np.abs(wanted).max(initial=0.0)) if wanted.dtype.kind == "f" else 0.0
    return worst if not worst <= allowed else 0.0


def main(folder: Path) -> None:
    """Prints the count, and the reasons of the others."""
    files = model_files(folder)
    reasons: dict[str, list[Path]] = defaultdict(list)
    for path in files:
        found = outcome(path).reason
        reasons[found].append(path)
        print(f"{path.name}: {found or 'equal'}", file=sys.stderr, flush=True)
    print(
        f"{len(files)} files, {len(reasons.pop('', []))} compile and equal TensorFlow Lite Micro over {RUNS} runs"
    )
    for reason, paths in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(paths)}: {reason}: {', '.join(path.name for path in paths)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
