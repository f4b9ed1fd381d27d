"""`bytewright check`: a bundle is proved again."""

import shlex
from pathlib import Path

import click

from bytewright.cli.formats import format_options, say
from bytewright.cli.option_types import PATH, cflags_option, compiler_option
from bytewright.cli.write_files import write_files
from bytewright.execute.description import read_bundle
from bytewright.execute.tools import cores_of
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_elf import check_elf
from bytewright.inspect.check_view import check_view
from bytewright.inspect.safety_view import safety_view
from bytewright.inspect.stack.check_stack import StackProof, check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.record.devices import DeviceKind, PlannedDevice
from bytewright.record.plan import Plan
from bytewright.record.plan_file import PLAN_FILE
from bytewright.show.formats import BY_SUFFIX
from bytewright.target.isa.isa import Isa


@click.command(short_help="Prove a bundle again.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--stack", "with_stack", is_flag=True, help="Compile it, and prove the stack too.")
@cflags_option(", for --stack")
@compiler_option(", for --stack")
@click.option("--elf", type=PATH, metavar="APP", help="A linked image, which is proved too.")
@click.option(
    "--symbol",
    "symbols",
    multiple=True,
    metavar="POOL[.load]=NAME",
    help="The application's array for a pool, for --elf.  [default: <model>_<pool>_workspace]",
)
@click.option(
    "--report",
    type=PATH,
    metavar=f"FILE{'|'.join(BY_SUFFIX)}",
    help="Also write a page for a safety file: what is proved, by what, and what is not.",
)
@format_options
def check(
    directory: Path,
    with_stack: bool,
    cflags: str,
    compiler: str | None,
    elf: Path | None,
    symbols: tuple[str, ...],
    report: Path | None,
) -> None:
    """Prove the bundle DIR again: that its plan is a plan, and that its files are what the plan says.

    With --stack the bundle is compiled with the target's compiler, whose own figures must lie between the arrays
    that the plan counts and the size that the header states.

    With --elf every pool's array must lie in its memory in the image, aligned and sharing no byte with anything
    else, stack and heap included, and the parameters must be those of the plan.

    The exit status is 4 if anything does not verify, and the errors list what.
    """
    if report is not None and report.suffix not in BY_SUFFIX:
        raise click.UsageError(f"--report {report}: its name must end in {', '.join(BY_SUFFIX)}")
    verdict = check_bundle(directory)
    plan, flags = verdict.plan, tuple(shlex.split(cflags))
    proofs = prove_stacks(directory, plan, flags, compiler) if with_stack else []
    image = check_elf(directory, plan, elf, _array_names(symbols)) if elf is not None else None
    if report is not None:
        sources = read_bundle(directory).sources
        has_assembler = any(b"__asm" in source.read_bytes() for source in sources)
        view = safety_view(verdict, proofs, image, flags, has_assembler=has_assembler)
        text = BY_SUFFIX[report.suffix](view)
        write_files(
            [(report, text.rstrip("\n") + "\n")], [directory / path for path in (*plan.files, PLAN_FILE)]
        )
    say(check_view(verdict, proofs, image))


def _array_names(texts: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in texts:
        pool, equals, name = text.partition("=")
        if not (pool and equals and name) or pool in names:
            raise click.UsageError(f"--symbol {text}: give each pool once, as POOL=NAME")
        names[pool] = name
    return names


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
