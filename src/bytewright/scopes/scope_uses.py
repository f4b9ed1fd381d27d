"""What calls pass, as pieces of memory: what place_scopes compares with the scopes that parameters state.

A piece is what a parameter denotes in its caller: a buffer, or part of one, or what a view shows. Two pieces are one
memory as far as names say so: through views, and through parameters that some call gives the same buffer.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from bytewright import ir
from bytewright.ir.analyses.bind_symbols import Known, binding_at, bound_extents
from bytewright.ir.walk import calls, regions, statements_of, walk_expression

# A kernel and one of its parameters, by name.
Written = tuple[str, str]
# Pairs of a function's parameters that some call gives the same memory.
Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements of a buffer that lie one after another.

    Attributes:
        buffer: The buffer, or a view.
        indices: Where they begin; none where they are all of it.
        shape: As many as these extents say.
    """

    buffer: ir.Buffer
    indices: tuple[ir.Expr, ...]
    shape: tuple[ir.Extent, ...]

    @property
    def region(self) -> ir.Region:
        """Where it begins."""
        return ir.Region(self.buffer, self.indices)

    @property
    def names(self) -> frozenset[str]:
        """The buffer and the variables that it is told by."""
        inside = (node for index in self.indices for node in walk_expression(index))
        return frozenset((self.buffer.name, *(node.name for node in inside if isinstance(node, ir.Var))))

    @property
    def is_told_by_data(self) -> bool:
        """Whether memory says where it begins."""
        inside = (node for index in self.indices for node in walk_expression(index))
        return any(isinstance(node, ir.Load) for node in inside)

    def is_apart(self, other: Piece) -> bool:
        """Whether two pieces of one buffer are known to share no element."""
        if self.buffer != other.buffer:
            return False
        first, second = ir.region_index(self.region), ir.region_index(other.region)
        if not isinstance(first, ir.Const) or not isinstance(second, ir.Const):
            return False
        sizes = (prod(map(ir.upper_bound, piece.shape)) for piece in (self, other))
        ends = [int(begin.value) + size for begin, size in zip((first, second), sizes, strict=True)]
        return ends[0] <= int(second.value) or ends[1] <= int(first.value)


@dataclass(frozen=True, slots=True)
class Use:
    """One argument of a call, with the parameter that it is passed to.

    Attributes:
        because: Why the parameter has its scope, where another kernel asked for that.
    """

    call: ir.Call
    index: int
    callee: ir.PrimFunc
    parameter: ir.BufferParameter
    piece: Piece
    because: str = ""

    @property
    def is_scratch(self) -> bool:
        """Whether what it holds before and after the call is of no interest."""
        return self.parameter.role is ir.ParameterRole.SCRATCH

    @property
    def is_read(self) -> bool:
        """Whether the call is given what it holds."""
        return self.parameter.access is not ir.Access.WRITE and not self.is_scratch

    @property
    def is_written(self) -> bool:
        """Whether the call changes it."""
        return self.parameter.access is not ir.Access.READ

    @property
    def text(self) -> str:
        """Which parameter of what, at which operator."""
        place = self.call.where.operator or self.call.where
        return f"'{self.parameter.name}' of '{self.callee.symbol}' in {place}"

    @property
    def asking(self) -> str:
        """`'q' of 'm_npu' in 2 (CONV_2D) asks for global.sram`, and for whom it does."""
        stated = f"{self.text} asks for {self.parameter.scope}"
        return f"{stated}, since {self.because}" if self.because else stated

    @property
    def written(self) -> Written:
        """The parameter, by the names of both."""
        return self.callee.name, self.parameter.name

    def is_overwritten(self, full: Container[Written]) -> bool:
        """Whether nothing is left of what it held before, as `full` says of the parameters that it holds."""
        return self.is_scratch or (self.parameter.access is ir.Access.WRITE and self.written in full)


@dataclass(slots=True)
class Memory:
    """What the names of one function stand for.

    Attributes:
        pairs: Parameters of it that may be one memory.
        reasons: Why parameters of kernels have scopes that others asked for.
        asked: Scopes that single arguments are asked in, by the call's identity and their number; and why.
        roots: Of a view: what it may show, through other views. What is not here is its own.
    """

    function: ir.PrimFunc
    pairs: Pairs = frozenset()
    reasons: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    asked: Mapping[tuple[int, int], tuple[ir.Scope, str]] = field(
        default_factory=dict[tuple[int, int], "tuple[ir.Scope, str]"]
    )
    known: Known = field(init=False)
    roots: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        self.known = Known(self.function)
        for statement in statements_of(self.function):
            if isinstance(statement, ir.View):
                shown = (name for r in regions(statement) for name in self.of(r.buffer.name))
                self.roots[statement.buffer.name] = tuple(dict.fromkeys(shown))

    def of(self, name: str) -> tuple[str, ...]:
        """The definitions whose memory a name may stand for."""
        return self.roots.get(name, (name,))

    def is_shared(self, first: str, second: str) -> bool:
        """Whether what two names stand for may be the same memory."""
        return any(a == b or frozenset((a, b)) in self.pairs for a in self.of(first) for b in self.of(second))

    def is_same(self, first: Piece, second: Piece) -> bool:
        """Whether two pieces may have an element in common, whatever callers pass."""
        roots = self.of(first.buffer.name)
        return any(name in roots for name in self.of(second.buffer.name)) and not first.is_apart(second)

    def may_overlap(self, first: Piece, second: Piece) -> bool:
        """Whether two pieces may have an element in common."""
        return self.is_shared(first.buffer.name, second.buffer.name) and not first.is_apart(second)

    def uses(self, call: ir.Call, kernels: Mapping[str, Known]) -> Iterator[Use]:
        """What a call passes to parameters that are known."""
        callee = kernels.get(call.callee)
        if callee is None:
            return
        binding = binding_at(callee, call, self.known)
        for index, (parameter, given) in enumerate(
            zip(callee.function.parameters, call.arguments, strict=False)
        ):
            if isinstance(parameter, ir.BufferParameter) and isinstance(given, ir.Region):
                needed = bound_extents(ir.storage_shape(parameter.buffer), binding)
                because = self.reasons.get(call.callee, {}).get(parameter.name, "")
                scope, because = self.asked.get((id(call), index), (parameter.scope, because))
                asking = parameter if scope == parameter.scope else replace(parameter, scope=scope)
                yield Use(call, index, callee.function, asking, _piece(given, needed), because)


def _piece(given: ir.Region, needed: tuple[ir.Extent, ...]) -> Piece:
    """All of a buffer where as many elements are needed, else that part of it."""
    first, whole = ir.region_index(given), ir.storage_shape(given.buffer)
    if not (isinstance(first, ir.Const) and first.value == 0):
        return Piece(given.buffer, given.indices, needed)
    has_symbols = not all(isinstance(extent, int) for extent in (*whole, *needed))
    is_whole = has_symbols or prod(map(ir.upper_bound, whole)) == prod(map(ir.upper_bound, needed))
    return Piece(given.buffer, (), whole if is_whole else needed)


def pairs_of(module: ir.Module) -> dict[str, Pairs]:
    """For each kernel the parameters that some call, at any depth, gives memory in common."""
    found: dict[str, set[frozenset[str]]] = {kernel.name: set() for kernel in module.kernels}
    kernels = {kernel.name: Known(kernel) for kernel in module.kernels}
    for function in (*module.entries, *reversed(module.kernels)):  # callers before their callees
        memory = Memory(function, frozenset(found.get(function.name, ())))
        for call in calls(function):
            uses = tuple(memory.uses(call, kernels))
            for number, use in enumerate(uses):
                for other in uses[:number]:
                    if memory.may_overlap(use.piece, other.piece):
                        found[call.callee].add(frozenset((use.parameter.name, other.parameter.name)))
    return {name: frozenset(pairs) for name, pairs in found.items()}
