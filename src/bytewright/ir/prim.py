"""PrimFuncs: loops and arithmetic over buffers, in the manner of TVM's TensorIR.

A kernel is a PrimFunc, and so is the entry `main`. Where a buffer lies stands on its definition and nowhere else: on a
parameter or an allocation; a view is where its source is.
Statements are flat: `Allocate`, `View` and `Let` hold to the end of the `Seq` that they stand in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from bytewright.ir.expr import Buffer, Expr, Var
from bytewright.ir.scope import Scope
from bytewright.ir.storage import UNDECIDED, Annotations, Storage, Stored
from bytewright.ir.where import NOWHERE, Where


class LoopKind(Enum):
    """How a loop may be executed."""

    SERIAL = "serial"
    UNROLLED = "unrolled"
    VECTORISED = "vectorised"
    PARALLEL = "parallel"


class CallKind(Enum):
    """Calling forms: plain C arguments, a C symbol taking an argument array, by name through a registry."""

    EXTERN = "call_extern"
    CPACKED = "call_cpacked"
    PACKED = "call_packed"


@dataclass(frozen=True, slots=True)
class Region:
    """A buffer seen from one of its elements on: what a pointer argument or a view denotes."""

    buffer: Buffer
    indices: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextArgument:
    """The context of a device: the entry has those of the application's devices, a kernel what it was given."""

    device: str


Argument = Region | Expr | ContextArgument


@dataclass(frozen=True, slots=True)
class For:
    """`variable` runs from `begin` to before `end`, in steps of one.

    Attributes:
        private: Scratch parameters that are used in this loop alone and carry nothing from turn to turn: what was
            allocated in the body before it became the caller's to provide.
        note: What the loop does, for a reader of the C.
    """

    variable: Var
    begin: Expr
    end: Expr
    body: Seq
    kind: LoopKind = LoopKind.SERIAL
    private: tuple[Buffer, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Allocate(Stored):
    """A buffer of its own, to the end of the enclosing `Seq`. Where it goes is for `storage` to decide.

    Attributes:
        annotations: What is said of it and no pass owns.
    """

    buffer: Buffer
    storage: Storage = UNDECIDED
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class View:
    """Another name for elements that lie one after another, read only: `condition ? source : otherwise`.

    A tap of a convolution is a view of the input or, outside of it, of a run of zero points.
    """

    buffer: Buffer
    source: Region
    condition: Expr | None = None
    otherwise: Region | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """Writes one element."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class If:
    """Runs one of two sequences."""

    condition: Expr
    then: Seq
    otherwise: Seq | None = None


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a scalar that does not change."""

    variable: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Work:
    """What a call computes, of one sample if the batch is open: documentation, which no text has.

    Attributes:
        macs: Multiply-accumulates, those of taps in the padding among them.
        weight_bytes: Of its weights in the graph, before a kernel packs them,
        weight_bytes_before: and before channels were removed.
        shapes: Of its results, with every extent that a run is given at its largest.
    """

    macs: int
    weight_bytes: int
    weight_bytes_before: int
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of another PrimFunc or of an external C function.

    Attributes:
        arguments: Regions for buffer parameters, expressions for scalar ones, contexts for contexts.
        operators: What the call computes, for comments and reports: one entry an operator of the model.
        touched_by: For opaque calls: per argument the devices that touch it; None means every device.
        work: None where it is not known.
    """

    callee: str
    arguments: tuple[Argument, ...]
    kind: CallKind = CallKind.EXTERN
    operators: tuple[str, ...] = ()
    touched_by: tuple[tuple[str, ...], ...] | None = None
    where: Where = NOWHERE
    work: Work | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Seq:
    """Statements in order."""

    statements: tuple[Statement, ...]


Statement = For | Allocate | View | Store | If | Let | Call | Seq


# What a statement is made of: each kind has its row in these.


def blocks(statement: Statement) -> tuple[Seq, ...]:
    """The sequences directly inside a statement; a `Seq` is its own, a call of an instruction has none."""
    match statement:
        case InstructionCall():
            return ()
        case For():
            return (statement.body,)
        case If():
            return (statement.then,) if statement.otherwise is None else (statement.then, statement.otherwise)
        case Seq():
            return (statement,)
        case Store() | Let() | Call() | View() | Allocate():
            return ()
        case _:
            assert_never(statement)


def defined_names(statement: Statement) -> tuple[str, ...]:
    """The name that the statement itself defines, if it does."""
    match statement:
        case For() | Let():
            return (statement.variable.name,)
        case Allocate() | View():
            return (statement.buffer.name,)
        case _:
            return ()


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that the statement itself evaluates, not those of statements inside it."""
    match statement:
        case For():
            return (statement.begin, statement.end)
        case Store():
            return (*statement.indices, statement.value)
        case If():
            return (statement.condition,)
        case Let():
            return (statement.value,)
        case View():
            condition = () if statement.condition is None else (statement.condition,)
            return (*condition, *(index for region in regions(statement) for index in region.indices))
        case Call():
            found: list[Expr] = []
            for argument in statement.arguments:
                match argument:
                    case Region():
                        found.extend(argument.indices)
                    case ContextArgument():
                        pass
                    case _:
                        found.append(argument)
            return tuple(found)
        case InstructionCall():
            return statement.given
        case Allocate() | Seq():
            return ()
        case _:
            assert_never(statement)


def regions(statement: Statement) -> tuple[Region, ...]:
    """The regions that the statement itself names."""
    match statement:
        case View():
            return tuple(side for side in (statement.source, statement.otherwise) if side is not None)
        case Call():
            return tuple(argument for argument in statement.arguments if isinstance(argument, Region))
        case _:
            return ()


def stores(statement: Statement) -> tuple[Store, ...]:
    """What the statement itself writes, one element each; what callees write is theirs."""
    return (statement,) if type(statement) is Store else ()


class Access(Enum):
    """What a PrimFunc does with a buffer parameter."""

    READ = "r"
    WRITE = "w"
    READ_WRITE = "rw"


class ParameterRole(Enum):
    """What a buffer parameter is for. Where it physically is, the scope says."""

    ACTIVATION = "activation"
    PARAMETER = "parameter"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class BufferParameter:
    """A buffer that the caller passes by address.

    Attributes:
        scope: The places that the kernel is compiled for: what is passed lies in one of them.
    """

    buffer: Buffer
    access: Access
    role: ParameterRole = ParameterRole.ACTIVATION
    scope: Scope | None = None

    @property
    def name(self) -> str:
        """What the body calls it."""
        return self.buffer.name

    @property
    def is_value(self) -> bool:
        """Whether it is a register or a variable, not memory: of an instruction."""
        return self.buffer.register != "" or not self.buffer.shape


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A scalar that the caller passes by value."""

    variable: Var

    @property
    def name(self) -> str:
        """What the body calls it."""
        return self.variable.name


@dataclass(frozen=True, slots=True)
class ContextParameter:
    """What a driver keeps of its device, handed to a kernel that drives the device itself.

    Attributes:
        name: What the kernel calls it.
        device: The device, another one than that which runs the kernel.
    """

    name: str
    device: str


Parameter = BufferParameter | ScalarParameter | ContextParameter


@dataclass(frozen=True, slots=True)
class Feature:
    """What a core must have for some instructions.

    Attributes:
        name: As `features` of an instruction set has it: `mve`.
        condition: The condition of the C preprocessor under which a compiler generates code for it.
        header: Of the compiler, which declares its intrinsics; empty if none is needed.
    """

    name: str
    condition: str
    header: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a core can do at once: what it means, and its C text.

    Attributes:
        parameters: Registers, variables (both `local`), memory from an element on, and scalars.
        body: What it does, in loops with constant bounds. Names in it are those of the parameters and its own.
        text: The C of a function of the parameters, where the core has the feature: lines of its body. A register or
            variable that alone is written is returned; where several are written, they are pointers.
        feature: What the core needs.
        comment: What it does, for a reader of the C.
    """

    name: str
    parameters: tuple[BufferParameter | ScalarParameter, ...]
    body: Seq
    text: str
    feature: Feature
    comment: str = ""

    # Bodies are long, and calls are hashed in great numbers.
    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def is_assembler(self) -> bool:
        """Whether its text is a statement of assembler, and not calls of the compiler's functions."""
        return "__asm" in self.text

    @property
    def results(self) -> tuple[BufferParameter, ...]:
        """The registers and variables that it writes."""
        return tuple(
            [
                p
                for p in self.parameters
                if isinstance(p, BufferParameter) and p.access is not Access.READ and p.is_value
            ]
        )


@dataclass(frozen=True, slots=True)
class InstructionCall(Seq):
    """A call of an instruction: the statements that say what it does to its arguments, and what it is called.

    A call is one statement to walks, prints and rewrites; whoever needs to know which elements it touches goes through
    its statements as through those of a block: they are made when somebody asks for them. A tile is hundreds of calls,
    and most of them concern registers alone. `ir.rewrite.instruction_call` makes one.

    Attributes:
        expand: Makes the statements.
        arguments: Regions for registers, variables and memory, expressions for scalars.
        given: The expressions that its arguments are evaluated from.
        read: The buffers of which it reads elements, those in its arguments included.
        written: The buffers of which it writes elements, by the parameters that they are given for.
        touches_memory: Whether any of these is no register.
    """

    statements: tuple[Statement, ...] = field(init=False, compare=False, repr=False)
    instruction: Instruction
    arguments: tuple[Region | Expr, ...]
    expand: Callable[[], tuple[Statement, ...]] = field(compare=False, repr=False)
    given: tuple[Expr, ...] = field(compare=False, repr=False)
    read: tuple[Buffer, ...] = field(compare=False, repr=False)
    written: tuple[Buffer, ...] = field(compare=False, repr=False)
    touches_memory: bool = field(compare=False, repr=False)

    def __getattr__(self, name: str) -> tuple[Statement, ...]:
        if name != "statements":
            raise AttributeError(name)
        statements = self.expand()
        object.__setattr__(self, "statements", statements)
        return statements


# Kinds without blocks, for walks that ask this of every statement.
LEAVES = frozenset((Allocate, View, Store, Let, Call, InstructionCall))


class Job(Enum):
    """What a kernel is to its device, where it is no function that is compiled for it.

    STREAM: The first parameter holds commands; the others are the memories that they work on, in order. What they
    compute is not in the module, so there is no body.
    COPY: The device copies the first parameter to the second, as the body says.
    """

    STREAM = "stream"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class External:
    """That a kernel is a C function of the application: its parameters are a prototype, its body allocates scratch.

    Attributes:
        stack_bytes: What the function needs of the stack, all that it calls included; None if the target says.
        returns_status: It returns an `int32_t`, and any but 0 ends the run.
        symbol: What it is called in C, where that is not the kernel's name: one function of the application may serve
            calls with buffers of different shapes, and each such prototype is a kernel.
    """

    stack_bytes: int | None = None
    returns_status: bool = False
    symbol: str | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PrimFunc:
    """A kernel or the entry.

    Attributes:
        noalias: Pairs of names of buffer parameters that the plan proves disjoint at every call; a parameter is
            printed `restrict` only where it is disjoint from each other one.
        device: The device that executes it.
        external: Where given, the function is the application's, and the module has its prototype alone.
        job: Where given, the device carries the kernel out without code that was compiled for it. A copy on the
            entry's own device is an ordinary kernel.
        template: Which template of an instruction set made it, for people; empty if a portable one did.
        remarks: What else is to say of how it was made, for people: why better templates did not take it, say.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Seq
    noalias: tuple[tuple[str, str], ...] = ()
    device: str = "cpu"
    where: Where = NOWHERE
    external: External | None = None
    job: Job | None = None
    template: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def is_opaque(self) -> bool:
        """Whether what it does to its parameters is not in its body."""
        return self.external is not None or self.job is Job.STREAM

    @property
    def buffer_parameters(self) -> tuple[BufferParameter, ...]:
        """The parameters passed by address, in order."""
        return tuple(p for p in self.parameters if isinstance(p, BufferParameter))

    @property
    def symbol(self) -> str:
        """What it is called in C."""
        return (self.external and self.external.symbol) or self.name

    @property
    def context_parameters(self) -> tuple[ContextParameter, ...]:
        """The parameters that are contexts of devices, in order."""
        return tuple(p for p in self.parameters if isinstance(p, ContextParameter))
