"""What a job is called where a device failed in it: its number, and the step as far as that follows from the number."""

from bytewright.record.plan import Plan, PlannedDevice, PlannedStep


def described_job(plan: Plan, device: PlannedDevice, number: int, kernel: int | None) -> str:
    """`job 3 (kernel 'kws_depthwise_conv2d_2', step 5)`, or what is done before the first.

    Args:
        plan: The plan.
        device: Whose job it is.
        number: The first of a run is 1; 0 is before that.
        kernel: The number of the kernel, where it is known.
    """
    if not number:
        return "what it is lent"
    name = {each.number: each.name for each in device.kernels}.get(-1 if kernel is None else kernel)
    step = step_of_job(plan, device, number)
    if step is not None and name in (None, step.kernel):
        return f"job {number} (kernel '{step.kernel}', step {step.index})"
    return f"job {number}" + (f" (kernel '{name}')" if name else "")


def step_of_job(plan: Plan, device: PlannedDevice, number: int) -> PlannedStep | None:
    """The step of a job; what comes again, or may be left out, has none of its number."""
    steps = [step for step in plan.steps if step.device == device.name]
    return steps[number - 1] if not (plan.loops or plan.branches) and 0 < number <= len(steps) else None
