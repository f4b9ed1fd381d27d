"""The second run of placement, on kernels and their calls: scopes flow out of kernels, and into them.

A kernel may state on a parameter where that must lie. What is passed for it is narrowed to that, where it is defined:
an allocation, a constant, a parameter of the caller, whose callers it is asked of in turn. Where a use asks for a place
that the buffer cannot have, as another use has asked before, a copy is made for it (`scope_copies.py`). Then a buffer
that was asked to be in one pool tells so the kernels that left it open: their parameter gets the scope if all of their
calls pass that, and so on to what they call.

Kernels come before their callers, so one round outwards and one inwards are enough. No function changes its device,
and doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.bind_symbols import Known
from bytewright.ir.analyses.touch import TouchTable, touch_table
from bytewright.ir.definitions import redefined, redefined_constants
from bytewright.ir.verify.admit import place_in, refuse
from bytewright.ir.verify.violation import Violation
from bytewright.ir.verify.written import fully_written, unwritten
from bytewright.ir.walk import allocations, calls, definitions
from bytewright.scopes.candidates import role_of
from bytewright.scopes.copy_kernels import CopyKernels
from bytewright.scopes.flow_in import flow_in
from bytewright.scopes.out_of_reach import Parted, Parting
from bytewright.scopes.scope_copies import Needed, with_copies
from bytewright.scopes.scope_uses import Memory, Pairs, Use, pairs_of
from bytewright.target.model import Role, Target


def place_scopes(module: ir.Module, target: Target, io: ir.Io = ir.Io.CALLER) -> ir.Module:
    """Returns the module in which all that calls pass lies within what the parameters state.

    Args:
        module: Lowered. A part of it that storage has decided about, by candidates, is as it should be.
        target: What it is for.
        io: Where inputs and outputs are. The application has them wherever it likes, unless their scope names a pool;
            so what is asked of them is asked of a copy.

    Raises:
        CompileError: BW703 and BW705, for what is asked and cannot be had.
    """
    flow = _Flow(module, target, io, pairs_of(module), touch_table(module, target))
    if _asks_nothing(module) and not flow.is_parted():
        return module
    told = flow_in(flow.run())
    return module if told == module else told


def _asks_nothing(module: ir.Module) -> bool:
    """Whether all parameters say the same, which is nothing, and no buffer that is passed says more."""
    functions = (*module.kernels, *module.entries)
    scopes = {parameter.scope for function in functions for parameter in function.buffer_parameters}
    scopes.update(constant.scope for constant in module.constant_buffers)
    if len(scopes) > 1 or not scopes <= {None, ir.GLOBAL}:
        return False
    return all(
        allocation.scope is None or allocation.scope.pool is None
        for function in functions
        for allocation in allocations(function)
    )


@dataclass(slots=True)
class _Place:
    """Where a definition may lie by now.

    Attributes:
        scope: As its uses left it.
        by: Who asked for that, or else what it is.
        reasons: Why it was narrowed.
        is_given: The application has it where it likes.
        role: Of the pools that it lies in.
    """

    scope: ir.Scope | None
    by: str
    reasons: list[str] = field(default_factory=list[str])
    is_given: bool = False
    role: Role = Role.WORKSPACE

    def joined(self, asked: ir.Scope | None, target: Target) -> ir.Scope | None:
        """Its scope as a use wants it.

        Raises:
            ValueError: It cannot have that.
        """
        joined = ir.join_scopes(self.scope, asked)
        if joined in (self.scope, ir.GLOBAL):
            return joined
        if self.is_given:
            raise ValueError("it is where the application has it")
        pool = None if joined is None else target.find_pool(joined.pool or "")
        is_open = joined is None or joined.pool is None
        if self.role is not Role.WORKSPACE and (is_open or (pool is not None and pool.role is not self.role)):
            raise ValueError(f"it lies in {self.role.value} pools")
        return joined

    def at(self, scope: ir.Scope, reason: str) -> _Place:
        """The same at a place that the devices that touch it leave."""
        return replace(self, scope=scope, by=reason, reasons=[f"place_scopes: {reason}"])

    def narrowed(self, storage: ir.Storage) -> ir.Storage:
        """The record of the definition, with what was asked and by whom."""
        return storage.narrowed(*self.reasons, scope=self.scope) if self.reasons else storage


@dataclass(slots=True)
class _Flow:
    module: ir.Module
    target: Target
    io: ir.Io
    pairs: Mapping[str, Pairs]
    table: TouchTable
    collector: Collector = field(default_factory=Collector)
    kernels: dict[str, Known] = field(default_factory=dict[str, Known])
    places: dict[str, dict[str, _Place]] = field(default_factory=dict[str, dict[str, _Place]])
    constants: dict[str, _Place] = field(default_factory=dict[str, _Place])
    reasons: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    has_one_device: bool = field(init=False)

    def __post_init__(self) -> None:
        self.has_one_device = len({function.device for function in self.functions}) < 2
        for constant in self.module.constant_buffers:
            name, scope = constant.buffer.name, constant.scope
            by = f"constant '{name}' is defined in {scope or ir.GLOBAL}"
            self.constants[name] = _Place(scope, by, role=Role.PARAMETERS)

    def run(self) -> ir.Module:
        for function in self.functions:
            self.ask(function)
        self.collector.stop_if_any()
        return self.copied()

    @property
    def functions(self) -> tuple[ir.PrimFunc, ...]:
        """Callees before their callers."""
        return (*self.module.kernels, *self.module.entries)

    def is_entry(self, function: ir.PrimFunc) -> bool:
        return any(entry.name == function.name for entry in self.module.entries)

    def memory(self, function: ir.PrimFunc) -> Memory:
        """What its names stand for; of an entry, with what is asked for because devices do not reach it."""
        memory = Memory(function, self.pairs.get(function.name, frozenset()), self.reasons)
        memory.asked = self.parted(function, memory).copies
        return memory

    def parted(self, function: ir.PrimFunc, memory: Memory) -> Parted:
        """Places for what devices touch that reach no pool together; nothing of kernels, whose callers give it."""
        if not self.is_entry(function) or self.has_one_device:
            return Parted({}, {})
        found = Parting(function, memory, self.table, self.target, self.io)
        return found.find(use for call in calls(function) for use in memory.uses(call, self.kernels))

    def is_parted(self) -> bool:
        """Whether any device is given what it does not reach."""
        if self.has_one_device:
            return False
        self.kernels = {kernel.name: Known(kernel) for kernel in self.module.kernels}
        found = any(self.memory(entry).asked for entry in self.module.entries)
        self.kernels = {}
        return found

    # What is asked

    def ask(self, function: ir.PrimFunc) -> None:
        """Narrows what a function defines, and constants, by what it calls."""
        own = self.places[function.name] = self.defined(function)
        memory = self.memory(function)
        for name, (scope, reason) in self.parted(function, Memory(function)).homes.items():
            own[name] = own[name].at(scope, reason)
        groups = [tuple(memory.uses(call, self.kernels)) for call in calls(function)]
        for use in sorted((use for group in groups for use in group), key=_rank):
            self.narrow(use, self.of(use, memory, own))
        for group in groups:
            with self.collector.catch():
                self.check_aliases(group, memory, own)
        if not self.is_entry(function):
            self.kernels[function.name] = Known(_with_scopes(function, own))
            self.reasons[function.name] = {name: place.by for name, place in own.items() if place.reasons}

    def defined(self, function: ir.PrimFunc) -> dict[str, _Place]:
        """Where the definitions of a function say that they are."""
        found: dict[str, _Place] = {}
        for definition in definitions(function):
            name, scope = definition.buffer.name, definition.scope
            is_allocated = isinstance(definition, ir.Allocate)
            is_given = self.io is not ir.Io.WORKSPACE and not is_allocated and self.is_entry(function)
            by = f"'{name}' of '{function.symbol}' is defined in {scope or ir.GLOBAL}"
            if is_given and (scope is None or scope.pool is None):
                by = f"'{name}' is where the application has it"
            scope = ir.GLOBAL if is_allocated and scope is None else scope
            role = role_of(definition) if isinstance(definition, ir.Allocate) else Role.WORKSPACE
            found[name] = _Place(scope, by, is_given=is_given, role=role)
        return found

    def of(self, use: Use, memory: Memory, own: Mapping[str, _Place]) -> list[_Place]:
        """The definitions of what a use is given."""
        return [own.get(name) or self.constants[name] for name in memory.of(use.piece.buffer.name)]

    def narrow(self, use: Use, places: list[_Place]) -> None:
        """Joins the scope that a use asks for, if all that it may be given can have that; else a copy will."""
        try:
            joined = [place.joined(use.parameter.scope, self.target) for place in places]
        except ValueError:
            return
        for place, scope in zip(places, joined, strict=True):
            if scope != place.scope:
                place.scope, place.by = scope, use.asking
                place.reasons.append(f"place_scopes: {use.asking}")

    def needs_copy(self, use: Use, memory: Memory, own: Mapping[str, _Place]) -> bool:
        """Whether what is passed is not where it is asked for."""
        return not all(ir.is_within(p.scope, use.parameter.scope) for p in self.of(use, memory, own))

    def check_aliases(self, uses: tuple[Use, ...], memory: Memory, own: Mapping[str, _Place]) -> None:
        """Refuses arguments of a call that are the same memory where no copy gives one a place of its own.

        Raises:
            CompileError: BW705.
        """
        for number, use in enumerate(uses):
            for other in uses[:number]:
                if not memory.may_overlap(use.piece, other.piece):
                    continue
                both = (other, use)
                is_one = use.piece == other.piece and use.parameter.scope == other.parameter.scope
                is_copied = not is_one and any(self.needs_copy(one, memory, own) for one in both)
                is_changed = use.is_written or other.is_written
                is_torn = memory.is_same(use.piece, other.piece) and not _have_common(
                    use.parameter.scope, other.parameter.scope
                )
                if is_torn or (is_copied and is_changed):
                    names = " and ".join(f"'{one.parameter.name}'" for one in both)
                    sources = (place.by for place in self.of(use, memory, own))
                    raise compile_error(
                        "BW705",
                        f"{names} of '{use.callee.symbol}' are given the same memory, of "
                        f"'{use.piece.buffer.name}', but are to be in different places",
                        tuple(dict.fromkeys((*(one.asking for one in both), *sources))),
                        "pass a copy for one of them, or ask for one scope in both",
                        str(use.call.where),
                    )

    # What is done about it

    def copied(self) -> ir.Module:
        """The module with the scopes that are asked for, and copies where that is not enough."""
        placed = [_with_scopes(function, self.places[function.name]) for function in self.functions]
        needed = {function.name: self.needed(function) for function in placed}
        if not any(needed.values()):
            return self.as_module({function.name: function for function in placed}, ())
        copies, full = CopyKernels(self.module, self.target, self.io), fully_written(self.module)
        written: dict[str, ir.PrimFunc] = {}
        for function in placed:
            own = self.places[function.name]
            scopes = {name: place.scope for name, place in {**self.constants, **own}.items()}
            with self.collector.catch():
                written[function.name] = with_copies(
                    function, needed[function.name], self.memory(function), scopes, self.kernels, copies, full
                )
        self.collector.stop_if_any()
        called = {call.callee for function in written.values() for call in calls(function)}
        used = (kernel for kernel in copies.functions.values() if kernel.name in called)
        found = self.as_module(written, tuple(used))
        refuse([_of_copy(fault) for fault in unwritten(found, copies.buffers)], partial(place_in, found))
        return found

    def needed(self, function: ir.PrimFunc) -> Needed:
        """What a function is to pass copies for."""
        own, memory = self.places[function.name], self.memory(function)
        return {
            (id(call), use.index): use
            for call in calls(function)
            for use in memory.uses(call, self.kernels)
            if self.needs_copy(use, memory, own)
        }

    def as_module(self, functions: Mapping[str, ir.PrimFunc], copies: tuple[ir.PrimFunc, ...]) -> ir.Module:
        storages = {
            c.buffer.name: self.constants[c.buffer.name].narrowed(c.storage)
            for c in self.module.constant_buffers
        }
        return replace(
            self.module,
            kernels=(*copies, *(functions[kernel.name] for kernel in self.module.kernels)),
            entries=tuple(functions[entry.name] for entry in self.module.entries),
            constant_buffers=redefined_constants(self.module, storages),
        )


def _rank(use: Use) -> int:
    """What writes a buffer says first where it is, then what reads it; scratch may be another at each call."""
    return 2 if use.is_scratch else 0 if use.is_written else 1


def _have_common(first: ir.Scope | None, second: ir.Scope | None) -> bool:
    try:
        ir.join_scopes(first, second)
    except ValueError:
        return False
    return True


def _of_copy(fault: Violation) -> Violation:
    text = f"what kernels ask for takes a copy, and not all of it is written by then: {fault.text}"
    return replace(fault, text=text, code="BW705", help="write all of it, or ask for one scope")


def _with_scopes(function: ir.PrimFunc, own: Mapping[str, _Place]) -> ir.PrimFunc:
    """The function whose definitions have the scopes that were asked of them."""
    if not any(place.reasons for place in own.values()):
        return function
    parameters = tuple(
        replace(p, scope=own[p.name].scope) if isinstance(p, ir.BufferParameter) else p
        for p in function.parameters
    )
    storages = {a.buffer.name: own[a.buffer.name].narrowed(a.storage) for a in allocations(function)}
    return redefined(replace(function, parameters=parameters), storages)
