"""Requirement S15: what other devices touch, by whatever call, goes where all of them reach, and never to a stack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import CompileError
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, Allocate, BufferParameter, PrimFunc
from bytewright.ir.scope import GLOBAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.types import DType
from bytewright.ir.walk import walk_statements
from bytewright.options import Pin
from bytewright.record.plan_file import document_of, plan_of
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.pin_buffers import pin_buffers
from bytewright.storage.place_io import place_io
from bytewright.target import Target, load_text
from support.hand_built import (
    WHERE,
    add_kernel,
    constant,
    files_of,
    module_of,
    planned,
    reverse_kernel,
    stored,
    tensor,
)
from support.parsing import parse_module
from support.views import explanation_lines

SIZE = 32
# The CPU would put everything on its stack or near it; the NPU reaches neither, and reads constants from one flash.
TARGET = """
name = "pair"
default-device = "cpu"
[memory.near]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[memory.common]
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m55"
reach = ["near", "shared", "flash", "common"]
stack = "near"
max-stack-size = "8KiB"
max-stack-alloca-size = "unlimited"
[device.npu]
isa = "npu"
reach = ["shared", "common"]
[[workspace]]
name = "near"
memory = "near"
size = "32KiB"
[[workspace]]
name = "shared"
memory = "shared"
[[parameters]]
name = "flash"
memory = "flash"
[[parameters]]
name = "common"
memory = "common"
"""
EVERY = "opaque call 'driver' touches it and declares no devices: every device of the target (cpu, npu)"


def target() -> Target:
    return load_text(TARGET, "pair.toml")


def allocations(module: Module) -> dict[str, Allocate]:
    """Those of the entry by name, those of kernels as `kernel/name`."""
    found = {s.buffer.name: s for s in walk_statements(module.main.body) if isinstance(s, Allocate)}
    for kernel in module.kernels:
        for statement in walk_statements(kernel.body):
            if isinstance(statement, Allocate):
                found[f"{kernel.name}/{statement.buffer.name}"] = statement
    return found


def places(module: Module) -> dict[str, tuple[str, ...]]:
    """The pools that remain for each allocation, or the stack."""
    found: dict[str, tuple[str, ...]] = {}
    for name, allocation in allocations(module).items():
        pools = allocation.storage.candidates
        found[name] = ("stack",) if allocation.scope == STACK else pools if isinstance(pools, tuple) else ()
    return found


def handing(
    name: str,
    callee: str,
    *,
    touched_by: tuple[tuple[str, ...], ...] | None = None,
    scope: Scope | None = GLOBAL,
    view: bool = False,
) -> PrimFunc:
    """Copies its input to scratch, which the callee makes the result from."""
    source, result = (Buffer(each, (SIZE,), DType.I8, 1) for each in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    handed = body.allocate(Buffer("handed", (SIZE,), DType.I8, 1), Storage(scope))
    with body.for_("i", 0, SIZE) as i:
        body.store(handed, i, load(source, i))
    passed = body.view("seen", region(handed), DType.I8, SIZE) if view else handed
    body.call(callee, region(passed), region(result), touched_by=touched_by, where=WHERE)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc(name, parameters, body.finish(), where=WHERE)


def between_cpu(*kernels: PrimFunc) -> Module:
    """The last kernel, with a step of the CPU before and after it, so that inputs and outputs are the CPU's alone."""
    own = reverse_kernel("m_own", SIZE, num_scratch=0)
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    body = BodyBuilder(("x", "y"))
    a, b = (body.allocate(tensor(name, SIZE), Storage(WORKSPACE)) for name in ("a", "b"))
    for callee, source, result in (("m_own", first, a), (kernels[-1].name, a, b), ("m_own", b, last)):
        body.call(callee, region(source), region(result), operators=(f"0 ({callee})",), where=WHERE)
    return module_of("m", [own, *kernels], body.finish(), first, last)


def opaque_entry(touched_by: tuple[tuple[str, ...], ...] | None) -> Module:
    """The same, with an opaque call of the entry in the middle."""
    module = between_cpu(reverse_kernel("driver", SIZE, num_scratch=0))
    body = BodyBuilder(("x", "y"))
    for statement in module.main.body.statements:
        match statement:
            case Allocate():
                body.emit(statement)
            case _:
                is_driver = getattr(statement, "callee", None) == "driver"
                body.emit(replace(statement, touched_by=touched_by) if is_driver else statement)
    kernels = tuple(kernel for kernel in module.kernels if kernel.name != "driver")
    return replace(module, kernels=kernels, entries=(replace(module.main, body=body.finish()),))


@pytest.mark.parametrize(
    ("touched_by", "a", "b"),
    [
        (None, ("shared",), ("shared",)),
        ((("npu",), ("npu",)), ("shared",), ("shared",)),
        ((("npu",), ("cpu",)), ("shared",), ("near", "shared")),
        ((("cpu",), ("cpu", "npu")), ("near", "shared"), ("shared",)),
        ((("cpu",), ()), ("near", "shared"), ("near", "shared")),
    ],
)
def test_s15_opaque_calls_of_the_entry_touch_what_they_declare_or_everything(
    touched_by: tuple[tuple[str, ...], ...] | None, a: tuple[str, ...], b: tuple[str, ...]
) -> None:
    assert places(stored(opaque_entry(touched_by), target())) == {"a": a, "b": b}


def test_s15_the_narrowing_and_its_reason_stand_in_the_ir_before_storage_is_decided() -> None:
    """They are printed and read back, and a scope says which pool is left."""
    module = stored(opaque_entry(None), target())
    for name in ("a", "b"):
        allocation = allocations(module)[name]
        assert allocation.scope == pool_scope("shared")
        assert allocation.storage.provenance == (
            f"attach_candidates: {EVERY}",
            "attach_candidates: global.workspace, touched by cpu, npu: {shared}",
        )
    assert parse_module(print_module(module), module_data(module), {}) == module
    declared = stored(opaque_entry((("npu",), ("cpu",))), target())
    assert (
        "opaque call 'driver' declares that it is touched by npu"
        in allocations(declared)["a"].storage.provenance[0]
    )
    assert all("opaque" not in line for line in allocations(declared)["b"].storage.provenance)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize(
    ("touched_by", "expected"),
    [
        (None, ("shared",)),
        ((("npu",), ("cpu",)), ("shared",)),
        ((("cpu",), ("npu",)), ("stack",)),
        ((("cpu",), ("cpu",)), ("stack",)),
    ],
)
def test_s15_scratch_that_began_as_global_leaves_the_stack_for_an_opaque_call(
    touched_by: tuple[tuple[str, ...], ...] | None, expected: tuple[str, ...], view: bool
) -> None:
    """The stack has the room, and takes it where the CPU alone touches it, or the other argument is the shared one."""
    module = stored(between_cpu(handing("hands", "driver", touched_by=touched_by, view=view)), target())
    found = places(module)
    assert found["hands/handed" if expected == ("stack",) else "b/handed"] == expected
    assert ("hands/handed" in found) == (expected == ("stack",))
    if touched_by is None:
        reasons = allocations(module)["b/handed"].storage.provenance
        assert reasons[0] == f"place_scratch: {EVERY}, and device 'npu' reaches no stack of 'cpu'"
        assert f"attach_candidates: in kernel 'hands', {EVERY}" in reasons
    # The result is passed on too: what the entry holds for it goes where the callee's devices reach.
    assert found["b"] == (("shared",) if touched_by is None or "npu" in touched_by[1] else ("near", "shared"))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("view", [False, True])
def test_s15_kernels_of_another_device_count_however_deep_they_are_called(depth: int, view: bool) -> None:
    kernels = [replace(reverse_kernel("k0", SIZE, num_scratch=0), device="npu")]
    for level in range(depth):
        kernels.append(handing(f"k{level + 1}", f"k{level}", view=view))
    module = stored(between_cpu(*kernels), target())
    found = places(module)
    # Each level writes its result through the one below, and the last hands its scratch to the NPU.
    assert found["b"] == ("shared",)
    assert found["a"] == ("near", "shared")
    handed = {name: pools for name, pools in found.items() if "handed" in name}
    assert list(handed.values()).count(("shared",)) == 1
    assert list(handed.values()).count(("stack",)) == depth - 1
    chain_of_calls = "".join(f"in kernel 'k{level}', " for level in range(depth, 0, -1))
    expected = f"attach_candidates: {chain_of_calls}kernel 'k0' of device 'npu' touches it"
    assert expected in allocations(module)["b"].storage.provenance


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE])
def test_s15_no_scope_but_the_stacks_own_brings_shared_scratch_to_a_stack(scope: Scope | None) -> None:
    module = stored(between_cpu(handing("hands", "driver", scope=scope)), target())
    assert places(module)["b/handed"] == ("shared",)
    assert STACK not in {allocation.scope for allocation in allocations(module).values()}
    with pytest.raises(CompileError, match="BW302") as caught:
        stored(between_cpu(handing("hands", "driver", scope=STACK)), target())
    assert EVERY in str(caught.value)


def test_s15_a_pool_that_one_of_the_devices_does_not_reach_is_refused_with_the_reason() -> None:
    module = between_cpu(handing("hands", "driver", scope=pool_scope("near")))
    with pytest.raises(CompileError, match="BW301") as caught:
        stored(module, target())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "'b/handed' cannot be placed in any workspace pool"
    assert diagnostic.notes == (
        "near  is in memory 'near', which device 'npu' does not reach",
        "shared  is not in its scope 'global.near'",
        f"in kernel 'hands', {EVERY}",
        "'npu' reaches: shared, common",
    )


@pytest.mark.parametrize("touched_by", [(("npu",), ("cpu",)), (("cpu",), ("npu",)), (("cpu",), ("cpu",))])
def test_s15_inputs_and_outputs_of_the_caller_keep_to_what_all_devices_reach(
    touched_by: tuple[tuple[str, ...], ...],
) -> None:
    """They have no pools; where no memory of the application's is left, it is refused."""
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    body = BodyBuilder(("x", "y"))
    body.call("driver", region(first), region(last), touched_by=touched_by, where=WHERE)
    module = module_of("m", [], body.finish(), first, last)
    assert attach_candidates(module, target()) == module
    own = TARGET.replace('reach = ["shared", "common"]', 'reach = ["own"]')
    apart = load_text(own.replace("[device.cpu]", '[memory.own]\nsize = "64KiB"\n[device.cpu]'), "pair.toml")
    if touched_by == (("cpu",), ("cpu",)):
        assert attach_candidates(module, apart) == module
    else:
        side, name = ("input", "x") if touched_by[0] == ("npu",) else ("output", "y")
        with pytest.raises(CompileError, match="BW301") as caught:
            attach_candidates(module, apart)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.message == (
            f"the application can have {side} '{name}' in no memory that can be written and that 'cpu' and 'npu' reach"
        )
        assert diagnostic.notes[-1] == "'npu' reaches: own"
    inside = places(attach_candidates(place_io(module), target()))
    assert inside == {
        name: ("shared",) if devices == ("npu",) else ("near", "shared")
        for name, devices in zip(("x", "y"), touched_by, strict=True)
    }


def with_constants(devices: tuple[str, ...]) -> Module:
    """One kernel and one constant a device, between steps of the CPU."""
    constants = [constant(f"w_{device}", range(SIZE)) for device in devices]
    kernels = [replace(add_kernel(f"m_adds_{device}", SIZE), device=device) for device in devices]
    own = reverse_kernel("m_own", SIZE, num_scratch=0)
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    body = BodyBuilder(("x", "y"))
    before = body.allocate(tensor("begun", SIZE), Storage(WORKSPACE))
    body.call("m_own", region(first), region(before), operators=("0 (REVERSE)",), where=WHERE)
    for index, (kernel, item) in enumerate(zip(kernels, constants, strict=True)):
        after = body.allocate(tensor(f"t{index}", SIZE), Storage(WORKSPACE))
        operators = (f"{index + 1} (ADD)",)
        body.call(
            kernel.name, region(before), region(item.buffer), region(after), operators=operators, where=WHERE
        )
        before = after
    body.call("m_own", region(before), region(last), operators=("9 (REVERSE)",), where=WHERE)
    return module_of("m", [own, *kernels], body.finish(), first, last, constants)


def test_s15_constants_go_to_pools_that_the_devices_that_read_them_reach() -> None:
    """The first parameter pool has room for all; only the CPU's constant may go there."""
    module = stored(with_constants(("cpu", "npu")), target())
    found = {c.buffer.name: (c.storage.candidates, c.scope) for c in module.constant_buffers}
    assert found == {
        "w_cpu": (("flash", "common"), GLOBAL),
        "w_npu": (("common",), pool_scope("common")),
    }
    assert module.constant_buffers[1].storage.provenance == (
        "attach_candidates: kernel 'm_adds_npu' of device 'npu' touches it",
        "attach_candidates: global, touched by npu: {common}",
    )
    result = planned(with_constants(("cpu", "npu")), target())
    document = document_of(result.plan)
    by_name = {buffer["name"]: buffer for buffer in document["buffers"]}
    assert [by_name[f"w_{d}"]["place"]["name"] for d in ("cpu", "npu")] == ["flash", "common"]
    assert [by_name[f"w_{d}"]["candidates"] for d in ("cpu", "npu")] == [["flash", "common"], ["common"]]
    assert [by_name[f"w_{d}"]["devices"] for d in ("cpu", "npu")] == [["cpu"], ["npu"]]
    assert faults_of_plan(plan_of(document)) == []
    by_name["w_npu"]["place"]["name"] = "flash"
    by_name["w_npu"]["scope"] = "global.flash"
    faults = faults_of_plan(plan_of(document))
    assert "device 'npu' touches 'w_npu' but may not use pool 'flash'" in faults


def test_s15_a_constant_pinned_where_a_device_does_not_reach_is_refused() -> None:
    module = pin_buffers(with_constants(("npu",)), target(), (Pin("w_*", "flash"),))
    with pytest.raises(CompileError, match="BW301") as caught:
        attach_candidates(module, target())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "'w_npu' cannot be placed in any parameter pool"
    assert diagnostic.notes == (
        "flash  is in memory 'flash', which device 'npu' does not reach",
        "common  is not in its scope 'global.flash'",
        "kernel 'm_adds_npu' of device 'npu' touches it",
        "'npu' reaches: shared, common",
    )


def test_s15_explain_says_why_and_check_proves_it_again() -> None:
    """A nested kernel of the other device, which no step of the plan names."""
    kernels = [
        replace(reverse_kernel("m_inner", SIZE, num_scratch=0), device="npu"),
        handing("m_outer", "m_inner"),
    ]
    document = document_of(planned(between_cpu(*kernels), target()).plan)
    plan = plan_of(document)
    text = "\n".join(explanation_lines(plan, "b"))
    assert "in kernel 'm_outer', kernel 'm_inner' of device 'npu' touches it" in text
    assert "device 'npu', which touches it, may not use this pool" in text
    # No bundle has such a plan (BW720): no step is of the inner kernel's device, and `check` says just that.
    assert {fault.split(", on which ")[1] for fault in faults_of_plan(plan)} == {"no step touches it"}
    assert {step["device"] for step in document["steps"]} == {"cpu"}
    by_name = {buffer["name"]: buffer for buffer in document["buffers"]}
    assert by_name["b"]["devices"] == ["cpu", "npu"]
    assert by_name["b"]["place"]["name"] == "shared"


def test_s15_no_c_is_written_that_runs_a_kernel_on_the_wrong_device() -> None:
    """The plan is one for both devices, but only the entry hands work from one to the other."""
    inner = replace(reverse_kernel("m_inner", SIZE, num_scratch=0), device="npu")
    with pytest.raises(CompileError) as caught:
        files_of(between_cpu(inner, handing("m_outer", "m_inner")), target())
    found = {diagnostic.code: diagnostic.message for diagnostic in caught.value.diagnostics}
    assert found == {
        "BW720": "'m_inner' runs on device 'npu', its caller on 'cpu'",
        "BW721": "kernel 'm_inner' is for device 'npu', which runs no C",
    }


def test_s15_a_device_alone_narrows_nothing() -> None:
    """Opaque calls that declare nothing are the CPU's where there is no one else."""
    alone = TARGET.replace('[device.npu]\nisa = "npu"\nreach = ["shared", "common"]\n', "")
    module = stored(between_cpu(handing("hands", "driver")), load_text(alone, "alone.toml"))
    assert places(module) == {"hands/handed": ("stack",), "a": ("near", "shared"), "b": ("near", "shared")}
