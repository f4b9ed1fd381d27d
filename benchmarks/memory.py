"""`make bench-memory`: bytes that models need, beside the least that they could, and what it costs in code and time.

The models of ../shared/models and two MobileNetV2 with random weights, with default options, and inputs and outputs
with the caller and in the workspace. Bounds are those of `memory_bounds.py`. Everything but the seconds is exact, and
the same on every machine. The tables go to standard output, and with `--write` between the marks in
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools")]

from common import INT8_MODELS, MODELS, has_models, show  # noqa: E402
from memory_bounds import Network, overlap, plain, read_network, rows  # noqa: E402

from bytewright.bundle.write import write_bundle  # noqa: E402
from bytewright.compiler.pipeline import compile_model  # noqa: E402
from bytewright.execute.run import run_bundle  # noqa: E402
from bytewright.ir.border import Io  # noqa: E402
from bytewright.options import Options  # noqa: E402
from bytewright.record.plan import Plan  # noqa: E402
from bytewright.target.model import Role  # noqa: E402
from bytewright.target.registry import load_target  # noqa: E402
from mobilenet_v2 import mobilenet_v2  # noqa: E402

MOBILENETS = {"MobileNetV2 1.0 224": ("1.0", 224), "MobileNetV2 0.35 144": ("0.35", 144)}
TARGETS = ("host", "mps3-an547")
TITLES = {
    Io.CALLER: "Inputs and outputs with the caller, the default:",
    Io.WORKSPACE: "Inputs and outputs in the workspace:",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one model costs besides memory.

    Attributes:
        instructions: Of one inference on the M55.
        code_bytes: Of the bundle's flash there, what is neither weights nor other parameters.
        compile_seconds: Processor time of the command `compile`, by target.
    """

    instructions: int | None
    code_bytes: int | None
    compile_seconds: Sequence[float]


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*INT8_MODELS, *MOBILENETS]
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(every)}; all if none")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    parser.add_argument("--no-board", action="store_true", help="leave out the emulated board")
    arguments = parser.parse_args()
    if not has_models():
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        files = {name: _file(name, Path(temporary)) for name in arguments.models or every}
        parts = [table for io in (Io.CALLER, Io.WORKSPACE) for table in (TITLES[io], memory_table(files, io))]
        costs = {name: cost(path, has_board=not arguments.no_board) for name, path in files.items()}
    text = "\n\n".join([*parts, "What it costs:", cost_table(costs)])
    show(text, "memory", write=arguments.write)
    return 0


def _file(name: str, folder: Path) -> Path:
    """The model's file; a MobileNet is written first."""
    if name in INT8_MODELS:
        return MODELS / INT8_MODELS[name]
    width, size = MOBILENETS[name]
    path = folder / f"mobilenet_v2_{width.replace('.', '')}_{size}.tflite"
    path.write_bytes(mobilenet_v2(width, size))
    return path


def memory_table(files: dict[str, Path], io: Io) -> str:
    """Bytes of workspace and planned stack, beside the bounds."""
    head = (
        "| model | "
        + " | ".join(f"{target}: workspace + stack, B" for target in TARGETS)
        + " | plain | overlap | overlap + rows | and sums |"
    )
    lines = [head, "|---" * (len(TARGETS) + 5) + "|"]
    for name, path in files.items():
        plans = [compile_model(path, load_target(target), Options(io=io)).plan for target in TARGETS]
        cells = [f"{plan.workspace_bytes:,} + {stack_bytes(plan):,}" for plan in plans]
        cells += [f"{bound:,}" for bound in bounds(read_network(path.read_bytes()), io)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def bounds(network: Network, io: Io) -> list[int]:
    """Plain, with overlap, with rows, with rows and sums."""
    with_ports = io is Io.WORKSPACE
    return [
        plain(network, with_ports=with_ports),
        overlap(network, with_ports=with_ports),
        rows(network, with_ports=with_ports),
        rows(network, with_ports=with_ports, sums=True),
    ]


def stack_bytes(plan: Plan) -> int:
    """Arrays that the generated C has on its stacks, as planned."""
    return sum(stack.planned_bytes for stack in plan.stack.values())


def cost(path: Path, *, has_board: bool) -> Cost:
    """Figures of one model; of a MobileNet no instructions, which take too long to count."""
    seconds = [_compile_seconds(path, target) for target in TARGETS]
    if not has_board or path.parent != MODELS:
        return Cost(None, None, seconds)
    with tempfile.TemporaryDirectory() as temporary:
        bundle = Path(temporary) / "bundle"
        compiled = compile_model(path, load_target("mps3-an547"))
        write_bundle(compiled.files, bundle)
        result = run_bundle(bundle, on="qemu")
    flash, parameters = result.details.flash_bytes, compiled.plan.pools_of(Role.PARAMETERS)
    assert flash is not None
    return Cost(result.instructions, flash - sum(pool.used_bytes for pool in parameters), seconds)


def _compile_seconds(path: Path, target: str) -> float:
    """Processor seconds of the command, from its start to its end."""
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-c", "from bytewright.cli.main import main; main()"]
        arguments = ["compile", str(path), "-o", f"{temporary}/bundle", "--target", target]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost_table(costs: dict[str, Cost]) -> str:
    """The figures as a Markdown table."""
    heads = " | ".join(f"compile for {target}, s" for target in TARGETS)
    lines = [f"| model | M55 instructions | code on M55, B | {heads} |", "|---" * (len(TARGETS) + 3) + "|"]
    for name, found in costs.items():
        seconds = " | ".join(f"{value:.2f}" for value in found.compile_seconds)
        board = " | ".join("-" if n is None else f"{n:,}" for n in (found.instructions, found.code_bytes))
        lines.append(f"| {name} | {board} | {seconds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
