"""`bytewright check`: a bundle is proved again."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bytewright.cli.option_types import PATH, echo_json, json_option
from bytewright.execute.description import read_bundle
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_elf import ImageVerdict, check_elf
from bytewright.inspect.stack.check_stack import StackProof, check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs, cores_of
from bytewright.record.plan import DeviceKind, Plan, PlannedDevice
from bytewright.report.document import members
from bytewright.target.isa.isa import Isa


@click.command(short_help="Prove a bundle again.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--stack", "with_stack", is_flag=True, help="Compile it, and prove the stack too.")
@click.option("--cflags", default="-O2", show_default=True, help="How the application compiles, for --stack.")
@click.option(
    "--compiler",
    metavar="gcc|clang|COMMAND",
    help="The C compiler, for --stack.  [default: $CC or cc here, gcc for boards]",
)
@click.option("--elf", type=PATH, metavar="APP", help="A linked image, which is proved too.")
@click.option(
    "--symbol",
    "symbols",
    multiple=True,
    metavar="POOL[.load]=NAME",
    help="The application's array for a pool, for --elf.  [default: <model>_<pool>_workspace]",
)
@json_option
def check(
    directory: Path,
    with_stack: bool,
    cflags: str,
    compiler: str | None,
    elf: Path | None,
    symbols: tuple[str, ...],
    as_json: bool,
) -> None:
    """Prove the bundle DIR again: that its plan is a plan, and that its files are what the plan says.

    With --stack the bundle is compiled with the target's compiler, whose own figures must lie between the arrays
    that the plan counts and the size that the header states.

    With --elf every pool's array must lie in its memory in the image, aligned and sharing no byte with anything
    else, stack and heap included, and the parameters must be those of the plan.

    The exit status is 4 if anything does not verify, and the errors list what.
    """
    verdict = check_bundle(directory)
    plan = verdict.plan
    proofs = prove_stacks(directory, plan, tuple(shlex.split(cflags)), compiler) if with_stack else []
    image = check_elf(directory, plan, elf, _array_names(symbols)) if elf is not None else None
    if as_json:
        document: dict[str, Any] = {"model": plan.model, "verified": True, "plan_hash": plan.plan_hash}
        document |= members(verdict, "num_buffers", "num_steps", "num_files", "parameter_bytes")
        if proofs:
            document["stack"] = _stack_document(proofs[0])
        if proofs[1:]:
            document["device_stacks"] = [_stack_document(proof) for proof in proofs[1:]]
        if image is not None:
            document["image"] = _image_document(image)
        echo_json(document)
        return
    click.echo(f"{plan.model}: verified, plan {plan.plan_hash[:12]}")
    click.echo(
        f"  buffers, {plan.num_buffers_text}: in bounds, aligned, and no byte is shared but as a kernel allows"
    )
    click.echo(f"  {verdict.num_steps} steps: the C touches what the plan says, while it is alive")
    for pool in plan.device_workspaces:
        click.echo(
            f"  pool '{pool.name}': obtained by '{pool.obtained_by}'; nothing that '{plan.device.name}' runs has an "
            "address in it"
        )
    click.echo(f"  {verdict.num_files} files: unchanged; sizes and offsets are those of the plan")
    click.echo(f"  {verdict.parameter_bytes} B of parameters: those of the plan")
    for proof in proofs:
        _show_stack(proof)
    if image is not None:
        _show_image(image)


def _array_names(texts: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in texts:
        pool, equals, name = text.partition("=")
        if not (pool and equals and name) or pool in names:
            raise click.UsageError(f"--symbol {text}: give each pool once, as POOL=NAME")
        names[pool] = name
    return names


def _image_document(image: ImageVerdict) -> dict[str, Any]:
    return {
        "arrays": [
            {
                "pool": array.pool.name,
                "memory": array.wanted.memory,
                "symbol": array.symbol.name,
                "address": array.symbol.address,
                "size_bytes": array.pool.used_bytes,
            }
            for array in image.arrays
        ],
        "parameter_bytes": image.parameter_bytes,
        "reserved": [asdict(addresses) for addresses in image.reserved],
        "separate": list(image.separate),
    }


def _show_image(image: ImageVerdict) -> None:
    for array in image.arrays:
        place = f"{array.pool.used_bytes} B at {array.symbol.address:#010x} in {array.wanted.memory}"
        click.echo(f"  {array.symbol.name}: {place}, aligned, apart from all else")
    for interval in image.reserved:
        click.echo(f"  {interval.name} is at {interval}")
    click.echo(f"  {image.parameter_bytes} B of parameters in the image: those of the plan")
    for name in image.separate:
        click.echo(f"  pool '{name}' is not in the image: it is flashed for itself")


def prove_stacks(
    directory: Path, plan: Plan, flags: tuple[str, ...], compiler: str | None = None
) -> list[StackProof]:
    """The proof of the entry's stack, then of those of other devices that run C: each for the core on which the most
    stack is needed; the plan must hold on each that may be meant.
    """
    bundle = read_bundle(directory)

    def proof_of(isa: Isa, device: PlannedDevice | None) -> StackProof:
        proofs = [
            check_stack(
                plan, lambda own, core=core: compile_call_graphs(bundle, own, core, compiler), flags, device
            )
            for core in cores_of(isa)
        ]
        return max(proofs, key=lambda proof: proof.measured.total_bytes)

    others = [device for device in plan.devices.values() if device.kind is DeviceKind.C]
    return [
        proof_of(plan.device.isa, None),
        *(proof_of(plan.hardware.device(device.name).isa, device) for device in others),
    ]


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


def _show_stack(proof: StackProof) -> None:
    stack = proof.stack
    limit = "no limit" if stack.limit_bytes is None else f"limit {stack.limit_bytes} B"
    click.echo(
        f"  stack of {proof.context}: {stack.planned_bytes} B of arrays planned, {proof.measured.total_bytes} B as "
        f"compiled, {stack.size_bytes} B promised, {limit}"
    )
    click.echo(f"    worst path: {proof.measured}")
    if proof.in_memory is not None:
        text = f"{proof.in_memory.total_bytes} B if they were in memory"
        click.echo(f"    the compiler keeps arrays in registers: {text}")
