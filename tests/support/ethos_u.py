"""Models compiled by Vela, and the functional model run on what it wrote, apart from Bytewright's frontend.

Vela runs as a program, once for each model and set of options in a session of tests; its files are kept in a temporary
folder. The file is read with TFLite's own schema here, so that the frontend's reading is not its own reference.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.ethos_u.decode import decode
from bytewright.ethos_u.execute import execute
from bytewright.ethos_u.operations import Operation
from bytewright.ethos_u.payload import parse_payload
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.isa.accelerator import Accelerator
from bytewright.target.isa.find import require_isa
from bytewright.target.registry import load_target

Array = NDArray[Any]
U55, U65 = "ethos-u55-128", "ethos-u65-256"
SHARED, ONLY, DEDICATED = "Shared_Sram", "Sram_Only", "Dedicated_Sram"
SEPARATE = ("--cop-format", "COP2", "--separate-io-regions")
LINE_BYTES = 32
IN_LINES = ("--cpu-tensor-alignment", str(LINE_BYTES))
ADD_ON_CPU = ("--ignore-ops", "ADD")
_DTYPES = {0: "float32", 2: "int32", 3: "uint8", 6: "bool", 7: "int16", 9: "int8"}
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []

needs_vela = pytest.mark.skipif(find_spec("ethosu") is None, reason="ethos-u-vela is not installed")


@cache
def _folder() -> Path:
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="bytewright-vela-"))
    return Path(_FOLDERS[-1].name)


@cache
def vela(content: bytes, accelerator: str = U55, memory_mode: str = SHARED, *options: str) -> bytes:
    """The file that Vela makes of a model."""
    if find_spec("ethosu") is None:
        pytest.skip("ethos-u-vela is not installed")
    key = hashlib.sha256(content + repr((accelerator, memory_mode, options)).encode()).hexdigest()[:16]
    folder = _folder() / key
    folder.mkdir(exist_ok=True)
    source = folder / "model.tflite"
    source.write_bytes(content)
    command = [sys.executable, "-m", "ethosu.vela", str(source), "--output-dir", str(folder)]
    command += ["--accelerator-config", accelerator, "--memory-mode", memory_mode, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"Vela failed: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return (folder / "model_vela.tflite").read_bytes()


@dataclass(frozen=True)
class VelaTensor:
    """A tensor of a file: where in its block it lies, or its bytes."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    data: bytes | None

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class VelaOperator:
    """One `ethos-u` operator."""

    payload: bytes
    read_only: VelaTensor
    scratch: VelaTensor
    scratch_fast: VelaTensor | None
    inputs: tuple[VelaTensor, ...]
    outputs: tuple[VelaTensor, ...]
    separate: bool

    @property
    def accelerator(self) -> Accelerator:
        return parse_payload(self.payload).accelerator

    @property
    def operations(self) -> tuple[Operation, ...]:
        return decode(parse_payload(self.payload).code, self.accelerator)

    @property
    def region_sizes(self) -> dict[int, int]:
        """Bytes of each region that a runtime would lend."""
        sizes = {0: self.read_only.size_bytes, 1: self.scratch.size_bytes}
        if self.scratch_fast is not None:
            sizes[2] = self.scratch_fast.size_bytes
        if self.separate:
            sizes[3] = max(tensor.offset + tensor.size_bytes for tensor in self.inputs)
            sizes[4] = max(tensor.offset + tensor.size_bytes for tensor in self.outputs)
        return sizes

    def run(self, *inputs: Array, seed: int = 0) -> list[Array]:
        """The outputs for these inputs, on memory that holds random bytes before."""
        generator = np.random.default_rng(seed)
        regions = {
            region: generator.integers(0, 256, size, dtype=np.uint8)
            for region, size in self.region_sizes.items()
        }
        regions[0][:] = np.frombuffer(self.read_only.data or b"", np.uint8)
        read_only = regions[0].copy()
        into, out = (regions[3], regions[4]) if self.separate else (regions[1], regions[1])
        for tensor, value in zip(self.inputs, inputs, strict=True):
            into[tensor.offset : tensor.offset + tensor.size_bytes] = np.frombuffer(value.tobytes(), np.uint8)
        execute(self.operations, regions, self.accelerator)
        assert np.array_equal(regions[0], read_only), "the stream wrote its read-only data"
        return [
            out[tensor.offset : tensor.offset + tensor.size_bytes]
            .copy()
            .view(tensor.dtype)
            .reshape(tensor.shape)
            for tensor in self.outputs
        ]


def vela_operators(content: bytes) -> list[VelaOperator]:
    """All `ethos-u` operators of a file."""
    model: Any = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    offsets = _offsets(model)

    def tensor(index: int) -> VelaTensor:
        found = graph.Tensors(index)
        buffer = model.Buffers(found.Buffer())
        data = buffer.DataAsNumpy().tobytes() if found.Buffer() and buffer.DataLength() else None
        shape = tuple(int(extent) for extent in found.ShapeAsNumpy()) if found.ShapeLength() else ()
        offset = offsets[index] if offsets else 0
        return VelaTensor(found.Name().decode(), shape, _DTYPES[found.Type()], offset, data)

    def in_order_of(ports: Any, indices: list[int]) -> tuple[VelaTensor, ...]:
        """The tensors in the order of the model's own ports, where they are its ports."""
        order = [int(index) for index in ports]
        return tuple(tensor(index) for index in (order if sorted(order) == sorted(indices) else indices))

    operators: list[VelaOperator] = []
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        if model.OperatorCodes(operator.OpcodeIndex()).CustomCode() != b"ethos-u":
            continue
        inputs = [int(index) for index in operator.InputsAsNumpy()]
        payload = tensor(inputs[0]).data or b""
        operators.append(
            VelaOperator(
                payload,
                tensor(inputs[1]),
                tensor(inputs[2]),
                tensor(inputs[3]) if inputs[3] != inputs[2] else None,
                in_order_of(graph.InputsAsNumpy(), inputs[4:]),
                in_order_of(graph.OutputsAsNumpy(), [int(index) for index in operator.OutputsAsNumpy()]),
                payload[:4] == b"COP2",
            )
        )
    return operators


def assert_equal_to_tflm(found: Sequence[Array], expected: Sequence[Array]) -> None:
    """Outputs of many inputs equal, but for a step in one value of 10,000.

    Vela multiplies the two scales of a FULLY_CONNECTED in float32, TensorFlow Lite Micro in double precision, so that
    sums next to a tie are rounded this way and that.
    """
    steps = np.concatenate([a.ravel() for a in found]).astype(int) - np.concatenate(
        [b.ravel() for b in expected]
    )
    assert np.abs(steps).max() <= 1
    assert np.count_nonzero(steps) * 10_000 <= steps.size


def num_operators(content: bytes) -> int:
    """Operators of a file, of all kinds."""
    model: Any = tflite.Model.GetRootAs(content, 0)
    return int(model.Subgraphs(0).OperatorsLength())


def _offsets(model: Any) -> list[int]:
    for number in range(model.MetadataLength()):
        entry = model.Metadata(number)
        if entry.Name() == b"OfflineMemoryAllocation":
            data = model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()
            return [int(offset) for offset in np.frombuffer(data, np.int32)[3:]]
    return []


def as_vela_executes(code: bytes, regions: Sequence[NDArray[np.uint8]]) -> None:
    """Carries out a stream, for an evaluator: its regions in order."""
    payload = parse_payload(code)
    execute(decode(payload.code, payload.accelerator), dict(enumerate(regions)), payload.accelerator)


def npu_bundle(folder: Path, content: bytes, accelerator: str = U55, io: Io = Io.CALLER) -> Path:
    """The bundle of a file of Vela's for Corstone-300 with this NPU in it."""
    path = folder / "m.tflite"
    path.write_bytes(content)
    found = load_target("corstone-300-u55")
    npu = replace(found.devices[1], isa=require_isa(accelerator))
    target = replace(found, devices=(found.devices[0], npu))
    write_bundle(compile_model(path, target, Options(numerics=Numerics.TFLM, io=io)).files, folder / "m")
    return folder / "m"
