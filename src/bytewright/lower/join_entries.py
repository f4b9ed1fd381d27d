"""Several graphs, each lowered by itself, become one program: each is an entry, and they share what is alike.

Constants with the same bytes are one, and so are states of one name. Every entry allocates all states, in one order,
as programs of several entries do; a buffer whose name another graph has too is called `<entry>/<name>`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import compile_error
from bytewright.ir.rewrite import rename_callees, substitute_in_function
from bytewright.ir.symbols import buffers_of

_Known = TypeVar("_Known")


def join_entries(module: ir.Module, *others: ir.Module) -> ir.Module:
    """Returns the module with the entries of the others behind its own.

    Args:
        module: Lowered of a graph.
        others: The same of other graphs, whose functions have other names.

    Raises:
        CompileError: BW107, a state is of another shape or type in another graph.
    """
    modules = (module, *others)
    states = _States.of(modules)
    joining = _Joining(modules, states)
    entries = tuple(joining.entry(own) for own in modules)
    return replace(
        module,
        kernels=tuple(joining.kernels),
        entries=entries,
        constant_buffers=tuple(joining.constants.values()),
        inputs=tuple(port for own in modules for port in own.inputs),
        outputs=tuple(port for own in modules for port in own.outputs),
        state=tuple(states.ports.values()),
        sources=FrozenMapping(joining.sources),
        narrowed=joining.narrowed(),
    )


@dataclass(slots=True)
class _States:
    """The states of all graphs, in the order of their first use, by what the models call them.

    Attributes:
        ports: What each is; where one graph knows how it begins, that.
        allocations: How the first graph that has it asks for it.
    """

    ports: dict[str, ir.Port] = field(default_factory=dict[str, ir.Port])
    allocations: dict[str, ir.Allocate] = field(default_factory=dict[str, ir.Allocate])

    @classmethod
    def of(cls, modules: Sequence[ir.Module]) -> "_States":
        """Those of some modules."""
        found, taken = cls(), set[str]()
        for module in modules:
            for port, allocation in zip(module.state, _allocated_states(module.main), strict=True):
                key = _key(port)
                known = found.ports.setdefault(key, port)
                if (known.type.shape, known.type.dtype) != (port.type.shape, port.type.dtype):
                    message = f"variable '{key}' is {known.type} in one signature and {port.type} in another"
                    raise compile_error(
                        "BW107", message, help="compile one of the signatures", where=module.name
                    )
                if key not in found.allocations:
                    name = unique_name(allocation.buffer.name, taken)
                    renamed = replace(allocation, buffer=replace(allocation.buffer, name=name))
                    found.allocations[key] = renamed
        return found


def _key(port: ir.Port) -> str:
    return port.stated or port.name


def _allocated_states(entry: ir.PrimFunc) -> tuple[ir.Allocate, ...]:
    """The states that an entry allocates, at the beginning of its body."""
    return tuple(
        statement
        for statement in entry.body.statements
        if isinstance(statement, ir.Allocate) and ir.border_of(statement) is ir.Border.STATE
    )


class _Joining:
    """One run of the pass: kernels, constants and sources as far as it went."""

    def __init__(self, modules: Sequence[ir.Module], states: _States) -> None:
        self.modules, self.states = modules, states
        self.kernels: list[ir.PrimFunc] = []
        self.constants: dict[ir.TensorData, ir.ConstantBuffer] = {}
        self.sources: dict[str, ir.SourceTensor] = {}
        self._narrowed: list[ir.Narrowed] = []
        self._kernel_names: set[str] = set()
        self._uses = Counter(name for module in modules for name in _names_of(module))
        self._taken = {each.buffer.name for each in states.allocations.values()}
        self._shared = {name for name, count in self._uses.items() if count > 1} | self._taken
        self._taken |= self._uses.keys() - self._shared

    def entry(self, module: ir.Module) -> ir.PrimFunc:
        """The entry of a module, on what all share; its kernels and constants join those before."""
        callees = {kernel.name: unique_name(kernel.name, self._kernel_names) for kernel in module.kernels}
        own = [replace(kernel, name=callees[kernel.name]) for kernel in module.kernels]
        self.kernels += [rename_callees(kernel, callees) for kernel in own]
        changed = {**self._own_buffers(module), **self._shared_constants(module.constant_buffers)}
        allocated = _allocated_states(module.main)
        for port, allocation in zip(module.state, allocated, strict=True):
            changed[allocation.buffer] = self.states.allocations[_key(port)].buffer
        names = {old.name: new.name for old, new in changed.items()}
        if module.narrowed is not None:
            self._narrowed.append(_renamed(module.narrowed, names))
        for name, source in module.sources.items():
            self.sources.setdefault(names.get(name, name), source)
        rest = tuple(each for each in module.main.body.statements if each not in allocated)
        body = ir.Seq((*self.states.allocations.values(), *rest))
        entry = substitute_in_function(replace(module.main, body=body), changed)
        return rename_callees(entry, callees)

    def _own_buffers(self, module: ir.Module) -> dict[ir.Buffer, ir.Buffer]:
        """The buffers that need another name, since another module has theirs."""
        states = {allocation.buffer for allocation in _allocated_states(module.main)}
        return {
            buffer: replace(buffer, name=unique_name(f"{module.main.name}/{buffer.name}", self._taken))
            for buffer in buffers_of(module.main)
            if buffer not in states and buffer.name in self._shared
        }

    def _shared_constants(self, constants: Iterable[ir.ConstantBuffer]) -> dict[ir.Buffer, ir.Buffer]:
        """What stands for each constant that is not itself: one of the same bytes, or itself under another name."""
        found: dict[ir.Buffer, ir.Buffer] = {}
        for constant in constants:
            known = self.constants.get(constant.data)
            if known is None:
                own = constant.buffer.name
                name = unique_name(own, self._taken) if own in self._shared else own
                known = replace(constant, buffer=replace(constant.buffer, name=name))
                self.constants[constant.data] = known
            found[constant.buffer] = known.buffer
        return {old: new for old, new in found.items() if old != new}

    def narrowed(self) -> ir.Narrowed | None:
        """What all graphs lost together; a weight that two share counts for each."""
        lost = self._narrowed
        if not lost:
            return None
        return ir.Narrowed(
            sum(each.macs_before for each in lost),
            sum(each.macs for each in lost),
            sum(each.weight_bytes_before for each in lost),
            sum(each.weight_bytes for each in lost),
            FrozenMapping({name: shape for each in lost for name, shape in each.shapes.items()}),
            FrozenMapping({name: kept for each in lost for name, kept in each.channels.items()}),
            FrozenMapping({name: known for each in lost for name, known in each.constant.items()}),
        )


def _names_of(module: ir.Module) -> set[str]:
    """The names of what an entry is given, allocates and reads, without its states."""
    states = {allocation.buffer for allocation in _allocated_states(module.main)}
    own = {buffer.name for buffer in buffers_of(module.main) if buffer not in states}
    return own | {constant.buffer.name for constant in module.constant_buffers}


def _renamed(narrowed: ir.Narrowed, names: Mapping[str, str]) -> ir.Narrowed:
    def under_new_names(found: Mapping[str, _Known]) -> Mapping[str, _Known]:
        return FrozenMapping({names.get(name, name): known for name, known in found.items()})

    return replace(
        narrowed,
        shapes=under_new_names(narrowed.shapes),
        channels=under_new_names(narrowed.channels),
        constant=under_new_names(narrowed.constant),
    )
