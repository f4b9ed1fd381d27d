"""Requirements D1 to D11, as far as the graph goes: devices of values, what is lent and what is copied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from time import process_time
from typing import ClassVar

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.ir import Io
from bytewright.ir.graph import Function, Node, Operation, Value
from bytewright.ir.module import Module, Port
from bytewright.ir.text.modules import print_module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.where import NOWHERE
from bytewright.lower.lower_graph import lower_graph
from bytewright.ops.control import Call
from bytewright.ops.data import Identity
from bytewright.ops.elementwise import Sub
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.ops.registry import OPERATIONS
from bytewright.options import On, Options, parse_on_option
from bytewright.place.plan_devices import plan_devices
from bytewright.record.plan import Plan
from support.parsing import parse_module
from support.placed_graphs import values_of
from support.three_devices import three_devices
from support.tiers import THOROUGH

T = "tensor<4xi8>"
CLAMP = "{minimum=-5, maximum=5}"


def graph(*lines: str, functions: str = "") -> Module:
    """A module of `name = operator(operands) {...}` lines; the last one names the results."""
    *nodes, results = lines
    text = "\n".join(f"  %{line.replace(' = ', f' : {T} = ', 1)}" for line in nodes)
    body = f"func main(%x : {T}) -> ({results}) {{\n{text}\n}}"
    return parse_module(f"module m\ninput %x : {T}\n{functions}\n{body}\n", {}, OPERATIONS)


def placed(module: Module, *, wide: bool = False, on: tuple[On, ...] = (), io: Io = Io.WORKSPACE) -> Module:
    target = three_devices(wide=wide)
    found = plan_devices(module, target, on, io)
    verify(found, Stage.PLACED, target, module, "plan_devices")
    return found


def devices(module: Module) -> dict[str, str | None]:
    return {v.name: v.type.place.device for function in module.functions for v in values_of(function)}


def copies(module: Module) -> list[str]:
    """`source -> device` of each copy."""
    nodes = (node for function in module.functions for node in function.nodes)
    return [
        f"{n.inputs[0]} -> {n.outputs[0].type.place.device}"
        for n in nodes
        if isinstance(n.operation, DeviceCopy)
    ]


def on(name: str, device: str | None = None, **more: str) -> str:
    attributes = {"device": f'"{device}"' if device else "none", **more}
    return f"on_device(%{name}) {{{', '.join(f'{key}={value}' for key, value in attributes.items())}}}"


def identity(name: str) -> str:
    return f"identity(%{name})"


def test_d1_a_pinned_value_leaves_what_uses_it_free() -> None:
    module = graph(f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"c = {identity('b')}", "%c")
    found = placed(module)
    assert devices(found)["a"] == "npu"
    assert devices(found)["c"] == "cpu"
    assert copies(found) == ["x -> npu", "a -> cpu"]


def test_d1_a_fixed_value_takes_what_uses_it_along() -> None:
    module = graph(
        f"a = {identity('x')}", f"b = {on('a', 'npu', fixed='true')}", f"c = {identity('b')}", "%c"
    )
    found = placed(module)
    assert devices(found)["c"] == "npu"
    assert "a -> cpu" not in copies(found)
    kept = graph(f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"c = {identity('b')}", "%c")
    assert devices(placed(kept))["c"] == "cpu"


def test_d1_a_free_place_is_copied_only_where_that_is_needed() -> None:
    lines = (f"a = {identity('x')}", f"b = {on('a', 'npu', free='true')}", f"c = {identity('b')}")
    unbound = placed(graph(*lines, "%c"))
    assert devices(unbound)["c"] == "npu"
    assert "a -> cpu" not in copies(unbound)
    bound = placed(graph(*lines, f"d = {on('c', 'cpu')}", "%d"))
    assert "a -> cpu" in copies(bound)


def test_d1_a_free_place_gives_way_to_what_is_tied() -> None:
    """Ties that admit no copy are followed first: the operand's device, not that of who reads the free place."""
    lines = (
        f"s = {identity('x')}",
        f"s2 = {on('s', 'cpu')}",
        f"c = {identity('s')}",
        f"c2 = {on('c', free='true')}",
    )
    found = placed(graph(*lines, f"g = {identity('c2')}", f"g2 = {on('g', 'npu')}", "%g2, %s2"))
    assert (devices(found)["c"], devices(found)["g"]) == ("cpu", "npu")


def test_d1_device_and_scope_may_each_be_left_open() -> None:
    module = graph(
        f"a = {identity('x')}",
        f"""b = {on("a", scope='"global.shared"')}""",
        f"c = {identity('b')}",
        f"d = {on('c')}",
        "%d",
    )
    found = placed(module)
    places = {v.name: str(v.type.place) for v in values_of(found.graph)}
    assert places["a"] == '@cpu target=three "global.shared"'
    assert places["c"] == "@cpu target=three"


FUNCTION = f"""func f(%p : {T}) -> (%q) {{
  %q : {T} = clamp(%p) {CLAMP}
}}
"""


def test_d2_devices_spread_through_operators_calls_loops_and_conditionals() -> None:
    module = graph(
        f"a = {identity('x')}",
        'b = call(%a) {callee="f"}',
        'c = loop(%b) {body="f", num_iterations=3}',
        f"d = clamp(%c) {CLAMP}",
        f"e = {on('d', 'npu')}",
        "%e",
        functions=FUNCTION,
    )
    found = devices(placed(module))
    assert {name: found[name] for name in "abcdpq"} == dict.fromkeys("abcdpq", "npu")


def test_d2_an_annotation_at_the_top_of_a_function_is_fixed() -> None:
    """What calls it has the result where the function gives it, and what uses that follows."""
    function = FUNCTION.replace("(%q)", "(%r)").replace("\n}", f"\n  %r : {T} = {on('q', 'npu')}\n}}")
    lines = (f"a = {identity('x')}", 'b = call(%a) {callee="f"}', f"c = {identity('b')}")
    found = placed(graph(*lines, "%c", functions=function))
    assert {name: devices(found)[name] for name in "qbc"} == dict.fromkeys("qbc", "npu")
    assert [copy for copy in copies(found) if copy.startswith(("q", "b"))] == []
    with pytest.raises(CompileError, match="BW701"):
        placed(graph(*lines, f"d = {on('b', 'cpu', fixed='true')}", "%d", functions=function))


def test_d2_a_view_is_where_its_operand_is() -> None:
    lines = (
        f"a = {identity('x')}",
        "b = reshape(%a) {shape=(4,)}",
        f"c = {on('b', 'npu')}",
        f"d = {identity('c')}",
    )
    found = placed(graph(*lines, f"e = {on('d', 'cpu')}", "%e"))
    assert {name: devices(found)[name] for name in "abd"} == {"a": "npu", "b": "npu", "d": "cpu"}
    with pytest.raises(CompileError, match="BW701"):
        placed(graph(*lines, f"e = {on('a', 'cpu')}", "%e, %d"))


@dataclass(frozen=True)
class Halves(Operation):
    """An operator with two results."""

    name: ClassVar[str] = "halves"


def test_d2_all_results_of_an_operator_are_on_its_device() -> None:
    type_ = TensorType((4,), DType.I8)
    nodes = (
        Node(Halves(), ("x",), (Value("a", type_), Value("b", type_)), NOWHERE),
        Node(OnDevice("npu"), ("b",), (Value("c", type_),), NOWHERE),
    )
    module = Module("m", (Function("main", (Value("x", type_),), nodes, ("a", "c")),))
    found = devices(plan_devices(module, three_devices()))
    assert (found["a"], found["b"]) == ("npu", "npu")


def test_d2_a_constant_that_a_function_gives_ties_nothing() -> None:
    """It is nobody's memory: what the other arm gives has nothing to do with the state of a loop that gives it."""
    functions = f"""constant %k = data<4xi8> [1, 2, 3, 4]
constant %flag = data<1xbool> [true]
func f(%p : {T}) -> (%r) {{
  %q : {T} = clamp(%p) {CLAMP}
  %r : {T} = {on("q", "npu")}
}}
func g(%t : {T}) -> (%k) {{
}}
"""
    lines = (
        'a = loop(%x) {body="g", num_iterations=2}',
        f"b = clamp(%a) {CLAMP}",
        'c = cond_if(%flag, %x) {then_branch="f", else_branch="g"}',
    )
    found = devices(placed(graph(*lines, f"d = {on('a', 'cpu')}", "%b, %c, %d", functions=functions)))
    assert {name: found[name] for name in "qctab"} == {
        "q": "npu",
        "c": "npu",
        "t": "cpu",
        "a": "cpu",
        "b": "cpu",
    }


def test_d2_operands_and_results_share_a_device_and_keep_scopes_of_their_own() -> None:
    module = graph(
        f"a = {identity('x')}",
        f"""b = {on("a", "dsp", scope='"global.side"')}""",
        f"c = {identity('b')}",
        f"""d = {on("c", "dsp", scope='"global.shared"')}""",
        "%d",
    )
    places = {v.name: str(v.type.place) for v in values_of(placed(module).graph)}
    assert places["a"] == '@dsp target=three "global.side"'
    assert places["c"] == '@dsp target=three "global.shared"'


def test_d3_what_nothing_is_asked_of_is_on_the_default_device() -> None:
    found = placed(graph(f"a = {identity('x')}", f"b = {identity('a')}", "%b"))
    assert set(devices(found).values()) == {"cpu"}
    assert copies(found) == []


def test_d4_nothing_is_copied_where_a_pool_is_left_that_both_reach() -> None:
    lines = (f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"c = {identity('b')}", f"d = {on('c', 'cpu')}")
    assert copies(placed(graph(*lines, "%d"), io=Io.WORKSPACE)) == ["x -> npu", "a -> cpu"]
    assert copies(placed(graph(*lines, "%d"), wide=True, io=Io.WORKSPACE)) == []


def test_d4_one_copy_serves_all_users_at_its_place() -> None:
    module = graph(
        f"a = {identity('x')}",
        f"b = {on('a', 'npu')}",
        f"w = {identity('x')}",
        f"w2 = {on('w', 'cpu')}",
        f"c = {identity('b')}",
        f"d = clamp(%b) {CLAMP}",
        "%w2, %c, %d",
    )
    found = placed(module)
    assert copies(found).count("a -> cpu") == 1
    names = [node.outputs[0].name for node in found.graph.nodes]
    assert names == ["x_on_npu", "a", "w", "a_on_cpu", "c", "d"]  # as late as the first one needs it


def copied(*, source: str, destination: str, pool: str | None = None, near: str = "none") -> Module:
    """What a device computes is copied to another one, explicitly, used there, and then on the CPU."""
    scope = "none" if pool is None else f'Scope(rank=Rank.GLOBAL, tag="{pool}")'
    to = f'VirtualDevice(device="{destination}", target=none, scope={scope})'
    return graph(
        f"a = {identity('x')}",
        f"b = {on('a', source, scope=near)}",
        f"c = device_copy(%b) {{destination={to}}}",
        f"d = {identity('c')}",
        f"e = {on('d', destination)}",
        f"f = {identity('e')}",
        f"g = {on('f', 'cpu')}",
        "%g",
    )


def made(module: Module) -> dict[str, str | None]:
    """The device that makes each copy."""
    nodes = (node for function in module.functions for node in function.nodes)
    return {
        f"{n.inputs[0]} -> {n.outputs[0].name}": n.operation.by
        for n in nodes
        if isinstance(n.operation, DeviceCopy)
    }


def compiled(module: Module, folder: Path) -> Plan:
    """The plan of a module with one result."""
    port = Port("y", TensorType((4,), DType.I8))
    (folder / "m.bw").write_text(print_module(replace(module, outputs=(port,))))
    return compile_model(folder / "m.bw", three_devices(), Options(io=Io.WORKSPACE)).plan


def copiers(plan: Plan) -> list[str]:
    """The devices of the steps that copy."""
    return [step.device for step in plan.steps if step.operators == ("device_copy",)]


@pytest.mark.parametrize("device", ["cpu", "dsp", "npu"])
def test_d4_an_explicit_copy_between_equal_places_disappears(device: str) -> None:
    found = placed(copied(source=device, destination=device), io=Io.WORKSPACE)
    assert "a -> c" not in made(found)
    assert devices(found)["d"] == device


def test_d4_an_explicit_copy_between_equal_places_disappears_though_its_ends_are_lent_elsewhere() -> None:
    to = 'VirtualDevice(device="dsp", target=none, scope=none)'
    lines = (f"a = {identity('x')}", f"b = {on('a', 'dsp')}", f"c = device_copy(%b) {{destination={to}}}")
    more = (f"d = {identity('b')}", f"e = {on('d', 'cpu')}", f"f = {identity('c')}", f"g = {on('f', 'npu')}")
    found = placed(graph(*lines, *more, "%e, %g"), io=Io.WORKSPACE)
    assert copies(found) == ["a -> npu", "f -> cpu"]


def test_d4_an_explicit_copy_between_devices_that_share_memory_becomes_nothing(tmp_path: Path) -> None:
    """The value is where both reach: of the pools near and shared, which the CPU has, in the one that the DSP has."""
    module = copied(source="cpu", destination="dsp")
    found = placed(module, io=Io.WORKSPACE)
    assert made(found) == {}
    assert [(v.name, v.type.place.device) for v in values_of(found.graph)] == [
        ("x", "cpu"),
        ("a", "cpu"),
        ("d", "dsp"),
        ("f", "cpu"),
    ]
    assert [node.inputs for node in found.graph.nodes] == [("x",), ("a",), ("d",)]
    plan = compiled(module, tmp_path)
    assert copiers(plan) == []
    assert plan.buffers["a"].place.name == "shared"


def test_d4_an_explicit_copy_between_pools_that_the_user_names_stays() -> None:
    found = placed(copied(source="cpu", destination="dsp", pool="side"), io=Io.WORKSPACE)
    assert made(found)["a -> c"] == "dsp"
    found = placed(copied(source="dsp", destination="npu", pool="far"), io=Io.WORKSPACE)
    assert made(found)["a -> c"] == "npu"


def test_d4_an_explicit_copy_is_a_kernel_of_a_device_that_reaches_both_ends(tmp_path: Path) -> None:
    """The DSP shares a pool with the CPU and another one with the NPU, and runs C."""
    module = copied(source="cpu", destination="npu")
    assert made(placed(module, io=Io.WORKSPACE))["a -> c"] == "dsp"
    assert copiers(compiled(module, tmp_path)) == ["dsp", "dsp"]


def test_d4_an_explicit_copy_out_of_the_reach_of_all_kernels_is_a_job(tmp_path: Path) -> None:
    """Between pools that one device has alone, only the mover reaches both, which runs no C."""
    module = copied(source="cpu", destination="npu", pool="far", near='"global.near"')
    assert made(placed(module, io=Io.WORKSPACE))["a -> c"] == "mover"
    assert copiers(compiled(module, tmp_path)) == ["mover", "dsp"]  # out of near; then out of side or far


def test_d4_scopes_of_one_device_that_contradict_become_a_copy() -> None:
    module = graph(
        f"a = {identity('x')}",
        f"""b = {on("a", "cpu", scope='"global.near"')}""",
        f"""c = {on("b", "cpu", scope='"global.shared"')}""",
        f"d = {identity('c')}",
        "%d",
    )
    found = placed(module)
    assert copies(found) == ["a -> cpu"]
    assert found.graph.nodes[-1].inputs == ("a_on_cpu_in_shared",)


def test_d5_placing_again_changes_nothing() -> None:
    module = graph(f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"c = {identity('b')}", "%c")
    found = placed(module)
    assert len(copies(found)) == 2
    assert placed(found) == found


def test_d7_users_on_two_devices_get_one_copy() -> None:
    module = graph(
        f"m = {identity('x')}",
        f"a = {identity('m')}",
        f"a2 = {on('a', 'cpu')}",
        f"b = {identity('m')}",
        f"b2 = {on('b', 'npu')}",
        "%a2, %b2",
    )
    assert copies(placed(module)) == ["m -> npu", "b -> cpu"]


def test_d8_a_conflict_that_no_copy_solves_names_both_sources() -> None:
    module = graph(f"a = {identity('x')}", f"b = {on('a', 'cpu')}", f"c = {on('a', 'npu')}", "%b, %c")
    with pytest.raises(CompileError) as caught:
        placed(module)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW701"
    assert diagnostic.notes == (
        "on_device puts 'a' on device 'cpu'",
        "on_device puts 'a' on device 'npu'",
    )


def test_d8_what_is_fixed_is_not_copied() -> None:
    module = graph(
        f"a = {identity('x')}",
        f"b = {on('a', 'npu', fixed='true')}",
        f"c = {identity('b')}",
        f"d = {on('c', 'cpu')}",
        "%d",
    )
    with pytest.raises(CompileError, match="BW701"):
        placed(module)


def test_d8_a_copy_that_no_device_can_make_is_refused() -> None:
    lines = (
        f"a = {identity('x')}",
        f"""b = {on("a", "npu", scope='"global.far"')}""",
        f"c = {identity('b')}",
        f"d = {on('c', 'cpu')}",
    )
    with pytest.raises(CompileError, match="BW703") as caught:
        plan_devices(graph(*lines, "%d"), three_devices(mover=False, joined=False))
    found = next(each for each in caught.value.diagnostics if "'a'" in each.message)
    assert found.message == "'a' is needed on device 'cpu', and no device can copy it there"
    assert found.help == "a device of the target that copies and reaches far, and near or shared or side"
    assert copies(placed(graph(*lines, "%d")))


def test_d8_what_no_device_copies_by_itself_goes_from_pool_to_pool() -> None:
    """It was BW703. Copies of one value go together as far as the pool where they part."""
    to = 'VirtualDevice(device="cpu", target=none, scope=Scope(rank=Rank.GLOBAL, tag="near"))'
    lines = (
        f"a = {identity('x')}",
        f"""b = {on("a", "npu", scope='"global.far"')}""",
        f"c = {identity('b')}",
        f"""d = {on("c", "cpu", scope='"global.shared"')}""",
        f"e = device_copy(%b) {{destination={to}}}",
    )
    target, module = three_devices(mover=False), graph(*lines, "%d, %e")
    found = plan_devices(module, target, io=Io.WORKSPACE)
    verify(found, Stage.PLACED, target, module, "plan_devices")
    assert plan_devices(found, target, io=Io.WORKSPACE) == found
    ways = {
        node.outputs[0].name: (node.inputs[0], node.operation.by)
        for node in found.functions[-1].nodes
        if isinstance(node.operation, DeviceCopy)
    }
    assert ways == {
        "x_on_npu": ("x", "dsp"),
        "a_in_side": ("a", "npu"),
        "a_on_cpu_in_shared": ("a_in_side", "dsp"),
        "a_in_shared": ("a_in_side", "dsp"),
        "e": ("a_in_shared", "cpu"),
    }


def test_d8_a_condition_is_fixed_nowhere_but_on_the_device_that_branches() -> None:
    text = f"""module m
input %i : tensor<1xi32>
input %x : {T}
{FUNCTION}
func main(%i : tensor<1xi32>, %x : {T}) -> (%r) {{
  %c : tensor<1xbool> = equal(%i, %i)
  %d : tensor<1xbool> = {on("c", "dsp", fixed="true")}
  %r : {T} = cond_if(%d, %x) {{then_branch="f", else_branch="f"}}
}}
"""
    loose = placed(parse_module(text.replace("fixed=true", "fixed=false"), {}, OPERATIONS), io=Io.WORKSPACE)
    assert devices(loose)["c"] == "dsp"
    with pytest.raises(CompileError, match="BW701") as caught:
        placed(parse_module(text, {}, OPERATIONS))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.notes[1] == "it says which way the entry goes, which device 'cpu' runs"


def test_d4_a_value_is_lent_to_devices_in_the_order_of_the_target() -> None:
    """The DSP's value can be where the CPU reaches it, or where the NPU does: the CPU comes first."""
    lines = (f"a = {identity('x')}", f"b = {on('a', 'dsp')}", f"c = {identity('b')}", f"d = {on('c', 'npu')}")
    found = placed(graph(*lines, f"e = {identity('b')}", f"f = {on('e', 'cpu')}", "%d, %f"), io=Io.WORKSPACE)
    assert copies(found) == ["a -> npu", "c -> cpu"]


def test_d9_ties_to_and_fro_are_followed_in_one_walk() -> None:
    """Each difference is of two values, each value in two differences; only at the ends a device is known."""
    type_ = TensorType((4,), DType.I32)
    nodes = [Node(OnDevice("cpu"), ("x",), (Value("free", type_),), NOWHERE)]
    for number in range(5_001):
        nodes.append(Node(OnDevice("cpu"), ("x",), (Value(f"in{number}", type_),), NOWHERE))
        nodes.append(Node(Identity(), (f"in{number}",), (Value(f"x{number}", type_),), NOWHERE))
    for number in range(5_000):
        operands = (f"x{number}", f"x{number + 1}")
        nodes.append(Node(Sub(), operands, (Value(f"y{number}", type_),), NOWHERE))
    nodes.append(Node(OnDevice("npu"), ("y0",), (Value("first", type_),), NOWHERE))
    nodes.append(Node(OnDevice("dsp"), ("y4999",), (Value("last", type_),), NOWHERE))
    module = Module("m", (Function("main", (Value("x", type_),), tuple(nodes), ("first", "last")),))
    begin = process_time()
    found = devices(plan_devices(module, three_devices()))
    assert process_time() - begin < 10
    assert {found[f"y{number}"] for number in range(2_490)} == {"npu"}
    assert {found[f"y{number}"] for number in range(2_510, 5_000)} == {"dsp"}


def test_d9_ten_thousand_annotations_of_one_value() -> None:
    type_ = TensorType((4,), DType.I8)
    nodes, last = [Node(Identity(), ("x",), (Value("v", type_),), NOWHERE)], "v"
    for number in range(10_000):
        operation = OnDevice(("npu", "cpu")[number % 2])
        nodes.append(Node(operation, (last,), (Value(f"a{number}", type_),), NOWHERE))
        last = f"a{number}"
    module = Module("m", (Function("main", (Value("x", type_),), tuple(nodes), (last,)),))
    begin = process_time()
    found = plan_devices(module, three_devices())
    assert process_time() - begin < 30
    assert devices(found)["v"] == "npu"


def test_d9_ten_thousand_functions_that_call_each_other() -> None:
    type_ = TensorType((4,), DType.I8)
    clamp = Node(Identity(), ("p0",), (Value("r0", type_),), NOWHERE)
    functions = [Function("f0", (Value("p0", type_),), (clamp,), ("r0",))]
    for number in range(1, 10_000):
        call = Node(Call(f"f{number - 1}"), (f"p{number}",), (Value(f"r{number}", type_),), NOWHERE)
        functions.append(Function(f"f{number}", (Value(f"p{number}", type_),), (call,), (f"r{number}",)))
    pin = Node(OnDevice("npu"), ("r0",), (Value("pinned", type_),), NOWHERE)
    functions[0] = Function("f0", (Value("p0", type_),), (clamp, pin), ("pinned",))
    begin = process_time()
    found = devices(plan_devices(Module("m", tuple(functions)), three_devices()))
    assert process_time() - begin < 30
    assert {found[f"r{number}"] for number in range(9_999)} == {"npu"}


CHAIN = 100_000 if THOROUGH else 25_000


@pytest.mark.parametrize("every", [CHAIN, 1000, 9])
def test_d9_a_chain_of_many_operators(every: int) -> None:
    """A hundred thousand take 5 to 7 s of processor time; 60 are allowed."""
    type_, nodes, last = TensorType((4,), DType.I8), list[Node](), "x"
    for number in range(CHAIN):
        nodes.append(Node(Identity(), (last,), (Value(f"v{number}", type_),), NOWHERE))
        last = f"v{number}"
        if number % every == every - 1:
            device = ("npu", "dsp", "cpu")[number % 3]
            nodes.append(Node(OnDevice(device), (last,), (Value(f"a{number}", type_),), NOWHERE))
            last = f"a{number}"
    module = Module("m", (Function("main", (Value("x", type_),), tuple(nodes), (last,)),))
    begin = process_time()
    found = plan_devices(module, three_devices())
    assert process_time() - begin < 60 * CHAIN / 100_000
    assert all(value.type.place.device is not None for value in values_of(found.graph))


def test_d10_the_verifier_names_who_moved_a_value_and_what_is_missing() -> None:
    module = graph(f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"c = {identity('b')}", "%c")
    found = placed(module)
    text = print_module(found)
    moved = parse_module(text.replace("%a : tensor<4xi8, @npu", "%a : tensor<4xi8, @dsp"), {}, OPERATIONS)
    with pytest.raises(InternalError, match="pass 'breaking' moved 'a' from device 'npu' to 'dsp'"):
        verify(moved, Stage.PLACED, three_devices(), found, "breaking")
    without = parse_module(text.replace("identity(%a_on_cpu)", "identity(%a)"), {}, OPERATIONS)
    with pytest.raises(
        InternalError, match=r"'identity' on device 'cpu' does not reach 'a'.*device_copy is missing"
    ):
        verify(without, Stage.PLACED, three_devices())


def test_d11_names_of_copies_are_unique_and_stay() -> None:
    lines = (f"a = {identity('x')}", f"b = {on('a', 'npu')}", f"a_on_cpu = {identity('b')}", "%a_on_cpu")
    found = placed(graph(*lines))
    names = [value.name for value in values_of(found.graph)]
    assert len(set(names)) == len(names)
    assert "a_on_cpu_1" in names
    assert parse_module(print_module(found), {}, OPERATIONS) == found


def test_d3_functions_that_are_alike_are_told_apart_by_their_callers() -> None:
    """Two pass their parameters on to a third one, which cannot be one memory with both: one of them copies."""
    found = {copies_of_alike(names, order) for names in permutations("fg") for order in permutations("fg")}
    assert found in ({"near"}, {"shared"})


def copies_of_alike(names: tuple[str, ...], order: tuple[str, ...]) -> str:
    """Where that is what is passed to the one that copies, if the two have these names and this order."""
    below = f"func h(%hp : {T}) -> () {{\n}}\n"
    functions = "\n".join(
        f'func {name}(%{name}p : {T}) -> () {{\n  () = call(%{name}p) {{callee="h"}}\n}}' for name in order
    )
    pools = dict(zip(names, ("near", "shared"), strict=True))
    lines = list[str]()
    for name, pool in pools.items():
        place = f'{{device="cpu", scope="global.{pool}", fixed=false, free=false}}'
        lines += [f"%{pool} : {T} = identity(%x)", f"%{pool}.at : {T} = on_device(%{pool}) {place}"]
        lines += [f'() = call(%{pool}.at) {{callee="{name}"}}']
    body = "\n".join(["", f"func main(%x : {T}) -> (%x) {{", *lines, "}\n"])
    module = parse_module(f"module m\ninput %x : {T}\n{below}{functions}{body}", {}, OPERATIONS)
    (copy,) = copies(placed(module))
    return pools[copy.partition("p ")[0]]


def test_d3_options_put_operators_on_devices_and_draw_nothing_after_them() -> None:
    module = graph(f"a = {identity('x')}", f"b = clamp(%a) {CLAMP}", f"c = {identity('b')}", "%c")
    found = placed(module, on=(On("clamp", "npu", "far"),), io=Io.CALLER)
    places = {v.name: str(v.type.place) for v in values_of(found.graph)}
    assert places["b"] == '@npu target=three "global.far"'
    assert places["a"] == places["c"] == "@cpu target=three"
    reason = next(v.reason for v in values_of(found.graph) if v.name == "b")
    assert reason == "--on 'clamp=npu.far'"


@pytest.mark.parametrize(
    ("option", "message", "help_text"),
    [
        (On("clam", "npu"), "matches no operator", "--on 'clamp=npu'"),
        (On("CLAMP", "npu"), "matches no operator", "--on 'clamp=npu'"),
        (On("clamp", "npo"), "names the device 'npo'", "--on 'clamp=npu'"),
        (
            On("clamp", "npu", "near"),
            "which device 'npu' may not use; its pools are side, far",
            "--on 'clamp=npu.side'",
        ),
        (On("clamp", "npu", "flash"), "which is no workspace pool", None),
        (
            On("clamp", "mover"),
            "puts 'b' (clamp) on a device that cannot run it: device 'mover' has no stack, so it runs no C: only",
            "--on 'clamp=dsp'",
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(option: On, message: str, help_text: str | None) -> None:
    module = graph(f"b = clamp(%x) {CLAMP}", "%b")
    with pytest.raises(CompileError, match="BW204") as caught:
        placed(module, on=(option,), io=Io.CALLER)
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert help_text is None or diagnostic.help == help_text
    if help_text is not None:
        followed = parse_on_option(help_text.removeprefix("--on ").strip("'"))
        assert devices(placed(module, on=(followed,)))["b"] == followed.device


@pytest.mark.parametrize("fixed", ["false", "true"])
def test_d8_an_operator_on_a_device_that_runs_no_c_is_refused(fixed: str) -> None:
    """Also one that is there only because of what it is tied to: one error for each who asks."""
    lines = (f"a = {identity('x')}", f"b = clamp(%a) {CLAMP}", f"c = {on('b', 'mover', fixed=fixed)}")
    with pytest.raises(CompileError) as caught:
        placed(
            graph(*lines, f"d = {identity('c')}", f"e = {on('a', 'mover')}", f"f = {identity('e')}", "%d, %f")
        )
    found = caught.value.diagnostics
    assert {diagnostic.code for diagnostic in found} == {"BW704"}
    assert found[0].message == "'a' (identity) is on device 'mover', which cannot run it"
    assert found[0].notes[0] == "on_device puts 'a' on device 'mover'"
    assert "only copies" in found[0].notes[1]
    assert found[0].help == "put it on a device that can: dsp, npu, cpu"
    messages = [diagnostic.message.partition(" ")[0] for diagnostic in found]
    assert messages == (["'a'", "'b'"] if fixed == "false" else ["'a'", "'b'", "'d'"])


def test_d8_what_is_only_another_name_or_a_copy_may_be_where_nothing_runs() -> None:
    to = 'VirtualDevice(device="mover", target=none, scope=none)'
    lines = (
        f"a = {identity('x')}",
        f"b = device_copy(%a) {{destination={to}}}",
        "c = reshape(%b) {shape=(4,)}",
        f"d = {on('c', 'mover')}",
        f"e = {identity('d')}",
    )
    assert devices(placed(graph(*lines, "%e")))["c"] == "mover"


def test_d12_lowering_reads_the_places() -> None:
    """Operators of two devices are no one kernel, and a kernel is its device's; a copy, of the device that makes it."""
    lines = (
        f"a = clamp(%x) {CLAMP}",
        f"b = {on('a', 'dsp')}",
        f"c = clamp(%b) {CLAMP}",
        f"d = {on('c', 'cpu')}",
    )
    lent = lower_graph(placed(graph(*lines, "%d"), io=Io.WORKSPACE), three_devices())
    assert [kernel.device for kernel in lent.kernels] == ["dsp", "cpu"]
    copied = placed(graph(*(line.replace("dsp", "npu") for line in lines), "%d"), io=Io.WORKSPACE)
    kernels = lower_graph(copied, three_devices()).kernels
    assert [kernel.device for kernel in kernels] == ["dsp", "npu", "dsp", "cpu"]
