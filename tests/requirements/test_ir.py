"""Requirements on the intermediate representation, by their numbers in docs/requirements.md."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest

from bytewright.diagnostics import InternalError
from bytewright.frontends.tflite import import_tflite
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.data import TensorData
from bytewright.ir.expr import Buffer, const
from bytewright.ir.graph import Constant, Function, Node, Value
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, PrimFunc, Seq
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.text.reader import ParseError
from bytewright.ir.types import DType, Symbol, TensorType, VirtualDevice
from bytewright.ir.verify.stages import Stage, find_violations, verify
from bytewright.ir.where import Where
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import Identity
from bytewright.ops.registry import OPERATIONS
from bytewright.place.plan_devices import plan_devices
from bytewright.target import load_target
from support.parsing import parse_module
from support.shared_models import BOARD, KWS, VWW, model_path

I8 = DType.I8
SRAM = pool_scope("sram")


def stages_of(model: str) -> list[Module]:
    """The module after each pass up to lowering."""
    target = load_target(BOARD)
    modules = [import_tflite(model_path(model), name=None, numerics=Numerics.LITERT_REF)]
    modules.append(plan_devices(modules[-1], target))
    modules.append(fold_pad(modules[-1]))
    modules.append(lower_graph(modules[-1], target))
    modules.append(share_kernels(modules[-1]))
    return modules


def copy_kernel(of_source: Scope | None = GLOBAL, of_target: Scope | None = GLOBAL) -> PrimFunc:
    source, target = (Buffer(name, (8,), I8) for name in ("source", "target"))
    b = BodyBuilder((source.name, target.name))
    with b.for_("i", 0, 8) as i:
        b.store(target, i, load(source, i))
    parameters = (
        BufferParameter(source, Access.READ, scope=of_source),
        BufferParameter(target, Access.WRITE, scope=of_target),
    )
    return PrimFunc("copy", parameters, b.finish())


def entry_with(buffer: Buffer, scope: Scope | None, name: str = "main") -> PrimFunc:
    b = BodyBuilder()
    b.allocate(buffer, Storage(scope))
    return PrimFunc(name, (), b.finish())


# D11


@pytest.mark.parametrize("model", [KWS, VWW, "pretrainedResnet"])
def test_d11_modules_print_and_parse_after_every_pass(model: str):
    for module in stages_of(model):
        text = print_module(module)
        parsed = parse_module(text, module_data(module), OPERATIONS)
        assert parsed == module
        assert print_module(parsed) == text


def test_d11_graph_functions_and_primfuncs_mix():
    kernel = copy_kernel()
    weights = TensorData.from_array(np.arange(8), I8)
    node = Node(
        Identity(), ("weights",), (Value("w", TensorType((8,), I8)),), Where("m.tflite", "0 (X)", "w")
    )
    function = Function("graph", (), (node,), ("w",))
    module = Module("m", (function,), (Constant("weights", weights),), (kernel,))
    verify(module, Stage.IMPORTED)
    text = print_module(module)
    assert text.index("func graph") < text.index("kernel copy")
    assert parse_module(text, module_data(module), OPERATIONS) == module


def test_d11_dumps_of_consecutive_passes_differ_only_in_what_changed():
    imported, placed, *_ = stages_of(KWS)
    before, after = (print_module(module) for module in (imported, placed))
    without_places = re.sub(r", @[^>]*", "", " ".join(after.split()))
    assert before != after
    assert without_places == " ".join(before.split())


def test_d11_names_survive_lowering():
    modules = stages_of(KWS)
    values = {value.name for node in modules[1].graph.nodes for value in node.outputs}
    lowered = print_module(modules[3])
    for name in ("conv2d_0/out", "depthwise_conv2d_1/out", "conv2d_8/out"):
        assert name in values
        assert f"allocate {name} :" in lowered
    text = print_module(modules[4])
    kept = [kernel.name for kernel in modules[4].kernels]
    assert set(kept) < {kernel.name for kernel in modules[3].kernels}
    assert all(f"kernel {name}(" in text for name in kept)


def test_d11_a_name_used_twice_is_refused():
    module = Module("m", entries=(entry_with(Buffer("b", (1,), I8), STACK, "same"),))
    twice = Module("m", kernels=(PrimFunc("same", (), Seq(())),), entries=module.entries)
    verify(module, Stage.STORED)
    with pytest.raises(InternalError, match="function 'same' exists 2 times"):
        verify(twice, Stage.STORED)


# S16


@pytest.mark.parametrize(
    ("before", "after", "widens"),
    [
        (None, GLOBAL, False),
        (GLOBAL, WORKSPACE, False),
        (WORKSPACE, SRAM, False),
        (GLOBAL, STACK, False),
        (SRAM, SRAM, False),
        (SRAM, WORKSPACE, True),
        (WORKSPACE, GLOBAL, True),
        (STACK, GLOBAL, True),
        (STACK, SRAM, True),
        (SRAM, pool_scope("dram"), True),
        (LOCAL, GLOBAL, True),
        (GLOBAL, None, True),
    ],
)
def test_s16_a_pass_that_widens_a_scope_is_named(before: Scope | None, after: Scope | None, widens: bool):
    old, new = (Module("m", entries=(entry_with(Buffer("b", (4,), I8), s),)) for s in (before, after))
    if not widens:
        verify(new, Stage.LOWERED, previous=old, pass_name="careless")
        return
    message = f"pass 'careless' widened the scope of 'b' from '{before}' to '{after}'"
    with pytest.raises(InternalError, match=message):
        verify(new, Stage.LOWERED, previous=old, pass_name="careless")


def test_s16_values_of_the_graph_are_held_to_it():
    def placed(scope: Scope) -> Module:
        place = VirtualDevice("cpu", None, scope)
        return Module("m", (Function("main", (Value("x", TensorType((1,), I8, place)),), (), ()),))

    verify(placed(SRAM), Stage.PLACED, previous=placed(GLOBAL), pass_name="careful")
    with pytest.raises(InternalError, match="pass 'careless' widened the scope of 'x'"):
        verify(placed(GLOBAL), Stage.PLACED, previous=placed(SRAM), pass_name="careless")


def test_s16_a_new_buffer_starts_a_chain_of_its_own():
    old = Module("m", entries=(entry_with(Buffer("b", (4,), I8), SRAM),))
    b = BodyBuilder()
    b.allocate(Buffer("b", (4,), I8), Storage(SRAM))
    b.allocate(Buffer("b_copy", (4,), I8), Storage(GLOBAL))
    new = Module("m", entries=(PrimFunc("main", (), b.finish()),))
    verify(new, Stage.LOWERED, previous=old, pass_name="copies")
    widened = Module("m", entries=(entry_with(Buffer("b", (4,), I8), GLOBAL),))
    with pytest.raises(InternalError, match="widened the scope of 'b'"):
        verify(widened, Stage.LOWERED, previous=old, pass_name="the same name, no new buffer")


# S17


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE])
@pytest.mark.parametrize("stage", [Stage.STORED, Stage.PLANNED])
def test_s17_no_allocation_reaches_emission_undecided(scope: Scope | None, stage: Stage):
    undecided = entry_with(Buffer("b", (4,), I8), scope)
    for module in (Module("m", entries=(undecided,)), Module("m", kernels=(undecided,))):
        with pytest.raises(InternalError, match="storage of 'b' is undecided"):
            verify(module, stage)


def test_s17_no_buffer_in_a_pool_reaches_emission_without_its_offset():
    module = Module("m", entries=(entry_with(Buffer("b", (4,), I8), SRAM),))
    verify(module, Stage.STORED)
    with pytest.raises(InternalError, match="'b' in pool 'sram' has no pool_offset"):
        verify(module, Stage.PLANNED)


# S19


@pytest.mark.parametrize(
    ("argument", "parameter", "satisfies"),
    [
        (SRAM, GLOBAL, True),
        (SRAM, WORKSPACE, True),
        (SRAM, SRAM, True),
        (STACK, GLOBAL, True),
        (WORKSPACE, None, True),
        (GLOBAL, SRAM, False),
        (STACK, WORKSPACE, False),
        (pool_scope("dram"), SRAM, False),
        (WORKSPACE, STACK, False),
    ],
)
def test_s19_argument_and_parameter_scopes_are_compared_at_every_call(
    argument: Scope, parameter: Scope | None, satisfies: bool
):
    kernel = copy_kernel(parameter)
    b = BodyBuilder()
    x = b.allocate(Buffer("x", (8,), I8), Storage(argument))
    y = b.allocate(Buffer("y", (8,), I8), Storage(WORKSPACE))
    b.call("copy", region(x), region(y))
    module = Module("m", kernels=(kernel,), entries=(PrimFunc("main", (), b.finish()),))
    if satisfies:
        verify(module, Stage.LOWERED)
        return
    message = f"'x' is passed to 'source' of 'copy': scope '{argument}' does not satisfy scope '{parameter}'"
    with pytest.raises(InternalError, match=message):
        verify(module, Stage.LOWERED)


def passes_on(buffer: Buffer, parameter: Scope | None, *, allocates: bool) -> Module:
    """A kernel that passes a buffer, its own or one that it was given, on to `copy`."""
    kernel = copy_kernel(parameter)
    b = BodyBuilder(("given", "y"))
    passed = b.allocate(buffer) if allocates else buffer
    b.call("copy", region(b.view("v", region(passed), I8, 8)), region(Buffer("y", (8,), I8)))
    parameters = (
        *(() if allocates else (BufferParameter(buffer, Access.READ),)),
        BufferParameter(Buffer("y", (8,), I8), Access.WRITE, scope=GLOBAL),
    )
    return Module("m", kernels=(kernel, PrimFunc("k", parameters, b.finish())))


def test_s22_scratch_without_a_scope_is_global_where_it_is_passed():
    """Not so a parameter without one: its callers may pass what is not `global`."""
    own, given = Buffer("own", (8,), I8), Buffer("given", (8,), I8)
    verify(passes_on(own, GLOBAL, allocates=True), Stage.LOWERED)
    message = "'v' is passed to 'source' of 'copy': scope '{}' does not satisfy scope '{}'"
    with pytest.raises(InternalError, match=message.format("global", "global.workspace")):
        verify(passes_on(own, WORKSPACE, allocates=True), Stage.LOWERED)
    with pytest.raises(InternalError, match=message.format("None", "global")):
        verify(passes_on(given, GLOBAL, allocates=False), Stage.LOWERED)


@pytest.mark.parametrize(
    ("scope", "is_passed", "satisfies"), [(SRAM, True, True), (STACK, True, False), (LOCAL, False, False)]
)
def test_s19_what_a_view_may_show_is_compared_too(scope: Scope, is_passed: bool, satisfies: bool):
    """A view has the scope of its first source; unless its condition holds it shows the other one."""
    kernel = copy_kernel(WORKSPACE)
    b = BodyBuilder()
    first, y = (b.allocate(Buffer(name, (8,), I8), Storage(WORKSPACE)) for name in ("first", "y"))
    second = b.allocate(Buffer("second", (8,), I8), Storage(scope))
    turn = b.let("turn", const(1))
    b.call("copy", region(b.view("v", region(first), I8, 8, turn < 2, region(second))), region(y))
    module = Module("m", kernels=(kernel,), entries=(PrimFunc("main", (), b.finish()),))
    private = "'v' is local and cannot be passed to 'copy'"
    unsatisfied = (
        f"'v' is passed to 'source' of 'copy': scope '{scope}' does not satisfy scope 'global.workspace'"
    )
    expected = [*([] if is_passed else [private]), *([] if satisfies else [unsatisfied])]
    assert [violation.text for violation in find_violations(module, Stage.LOWERED)] == expected


def test_s15_only_opaque_calls_declare_devices_and_those_exist():
    kernel = copy_kernel()
    b = BodyBuilder()
    x, y = (b.allocate(Buffer(name, (8,), I8), Storage(WORKSPACE)) for name in ("x", "y"))
    b.call("copy", region(x), region(y), touched_by=(("cpu",), ("cpu",)))
    b.call("external", region(x), region(y), touched_by=(("cpu",), ("gpu", "gpu")))
    module = Module("m", kernels=(kernel,), entries=(PrimFunc("main", (), b.finish()),))
    found = find_violations(module, Stage.LOWERED, load_target("host"))
    assert [violation.text for violation in found] == [
        "touched_by is for opaque calls, and 'copy' is a kernel",
        "touched_by of 'external': target 'host' has no device 'gpu'",
    ]


def test_s19_a_buffer_has_one_scope_wherever_it_is_named():
    """Its definition has it: uses name the buffer alone, and a view whose text says another scope is refused."""
    b = BodyBuilder()
    x = b.allocate(Buffer("x", (8,), I8), Storage(SRAM))
    b.call("external", region(b.view("v", region(x), I8, 8)))
    assert "scope" not in {field.name for field in fields(Buffer)}
    text = print_module(Module("m", entries=(PrimFunc("main", (), b.finish()),)))
    view = 'view v : buffer<8xi8, "global.sram"'
    assert view in text
    with pytest.raises(ParseError, match=r"scope of view 'v' 'global.workspace' is not 'global.sram' of 'x'"):
        parse_module(text.replace(view, view.replace("sram", "workspace")), {}, OPERATIONS)


# S24


@pytest.mark.parametrize("callee", ["copy", "external"])
def test_s24_local_memory_is_passed_to_no_function(callee: str):
    kernel = copy_kernel()
    b = BodyBuilder()
    private = b.allocate(Buffer("private", (8,), I8), Storage(LOCAL))
    y = b.allocate(Buffer("y", (8,), I8), Storage(WORKSPACE))
    b.call(callee, region(private), region(y))
    module = Module("m", kernels=(kernel,), entries=(PrimFunc("main", (), b.finish()),))
    with pytest.raises(InternalError, match=f"'private' is local and cannot be passed to '{callee}'"):
        verify(module, Stage.LOWERED)


def test_s24_a_view_of_local_memory_is_local_too():
    b = BodyBuilder()
    private = b.allocate(Buffer("private", (8,), I8), Storage(LOCAL))
    b.call("external", region(b.view("v", region(private), I8, 4)))
    with pytest.raises(InternalError, match="'v' is local and cannot be passed to 'external'"):
        verify(Module("m", entries=(PrimFunc("main", (), b.finish()),)), Stage.LOWERED)


def test_s24_local_memory_is_no_parameter_and_has_constant_size():
    private = Buffer("private", (8,), I8)
    function = PrimFunc("k", (BufferParameter(private, Access.READ, scope=LOCAL),), Seq(()))
    with pytest.raises(InternalError, match="'private' is local, so it cannot be a parameter"):
        verify(Module("m", kernels=(function,)), Stage.LOWERED)
    dynamic = Buffer("private", (Symbol("N", 1, 8),), I8)
    with pytest.raises(InternalError, match="'private' is local, so its size must be constant"):
        verify(Module("m", kernels=(entry_with(dynamic, LOCAL, "k"),)), Stage.LOWERED)
