"""Runs a bundle in QEMU: on its emulated board, or as a program of another machine's Linux in QEMU's user mode.

The program is the one that runs on the host too, linked statically; the counter is the boards', around the call of the
model's run, with some twenty instructions of the harness. Times mean nothing there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.elf.image import read_image
from bytewright.execute.boards.counts import build_plugin, parse_counts, plugin_argument
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle
from bytewright.execute.host import run_program
from bytewright.execute.qemu import run_on_board
from bytewright.execute.result import BatchResult
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array
from bytewright.execute.tools import find_cross_compiler, find_tool
from bytewright.target.isa.isa import Emulator, Isa


def run_in_qemu(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    settings: Settings,
) -> BatchResult:
    """Runs all inferences of a batch where the bundle's target belongs; as `run_on_board`, with its errors.

    Memory traffic is measured on boards alone, stack and flash too.
    """
    isa = bundle.plan.device.isa
    if isa.emulator is None:
        return run_on_board(bundle, batch, settings)
    if bundle.plan.devices:
        names = ", ".join(f"'{name}'" for name in bundle.plan.devices)
        raise compile_error(
            "BW204", f"QEMU's user mode has no devices besides the entry's, and the bundle uses {names}"
        )
    build = replace(settings.build, sanitize=False)
    elsewhere = _UserMode(isa.emulator, _compiler(isa, build))
    return run_program(bundle, batch, replace(settings, build=build), elsewhere)


def _compiler(isa: Isa, options: BuildOptions) -> tuple[str, ...]:
    return (*find_cross_compiler(isa, options.compiler), "-static", "-DHARNESS_COUNTED")


@dataclass(frozen=True, slots=True)
class _UserMode:
    """An emulated processor that runs programs of this machine's operating system."""

    emulator: Emulator
    compiler: Sequence[str]

    def prepare(self, folder: Path, program: Path) -> Sequence[str]:
        qemu = find_tool(self.emulator.program, "qemu-user")
        build_plugin(folder, qemu)
        plugin = plugin_argument(read_image(program).symbols, ())
        return (qemu, "-cpu", self.emulator.processor, "-plugin", plugin)

    def finish(self, folder: Path, result: BatchResult) -> BatchResult:
        text = (folder / "counts.txt").read_text(encoding="utf-8")
        counts = parse_counts(text, read_image(folder / "program").symbols, ()).first
        return replace(
            result, on="qemu", microseconds=(), instructions=counts.instructions, functions=counts.functions
        )
