"""Profiles a bundle: on its board under QEMU by instructions, on the host by a clock between the kernels."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Unpack

from bytewright.diagnostics import compile_error
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import run_program
from bytewright.execute.options import MOST_PROFILED, ProfileOptions, check_repetitions
from bytewright.execute.profile.of_board import profile_of_board
from bytewright.execute.profile.of_host import profile_of_host
from bytewright.execute.profile.result import Profile
from bytewright.execute.qemu import run_on_board
from bytewright.execute.result import Machine
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import TIMEOUT_SECONDS

# Of instructions the second inference is shown, of times the median one.
REPETITIONS: dict[Machine, int] = {"host": 31, "qemu": 2}


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
    repeat = REPETITIONS[on] if asked is None else asked
    settings = Settings(
        how.get("options") or BuildOptions(),
        repeat,
        how.get("timeout_seconds", TIMEOUT_SECONDS),
        by_step=True,
    )
    check_repetitions("a profile can run an inference", repeat, MOST_PROFILED)
    _check_macro(bundle)
    if on == "qemu":
        isa = bundle.plan.device.isa
        if isa.emulator is not None:
            raise compile_error(
                "BW204",
                f"steps are counted on boards, and a bundle for {isa.name} runs in QEMU's user mode",
                help="profile it on the host: --on host",
            )
        return profile_of_board(bundle.plan, run_on_board(bundle, batch, settings))
    plain = replace(settings, build=replace(settings.build, sanitize=False))
    return profile_of_host(bundle.plan, run_program(bundle, batch, plain))


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
