"""Whether the functions with the steps get from each to the next, and do nothing else: what `read_entry` reads is done.

They leave early only with an error, and jump nowhere. They call the kernels, what serves these, and the functions of
the file that hand work over and check memory; of memory they write only what is theirs in the context.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from pycparser import c_ast

from bytewright import ir
from bytewright.inspect.c_nodes import OF_CONSTANTS, call_of, plain_name, spell
from bytewright.inspect.c_source import CSource, descend
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.naming.symbols import symbols_of_files
from bytewright.record.names import Names
from bytewright.record.plan import Plan

# Steps could be left out by these, and names stand for something else.
_NEVER = (
    *(c_ast.Goto, c_ast.Label, c_ast.Switch, c_ast.Case, c_ast.Default, c_ast.Break, c_ast.Continue),
    *(c_ast.Enum, c_ast.Typedef, c_ast.Pragma),
)
# What stands in blocks: `(void)x` is a cast.
_STATEMENTS = (
    *(c_ast.Decl, c_ast.Assignment, c_ast.FuncCall, c_ast.UnaryOp, c_ast.Cast, c_ast.Return),
    *(c_ast.Compound, c_ast.If, c_ast.For),
)
# What numbers in C may call.
_OF_EXPRESSIONS = frozenset(
    {*SCALAR_FUNCTIONS, OF_CONSTANTS}
    | {f"{name}_{dtype.value}" for name in ("min", "max", "clamp") for dtype in ir.DType}
)
# What the functions are given is called so, or is kept in the context between rows.
_ARGUMENTS = {"context": "", "inputs": "", "devices": "", "outputs": "&context->outputs"}
REQUEST_STATUS = "request_status"
_STATUSES = frozenset({"status", REQUEST_STATUS})


def differences_of_jumps(path: str, plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """What the functions do besides, one sentence each.

    Args:
        path: The file with the functions, as messages call it.
        plan: The plan.
        names: The names of its bundle.
        source: What is in the file.
    """
    for name in dict.fromkeys((*names.step_functions, *names.functions.values())):
        function = source.function(name)
        if function is not None:
            if name == names.end and names.has_devices and not _runs_steps(names, function):
                yield f"{path}, {name} does not run the steps wherever all devices are in use"
            for node, what in _Function(plan, names, name, function).faults():
                place = path if node.coord is None else f"{path}:{node.coord.line}"
                yield f"{place}, {name} {what}"


def _runs_steps(names: Names, function: c_ast.FuncDef) -> bool:
    """Whether the steps are run on the way through a function, on the condition alone that the devices were begun."""
    for item in function.body.block_items or ():
        match item:
            case c_ast.If(cond=condition, iffalse=None, iftrue=c_ast.Compound(block_items=[first, *_])):
                runs = isinstance(first, c_ast.Assignment) and call_of(first.rvalue)[0] == names.steps
                if runs and spell(condition) == f"status == {names.ok}":
                    return True
            case _:
                pass
    return False


def _is_empty(node: c_ast.Node) -> bool:
    """Whether a block has no statement, or neither what is under a condition nor what is under its else."""
    match node:
        case c_ast.If(iftrue=c_ast.Compound() as then, iffalse=None | c_ast.Compound() as otherwise):
            return _is_empty(then) and (otherwise is None or _is_empty(otherwise))
        case c_ast.Compound(block_items=items):
            return not items
        case c_ast.If() | c_ast.EmptyStatement():
            return True
        case _:
            return False


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


class _Function:
    """One of the functions."""

    def __init__(self, plan: Plan, names: Names, name: str, function: c_ast.FuncDef) -> None:
        self.plan, self.names, self.name, self.body = plan, names, name, function.body
        self.calls_kernels = name in names.step_functions
        self.own = names.find_function(name)
        self.known = {
            *symbols_of_files(has_devices=names.has_devices),
            *(names.run_steps, names.run_table, f"check_{names.run_table}", f"{names.run_table}_at"),
            *_OF_EXPRESSIONS,
            *(names.step, names.allocate, names.release),
            *plan.externals,
        }
        self.bases = {names.base(pool): names.pool_address(pool) for pool in plan.pools.values()} | _ARGUMENTS
        self.arenas = {names.arena(pool) for pool in plan.arena_pools}

    def faults(self) -> Iterator[tuple[c_ast.Node, str]]:
        """The nodes that are not as they are generated, and what they do."""
        allowed = {id(node) for node in (*self._returns(), *self._counts())}
        yield from self._senseless()
        for node in descend(self.body):
            match node:
                case c_ast.Return() if id(node) not in allowed:
                    yield node, f"ends with '{spell(node)}', which is neither its end nor an error's"
                case c_ast.FuncCall() if not self._is_known(call_of(node)[0]):
                    yield node, f"calls '{spell(node.name)}', which is no kernel and serves none"
                case c_ast.Assignment(lvalue=target) if not self._is_own(target):
                    yield node, f"writes to '{spell(target)}'"
                case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--", expr=target) if id(node) not in allowed:
                    yield node, f"counts '{spell(target)}'"
                case c_ast.Decl(name=str(name)) if not self._is_declared(plain_name(name), node.init):
                    yield node, f"declares '{spell(node)}'"
                case _ if isinstance(node, _NEVER):
                    yield (
                        node,
                        f"has '{spell(node).partition(chr(10))[0].strip()}', which is never generated there",
                    )
                case _:
                    pass

    def _senseless(self) -> Iterator[tuple[c_ast.Node, str]]:
        """Statements that say nothing, and pools that are named before they are declared, or declared twice."""
        pools = self.bases.keys() - _ARGUMENTS.keys()
        members = {id(node.field) for node in descend(self.body) if isinstance(node, c_ast.StructRef)}
        declared: set[str] = set()
        for node in descend(self.body):
            match node:
                case c_ast.Decl(name=str(name)) if plain_name(name) in declared & pools:
                    yield node, f"declares '{plain_name(name)}' twice"
                case c_ast.Decl(name=str(name)):
                    declared.add(name)
                case c_ast.ID(name=name) if name in pools - declared and id(node) not in members:
                    yield node, f"names '{name}', which it has not declared"
                case _:
                    pass
        for block in (node for node in descend(self.body) if isinstance(node, c_ast.Compound)):
            yield from self._of_block(block.block_items or ())

    def _of_block(self, items: Sequence[c_ast.Node]) -> Iterator[tuple[c_ast.Node, str]]:
        """Statements that do nothing, or stand twice, and results that are not looked at."""
        declared: set[str] = set()
        for item, following in zip_longest(items, items[1:]):
            text = spell(item)
            if not isinstance(item, _STATEMENTS) or _is_empty(item):
                yield item, f"has '{_first_line(text)}', which does nothing"
            if isinstance(item, c_ast.Decl):
                if plain_name(str(item.name)) in declared:
                    yield item, f"declares '{plain_name(str(item.name))}' twice"
                declared.add(plain_name(str(item.name)))
            elif following is not None and text == spell(following):
                yield item, f"has '{_first_line(text)}' twice"
            match item:
                case c_ast.Assignment(lvalue=c_ast.ID(name=self.names.packed_status as status)) if (
                    not self._is_looked_at(status, following)
                ):
                    yield item, f"does not look at '{status}'"
                case c_ast.Decl(name=str(name)) if plain_name(name) == REQUEST_STATUS:
                    yield from self._of_requests(items, name)
                case _:
                    pass

    def _of_requests(self, items: Sequence[c_ast.Node], name: str) -> Iterator[tuple[c_ast.Node, str]]:
        """A block with requests: it begins with the error that these may end with, and ends with a look at it."""
        first, last = items[0], items[-1]
        if spell(first) != f"int32_t {REQUEST_STATUS} = {self.names.error('NO_MEMORY')}":
            yield first, f"does not begin '{REQUEST_STATUS}' with the error of a request"
        if not self._is_looked_at(name, last):
            yield last, f"does not look at '{REQUEST_STATUS}'"
        values = [
            node.rvalue
            for item in items
            for node in descend(item)
            if isinstance(node, c_ast.Assignment) and spell(node.lvalue) == plain_name(name)
        ]
        if sum(call_of(value)[0] != "first_error" for value in values) != 1:
            yield first, f"does not say once in '{REQUEST_STATUS}' how the step ended"

    def _is_looked_at(self, status: str, node: c_ast.Node | None) -> bool:
        """Whether a statement ends the function where a result is an error."""
        return (
            isinstance(node, c_ast.If)
            and node.iffalse is None
            and spell(node.cond) == f"{plain_name(status)} != {self.names.ok}"
        )

    def _returns(self) -> Iterator[c_ast.Node]:
        """The returns that are as generated: the last statement, and those of errors."""
        items: Sequence[c_ast.Node] = self.body.block_items or ()
        ends = ["status"] if self.name == self.names.end and self.names.has_devices else [self.names.ok]
        match items[-1:]:
            case [c_ast.Return(expr=c_ast.ID(name=name)) as last] if plain_name(name) in ends:
                yield last
            case _:
                pass
        for node in descend(self.body):
            match node:
                case c_ast.If(
                    cond=condition, iftrue=c_ast.Compound(block_items=[*others, c_ast.Return() as last])
                ):
                    if self._is_error(condition, last.expr) and all(map(self._is_reset, others)):
                        yield last
                case _:
                    pass

    def _is_error(self, condition: c_ast.Node, result: c_ast.Node | None) -> bool:
        """Whether a result is an error: by its name, or by the condition, `status != KWS_OK`."""
        match result:
            case c_ast.ID(name=name) if name.startswith(self.names.error("")):
                return True
            case c_ast.ID(name=self.names.ok):  # there is nothing to do
                return self.own is not None and spell(condition) == self.own.idle
            case c_ast.ID():
                return spell(condition) == f"{spell(result)} != {self.names.ok}"
            case _:
                return False

    def _is_reset(self, node: c_ast.Node) -> bool:
        return isinstance(node, c_ast.Assignment) and spell(node) == f"context->{self.names.form.begun} = 0"

    def _is_known(self, called: str) -> bool:
        is_of_model = called.startswith(f"{self.names.model}_")  # which are steps, if no others
        return called in self.known or (is_of_model and self.calls_kernels)

    def _is_declared(self, name: str, value: c_ast.Node | None) -> bool:
        """Whether a variable may be called so: as no function, and as a pool only if it stands for that."""
        if name in self.bases:
            return value is not None and spell(value) == self.bases[name]
        return name not in self.known and not name.startswith(f"{self.names.model}_")

    def _is_own(self, target: c_ast.Node) -> bool:
        """Whether something is a variable of the function, or a member of the context that is not what it was lent."""
        names = self.names
        match target:
            case c_ast.ID(name=name):
                return plain_name(name) in {*_STATUSES, names.packed_status}
            case c_ast.StructRef(name=c_ast.ID(name="context"), field=c_ast.ID(name=member)):
                return member in [name for _, name in names.form.members]
            case c_ast.StructRef(
                name=c_ast.StructRef(name=c_ast.ID(name="context"), field=c_ast.ID(name=arena))
            ):
                return arena in self.arenas
            case c_ast.ArrayRef(name=c_ast.ID(name=array)):
                return array == names.packed_codes
            case c_ast.StructRef(name=c_ast.ArrayRef(name=c_ast.ID(name=array))):
                return array == names.packed_arguments
            case _:
                return False

    def _counts(self) -> Iterator[c_ast.Node]:
        """Where the variables of loops are counted, and what the form counts."""
        for node in descend(self.body):
            match node:
                case c_ast.For(next=c_ast.Node() as following):
                    yield following
                case c_ast.UnaryOp(op="++") if self.own is not None and spell(node.expr) == self.own.counts:
                    yield node
                case _:
                    pass
