"""Requirements D5, D6 and D10 after lowering: scopes flow out of kernels, and into them; conflicts become copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.ir import Io
from bytewright.ir.module import Module
from bytewright.ir.text.modules import print_module
from bytewright.ir.verify.admit import admit
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import allocations, calls, walk_statements
from bytewright.options import Options
from bytewright.place.plan_devices import plan_devices
from bytewright.scopes.place_scopes import place_scopes
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module
from support.three_devices import three_devices
from support.two_devices import bench

LOOP = "  for i : i32 in 0 .. 8 { b[i] = i8(min(i32(a[i]) + 1, 100)) }\n"


def kernel(name: str, a: str = "", b: str = "", device: str = "cpu") -> str:
    """A kernel that adds one to what it reads, and may state where both sides must be."""
    first, second = (f', "global.{pool}"' if pool else "" for pool in (a, b))
    head = f"kernel m_{name}(a : buffer<8xi8{first}> r, b : buffer<8xi8{second}> w) on {device}"
    return f"{head} {{\n{LOOP}}}\n"


def passing(name: str, callee: str, a: str = "") -> str:
    """A kernel that shows what it is given to another one, through a view of a view."""
    scope = f', "global.{a}"' if a else ""
    view = f"view {{}} : buffer<8xi8{scope}> = &{{}}[0]"
    return (
        f"kernel m_{name}(a : buffer<8xi8{scope}> r, b : buffer<8xi8> w) on cpu {{\n"
        f"  {view.format('v', 'a')}\n  {view.format('w', 'v')}\n  call_extern m_{callee}(&w, &b)\n}}\n"
    )


def program(kernels: str, *lines: str, constants: str = "", device: str = "cpu") -> Module:
    """An entry of these lines, whose calls are `name(a, b)`."""
    written = [
        f"call_extern m_{line.replace('(', '(&').replace(', ', ', &')}" if "(" in line else line
        for line in lines
    ]
    text = "\n".join(f"  {line}" for line in written)
    ports = "module m\ninput %x : tensor<8xi8>\noutput %y : tensor<8xi8>\n"
    entry = f"entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on {device} {{\n{text}\n}}\n"
    return parse_module(f"{ports}{constants}{kernels}{entry}", {}, {})


def allocate(*names: str) -> tuple[str, ...]:
    """`t` or `t in near`."""
    split = (name.partition(" in ") for name in names)
    return tuple(
        f"allocate {n} : buffer<8xi8{f', {chr(34)}global.{s}{chr(34)}' if s else ''}>" for n, _, s in split
    )


def placed(module: Module, io: Io = Io.CALLER, mover: bool = True) -> Module:
    """The module after the second run; it verifies, computes the same, and a third run changes nothing."""
    target = three_devices(mover=mover)
    admit(module, target)
    found = place_scopes(module, target, io)
    verify(found, Stage.LOWERED, target, module, "place_scopes")
    assert place_scopes(found, target, io) is found
    x = np.arange(-4, 4, dtype=np.int8)
    before, after = (Evaluator(each).run("main", {"x": x})["y"] for each in (module, found))
    np.testing.assert_array_equal(after, before)
    return found


def scopes(module: Module, function: str = "main") -> dict[str, str]:
    """Where the definitions of a function are."""
    found = next(f for f in (*module.kernels, *module.entries) if f.name == function)
    both = (*found.buffer_parameters, *allocations(found))
    return {d.buffer.name: str(d.scope).removeprefix("global.") for d in both}


def steps(module: Module) -> list[str]:
    """Calls of the entry, in order, a copy as `source -> destination`."""
    shown: list[str] = []
    for call in calls(module.main):
        names = [argument.buffer.name for argument in call.arguments]  # type: ignore[union-attr]
        is_copy = call.callee.startswith("m_copy")
        shown.append(" -> ".join(names) if is_copy else f"{call.callee[2:]}({', '.join(names)})")
    return shown


def refusals(module: Module, io: Io = Io.CALLER, mover: bool = True) -> tuple[Diagnostic, ...]:
    target = three_devices(mover=mover)
    admit(module, target)
    with pytest.raises(CompileError) as caught:
        place_scopes(module, target, io)
    return caught.value.diagnostics


def test_d6_what_a_kernel_states_flows_out_to_what_it_is_passed() -> None:
    kernels = kernel("near", a="near", b="shared") + kernel("any")
    found = placed(
        program(kernels, *allocate("t", "u", "v"), "any(x, t)", "near(t, u)", "any(u, v)", "any(v, y)")
    )
    assert scopes(found) == {"x": "None", "y": "None", "t": "near", "u": "shared", "v": "None"}
    assert len(steps(found)) == 4


def test_d6_through_kernels_that_call_kernels_and_through_views() -> None:
    kernels = kernel("near", a="near") + passing("inner", "near") + passing("outer", "inner") + kernel("any")
    module = program(kernels.replace("allocate", "allocate"), *allocate("t"), "any(x, t)", "outer(t, y)")
    found = placed(module)
    assert scopes(found)["t"] == scopes(found, "m_outer")["a"] == scopes(found, "m_inner")["a"] == "near"
    (t,) = (a for a in allocations(found.main) if a.buffer.name == "t")
    (reason,) = t.storage.provenance
    assert [f"'a' of 'm_{name}' in" in reason for name in ("outer", "inner", "near")] == [True] * 3
    assert reason.startswith("place_scopes: 'a' of 'm_outer'")


def test_d6_to_allocations_of_kernels_and_to_both_sides_of_a_view() -> None:
    kernels = (
        kernel("any")
        + kernel("near", a="near")
        + "kernel m_own(a : buffer<8xi8> r, b : buffer<8xi8> w) on cpu {\n  allocate s : buffer<8xi8>\n"
        "  call_extern m_any(&a, &s)\n  for turn : i32 in 0 .. 2 {\n"
        "    view v : buffer<8xi8> = &a[0] if turn < 1 else &s[0]\n    call_extern m_near(&v, &b)\n  }\n}\n"
    )
    found = placed(program(kernels, *allocate("t"), "any(x, t)", "own(t, y)"))
    assert scopes(found, "m_own") == {"a": "near", "b": "None", "s": "near"}
    assert scopes(found)["t"] == "near"


def test_d6_a_callers_place_flows_into_a_kernel_and_on_to_all_that_it_calls() -> None:
    kernels = kernel("any") + passing("inner", "any") + passing("outer", "inner")
    found = placed(
        program(kernels, *allocate("t in near", "u in near"), "outer(x, t)", "any(x, u)", "outer(t, y)")
    )
    assert scopes(found, "m_outer")["a"] == "None"  # the application's memory the first time
    kernels = kernel("any") + kernel("first") + passing("inner", "any") + passing("outer", "inner")
    found = placed(program(kernels, *allocate("t in near"), "first(x, t)", "outer(t, y)", "inner(t, y)"))
    assert [scopes(found, f"m_{name}")["a"] for name in ("outer", "inner", "any")] == ["near"] * 3
    views = [s for s in walk_statements(found.kernels[-1].body) if hasattr(s, "source")]
    assert len(views) == 2
    assert print_module(found).count('view v : buffer<8xi8, "global.near"') == 2
    assert scopes(found, "m_first") == {"a": "None", "b": "near"}


def test_d6_a_kernel_that_is_passed_different_places_stays_open_and_is_one_function() -> None:
    lines = (*allocate("t in near", "u in shared"), "any(x, t)", "two(t, u)", "two(u, y)")
    found = placed(program(kernel("any") + kernel("two"), *lines))
    assert scopes(found, "m_two") == {"a": "None", "b": "None"}
    assert [k.name for k in found.kernels] == ["m_any", "m_two"]


def test_d6_two_calls_that_want_one_value_in_different_places_get_a_copy() -> None:
    """One for all that follow, right before the first of them."""
    kernels = kernel("any") + kernel("near", a="near") + kernel("shared", a="shared")
    lines = (
        *allocate("t", "u"),
        "any(x, t)",
        "near(t, u)",
        "any(u, y)",
        "shared(t, u)",
        "shared(t, y)",
        "near(t, y)",
    )
    found = placed(program(kernels, *lines))
    assert scopes(found)["t"] == "near"
    assert scopes(found)["t_in_shared"] == "shared"
    assert steps(found)[2:] == [
        "any(u, y)", "t -> t_in_shared", "shared(t_in_shared, u)", "shared(t_in_shared, y)", "near(t, y)",
    ]  # fmt: skip
    assert {k.device for k in found.kernels} == {"cpu"}


def test_d6_what_is_written_again_is_copied_again() -> None:
    kernels = kernel("any") + kernel("near", a="near") + kernel("shared", a="shared")
    lines = (*allocate("t", "u"), "any(x, t)", "near(t, u)", "shared(t, u)", "any(u, t)", "shared(t, y)")
    found = placed(program(kernels, *lines))
    assert steps(found).count("t -> t_in_shared") == 2
    assert scopes(found)["t_in_shared"] == "shared"


def test_d6_results_are_copied_as_arguments_are() -> None:
    """And what was written elsewhere serves those that read it there."""
    kernels = kernel("near", b="near") + kernel("shared", a="shared", b="shared")
    found = placed(program(kernels, *allocate("t"), "near(x, t)", "shared(t, y)"))
    assert steps(found) == [
        "near(x, t)",
        "t -> t_in_shared",
        "shared(t_in_shared, y_in_shared)",
        "y_in_shared -> y",
    ]
    chain = (*allocate("t"), "near(x, t)", "near(x, t)", "fill(t)", "shared(t, y)", "near(t, y)")
    fill = 'kernel m_fill(b : buffer<8xi8, "global.shared"> w) on cpu {\n  for i : i32 in 0 .. 8 { b[i] = 7 }\n}\n'
    found = placed(program(kernels + fill.replace("7 }", "7:i8 }"), *chain))
    assert steps(found)[2:5] == ["fill(t_in_shared)", "t_in_shared -> t", "shared(t_in_shared, y_in_shared)"]


def test_d6_what_no_turn_of_a_loop_changes_is_copied_before_it() -> None:
    kernels = kernel("any") + kernel("near", a="near") + kernel("shared", a="shared")
    loop = ("for turn : i32 in 0 .. 3 {", "shared(t, u)", "near(t, u)", "}", "shared(t, y)")
    found = placed(program(kernels, *allocate("t", "u"), "any(x, t)", "near(t, u)", *loop))
    assert steps(found).count("t -> t_in_shared") == 1
    body = next(s for s in walk_statements(found.main.body) if hasattr(s, "variable") and hasattr(s, "body"))
    assert "m_copy" not in [call.callee for call in calls(replace(found.main, body=body.body))]  # type: ignore[union-attr]
    changing = ("for turn : i32 in 0 .. 3 {", "shared(t, u)", "near(u, t)", "}", "near(t, y)")
    found = placed(program(kernels, *allocate("t", "u"), "any(x, t)", *changing))
    assert scopes(found)["t"] == "shared"
    assert scopes(found)["u"] == "near"


def test_d6_what_both_ways_of_a_branch_need_is_copied_before_it() -> None:
    kernels = kernel("any") + kernel("near", a="near") + kernel("shared", a="shared")
    head = (
        *allocate("t", "u"),
        "any(x, t)",
        "near(t, u)",
        "for turn : i32 in 0 .. 3 {",
        "any(x, t)",
        "if turn < 1 {",
    )
    both = placed(program(kernels, *head, "shared(t, y)", "} else {", "shared(t, u)", "}", "}", "near(u, y)"))
    assert steps(both).count("t -> t_in_shared") == 1
    assert steps(both).index("t -> t_in_shared") == steps(both).index("shared(t_in_shared, y)") - 1
    one = placed(program(kernels, *head, "shared(t, y)", "} else {", "near(t, u)", "}", "}", "near(u, y)"))
    text = print_module(one)
    assert text.index("if turn < 1") < text.index("m_copy(&t, &t_in_shared)")


def test_d6_a_way_that_changes_the_value_ends_its_copy() -> None:
    kernels = kernel("any") + kernel("near", a="near") + kernel("shared", a="shared")
    lines = (
        "near(t, u)",
        "shared(t, y)",
        "for turn : i32 in 0 .. 1 {",
        "if turn < 1 {",
        "any(u, t)",
        "}",
        "}",
    )
    found = placed(program(kernels, *allocate("t", "u"), "any(x, t)", *lines, "shared(t, y)"))
    assert steps(found).count("t -> t_in_shared") == 2


def test_d6_what_another_turn_reads_is_brought_back() -> None:
    kernels = kernel("any") + kernel("near", b="near") + kernel("put", b="shared")
    begin = ("allocate t : buffer<16xi8>", "for at : i32 in 0 .. 2 {", "near(x, t[at * 8])", "}")
    loop = ("for turn : i32 in 0 .. 2 {", "any(t[turn * 8], u)", "put(u, t[8])", "put(x, t[turn * 8])", "}")
    found = placed(program(kernels, *allocate("u"), *begin, *loop, "any(u, y)"))
    assert len([step for step in steps(found) if step.endswith("-> t")]) == 2


def test_d6_who_writes_a_value_says_first_where_it_is() -> None:
    kernels = kernel("any") + kernel("near", a="near") + kernel("put", b="shared")
    found = placed(program(kernels, *allocate("t", "u"), "any(x, t)", "near(t, u)", "put(u, t)", "any(t, y)"))
    assert scopes(found)["t"] == "shared"
    assert [step for step in steps(found) if "->" in step] == ["t -> t_in_near"]


def test_d6_what_a_call_reads_and_changes_is_not_copied_for_one_of_both() -> None:
    kernels = kernel("near", b="near") + kernel("shared", a="shared") + kernel("any")
    (diagnostic,) = refusals(program(kernels, *allocate("t"), "near(x, t)", "shared(t, t)", "any(t, y)"))
    assert (diagnostic.code, "the same memory" in diagnostic.message) == ("BW705", True)
    assert any("'b' of 'm_near' in" in note for note in diagnostic.notes)


def test_d6_the_applications_memory_is_copied_and_planned_inputs_are_narrowed() -> None:
    kernels = kernel("near", a="near", b="near")
    module = program(kernels, "near(x, y)")
    caller, workspace = placed(module), placed(module, Io.WORKSPACE)
    assert steps(caller) == ["x -> x_in_near", "near(x_in_near, y_in_near)", "y_in_near -> y"]
    assert scopes(caller) == {"x": "None", "y": "None", "x_in_near": "near", "y_in_near": "near"}
    assert steps(workspace) == ["near(x, y)"]
    assert scopes(workspace) == {"x": "near", "y": "near"}


def test_d6_a_constant_goes_to_its_pool_and_is_copied_to_the_workspace() -> None:
    constants = "constant k : buffer<8xi8> = data<8xi8> [1, 2, 3, 4, 5, 6, 7, 8]\n"
    kernels = kernel("near", a="near") + kernel("flash", a="flash") + kernel("any")
    lines = (*allocate("t"), "flash(k, t)", "near(k, t)", "any(t, y)")
    found = placed(program(kernels, *lines, constants=constants))
    assert str(found.constant_buffers[0].scope) == "global.flash"
    assert "'a' of 'm_flash'" in found.constant_buffers[0].storage.provenance[0]
    assert steps(found) == ["flash(k, t)", "k -> k_in_near", "near(k_in_near, t)", "any(t, y)"]


ALIASED = [
    ("mix(t, t, y)", "", "'t'"),
    ("both(t, t, y)", "kernel m_both(a : buffer<8xi8> r, c : buffer<8xi8> r, b : buffer<8xi8> w) on cpu {\n"
     "  call_extern m_mix(&a, &c, &b)\n}\n", "'t'"),
    ("both(t, y)", "kernel m_both(a : buffer<8xi8> r, b : buffer<8xi8> w) on cpu {\n"
     "  view v : buffer<8xi8> = &a[0]\n  call_extern m_mix(&a, &v, &b)\n}\n", "'v'"),
]  # fmt: skip
MIX = (
    'kernel m_mix(near : buffer<8xi8, "global.near"> r, far : buffer<8xi8, "global.shared"> r, b : buffer<8xi8> w) '
    "on cpu {\n  for i : i32 in 0 .. 8 { b[i] = near[i] + far[i] - near[i] }\n}\n"
)


@pytest.mark.parametrize(("call", "kernels", "name"), ALIASED)
def test_d6_one_memory_for_parameters_in_different_places_is_an_error(
    call: str, kernels: str, name: str
) -> None:
    mix = MIX.replace("near[i] + far[i] - near[i]", "i8(i32(near[i]) + i32(far[i]) - i32(near[i]))")
    found = refusals(program(kernel("any") + mix + kernels, *allocate("t"), "any(x, t)", call))
    assert [diagnostic.code for diagnostic in found] == ["BW705"]
    (diagnostic,) = found
    assert f"given the same memory, of {name}" in diagnostic.message
    both = [
        note
        for note in diagnostic.notes
        if "asks for global.near" in note or "asks for global.shared" in note
    ]
    assert len(both) >= 2
    assert any("'near' of 'm_mix' in" in note for note in both)
    assert any("'far' of 'm_mix' in" in note for note in both)


def test_d6_parts_of_one_buffer_that_do_not_overlap_are_no_aliases() -> None:
    mix = MIX.replace("near[i] + far[i] - near[i]", "i8(i32(near[i]) + i32(far[i]) - i32(near[i]))")
    half = mix.replace("near : buffer<8xi8", "near : buffer<4xi8").replace(
        "far : buffer<8xi8", "far : buffer<4xi8"
    )
    half = (
        half.replace("[i]) +", "[i % 4]) +")
        .replace("far[i]", "far[i % 4]")
        .replace("near[i]))", "near[i % 4]))")
    )
    text = print_module(program(kernel("any") + half, *allocate("t"), "any(x, t)", "mix(t, t, y)"))
    apart = parse_module(text.replace("m_mix(&t, &t,", "m_mix(&t[0], &t[4],"), {}, {})
    assert steps(placed(apart)) == ["any(x, t)", "t -> t_in_shared", "mix(t, t_in_shared, y)"]
    assert [
        d.code for d in refusals(parse_module(text.replace("m_mix(&t, &t,", "m_mix(&t[0], &t[3],"), {}, {}))
    ] == ["BW705"]


def test_d6_a_copy_is_made_by_a_device_that_reaches_both_places() -> None:
    """The memory of another device alone: the one that copies for others carries it out; without it, each a part."""
    kernels = kernel("near", b="near") + kernel("far", a="far", b="far", device="npu")
    kernels += kernel("last")
    module = program(kernels, *allocate("t", "u in near"), "near(x, t)", "far(t, u)", "last(u, y)")
    found = placed(module)
    made = {k.name: (k.device, k.job and k.job.value) for k in found.kernels if k.name.startswith("m_copy")}
    assert set(made.values()) == {("mover", "copy")}
    assert steps(found)[1:3] == ["t -> t_in_far", "far(t_in_far, u_in_far)"]
    alone = placed(module, mover=False)
    hops = ["t -> t_through_shared", "t_through_shared -> t_through_side", "t_through_side -> t_in_far"]
    assert steps(alone)[1:5] == [*hops, "far(t_in_far, u_in_far)"]
    made = {k.name: (k.device, k.job and k.job.value) for k in alone.kernels if k.name.startswith("m_copy")}
    assert {device for device, _ in made.values()} == {"cpu", "dsp", "npu"}


@pytest.mark.parametrize(
    ("kernels", "lines", "message"),
    [
        (
            kernel("flash", a="flash"),
            (*allocate("t in near"), "any(x, t)", "flash(t, y)"),
            "nothing is copied into 'flash', a parameters pool",
        ),
        (
            kernel("stack", a="stack"),
            ("stack(x, y)",),
            "the entry has nothing on a stack",
        ),
    ],
)  # fmt: skip
def test_d6_a_place_that_no_copy_can_have_is_refused(
    kernels: str, lines: tuple[str, ...], message: str
) -> None:
    (diagnostic,) = refusals(program(kernel("any") + kernels, *lines))
    assert (diagnostic.code, message in diagnostic.message) == ("BW705", True)


def test_d6_what_is_not_all_written_is_not_copied() -> None:
    """A kernel may read a part of what it is given; a copy reads all of it."""
    half = kernel("half", b="near").replace("0 .. 8", "0 .. 4") + kernel("read", a="shared").replace(
        "i32(a[i])", "i32(a[i % 4])"
    )
    (diagnostic,) = refusals(program(half, *allocate("t"), "half(x, t)", "read(t, y)"))
    assert diagnostic.code == "BW705"
    assert "element 4 of 8 and 3 more" in diagnostic.message
    wrote = kernel("half", b="shared").replace("0 .. 8", "0 .. 4") + kernel("any") + kernel("near", b="near")
    found = placed(program(wrote, *allocate("t"), "near(x, t)", "half(x, t)", "any(t, y)"))
    assert steps(found)[1:4] == ["t -> t_in_shared", "half(x, t_in_shared)", "t_in_shared -> t"]


def test_d6_copies_inside_of_kernels_are_their_scratch() -> None:
    kernels = (
        kernel("near", a="near")
        + kernel("shared", a="shared")
        + "kernel m_inner(a : buffer<8xi8> r, b : buffer<8xi8> w) on cpu {\n"
        "  call_extern m_near(&a, &b)\n  call_extern m_shared(&a, &b)\n}\n"
    )
    found = placed(program(kernels, *allocate("t"), "near(x, t)", "inner(t, y)"))
    assert scopes(found, "m_inner") == {"a": "near", "b": "None", "a_in_shared": "shared"}
    assert scopes(found)["t"] == "near"


def test_d6_explain_has_the_chain_from_the_kernel_to_the_byte() -> None:
    kernels = kernel("near", a="near") + passing("outer", "near") + kernel("any")
    text = "\n".join(["any(x, t)", "outer(t, y)"])
    module = program(kernels, *allocate("t"), *text.splitlines())
    target = bench()
    compiled = compile_model(module, target)
    buffer = compiled.plan.buffers["t"]
    assert (buffer.place.name, buffer.scope) == ("near", "global.near")
    assert "place_scopes: 'a' of 'm_outer' in" in buffer.reason
    assert "since 'a' of 'm_near' in" in buffer.reason


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_d5_placing_a_planned_module_changes_nothing(io: Io) -> None:
    kernels = (
        kernel("near", a="near") + kernel("shared", a="shared") + passing("outer", "shared") + kernel("any")
    )
    lines = (*allocate("t", "u"), "any(x, t)", "near(t, u)", "outer(t, u)", "any(u, y)")
    module, target = program(kernels, *lines), bench()
    planned = plan_model(module, target, Options(io=io)).module
    assert any(call.callee.startswith("m_copy") for call in calls(planned.main))
    assert place_scopes(planned, target, io) is planned
    assert plan_devices(planned, target, io=io) is planned
    lowered = place_scopes(module, target, io)
    assert plan_devices(lowered, target, io=io) is lowered


def test_d5_no_kernel_changes_its_device() -> None:
    kernels = kernel("near", b="near") + kernel("far", a="far", b="far", device="npu")
    module = program(kernels, *allocate("t", "u"), "near(x, t)", "far(t, u)", "near(u, y)")
    before = {k.name: k.device for k in module.kernels}
    after = {k.name: k.device for k in placed(module).kernels}
    assert before.items() <= after.items()


def test_d10_the_verifier_names_a_pass_that_moved_a_kernel() -> None:
    module = placed(program(kernel("any"), "any(x, y)"))
    moved = replace(module, kernels=(replace(module.kernels[0], device="npu"),))
    with pytest.raises(InternalError, match="pass 'breaking' moved 'm_any' from device 'cpu' to 'npu'"):
        verify(moved, Stage.LOWERED, three_devices(), module, "breaking")


def test_d6_a_scope_that_was_left_behind_is_named_by_the_verifier() -> None:
    module = program(kernel("near", a="near"), *allocate("t"), "near(x, t)", "near(t, y)")
    with pytest.raises(
        InternalError, match="'t' is passed to 'a' of 'm_near': scope 'global' does not satisfy"
    ):
        verify(module, Stage.LOWERED, three_devices())
    verify(module, Stage.OPEN, three_devices())
