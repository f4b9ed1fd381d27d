"""Element-wise operators without an anchor, in lanes of vectors: for every instruction set that has a unit.

Neighbours along the last axis are lanes, where a tensor's other axes are merged into it as far as all of them allow.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from bytewright.lower.epilogue import Epilogue
from bytewright.lower.group import Group
from bytewright.lower.isa.lines import write_line
from bytewright.lower.isa.lookup import is_lookup, write_lookup
from bytewright.lower.isa.registry import instruction_sets
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.kernels.context import loops
from bytewright.lower.kernels.elementwise import lower_elementwise
from bytewright.lower.merge_axes import Constants, Types, merge_axes


def write_elementwise(
    new_kernel: Callable[[], KernelBuilder],
    group: Group,
    types: Types,
    constants: Constants,
    features: Collection[str],
    left_out: Mapping[str, str],
) -> KernelBuilder:
    """The kernel of a group that is nothing but element-wise operators: of vectors, where a core has those it needs.

    Args:
        new_kernel: A kernel without a statement.
        group: The operators.
        types: Types of all tensors of the graph.
        constants: The graph's constants by name.
        features: What the core has.
        left_out: Ways that are not taken, with the reason.
    """
    reasons: list[str] = []
    ways = _ways(features, group)
    merged = merge_axes(group, types, constants) if ways else (types, constants)
    for name, write in ways.items():
        kernel = new_kernel()
        reason = left_out.get(name) or write(kernel, Epilogue(kernel, group, *merged))
        if reason is None:
            kernel.template = name
            break
        reasons.append(f"not by {name}: {reason}")
    else:
        kernel = new_kernel()
        lower_elementwise(kernel, Epilogue(kernel, group, types, constants))
    kernel.remarks += reasons
    return kernel


def _ways(
    features: Collection[str], group: Group
) -> dict[str, Callable[[KernelBuilder, Epilogue], str | None]]:
    """Those of the sets that a core has, by name, the best first."""
    found: dict[str, Callable[[KernelBuilder, Epilogue], str | None]] = {}
    for each in instruction_sets(features):
        if each.lookup is not None and is_lookup(group):
            found[f"{each.name}.lookup"] = partial(write_lookup, lookup=each.lookup)
        if each.unit is not None:
            found[f"{each.name}.elementwise"] = partial(_write_in_lanes, unit=each.unit)
    return found


def _write_in_lanes(kernel: KernelBuilder, epilogue: Epilogue, unit: VectorUnit) -> str | None:
    """Writes vectors; why there are none, in a few words, if what was written is of no use."""
    shape = epilogue.types[epilogue.group.output.name].shape
    count = shape[-1] if shape else 1
    if not isinstance(count, int) or count < unit.lanes:
        return f"fewer than {unit.lanes} elements lie side by side"
    # Without the operators' names, as `lower_elementwise`.
    kernel.body.note(f"{unit.lanes} elements at a time: load, compute, store")
    with loops(kernel, shape, range(len(shape) - 1)) as indices:
        outer = tuple(indices.values())
        return write_line(kernel.body, unit, count, lambda index: epilogue.store((*outer, index)))
