"""What can be said against a model before any operator is converted, gathered for the whole file at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bytewright.diagnostics import Collector, Diagnostic
from bytewright.frontends.tflite.conversion import DTYPES
from bytewright.frontends.tflite.model import ABSENT, ModelRecord, OperatorRecord, TensorRecord
from bytewright.frontends.tflite.table import ADVICE, CONTROL_FLOW, OPERATORS

MOST_PLACES = 10
_RUN_TIME_TYPES = ("INT8", "FLOAT32", "BOOL")
_ALL_OPERATORS = "`bytewright ops` lists the operators that are supported"
_INTEGERS = ("INT8", "UINT8", "INT16", "INT4", "INT2", "UINT4")


@dataclass(slots=True)
class _Survey:
    """The file, its operators by whether they have a converter, and what was found."""

    model: ModelRecord
    file_name: str
    supported: list[OperatorRecord]
    refused: list[OperatorRecord]
    found: Collector = field(default_factory=Collector)

    def report(self, code: str, message: str, notes: list[str], help: str) -> None:  # noqa: A002
        """One diagnostic for all places of one kind."""
        if notes:
            self.found.add(Diagnostic(code, message, _shortened(notes), help, self.file_name))


def _shortened(notes: list[str]) -> tuple[str, ...]:
    """The first ten, and how many more there are."""
    rest = len(notes) - MOST_PLACES
    return (*notes[:MOST_PLACES], *((f"and {rest} more",) if rest > 0 else ()))


def survey(model: ModelRecord, file_name: str) -> None:
    """Checks operators, types, shapes of inputs and structure.

    Raises:
        CompileError: BW104 to BW108, one diagnostic for each kind, with all places.
    """
    supported = [operator for operator in model.operators if operator.kind in OPERATORS]
    refused = [operator for operator in model.operators if operator.kind not in OPERATORS]
    whole = _Survey(model, file_name, supported, refused)
    _check_operators(whole)
    _check_structure(whole)
    _check_hybrid(whole)
    _check_types(whole)
    _check_shapes(whole)
    whole.found.stop_if_any()


def _check_structure(whole: _Survey) -> None:
    """One subgraph, with an output, without state; what operators bring that are refused is no fault of its own."""
    model = whole.model
    notes: list[str] = []
    if model.num_subgraphs > 1 and not any(operator.kind in CONTROL_FLOW for operator in model.operators):
        notes.append(f"it has {model.num_subgraphs} subgraphs; one is supported")
    if not model.outputs:
        notes.append("it has no output")
    if not model.inputs:
        notes.append("it has no input")
    used = _used_tensors(model, whole.supported)
    notes.extend(f"{t.label} is a variable that survives between runs" for t in used if t.is_variable)
    notes.extend(f"{tensor.label} is sparse" for tensor in used if tensor.is_sparse)
    whole.report(
        "BW107",
        "the model's structure is not supported",
        notes,
        "export a model for inference with one signature and without state",
    )


def _check_operators(whole: _Survey) -> None:
    """Every operator has a converter."""
    notes = [f"operator {operator.label}{_result(whole.model, operator)}" for operator in whole.refused]
    kinds = sorted({operator.kind for operator in whole.refused})
    whole.report(
        "BW104",
        f"the model uses operators that are not supported: {', '.join(kinds)}",
        notes,
        "; ".join((*(f"{kind}: {ADVICE[kind]}" for kind in kinds if kind in ADVICE), _ALL_OPERATORS)),
    )


def _hybrid_layers(model: ModelRecord) -> Iterator[tuple[OperatorRecord, TensorRecord]]:
    """The layers that have integer weights under float activations, with these weights."""
    for operator in model.operators:
        row = OPERATORS.get(operator.kind)
        first_two = operator.inputs[:2]
        if row is not None and row.has_weights and len(first_two) == 2 and ABSENT not in first_two:
            source, weights = (model.tensors[index] for index in first_two)
            if source.element_type == "FLOAT32" and weights.element_type in _INTEGERS:
                yield operator, weights


def _check_hybrid(whole: _Survey) -> None:
    """No layer has integer weights under float activations."""
    notes = [
        f"operator {operator.label}{_result(whole.model, operator)}: weights are {weights.element_type}"
        for operator, weights in _hybrid_layers(whole.model)
    ]
    whole.report(
        "BW108",
        "the model is hybrid: integer weights with float arithmetic",
        notes,
        "quantise the whole model to int8 with a representative data set, or keep it in float32",
    )


def _check_types(whole: _Survey) -> None:
    """int8, float32 and truth values at run time; constants may be int32 and int64 too."""
    model = whole.model
    known = _known_at_import(model)
    reported = {weights.index for _, weights in _hybrid_layers(model)}
    reported.update(index for operator in whole.refused for index in operator.outputs)
    wrong = [
        tensor
        for tensor in _used_tensors(model, whole.supported)
        if tensor.index not in reported
        and tensor.element_type not in (tuple(DTYPES) if tensor.index in known else _RUN_TIME_TYPES)
    ]
    notes = [f"{tensor.label} is {tensor.element_type}" for tensor in wrong]
    help_text = "quantise the model to int8 (per tensor or per channel), inputs and outputs too, or keep it in float32"
    if wrong and all(tensor.index in (*model.inputs, *model.outputs) for tensor in wrong):
        help_text = (
            f"set the converter's inference_input_type and inference_output_type to int8; or {help_text}"
        )
    whole.report("BW105", "tensors have types that are not supported", notes, help_text)


def _known_at_import(model: ModelRecord) -> frozenset[int]:
    """Constants, and what operators compute of constants alone."""
    known = {tensor.index for tensor in model.tensors if tensor.has_values}
    for operator in model.operators:
        if operator.operands and known.issuperset(operator.operands):
            known.update(operator.outputs)
    return frozenset(known)


def _check_shapes(whole: _Survey) -> None:
    """Inputs have fixed shapes, but for the batch; nothing that is used is without elements."""
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
        "convert the model with fixed input shapes",
    )
    empty = [
        f"{tensor.label} has the shape {list(tensor.shape)}"
        for tensor in _used_tensors(model, model.operators)
        if 0 in tensor.shape and tensor.element_type in _RUN_TIME_TYPES
    ]
    whole.report("BW107", "tensors have no elements", empty, "convert the model with fixed input shapes")


def _used_tensors(model: ModelRecord, operators: Iterable[OperatorRecord]) -> list[TensorRecord]:
    """Tensors of the model's border and of the operators, in the file's order."""
    used = {*model.inputs, *model.outputs}
    for operator in operators:
        used.update(operator.inputs, operator.outputs)
    return [tensor for tensor in model.tensors if tensor.index in used]


def _result(model: ModelRecord, operator: OperatorRecord) -> str:
    """`, tensor 'x'` for the operator's first result."""
    return f", tensor '{model.tensors[operator.outputs[0]].name}'" if operator.outputs else ""
