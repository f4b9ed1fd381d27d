"""What can be said against a model before any operator is converted, gathered for the whole file at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bytewright.diagnostics import Collector, Diagnostic
from bytewright.frontends.tflite.advice import advice_about
from bytewright.frontends.tflite.graph_builder import DTYPES, RUN_TIME_TYPES
from bytewright.frontends.tflite.input_shapes import shape_options
from bytewright.frontends.tflite.kernels_of import LIBRARIES
from bytewright.frontends.tflite.model import ABSENT, ModelRecord, OperatorRecord, TensorRecord
from bytewright.frontends.tflite.open_extents import opening_options
from bytewright.frontends.tflite.operators.control import CONTROL_FLOW
from bytewright.frontends.tflite.operators.row import INDEX_TYPES, TfliteOperator
from bytewright.frontends.tflite.shape_arithmetic import FOLDED, KnownAtImport, known_at_import
from bytewright.frontends.tflite.stored import STORED
from bytewright.frontends.tflite.table import OPERATORS
from bytewright.frontends.tflite.variables import (
    ASSIGN,
    WITHOUT_VALUES,
    touched_variables,
    unassigned_variables,
)
from bytewright.ops.arithmetic.numerics import Numerics

MOST_PLACES = 10
_KNOWN_TYPES = (*RUN_TIME_TYPES, "INT32", "INT64")
_TYPES_OF_SOME = {each.upper() for row in OPERATORS.values() for each in (*row.types, *row.results)}
_ALL_OPERATORS = "`bytewright ops` lists the operators that are supported"
_SHAPES_ALONE = "it is computed at import where only shapes and constants come to it, and not otherwise"
_INTEGERS = ("INT8", "UINT8", "INT16", "INT4", "INT2", "UINT4")
_EXPANDED = ("INT8", "INT4")
_WIDENED = tuple(each for each in STORED if each not in DTYPES)


@dataclass(slots=True)
class _Survey:
    """The file, its operators by whether they can be converted or computed, and what was found."""

    model: ModelRecord
    file_name: str
    supported: list[OperatorRecord]
    refused: list[OperatorRecord]
    known: KnownAtImport
    numerics: Numerics
    expands_weights: bool
    found: Collector = field(default_factory=Collector)

    def report(self, code: str, message: str, notes: list[str], help: str) -> None:  # noqa: A002
        """One diagnostic for all places of one kind."""
        if notes:
            self.found.add(Diagnostic(code, message, _shortened(notes), help, self.file_name))


def _shortened(notes: list[str]) -> tuple[str, ...]:
    """The first ten, and how many more there are."""
    rest = len(notes) - MOST_PLACES
    return (*notes[:MOST_PLACES], *((f"and {rest} more",) if rest > 0 else ()))


def survey(
    model: ModelRecord,
    file_name: str,
    *,
    numerics: Numerics = Numerics.LITERT_REF,
    expands_weights: bool = False,
) -> None:
    """Checks operators, types, shapes of inputs and structure.

    Args:
        model: The file.
        file_name: What diagnostics call it.
        numerics: The kernel set that it is compiled for.
        expands_weights: Whether integer weights under float activations are widened to float32.

    Raises:
        CompileError: BW104 to BW108, one diagnostic for each kind, with all places.
    """
    found = Collector()
    whole = _looked_at(model, file_name, numerics, expands_weights, found)
    _check_operators(whole)
    _check_structure(whole)
    _check_hybrid(whole)
    _check_types(whole)
    _check_shapes(whole)
    once = [(f"{file_name}, what runs once", record) for record in model.called_once]
    inside = _run_by(model, *model.called_once).items()
    for place, record in (*once, *((f"{file_name}, subgraph {index}", record) for index, record in inside)):
        inner = _looked_at(record, place, numerics, expands_weights, found)
        _check_operators(inner)
        _check_hybrid(inner)
        _check_types(inner, is_called=True)
    found.stop_if_any()


def _run_by(*models: ModelRecord) -> dict[int, ModelRecord]:
    """The subgraphs that loops and branches run, and those that these run, by their numbers."""
    found: dict[int, ModelRecord] = {}
    pending = [*models]
    for record in pending:
        new = {index: each for index, each in record.called.items() if index not in found}
        found |= new
        pending.extend(new.values())
    return dict(sorted(found.items()))


def _looked_at(
    model: ModelRecord, file_name: str, numerics: Numerics, expands_weights: bool, found: Collector
) -> _Survey:
    """A subgraph's operators, by whether they are supported."""
    known = known_at_import(model)
    supported: list[OperatorRecord] = []
    refused: list[OperatorRecord] = []
    for operator in model.operators:
        is_supported = operator.kind in OPERATORS or operator.index in known.operators
        (supported if is_supported else refused).append(operator)
    return _Survey(model, file_name, supported, refused, known, numerics, expands_weights, found)


def _check_structure(whole: _Survey) -> None:
    """One subgraph, or that of a signature, which gives something or assigns a variable.

    What operators bring that are refused is no fault of its own.
    """
    model = whole.model
    notes: list[str] = []
    is_called = bool(model.called or model.bodies) or any(
        operator.kind in CONTROL_FLOW for operator in model.operators
    )
    if model.num_subgraphs > 1 and model.signature is None and not is_called:
        notes.append(f"it has {model.num_subgraphs} subgraphs; one is supported")
    if not model.outputs and not touched_variables((model,), ASSIGN):
        subject = "it" if model.signature is None else f"signature '{model.signature.key}'"
        notes.append(f"{subject} has no output, and assigns no variable")
    used = _used_tensors(model, whole.supported)
    brought = {index for operator in whole.refused for index in operator.operands}
    brought |= _checked_by_converters(model)
    variables = (tensor for tensor in used if tensor.is_variable and tensor.index not in brought)
    notes.extend(f"{tensor.label} is a variable that survives between runs" for tensor in variables)
    notes.extend(f"{tensor.label} is sparse" for tensor in used if tensor.is_sparse)
    unassigned = unassigned_variables(model)
    whole.report(
        "BW107",
        "the model reads variables that nothing assigns",
        [f"variable '{name}', operator {reader.label}" for name, reader in unassigned.items()],
        WITHOUT_VALUES,
    )
    whole.report(
        "BW107",
        "the model's structure is not supported",
        notes,
        "export a model for inference, each signature with what it gives or a variable that it assigns",
    )


def _checked_by_converters(model: ModelRecord) -> set[int]:
    """The variables of operators that keep them, and operands that have types of their own."""
    return {
        index
        for operator in model.operators
        if (row := OPERATORS.get(operator.kind)) is not None
        for position, index in enumerate((*operator.inputs, *operator.outputs))
        if index != ABSENT
        and (position in row.of_own_types or (row.has_state and model.tensors[index].is_variable))
    }


def _check_operators(whole: _Survey) -> None:
    """Every operator has a converter."""
    notes = [f"operator {operator.label}{_result(whole.model, operator)}" for operator in whole.refused]
    kinds = sorted({operator.kind for operator in whole.refused})
    whole.report(
        "BW104",
        f"the model uses operators that are not supported: {', '.join(kinds)}",
        notes,
        "; ".join((*_advices(kinds), _ALL_OPERATORS)),
    )


def _advices(kinds: list[str]) -> list[str]:
    """What can be done about each, said once for those about which the same can be done."""
    by_text: dict[str, list[str]] = {}
    for kind in kinds:
        if text := _advice(kind):
            by_text.setdefault(text, []).append(kind)
    return [f"{', '.join(own)}: {text}" for text, own in by_text.items()]


def _advice(kind: str) -> str | None:
    """What can be done about an operator that is not supported."""
    own = advice_about(kind)
    if kind not in FOLDED:
        return own
    return f"{_SHAPES_ALONE}: {own}" if own else _SHAPES_ALONE


def _hybrid_layers(whole: _Survey) -> Iterator[tuple[OperatorRecord, TensorRecord, TfliteOperator]]:
    """The layers that have integer weights where results are floats, with these weights and their row of the table."""
    for operator in whole.model.operators:
        row = OPERATORS.get(operator.kind)
        if row is None or not row.hybrid or len(operator.inputs) < 2 or operator.inputs[1] == ABSENT:
            continue
        weights = whole.model.tensors[operator.inputs[1]]
        results = {whole.model.tensors[index].element_type for index in operator.outputs}
        if results == {"FLOAT32"} and weights.element_type in _INTEGERS:
            yield operator, weights, row


def _refused_layers(whole: _Survey) -> list[tuple[OperatorRecord, TensorRecord]]:
    """Those of them that the kernels have not, and that are not computed in float32 either."""
    return [
        (operator, weights)
        for operator, weights, row in _hybrid_layers(whole)
        if weights.element_type.lower() not in row.hybrid.get(whole.numerics, ())
        and not (whole.expands_weights and weights.element_type in _EXPANDED)
    ]


def _check_hybrid(whole: _Survey) -> None:
    """Integer weights under float activations are such as the kernels take."""
    layers = _refused_layers(whole)
    notes = [
        f"operator {operator.label}{_result(whole.model, operator)}: weights are {weights.element_type}"
        for operator, weights in layers
    ]
    advice: list[str] = []
    if whole.numerics is not Numerics.LITERT_REF:
        advice.append(f"compile for --numerics {Numerics.LITERT_REF.value}")
    if all(weights.element_type in _EXPANDED for _, weights in layers):
        advice.append("compile with --weights expand, which computes these layers in float32")
    whole.report(
        "BW108",
        f"{LIBRARIES[whole.numerics]} has no kernels for these weights with float activations",
        notes,
        ", or ".join(advice) or "quantise the weights to int8",
    )


def _check_types(whole: _Survey, *, is_called: bool = False) -> None:
    """int8, float32 and truth values at run time, other types where operators take them.

    Constants may be int32 and int64, too, and of what is widened where operators take it.
    """
    model, reported = whole.model, _reported(whole)
    taken = {
        each: _taken_as(model, each.lower()) for each in sorted(_TYPES_OF_SOME.difference(RUN_TIME_TYPES))
    }
    taken |= dict.fromkeys(_WIDENED, _widened_constants(model))
    # Of complex numbers neither ports nor constants have a type.
    stored = {tensor.index for tensor in model.tensors if tensor.has_values}
    taken["COMPLEX64"] -= {*model.inputs, *model.outputs, *stored}
    if not is_called:  # loops and branches hand on the handles of variables, the application does not
        taken["RESOURCE"] -= {*model.inputs, *model.outputs}
    reported |= _checked_by_converters(model)
    wrong = [
        tensor
        for tensor in _used_tensors(model, whole.supported)
        if tensor.index not in reported
        and tensor.element_type not in _allowed_types(whole, tensor.index)
        and tensor.index not in taken.get(tensor.element_type, ())
    ]
    notes = [f"{tensor.label} is {tensor.element_type}{_by_whom(model, tensor)}" for tensor in wrong]
    help_text = "quantise the model to int8 (per tensor or per channel), inputs and outputs too, or keep it in float32"
    if any(tensor.element_type == "STRING" for tensor in wrong):
        help_text = "convert the model without its operators on text, from the numbers that the application makes of it"
    elif wrong and all(tensor.index in (*model.inputs, *model.outputs) for tensor in wrong):
        help_text = (
            f"set the converter's inference_input_type and inference_output_type to int8; or {help_text}"
        )
    whole.report("BW105", "tensors have types that are not supported", notes, help_text)


def _allowed_types(whole: _Survey, index: int) -> tuple[str, ...]:
    """Element types that a tensor may have whatever has to do with it."""
    return _KNOWN_TYPES if index in whole.known.tensors else RUN_TIME_TYPES


def _reported(whole: _Survey) -> set[int]:
    """Tensors whose types are no fault of their own: they are explained by an operator that is refused."""
    reported = {weights.index for _, weights in _refused_layers(whole)}
    refused = {operator.index for operator in whole.refused}
    for operator in whole.model.operators:
        follows = not reported.isdisjoint(operator.operands) and operator.index not in refused
        for index in operator.outputs:
            is_other = whole.model.tensors[index].element_type not in RUN_TIME_TYPES
            if operator.index in refused or (follows and is_other):
                reported.add(index)
    return reported


def _by_whom(model: ModelRecord, tensor: TensorRecord) -> str:
    """Which operators do not have its type, where some operators have it."""
    element_type = tensor.element_type.lower()
    kinds = sorted(set(_refusing(model, element_type).get(tensor.index, ())))
    is_of_some = tensor.element_type in _TYPES_OF_SOME
    return (
        f", which {', '.join(kinds)} {'do' if kinds[1:] else 'does'} not have" if kinds and is_of_some else ""
    )


def _taken_as(model: ModelRecord, element_type: str) -> frozenset[int]:
    """Tensors that may have an element type: whatever touches them takes or makes it, or reads indices there."""
    return frozenset(range(len(model.tensors))).difference(_refusing(model, element_type))


def _refusing(model: ModelRecord, element_type: str) -> dict[int, list[str]]:
    """The kinds of operators that have no element type where a tensor is, by the tensor."""
    found: dict[int, list[str]] = {}
    for operator in model.operators:
        row = OPERATORS.get(operator.kind)
        if row is not None and element_type not in row.types:
            indices = row.indices if element_type in INDEX_TYPES else None
            weights = 1 if element_type in row.narrow_weights else None
            refused = [t for at, t in enumerate(operator.inputs) if at not in (indices, weights)]
            refused += operator.outputs if element_type not in row.results else ()
            for index in refused:
                found.setdefault(index, []).append(operator.kind)
    return found


def _widened_constants(model: ModelRecord) -> set[int]:
    """Constants that are stored in fewer bits, and that operators alone have to do with, and such as take them."""
    found: set[int] = set()
    constant = {t.index for t in model.tensors if t.has_values}
    constant |= {index for each in model.operators if each.kind == "DENSIFY" for index in each.outputs}
    for element_type in _WIDENED:
        kind = {index for index in constant if model.tensors[index].element_type == element_type}
        found |= kind & _taken_as(model, element_type.lower()) if kind else kind
    return found - {*model.outputs}


def _check_shapes(whole: _Survey) -> None:
    """Inputs have fixed shapes, but for the batch, and elements."""
    model = whole.model
    notes = [
        f"input {tensor.label} has the shape {list(tensor.signature)}"
        for tensor in (model.tensors[index] for index in model.inputs)
        if -1 in tensor.signature[1:]
    ]
    whole.report(
        "BW106",
        "inputs have open extents other than the batch",
        notes,
        f"{shape_options(model)} fixes the size, or {opening_options(model)} gives each run that extent; name the size "
        "or the range that you need",
    )
    empty = [
        f"input {tensor.label} has the shape {list(tensor.shape)}"
        for tensor in (model.tensors[index] for index in model.inputs)
        if 0 in tensor.shape[tensor.signature[:1] == (-1,) :]
    ]
    whole.report(
        "BW107",
        "inputs have no elements",
        empty,
        "convert the model with input shapes of at least one element, or without these inputs",
    )


def _used_tensors(model: ModelRecord, operators: Iterable[OperatorRecord]) -> list[TensorRecord]:
    """Tensors of the model's border and of the operators, in the file's order."""
    used = {*model.inputs, *model.outputs}
    for operator in operators:
        used.update(operator.inputs, operator.outputs)
    return [tensor for tensor in model.tensors if tensor.index in used]


def _result(model: ModelRecord, operator: OperatorRecord) -> str:
    """`, tensor 'x'` for the operator's first result."""
    return f", tensor '{model.tensors[operator.outputs[0]].name}'" if operator.outputs else ""
