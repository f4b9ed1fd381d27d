"""Whether kernels keep to the most of a size that the data decides: each reads it within its limits.

The plan says which outputs are sizes, and the most of each. A kernel may store such a number as it stores any other;
what it touches, and how often it turns, depends on one between 0 and the most alone. One that finds a size out counts,
and touches where it has counted to only below the most.
"""

from collections.abc import Iterator, Mapping

from pycparser import c_ast

from bytewright.inspect.c_nodes import call_of, integer_of, spell
from bytewright.inspect.c_source import CSource, children, descend
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def differences_of_sizes(plan: Plan, names: Names, files: Mapping[str, CSource]) -> Iterator[str]:
    """Kernels that read a size otherwise, one sentence each.

    Args:
        plan: The plan.
        names: The names of its bundle.
        files: The files with kernels, by their paths.
    """
    most = {tensor.buffer: tensor.most for tensor in plan.outputs if tensor.most}
    if not most:
        return
    seen: set[tuple[str, str, int | None, int]] = set()
    for step in plan.steps:
        device = plan.devices.get(step.device)
        file = names.kernels_source if device is None else names.device_source(device)
        function = files[file].function(step.kernel) if file in files else None
        given = step.arguments or tuple(span.buffer for span in step.spans)
        for position, name in enumerate(given if function is not None else ()):
            key = (file, step.kernel, position if name in step.reads else None, most.get(name, 0))
            if function is None or not key[3] or key in seen:
                continue
            seen.add(key)
            pointers = _pointers(function)
            if len(pointers) != len(given):
                yield f"{file}, {step.kernel} has {len(pointers)} parameters of memory, a step gives it {len(given)}"
                return
            reads = _Reads(pointers[position], key[3], f"{names.model}_")
            found = _counted(function.body, key[3]) if key[2] is None else reads.unlimited(function.body)
            for node in found:
                yield f"{file}, {step.kernel} depends on '{spell(node)}', and not on '{name}' from 0 to {key[3]}"


def _pointers(function: c_ast.FuncDef) -> list[str]:
    """The names of the parameters that are passed by address."""
    given = function.decl.type.args
    nodes = [] if given is None else given.params
    return [
        node.name for node in nodes if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.PtrDecl)
    ]


class _Reads:
    """What becomes of a size in a kernel: `names` are those that stand for it, or for what is computed from it."""

    def __init__(self, parameter: str, most: int, front: str) -> None:
        self.names, self._most, self._front = {parameter}, most, front
        self._size = f"{parameter}[0]"

    def unlimited(self, body: c_ast.Node) -> Iterator[c_ast.Node]:
        """The expressions that say what is touched or run, and depend on more than the number within its limits."""
        for node in descend(body):
            match node:
                case c_ast.Decl(name=str(name), init=c_ast.Node() as value):
                    self.names |= {name} if self._depends(value) else set[str]()
                case c_ast.Assignment(lvalue=c_ast.ID(name=name), rvalue=value):
                    self.names |= {name} if self._depends(value) else set[str]()
                case _:
                    pass
        for node in descend(body):
            match node:
                case c_ast.For(init=init, cond=condition):
                    yield from (
                        part for part in (init, condition) if part is not None and self._depends(part)
                    )
                case c_ast.ArrayRef(subscript=index) if self._depends(index):
                    yield index
                case c_ast.If(cond=condition) | c_ast.TernaryOp(cond=condition) if self._depends(condition):
                    yield condition
                case c_ast.FuncCall() if call_of(node)[0].startswith(self._front):
                    yield from filter(self._depends, call_of(node)[1])
                case c_ast.Decl(type=c_ast.PtrDecl(), init=c_ast.Node() as value) if self._depends(value):
                    yield value
                case _:
                    pass

    def _depends(self, node: c_ast.Node) -> bool:
        """Whether an expression depends on the size, otherwise than within its limits."""
        if self._is_limited(node):
            return False
        if isinstance(node, c_ast.ID):
            return node.name in self.names
        return any(map(self._depends, children(node)))

    def _is_limited(self, node: c_ast.Node) -> bool:
        match call_of(node):
            case "clamp_i32", (size, low, high):
                return (spell(size), integer_of(low), integer_of(high)) == (self._size, 0, self._most)
            case _:
                return False


def _counted(body: c_ast.Node, most: int) -> Iterator[c_ast.Node]:
    """What a kernel touches, and how often it turns, by what it counts, where that is not below the most."""
    counters = {
        node.lvalue.name
        for node in descend(body)
        if isinstance(node, c_ast.Assignment) and isinstance(node.lvalue, c_ast.ID)
    }
    yield from _beyond(body, frozenset(counters), most)


def _beyond(node: c_ast.Node, counters: frozenset[str], most: int) -> Iterator[c_ast.Node]:
    match node:
        case c_ast.ArrayRef(subscript=index) if _counts(index, counters, most):
            yield index
        case c_ast.For(cond=c_ast.Node() as condition) if _counts(condition, counters, most):
            yield condition
        case c_ast.If(cond=condition, iftrue=then, iffalse=otherwise):
            yield from _beyond(condition, counters, most)
            yield from _beyond(then, counters - _below(condition, most), most)
            yield from () if otherwise is None else _beyond(otherwise, counters, most)
        case c_ast.Compound(block_items=items):
            for item in items or ():
                yield from _beyond(item, counters, most)
                match item:
                    case c_ast.Decl(name=str(name), init=c_ast.Node() as value) if _counts(
                        value, counters, most
                    ):
                        counters |= {name}
                    case _:
                        pass
        case _:
            for child in children(node):
                yield from _beyond(child, counters, most)


def _counts(node: c_ast.Node, counters: frozenset[str], most: int) -> bool:
    """Whether an expression depends on what is counted, and on more than what of that is at most the most."""
    match node:
        case c_ast.FuncCall() if call_of(node)[0] == "min_i32" and integer_of(call_of(node)[1][-1]) == most:
            return False
        case c_ast.ID(name=name):
            return name in counters
        case _:
            return any(_counts(child, counters, most) for child in children(node))


def _below(condition: c_ast.Node, most: int) -> frozenset[str]:
    """The names of which a condition says that they are below the most."""
    match condition:
        case c_ast.BinaryOp(op="<", left=c_ast.ID(name=name), right=right) if integer_of(right) == most:
            return frozenset({name})
        case _:
            return frozenset()
