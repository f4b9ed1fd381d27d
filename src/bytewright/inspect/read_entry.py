"""Reads back what the entry does: its kernel calls and jobs, in which loops and arms they are, and what it requests."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from pycparser import c_ast

from bytewright.inspect.c_nodes import (
    LONG,
    call_of,
    constant_of,
    integer_of,
    loop_of,
    pointed_type,
    points_to_const,
    spell,
    type_name,
)
from bytewright.inspect.c_source import CSource, children, descend
from bytewright.ir.packed import PACKED_END
from bytewright.record.names import REQUEST, Names

_MEMBERS_OF_CODES = {"integer": "INT", "real": "FLOAT", "pointer": "POINTER", "constant": "POINTER"}


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a buffer.

    Attributes:
        base: What the offset is added to, as text; empty for what is no offset.
        name: The offset's enumerator, `inputs->x`, `outputs->y`, or the variable of what was requested.
        element: The type that it is cast to a pointer to; None for no cast.
        index: How many elements are added to it; None for none.
        is_const: Whether the cast is to a pointer that nothing is written through.
    """

    base: str
    name: str
    element: str | None
    index: c_ast.Node | None
    is_const: bool = field(default=False, compare=False)

    @property
    def address(self) -> str:
        """The text without casts and index, such as `dtcm + KWS_AT_DTCM_X`."""
        return f"{self.base} + {self.name}" if self.base else self.name


@dataclass(frozen=True, slots=True)
class SpanText:
    """A part of a buffer that is lent.

    Attributes:
        place: Where it begins.
        size: The expression for its bytes.
        access: The enumerators that say what may be done with it, in their order.
        memory: The enumerator of the memory that the place is an offset in; None for an address of the program.
    """

    place: Place
    size: c_ast.Node
    access: tuple[str, ...]
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class JobText:
    """A job that the entry hands over.

    Attributes:
        device: The member of the devices that it goes to.
        code: What that is told to do: `&call`, `NULL`, or the address of a stream.
        code_bytes: The expression for the size of that.
        call_type: The type of the constant that `code` is the address of; None where it is of none.
        kernel: The number in it,
        scalars: and those that the kernel is given.
        spans: What the job is given; None for one that was not generated so.
        num_spans: How many it is said to be.
    """

    device: str
    code: c_ast.Node
    code_bytes: c_ast.Node
    call_type: str | None
    kernel: int | None
    scalars: tuple[c_ast.Node, ...]
    spans: tuple[SpanText | None, ...]
    num_spans: str


@dataclass(frozen=True, slots=True)
class CallText:
    """One call of the entry: the kernel, what it passes, and the names of buffers in that; or the job there.

    `is_packed` says whether it passes that in arrays.
    """

    kernel: str
    names: frozenset[str]
    job: JobText | None = None
    arguments: tuple[c_ast.Node, ...] = field(default=(), compare=False)
    is_packed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class RequestText:
    """One request of the entry, or its release.

    Attributes:
        name: The variable that holds it.
        pool: What the pool is called there.
        size: The expression for its bytes; None for a release.
        alignment: None for a release.
    """

    name: str
    pool: str
    size: c_ast.Node | None = field(default=None, compare=False)
    alignment: int | None = None


@dataclass(frozen=True, slots=True)
class LoopText:
    """A loop.

    Attributes:
        steps: The first of them and the last.
        variable: What it counts; empty for a loop of another kind,
        ends: which has None here in place of where it begins and ends.
        is_long: Whether it counts in 64 bits.
    """

    steps: tuple[int, int]
    variable: str
    ends: tuple[c_ast.Node, c_ast.Node] | None
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class BranchText:
    """A branch.

    Attributes:
        condition: On what it is.
        then: The steps of the first arm, half-open.
        otherwise: Those of the second.
        num_loops: How many loops it is in.
    """

    condition: c_ast.Node
    then: tuple[int, int]
    otherwise: tuple[int, int]
    num_loops: int


@dataclass(slots=True)
class Entry:
    """What the functions with the steps do, in the order of the text; loops and branches with outer ones first.

    Attributes:
        arenas: Those that are set: where each begins, as an offset's name, and its size's macro.
        constants: The numbers that do not change, by their names.
        marks: The macros between steps, as text, each with how many steps stand before it.
    """

    calls: list[CallText] = field(default_factory=list[CallText])
    loops: list[LoopText] = field(default_factory=list[LoopText])
    branches: list[BranchText] = field(default_factory=list[BranchText])
    requests: list[RequestText] = field(default_factory=list[RequestText])
    arenas: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    constants: dict[str, c_ast.Node] = field(default_factory=dict[str, c_ast.Node])
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def read_entry(source: CSource, names: Names, externals: Collection[str] = (), first: int = 0) -> Entry:
    """What the functions with the steps do.

    Args:
        source: The file.
        names: Of the entry.
        externals: Functions of the application, with names of their own.
        first: The number of the entry's first step.

    Raises:
        ParseError: They are no C.
    """
    reader = _Reader(names, externals, first)
    for name in names.step_functions:
        function = source.function(name)
        if function is not None:
            reader.statement(function.body, 0)
    return reader.entry


def read_place(node: c_ast.Node, names: Names) -> Place | None:
    """An address in a buffer; None for what is none."""
    index = None
    if isinstance(node, c_ast.BinaryOp) and node.op == "+" and _place(node, names) is None:
        node, index = node.left, node.right
    element, is_const = None, False
    if isinstance(node, c_ast.Cast):
        element, is_const, node = pointed_type(node), points_to_const(node), node.expr
        if element is None:
            return None
    while isinstance(node, c_ast.Cast) and pointed_type(node) == "void":
        node = node.expr
    found = _place(node, names)
    return None if found is None else Place(*found, element, index, is_const)


def _place(node: c_ast.Node, names: Names) -> tuple[str, str] | None:
    match node:
        case c_ast.BinaryOp(op="+", left=base, right=c_ast.ID(name=name)) if name.startswith(
            names.offset_front
        ):
            return spell(base), name
        case c_ast.StructRef(name=c_ast.ID(name="inputs" | "outputs"), type="->"):
            return "", spell(node)
        case c_ast.ID(name=name) if name.startswith(REQUEST):
            return "", name
        case _:
            return None


def read_span(node: c_ast.Node, names: Names) -> SpanText | None:
    """A part of a buffer that is lent; None for what is no such."""
    match call_of(node):
        case "lend", (address, size, access):
            place, memory = read_place(address, names), None
        case "lend_in", (memory, offset, size, access):
            place, memory = _read_offset(offset), spell(memory)
        case _:
            return None
    return None if place is None else SpanText(place, size, flags_of(access), memory)


def _read_offset(node: c_ast.Node) -> Place | None:
    """A part of a buffer that has no address: `KWS_AT_LOCAL_X + (4u * (uint32_t)(8))`, in bytes."""
    match node:
        case c_ast.ID(name=name):
            return Place("", name, None, None)
        case c_ast.BinaryOp(
            op="+",
            left=c_ast.ID(name=name),
            right=c_ast.BinaryOp(
                op="*",
                left=c_ast.Constant() as size,
                right=c_ast.Cast(to_type=c_ast.Typename() as to, expr=index),
            ),
        ) if type_name(to) == "uint32_t":
            number = c_ast.Constant("int", str(integer_of(size)))
            return Place("", name, None, c_ast.BinaryOp("*", number, index))
        case _:
            return None


def flags_of(node: c_ast.Node) -> tuple[str, ...]:
    """The flags that are set together."""
    if isinstance(node, c_ast.BinaryOp) and node.op == "|":
        return (*flags_of(node.left), *flags_of(node.right))
    return (spell(node),)


class _Reader:
    """Goes through the statements of functions."""

    def __init__(self, names: Names, externals: Collection[str], first: int) -> None:
        self.names, self.entry, self._first = names, Entry(), first
        self._externals = frozenset(externals)
        self._packed = {f"{names.model}_extern_{symbol}{PACKED_END}": symbol for symbol in externals}
        self._variables: dict[str, c_ast.Decl] = {}
        # Of a packed call, since the one before it.
        self._values: list[tuple[int | None, str, c_ast.Node]] = []
        self._codes: list[tuple[int | None, str]] = []

    def statement(self, node: c_ast.Node, num_loops: int) -> None:
        """Reads a statement with all that is in it, which is in so many loops."""
        match node:
            case c_ast.Compound():
                for item in node.block_items or ():
                    self.statement(item, num_loops)
            case c_ast.For(stmt=body) | c_ast.While(stmt=body) | c_ast.DoWhile(stmt=body):
                self._loop(node, body, num_loops)
            case c_ast.Switch(stmt=body) | c_ast.Label(stmt=body):  # run otherwise than once too
                self._loop(node, body, num_loops)
            case c_ast.If():
                self._branch(node, num_loops)
            case c_ast.Decl(name=name, init=c_ast.Node() as value):
                self._variables[name] = node
                self.entry.constants |= [constant for constant in [constant_of(node)] if constant]
                self._expression(value, None, name)
            case c_ast.Assignment(op="=", lvalue=target, rvalue=value):
                self._assigned(target, value)
                self._expression(value, value)
            case _:
                self._expression(node, node)

    @property
    def _next(self) -> int:
        """The number of the step that comes next."""
        return self._first + len(self.entry.calls)

    def _loop(self, node: c_ast.Node, body: c_ast.Node, num_loops: int) -> None:
        for head in children(node):
            if head is not body:
                self._expression(head, None)
        first, position = self._next, len(self.entry.loops)
        self.statement(body, num_loops + 1)
        if self._next > first:
            variable, *ends = loop_of(node) or ("",)
            steps = (first, self._next - 1)
            is_long = (
                isinstance(node, c_ast.For) and bool(ends) and type_name(node.init.decls[0].type) == LONG
            )
            loop = LoopText(steps, variable, (ends[0], ends[1]) if ends else None, is_long)
            self.entry.loops.insert(position, loop)

    def _branch(self, node: c_ast.If, num_loops: int) -> None:
        self._expression(node.cond, node.cond)
        position, ends = len(self.entry.branches), [self._next]
        for arm in (node.iftrue, node.iffalse):
            if arm is not None:
                self.statement(arm, num_loops)
            ends.append(self._next)
        first, second, end = ends
        condition, *compared = spell(node.cond).split(" ")
        is_granted = condition.startswith(REQUEST) and compared == ["!=", "NULL"]
        if not is_granted and (first < end or condition.startswith("*")):
            branch = BranchText(node.cond, (first, second), (second, end), num_loops)
            self.entry.branches.insert(position, branch)

    def _assigned(self, target: c_ast.Node, value: c_ast.Node) -> None:
        """What is put into arenas, and into the arrays of a packed call."""
        names = self.names
        match target:
            case c_ast.StructRef(
                name=c_ast.StructRef(name=c_ast.ID(name="context"), field=c_ast.ID(name=arena)),
                field=c_ast.ID(name="base" | "size_bytes" as member),
            ):
                place = read_place(value, names)
                begin = place.name if place is not None and place.index is None else ""
                both = self.entry.arenas.setdefault(arena, ["", ""])
                both[member == "size_bytes"] = begin if member == "base" else spell(value)
            case c_ast.StructRef(
                name=c_ast.ArrayRef(name=c_ast.ID(name=array), subscript=index), field=c_ast.ID(name=member)
            ) if array == names.packed_arguments:
                self._values.append((integer_of(index), member, value))
            case c_ast.ArrayRef(name=c_ast.ID(name=array), subscript=index) if array == names.packed_codes:
                self._codes.append((integer_of(index), spell(value)))
            case _:
                pass

    def _expression(self, node: c_ast.Node, whole: c_ast.Node | None, variable: str = "") -> None:
        """Reads the calls in an expression.

        Args:
            node: The expression.
            whole: What is a call on its own, or what of one is compared; None where no kernel may be called.
            variable: What the value is given to.
        """
        match whole:
            case (
                c_ast.TernaryOp(cond=c_ast.BinaryOp(op="==", left=left)) | c_ast.BinaryOp(op="!=", left=left)
            ):
                whole = left
            case _:
                pass
        for call in descend(node):
            match call_of(call):
                case self.names.allocate, (_, pool, size, alignment):
                    request = RequestText(variable, spell(pool), size, integer_of(alignment))
                    self.entry.requests.append(request)
                case self.names.release, (_, pool, held):
                    self.entry.requests.append(RequestText(spell(held), spell(pool)))
                case self.names.step, _:
                    self.entry.marks.append((len(self.entry.calls), spell(call)))
                case "hand_over", given if call is whole:
                    self._step(CallText("", frozenset(), self._job(given)))
                case name, given if self._is_kernel(name):
                    self._step(self._kernel(name if call is whole else f"({name})", given))
                case _:
                    pass

    def _is_kernel(self, name: str) -> bool:
        """Whether it is one; the macro between the kernels is one of the model too, and so is what serves requests."""
        names = self.names
        others = (names.step, names.allocate, names.release)
        return name in self._externals or (name.startswith(f"{names.model}_") and name not in others)

    def _step(self, call: CallText) -> None:
        self.entry.calls.append(call)
        self._values, self._codes = [], []

    def _kernel(self, name: str, given: Sequence[c_ast.Node]) -> CallText:
        """A call; a packed one is of the kernel that it is the packed form of, with what was put into the array."""
        is_packed = name.endswith(PACKED_END) and name not in self._externals
        if is_packed:
            name, given = self._packed.get(name, name.removesuffix(PACKED_END)), self._unpacked(given)
        named = frozenset(name for argument in given for name in self._buffers_in(argument))
        return CallText(name, named, arguments=tuple(given), is_packed=is_packed)

    def _unpacked(self, passed: Sequence[c_ast.Node]) -> Sequence[c_ast.Node]:
        """What a packed call passes: one value and one code for each argument, in their order."""
        names, num = self.names, len(self._values)
        codes = [names.argument_code(_MEMBERS_OF_CODES.get(member, "")) for _, member, _ in self._values]
        arrays = [names.packed_arguments, names.packed_codes] if num else ["NULL", "NULL"]
        if (
            [index for index, *_ in self._values] != list(range(num))
            or self._codes != list(enumerate(codes))
            or [spell(node) for node in passed] != [*arrays, str(num), *["NULL"] * 3]
        ):
            return []  # no call that was generated so; then it touches nothing that the plan says
        return [value for *_, value in self._values]

    def _buffers_in(self, argument: c_ast.Node) -> Iterator[str]:
        """What an argument names of buffers."""
        for node in descend(argument):
            match node:
                case c_ast.StructRef(name=c_ast.ID(name="inputs" | "outputs")):
                    yield spell(node)
                case c_ast.ID(name=name) if name.startswith((self.names.offset_front, REQUEST)):
                    yield name
                case c_ast.ID(name=name) if node is argument and self.names.is_pushed(name):
                    yield name
                case _:
                    pass

    def _job(self, given: Sequence[c_ast.Node]) -> JobText:
        """What a hand-over hands over."""
        if len(given) != 5:
            return JobText("", c_ast.ID(""), c_ast.ID(""), None, None, (), (None,), "")
        device, code, code_bytes, array, num_spans = given
        constant = code.expr if isinstance(code, c_ast.UnaryOp) and code.op == "&" else None
        call_type, values = self._declared(constant)
        kernel, scalars = values[:1], values[1:]
        if len(scalars) == 1 and isinstance(scalars[0], c_ast.InitList):
            scalars = scalars[0].exprs
        span_type, lent = self._declared(array)
        spans = [read_span(node, self.names) if span_type == self.names.span_type else None for node in lent]
        return JobText(
            spell(device).removeprefix("&devices->"),
            *(code, code_bytes, call_type, integer_of(kernel[0]) if kernel else None, tuple(scalars)),
            *(tuple(spans), spell(num_spans)),
        )

    def _declared(self, node: c_ast.Node | None) -> tuple[str | None, Sequence[c_ast.Node]]:
        """The type of a variable, and what it is initialised with in braces; None for what is none."""
        declared = self._variables.get(node.name) if isinstance(node, c_ast.ID) else None
        if declared is None or not isinstance(declared.init, c_ast.InitList):
            return None, ()
        return type_name(declared.type), declared.init.exprs
