"""Runs Vela on a model, where the target has an Ethos-U: what the NPU can do becomes streams, the rest stays as it is.

Vela is an optional package and runs as a program of its own. The same model and options give the same file, so the
bundle is as repeatable as any. Where Vela leaves everything on the CPU, its file has no stream and the model is taken
as it was.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from bytewright.base.programs import execute
from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.names import BorderNames, border_names
from bytewright.frontends.tflite.of_vela import ETHOS_U
from bytewright.frontends.tflite.reader import load_file, read_model, read_models
from bytewright.target.model import Device, Target

TIMEOUT_SECONDS = 600
MEMORY_MODE = "Shared_Sram"  # weights outside of the SRAM that the tensors are in
MIN_ALIGNMENT = 16  # of tensors that the CPU has; Vela takes no less


def npu_of(target: Target) -> Device | None:
    """The target's NPU, if it has one that Vela makes streams for."""
    return next((device for device in target.devices if device.isa.accelerator is not None), None)


def is_of_vela(model: ModelRecord) -> bool:
    """Whether a file has streams of Vela's."""
    return any(operator.kind == ETHOS_U for operator in model.operators)


def content_for(
    path: Path, target: Target, *, wanted: bool, signatures: tuple[str, ...] = ()
) -> tuple[bytes, bool, tuple[BorderNames, ...]]:
    """The bytes of a model for a target, whether they have streams of Vela's, and what inputs and outputs are called.

    Vela leaves the model's signature out of what it makes.

    Args:
        path: The model's file.
        target: What it is for.
        wanted: Whether the NPU's arithmetic is allowed.
        signatures: Names or patterns of those that are asked for, which all have names of their own.

    Raises:
        CompileError: BW204, signatures are asked for that Vela does not compile.
        CompileError: BW501, Vela is needed and missing; BW502, it failed.
    """
    content = load_file(path)
    models = read_models(content, path.name, signatures)
    names = tuple(map(border_names, models))
    if is_of_vela(models[0]):
        return content, True, names
    npu = npu_of(target)
    if npu is None or not wanted:
        return content, False, names
    last = models[-1].signature
    if last is not None and (len(models) > 1 or last.subgraph != 0):
        message = (
            f"signature '{last.key}' of '{path.name}' is not alone in the first subgraph, which Vela compiles"
        )
        raise compile_error("BW204", message, help="--numerics litert-ref, for the CPU alone")
    made = run_vela(path, content, npu)
    has_streams = is_of_vela(read_model(made, path.name))
    return made if has_streams else content, has_streams, names


def run_vela(path: Path, content: bytes, npu: Device) -> bytes:
    """The file that Vela makes of a model. Its scratch is a whole number of cache lines where the NPU has any."""
    if find_spec("ethosu") is None:
        message = f"'{path.name}' is to run on {npu.isa.name}, for which ethos-u-vela makes its streams"
        help_text = (
            'install it: pip install "bytewright[ethos-u]"; or give a file that Vela made; or --numerics litert-ref, '
            "for the CPU alone"
        )
        raise compile_error("BW501", f"{message}, and it is not installed", help=help_text)
    with tempfile.TemporaryDirectory(prefix="bytewright-vela-") as folder:
        source = Path(folder) / "model.tflite"
        source.write_bytes(content)
        command = [sys.executable, "-m", "ethosu.vela", str(source), "--output-dir", folder]
        command += ["--accelerator-config", npu.isa.name, "--memory-mode", MEMORY_MODE]
        command += ["--cpu-tensor-alignment", str(max(MIN_ALIGNMENT, npu.cache_line_bytes))]
        done = execute(command, what="ethos-u-vela", timeout_seconds=TIMEOUT_SECONDS)
        made = Path(folder) / "model_vela.tflite"
        if done.returncode != 0 or not made.is_file():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            message = f"ethos-u-vela failed on '{path.name}' with status {done.returncode}"
            raise compile_error(
                "BW502", message, tuple(lines[-3:]), help="--numerics litert-ref, for the CPU alone"
            )
        return made.read_bytes()
