"""From a .tflite file to a module with one graph function.

The batch of a model with an open one is fixed to 1. Shapes are computed again from the inputs and compared with
what the file declares. Operators on which nothing depends are left out.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, TypedDict, Unpack

import numpy as np

from bytewright import ir
from bytewright.base.c_names import model_name
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import Collector, CompileError, Diagnostic, compile_error
from bytewright.frontends.tflite.bounds import Bounds
from bytewright.frontends.tflite.computed import Computation, UnknownValueError
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.flatbuffer import DamagedError
from bytewright.frontends.tflite.graph_builder import (
    DTYPES,
    GraphBuilder,
    Kept,
    quantization_inside,
    quantization_of,
)
from bytewright.frontends.tflite.kernels_of import require_kernel
from bytewright.frontends.tflite.limits import check_cost
from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord
from bytewright.frontends.tflite.names import BorderNames, PortName, border_names
from bytewright.frontends.tflite.needed import needed_nodes
from bytewright.frontends.tflite.reader import load_file, read_model
from bytewright.frontends.tflite.shape_arithmetic import FOLDED, FoldedOperator
from bytewright.frontends.tflite.survey import MOST_PLACES, survey
from bytewright.frontends.tflite.table import OPERATORS
from bytewright.frontends.tflite.unsigned import UNSIGNED, recentred
from bytewright.frontends.tflite.variables import ASSIGN, READ, touched_variables
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import WIDE


class ImportOptions(TypedDict, total=False):
    """What a graph is made with.

    Attributes:
        name: What the model is called; the file's stem as a C identifier unless given.
        numerics: The kernel set that it is compiled for.
        batch_max: The largest batch, if `open_batch` follows; the module itself is for one sample.
        names: Those of inputs and outputs, where they are not in the file.
        bounds: Of turns of loops, and of sizes; who gives them asks afterwards whether there are such.
        expands_weights: Whether integer weights under float activations are widened to float32.
        keeps_weights: Whether weights that a DEQUANTIZE widens stay integers.
        recomputed: Products that layers may form again in every run, where their last inputs are smaller than what they
            make of them, over those that they form anyway.
        is_opened: Whether `open_axis` follows.
        entry: The graph's function.
    """

    name: str | None
    numerics: Numerics
    batch_max: int | None
    names: BorderNames
    bounds: Bounds
    expands_weights: bool
    keeps_weights: bool
    recomputed: float
    is_opened: bool
    entry: str


def import_tflite(path: Path, *, signature: str | None = None, **how: Unpack[ImportOptions]) -> ir.Module:
    """The module of a .tflite file; of several signatures, that of one.

    Raises:
        CompileError: As of `import_content`.
    """
    return import_content(load_file(path), path.name, signature=signature, **how)


def import_content(
    content: bytes, file_name: str, *, signature: str | None = None, **how: Unpack[ImportOptions]
) -> ir.Module:
    """As `import_tflite`, from the bytes of a file, which diagnostics call `file_name`.

    Raises:
        CompileError: BW101 to BW111, and BW204 for the signature; all that can be found in one go is reported together.
    """
    return import_record(read_model(content, file_name, signature), file_name, **how)


def import_record(model: ModelRecord, file_name: str, **how: Unpack[ImportOptions]) -> ir.Module:
    """As `import_content`, of one signature of a file that was read."""
    numerics = how.get("numerics", Numerics.LITERT_REF)
    survey(model, file_name, numerics=numerics, expands_weights=how.get("expands_weights", False))
    check_cost(model, file_name)
    graph = _begun(model, file_name, numerics, how)
    names = how.get("names") or border_names(model)
    parameters = _parameters(graph, names.inputs)
    with np.errstate(all="ignore"):
        graph.initial = _initial_values(graph)
        _convert_operators(graph)
    outputs = _results(graph, names.outputs)
    kept = _kept(graph, outputs)
    results = (*outputs, *(state.current for state in kept))
    taken = (*parameters, *(state.parameter for state in kept))
    # What follows from a size may be numbers that are known here, with no operator between.
    sizes = (each.value for each in graph.bounds.counted.values())
    nodes = needed_nodes(graph.nodes, (*results, *sizes))
    entry = ir.Function(how.get("entry", "main"), taken, nodes, results)
    functions = _reached(entry, graph.functions)
    used = {name for function in functions for name in _read(function)}
    if graph.is_opened:
        used |= _computed(graph)
    return ir.Module(
        name=how.get("name") or model_name(Path(file_name).stem),
        functions=functions,
        constants=tuple(ir.Constant(name, data) for name, data in graph.constants.items() if name in used),
        inputs=tuple(
            ir.Port(port.name, value.type, value.quantization, port.stated)
            for port, value in zip(names.inputs, parameters, strict=True)
        ),
        outputs=tuple(
            ir.Port(port.name, graph.types[result], quantization_of(model.tensors[index]), port.stated)
            for port, result, index in zip(names.outputs, outputs, model.outputs, strict=True)
        ),
        state=tuple(map(_state, kept)),
        numerics=numerics.value,
        sources=_sources(graph),
    )


def _begun(model: ModelRecord, file_name: str, numerics: Numerics, how: ImportOptions) -> GraphBuilder:
    return GraphBuilder(
        model,
        file_name,
        numerics,
        _has_infinities(model),
        how.get("batch_max"),
        bounds=how.get("bounds") or Bounds(),
        expands_weights=how.get("expands_weights", False),
        keeps_weights=how.get("keeps_weights", False),
        recomputed=how.get("recomputed", 0.0),
        is_opened=how.get("is_opened", False),
        assigned=touched_variables((model, *model.beside), ASSIGN),
        before=touched_variables(model.beside, ASSIGN),
        convert=_convert_operators,
    )


def _sources(graph: GraphBuilder) -> FrozenMapping[str, ir.SourceTensor]:
    """The tensors of the file that constants and values were, by their names in the graph."""
    named = (*graph.rearranged.items(), *((name, index) for index, name in graph.values.items()))
    tensors = ((name, graph.model.tensors[index]) for name, index in named)
    return FrozenMapping(
        {name: ir.SourceTensor(tensor.name, quantization_inside(tensor)) for name, tensor in tensors}
    )


def _kept(graph: GraphBuilder, outputs: tuple[str, ...]) -> tuple[Kept, ...]:
    """What survives runs and is read by one, of this signature or another."""
    elsewhere = touched_variables(graph.model.beside, READ)
    read = {*outputs, *(name for node in graph.nodes for name in node.inputs)}
    read.update(state.current for state in graph.kept.values())
    return tuple(
        state for key, state in graph.kept.items() if state.parameter.name in read or key in elsewhere
    )


def _state(kept: Kept) -> ir.Port:
    """What survives runs, as the header documents it."""
    value, initial = kept.parameter, kept.initial
    stated = None if kept.stated == value.name else kept.stated
    is_zero = initial is None or not any(initial.content)
    return ir.Port(
        value.name, value.type, value.quantization, stated, None if is_zero else initial, kept.note
    )


def _initial_values(graph: GraphBuilder) -> dict[str, ir.TensorData]:
    """What variables are before the first run: the subgraphs that run once are computed here.

    Raises:
        CompileError: BW107, for a value that is not known.
    """
    found: dict[str, ir.TensorData] = {}
    for record in graph.model.called_once:
        once = GraphBuilder(
            record,
            graph.file_name,
            graph.numerics,
            graph.has_infinities,
            assigned=touched_variables((record,), ASSIGN),
            initial=found,
            convert=_convert_operators,
        )
        _convert_operators(once)
        for name, kept in once.kept.items():
            found[str(name)] = once.constants.get(kept.current) or _assigned(once, str(name), kept)
    return found


def _assigned(once: GraphBuilder, name: str, kept: Kept) -> ir.TensorData:
    """What a subgraph that runs once leaves in a variable by its loops and branches.

    Raises:
        CompileError: BW107, that depends on what the variable was before, or takes too long to compute.
    """

    def charge(work: int) -> None:
        once.folding_budget -= work
        if once.folding_budget < 0:
            refuse("of too many numbers to compute it at import")

    def refuse(reason: str) -> NoReturn:
        advice = "convert the model with variables that begin as constants"
        message = f"what runs once leaves in variable '{name}' is {reason}"
        raise compile_error("BW107", message, help=advice, where=once.file_name)

    computation = Computation(once.constants.get, once.functions, charge)
    try:
        (array,) = computation.compute(once.nodes, [kept.current], {})
    except UnknownValueError:
        refuse("what it was before, in a branch that does not assign it")
    return ir.TensorData.from_array(array, kept.parameter.type.dtype)


def _has_infinities(model: ModelRecord) -> bool:
    """Whether a float32 or float16 constant of the model is infinite or not a number."""
    types = {"FLOAT32": "<f4", "FLOAT16": "<f2"}
    used = {
        (t.buffer, types[t.element_type]) for t in model.tensors if t.element_type in types and t.has_values
    }
    return not all(np.isfinite(np.frombuffer(model.buffers[index], kind)).all() for index, kind in used)


def _parameters(graph: GraphBuilder, ports: tuple[PortName, ...]) -> tuple[ir.Value, ...]:
    """The model's inputs as the function's parameters, an open batch set to 1."""
    parameters: list[ir.Value] = []
    for port, index in zip(ports, graph.model.inputs, strict=True):
        tensor = graph.model.tensors[index]
        shape = tensor.shape
        if tensor.signature[:1] == (-1,):
            graph.has_open_batch = True
            shape = (1, *shape[1:])
        dtype = ir.DType.U8 if tensor.element_type == UNSIGNED else DTYPES[tensor.element_type]
        value = ir.Value(port.name, ir.TensorType(shape, dtype), quantization_of(tensor))
        graph.types[port.name] = value.type
        graph.values[index] = recentred(graph, port.name, tensor, ir.DType.I8)
        parameters.append(value)
    return tuple(parameters)


def _convert_operators(graph: GraphBuilder) -> None:
    """Converts operator after operator; errors of all are reported together."""
    found = Collector()
    failed: set[int] = set()
    for operator in graph.model.operators:
        if failed.isdisjoint(operator.operands):
            with found.catch():
                _convert(graph, operator)
                continue
        # It could not be converted, or an operand is of one that could not.
        failed.update(operator.outputs)
    if found.diagnostics:
        raise CompileError(_first_of_each(found.diagnostics))


def _first_of_each(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The first ten places of each cause; the last of them says how many more there are."""
    of_cause: dict[tuple[str, str], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        cause = re.sub(r"[-+.0-9e]*[0-9]", "0", re.sub(r"'[^']*'", "''", diagnostic.message))
        of_cause.setdefault((diagnostic.code, cause), []).append(diagnostic)
    shown: list[Diagnostic] = []
    for places in of_cause.values():
        shown += places[:MOST_PLACES]
        rest = len(places) - MOST_PLACES
        if rest > 0:
            shown[-1] = replace(shown[-1], notes=(*shown[-1].notes, f"and {rest} more places of this kind"))
    return shown


def _convert(graph: GraphBuilder, operator: OperatorRecord) -> None:
    """Converts one operator; numbers that its arithmetic cannot work with are the model's fault."""
    row, folded = OPERATORS.get(operator.kind), FOLDED.get(operator.kind)
    conversion = Conversion(graph, operator, row.options if row is not None else "")
    try:
        if folded is not None and (row is None or _is_folded(conversion, folded)):
            conversion.options_type = folded.options
            folded.compute(conversion)
        else:
            assert row is not None  # or the survey had refused it
            require_kernel(conversion, row.types, row.absent, row.input_at)
            row.convert(conversion)
        conversion.finish()
    except DamagedError as error:
        conversion.fail(str(error), code="BW103")
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        conversion.fail(str(error).removeprefix(f"{operator.kind}: "))


def _is_folded(at: Conversion, folded: FoldedOperator) -> bool:
    """Whether an operator that has a converter is computed instead: on values that are known, but for activations.

    These the converter computes, by its own arithmetic, which takes no shape that grows with the batch.
    """
    positions = filter(at.is_present, range(len(at.operator.inputs)))
    operands = [at.operand(position, "operand") for position in positions]
    if any(operand.data is None for operand in operands):
        return False
    if folded.of_any_type:
        return True
    grows = any(
        operand.dtype in WIDE and at.graph.values.get(operand.tensor.index) in at.graph.growths
        for operand in operands
    )
    types = {operand.tensor.element_type for operand in operands}
    is_quantised = not {*types, at.output_tensor().element_type}.isdisjoint(("INT8", "UINT8", "INT16"))
    return grows or not (is_quantised or at.output_tensor().element_type == "FLOAT32")


def _results(graph: GraphBuilder, ports: tuple[PortName, ...]) -> tuple[str, ...]:
    """Names of the results; one may be a parameter, a constant, or stand twice.

    Raises:
        CompileError: BW107, a result has no elements.
    """
    tensors = [graph.model.tensors[index] for index in graph.model.outputs]
    names = tuple(
        recentred(graph, graph.result(tensor.index, f"{port.name}/constant"), tensor, ir.DType.U8)
        for port, tensor in zip(ports, tensors, strict=True)
    )
    for name, index in zip(names, graph.model.outputs, strict=True):
        shape = graph.types[name].shape
        if 0 in shape and not graph.bounds.allows_none:
            raise compile_error(
                "BW107",
                f"output {graph.model.tensors[index].label} has no elements: its shape is [{ir.format_shape(shape)}]",
                help="leave it out of the model's outputs, or give the model a larger input",
                where=graph.file_name,
            )
    return names


def _reached(entry: ir.Function, functions: Sequence[ir.Function]) -> tuple[ir.Function, ...]:
    """Of the functions those that run, each before those that run it, and the entry."""
    by_name = {function.name: function for function in functions}
    found = [entry]
    for function in found:
        for node in function.nodes:
            callees = node.operation.callees if isinstance(node.operation, ir.ControlOperation) else ()
            found.extend(by_name[callee] for callee in callees)
    names = {function.name for function in found}
    return (*(function for function in functions if function.name in names), entry)


def _computed(graph: GraphBuilder) -> set[str]:
    """The values that were computed here: what the file has for other extents is compared by them."""
    tensors = graph.model.tensors
    return {name for index, name in graph.values.items() if not tensors[index].has_values}


def _read(function: ir.Function) -> tuple[str, ...]:
    """The values that a function reads or gives."""
    return (*function.results, *(name for node in function.nodes for name in node.inputs))
