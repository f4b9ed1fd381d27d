"""A profile for programs: the figures of its table, and more of them, as JSON."""

from typing import Any

from bytewright.execute.profile.result import Cost, DeviceCost, Profile, StepCost, Unit


def profile_document(profile: Profile) -> dict[str, Any]:
    """What `bytewright profile --json` prints; docs/profile.md says what each key means."""
    return {
        "model": profile.plan.model,
        "target": profile.plan.hardware.name,
        "on": profile.on,
        "board": profile.board,
        "unit": "instructions" if profile.unit is Unit.INSTRUCTIONS else "microseconds",
        "bytes": profile.bytes_are.value,
        "repetitions": profile.num_repetitions,
        "steps": [_step(profile, line) for line in profile.steps],
        "entry": [
            {**_device(profile, line, line.entry), "median_microseconds": _us(line.median_of_entry)}
            for line in profile.devices
        ],
        "total": [_device(profile, line, line.total) for line in profile.devices],
        "memories": [
            {"name": memory.name, "read_cost": memory.read_cost, "write_cost": memory.write_cost}
            for memory in profile.plan.hardware.memories
        ],
    }


def _step(profile: Profile, line: StepCost) -> dict[str, Any]:
    plan = profile.plan
    step = plan.steps[line.step]
    return {
        "step": line.step,
        "device": line.device,
        "kernel": step.kernel,
        "is_hand_over": line.device != step.device,
        "operators": list(step.operators),
        "calls": line.num_calls,
        **_cost(profile, line.cost, profile.total(line.device)),
        "median_microseconds": _us(line.median),
        "when": list(plan.surroundings(line.step)),
    }


def _us(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1000


def _device(profile: Profile, line: DeviceCost, cost: Cost) -> dict[str, Any]:
    return {"device": line.device, **_cost(profile, cost, line.total)}


def _cost(profile: Profile, cost: Cost, total: Cost) -> dict[str, Any]:
    is_counted = profile.unit is Unit.INSTRUCTIONS
    return {
        "instructions": cost.amount if is_counted else None,
        "microseconds": _us(None if is_counted else cost.amount),
        "share": cost.amount / total.amount if total.amount else 0.0,
        "memories": [
            {
                "name": name,
                "read_bytes": cost.read_bytes.get(name, 0),
                "written_bytes": cost.written_bytes.get(name, 0),
            }
            for name in sorted({*cost.read_bytes, *cost.written_bytes})
        ],
        "cycles": profile.cycles(cost),
    }
