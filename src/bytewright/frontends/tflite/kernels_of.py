"""What the kernels that a model is to equal do not have: refused, since there is nothing to be exact to."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.ops.arithmetic.numerics import Numerics

LIBRARIES = {Numerics.LITERT_REF: "LiteRT", Numerics.TFLM: "TensorFlow Lite Micro"}
Absent = Mapping[Numerics, tuple[str, ...]]
"""By set of kernels: types of data that it has no kernel for ("int8"), and pairs of types ("float32 to uint8")."""


def require_kernel(at: Conversion, types: Sequence[str], absent: Absent, data_at: int) -> None:
    """The kernels have one for the operator and its types.

    Args:
        at: The operator.
        types: Those that it compiles for.
        absent: What sets of kernels lack of it.
        data_at: The position of its first operand that is data.
    """
    tensors, operator = at.graph.model.tensors, at.operator
    results = [tensors[index].element_type.lower() for index in operator.outputs]
    sources = [
        tensors[index].element_type.lower() for index in operator.inputs[data_at : data_at + 1] if index >= 0
    ]
    pairs = [f"{source} to {result}" for source in sources for result in results]
    lacking = absent.get(at.numerics, ())
    for form in (*pairs, *sorted({*sources, *results})):
        if form in lacking:
            others = [each for each in Numerics if form not in absent.get(each, ())]
            whole = set(lacking) >= set(types)
            refuse_kernel(at, "" if whole else f" from {form}" if form in pairs else f" for {form}", others)


def refuse_kernel(at: Conversion, form: str, others: Sequence[Numerics]) -> NoReturn:
    """Refuses the operator in a form that the kernels lack and others have."""
    help_text = "take the operator out of the model, and compute it in the application"
    at.fail(
        f"{LIBRARIES[at.numerics]} does not have it{form}, so there is nothing to be exact to",
        help=f"compile for --numerics {others[0].value}, or {help_text}" if others else help_text,
    )
