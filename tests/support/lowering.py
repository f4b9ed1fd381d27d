"""Small graphs by hand, and the check that lowering keeps their meaning.

draft = Draft()
x = draft.parameter("x", (1, 4), I8)
y = draft.node("y", Clamp(-3, 5), x)
module = draft.module(y)
assert_same_meaning(module)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.compiler.run_passes import PASSES
from bytewright.graph.inline_calls import inline_calls
from bytewright.ir.data import TensorData
from bytewright.ir.graph import Constant, Function, Node, Operation, Value
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import Access, PrimFunc
from bytewright.ir.types import DType, Extent, TensorType
from bytewright.ir.verify.stages import verify
from bytewright.ir.where import Where
from bytewright.lower.fold_constant_channels import fold_constant_channels
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.arithmetic.multiplier import quantize_multiplier
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.rescale import Rescale
from bytewright.place.plan_devices import plan_devices
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.evaluation import evaluate_function
from support.random_draft import FLOAT_TOLERANCE

Array = NDArray[Any]
TARGETS = ("host", "mps3-an547")


class Draft:
    """A graph under construction; names are given, types are inferred."""

    def __init__(self) -> None:
        self.parameters: list[Value] = []
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}

    def parameter(self, name: str, shape: Sequence[Extent], dtype: DType) -> str:
        """An input."""
        value = Value(name, TensorType(tuple(shape), dtype))
        self.parameters.append(value)
        self.types[name] = value.type
        return name

    def constant(self, name: str, values: Any, dtype: DType) -> str:
        """A constant."""
        constant = Constant(name, TensorData.from_array(np.asarray(values), dtype))
        self.constants.append(constant)
        self.types[name] = constant.data.type
        return name

    def node(self, name: str, operation: Operation, *inputs: str) -> str:
        """An operator with one result."""
        (result,) = operation.infer(tuple(self.types[i] for i in inputs))
        self.nodes.append(Node(operation, inputs, (Value(name, result),), Where("hand.tflite", name)))
        self.types[name] = result
        return name

    def rescale(self, name: str, value: str, factors: Sequence[float] | float, zero_point: int = 0) -> str:
        """A rescale to i8 that rounds twice, by one factor or one for each channel."""
        pairs = [quantize_multiplier(float(factor)) for factor in np.atleast_1d(np.asarray(factors))]
        multiplier = self.constant(f"{name}_multiplier", [p.multiplier for p in pairs], DType.I32)
        shift = self.constant(f"{name}_shift", [p.exponent for p in pairs], DType.I8)
        operation = Rescale(Rounding.DOUBLE_ROUND, 0, zero_point, 0, DType.I8)
        return self.node(name, operation, value, multiplier, shift)

    def module(self, *results: str) -> Module:
        """The module, with a port for each parameter and result."""
        function = Function("main", tuple(self.parameters), tuple(self.nodes), results)
        inputs = tuple(Port(value.name, value.type) for value in self.parameters)
        outputs = tuple(Port(f"out_{i}", self.types[name]) for i, name in enumerate(results))
        return Module("hand", (function,), tuple(self.constants), inputs=inputs, outputs=outputs)


def lowered(module: Module, target_name: str = "host", *, fold: bool = True) -> Module:
    """The module after the stages `place` and `lower`, verified."""
    target = load_target(target_name)
    for name, changed in lower_step_by_step(module, target, fold=fold):
        verify(changed, PASSES[name], target)
        module = changed
    return module


def lower_step_by_step(
    module: Module, target: Target, *, fold: bool = True
) -> Generator[tuple[str, Module], None, None]:
    """The module after each pass of the stages `place` and `lower`, with the name of the pass."""
    yield "plan_devices", (module := plan_devices(module, target))
    yield "inline_calls", (module := inline_calls(module))
    if fold:
        yield "fold_pad", (module := fold_pad(module))
        yield "fold_constant_channels", (module := fold_constant_channels(module, target))
    yield "lower_graph", (module := lower_graph(module, target))
    yield "share_kernels", share_kernels(module)


def random_inputs(module: Module, seed: int) -> list[Array]:
    """An array for each input; seeds 0 and 1 give the extremes of int8."""
    generator = np.random.default_rng(seed)
    arrays: list[Array] = []
    for port in module.inputs:
        shape, dtype = port.type.fixed_shape, port.type.dtype
        if dtype is DType.F32:
            arrays.append((generator.integers(-64, 65, shape) / 8).astype(np.float32))
        elif seed in (0, 1):
            arrays.append(np.full(shape, dtype.bounds[seed], dtype.numpy))
        else:
            low, high = dtype.bounds
            arrays.append(generator.integers(low, high + 1, shape).astype(dtype.numpy))
    return arrays


def run_main(module: Module, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of the module's entry, by the evaluator."""
    reads = [p for p in module.main.buffer_parameters if p.access is Access.READ]
    arguments = {p.buffer.name: array for p, array in zip(reads, inputs, strict=True)}
    results = Evaluator(module).run(module.main.name, arguments)
    return [results[p.buffer.name] for p in module.main.buffer_parameters if p.access is not Access.READ]


def assert_same_meaning(
    module: Module, target_name: str = "host", inputs: Sequence[Sequence[Array]] | None = None
) -> Module:
    """The lowered entry computes what the numpy references of the graph do; returns the lowered module."""
    kernels = lowered(module, target_name)
    for arrays in inputs if inputs is not None else [random_inputs(module, seed) for seed in range(4)]:
        values = evaluate_function(module.graph, module.constants, tuple(arrays))
        found = run_main(kernels, arrays)
        for name, own in zip(module.graph.results, found, strict=True):
            assert_close(own, values[name], name)
    return kernels


def assert_close(found: Array, wanted: Array, name: str) -> None:
    """Equal; for floats within 1e-5 of the largest."""
    assert found.shape == wanted.shape, name
    assert found.dtype == wanted.dtype, name
    if wanted.dtype == np.float32:
        worst = np.abs(found.astype(np.float64) - wanted).max(initial=0.0)
        assert worst <= FLOAT_TOLERANCE * np.abs(wanted).max(initial=0.0), name
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def kernel_of(module: Module, operator: str) -> PrimFunc:
    """The kernel of the operator with this name in `where`."""
    return next(kernel for kernel in module.kernels if kernel.where.operator == operator)
