"""What compiling a file may cost, which is estimated from its records before anything is converted.

Each operator costs a known time, about the same whatever its tensors: loops are written once, and weights are moved as
a whole. So a file that asks for more than files of its size may is refused at once, and not after minutes. The figures
are milliseconds on the machine of docs/benchmarks.md, rounded up; what they must keep is their proportion.
"""

from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord
from bytewright.frontends.tflite.table import OPERATORS

# Operands or results of one operator: each is a parameter or a kernel of its own.
MAX_OPERANDS = 1024
# Of a file of up to a mebibyte; larger ones may cost as much for each.
MAX_COST_MS = 10_000
_MEBIBYTE = 1 << 20

_OPERAND_MS = 0.6
_RESULT_MS = 1.5
_PORT_MS = 0.7
_FREE_OPERANDS = 3
_FOLDED_MS = 0.15
# Of a layer of integer weights under floats: a kernel for each number that its input is quantised by, and one for that.
_HYBRID_MS = 15.0


def check_cost(model: ModelRecord, file_name: str) -> None:
    """Refuses a file that asks for more than files of its size may.

    Raises:
        CompileError: BW114, an operator has too many operands or results, or compiling all would take too long.
    """
    for operator in model.operators:
        for what, indices in (("operands", operator.inputs), ("results", operator.outputs)):
            if len(indices) > MAX_OPERANDS:
                raise compile_error(
                    "BW114",
                    f"{operator.kind} has {len(indices)} {what}; an operator may have {MAX_OPERANDS}",
                    help=f"split it into operators of at most {MAX_OPERANDS}",
                    where=f"{file_name}, operator {operator.label}",
                )
    num_ports = len(model.inputs) + len(model.outputs)
    cost_ms = num_ports * _PORT_MS + _total_ms(model, {})
    num_bytes = len(model.file.content)
    limit_ms = MAX_COST_MS * max(1.0, num_bytes / _MEBIBYTE)
    if cost_ms > limit_ms:
        raise compile_error(
            "BW114",
            f"compiling {len(model.operators)} operators with {num_ports} inputs and outputs would take about "
            f"{cost_ms / 1000:.0f} s; for a file of {num_bytes} bytes the limit is {limit_ms / 1000:.0f} s",
            help="cut the model into several files and compile each",
            where=file_name,
        )


def _total_ms(model: ModelRecord, known: dict[int, float]) -> float:
    """What all operators cost; those of a subgraph as often as operators run it. `known` is that of subgraphs."""
    for index, record in model.called.items():
        if index not in known:
            known[index] = _total_ms(record, known)
    inner = (
        known[index] for operator in model.operators for index in operator.subgraphs if index in model.called
    )
    return sum(_cost_ms(model, operator) for operator in model.operators) + sum(inner)


def _cost_ms(model: ModelRecord, operator: OperatorRecord) -> float:
    """What one operator costs, roughly."""
    extra = max(0, len(operator.inputs) - _FREE_OPERANDS) * _OPERAND_MS
    extra += max(0, len(operator.outputs) - 1) * _RESULT_MS
    row = OPERATORS.get(operator.kind)
    if row is None:  # computed at import
        return _FOLDED_MS + extra
    is_int8 = any(model.tensors[index].element_type in ("INT8", "UINT8") for index in operator.outputs)
    if len(operator.inputs) > 1 and operator.inputs[1] >= 0:
        weights = model.tensors[operator.inputs[1]]
        if is_int8:
            extra += len(weights.quantization.scales) * row.scale_cost_ms
        elif row.hybrid and weights.element_type != "FLOAT32":
            extra += _HYBRID_MS
    own = row.int8_cost_ms if is_int8 and row.int8_cost_ms is not None else row.cost_ms
    return own + extra
