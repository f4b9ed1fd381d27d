"""The two references that outputs are compared with: LiteRT's reference kernels and TensorFlow Lite Micro.

Both classes hold one interpreter, so that thousands of calls with one model are quick; the functions are for
one call. Neither library knows anything of Bytewright.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflite_writer import YOUNGER_OPERATORS

Array = NDArray[Any]
Model = bytes | Path


def _content(model: Model) -> bytes:
    """The file, its TILEs as of version 2, which the reference kernels have.

    Version 3, of TensorFlow 2.21, only admits another element type. LiteRT's default kernels have it, but their
    convolutions are one step off now and then, and so no witness for the rest of a network.
    """
    import tflite

    content = bytearray(model if isinstance(model, bytes) else model.read_bytes())
    codes: Any = tflite.Model.GetRootAs(content, 0)
    for index in range(codes.OperatorCodesLength()):
        code = codes.OperatorCodes(index)
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if kind == tflite.BuiltinOperator.TILE and code.Version() == 3:
            table = code._tab
            version_slot = 8
            struct.pack_into("<i", content, table.Pos + table.Offset(version_slot), 2)
    return bytes(content)


NOT_IN_BUILTIN_REF = {
    *("CEIL", "ELU", "IF", "LOCAL_RESPONSE_NORMALIZATION", "ROUND", "SEGMENT_SUM", "SUM", "WHILE"),
    *("STABLEHLO_AND", "STABLEHLO_CASE", "STABLEHLO_SHIFT_LEFT"),
}
"""Operators that the reference resolver lacks, or whose kernel there is at fault in LiteRT 2.3.

SUM of int8 gives garbage, and LOCAL_RESPONSE_NORMALIZATION leaves out the last channel of each window.
"""


class LiteRt:
    """LiteRT's reference kernels (`BUILTIN_REF`), one thread, no delegate.

    Of a model with an operator of `NOT_IN_BUILTIN_REF` its default kernels, without delegates, are the witness.

    `run` takes the inputs in the model's order. Where a shape differs from the model's (another batch), the
    input is resized. With `keep_all_tensors` every tensor of the last run can be read by name or index.
    """

    def __init__(self, model: Model, *, keep_all_tensors: bool = False) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        content = _content(model)
        is_there = NOT_IN_BUILTIN_REF.isdisjoint(_operators(content))
        types = OpResolverType
        self._interpreter: Any = Interpreter(
            model_content=content,
            num_threads=1,
            experimental_op_resolver_type=types.BUILTIN_REF
            if is_there
            else types.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=keep_all_tensors,
        )
        self._interpreter.allocate_tensors()
        self._set_shapes()

    def _set_shapes(self) -> None:
        self.inputs: list[dict[str, Any]] = self._interpreter.get_input_details()
        self.outputs: list[dict[str, Any]] = self._interpreter.get_output_details()

    def run(self, *inputs: Array) -> list[Array]:
        """The model's outputs for these inputs."""
        assert len(inputs) == len(self.inputs), f"{len(inputs)} inputs for {len(self.inputs)}"
        for array, detail in zip(inputs, self.inputs, strict=True):
            if tuple(detail["shape"]) != array.shape:
                self._interpreter.resize_tensor_input(detail["index"], array.shape)
                self._interpreter.allocate_tensors()
                self._set_shapes()
        for array, detail in zip(inputs, self.inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        return [
            self._interpreter.get_tensor(detail["index"])
            if 0 not in detail["shape"]  # the interpreter gives none without elements
            else np.zeros(detail["shape"], detail["dtype"])
            for detail in self._interpreter.get_output_details()
        ]

    def tensor(self, name_or_index: str | int) -> Array:
        """A tensor of the last run (needs `keep_all_tensors` unless it is an input or output)."""
        if isinstance(name_or_index, int):
            return self._interpreter.get_tensor(name_or_index)
        for detail in self._interpreter.get_tensor_details():
            if detail["name"] == name_or_index:
                return self._interpreter.get_tensor(detail["index"])
        raise KeyError(name_or_index)


class TfLiteMicro:
    """TensorFlow Lite Micro's portable kernels, through its Python interpreter."""

    def __init__(self, model: Model, *, arena_bytes: int | None = None) -> None:
        from tflite_micro.python.tflite_micro import runtime

        content = _content(model)
        arena = arena_bytes if arena_bytes is not None else max(1 << 20, 10 * len(content))
        self._interpreter: Any = runtime.Interpreter.from_bytes(content, arena_size=arena)
        subgraph = _subgraph(content)
        self.num_inputs: int = subgraph.InputsLength()
        self.num_outputs: int = subgraph.OutputsLength()

    def run(self, *inputs: Array) -> list[Array]:
        """The model's outputs for these inputs, in the model's own shapes."""
        assert len(inputs) == self.num_inputs, f"{len(inputs)} inputs for {self.num_inputs}"
        for index, array in enumerate(inputs):
            # numpy's ascontiguousarray would make one axis of none.
            self._interpreter.set_input(np.asarray(array, order="C"), index)
        self._interpreter.invoke()
        # get_output hands out a view of the arena, which the next run overwrites.
        return [np.array(self._interpreter.get_output(index)) for index in range(self.num_outputs)]


def _subgraph(content: bytes) -> Any:
    import tflite

    return tflite.Model.GetRootAs(content, 0).Subgraphs(0)


def _operators(content: bytes) -> set[str]:
    """The kinds of a model's operators."""
    import tflite

    named = {**YOUNGER_OPERATORS, **vars(tflite.BuiltinOperator)}.items()
    names = {number: name for name, number in named if name.isupper()}
    model = tflite.Model.GetRootAs(content, 0)
    codes = [model.OperatorCodes(index) for index in range(model.OperatorCodesLength())]
    return {names.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "") for code in codes}


def run_litert(model: Model, inputs: Sequence[Array], *, tensors: Sequence[str] | None = None) -> list[Array]:
    """One run of LiteRT's reference kernels: the outputs, or the named `tensors` instead of them."""
    interpreter = LiteRt(model, keep_all_tensors=tensors is not None)
    outputs = interpreter.run(*inputs)
    return outputs if tensors is None else [np.array(interpreter.tensor(name)) for name in tensors]


def run_tflm(model: Model, inputs: Sequence[Array]) -> list[Array]:
    """One run of TensorFlow Lite Micro: the outputs."""
    return TfLiteMicro(model).run(*inputs)
