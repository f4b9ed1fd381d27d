"""Plans of the shared models stay as they are: what is planned where, when, and how good it is, in digits of a hash.

So does the C that is generated for one device: no argument and no byte is added for what other models have.

A line that changes names the model and the facts that changed with it: pools, stack, or the places of buffers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import bytewright

BUFFER_FACTS = (
    "name",
    "role",
    "size_bytes",
    "alignment",
    "place",
    "live",
    "first_step",
    "last_step",
    "scope",
)
POOL_FACTS = ("name", "used_bytes", "lower_bound_bytes", "optimal", "alignment", "sha256")
STEP_FACTS = ("ticks", "operators", "reads", "writes", "scratch", "alive")


def digits(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def facts(entries: list[Mapping[str, Any]], names: tuple[str, ...]) -> list[list[Any]]:
    return [[entry[name] for name in names] for entry in entries]


def plan_line(model: Path, target: str, io: str, bundle: Path) -> str:
    bytewright.compile(model, target=target, io=io).write(bundle)
    plan = json.loads((bundle / "plan.json").read_text())
    used = " ".join(f"{pool['name']}={pool['used_bytes']}" for pool in plan["pools"])
    stack = plan["stack"]["cpu"]
    texts = {
        path.relative_to(bundle).as_posix(): path.read_text().replace(plan["plan_hash"], "")
        for path in sorted(bundle.rglob("*.[ch]"))
    }
    return (
        f"{model.stem} {target} {io}: {used} stack={stack['planned_bytes']} "
        f"pools {digits(facts(plan['pools'], POOL_FACTS))} buffers {digits(facts(plan['buffers'], BUFFER_FACTS))} "
        f"steps {digits(facts(plan['steps'], STEP_FACTS))} kernels {len({s['kernel'] for s in plan['steps']})} "
        f"c {digits(texts)}"
    )


@pytest.mark.slow
def test_plans_of_the_shared_models_stay(
    golden: Callable[[str, str], None], shared_models: Path, tmp_path: Path
) -> None:
    lines = [
        plan_line(model, target, io, tmp_path / f"{model.stem}-{target}-{io}")
        for model in sorted(shared_models.glob("*.tflite"))
        for target, io in (("host", "caller"), ("mps3-an547", "caller"), ("mps3-an547", "workspace"))
    ]
    golden("shared_plans.txt", "\n".join(lines) + "\n")
