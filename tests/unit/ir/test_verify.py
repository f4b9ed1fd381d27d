"""The verifier: one test per rule, on modules that break that rule alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Const,
    Expr,
    Load,
    RingRows,
    ScalarCall,
    Select,
    Var,
    const,
)
from bytewright.ir.graph import Array, Constant, Function, Node, Operation, Value
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    For,
    Let,
    LoopKind,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.scalar_functions import DIVIDE_ROUND, EXP, MULTIPLY_Q31
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Rank, Scope, pool_scope
from bytewright.ir.storage import Border, Storage
from bytewright.ir.types import DType, Extent, Quotient, Symbol, TensorType, VirtualDevice, quotient
from bytewright.ir.verify.stages import RULES, Stage, find_violations, verify
from bytewright.ir.where import NOWHERE
from bytewright.target import load_text
from support.ir_strategies import Plain

I8, I32, F32, BOOL = DType.I8, DType.I32, DType.F32, DType.BOOL
TARGET = load_text(
    """
name = "board"
[memory.ram]
size = "64KiB"
[memory.rom]
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m"
reach = ["ram", "rom"]
stack = "ram"
max-stack-size = "4KiB"
[[workspace]]
name = "sram"
memory = "ram"
size = "32KiB"
[[parameters]]
name = "flash"
memory = "rom"
[scope-tag.texture]
lowered-by = "lower_texture"
""",
    "board.toml",
)
SRAM, FLASH = pool_scope("sram"), pool_scope("flash")
TYPE = TensorType((1, 8), I8)
ON_CPU = TensorType((1, 8), I8, VirtualDevice("cpu"))
A = Buffer("a", (4, 8), I32, 4)
N = Var("n", I32)


def texts(module: Module, stage: Stage = Stage.LOWERED, **options: object) -> list[str]:
    return [violation.text for violation in find_violations(module, stage, **options)]  # type: ignore[arg-type]


def kernel(*statements: Statement, parameters: tuple[BufferParameter | ScalarParameter, ...] = ()) -> Module:
    """A kernel over `a` (read and written) and `n`."""
    given = (BufferParameter(A, Access.READ_WRITE, scope=GLOBAL), ScalarParameter(N), *parameters)
    return Module("m", kernels=(PrimFunc("k", given, Seq(statements)),))


def entry(*statements: Statement, kernels: tuple[PrimFunc, ...] = ()) -> Module:
    """An entry over `n`."""
    return Module("m", kernels=kernels, entries=(PrimFunc("main", (ScalarParameter(N),), Seq(statements)),))


def value(expression: Expr) -> Module:
    """A kernel that names the value of an expression."""
    return kernel(Let(Var("result", expression.dtype), expression))


def graph(*nodes: Node, results: tuple[str, ...] = (), type_: TensorType = TYPE) -> Module:
    function = Function("g", (Value("x", type_),), nodes, results)
    return Module("m", functions=(function,))


def node(inputs: tuple[str, ...], *outputs: Value, operation: Operation | None = None) -> Node:
    return Node(operation or Plain(), inputs, outputs, NOWHERE)


def store(value_: Expr | int = 1, buffer: Buffer = A) -> Store:
    expression = value_ if isinstance(value_, Expr) else const(value_)
    return Store(buffer, (const(0), const(0)), expression)


# What is right passes


def planned_module() -> Module:
    """An entry that calls a kernel, with everything decided."""
    source, target = Buffer("source", (8,), I8), Buffer("target", (8,), I8)
    b = BodyBuilder(("source", "target"))
    with b.for_("i", 0, 8) as i:
        b.store(target, i, load(source, i))
    copy = PrimFunc(
        "copy",
        (
            BufferParameter(source, Access.READ, scope=GLOBAL),
            BufferParameter(target, Access.WRITE, scope=WORKSPACE),
        ),
        b.finish(),
    )
    data = TensorData.from_array(np.arange(8), I8)
    table = Buffer("table", (8,), I8, 4)
    b = BodyBuilder()
    x = b.allocate(Buffer("x", (1, 8), I8, 16), Storage(SRAM, offset=32))
    b.allocate(Buffer("small", (4,), I32, 4), Storage(STACK))
    b.call("copy", region(table), region(x))
    main = PrimFunc("main", (), b.finish())
    return Module(
        "m",
        kernels=(copy,),
        entries=(main,),
        constant_buffers=(ConstantBuffer(table, data, Storage(FLASH, offset=8)),),
    )


def test_right_modules_pass():
    verify(planned_module(), Stage.PLANNED, TARGET, planned_module(), "nothing")
    placed = graph(node(("x",), Value("y", ON_CPU)), results=("y",), type_=ON_CPU)
    verify(placed, Stage.PLACED, TARGET, placed, "nothing")


def test_the_table_has_every_stage():
    assert tuple(RULES) == tuple(Stage)


# Stages


@pytest.mark.parametrize("stage", [Stage.LOWERED, Stage.STORED, Stage.PLANNED])
def test_graph_functions_end_with_lowering(stage: Stage):
    assert texts(graph(), stage) == [f"a graph function is not legal at stage {stage.name}"]


@pytest.mark.parametrize("stage", [Stage.IMPORTED, Stage.PLACED])
def test_entries_begin_with_lowering(stage: Stage):
    found = texts(planned_module(), stage)
    assert f"an entry is not legal at stage {stage.name}" in found
    assert f"constant buffer 'table' at stage {stage.name}" in found


def test_every_value_has_a_device_once_placed():
    module = graph(node(("x",), Value("y", ON_CPU)))
    assert texts(module, Stage.IMPORTED) == []
    assert texts(module, Stage.PLACED) == ["'x' has no device"]


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE])
@pytest.mark.parametrize("make", [entry, kernel])
def test_storage_is_decided_once_stored(scope: Scope | None, make: Callable[..., Module]):
    module = make(Allocate(Buffer("b", (4,), I8), Storage(scope)))
    assert texts(module, Stage.LOWERED) == []
    for stage in (Stage.STORED, Stage.PLANNED):
        assert f"storage of 'b' is undecided: scope '{scope}'" in texts(module, stage)


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE])
def test_the_planner_chooses_for_the_entry_alone_and_among_candidates(scope: Scope | None):
    allocation = Allocate(Buffer("b", (4,), I8), Storage(scope, candidates=("sram",)))
    undecided = f"storage of 'b' is undecided: scope '{scope}'"
    assert texts(entry(allocation), Stage.STORED) == []
    assert texts(kernel(allocation), Stage.STORED) == [undecided]
    assert undecided in texts(entry(allocation), Stage.PLANNED)


def request(arena: str, offset: int | None = None) -> Allocate:
    """Scratch of up to four bytes that is requested at run time."""
    return Allocate(Buffer("b", (Symbol("n", 1, 4),), I8), Storage(SRAM, arena=arena, offset=offset))


def arena(scope: Scope | None = SRAM, shape: tuple[Extent, ...] = (4,)) -> Allocate:
    return Allocate(Buffer("heap", shape, I8), Storage(scope, offset=0))


def test_requests_have_no_offset_once_planned_but_an_arena_in_their_pool():
    assert texts(entry(arena(), request("heap")), Stage.PLANNED) == []


BAD_REQUESTS = [
    ((request("heap"), arena()), "'b' is requested from 'heap', which is not allocated here"),
    ((Seq((arena(),)), request("heap")), "'b' is requested from 'heap', which is not allocated here"),
    ((arena(), request("a")), "'b' is requested from 'a', which is not allocated here"),
    (
        (arena(shape=(Symbol("n", 1, 4),)), request("heap")),
        "'b' is requested from 'heap', which is no arena of constant size",
    ),
    (
        (arena(pool_scope("dram")), request("heap")),
        "'b' is requested from 'heap': scope 'global.sram' is not the arena's, 'global.dram'",
    ),
    (
        (arena(), request("heap", offset=0)),
        "'b' has a pool_offset without being planned in a pool",
    ),
]


@pytest.mark.parametrize(("statements", "message"), BAD_REQUESTS)
def test_what_else_a_request_names_is_refused(statements: tuple[Statement, ...], message: str):
    assert texts(entry(*statements), Stage.PLANNED) == [message]


def test_kernels_request_nothing():
    message = "'b' is requested from 'heap' by a kernel; the entry requests what kernels need"
    assert message in texts(kernel(arena(), request("heap")), Stage.STORED)


# Symbols


def test_symbols_are_parameters_of_i32_with_bounds_that_agree():
    def found(*symbols: Symbol) -> list[str]:
        buffers = [Buffer(f"b{i}", (symbol,), I8) for i, symbol in enumerate(symbols)]
        return texts(kernel(*(Allocate(buffer, Storage(WORKSPACE)) for buffer in buffers)))

    assert found(Symbol("n", 1, 4), Symbol("n", 1, 4)) == []
    assert found(Symbol("n", 1, 4), Symbol("n", 1, 5)) == [
        "'b1' has the extent 'n[1..5]', elsewhere 'n[1..4]'"
    ]
    assert found(Symbol("m", 1, 4)) == ["'b0' has the extent 'm[1..4]', which is no parameter of i32"]
    assert found(Symbol("n", 0, 4)) == [], "kernels may be given none"
    for lower, upper in ((-1, 4), (5, 4), (1, 1 << 31)):
        symbol = Symbol("n", lower, upper)
        assert found(symbol) == [f"'b0' has the extent '{symbol}', whose bounds make no sense"]


def test_extents_that_follow_from_a_symbol_are_never_none():
    symbol = Symbol("n", 2, 9)

    def found(extent: Extent) -> list[str]:
        return texts(kernel(Allocate(Buffer("b", (extent,), I8), Storage(WORKSPACE))))

    assert found(quotient(symbol, -1)) == []
    assert found(quotient(symbol, -2)) == ["'b' has the extent '(n[2..9]-2)', which may be none"]


def test_extents_that_follow_from_a_symbol_fit_what_c_computes_them_in():
    """A product of scale and symbol, and that with the offset: an int32_t of C each."""

    def found(upper: int, scale: int, offset: int, divisor: int) -> list[str]:
        extent = Quotient(Symbol("n", 2, upper), scale, offset, divisor)
        buffer = Buffer("b", (extent,), I8)
        return [text for text in texts(kernel(Allocate(buffer, Storage(WORKSPACE)))) if "32 bits" in text]

    greatest = (1 << 31) - 1
    assert found(5, greatest // 5, greatest % 5, 7) == []
    assert found(5, greatest // 5, greatest % 5 + 1, 7) != []
    assert found(5, greatest // 5 + 1, -9, 7) != []
    assert found(100000, 99999, 0, 100000) == [
        "'b' has the extent '(99999*n[2..100000])/100000', which takes more than 32 bits"
    ]


@pytest.mark.parametrize("scope", [SRAM, STACK, LOCAL])
def test_decided_scopes_pass_once_stored(scope: Scope):
    assert texts(entry(Allocate(Buffer("b", (4,), I8), Storage(scope))), Stage.STORED) == []


def test_stack_slots_have_constant_size_once_stored():
    module = entry(Allocate(Buffer("b", (Symbol("n", 1, 4),), I8), Storage(STACK)))
    assert texts(module, Stage.STORED) == ["'b' is on the stack, so its size must be constant"]


def test_allocations_in_pools_have_offsets_once_planned():
    missing = entry(Allocate(Buffer("b", (4,), I8), Storage(SRAM)))
    assert texts(missing, Stage.PLANNED) == ["'b' in pool 'sram' has no pool_offset"]
    negative = entry(Allocate(Buffer("b", (4,), I8), Storage(SRAM, offset=-4)))
    assert texts(negative, Stage.PLANNED) == ["'b' in pool 'sram' has no pool_offset"]
    dynamic = entry(Allocate(Buffer("b", (Symbol("n", 1, 4),), I8), Storage(SRAM)))
    assert texts(dynamic, Stage.PLANNED) == ["'b' in pool 'sram' has no pool_offset"]


def test_offsets_are_aligned_and_only_where_they_mean_something():
    odd = entry(Allocate(Buffer("b", (4,), I8, 16), Storage(SRAM, offset=8)))
    assert texts(odd, Stage.PLANNED) == ["offset 8 of 'b' is not a multiple of 16"]
    stack = entry(Allocate(Buffer("b", (4,), I8), Storage(STACK, offset=8)))
    assert texts(stack, Stage.PLANNED) == ["'b' has a pool_offset without being planned in a pool"]
    early = entry(Allocate(Buffer("b", (4,), I8), Storage(SRAM, offset=8)))
    assert texts(early, Stage.STORED) == ["'b' has a pool_offset before planning"]


def test_inputs_and_outputs_are_marked_in_entries_alone():
    right = Allocate(Buffer("b", (4,), I8), Storage(WORKSPACE, border=Border.OUTPUT))
    assert texts(entry(right), Stage.LOWERED) == []
    assert texts(kernel(right), Stage.LOWERED) == [
        "'b' is an input or output of the model, allocated by a kernel"
    ]
    wrong = Allocate(Buffer("b", (4,), I8), Storage(WORKSPACE), annotations=(("io", "both"),))
    assert texts(entry(wrong), Stage.LOWERED) == ["io of 'b' is 'both', not one of input, output, state"]


def test_kernels_allocate_in_no_pool_once_planned():
    module = kernel(Allocate(Buffer("b", (4,), I8), Storage(SRAM, offset=0)))
    assert texts(module, Stage.PLANNED) == [
        "'b' is allocated in pool 'sram' by a kernel; it must be a parameter"
    ]


def test_constants_have_offsets_exactly_once_planned():
    right = planned_module()
    (constant,) = right.constant_buffers
    assert texts(right, Stage.STORED)[0] == "constant buffer 'table' has an offset before planning"
    missing = replace(right, constant_buffers=(replace(constant, storage=Storage(FLASH)),))
    assert "constant buffer 'table' has no offset in a pool: scope 'global.flash', None" in texts(
        missing, Stage.PLANNED
    )
    odd = replace(right, constant_buffers=(replace(constant, storage=Storage(FLASH, offset=6)),))
    assert texts(odd, Stage.PLANNED) == ["constant buffer 'table': offset 6 is not a multiple of 4"]


# Names


def test_function_names_are_unique_across_kinds():
    f = PrimFunc("same", (), Seq(()))
    module = Module("m", functions=(Function("same", (), (), ()),), kernels=(f,))
    assert texts(module, Stage.IMPORTED) == ["function 'same' exists 2 times"]


def test_value_names_are_unique_across_functions_and_constants():
    functions = (Function("f", (Value("x", TYPE),), (), ()), Function("g", (Value("x", TYPE),), (), ()))
    constant = Constant("x", TensorData.from_array(np.zeros(1), I8))
    module = Module("m", functions=functions, constants=(constant,))
    assert texts(module, Stage.IMPORTED) == ["value 'x' exists 3 times"]


def test_constant_buffer_names_are_unique_and_not_empty():
    data = TensorData.from_array(np.zeros(1), I8)
    constants = [ConstantBuffer(Buffer(name, (1,), I8), data) for name in ("c", "c", "")]
    module = Module("m", constant_buffers=tuple(constants))
    assert texts(module) == ["constant buffer 'c' exists 2 times", "a constant buffer has no name"]


@pytest.mark.parametrize(
    "second",
    [
        Let(Var("a", I32), const(1)),
        For(Var("n", I32), const(0), const(1), Seq(())),
        Allocate(Buffer("a", (1,), I8), Storage(LOCAL)),
    ],
)
def test_names_of_a_function_are_defined_once(second: Statement):
    name = second.buffer.name if isinstance(second, Allocate) else second.variable.name  # type: ignore[union-attr]
    assert texts(kernel(second)) == [f"'{name}' is defined twice in 'k'"]


def test_names_of_sibling_blocks_differ_too():
    block = Seq((Let(Var("t", I32), const(1)),))
    assert texts(kernel(block, block)) == ["'t' is defined twice in 'k'"]


# Graph


def test_values_are_defined_before_use():
    later = node(("y",), Value("z", TYPE))
    assert texts(graph(later, node(("x",), Value("y", TYPE))), Stage.IMPORTED) == [
        "'y' is used before it is defined"
    ]


def test_results_are_defined():
    assert texts(graph(results=("ghost",)), Stage.IMPORTED) == ["result 'ghost' is not defined"]


def test_stated_types_are_the_inferred_ones():
    module = graph(node(("x",), Value("y", TensorType((1, 9), I8))))
    assert texts(module, Stage.IMPORTED) == ["'y' is stated as tensor<1x9xi8>, inferred as tensor<1x8xi8>"]


def test_operands_fit_the_operator():
    assert texts(graph(node((), Value("y", TYPE))), Stage.IMPORTED) == [
        "operands do not fit: plain needs an operand"
    ]


def test_number_of_results_is_the_operators():
    module = graph(node(("x",), Value("y", TYPE), Value("z", TYPE)))
    assert texts(module, Stage.IMPORTED) == ["the operator has 1 results, not 2"]


def test_places_of_values_exist_in_the_target():
    far = TensorType((1, 8), I8, VirtualDevice("npu", None, pool_scope("dram")))
    assert texts(graph(type_=far), Stage.PLACED, target=TARGET) == [
        "'x': target 'board' has no device 'npu'",
        "'x': scope 'global.dram' names neither a pool nor a tag of target 'board'",
    ]


# Expressions

BAD_EXPRESSIONS: list[tuple[Expr, str]] = [
    (Binary(BinaryOperator.ADD, N, const(1, DType.I64)), "left operand of '+' is i32, the value is i64"),
    (Binary(BinaryOperator.ADD, const(1, I8), const(1, I8)), "'+' is not defined on i8"),
    (Binary(BinaryOperator.LT, const(1, I8), const(1, I8)), "'<' is not defined on i8"),
    (Binary(BinaryOperator.SHL, const(1.0, F32), const(1.0, F32)), "'<<' is not defined on f32"),
    (Binary(BinaryOperator.MOD, const(1.0, F32), const(1.0, F32)), "'%' is not defined on f32"),
    (Binary(BinaryOperator.LOGICAL_AND, N, N), "'&&' is not defined on i32"),
    (Binary(BinaryOperator.ADD, Const(1, BOOL), Const(1, BOOL)), "'+' is not defined on bool"),
    (Const(128, I8), "constant 128 does not fit i8"),
    (Const(1.5, I32), "constant 1.5 does not fit i32"),
    (Const(2, BOOL), "constant 2 does not fit bool"),
    (Var("ghost", I32), "variable 'ghost' is not defined here"),
    (Var("n", F32), "variable 'n' is i32, used as f32"),
    (Select(N, N, N), "a condition is bool, the value is i32"),
    (Select(N < 1, N, const(1.0, F32)), "the other side of a select is i32, the value is f32"),
    (EXP(N), "operand of expf is f32, the value is i32"),
    (MULTIPLY_Q31(N, 1), "operand of multiply_q31 is i64, the value is i32"),
    (ScalarCall(DIVIDE_ROUND, (N,)), "divide_round has 2 operands, 1 are given"),
    (Load(A, (N,)), "'a' has 2 axes, 1 indices"),
    (Load(A, (N, const(1.0, F32))), "an index of 'a' is f32"),
    (Load(Buffer("ghost", (), I32), ()), "buffer 'ghost' is not defined here"),
    (
        Load(replace(A, shape=(8, 8), alignment=1), (N, N)),
        "buffer 'a' is not as it was defined: shape (4, 8), used with (8, 8), alignment 4, used with 1",
    ),
]


@pytest.mark.parametrize(("expression", "message"), BAD_EXPRESSIONS)
def test_expressions_are_consistent(expression: Expr, message: str):
    assert texts(value(expression)) == [message]


GOOD_EXPRESSIONS = [
    Binary(BinaryOperator.EQ, Const(1, BOOL), N < 2),
    Binary(BinaryOperator.MIN, const(1.0, F32), const(2.0, F32)),
    Binary(BinaryOperator.AND, const(1, DType.I64), const(2, DType.I64)),
    Load(A, (const(1, DType.I64), N)),
]


@pytest.mark.parametrize("expression", GOOD_EXPRESSIONS)
def test_consistent_expressions_pass(expression: Expr):
    assert texts(value(expression)) == []


# Statements


def test_names_end_with_their_block():
    module = kernel(Seq((Let(Var("t", I32), const(1)),)), store(Var("t", I32)))
    assert texts(module) == ["variable 't' is not defined here"]
    loop = For(Var("i", I32), const(0), const(1), Seq(()))
    assert texts(kernel(loop, store(Var("i", I32)))) == ["variable 'i' is not defined here"]


BAD_STATEMENTS: list[tuple[Statement, str]] = [
    (Let(Var("t", F32), N), "'t' is f32, the value is i32"),
    (store(const(1.0, F32)), "store to 'a' is i32, the value is f32"),
    (For(Var("i", I32), const(0, DType.I64), N, Seq(())), "bound of 'i' is i32, the value is i64"),
    (
        For(Var("i", I8), const(0, I8), const(1, I8), Seq(())),
        "loop variable 'i' is i8",
    ),
    (
        For(Var("i", I32), const(0), N, Seq(()), LoopKind.UNROLLED),
        "unrolled loop over 'i' has a bound that is not constant",
    ),
    (Allocate(Buffer("b", (1,), I8, 3), Storage(LOCAL)), "'b' has alignment 3, not a power of two"),
    (Allocate(Buffer("b", (4, 0), I8, 1), Storage(LOCAL)), "'b' has no elements: its shape is 4x0"),
    (
        Allocate(Buffer("b", (4,), I8, 1, RingRows(1, 2)), Storage(GLOBAL)),
        "'b' has a ring of 2 rows on axis 1 of 1 axes",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(GLOBAL), annotations=(("x", 1), ("x", 2))),
        "an annotation of 'b' stands twice",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(LOCAL, candidates=("sram",))),
        "candidate_memory_pools of 'b' needs rank 'global', not 'local'",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(GLOBAL), annotations=(("candidate_memory_pools", "sram"),)),
        "candidate_memory_pools of 'b' is not a list of pools",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(GLOBAL), annotations=(("arena", 3),)),
        "arena of 'b' is not a name",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(GLOBAL), annotations=(("pool_offset", "here"),)),
        "pool_offset of 'b' is not a whole number",
    ),
    (
        Allocate(Buffer("b", (4,), I8), Storage(GLOBAL, candidates=("lake",))),
        "candidate pool 'lake' of 'b' does not exist in target 'board'",
    ),
    (
        View(Buffer("v", (4,), I8), Region(A)),
        "view 'v' of i8 shows 'a' of i32",
    ),
    (View(Buffer("v", (33,), I32), Region(A)), "view 'v' is larger than 'a'"),
    (
        View(Buffer("v", (4,), I32), Region(A), N < 1),
        "view 'v' needs a condition and an alternative, or neither",
    ),
]


@pytest.mark.parametrize(("statement", "message"), BAD_STATEMENTS)
def test_statements_are_consistent(statement: Statement, message: str):
    assert texts(kernel(statement), target=TARGET) == [message]


def test_views_and_read_parameters_and_constants_are_not_stored_to():
    view = Buffer("v", (4, 8), I32)
    assert texts(kernel(View(view, Region(A)), store(buffer=view))) == [
        "'v' is stored to, but only to be read"
    ]
    read = Buffer("r", (4, 8), I32)
    assert texts(
        kernel(store(buffer=read), parameters=(BufferParameter(read, Access.READ, scope=GLOBAL),))
    ) == ["'r' is stored to, but only to be read"]
    data = TensorData.from_array(np.zeros((4, 8)), I32)
    module = replace(
        kernel(store(buffer=read)), constant_buffers=(ConstantBuffer(read, data, Storage(GLOBAL)),)
    )
    assert texts(module) == ["'r' is stored to, but only to be read"]


def test_noalias_names_buffer_parameters():
    (f,) = kernel().kernels
    module = Module("m", kernels=(replace(f, noalias=(("a", "n"), ("a", "a"))),))
    assert texts(module) == [
        "noalias(a, n) is not a pair of buffer parameters",
        "noalias(a, a) is not a pair of buffer parameters",
    ]


def test_constants_fill_their_buffers():
    data = TensorData.from_array(np.zeros(3), I8)
    module = Module("m", constant_buffers=(ConstantBuffer(Buffer("c", (4,), I8), data),))
    assert texts(module) == ["constant buffer 'c' holds 3 elements of i8, not 4 of i8"]
    empty = TensorData.from_array(np.zeros((2, 0)), I8)
    module = Module("m", constant_buffers=(ConstantBuffer(Buffer("c", (2, 0), I8), empty),))
    assert texts(module) == ["constant buffer 'c' has no elements"]


def test_scopes_and_devices_exist_in_the_target():
    shared = kernel(Allocate(Buffer("b", (1,), I8), Storage(Scope(Rank.SHARED))))
    assert texts(shared, target=TARGET) == [
        "'b': rank 'shared' does not exist on device 'cpu', whose ranks are global, local"
    ]
    unknown = kernel(Allocate(Buffer("b", (1,), I8), Storage(pool_scope("lake"))))
    assert texts(unknown, target=TARGET) == []  # storage refuses it, with help
    assert texts(unknown, Stage.STORED, target=TARGET) == [
        "'b': scope 'global.lake' names neither a pool nor a tag of target 'board'"
    ]
    elsewhere = Module("m", kernels=(PrimFunc("k", (), Seq(()), device="npu"),))
    assert texts(elsewhere, target=TARGET) == ["target 'board' has no device 'npu'"]


def test_tags_that_a_pass_lowers_are_gone_once_planned():
    module = kernel(Allocate(Buffer("b", (Symbol("n", 1, 2),), I8), Storage(pool_scope("texture"))))
    assert texts(module, Stage.STORED, target=TARGET) == []
    assert "'b': scope 'global.texture' was left over by pass 'lower_texture'" in texts(
        module, Stage.PLANNED, target=TARGET
    )


# Local memory


def test_local_memory_is_no_parameter_and_has_constant_size():
    buffer = Buffer("b", (4,), I8)
    assert texts(kernel(parameters=(BufferParameter(buffer, Access.READ, scope=LOCAL),))) == [
        "'b' is local, so it cannot be a parameter"
    ]
    assert texts(kernel(Allocate(Buffer("b", (Symbol("n", 1, 4),), I8), Storage(LOCAL)))) == [
        "'b' is local, so its size must be constant"
    ]


# Calls

CALLEE = PrimFunc(
    "callee",
    (
        BufferParameter(Buffer("source", (8,), I8), Access.READ, scope=GLOBAL),
        ScalarParameter(Var("count", I32)),
        BufferParameter(Buffer("target", (8,), I8), Access.WRITE, scope=WORKSPACE),
    ),
    Seq(()),
)
X, Y = Buffer("x", (2, 8), I8), Buffer("y", (8,), I8)


def calling(*arguments: Region | Expr, callee: str = "callee") -> list[str]:
    local = Buffer("private", (8,), I8)
    words = Buffer("words", (8,), I32)
    anywhere = Buffer("anywhere", (8,), I8)
    scopes = {X: WORKSPACE, Y: SRAM, local: LOCAL, words: SRAM, anywhere: GLOBAL}
    allocations = tuple(Allocate(buffer, Storage(scope)) for buffer, scope in scopes.items())
    view = View(Buffer("row", (8,), I8), Region(X, (const(1), const(0))))
    call = Call(callee, arguments)
    return texts(entry(*allocations, view, call, kernels=(CALLEE,)))


def test_right_call_passes():
    assert calling(Region(X, (const(1), const(0))), const(3), Region(Y)) == []


BAD_CALLS: list[tuple[tuple[Region | Expr, ...], str]] = [
    ((Region(X), const(3)), "'callee' takes 3 arguments, 2 are given"),
    ((Region(X), Region(Y), Region(Y)), "an argument of 'callee' is not a scalar"),
    ((const(1), const(3), Region(Y)), "an argument of 'callee' is not a buffer"),
    ((Region(X), const(3, DType.I64), Region(Y)), "'count' of 'callee' is i32, the argument is i64"),
    (
        (Region(Buffer("words", (8,), I32)), const(3), Region(Y)),
        "'words' is passed to 'source' of 'callee': i32 is not i8",
    ),
    (
        (Region(X, (const(1), const(1))), const(3), Region(Y)),
        "'x' is passed to 'source' of 'callee': 7 elements, 8 expected",
    ),
    (
        (Region(X), const(3), Region(Buffer("anywhere", (8,), I8))),
        "'anywhere' is passed to 'target' of 'callee': "
        "scope 'global' does not satisfy scope 'global.workspace'",
    ),
    (
        (Region(X), const(3), Region(Buffer("row", (8,), I8))),
        "'row' is passed to 'target' of 'callee', which writes it, but it is only to be read",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_CALLS)
def test_arguments_match_parameters(arguments: tuple[Region | Expr, ...], message: str):
    assert calling(*arguments) == [message]


def test_local_memory_is_passed_to_nothing():
    local = Region(Buffer("private", (8,), I8))
    assert calling(local, callee="external") == ["'private' is local and cannot be passed to 'external'"]
    assert "'private' is local and cannot be passed to 'callee'" in calling(local, const(3), Region(Y))


def test_constants_go_to_what_only_reads():
    table = Buffer("table", (8,), I8)
    data = TensorData.from_array(np.zeros(8), I8)
    call = Call("callee", (Region(table), const(1), Region(table)))
    module = replace(
        entry(call, kernels=(CALLEE,)), constant_buffers=(ConstantBuffer(table, data, Storage(SRAM)),)
    )
    assert texts(module) == [
        "'table' is passed to 'target' of 'callee', which writes it, but it is only to be read"
    ]


def stretching(argument: Expr, shape: tuple[Extent, ...] = (4,)) -> list[str]:
    """What is wrong with a call that passes an extent of 2 to 4, from an entry whose `n` is 1 to 4."""
    rows = Buffer("rows", (Symbol("count", 2, 4),), I8)
    parameters = (BufferParameter(rows, Access.READ, scope=GLOBAL), ScalarParameter(Var("count", I32)))
    stretched = PrimFunc("stretched", parameters, Seq(()))
    given = Allocate(Buffer("x", shape, I8), Storage(WORKSPACE))
    open_one = Allocate(Buffer("y", (Symbol("n", 1, 4),), I8), Storage(WORKSPACE))
    call = Call("stretched", (Region(given.buffer), argument))
    loop = For(Var("i", I32), const(2), const(5), Seq((call,)))
    return texts(entry(open_one, given, loop, kernels=(stretched,)))


def test_extents_are_passed_within_their_bounds():
    outside = "'count' of 'stretched' is the extent 2 to 4, the argument may be"
    assert stretching(const(2), (2,)) == stretching(const(4)) == []
    assert stretching(Var("i", I32)) == []
    assert stretching(const(1)) == [f"{outside} 1 to 1"]
    assert stretching(const(5), (8,)) == [f"{outside} 5 to 5"]
    assert stretching(N) == [f"{outside} 1 to 4"]
    assert stretching(Var("i", I32) + 1, (8,)) == [f"{outside} 3 to 5"]
    assert stretching(N / const(2)) == [f"{outside} 0 to 2"]


def test_arguments_have_enough_elements_for_every_extent():
    assert stretching(const(3), (3,)) == []
    assert stretching(const(3), (2,)) == ["'x' is passed to 'rows' of 'stretched': 2 elements, 3 expected"]
    assert stretching(Var("i", I32), (3,)) == [
        "'x' is passed to 'rows' of 'stretched': 3 elements, 4 expected"
    ]
    few = "'x' is passed to 'rows' of 'stretched': the elements of n[1..4] are not always those of 3"
    assert stretching(const(3), (Symbol("n", 1, 4),)) == [few]


def test_touched_by_has_an_entry_per_argument():
    call = Call("external", (const(1), const(2)), touched_by=(("cpu",),))
    assert texts(entry(call)) == ["touched_by names 1 arguments of 2"]


def test_callees_stand_before_callers_and_entries_are_not_called():
    first = PrimFunc("first", (), Seq((Call("second", ()),)))
    itself = PrimFunc("second", (), Seq((Call("second", ()),)))
    main = PrimFunc("main", (), Seq((Call("main", ()),)))
    assert texts(Module("m", kernels=(first, itself), entries=(main,))) == [
        "'second' does not stand before its caller 'first'",
        "'second' does not stand before its caller 'second'",
        "entry 'main' is called",
    ]


# Changes


def changed(before: Module, after: Module, stage: Stage = Stage.LOWERED) -> list[str]:
    return texts(after, stage, previous=before, pass_name="wide")


def test_scopes_of_buffers_only_shrink():
    narrow, wide = (entry(Allocate(Buffer("b", (4,), I8), Storage(scope))) for scope in (SRAM, WORKSPACE))
    assert changed(wide, narrow) == []
    assert changed(narrow, wide) == [
        "pass 'wide' widened the scope of 'b' from 'global.sram' to 'global.workspace'"
    ]


def test_scopes_of_parameters_and_constants_only_shrink():
    def module(scope: Scope) -> Module:
        f = PrimFunc("k", (BufferParameter(A, Access.READ, scope=scope),), Seq(()))
        table = ConstantBuffer(Buffer("t", (1,), I8), TensorData.from_array(np.zeros(1), I8), Storage(scope))
        return Module("m", kernels=(f,), constant_buffers=(table,))

    assert changed(module(GLOBAL), module(SRAM)) == []
    assert changed(module(SRAM), module(GLOBAL)) == [
        f"pass 'wide' widened the scope of '{name}' from 'global.sram' to 'global'" for name in ("a", "t")
    ]


def test_scopes_of_values_only_shrink_and_devices_stay():
    def module(device: str | None, scope: Scope | None) -> Module:
        place = VirtualDevice(device, None, scope)
        return graph(node(("x",), Value("y", replace(TYPE, place=place))), type_=replace(TYPE, place=place))

    assert changed(module(None, None), module("cpu", SRAM), Stage.IMPORTED) == []
    found = changed(module("cpu", SRAM), module("npu", None), Stage.IMPORTED)
    assert found == [
        text
        for name in ("x", "y")
        for text in (
            f"pass 'wide' moved '{name}' from device 'cpu' to 'npu'",
            f"pass 'wide' widened the scope of '{name}' from 'global.sram' to 'None'",
        )
    ]


def test_functions_stay_on_their_device():
    before, after = (Module("m", kernels=(PrimFunc("k", (), Seq(()), device=d),)) for d in ("cpu", "npu"))
    assert changed(before, after) == ["pass 'wide' moved 'k' from device 'cpu' to 'npu'"]


def test_candidate_pools_only_shrink():
    def module(*pools: str) -> Module:
        return entry(Allocate(Buffer("b", (4,), I8), Storage(GLOBAL, candidates=pools)))

    assert changed(module("sram", "dram"), module("dram")) == []
    assert changed(module("dram"), module("sram", "dram")) == ["pass 'wide' added pool sram to 'b'"]


def test_lowering_keeps_the_scope_of_a_value():
    placed = replace(TYPE, place=VirtualDevice("cpu", None, SRAM))
    before = graph(node(("x",), Value("y", placed)), type_=placed)
    assert changed(before, entry(Allocate(Buffer("y", (1, 8), I8), Storage(SRAM)))) == []
    assert changed(before, entry(Allocate(Buffer("y", (1, 8), I8), Storage(WORKSPACE)))) == [
        "pass 'wide' widened the scope of 'y' from 'global.sram' to 'global.workspace'"
    ]


# The message


@dataclass(frozen=True, slots=True)
class Silent(Operation):
    """An operator that accepts anything."""

    name: ClassVar[str] = "silent"

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return inputs

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return inputs


def test_message_prints_the_function_with_remarks_under_the_guilty_lines():
    b = BodyBuilder(("a", "n"))
    with b.for_("i", 0, N) as i:
        b.emit(Store(A, (i,), Var("ghost", I32)))
    with pytest.raises(InternalError) as caught:
        verify(kernel(*b.finish().statements), Stage.LOWERED, pass_name="break_things")
    assert str(caught.value) == "\n".join(
        [
            "after pass 'break_things': module 'm' is not what stage LOWERED admits (2 violations)",
            "kernel k(",
            '    a : buffer<4x8xi32, "global", align=4> rw activation,',
            "    n : i32",
            ") on cpu {",
            "  for i : i32 in 0 .. n {",
            "    a[i] = ghost",
            "    ^ 'a' has 2 axes, 1 indices",
            "    ^ variable 'ghost' is not defined here",
            "  }",
            "}",
        ]
    )


def test_message_of_a_graph_and_of_the_module():
    module = graph(node(("ghost",), Value("y", TYPE), operation=Silent()), results=("y",))
    module = replace(module, constants=(Constant("x", TensorData.from_array(np.zeros(1), I8)),))
    with pytest.raises(InternalError) as caught:
        verify(module, Stage.IMPORTED)
    text = str(caught.value)
    assert "\n^ value 'x' exists 2 times\nfunc g(" in text
    assert "  %y : tensor<1x8xi8> = silent(%ghost)\n  ^ 'ghost' is used before it is defined\n}" in text
