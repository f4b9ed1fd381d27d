"""How a kernel was made: which template wrote it and why no other did, answered from the plan alone."""

from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.show.view import Fact, Facts, View, freeze

PORTABLE = "portable"
HEAD_WIDTH = 9


def kernel_view(plan: Plan, steps: tuple[PlannedStep, ...]) -> View:
    """The explanation of a kernel that some steps call."""
    first = steps[0]
    template = first.template or PORTABLE
    made = {
        "kernel": first.kernel,
        "device": first.device,
        "template": template,
        "remarks": first.remarks,
    }
    facts = (
        Fact((f"a kernel of device '{first.device}'",), "what", freeze(made)),
        Fact((f"template {template}", *first.remarks), "made by"),
    )
    return View(
        first.kernel,
        (
            Facts(facts, indent=2, head_width=HEAD_WIDTH),
            Facts(tuple(_call(plan, step) for step in steps), "called by", "steps", indent=2),
        ),
    )


def _call(plan: Plan, step: PlannedStep) -> Fact:
    surroundings = [" + ".join(step.operators), *plan.surroundings(step.index)]
    line = f"step {step.index}  {', '.join(text for text in surroundings if text)}"
    return Fact((line,), data=freeze({"step": step.index, "operators": step.operators}))
