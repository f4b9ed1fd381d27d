"""Has buffers lie in others, so that steps which would copy the one to the other copy less, or are not there.

What is passed of such a buffer becomes a region of that in which it lies. A step that copies all of its output is gone;
one of whose output some blocks are in place is left with the others, in a kernel of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.address import region_index, storage_shape
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.rewrite import Element, Indices, Rewriting, rewrite_sequence
from bytewright.ir.walk import calls, loaded_buffers, walk_statements
from bytewright.storage.find_parts import Part, places_of


def take_parts(module: ir.Module, parts: Sequence[Part]) -> ir.Module:
    """Returns the module with each of these parts in the buffer that holds it.

    Args:
        module: Lowered; its entries have names of their own.
        parts: Some of those that `find_parts` finds in its entries, with steps numbered through all of these.
    """
    return _Taking(module, parts).run() if parts else module


class _Taking:
    """One run of the pass."""

    def __init__(self, module: ir.Module, parts: Sequence[Part]) -> None:
        self.module = module
        self.places = places_of(parts)
        self.steps: dict[int, set[str]] = {}  # what is in place of each step that copies less
        for part in parts:
            self.steps.setdefault(part.step, set()).add(part.name)
        self.held: dict[str, list[str]] = {}
        for name, place in self.places.items():
            self.held.setdefault(place.root, []).append(name)
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.names = {*self.kernels, *(entry.name for entry in module.entries)}
        self.rests: dict[tuple[str, frozenset[str]], ir.PrimFunc] = {}
        given = [p for entry in module.entries for p in entry.buffer_parameters]
        own = [s for entry in module.entries for s in entry.body.statements if isinstance(s, ir.Allocate)]
        self.buffers = {each.buffer.name: each.buffer for each in (*given, *own)}
        self.allocations = {s.buffer.name: self._with_reason(s) for s in own}

    def _with_reason(self, allocation: ir.Allocate) -> ir.Allocate:
        """An allocation that says what lies in it."""
        size_bytes = allocation.buffer.dtype.size_bytes
        reasons = (
            f"take_parts: '{name}' is a part of it, from byte {self.places[name].first * size_bytes} on"
            for name in self.held.get(allocation.buffer.name, ())
        )
        return replace(allocation, storage=allocation.storage.narrowed(*reasons))

    def run(self) -> ir.Module:
        taken = tuple(self._taken())
        functions = [*taken, *self.module.kernels, *self.rests.values()]
        called = {call.callee for function in functions for call in calls(function)}
        before = (call for entry in self.module.entries for call in calls(entry))
        copying = {call.callee for number, call in enumerate(before) if number in self.steps}
        rests: dict[str, list[ir.PrimFunc]] = {}
        for (name, _), rest in self.rests.items():
            rests.setdefault(name, []).append(rest)
        kernels: list[ir.PrimFunc] = []
        for kernel in self.module.kernels:
            kept = [kernel] if kernel.name in called or kernel.name not in copying else []
            kernels.extend([*kept, *rests.get(kernel.name, ())])
        return replace(self.module, kernels=tuple(kernels), entries=taken)

    def _taken(self) -> Iterator[ir.PrimFunc]:
        """The entries with what is passed in its place."""
        number = 0
        for entry in self.module.entries:
            body = rewrite_sequence(
                ir.Seq(tuple(self._statements(entry, number))), Rewriting(element=self._element)
            )
            yield replace(entry, body=body)
            number += len(calls(entry))

    def _statements(self, entry: ir.PrimFunc, number: int) -> Iterator[ir.Statement]:
        """An entry's statements without allocations of parts, and with what is left of steps.

        What holds parts is allocated where the first of them was. `number` is that of the first call.
        """
        allocated = set[str]()
        for statement in entry.body.statements:
            if isinstance(statement, ir.Allocate):
                name = statement.buffer.name
                root = self.places[name].root if name in self.places else name
                if root not in allocated and root in self.allocations:
                    allocated.add(root)
                    yield self.allocations[root]
                continue
            if isinstance(statement, ir.Call) and number in self.steps:
                yield from self._rest_of(statement, self.steps[number])
            else:
                yield statement
            number += sum(isinstance(inner, ir.Call) for inner in walk_statements(statement))

    def _rest_of(self, call: ir.Call, names: set[str]) -> Iterator[ir.Call]:
        """The call that copies what is not in place; none if all is."""
        kernel = self.kernels[call.callee]
        given = buffer_arguments(kernel, call)
        if any(r.buffer.name in names and p.access is not ir.Access.READ for p, r in given):
            return  # the output is a part of the input
        in_place = frozenset(p.name for p, region in given if region.buffer.name in names)
        key = (kernel.name, in_place)
        if key not in self.rests:
            self.rests[key] = _without(kernel, in_place, unique_name(f"{kernel.name}_rest", self.names))
        rest = self.rests[key]
        if not rest.body.statements:
            del self.rests[key]
            return
        pairs = zip(kernel.parameters, call.arguments, strict=True)
        arguments = tuple(argument for parameter, argument in pairs if parameter.name not in in_place)
        yield replace(call, callee=rest.name, arguments=arguments)

    def _element(self, buffer: ir.Buffer, indices: Indices) -> Element:
        """Where an element is now, or a region begins."""
        place = self.places.get(buffer.name)
        if place is None:
            return buffer, indices
        root = self.buffers[place.root]
        first = place.first + _number(buffer, indices)
        if first == 0 and not indices:
            return root, ()
        return root, _indices(root, first)


def _number(buffer: ir.Buffer, indices: Indices) -> int:
    index = region_index(ir.Region(buffer, indices))
    assert isinstance(index, ir.Const)  # or it would be no part
    return int(index.value)


def _indices(buffer: ir.Buffer, number: int) -> Indices:
    """The indices of an element."""
    found: list[ir.Expr] = []
    for extent in reversed(storage_shape(buffer)):
        found.append(ir.const(number % ir.upper_bound(extent)))
        number //= ir.upper_bound(extent)
    return tuple(reversed(found))


def _without(kernel: ir.PrimFunc, sources: frozenset[str], name: str) -> ir.PrimFunc:
    """A kernel under another name that neither is given some parameters nor copies them."""

    def keep(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        is_copy = isinstance(statement, ir.Store) and any(
            b.name in sources for b in loaded_buffers(statement)
        )
        return () if is_copy else (statement,)

    body = drop_unused(rewrite_sequence(kernel.body, Rewriting(statement=keep)))
    parameters = tuple(p for p in kernel.parameters if p.name not in sources)
    return replace(kernel, name=name, parameters=parameters, body=body)
