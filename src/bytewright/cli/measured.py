"""What `report` measures of a bundle besides its plan: the size of its C, and what its layers cost."""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import CompileError
from bytewright.report.code import Code
from bytewright.report.compare import Side
from bytewright.report.layers import Costs, StepAmount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bytewright.execute.profile.result import Cost, Profile
    from bytewright.record.plan import Plan

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is asked for, and how the C is compiled for it.

    Attributes:
        flags: Of the compiler.
        compiler: `gcc`, `clang`, or a compiler's command; `None` for the usual one.
        with_code: Whether sizes are.
        profile_on: Where it is run: `host`, `qemu`, or `AUTO`; None for nowhere.
        sources: C of the application.
    """

    flags: tuple[str, ...]
    compiler: str | None
    with_code: bool
    profile_on: str | None
    sources: tuple[Path, ...]

    @property
    def needs_c(self) -> bool:
        """Whether anything is."""
        return self.with_code or self.profile_on is not None


def split_flags(cflags: str) -> tuple[str, ...]:
    """The words of `--cflags`.

    Raises:
        BadParameter: It is no command line.
    """
    try:
        return tuple(shlex.split(cflags))
    except ValueError as error:
        raise click.BadParameter(f"{cflags!r} is no command line: {error}", param_hint="--cflags") from error


def measured(directory: Path, plan: Plan, name: str, measuring: Measuring) -> Side:
    """A bundle with what is asked for.

    Raises:
        CompileError: It does not run. That its size is not known is no failure.
    """
    code = _code_of(directory, measuring) if measuring.with_code else None
    costs = None if measuring.profile_on is None else _costs_of(directory, plan, name, measuring)
    return Side(plan, name, code, costs)


def _code_of(directory: Path, measuring: Measuring) -> Code:
    """The size of a bundle's C, or why that is not known."""
    from bytewright.execute.code_size import code_size, compiler_of
    from bytewright.execute.description import read_bundle

    try:
        bundle = read_bundle(directory)
        gone = [path for path in bundle.plan.files if path not in bundle.files]
        if gone:
            return Code(None, "", f"{gone[0]} is missing in the bundle")
        with shown_progress(f"compiling the C of {bundle.plan.model}"):
            name = Path(compiler_of(bundle, measuring.compiler)[0]).name
            sizes = code_size(bundle, measuring.flags, measuring.compiler)
    except CompileError as error:
        first = error.diagnostics[0]
        return Code(None, "", "; ".join(filter(None, (first.message, *first.notes[:1], first.help))))
    return Code(sizes, " ".join((name, *measuring.flags)))


def _costs_of(directory: Path, plan: Plan, name: str, measuring: Measuring) -> Costs:
    """What one inference of random input costs by steps, as `profile` says it.

    Raises:
        CompileError: What `profile_bundle` raises.
    """
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.profile.measure import profile_bundle, require_board

    options = BuildOptions(flags=measuring.flags, sources=measuring.sources, compiler=measuring.compiler)
    machine = _machine(plan) if measuring.profile_on == AUTO else measuring.profile_on
    on: Literal["host", "qemu"] = "qemu" if machine == "qemu" else "host"
    if on == "qemu":
        require_board(plan, "--profile-on")
    with shown_progress(f"profiling {name} on {on}"):
        return costs_of(profile_bundle(directory, on=on, options=options))


def _machine(plan: Plan) -> str:
    """Bare machines are emulated; programs of an operating system have no counts of instructions there."""
    return "qemu" if plan.device.isa.is_micro else "host"


def costs_of(profile: Profile) -> Costs:
    """What a profile says of steps, all devices together, and of the whole."""
    own: defaultdict[int, list[Cost]] = defaultdict(list)
    for line in profile.steps:
        own[line.step].append(line.cost)

    def amount(costs: Iterable[Cost]) -> StepAmount:
        found = tuple(costs)
        counted, cycles = sum(cost.amount for cost in found), [profile.cycles(cost) for cost in found]
        scaled = counted if profile.unit.scale == 1 else round(counted / profile.unit.scale, 1)
        return StepAmount(scaled, None if None in cycles else sum(number or 0 for number in cycles))

    board = profile.board if profile.stand_in is None else profile.stand_in.text
    return Costs(
        profile.unit.shown,
        {step: amount(costs) for step, costs in own.items()},
        amount(device.total for device in profile.devices),
        board or str(profile.on),
    )
