"""Profiles a bundle: on its board under QEMU by instructions, on the host or a board by a clock between the kernels."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Unpack

from bytewright.diagnostics import compile_error
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import run_program
from bytewright.execute.machine import SerialPort
from bytewright.execute.options import MOST_PROFILED, ProfileOptions, check_repetitions
from bytewright.execute.profile.of_board import profile_of_board
from bytewright.execute.profile.of_clock import profile_of_clock
from bytewright.execute.profile.result import Profile, Unit
from bytewright.execute.qemu import run_on_board
from bytewright.execute.serial.run import run_on_serial
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import TIMEOUT_SECONDS
from bytewright.record.plan import Plan

# Of instructions the second inference is shown, of times and cycles the median one.
REPETITIONS = {"host": 31, "qemu": 2}
ON_SERIAL = 3


def profile_bundle(
    directory: str | PathLike[str],
    inputs: Sequence[Array] | None = None,
    *,
    seed: int | None = None,
    **how: Unpack[ProfileOptions],
) -> Profile:
    """Says what each step of an inference costs; arguments and errors are those of `run_bundle`."""
    bundle = read_bundle(directory)
    batch = [random_inputs(bundle.plan, seed or 0) if inputs is None else inputs]
    on = how.get("on", "host")
    asked = how.get("repeat")
    usual = ON_SERIAL if isinstance(on, SerialPort) else REPETITIONS[on]
    repeat = usual if asked is None else asked
    settings = Settings(
        how.get("options") or BuildOptions(),
        repeat,
        how.get("timeout_seconds", TIMEOUT_SECONDS),
        by_step=True,
    )
    check_repetitions("a profile can run an inference", repeat, MOST_PROFILED)
    _check_macro(bundle)
    if isinstance(on, SerialPort):
        return _profile_on_serial(bundle, batch, on, settings)
    if on == "qemu":
        require_board(bundle.plan)
        return profile_of_board(bundle.plan, run_on_board(bundle, batch, settings))
    plain = replace(settings, build=replace(settings.build, sanitize=False))
    return profile_of_clock(bundle.plan, run_program(bundle, batch, plain), Unit.NANOSECONDS)


def require_board(plan: Plan, option: str = "--on") -> None:
    """Refuses a bundle whose instructions nobody counts in QEMU; `option` is that which says where it runs.

    Raises:
        CompileError: BW204.
    """
    isa = plan.device.isa
    if isa.emulator is not None:
        raise compile_error(
            "BW204",
            f"steps are counted on boards, and a bundle for {isa.name} runs in QEMU's user mode",
            help=f"profile it on the host: {option} host",
        )


def _profile_on_serial(
    bundle: Bundle, batch: Sequence[Sequence[Array]], port: SerialPort, settings: Settings
) -> Profile:
    """The profile by a board's own counter.

    Raises:
        CompileError: BW204 for a program without a counter, or without marks between the kernels.
    """
    result = run_on_serial(bundle, batch, port, settings)
    if not result.cycles:
        raise compile_error(
            "BW204",
            f"the board on '{port.address}' has no counter of cycles, or it ran over between two steps",
            help="give the port of its program a function 'cycles'",
        )
    if bundle.plan.steps and not any(run.marks for run in result.timed_runs):
        model = bundle.plan.model
        raise compile_error(
            "BW204",
            f"the program of the board on '{port.address}' does not say when a step begins",
            help=f"compile {bundle.names.entry_source} with -include {model}_serial_steps.h",
        )
    return profile_of_clock(bundle.plan, result, Unit.CYCLES)


def _check_macro(bundle: Bundle) -> None:
    """Older bundles lack the macro between the kernels where no step uses a workspace."""
    names = bundle.names
    text = (bundle.directory / names.entry_source).read_text(encoding="utf-8")
    if bundle.plan.steps and f" {names.step}(0" not in text:
        raise compile_error(
            "BW204",
            f"{names.entry_source} of model '{bundle.plan.model}' has no {names.step} between the kernels",
            help="compile the model again",
        )
