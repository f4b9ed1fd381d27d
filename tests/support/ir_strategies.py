"""Random IR for property tests: any tree that the classes admit, well defined in its names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeVar

import numpy as np
from hypothesis import strategies as st

from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    RingRows,
    ScalarCall,
    Select,
    Var,
)
from bytewright.ir.graph import Array, Constant, Function, Node, Operation, Quantization, Value
from bytewright.ir.module import ConstantBuffer, Module, Port
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    CallKind,
    For,
    If,
    Let,
    LoopKind,
    ParameterRole,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, pool_scope
from bytewright.ir.storage import Border, Storage, to_annotations
from bytewright.ir.types import DType, Symbol, TensorType, VirtualDevice, lower_bound, quotient
from bytewright.ir.where import NOWHERE, Where

Item = TypeVar("Item")


class Mode(Enum):
    """An enum of an attribute."""

    FIRST = 1
    SECOND = "two"


@dataclass(frozen=True, slots=True)
class Detail:
    """A dataclass of an attribute."""

    size: int
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class Anything(Operation):
    """An operator with an attribute of every kind; its result has its operand's type."""

    name: ClassVar[str] = "anything"
    number: int
    real: float
    text: str
    flag: bool
    pair: tuple[int, ...]
    nested: tuple[tuple[str, Mode], ...]
    detail: Detail | None
    place: VirtualDevice
    table: TensorData | None = None

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (TensorType(inputs[0].shape, inputs[0].dtype),)

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return inputs[:1]


@dataclass(frozen=True, slots=True)
class Plain(Operation):
    """An operator without attributes; its result has its operand's type."""

    name: ClassVar[str] = "plain"

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if not inputs:
            raise ValueError("plain needs an operand")
        return (TensorType(inputs[0].shape, inputs[0].dtype),)

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return inputs[:1]


OPERATIONS: dict[str, type[Operation]] = {"anything": Anything, "plain": Plain}

identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
names = st.one_of(
    identifiers,
    st.sampled_from(
        ["conv/out", "for", "min", "inf", "inf/x", "for/x", "i8", "a b", 'q"uote', "a;b\n", "%x", "ä"]
    ),
    st.text(min_size=1, max_size=6),
)
dtypes = st.sampled_from(DType)
scopes = st.one_of(
    st.none(),
    st.sampled_from([GLOBAL, WORKSPACE, STACK, LOCAL]),
    identifiers.map(pool_scope),
    st.just(pool_scope("tightly-coupled")),
)
symbols = st.builds(Symbol, identifiers, st.integers(1, 3), st.integers(3, 9))
quotients = st.builds(quotient, symbols, st.integers(-9, 9), st.integers(1, 4)).filter(
    lambda extent: lower_bound(extent) >= 0
)
shapes = st.lists(st.one_of(st.integers(0, 99), symbols, quotients), max_size=4).map(tuple)
wheres = st.one_of(
    st.just(NOWHERE),
    st.builds(
        Where,
        st.sampled_from(["m.tflite", "", "m, operator 3"]),
        st.one_of(st.none(), st.sampled_from(["3 (CONV_2D)", "1, tensor 'x'"]), st.text(max_size=5)),
        st.one_of(st.none(), st.sampled_from(["conv", "it's, tensor 'x'"]), st.text(max_size=5)),
    ),
)
places = st.builds(
    VirtualDevice,
    st.one_of(st.none(), st.sampled_from(["cpu", "npu-0"])),
    st.one_of(st.none(), st.sampled_from(["mps3-an547"])),
    scopes,
)
types = st.builds(TensorType, shapes, dtypes, places)
finite = st.floats(allow_nan=False)


@st.composite
def tensor_data(draw: st.DrawFn) -> TensorData:
    dtype = draw(st.sampled_from([DType.I8, DType.I32, DType.F32]))
    values = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=4))
    return TensorData.from_array(np.array(values), dtype)


@st.composite
def buffers(draw: st.DrawFn, name: str) -> Buffer:
    shape = draw(shapes)
    rows = None
    if shape and draw(st.booleans()):
        rows = RingRows(draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 4)))
    return Buffer(name, shape, draw(dtypes), draw(st.sampled_from([1, 4, 16])), rows)


@st.composite
def constants(draw: st.DrawFn) -> Const:
    dtype = draw(dtypes)
    if dtype is DType.BOOL:
        return Const(draw(st.integers(0, 1)), dtype)
    if dtype.is_integer:
        return Const(draw(st.integers(*dtype.bounds)), dtype)
    return Const(draw(finite), dtype)


_choices = st.integers(0, 11)
_binary_operators = st.sampled_from(BinaryOperator)
_functions = st.sampled_from(sorted(SCALAR_FUNCTIONS))
_indices = st.integers(0, 999)


def _pick(draw: st.DrawFn, items: Sequence[Item]) -> Item:
    return items[draw(_indices) % len(items)]


def draw_expression(
    draw: st.DrawFn, variables: tuple[Var, ...], known: tuple[Buffer, ...], depth: int = 3
) -> Expr:
    """A tree over the given names. Its types need not fit: the text does not depend on that."""

    def inside() -> Expr:
        return draw_expression(draw, variables, known, depth - 1)

    match draw(_choices) if depth else 0:
        case 1 | 2 | 3 | 4:
            return Binary(draw(_binary_operators), inside(), inside())
        case 5:
            return Cast(inside(), draw(dtypes))
        case 6:
            return Select(inside(), inside(), inside())
        case 7:
            function = SCALAR_FUNCTIONS[draw(_functions)]
            return ScalarCall(function, tuple(inside() for _ in function.parameters))
        case 8 if known:
            return Load(_pick(draw, known), tuple(inside() for _ in range(draw(_choices) % 3)))
        case choice if choice % 2 == 0 and variables:
            return _pick(draw, variables)
        case _:
            return draw(constants())


@st.composite
def expressions(draw: st.DrawFn, variables: tuple[Var, ...], known: tuple[Buffer, ...]) -> Expr:
    """Trees over the given names, a little deeper."""
    return draw_expression(draw, variables, known, 5)


class _Scope:
    """Names in use while a function is drawn."""

    def __init__(self, variables: tuple[Var, ...], known: tuple[Buffer, ...], taken: set[str]) -> None:
        self.variables, self.known, self.taken = variables, known, taken

    def inner(self) -> _Scope:
        return _Scope(self.variables, self.known, self.taken)

    def fresh(self, draw: st.DrawFn) -> str:
        name = draw(names)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def expression(self, draw: st.DrawFn) -> Expr:
        return draw_expression(draw, self.variables, self.known)

    def region(self, draw: st.DrawFn) -> Region:
        count = draw(st.integers(0, 2))
        return Region(_pick(draw, self.known), tuple(self.expression(draw) for _ in range(count)))


_words = st.lists(names, max_size=2).map(tuple)
_touched = st.one_of(st.none(), st.lists(_words, max_size=2).map(tuple))
_owned = {key for key, _ in to_annotations(Storage(None, (), 0, 0, "", "", Border.INPUT, ("",)))}
_annotations = st.dictionaries(
    names.filter(lambda name: name not in _owned),
    st.one_of(st.integers(), st.text(max_size=3), _words),
    max_size=2,
).map(lambda pairs: tuple(pairs.items()))
offsets = st.one_of(st.none(), st.integers(0, 4096))
storages = st.builds(
    Storage,
    scope=scopes,
    candidates=st.one_of(st.none(), _words),
    offset=offsets,
    pinned_offset=offsets,
    arena=st.one_of(st.none(), names),
    on_request=st.one_of(st.none(), st.text(max_size=3)),
    border=st.one_of(st.none(), st.sampled_from(Border)),
    provenance=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)


def _statement(draw: st.DrawFn, scope: _Scope, depth: int) -> Statement:
    kinds = ["let", "allocate", "call", *(["store", "view"] if scope.known else [])]
    kind = _pick(draw, [*kinds, *(["for", "if", "seq"] if depth else [])])
    match kind:
        case "let":
            value = scope.expression(draw)
            variable = Var(scope.fresh(draw), draw(dtypes))
            scope.variables += (variable,)
            return Let(variable, value)
        case "allocate":
            buffer = draw(buffers(scope.fresh(draw)))
            scope.known += (buffer,)
            return Allocate(buffer, draw(storages), draw(_annotations))
        case "view":
            source = scope.region(draw)
            is_chosen = draw(st.booleans())
            condition = scope.expression(draw) if is_chosen else None
            otherwise = scope.region(draw) if is_chosen else None
            buffer = draw(buffers(scope.fresh(draw)))
            scope.known += (buffer,)
            return View(buffer, source, condition, otherwise)
        case "store":
            region = scope.region(draw)
            return Store(region.buffer, region.indices, scope.expression(draw))
        case "call":
            arguments = [
                scope.region(draw) if scope.known and draw(st.booleans()) else scope.expression(draw)
                for _ in range(draw(st.integers(0, 3)))
            ]
            kind_of_call, touched = draw(st.sampled_from(CallKind)), draw(_touched)
            return Call(draw(names), tuple(arguments), kind_of_call, draw(_words), touched, draw(wheres))
        case "for":
            begin, end = scope.expression(draw), scope.expression(draw)
            inner = scope.inner()
            variable = Var(scope.fresh(draw), DType.I32)
            inner.variables += (variable,)
            body, kind = _sequence(draw, inner, depth - 1), draw(st.sampled_from(LoopKind))
            private = draw(st.lists(st.sampled_from(scope.known), max_size=2)) if scope.known else []
            return For(
                variable, begin, end, body, kind, tuple(private), draw(st.sampled_from(("", 'say "*/"')))
            )
        case "if":
            condition = scope.expression(draw)
            otherwise = _sequence(draw, scope.inner(), depth - 1) if draw(st.booleans()) else None
            return If(condition, _sequence(draw, scope.inner(), depth - 1), otherwise)
        case _:
            return _sequence(draw, scope.inner(), depth - 1)


def _sequence(draw: st.DrawFn, scope: _Scope, depth: int) -> Seq:
    return Seq(tuple(_statement(draw, scope, depth) for _ in range(draw(st.integers(0, 2)))))


@st.composite
def primfuncs(draw: st.DrawFn, known: tuple[Buffer, ...] = ()) -> PrimFunc:
    scope = _Scope((), known, {buffer.name for buffer in known})
    parameters: list[BufferParameter | ScalarParameter] = []
    for _ in range(draw(st.integers(0, 3))):
        name = scope.fresh(draw)
        if draw(st.booleans()):
            variable = Var(name, draw(dtypes))
            scope.variables += (variable,)
            parameters.append(ScalarParameter(variable))
        else:
            buffer = draw(buffers(name))
            scope.known += (buffer,)
            access, role = draw(st.sampled_from(Access)), draw(st.sampled_from(ParameterRole))
            parameters.append(BufferParameter(buffer, access, role, draw(scopes)))
    noalias = draw(st.lists(st.tuples(names, names), max_size=2).map(tuple))
    body = _sequence(draw, scope, 2)
    return PrimFunc(draw(names), tuple(parameters), body, noalias, draw(names), draw(wheres))


quantizations = st.one_of(st.none(), st.builds(Quantization, finite, st.integers(-128, 127)))
values = st.builds(Value, names, types, quantizations)
anything = st.builds(
    Anything,
    number=st.integers(),
    real=finite,
    text=st.text(max_size=5),
    flag=st.booleans(),
    pair=st.lists(st.integers(), max_size=3).map(tuple),
    nested=st.lists(st.tuples(st.text(max_size=3), st.sampled_from(Mode)), max_size=2).map(tuple),
    detail=st.one_of(
        st.none(), st.builds(Detail, st.integers(), st.one_of(st.none(), st.sampled_from(Mode)))
    ),
    place=places,
    table=st.one_of(st.none(), tensor_data()),
)
nodes = st.builds(
    Node,
    st.one_of(anything, st.builds(Plain)),
    st.lists(names, max_size=3).map(tuple),
    st.lists(values, max_size=2).map(tuple),
    wheres,
)
functions = st.builds(
    Function,
    names,
    st.lists(values, max_size=2).map(tuple),
    st.lists(nodes, max_size=3).map(tuple),
    st.lists(names, max_size=2).map(tuple),
)
ports = st.lists(st.builds(Port, names, types, quantizations), max_size=2).map(tuple)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Graph functions and PrimFuncs mixed."""
    constant_buffers: list[ConstantBuffer] = []
    for name in draw(st.lists(names, max_size=2, unique=True)):
        constant_buffers.append(
            ConstantBuffer(draw(buffers(name)), draw(tensor_data()), draw(storages), draw(_annotations))
        )
    known = tuple(constant.buffer for constant in constant_buffers)
    return Module(
        draw(names),
        tuple(draw(st.lists(functions, max_size=2))),
        tuple(draw(st.lists(st.builds(Constant, names, tensor_data()), max_size=2))),
        tuple(draw(st.lists(primfuncs(known), max_size=2))),
        tuple(draw(st.lists(primfuncs(known), max_size=1))),
        tuple(constant_buffers),
        draw(ports),
        draw(ports),
        draw(ports),
    )
