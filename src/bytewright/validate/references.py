"""What outputs are compared with: LiteRT's reference kernels, TensorFlow Lite Micro, LiteRT's default, or a file.

None of them knows anything of Bytewright. The packages are optional.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.tensors import Array
from bytewright.frontends.registry import FileEntry, entries_of
from bytewright.record.entries import PlannedTensor
from bytewright.record.plan import Plan


class Witness(StrEnum):
    """The kernels that a reference computes with."""

    LITERT_REF = "litert-ref"
    TFLM = "tflm"
    LITERT_DEFAULT = "litert-default"


class Reference(Protocol):
    """Outputs of samples."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def run(self, number: int, inputs: Sequence[Array]) -> list[Array] | None:
        """The outputs of a sample, in the model's order; None if it has none for this one.

        Args:
            number: Which sample it is.
            inputs: Its inputs, in the model's order.

        Raises:
            CompileError: BW502: the reference does not run it.
        """
        ...


# Operators that LiteRT's reference kernels lack, or whose int8 kernel there reads bytes as unsigned (SUM, LiteRT 2.3).
_NOT_IN_REFERENCE_KERNELS = {"CEIL", "ELU", "ROUND", "SUM"}
_PACKAGES = {
    Witness.LITERT_REF: ("ai_edge_litert.interpreter", "ai-edge-litert"),
    Witness.LITERT_DEFAULT: ("ai_edge_litert.interpreter", "ai-edge-litert"),
    Witness.TFLM: ("tflite_micro.python.tflite_micro.runtime", "tflite-micro"),
}


def _package(witness: Witness) -> Any:
    """The module of a witness.

    Raises:
        CompileError: BW501 where it is not installed.
    """
    module, package = _PACKAGES[witness]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise compile_error(
            "BW501",
            f"to compare with {witness.value}, the package {package} is needed, and it cannot be imported",
            notes=(str(error),),
            help=f"install it: pip install {package}; or give the outputs that are wanted: --reference FILE.npy",
        ) from None


def signature_calls(content: bytes, plan: Plan) -> tuple[FileEntry, ...]:
    """The signatures that a bundle was compiled of, each of which a run calls; none where it is the first subgraph."""
    front = "--signature "
    wanted = tuple(option.removeprefix(front) for option in plan.options if option.startswith(front))
    found = entries_of(content, plan.model, wanted) if wanted else ()
    return () if [entry.subgraph for entry in found] == [0] else found


def _tensor_of(interpreter: Any, detail: Any) -> Array:
    """A tensor of an interpreter, which gives none without elements."""
    if 0 in detail["shape"]:
        return np.zeros(detail["shape"], detail["dtype"])
    return interpreter.get_tensor(detail["index"])


class LiteRt:
    """LiteRT, one thread: its reference kernels without delegates, or the interpreter as it is by default.

    A run is one of the first subgraph, or calls signatures, one after the other.
    """

    def __init__(
        self,
        content: bytes,
        witness: Witness,
        calls: Sequence[FileEntry] = (),
        *,
        keeps_tensors: bool = False,
    ) -> None:
        package = _package(witness)
        self._calls = calls
        self._content, self._keeps_tensors, self._package = content, keeps_tensors, package
        types = package.OpResolverType
        self.name = witness.value
        self._allocated_for: tuple[tuple[int, ...], ...] | None = None
        if witness is Witness.LITERT_DEFAULT:
            self._interpreter = self._new(types.AUTO)
            return
        # Of every model the default kernels are there; they say which operators it has.
        without_delegates = self._new(types.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        operators = {str(operator["op_name"]) for operator in without_delegates._get_ops_details()}
        lacking = sorted(operators & _NOT_IN_REFERENCE_KERNELS)
        if lacking:
            self.name = f"{witness.value} (default kernels without delegates, for {', '.join(lacking)})"
        self._interpreter = without_delegates if lacking else self._new(types.BUILTIN_REF)

    def _new(self, resolver: Any) -> Any:
        try:
            return self._package.Interpreter(
                model_content=self._content,
                num_threads=1,
                experimental_op_resolver_type=resolver,
                experimental_preserve_all_tensors=self._keeps_tensors,
            )
        except (RuntimeError, ValueError) as error:
            raise _failed(self.name, error) from error

    def run(self, number: int, inputs: Sequence[Array]) -> list[Array]:
        """The outputs; an input of another shape than the file's is resized."""
        del number
        interpreter = self._interpreter
        if self._calls:
            return self._run_signatures(inputs)
        try:
            shapes = tuple(array.shape for array in inputs)
            if shapes != self._allocated_for:
                for detail, shape in zip(interpreter.get_input_details(), shapes, strict=True):
                    interpreter.resize_tensor_input(detail["index"], shape)
                interpreter.allocate_tensors()
                self._allocated_for = shapes
            for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise _failed(self.name, error) from error
        return [_tensor_of(interpreter, detail) for detail in interpreter.get_output_details()]

    def _run_signatures(self, inputs: Sequence[Array]) -> list[Array]:
        found: list[Array] = []
        given = iter(inputs)
        try:
            for call in self._calls:
                runner = self._interpreter.get_signature_runner(call.key)
                made = runner(**{name: next(given) for name in call.inputs})
                found += [np.array(made[name]) for name in call.outputs]
        except (RuntimeError, ValueError, KeyError) as error:
            raise _failed(self.name, error) from error
        return found

    def tensors(self) -> dict[str, Array]:
        """The tensors of the last run by their names in the file, those whose name is not used twice."""
        found: dict[str, Array] = {}
        twice: set[str] = set()
        for subgraph in {call.subgraph: None for call in self._calls} or (0,):
            for detail in self._interpreter.get_tensor_details(subgraph_index=subgraph):
                name = str(detail["name"])
                twice |= {name} & found.keys()
                try:
                    found[name] = self._interpreter.get_tensor(detail["index"], subgraph_index=subgraph)
                except ValueError:  # it has no values: of an operator that a delegate took
                    continue
        return {name: array for name, array in found.items() if name not in twice}


class TfLiteMicro:
    """TensorFlow Lite Micro's portable kernels."""

    name = Witness.TFLM.value

    def __init__(self, content: bytes, num_outputs: int) -> None:
        package = _package(Witness.TFLM)
        self._num_outputs = num_outputs
        arena_bytes = max(1 << 20, 10 * len(content))
        try:
            self._interpreter: Any = package.Interpreter.from_bytes(content, arena_size=arena_bytes)
        except (RuntimeError, ValueError) as error:
            raise _failed(self.name, error) from error

    def run(self, number: int, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, in the file's own shapes."""
        del number
        try:
            for index, array in enumerate(inputs):
                self._interpreter.set_input(np.ascontiguousarray(array), index)
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise _failed(self.name, error) from error
        # Each is a view of the arena, which the next run overwrites.
        return [np.array(self._interpreter.get_output(index)) for index in range(self._num_outputs)]


class StoredOutputs:
    """Outputs of a file, by the number of the sample; it has those of all samples that were given."""

    def __init__(self, name: str, plan: Plan, outputs: Sequence[Array], num_samples: int) -> None:
        self.name = name
        self._outputs: list[Array] = []
        for tensor, array in zip(plan.outputs, outputs, strict=True):
            shape = (num_samples, *tensor.shape)
            # An axis of one element may be missing.
            is_alike = [n for n in array.shape if n != 1] == [n for n in shape if n != 1]
            if not is_alike or array.dtype != tensor.dtype.numpy:
                wanted = f"{tensor.dtype.numpy}{list(shape)}"
                raise compile_error(
                    "BW205",
                    f"'{name}' must hold output '{tensor.name}' of {num_samples} samples, {wanted}; "
                    f"it holds {array.dtype}{list(array.shape)}",
                )
            self._outputs.append(array.reshape(shape))

    def run(self, number: int, inputs: Sequence[Array]) -> list[Array]:
        """What the file has for this sample."""
        del inputs
        return [array[number] for array in self._outputs]


class OverWindow:
    """The whole network on the window that ends with a sample, beside one that is given the frames of the sample.

    There is nothing to compare with before a window is full. A network that pads the first frame pads that of every
    window, so that only the first window is one of the stream.
    """

    def __init__(self, whole: LiteRt | TfLiteMicro, plan: Plan, stream: ir.Streamed) -> None:
        self.name = whole.name
        self._whole, self._plan, self._stream = whole, plan, stream
        self._frames: list[Sequence[Array]] = []

    def run(self, number: int, inputs: Sequence[Array]) -> list[Array] | None:
        """The outputs of the window; of those over time, the last rows. Samples come in their order."""
        stream = self._stream
        most = -(-stream.num_frames // stream.num_new)
        self._frames = [*self._frames, inputs][-most:]
        spare = (number + 1) * stream.num_new - stream.num_frames
        if spare < 0 or (stream.is_padded and spare):
            return None
        both = zip(self._plan.inputs, zip(*self._frames, strict=True), strict=True)
        outputs = self._whole.run(number, [self._window(tensor.name, arrays) for tensor, arrays in both])
        pairs = zip(self._plan.outputs, outputs, strict=True)
        return [self._last(tensor, array) for tensor, array in pairs]

    def _window(self, name: str, arrays: Sequence[Array]) -> Array:
        axis = self._stream.input_axes.get(name)
        if axis is None:
            return arrays[-1]
        window = _last_rows(np.concatenate(arrays, axis=axis), axis, self._stream.num_frames)
        unread = [(0, self._stream.num_left_out if each == axis else 0) for each in range(window.ndim)]
        return np.pad(window, unread)

    def _last(self, tensor: PlannedTensor, array: Array) -> Array:
        axis = self._stream.output_axes.get(tensor.name)
        return array if axis is None else _last_rows(array, axis, tensor.shape[axis])


def _last_rows(array: Array, axis: int, count: int) -> Array:
    return np.ascontiguousarray(np.split(array, [array.shape[axis] - count], axis=axis)[1])


def reference_of(witness: Witness, content: bytes, plan: Plan) -> LiteRt | TfLiteMicro | OverWindow:
    """The reference of some kernels for the bytes of a model's file.

    Raises:
        CompileError: BW204 where TensorFlow Lite Micro would have to run signatures, BW501 where its package is
            missing, BW502 if it refuses the model.
    """
    calls = signature_calls(content, plan)
    if calls and witness is Witness.TFLM:
        message = "of a file with several signatures tflm runs the first subgraph alone"
        raise compile_error("BW204", message, help="--reference litert-ref, or --reference FILE.npy")
    is_micro = witness is Witness.TFLM
    found = TfLiteMicro(content, len(plan.outputs)) if is_micro else LiteRt(content, witness, calls)
    return found if plan.stream is None else OverWindow(found, plan, plan.stream)


def _failed(name: str, error: Exception) -> CompileError:
    text = re.sub(r"\s+", " ", str(error)).strip()
    return compile_error("BW502", f"{name} does not run the model: {text}")
