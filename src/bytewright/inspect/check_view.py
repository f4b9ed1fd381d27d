"""What `check` says of a bundle that verifies."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bytewright.inspect.check import Verdict
from bytewright.inspect.check_elf import ImageVerdict
from bytewright.inspect.stack.check_stack import StackProof
from bytewright.show.view import Fact, Facts, View, freeze


def check_view(verdict: Verdict, proofs: Sequence[StackProof], image: ImageVerdict | None) -> View:
    """How much was looked at, the stacks that were proved, the entry's first, and the image."""
    plan = verdict.plan
    facts = [*_of_bundle(verdict), *(_of_stack(proof) for proof in proofs)]
    if proofs:
        facts.append(Fact(data=freeze({"stack": _stack_document(proofs[0])})))
    if proofs[1:]:
        facts.append(Fact(data=freeze({"device_stacks": [_stack_document(p) for p in proofs[1:]]})))
    if image is not None:
        facts += _of_image(image)
    title = f"{plan.model}: verified, plan {plan.plan_hash[:12]}"
    return View(title, (Facts(tuple(facts), indent=2, hanging=2),))


def _of_bundle(verdict: Verdict) -> Iterator[Fact]:
    plan = verdict.plan
    yield Fact(data=freeze({"model": plan.model, "verified": True, "plan_hash": plan.plan_hash}))
    buffers = (
        f"buffers, {plan.num_buffers_text}: in bounds, aligned, and no byte is shared but as a kernel allows"
    )
    yield Fact((buffers,), data=freeze({"num_buffers": verdict.num_buffers}))
    steps = f"{verdict.num_steps} steps: the C touches what the plan says, while it is alive"
    yield Fact((steps,), data=freeze({"num_steps": verdict.num_steps}))
    number = f"{verdict.num_proved_kernels} of {verdict.num_kernels}"
    kernels = f"{number} kernels: in all turns of their loops they stay inside what each call gives them"
    counts = {"num_kernels": verdict.num_kernels, "num_proved_kernels": verdict.num_proved_kernels}
    yield Fact((kernels,), data=freeze(counts))
    for pool in plan.device_workspaces:
        obtained = f"pool '{pool.name}': obtained by '{pool.obtained_by}'"
        yield Fact((f"{obtained}; nothing that '{plan.device.name}' runs has an address in it",))
    files = f"{verdict.num_files} files: unchanged; sizes and offsets are those of the plan"
    yield Fact((files,), data=freeze({"num_files": verdict.num_files}))
    parameters = f"{verdict.parameter_bytes} B of parameters: those of the plan"
    yield Fact((parameters,), data=freeze({"parameter_bytes": verdict.parameter_bytes}))


def _of_stack(proof: StackProof) -> Fact:
    stack = proof.stack
    limit = "no limit" if stack.limit_bytes is None else f"limit {stack.limit_bytes} B"
    lines = [
        f"stack of {proof.context}: {stack.planned_bytes} B of arrays planned, {proof.measured.total_bytes} B as "
        f"compiled, {stack.size_bytes} B promised, {limit}",
        f"worst path: {proof.measured}",
    ]
    if proof.in_memory is not None:
        text = f"{proof.in_memory.total_bytes} B if they were in memory"
        lines.append(f"the compiler keeps arrays in registers: {text}")
    return Fact(tuple(lines))


def _stack_document(proof: StackProof) -> dict[str, Any]:
    return {
        "context": proof.context,
        "planned_bytes": proof.stack.planned_bytes,
        "measured_bytes": proof.measured.total_bytes,
        "measured_with_arrays_in_memory_bytes": proof.in_memory and proof.in_memory.total_bytes,
        "size_bytes": proof.stack.size_bytes,
        "limit_bytes": proof.stack.limit_bytes,
        "path": [{"function": name, "stack_bytes": size} for name, size in proof.measured.steps],
    }


def _of_image(image: ImageVerdict) -> Iterator[Fact]:
    for array in image.arrays:
        place = f"{array.pool.used_bytes} B at {array.symbol.address:#010x} in {array.wanted.memory}"
        yield Fact((f"{array.symbol.name}: {place}, aligned, apart from all else",))
    yield from (Fact((f"{interval.name} is at {interval}",)) for interval in image.reserved)
    yield Fact((f"{image.parameter_bytes} B of parameters in the image: those of the plan",))
    for name in image.separate:
        yield Fact((f"pool '{name}' is not in the image: it is flashed for itself",))
    arrays = [
        {
            "pool": array.pool.name,
            "memory": array.wanted.memory,
            "symbol": array.symbol.name,
            "address": array.symbol.address,
            "size_bytes": array.pool.used_bytes,
        }
        for array in image.arrays
    ]
    document = {
        "arrays": arrays,
        "parameter_bytes": image.parameter_bytes,
        "reserved": [asdict(addresses) for addresses in image.reserved],
        "separate": image.separate,
    }
    yield Fact(data=freeze({"image": document}))
