"""Names that a model's file has, in options: each becomes the name that C has for an input or output, or a graph.

Whoever reads options behind this knows those names alone. A name that nothing has stays as it is, for them to refuse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.operators import model_operators
from bytewright.options import DECLARATIONS, Options

Known = Mapping[str, tuple[str, ...]]
"""What the file calls inputs, or outputs, by their names in C: as their tensor, and as the signature does."""

_NAMED = {
    "state": (("input", ir.Border.INPUT), ("output", ir.Border.OUTPUT)),
    "stream": (("input", ir.Border.INPUT),),
    "open": (("input", ir.Border.INPUT),),
    "input_shapes": (("input", ir.Border.INPUT),),
}
"""By options the fields of them that name something."""
_PATTERNS = ("pins", "kernels", "on")


def named_as_in_c(options: Options, inputs: Known, outputs: Known) -> Options:
    """The options with names of C.

    Raises:
        CompileError: BW204, a name of the file is that of several inputs or outputs; all at once.
    """
    known = {ir.Border.INPUT: inputs, ir.Border.OUTPUT: outputs}
    flags = {each.name: each.flag for each in DECLARATIONS}
    collector = Collector()
    changed: dict[str, Any] = {}
    for option, fields in _NAMED.items():
        given: list[Any] = list(getattr(options, option))
        for number, value in enumerate(given):
            for field, border in fields:
                with collector.catch():
                    given[number] = _renamed(given[number], field, known[border], flags[option], value)
        changed[option] = tuple(given)
    collector.stop_if_any()
    return replace(options, **changed)


def named_as_in_graphs(options: Options, modules: Sequence[ir.Module]) -> Options:
    """The options with names of graphs where a pattern is a tensor of the file and matches nothing in them.

    Raises:
        CompileError: BW204, a name of the file is that of several tensors; all at once.
    """
    sources: dict[str, tuple[str, ...]] = {}
    for module in modules:
        sources |= {name: (source.name,) for name, source in module.sources.items()}
    own = [] if not sources else _names_in_graphs(modules)
    flags = {each.name: each.flag for each in DECLARATIONS}
    collector = Collector()
    changed: dict[str, Any] = {}
    for option in _PATTERNS if sources else ():
        given: list[Any] = list(getattr(options, option))
        for number, value in enumerate(given):
            with collector.catch():
                if not any(fnmatchcase(name, value.pattern) for name in own):
                    given[number] = _renamed(value, "pattern", sources, flags[option], value)
        changed[option] = tuple(given)
    collector.stop_if_any()
    return replace(options, **changed)


def _names_in_graphs(modules: Sequence[ir.Module]) -> list[str]:
    """What patterns match: values, and operators by their names and kinds."""
    found = dict.fromkeys(constant.name for module in modules for constant in module.constants)
    for function in (each for module in modules for each in module.functions):
        for operator in model_operators(function):
            found |= dict.fromkeys(operator.names)
            for node in operator.nodes:
                names = [value.name for value in node.outputs]
                found |= dict.fromkeys((*names, node.operation.name, node.where.operator or ""))
    return list(found)


def _renamed(given: Any, field: str, known: Known, flag: str, as_written: object) -> Any:
    """One value of an option, with the name that C or a graph has in a field."""
    wanted = getattr(given, field)
    found = [] if wanted is None else _meant_by(wanted, known)
    if not found:
        return given
    renamed = replace(given, **{field: found[0]})
    if len(found) > 1:
        listed = " or ".join(map(repr, found))
        message = f"{flag} {as_written}: '{wanted}' may be {listed}, which the file calls so"
        raise compile_error("BW204", message, help=f"{flag} '{renamed}'")
    return renamed


def _meant_by(wanted: str, known: Known) -> list[str]:
    """The names that a name may mean: itself, or else all that the file calls so."""
    return [wanted] if wanted in known else [name for name, others in known.items() if wanted in others]
