"""Touch: calls, nested calls, views and opaque calls, with the reason for each device."""

from __future__ import annotations

from dataclasses import replace

from bytewright.ir.analyses.touch import (
    Touch,
    Touches,
    TouchTable,
    constant_touches,
    reasons_beside,
    touch_table,
    united,
)
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, Var, const
from bytewright.ir.prim import Access, BufferParameter, Call, PrimFunc, ScalarParameter, Seq, Statement
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType
from bytewright.target.load import load_text
from bytewright.target.model import Target
from support.hand_built import add_kernel, chain, constant, module_of, tensor

SIZE = 8
THREE = """
name = "three"
[memory.ram]
size = "64KiB"
[device.cpu]
isa = "cortex-m55"
reach = ["ram"]
stack = "ram"
[device.npu]
isa = "npu"
reach = ["ram"]
[device.dma]
isa = "dma"
reach = ["ram"]
[[workspace]]
name = "ram"
memory = "ram"
"""
EVERY = "opaque call 'foo' touches it and declares no devices: every device of the target (cpu, npu, dma)"


def target() -> Target:
    return load_text(THREE, "three.toml")


def table_of(*kernels: PrimFunc) -> TouchTable:
    table = TouchTable(target())
    for kernel in kernels:
        table.add(kernel)
    return table


def devices(touches: Touches) -> list[str]:
    return [touch.device for touch in touches]


def caller(
    name: str,
    callee: str,
    *,
    device: str = "cpu",
    touched_by: tuple[tuple[str, ...], ...] | None = None,
    through_views: int = 0,
) -> PrimFunc:
    """Passes its first parameter on, under another name if there are views, and leaves its second one alone."""
    first, second = (Buffer(each, (SIZE,), DType.I8, 1) for each in ("first", "second"))
    body = BodyBuilder(("first", "second"))
    passed = first
    for index in range(through_views):
        passed = body.view(f"v{index}", region(passed), DType.I8, SIZE)
    body.call(callee, region(passed), touched_by=touched_by)
    parameters = (
        BufferParameter(first, Access.READ, scope=GLOBAL),
        BufferParameter(second, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc(name, parameters, body.finish(), device=device)


def leaf(name: str, device: str) -> PrimFunc:
    return PrimFunc(
        name,
        (BufferParameter(Buffer("p", (SIZE,), DType.I8, 1), Access.READ, scope=GLOBAL),),
        Seq(()),
        device=device,
    )


def test_a_kernel_touches_all_that_it_is_given_on_its_device() -> None:
    table = table_of(leaf("k", "npu"))
    call = Call("k", (region(tensor("t", SIZE)),))
    assert table.of_argument(call, 0) == (Touch("npu", "kernel 'k' of device 'npu' touches it"),)


def test_scalars_are_not_touched() -> None:
    kernel = replace(
        leaf("k", "npu"), parameters=(ScalarParameter(Var("n", DType.I32)), *leaf("k", "npu").parameters)
    )
    table = table_of(kernel)
    call = Call("k", (const(1), region(tensor("t", SIZE))))
    assert [devices(table.of_argument(call, index)) for index in (0, 1)] == [[], ["npu"]]


def test_nested_calls_count_for_the_argument_that_they_pass_on_alone() -> None:
    table = table_of(leaf("inner", "npu"), caller("middle", "inner"), caller("outer", "middle"))
    call = Call("outer", (region(tensor("t", SIZE)), region(tensor("u", SIZE))))
    assert devices(table.of_argument(call, 1)) == ["cpu"]
    assert table.of_argument(call, 0) == (
        Touch("cpu", "kernel 'outer' of device 'cpu' touches it"),
        Touch("npu", "in kernel 'outer', in kernel 'middle', kernel 'inner' of device 'npu' touches it"),
    )


def test_views_of_views_are_looked_through() -> None:
    for num_views in (1, 3):
        kernel = caller("k", "inner", through_views=num_views)
        table = table_of(leaf("inner", "npu"), kernel)
        assert devices(table.of_argument(Call("k", (region(tensor("t", SIZE)),)), 0)) == ["cpu", "npu"]
        shown = table.of_buffers(kernel)
        assert sorted(shown) == ["first", *(f"v{index}" for index in range(num_views))]
        assert {tuple(devices(touches)) for touches in shown.values()} == {("npu",)}


def test_a_view_with_a_condition_shows_either() -> None:
    first, second = (Buffer(each, (SIZE,), DType.I8, 1) for each in ("first", "second"))
    body = BodyBuilder(("first", "second", "n"))
    view = body.view("v", region(first), DType.I8, SIZE, Var("n", DType.I32) < 2, region(second))
    body.call("inner", region(view))
    parameters = (
        BufferParameter(first, Access.READ, scope=GLOBAL),
        BufferParameter(second, Access.READ, scope=GLOBAL),
    )
    kernel = PrimFunc("k", (*parameters, ScalarParameter(Var("n", DType.I32))), body.finish())
    found = table_of(leaf("inner", "npu")).of_buffers(kernel)
    assert {name: devices(touches) for name, touches in found.items()} == {
        "v": ["npu"],
        "first": ["npu"],
        "second": ["npu"],
    }


def test_an_opaque_call_touches_as_it_declares_and_else_from_everywhere() -> None:
    table = table_of()
    arguments = (region(tensor("t", SIZE)), region(tensor("u", SIZE)))
    declared = Call("foo", arguments, touched_by=(("npu", "dma"), ()))
    assert devices(table.of_argument(declared, 0)) == ["npu", "dma"]
    assert {t.reason for t in table.of_argument(declared, 0)} == {
        "opaque call 'foo' declares that it is touched by npu, dma"
    }
    assert table.of_argument(declared, 1) == ()
    silent = table.of_argument(Call("foo", arguments), 1)
    assert silent == tuple(Touch(device, EVERY) for device in ("cpu", "npu", "dma"))


def test_an_opaque_call_inside_a_kernel_counts_for_the_kernels_caller() -> None:
    table = table_of(caller("k", "foo"))
    touches = table.of_argument(Call("k", (region(tensor("t", SIZE)),)), 0)
    assert reasons_beside("cpu", touches) == (f"in kernel 'k', {EVERY}",)


def test_the_first_reason_is_kept() -> None:
    first, second, third = Touch("cpu", "a"), Touch("cpu", "b"), Touch("npu", "c")
    assert united((first,), (second, third)) == (first, third)


def test_constants_are_touched_where_they_are_passed_and_where_a_kernel_names_them() -> None:
    passed, named, unread = (constant(name, range(SIZE)) for name in ("passed", "named", "unread"))
    names_it = BodyBuilder(("source", "result"))
    source, result = (Buffer(each, (SIZE,), DType.I8, 1) for each in ("source", "result"))
    with names_it.for_("i", 0, SIZE) as i:
        names_it.store(result, i, load(named.buffer, i))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    kernels = (
        replace(add_kernel("adds", SIZE), device="npu"),
        PrimFunc("names_it", parameters, names_it.finish(), device="dma"),
    )
    first, last, between = tensor("x", SIZE), tensor("y", SIZE), tensor("t", SIZE)
    body = BodyBuilder(("x", "y"))
    body.allocate(between)
    body.call("adds", region(first), region(passed.buffer), region(between))
    body.call("names_it", region(between), region(last))
    module = module_of("m", kernels, body.finish(), first, last, (passed, named, unread))
    found = constant_touches(module, target())
    assert {name: devices(touches) for name, touches in found.items()} == {
        "passed": ["npu"],
        "named": ["dma"],
        "unread": [],
    }


def test_the_table_of_a_module_holds_all_kernels() -> None:
    kernels = [leaf("a", "cpu"), leaf("b", "npu")]
    assert list(touch_table(chain("m", kernels, SIZE), target()).parameters) == ["a", "b"]


def test_calls_in_loops_and_branches_count() -> None:
    kernel = caller("k", "inner")

    def wrap(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Call):
            return (statement,)
        body = BodyBuilder()
        with body.for_("i", 0, 2) as i, body.if_(i < 1):
            body.emit(statement)
        return body.finish().statements

    nested = replace(kernel, body=rewrite_sequence(kernel.body, Rewriting(statement=wrap)))
    assert devices(table_of(leaf("inner", "npu")).of_buffers(nested)["first"]) == ["npu"]
