"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE: what survives runs, as values of the graph.

A variable that the model assigns is a state: a run reads what the last one assigned, and what it assigns last is what
the next one reads. One that only subgraphs assign which run once is a constant. Loops and branches hand handles on to
their subgraphs, or these make their own; `control.py` hands on what they stand for.
"""

from collections.abc import Iterable, Mapping

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import DTYPES, Kept
from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord

WITHOUT_VALUES = (
    "the values are not in the file: convert from_saved_model after model.export, or from_keras_model, which write "
    "weights as constants"
)


READ, ASSIGN = "READ_VARIABLE", "ASSIGN_VARIABLE"


_Found = Mapping[tuple[str, str], OperatorRecord]


class _Touches:
    """Which variables are read or assigned, in subgraphs that loops and branches run as well."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[str | None, ...]], _Found] = {}

    def of(self, model: ModelRecord, given: tuple[str | None, ...] = ()) -> _Found:
        """The first operator of each kind for each variable; `given` are those that the inputs are handles of."""
        key = (id(model), given)
        if key not in self._known:
            self._known[key] = self._found(model, given)
        return self._known[key]

    def _found(self, model: ModelRecord, given: tuple[str | None, ...]) -> _Found:
        found: dict[tuple[str, str], OperatorRecord] = {}
        names = dict(zip(model.inputs, given, strict=False))
        for operator in model.operators:
            name = names.get(operator.inputs[0]) if operator.inputs else None
            if operator.kind == "VAR_HANDLE" and operator.outputs:
                names[operator.outputs[0]] = operator.variable
            elif operator.kind in (READ, ASSIGN) and name is not None:
                found.setdefault((name, operator.kind), operator)
            else:
                given = tuple(map(names.get, operator.handed))
                for inner in map(model.called.get, operator.subgraphs):
                    found = {**(self.of(inner, given) if inner is not None else {}), **found}
                names.update(zip(operator.outputs, given, strict=False))
        return found


def touched_variables(records: Iterable[ModelRecord], kind: str) -> frozenset[str]:
    """The variables that operators of a kind read, or assign, in some subgraphs and in those that these run."""
    touches = _Touches()
    return frozenset(name for record in records for name, found in touches.of(record) if found == kind)


def unassigned_variables(model: ModelRecord) -> dict[str, OperatorRecord]:
    """The variables that are read and that nothing assigns, neither once nor in a run, with what reads them first."""
    assigned = touched_variables((model, *model.beside, *model.called_once), ASSIGN)
    both = _Touches().of(model).items()
    return {name: operator for (name, kind), operator in both if kind == READ and name not in assigned}


def convert_call_once(at: Conversion) -> None:
    """CALL_ONCE: what the subgraph says is known before any operator is converted."""
    at.require(at.graph.number is None, "what runs once is run by a loop or branch, and not before all else")
    at.require_counts((0,), outputs=0)


def convert_handle(at: Conversion) -> None:
    """VAR_HANDLE: which variable its result stands for."""
    at.require_counts((0,))
    tensor = at.output_tensor()
    if tensor.element_type != "RESOURCE":
        at.fail(f"its result {tensor.label} is {tensor.element_type}, and no variable")
    at.define_handle(at.operator.variable)


def convert_read_variable(at: Conversion) -> None:
    """READ_VARIABLE: what was assigned last, in this run or in the one before."""
    at.require_counts((1,))
    name, tensor = _variable(at), at.output_tensor()
    kept = at.graph.kept.get(name)
    initial = at.graph.initial.get(name)
    if kept is None and initial is None and name not in at.graph.before:
        at.fail(f"variable '{name}' is read before anything is assigned", help=WITHOUT_VALUES)
    if kept is None and initial is not None and name not in at.graph.assigned:
        at.define(at.constant("value", initial.array, initial.dtype))
        return
    if kept is None:
        stated = ir.TensorType(tensor.shape, DTYPES[tensor.element_type])
        kept = at.graph.keep_variable(name, tensor, stated if initial is None else initial.type)
    at.define(kept.current)


def convert_assign_variable(at: Conversion) -> None:
    """ASSIGN_VARIABLE: what is read from here on."""
    at.require_counts((2,), outputs=0)
    name, value = _variable(at), at.operand(1, "value")
    initial = at.graph.initial.get(name)
    kind = value.type if initial is None else initial.type
    kept = at.graph.kept.get(name) or at.graph.keep_variable(name, value.tensor, kind)
    require_type_of_variable(at, name, kept, value.type)
    at.keep(kept, at.value_of(value, "value"))


def _variable(at: Conversion) -> str:
    name = at.graph.handles.get(at.operator.inputs[0])
    if name is None:
        at.fail("what it reads or assigns is no variable of the model's own")
    return name


def require_type_of_variable(at: Conversion, name: str, kept: Kept, found: ir.TensorType) -> None:
    """A variable has one shape and type."""
    known = kept.parameter.type
    if (known.shape, known.dtype) != (found.shape, found.dtype):
        plain = ir.TensorType(found.shape, found.dtype)
        at.fail(f"variable '{name}' is {ir.TensorType(known.shape, known.dtype)}, and {plain} is assigned")
