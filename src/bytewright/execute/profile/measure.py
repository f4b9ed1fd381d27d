"""Profiles a bundle: on its board under QEMU by instructions, on the host by a clock between the kernels."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TypedDict, Unpack

from bytewright.diagnostics import compile_error
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import run_program
from bytewright.execute.profile.of_board import profile_of_board
from bytewright.execute.profile.of_host import profile_of_host
from bytewright.execute.profile.result import Profile
from bytewright.execute.qemu import run_on_board
from bytewright.execute.result import Machine
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import TIMEOUT_SECONDS

MOST_REPETITIONS = 10_000  # the times of all steps are kept of each
# Of instructions the second inference is shown, of times the median one.
REPETITIONS: dict[Machine, int] = {"host": 31, "qemu": 2}


class ProfileOptions(TypedDict, total=False):
    """How to profile; every key may be left out.

    Attributes:
        on: The host, or the board of the bundle's target under QEMU; else the host.
        repeat: How many inferences run: the one with the median time is shown, or the last one on a board; else 31, or
            2 on a board.
        options: How to compile.
        timeout_seconds: Limit of the run; else `TIMEOUT_SECONDS`.
    """

    on: Machine
    repeat: int | None
    options: BuildOptions | None
    timeout_seconds: float


def profile_bundle(
    directory: str | PathLike[str],
    inputs: Sequence[Array] | None = None,
    *,
    seed: int | None = None,
    **how: Unpack[ProfileOptions],
) -> Profile:
    """Says what each step of an inference costs.

    Args:
        directory: A bundle.
        inputs: One array for each input of the model, of its shape and type; `None` for random inputs.
        seed: Seed of random inputs; 0 if not given.
        how: The rest.

    Raises:
        CompileError: BW204, BW205, BW207, BW402, BW501 or BW502.
    """
    bundle = read_bundle(directory)
    batch = [random_inputs(bundle.plan, seed or 0) if inputs is None else inputs]
    on = how.get("on", "host")
    asked = how.get("repeat")
    repeat = REPETITIONS[on] if asked is None else asked
    timeout_seconds = how.get("timeout_seconds", TIMEOUT_SECONDS)
    options = how.get("options") or BuildOptions()
    if not 1 <= repeat <= MOST_REPETITIONS:
        limits = f"1 to {MOST_REPETITIONS} times"
        raise compile_error("BW204", f"a profile can run an inference {limits}, not {repeat}")
    _check_macro(bundle)
    if on == "qemu":
        isa = bundle.plan.device.isa
        if isa.emulator is not None:
            raise compile_error(
                "BW204",
                f"steps are counted on boards, and a bundle for {isa.name} runs in QEMU's user mode",
                help="profile it on the host: --on host",
            )
        result = run_on_board(
            bundle, batch, repeat=repeat, options=options, timeout_seconds=timeout_seconds, by_step=True
        )
        return profile_of_board(bundle.plan, result)
    options = replace(options, sanitize=False)
    result = run_program(
        bundle, batch, repeat=repeat, options=options, timeout_seconds=timeout_seconds, by_step=True
    )
    return profile_of_host(bundle.plan, result)


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
