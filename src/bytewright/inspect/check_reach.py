"""Whether kernels stay inside what their calls give them: each index of their C, in all turns of their loops.

Of each call the plan says how many bytes each argument has, from which element on it is passed, and what the numbers
are; `c_reach.py` reads the body with these. A kernel of which each access is inside is proved. One with an access that
is outside in some turn, which comes in any case, is a fault. Of others, as of those with instructions, or where data
decides what is touched, nothing is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
from pycparser import c_ast
from pycparser.c_parser import ParseError

from bytewright import ir
from bytewright.inspect.c_nodes import expression, names_in, statement, type_name
from bytewright.inspect.c_ranges import SIZES, Range, Scope
from bytewright.inspect.c_reach import Frame, Places, Reach, UnreadableError, moved, whole
from bytewright.inspect.c_source import CSource
from bytewright.record.buffers import PlaceKind
from bytewright.record.entries import PlannedStep
from bytewright.record.names import Names
from bytewright.record.plan import Plan

# Combinations of turns that are told apart, at most: more where fewer do not prove it.
_MOST_TURNS = (1, 1 << 10, 1 << 14)


@dataclass(slots=True)
class KernelsRead:
    """What was found of the kernels of a bundle.

    Attributes:
        proved: Those that stay inside what each of their calls gives them, by the file and the name,
        others: and those of which that is not said.
        outside: Accesses that are outside, one sentence each.
    """

    proved: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    others: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    outside: list[str] = field(default_factory=list[str])


def read_kernels(plan: Plan, names: Names, files: Mapping[str, CSource]) -> KernelsRead:
    """Reads each kernel with what each of its calls gives it.

    Args:
        plan: Whose references are sound.
        names: Of the plan.
        files: The files with kernels, by their paths.
    """
    found, seen = KernelsRead(), set[object]()
    for step in plan.steps:
        device = plan.devices.get(step.device)
        path = names.kernels_source if device is None else names.device_source(device)
        given = _given(plan, step)
        if path not in files or (path, given) in seen:
            continue
        seen.add((path, given))
        texts = _outside(files[path].without_directives, plan.symbols, given)
        kernel = (path, step.kernel)
        if texts is None or texts:
            found.others[kernel] = None
            found.proved.pop(kernel, None)
        elif kernel not in found.others:
            found.proved[kernel] = None
        found.outside += [f"{path}, {step.kernel}: in step {step.index} {text}" for text in texts or ()]
    return found


@dataclass(frozen=True, slots=True)
class _Given:
    """What a call gives a kernel.

    Attributes:
        memory: Of each argument its name, its bytes, and the element from which on it is passed, both as texts.
        numbers: As texts, in order.
        loops: Of those around the call the variable, where it begins, and where it ends: first of those over the
            extents of a run that decide how much memory there is.
        is_certain: Whether it comes in any case: it is in no arm of a branch.
    """

    kernel: str
    memory: tuple[tuple[str, str | None, str], ...]
    numbers: tuple[str, ...]
    loops: tuple[tuple[str | None, str, str], ...]
    is_certain: bool


def _given(plan: Plan, step: PlannedStep) -> _Given:
    starts = [*step.starts] or [0] * len(step.arguments)
    pairs = zip(step.arguments, starts, strict=False)
    sizes = {name: _size(plan, name) for name in step.touched}
    memory = [(name, sizes.get(name), str(start)) for name, start in pairs]
    is_known = {name: size is not None and size.isdecimal() for name, size in sizes.items()}
    spans = [
        (span.buffer, str(span.size_bytes) if is_known.get(span.buffer) and span.size_bytes else None, "0")
        for span in step.spans
    ]
    numbers = step.scalars if step.rows is None else (step.rows.begin, step.rows.end)
    loops = [loop for loop in plan.loops if loop.has_step(step.index) and loop.variable is not None]
    open_sizes = [expression(size) for name, size in sizes.items() if size and not is_known[name]]
    used = {name for size in open_sizes for name in names_in(size)}
    extents = [
        (each.name, str(each.lower), str(each.upper + 1)) for each in plan.symbols if each.name in used
    ]
    return _Given(
        step.kernel,
        (*memory, *spans),
        tuple(map(str, numbers)),
        (*extents, *((loop.variable, str(loop.begin), str(loop.end)) for loop in loops)),
        not any(begin <= step.index < end for b in plan.branches for begin, end in (b.then, b.otherwise)),
    )


def _size(plan: Plan, name: str) -> str | None:
    """The bytes of a buffer, as C; None where the plan does not say how many a run has."""
    buffer = plan.buffers[name]
    kind = buffer.place.kind
    if not plan.symbols or kind not in (PlaceKind.ARENA, PlaceKind.CALLER):
        return str(buffer.size_bytes)
    tensors = [each for each in (*plan.inputs, *plan.outputs) if each.buffer == name]
    if kind is PlaceKind.ARENA or len(tensors) != 1:
        return None
    element, rest = divmod(buffer.size_bytes, max(prod(tensors[0].shape), 1))
    is_open = any(isinstance(extent, str) for extent in tensors[0].extents)
    factors = [f"INT64_C({element})", *(f"({extent})" for extent in tensors[0].extents)]
    return None if rest else " * ".join(factors) if is_open else str(buffer.size_bytes)


@lru_cache(maxsize=8)
def _source(text: str) -> CSource:
    return CSource(text)


@lru_cache(maxsize=1024)
def _outside(text: str, symbols: tuple[ir.Symbol, ...], given: _Given) -> tuple[str, ...] | None:
    """The accesses of a call that are outside; None where it is not known that there are none.

    Args:
        text: Of the file with the kernel.
        symbols: The extents that runs are given.
        given: The call.
    """
    function = _source(text).function
    for most in _MOST_TURNS:
        reach = Reach(function, most)
        try:
            _call(reach, symbols, given)
        except (UnreadableError, ParseError, RecursionError):
            return None
        if reach.outside or not reach.open:
            return tuple(reach.outside)
    return None


def _call(reach: Reach, symbols: tuple[ir.Symbol, ...], given: _Given) -> None:
    """Reads the kernel of a call, in all turns of the loops around that."""
    kernel = reach.function(given.kernel)
    if kernel is None or kernel.decl.type.args is None:
        raise UnreadableError
    frame = Frame(Scope(reach.function), must=np.bool_(given.is_certain))
    for symbol in symbols:
        bounds = np.array((symbol.lower, symbol.upper), dtype=np.int64)
        frame.scope.define(symbol.name, "int32_t", Range(bounds[0], bounds[1]))
    for variable, begin, end in given.loops:
        loop = statement(f"for (int32_t {variable} = {begin}; {variable} < {end}; ++{variable}) {{}}")
        if not isinstance(loop, c_ast.For):
            raise UnreadableError
        frame = reach.inside(loop, frame)
    parameters = (node for node in kernel.decl.type.args.params if isinstance(node, c_ast.Decl))
    pointers = [node for node in parameters if isinstance(node.type, c_ast.PtrDecl)]
    if len(pointers) != len(given.memory):
        raise UnreadableError
    places: list[Places] = []
    for parameter, (name, size_bytes, start) in zip(pointers, given.memory, strict=True):
        element = SIZES.get(type_name(parameter.type))
        if element is None or size_bytes is None:
            raise UnreadableError
        index, size = (frame.scope.range_of(expression(text)) for text in (start, size_bytes))
        places.append(moved((whole(name, size),), index, element))
    numbers = [frame.scope.range_of(expression(number)) for number in given.numbers]
    reach.call(kernel, places, numbers, frame)
