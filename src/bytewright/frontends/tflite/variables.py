"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE: what survives runs, as values of the graph.

A variable that the model assigns is a state: a run reads what the last one assigned, and what it assigns last is what
the next one reads. One that only subgraphs assign which run once is a constant.
"""

from collections.abc import Iterable

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import DTYPES, Kept, Operand
from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord

WITHOUT_VALUES = (
    "the values are not in the file: convert from_saved_model after model.export, or from_keras_model, which write "
    "weights as constants"
)


def variable_names(model: ModelRecord) -> dict[int, str]:
    """The variable that each resource of a model stands for, by the index of the tensor."""
    return {
        operator.outputs[0]: operator.variable
        for operator in model.operators
        if operator.kind == "VAR_HANDLE" and operator.outputs
    }


def unassigned_variables(model: ModelRecord) -> dict[str, tuple[OperatorRecord, ...]]:
    """The variables that are read and that nothing assigns, neither once nor in a run, with what reads them."""
    assigned = _assigned_by(model, *model.beside, *model.called_once)
    found: dict[str, tuple[OperatorRecord, ...]] = {}
    names = variable_names(model)
    for operator in model.operators:
        name = names.get(operator.inputs[0]) if operator.inputs else None
        if operator.kind == "READ_VARIABLE" and name is not None and name not in assigned:
            found[name] = (*found.get(name, ()), operator)
    return found


def touched_variables(records: Iterable[ModelRecord], kind: str) -> set[str]:
    """The variables that operators of a kind read, or assign, in some subgraphs."""
    found: set[str] = set()
    for record in records:
        names = variable_names(record)
        found |= {
            names[operator.inputs[0]]
            for operator in record.operators
            if operator.kind == kind and operator.inputs[:1] and operator.inputs[0] in names
        }
    return found


def _assigned_by(*records: ModelRecord) -> set[str]:
    return touched_variables(records, "ASSIGN_VARIABLE")


def convert_nothing(at: Conversion) -> None:
    """CALL_ONCE and VAR_HANDLE: what they say is known before any operator is converted."""
    for position, index in enumerate(at.operator.outputs):
        tensor = at.graph.model.tensors[index]
        if tensor.element_type != "RESOURCE":
            at.fail(f"its result {tensor.label} is {tensor.element_type}, and no variable")
        at.results[position] = ""


def convert_read_variable(at: Conversion) -> None:
    """READ_VARIABLE: what was assigned last, in this run or in the one before."""
    at.require_counts((1,))
    name, tensor = _variable(at), at.output_tensor()
    kept = at.graph.kept.get(name)
    initial = at.graph.initial.get(name)
    model = at.graph.model
    if kept is None and initial is not None and name not in _assigned_by(model, *model.beside):
        at.define(at.constant("value", initial.array, initial.dtype))
        return
    if kept is None and initial is None and name not in _assigned_by(*model.beside):
        at.fail(f"variable '{name}' is read before anything is assigned", help=WITHOUT_VALUES)
    if kept is None:
        stated = ir.TensorType(tensor.shape, DTYPES[tensor.element_type])
        kind = stated if initial is None else initial.type
        kept = at.graph.keep(name, name, tensor, kind, initial, is_shared=True)
    at.define(kept.current)


def convert_assign_variable(at: Conversion) -> None:
    """ASSIGN_VARIABLE: what is read from here on."""
    at.require_counts((2,), outputs=0)
    name, value = _variable(at), at.operand(1, "value")
    initial = at.graph.initial.get(name)
    kind = value.type if initial is None else initial.type
    kept = at.graph.kept.get(name)
    kept = kept or at.graph.keep(name, name, value.tensor, kind, initial, is_shared=True)
    _require_same(at, name, kept, value)
    at.keep(kept, at.value_of(value, "value"))


def _variable(at: Conversion) -> str:
    name = variable_names(at.graph.model).get(at.operator.inputs[0])
    if name is None:
        at.fail("what it reads or assigns is no variable of the model's own")
    return name


def _require_same(at: Conversion, name: str, kept: Kept, value: Operand) -> None:
    """A variable has one shape and type."""
    known = kept.parameter.type
    if (known.shape, known.dtype) != (value.type.shape, value.type.dtype):
        plain = ir.TensorType(value.type.shape, value.type.dtype)
        at.fail(f"variable '{name}' is {ir.TensorType(known.shape, known.dtype)}, and {plain} is assigned")
