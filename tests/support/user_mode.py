"""Models on processors that QEMU's user mode emulates, compared with LiteRT."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from support.against_reference import differences
from support.random_models import RandomModel
from support.reference import LiteRt

LEVELS = ("-O1", "-O2", "-O3", "-Os")


def num_equal_to_reference(
    models: Iterable[RandomModel], folder: Path, target: str, template: str, compiler: str
) -> int:
    """Runs those of some models that have a kernel whose template begins so, and compares; how many there are."""
    count = 0
    for number, model in enumerate(models):
        path = folder / f"m{number}.tflite"
        path.write_bytes(model.content)
        compiled = bytewright.compile(path, target=target)
        if not any(step.template.startswith(template) for step in compiled.plan.steps):
            continue
        count += 1
        batch = [model.inputs(i) for i in range(4)]
        how = BuildOptions(flags=(LEVELS[number % len(LEVELS)],), compiler=compiler)
        found = run_batch(compiled.write(folder / f"b{number}"), batch, on="qemu", options=how).outputs
        reference = LiteRt(model.content)
        for inputs, own in zip(batch, found, strict=True):
            assert not differences(own, list(reference.run(*inputs))), (model.description, how.flags)
    return count
