"""Opens the batch of a model that was imported for one sample: the leading extent becomes a symbol.

Legal where every operator treats samples apart, which the types say: each tensor that depends on an input has the
batch as its leading extent and nowhere else. An operator that would mix samples (a mean over the batch, a reshape that
moves it) is refused. The plan is then made for the largest batch, and smaller ones run in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.ops.data import Gather, Reshape
from bytewright.ops.interpolation import TflSoftmax16
from bytewright.ops.places import CumulativeSum, GatherNd
from bytewright.ops.roots import TflL2Normalization
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax

BATCH = "batch"
WITHOUT_BATCH = "leave out --batch-max: each run then computes one sample"


def open_batch(module: ir.Module, batch_max: int) -> ir.Module:
    """Returns the module with a leading extent `batch[1..batch_max]` in place of 1.

    Args:
        module: A graph in which each function is run at one place, once.
        batch_max: The largest batch.

    Raises:
        CompileError: BW111 if an input has no leading extent of 1, an operator mixes samples, an output depends on no
            input, or a tensor gets more elements than kernels can count.
    """
    if module.state:
        names = ", ".join(f"'{port.name}'" for port in module.state)
        message = f"the model keeps {names} between runs, of one stream: its batch cannot be opened"
        raise compile_error("BW111", message, help=WITHOUT_BATCH, where=module.name)
    function = module.graph
    types = module.graph_types
    symbol = ir.Symbol(unique_name(BATCH, set(types)), 1, batch_max)
    opening = _Opening(symbol, types, {each.name: each for each in module.functions})
    collector = Collector()
    parameters: list[ir.Value] = []
    for value in function.parameters:
        with collector.catch():
            parameters.append(opening.parameter(module.name, value))
    collector.stop_if_any()
    nodes: list[ir.Node] = []
    for node in _without_detours(function):
        with collector.catch():
            nodes.append(opening.node(node))
    collector.stop_if_any()
    for port, name in zip(module.outputs, function.results, strict=True):
        if symbol not in opening.types[name].shape:
            message = f"output '{port.name}' depends on no input, so it has no batch"
            raise compile_error("BW111", message, help=WITHOUT_BATCH, where=module.name)
    opened = ir.Function(function.name, tuple(parameters), tuple(nodes), function.results)
    functions = (*(opening.functions[each.name] for each in module.functions[:-1]), opened)
    values = [value for each in functions for value in each.parameters]
    values += [value for each in functions for node in each.nodes for value in node.outputs]
    _check_sizes(module, values, symbol)
    return replace(
        module,
        functions=functions,
        inputs=_ports(module.inputs, [value.name for value in parameters], opening.types),
        outputs=_ports(module.outputs, function.results, opening.types),
    )


def _without_detours(function: ir.Function) -> tuple[ir.Node, ...]:
    """The nodes, where what is reshaped twice takes its last shape at once.

    A layer on rows of all samples reshapes to them and back; between the two stands no shape that has the batch as its
    leading extent, though every row belongs to one sample.
    """
    sources: dict[str, str] = {}
    direct: list[ir.Node] = []
    for node in function.nodes:
        if isinstance(node.operation, Reshape):
            (source,) = node.inputs
            source = sources.get(source, source)
            sources[node.outputs[0].name] = source
            direct.append(replace(node, inputs=(source,)))
        else:
            direct.append(node)
    used = {*function.results, *(name for node in direct for name in node.inputs)}
    return tuple(node for node in direct if any(value.name in used for value in node.outputs))


def _check_sizes(module: ir.Module, values: list[ir.Value], symbol: ir.Symbol) -> None:
    """Every tensor of the largest batch has at most `MAX_ELEMENTS` elements."""
    largest = max(values, key=lambda value: value.type.num_elements)
    num_elements = largest.type.num_elements
    if symbol in largest.type.shape and num_elements > ir.MAX_ELEMENTS:
        raise compile_error(
            "BW111",
            f"with a batch of {symbol.upper}, '{largest.name}' has {num_elements} elements; kernels count up to "
            f"{ir.MAX_ELEMENTS}",
            help=f"--batch-max {ir.MAX_ELEMENTS // (num_elements // symbol.upper)}",
            where=module.name,
        )


def _ports(
    ports: tuple[ir.Port, ...], names: Iterable[str], types: dict[str, ir.TensorType]
) -> tuple[ir.Port, ...]:
    return tuple(replace(port, type=types[name]) for port, name in zip(ports, names, strict=True))


def _is_over_samples(operation: ir.Operation, first: ir.TensorType) -> bool:
    """Whether an operator that makes samples of samples makes each of several."""
    match operation:
        case CumulativeSum(axis=axis):
            return axis == 0
        case GatherNd() | Gather(axis=0):
            return not isinstance(first.shape[0], int)
        case TflSoftmax() | TflLogSoftmax() | TflSoftmax16() | TflL2Normalization():
            return len(first.shape) == 1
        case _:
            return False


@dataclass(slots=True)
class _Opening:
    """One run of the pass; `types` and `functions` are the new ones as far as it went."""

    symbol: ir.Symbol
    types: dict[str, ir.TensorType]
    functions: dict[str, ir.Function]

    def parameter(self, model: str, value: ir.Value) -> ir.Value:
        shape = value.type.shape
        if not shape or shape[0] != 1:
            raise compile_error(
                "BW111",
                f"input '{value.name}' has shape [{ir.format_shape(shape)}]: its batch cannot be opened, because its "
                "leading extent is not 1",
                help=WITHOUT_BATCH,
                where=model,
            )
        return self._defined(replace(value, type=self._opened(value.type)))

    def node(self, node: ir.Node) -> ir.Node:
        """The node on operands with an open batch; one that depends on no input stays as it is."""
        operands = tuple(self.types[name] for name in node.inputs)
        if isinstance(node.operation, ir.ControlOperation):
            return self._control(node, node.operation, operands)
        if not any(self.symbol in operand.shape for operand in operands):
            return node
        wanted = tuple(self._opened(value.type) for value in node.outputs)
        operation = node.operation.with_batch(self.symbol)
        if _is_over_samples(operation, operands[0]):
            raise self._mixed(node, "it is over all of them")
        try:
            found = operation.infer(operands)
        except ValueError as error:
            raise self._mixed(node, str(error)) from error
        for result, expected in zip(found, wanted, strict=True):
            if result.shape != expected.shape:
                raise self._mixed(node, f"it makes [{ir.format_shape(result.shape)}] of them")
        outputs = tuple(
            self._defined(replace(value, type=type_))
            for value, type_ in zip(node.outputs, wanted, strict=True)
        )
        return replace(node, operation=operation, outputs=outputs)

    def _control(
        self, node: ir.Node, operation: ir.ControlOperation, operands: tuple[ir.TensorType, ...]
    ) -> ir.Node:
        """An operator that runs functions: these are opened for what they are given."""
        signatures: list[ir.Signature] = []
        for name in operation.callees:
            function = self.functions[name]
            given = operands[len(operands) - len(function.parameters) :]
            parameters = tuple(
                self._defined(replace(value, type=replace(value.type, shape=type_.shape)))
                for value, type_ in zip(function.parameters, given, strict=True)
            )
            nodes = tuple(self.node(inner) for inner in function.nodes)
            self.functions[name] = replace(function, parameters=parameters, nodes=nodes)
            results = tuple(self.types[result] for result in function.results)
            signatures.append(ir.Signature(tuple(value.type for value in parameters), results))
        try:
            found = operation.infer_from(tuple(signatures), operands)
        except ValueError as error:
            raise self._mixed(node, str(error)) from error
        outputs = tuple(
            self._defined(replace(value, type=replace(value.type, shape=type_.shape)))
            for value, type_ in zip(node.outputs, found, strict=True)
        )
        return replace(node, outputs=outputs)

    def _opened(self, type_: ir.TensorType) -> ir.TensorType:
        shape: tuple[ir.Extent, ...] = (self.symbol, *type_.shape[1:])
        return replace(type_, shape=shape)

    def _defined(self, value: ir.Value) -> ir.Value:
        self.types[value.name] = value.type
        return value

    def _mixed(self, node: ir.Node, reason: str) -> CompileError:
        return compile_error(
            "BW111",
            f"{node.operation.name} does not keep the samples of a batch apart: {reason}",
            help=WITHOUT_BATCH,
            where=str(node.where),
        )
