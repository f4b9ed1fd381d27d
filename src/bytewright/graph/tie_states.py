"""Makes states of inputs and outputs that belong together: what a run gives is what the next one is given.

A network that leaves what it knows to the application, as `(x, h) -> (y, h)`, becomes one that keeps it itself. The
first run is given zeros: the zero point, where the input is quantised. An output that is quantised otherwise than its
input is quantised again, as QUANTIZE does, unless every value stays as it is. The two may differ in extents of 1. The
only output of a model stays one.
"""

from dataclasses import replace

import numpy as np

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.where import Where
from bytewright.ops.arithmetic.multiplier import Affine, Multiplier, quantize_multiplier
from bytewright.ops.arithmetic.numerics import Numerics, Rounding
from bytewright.ops.arithmetic.tables import quantize
from bytewright.ops.data import Reshape
from bytewright.ops.quantization import Table
from bytewright.ops.rescale import Rescale
from bytewright.options import StatePair


def tie_states(module: ir.Module, pairs: tuple[StatePair, ...]) -> ir.Module:
    """Returns the module with a state in place of each pair, behind those that it has.

    Raises:
        CompileError: BW204, for names that the model does not have, or twice, and pairs that are not of one shape and
            type; all at once.
    """
    if module.entries:
        raise compile_error(
            "BW204",
            "--state is for graphs: a program allocates what survives runs itself",
            help='leave out --state, and write: allocate NAME : buffer<...> {io="state"}',
        )
    collector = Collector()
    chosen: list[tuple[int, int]] = []
    for pair in pairs:
        with collector.catch():
            position = _position(module.inputs, pair.input, f"--state {pair}", "input")
            other = _position(module.outputs, pair.output, f"--state {pair}", "output")
            _require_alike(module.inputs[position], module.outputs[other], f"--state {pair}")
            taken = position in [first for first, _ in chosen]
            if taken:
                raise compile_error("BW204", f"input '{pair.input}' becomes a state twice: --state {pair}")
            chosen.append((position, other))
    collector.stop_if_any()
    return _tied(module, chosen)


def _position(ports: tuple[ir.Port, ...], name: str, option: str, what: str) -> int:
    names = [port.name for port in ports]
    if name not in names:
        listed = ", ".join(f"'{each}'" for each in names)
        message = f"{option}: the model has no {what} '{name}'; it has {listed}"
        raise compile_error(
            "BW204", message, help="give an input and an output by their names: --state INPUT=OUTPUT"
        )
    return names.index(name)


def _require_alike(given: ir.Port, result: ir.Port, option: str) -> None:
    if (_extents(given), given.type.dtype) != (_extents(result), result.type.dtype):
        kinds = (str(ir.TensorType(port.type.shape, port.type.dtype)) for port in (given, result))
        raise compile_error("BW204", f"{option}: the input is {' and the output '.join(kinds)}")
    is_known = [port.quantization is not None for port in (given, result)]
    if given.type.dtype is not ir.DType.F32 and is_known[0] != is_known[1]:
        raise compile_error("BW204", f"{option}: one of the two is quantised, and the other is not")
    if given.type.dtype is ir.DType.U8 and given.quantization != result.quantization:
        raise compile_error("BW204", f"{option}: the two are uint8 of different scales or zero points")


def _extents(port: ir.Port) -> tuple[ir.Extent, ...]:
    """Its shape without extents of 1."""
    return tuple(extent for extent in port.type.shape if extent != 1)


def _tied(module: ir.Module, chosen: list[tuple[int, int]]) -> ir.Module:
    """The module with these inputs and outputs, by their numbers, as states."""
    graph, tying = module.graph, _Tying(module)
    num_inputs, num_outputs = len(module.inputs), len(module.outputs)
    inputs, outputs = [first for first, _ in chosen], [second for _, second in chosen]
    results = [tying.result(module.inputs[first], second) for first, second in chosen]
    kept_inputs = [number for number in range(num_inputs) if number not in inputs]
    kept_outputs = [number for number in range(num_outputs) if number not in outputs] or [*range(num_outputs)]
    changed = replace(
        graph,
        parameters=(
            *(graph.parameters[number] for number in kept_inputs),
            *graph.parameters[num_inputs:],
            *(graph.parameters[number] for number in inputs),
        ),
        nodes=(*graph.nodes, *tying.nodes),
        results=(
            *(graph.results[number] for number in kept_outputs),
            *graph.results[num_outputs:],
            *results,
        ),
    )
    return replace(
        module,
        functions=(*module.functions[:-1], changed),
        constants=(*module.constants, *tying.constants),
        inputs=tuple(module.inputs[number] for number in kept_inputs),
        outputs=tuple(module.outputs[number] for number in kept_outputs),
        state=(*module.state, *(_state(module.inputs[number]) for number in inputs)),
    )


class _Tying:
    """What comes between outputs and the inputs that they become."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Constant] = []
        self.names = {*ir.value_types(module.graph, module.constants)}

    def result(self, given: ir.Port, number: int) -> str:
        """The name of what an output is as an input."""
        name, port = self.module.graph.results[number], self.module.outputs[number]
        levels, factor = _levels(given, port), _factor(given, port)
        if levels is not None:
            name = self._added(Table(), (name, self._constant(f"{name}/levels", levels)), port.type)
        elif factor is not None:
            values = ((factor.multiplier, ir.DType.I32), (factor.exponent, ir.DType.I8))
            scales = (
                self._constant(f"{name}/scale", ir.TensorData.from_array(np.array([value]), dtype))
                for value, dtype in values
            )
            operation = Rescale(Rounding.DOUBLE_ROUND, 0, 0, 0, port.type.dtype)
            name = self._added(operation, (name, *scales), port.type)
        if port.type.shape != given.type.shape:
            kind = ir.TensorType(given.type.shape, given.type.dtype)
            name = self._added(Reshape(kind.fixed_shape), (name,), kind)
        return name

    def _constant(self, name: str, data: ir.TensorData) -> str:
        self.constants.append(ir.Constant(unique_name(name, self.names), data))
        return self.constants[-1].name

    def _added(self, operation: ir.Operation, inputs: tuple[str, ...], kind: ir.TensorType) -> str:
        value = ir.Value(unique_name(f"{inputs[0]}/kept", self.names), kind)
        where = Where(self.module.name, tensor=inputs[0])
        self.nodes.append(ir.Node(operation, inputs, (value,), where))
        return value.name


def _state(port: ir.Port) -> ir.Port:
    """What was an input, which begins as zeros: real ones."""
    if port.quantization is None or port.quantization.zero_point == 0:
        return port
    shape, dtype = port.type.fixed_shape, port.type.dtype
    zeros = np.full(shape, port.quantization.zero_point, dtype.numpy)
    return replace(port, initial=ir.TensorData.from_array(zeros, dtype))


def _levels(given: ir.Port, result: ir.Port) -> ir.TensorData | None:
    """What each int8 value of an output is as one of the input; None where all stay as they are."""
    first, second = given.quantization, result.quantization
    if first is None or second is None or given.type.dtype is not ir.DType.I8:
        return None
    source, target = (Affine(each.scale, each.zero_point) for each in (second, first))
    low, high = ir.DType.I8.bounds
    levels = np.clip(quantize(source, target, Numerics.LITERT_REF), low, high)
    same = bool((levels == np.arange(low, high + 1)).all())
    return None if same else ir.TensorData.from_array(levels, ir.DType.I8)


def _factor(given: ir.Port, result: ir.Port) -> Multiplier | None:
    """What takes an int16 value of an output to one of the input, whose zero points are 0; None where it is 1.

    Raises:
        CompileError: BW204, 32 bits do not hold a value times its left shift.
    """
    first, second = given.quantization, result.quantization
    if first is None or second is None or given.type.dtype is not ir.DType.I16 or first == second:
        return None
    factor = quantize_multiplier(second.scale / first.scale)
    if -ir.DType.I16.bounds[0] << factor.left_shift > ir.DType.I32.bounds[1]:
        raise compile_error(
            "BW204", f"the output's scale {second.scale} is too large for the input's, {first.scale}"
        )
    return factor
