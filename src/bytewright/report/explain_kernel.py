"""How a kernel was made: which template wrote it and why no other did, answered from the plan alone."""

from typing import Any

from bytewright.record.plan import Plan, PlannedStep
from bytewright.report.document import facts

PORTABLE = "portable"


def steps_of_kernel(plan: Plan, name: str) -> tuple[PlannedStep, ...]:
    """The steps that call the kernel of a name; none if no step does."""
    return tuple(step for step in plan.steps if step.kernel == name)


def kernel_lines(plan: Plan, steps: tuple[PlannedStep, ...]) -> list[str]:
    """The explanation as text, of a kernel that some steps call."""
    first = steps[0]
    lines = [
        first.kernel,
        f"  what     a kernel of device '{first.device}'",
        f"  made by  template {first.template or PORTABLE}",
        *(f"           {remark}" for remark in first.remarks),
        "called by",
    ]
    for step in steps:
        surroundings = [" + ".join(step.operators), *plan.surroundings(step.index)]
        lines.append(f"  step {step.index}  {', '.join(text for text in surroundings if text)}")
    return lines


def kernel_document(steps: tuple[PlannedStep, ...]) -> dict[str, Any]:
    """The explanation for programs."""
    first = steps[0]
    return {
        "kernel": first.kernel,
        "device": first.device,
        "template": first.template or PORTABLE,
        "remarks": list(first.remarks),
        "steps": [{"step": step.index, **facts(step, "operators")} for step in steps],
    }
