"""What the verifier's checks share: the module under test, the stage's rules, and the violations found so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.bind_symbols import Known
from bytewright.target.model import Target

# Codes of what may be wrong with a program: it breaks a rule, reads what nothing wrote, or has no C text yet.
INVALID, UNWRITTEN, NOT_YET = "BW113", "BW115", "BW116"
# Codes of what cannot be handed to another device: by a kernel, or at all.
HANDED_ON, NO_CODE = "BW720", "BW721"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Attributes:
        function: The function that it is in; None for the module itself.
        node: The statement, node, parameter or function that the remark stands under.
        text: What is wrong, in one line.
        help: What to do, where it comes from a program that somebody wrote.
        code: The diagnostic that it is in such a program.
    """

    function: ir.Function | ir.PrimFunc | None
    node: object
    text: str
    help: str | None = None
    code: str = INVALID


@dataclass(frozen=True, slots=True)
class ModuleIndex:
    """What the checks of each function ask of the module, gathered once.

    Attributes:
        known: Kernels and entries by name, with what is known of their scalars.
        positions: Where among the kernels each name stands, last; entries are not there.
        entries: Names of the entries.
        constants: Constants by name.
    """

    known: Mapping[str, Known]
    positions: Mapping[str, int]
    entries: frozenset[str]
    constants: Mapping[str, ir.ConstantBuffer]

    @staticmethod
    def of(module: ir.Module) -> ModuleIndex:
        """The index of a module."""
        functions = (*module.entries, *reversed(module.kernels))  # of two with one name, the first kernel
        return ModuleIndex(
            {function.name: Known(function) for function in functions},
            {kernel.name: position for position, kernel in enumerate(module.kernels)},
            frozenset(entry.name for entry in module.entries),
            {constant.buffer.name: constant for constant in module.constant_buffers},
        )


def graph_values(module: ir.Module) -> Iterator[tuple[ir.Function, object, ir.Value]]:
    """Each value of the graph, with its function and what the remarks on it stand under."""
    for function in module.functions:
        yield from ((function, function, value) for value in function.parameters)
        yield from ((function, node, value) for node in function.nodes for value in node.outputs)


def word_for(module: ir.Module, function: ir.Function | ir.PrimFunc) -> str:
    """What a function is to its module."""
    if isinstance(function, ir.Function):
        return "function"
    return "entry" if any(entry is function for entry in module.entries) else "kernel"


@dataclass(frozen=True, slots=True)
class StageRules:
    """What is legal at a stage.

    Attributes:
        graph: Graph functions may be there.
        entries: Entries and constants for PrimFuncs may be there.
        devices: Every value of a graph function has a device.
        undecided: Scopes that no allocation may have any more; before planning, the entry's may if they have
            candidate pools.
        offsets: Constants, and allocations in pools, have offsets, unless these are requested from an arena there;
            before, none has. Kernels allocate in no pool.
        lowered_tags: No scope has a tag that some pass still has to lower.
        unknown_tags: Scopes may have tags that the target does not know: storage refuses them, once it has looked
            for options that give the target such pools.
        open_scopes: What a call passes may have a wider scope than the parameter, or another one: `place_scopes` has
            still to see to it.
    """

    graph: bool = False
    entries: bool = False
    devices: bool = False
    undecided: tuple[ir.Scope | None, ...] = ()
    offsets: bool = False
    lowered_tags: bool = False
    unknown_tags: bool = False
    open_scopes: bool = False


@dataclass(slots=True)
class Context:
    """The module under test."""

    module: ir.Module
    index: ModuleIndex
    target: Target | None
    rules: StageRules
    violations: list[Violation] = field(default_factory=list[Violation])

    def report(self, function: ir.Function | ir.PrimFunc | None, node: object, *faults: str) -> None:
        """Remembers what is wrong with a node, a violation for each fault."""
        self.violations.extend(Violation(function, node, fault) for fault in faults)

    def scope_faults(self, scope: ir.Scope | None, device: str | None, what: str) -> Iterator[str]:
        """What the target has against the scope that something has on a device, if anything."""
        if scope is None or self.target is None:
            return
        known = self.target.find_device(device) if device is not None else None
        general = scope.rank is ir.Rank.GLOBAL and scope.tag in (ir.WORKSPACE_TAG, ir.STACK_TAG)
        if known is not None and scope.rank.value not in {rank.value for rank in known.ranks}:
            ranks = ", ".join(rank.value for rank in known.ranks)
            yield f"{what}: rank '{scope.rank.value}' does not exist on device '{device}', whose ranks are {ranks}"
        elif scope.tag is not None and not general:
            tag = self.target.scope_tag(scope.tag)
            if tag is not None and tag.lowering_pass is not None and self.rules.lowered_tags:
                yield f"{what}: scope '{scope}' was left over by pass '{tag.lowering_pass}'"
            if tag is None and self.target.find_pool(scope.tag) is None and not self.rules.unknown_tags:
                yield f"{what}: scope '{scope}' names neither a pool nor a tag of target '{self.target.name}'"

    def device_faults(self, device: str | None) -> Iterator[str]:
        """What the target has against a device, if anything."""
        if device is not None and self.target is not None and self.target.find_device(device) is None:
            yield f"target '{self.target.name}' has no device '{device}'"
