"""Models as several releases of Vela compile them: a tiny network for each, in files that tests have at hand.

    python tools/vela_files.py tests/data/vela

writes the files anew, with the programs that `scripts/velas.sh` installs. Vela's releases and its two compilation
cores write streams that differ: in the zero points of 32-bit numbers, in where lookup tables lie, in how a softmax is
put together. `Compiler` says how each is called; releases before 4 know memory modes from a configuration file alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tflite_writer import ModelBuilder

ROOT = Path(__file__).resolve().parent.parent
U55 = ("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256")
U65 = ("ethos-u65-256", "ethos-u65-512")
MODES = ("Sram_Only", "Shared_Sram", "Dedicated_Sram")


@dataclass(frozen=True)
class Compiler:
    """A release of Vela's and one of its cores.

    Attributes:
        program: The command.
        options: What it is told beside accelerator and memory mode.
        needs_systems: Whether it has to be told a system, from its own configuration file.
    """

    name: str
    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs_systems: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def is_installed(self) -> bool:
        return Path(self.program[0]).exists()

    def compile(self, content: bytes, accelerator: str, mode: str, *options: str) -> bytes:
        """The file that it makes of a model."""
        chosen = (*self.options, *options)
        if self.needs_systems:
            system = (
                "Ethos_U55_High_End_Embedded" if accelerator.startswith("ethos-u55") else "Ethos_U65_High_End"
            )
            chosen += ("--config", "Arm/vela.ini", "--system-config", system)
        with tempfile.TemporaryDirectory(prefix="bytewright-vela-") as folder:
            source = Path(folder) / "model.tflite"
            source.write_bytes(content)
            command = [*self.program, str(source), "--output-dir", folder, *chosen]
            command += ["--accelerator-config", accelerator, "--memory-mode", mode]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{self.name} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
            return (Path(folder) / "model_vela.tflite").read_bytes()


def _installed(version: str) -> tuple[str, ...]:
    return (str(ROOT / "build" / "velas" / version / "bin" / "vela"),)


_PINNED = (sys.executable, "-m", "ethosu.vela")
COMPILERS = (
    Compiler("3.11", _installed("3.11"), needs_systems=True),
    Compiler("4.2", _installed("4.2")),
    Compiler("5.2-legacy", _PINNED, ("--debug-force-legacy-core",)),
    Compiler("5.2", _PINNED),
)
FILES = (("ethos-u55-128", "Shared_Sram"), ("ethos-u65-256", "Dedicated_Sram"))
"""What there is a file for, of each compiler."""


def modes_of(accelerator: str) -> tuple[str, ...]:
    """The memory modes that Vela has for an accelerator: a U55 has no DRAM for a dedicated SRAM to be beside."""
    return MODES if accelerator in U65 else MODES[:2]


def file_name(compiler: Compiler, accelerator: str, mode: str) -> str:
    return f"{compiler.name}_{accelerator}_{mode.lower()}.tflite"


def tiny_network() -> bytes:
    """A convolution, a depthwise one, their sum, a fully connected layer and a softmax, int8, with random weights."""
    generator, builder = np.random.default_rng(20), ModelBuilder("tiny network for Vela")

    def constant(name: str, shape: tuple[int, ...], scale: float, dimension: int = 0) -> int:
        scales = np.full(shape[dimension], scale, np.float32)
        values = generator.integers(-127, 128, shape, dtype=np.int8)
        return builder.constant(name, values, scale=scales, quantized_dimension=dimension)

    def bias(name: str, channels: int, scale: float) -> int:
        values = generator.integers(-500, 500, channels, dtype=np.int32)
        return builder.constant(name, values, scale=np.full(channels, scale, np.float32))

    x = builder.tensor("x", [1, 6, 5, 2], "int8", scale=0.05, zero_point=-7)
    a = builder.tensor("a", [1, 6, 5, 4], "int8", scale=0.06, zero_point=-128)
    b = builder.tensor("b", [1, 6, 5, 4], "int8", scale=0.08, zero_point=11)
    c = builder.tensor("c", [1, 6, 5, 4], "int8", scale=0.09, zero_point=-20)
    flat = builder.tensor("flat", [1, 120], "int8", scale=0.09, zero_point=-20)
    logits = builder.tensor("logits", [1, 7], "int8", scale=0.11, zero_point=14)
    y = builder.tensor("y", [1, 7], "int8", scale=1 / 256, zero_point=-128)
    options: dict[str, Any] = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    first = [x, constant("w0", (4, 3, 3, 2), 0.006), bias("b0", 4, 0.05 * 0.006)]
    builder.operator("CONV_2D", first, [a], activation="RELU", **options)
    second = [a, constant("w1", (1, 3, 3, 4), 0.007, 3), bias("b1", 4, 0.06 * 0.007)]
    builder.operator("DEPTHWISE_CONV_2D", second, [b], depth_multiplier=1, **options)
    builder.operator("ADD", [a, b], [c])
    shape = builder.constant("shape", np.array([1, 120], np.int32))
    builder.operator("RESHAPE", [c, shape], [flat], new_shape=[1, 120])
    weights = builder.constant("w2", generator.integers(-127, 128, (7, 120), dtype=np.int8), scale=0.0015)
    last = builder.constant("b2", generator.integers(-500, 500, 7, dtype=np.int32), scale=0.09 * 0.0015)
    builder.operator("FULLY_CONNECTED", [flat, weights, last], [logits])
    builder.operator("SOFTMAX", [logits], [y], beta=1.0)
    return builder.build(inputs=[x], outputs=[y])


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = tiny_network()
    for compiler in COMPILERS:
        for accelerator, mode in FILES:
            path = folder / file_name(compiler, accelerator, mode)
            path.write_bytes(compiler.compile(content, accelerator, mode))
            print(f"{path}: {path.stat().st_size} B")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
