"""A model in TensorFlow Lite Micro with CMSIS-NN on an emulated board: what its arena takes, and what a run costs."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micro_build import compiler, library, library_flags, sources
from numpy.typing import NDArray

from bytewright.elf.image import read_image
from bytewright.execute.boards.counts import build_plugin, parse_counts, plugin_argument

_CODE_BYTES, _STACK_BYTES = 4 << 20, 64 << 10
_SCRIPT = """\
MEMORY {{ vectors (rx) : ORIGIN = {vectors:#x}, LENGTH = 1K
          code (rwx) : ORIGIN = {code:#x}, LENGTH = {code_bytes:#x}
          data (rwx) : ORIGIN = {data:#x}, LENGTH = {data_bytes:#x} }}
ENTRY(reset)
SECTIONS {{
  .vectors : {{ KEEP(*(.vectors)) }} > vectors
  .text : {{ *(.text*) *(.rodata*) . = ALIGN(8);
    __preinit_array_start = .; KEEP(*(.preinit_array)) __preinit_array_end = .;
    __init_array_start = .; KEEP(*(.init_array*)) __init_array_end = .; *(.fini_array*) }} > code
  .ARM.exidx : {{ *(.ARM.exidx*) }} > code
  .model : {{ *(.model) }} > data
  .data : {{ *(.data*) }} > data
  .bss (NOLOAD) : {{ *(.bss*) *(COMMON) . = ALIGN(8); end = .; . += {stack_bytes}; __stack_top = .; }} > data
}}
"""
# Vectors, code and data: where the processor fetches them, and memory that has room for whatever a model is.
_PLACES = {
    "mps3-an547": (0x10000000, 0x60000000, 0x61000000, 64 << 20),
    "mps2-an386": (0x00000000, 0x00000400, 0x21000000, 16 << 20),
}


class MicroError(Exception):
    """TensorFlow Lite Micro does not run a model; what it says, its last lines."""


@dataclass(frozen=True, slots=True)
class MicroRun:
    """What TensorFlow Lite Micro did.

    Attributes:
        arena_bytes: What it says that it uses of the arena, inputs and outputs in it.
        instructions: Of each run.
        outputs: Of each run, in one array of bytes.
    """

    arena_bytes: int
    instructions: Sequence[int]
    outputs: Sequence[bytes]


def run_micro(board: str, content: bytes, runs: Sequence[Sequence[NDArray[Any]]], folder: Path) -> MicroRun:
    """Runs a model.

    Args:
        board: An emulated board.
        content: The model's file.
        runs: All inputs of each run, in the model's order.
        folder: Where the library of each board is, or is built.

    Raises:
        subprocess.CalledProcessError: A compiler failed.
        MicroError: The model did not run.
    """
    with tempfile.TemporaryDirectory() as temporary:
        own = Path(temporary)
        (own / "model.tflite").write_bytes(content)
        _link(board, own, library(board, folder))
        image = read_image(own / "image.elf")
        build_plugin(own, "qemu-system-arm")
        data = b"".join(array.tobytes() for inputs in runs for array in inputs)
        (own / "inputs.bin").write_bytes(struct.pack("<I", len(runs)) + data)
        absent = [
            word for device in ("display", "monitor", "serial", "nic") for word in (f"-{device}", "none")
        ]
        command = ["qemu-system-arm", "-M", board, *absent, "-kernel", "image.elf"]
        command += ["-plugin", plugin_argument(image.symbols, [])]
        command += ["-semihosting-config", "enable=on,target=native"]
        done = subprocess.run(command, check=False, cwd=own, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
            raise MicroError(f"TensorFlow Lite Micro ended with {done.returncode}:\n{said}")
        counts = parse_counts((own / "counts.txt").read_text(), image.symbols, [])
        written = (own / "outputs.bin").read_bytes()
    (arena_bytes,), rest = struct.unpack("<I", written[:4]), written[4:]
    size = len(rest) // len(runs)
    return MicroRun(
        arena_bytes,
        counts.first.instructions,
        [rest[first : first + size] for first in range(0, len(rest), size)],
    )


def _link(board: str, own: Path, archive: Path) -> None:
    vectors, code, data, data_bytes = _PLACES[board]
    (own / "board.ld").write_text(
        _SCRIPT.format(
            vectors=vectors, code=code, code_bytes=_CODE_BYTES - 0x400, data=data, data_bytes=data_bytes,
            stack_bytes=_STACK_BYTES,
        )
    )  # fmt: skip
    (own / "model.S").write_text(
        '.section .model, "a"\n.balign 16\n.global model_content\nmodel_content:\n.incbin "model.tflite"\n'
    )
    root = sources()
    assert root is not None
    command = [*compiler(board, root, True), "-O2", "-nostartfiles", "-T", "board.ld", "--specs=nosys.specs"]
    command += ["-Wl,--gc-sections,--no-warn-rwx-segments", *library_flags(board, root)]
    command += ["model.S", "-Wl,-u,vectors", str(archive)]
    command += ["-lm", "-o", "image.elf"]
    subprocess.run(command, cwd=own, check=True)
