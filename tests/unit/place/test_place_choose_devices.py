"""Devices take operators by themselves: which, in which order, and whether that is worth what it costs.

The costs are reckoned here once more, from what docs/targets.md says of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bytewright.ir import Io
from bytewright.ir.graph import Function, Node, Operation, Value
from bytewright.ir.module import Module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.where import NOWHERE, Where
from bytewright.ops.data import Identity
from bytewright.ops.elementwise import Clamp, Sub
from bytewright.ops.placement import DeviceCopy
from bytewright.options import On
from bytewright.place.plan_devices import plan_devices
from bytewright.target import Target, load_text

HAND_OVER = 65
LINES = """
name = "choice"
default-device = "cpu"
[memory.near]
size = "64KiB"
read-cost = 2
write-cost = 5
[memory.far]
size = "64KiB"
read-cost = 3
write-cost = 7
[memory.common]
size = "{common_size}"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["near", "common", "flash"]
stack = "near"
max-stack-size = "8KiB"
cost-per-mac = 10
[device.fast]
isa = "host"
reach = ["far", "common", "flash"]
stack = "far"
max-stack-size = "8KiB"
operators = [{fast}]
cost-per-mac = {fast_cost}
[device.other]
isa = "host"
reach = ["far", "common", "flash"]
stack = "far"
max-stack-size = "8KiB"
operators = [{other}]
cost-per-mac = 1
[device.mover]
isa = "dma"
reach = [{moved}]
[[workspace]]
name = "near"
memory = "near"
[[workspace]]
name = "far"
memory = "far"
[[parameters]]
name = "flash"
memory = "flash"
"""
COMMON = """
[[workspace]]
name = "common"
memory = "common"
"""
# The cheapest that a byte costs on its way, without the common memory, whose costs are 1.
TO_FAR, TO_NEAR = 2 + 7, 3 + 5


def target(
    fast: str = '"sub"',
    other: str = "",
    *,
    fast_cost: int = 1,
    common: bool = False,
    moved: str = '"near", "far"',
    common_size: str = "64KiB",
) -> Target:
    """A target whose devices share no pool, unless there is a common one, and a device that only copies."""
    text = LINES.format(fast=fast, other=other, fast_cost=fast_cost, moved=moved, common_size=common_size)
    return load_text(text + (COMMON if common else ""), "choice.toml")


def i32(size: int) -> TensorType:
    return TensorType((size,), DType.I32)


def chain(*operations: Operation, size: int = 100) -> Module:
    """Operators v0, v1, ... one after the other; each reads the one before it, all its operands."""
    nodes: list[Node] = []
    last = "x"
    for number, operation in enumerate(operations):
        inputs = (last,) * (2 if isinstance(operation, Sub) else 1)
        nodes.append(Node(operation, inputs, (Value(f"v{number}", i32(size)),), NOWHERE))
        last = f"v{number}"
    return Module("m", (Function("main", (Value("x", i32(size)),), tuple(nodes), (last,)),))


def devices_of(module: Module) -> dict[str, str]:
    """Of the values that are computed, without copies."""
    return {
        node.outputs[0].name: node.outputs[0].type.place.device or ""
        for node in module.graph.nodes
        if not isinstance(node.operation, DeviceCopy)
    }


def chosen(module: Module, machine: Target, io: Io = Io.WORKSPACE, on: tuple[On, ...] = ()) -> str:
    """The first letters of the devices of v0, v1, ..."""
    return "".join(device[0] for device in devices_of(plan_devices(module, machine, on, io)).values())


def test_a_device_takes_what_its_operators_name_and_the_default_device_the_rest() -> None:
    module = chain(Identity(), Sub(), Sub(), Identity(), size=1000)
    assert chosen(module, target(common=True)) == "cffc"
    assert chosen(module, target(fast='"identity"', common=True)) == "fccf"
    assert chosen(module, target(fast='"all"', common=True)) == "ffff"
    assert chosen(module, target(fast="", common=True)) == "cccc"


def test_the_first_device_that_takes_an_operator_gets_it() -> None:
    module = chain(Identity(), Sub(), Identity(), size=1000)
    assert chosen(module, target(other='"sub"', common=True)) == "cfc"
    assert chosen(module, target(fast='"clamp"', other='"sub"', common=True)) == "coc"
    assert chosen(module, target(fast='"identity"', other='"sub"', common=True)) == "fof"


def test_what_is_asked_for_is_not_taken() -> None:
    module = chain(Sub(), Sub(), Sub(), size=1000)
    assert chosen(module, target(common=True), on=(On("v1", "cpu"),)) == "fcf"


# One subtraction of n elements saves 9 n steps; it costs a hand-over and what is copied in and out.
@pytest.mark.parametrize(
    ("size", "common", "device"), [(7, True, "c"), (8, True, "f"), (8, False, "c"), (10_000, False, "c")]
)
def test_a_region_that_saves_less_than_it_costs_stays(size: int, common: bool, device: str) -> None:
    """9 * 7 < 65 < 9 * 8; and a byte in and out costs 17 steps, more than an element of four bytes saves."""
    assert chosen(chain(Identity(), Sub(), Identity(), size=size), target(common=common)) == f"c{device}c"


@pytest.mark.parametrize(("num_operators", "device"), [(7, "c"), (8, "f")])
def test_what_connected_operators_save_is_saved_together(num_operators: int, device: str) -> None:
    """Of 1000 elements: a copy in and out costs 68000, an operator saves 9000, less its hand-over."""
    assert 7 * (9000 - HAND_OVER) < 4000 * (TO_FAR + TO_NEAR) < 8 * (9000 - HAND_OVER)
    module = chain(Identity(), *[Sub()] * num_operators, Identity(), size=1000)
    assert chosen(module, target()) == f"c{device * num_operators}c"


@pytest.mark.parametrize(("cost", "device"), [(1, "f"), (9, "f"), (10, "c"), (11, "c")])
def test_a_device_that_is_no_cheaper_takes_nothing(cost: int, device: str) -> None:
    module = chain(Identity(), Sub(), Identity(), size=1000)
    assert chosen(module, target(common=True, fast_cost=cost)) == f"c{device}c"


def test_a_region_whose_values_no_device_can_copy_stays() -> None:
    """Nobody asked for it, so it is no error."""
    module = chain(Identity(), *[Sub()] * 8, Identity(), size=1000)
    machine = target(moved='"near"')
    assert chosen(module, machine) == "c" * 10
    placed = plan_devices(module, machine, io=Io.WORKSPACE)
    (reason,) = [v.reason for node in placed.graph.nodes for v in node.outputs if v.name == "v1"]
    assert reason is not None
    assert "2 copies cost 68520" in reason
    assert "which no device can make" in reason


@pytest.mark.parametrize(("num_operators", "device"), [(17, "c"), (18, "f")])
def test_inputs_and_outputs_of_the_application_are_copied_if_no_memory_that_both_reach_has_room(
    num_operators: int, device: str
) -> None:
    """Though there is a pool that both devices reach, by which a byte costs 1 + 1 at the cheapest on each way."""
    roomy = target(common=True, fast_cost=9)
    assert chosen(chain(*[Sub()] * num_operators, size=1000), roomy, Io.CALLER) == "f" * num_operators
    machine = target(common=True, fast_cost=9, common_size="3999")
    assert 17 * (1000 - HAND_OVER) < 2 * 4000 * (1 + 1) < 18 * (1000 - HAND_OVER)
    module = chain(*[Sub()] * num_operators, size=1000)
    assert chosen(module, machine, Io.CALLER) == device * num_operators
    assert chosen(module, machine, Io.WORKSPACE) == "f" * num_operators


@pytest.mark.parametrize(("common_size", "num_copies"), [("3999", 2), ("4000", 0)])
def test_nothing_is_copied_where_a_memory_that_both_reach_has_room(common_size: str, num_copies: int) -> None:
    """The application is told to have it there. Both were copied, in whatever memory they could have been."""
    machine = target(common=True, common_size=common_size)
    placed = plan_devices(chain(*[Sub()] * 3, size=1000), machine, (On("sub", "fast"),), Io.CALLER)
    copies = [node for node in placed.graph.nodes if isinstance(node.operation, DeviceCopy)]
    assert len(copies) == num_copies


def test_an_operator_of_the_model_moves_as_a_whole() -> None:
    """By the heaviest of what it became; so what the frontend made beside it goes along."""
    where = Where("m", "0 (SUB)")
    first, second, third = chain(Sub(), Clamp(-5, 5), Identity(), size=1000).graph.nodes
    nodes = (
        Node(first.operation, first.inputs, first.outputs, where),
        Node(second.operation, second.inputs, second.outputs, where),
        third,
    )
    module = Module("m", (Function("main", (Value("x", i32(1000)),), nodes, ("v2",)),))
    assert chosen(module, target(common=True)) == "ffc"
    assert chosen(module, target(fast='"clamp"', common=True)) == "ccc"


def test_the_reason_says_the_sums() -> None:
    placed = plan_devices(
        chain(Identity(), Sub(), Identity(), size=1000), target(common=True), io=Io.WORKSPACE
    )
    (reason,) = [v.reason for node in placed.graph.nodes for v in node.outputs if v.name == "v1"]
    assert reason is not None
    assert (
        "1 operators that device 'fast' takes: 1000 steps save 9000, 1 hand-overs and 0 copies cost 65"
        in reason
    )


def test_placing_again_changes_no_choice() -> None:
    placed = plan_devices(
        chain(Identity(), Sub(), Identity(), size=1000), target(common=True), io=Io.WORKSPACE
    )
    for other in (target(common=True), target(fast='"identity"', common=True)):
        assert plan_devices(placed, other, io=Io.WORKSPACE) == placed


def random_module(random: Random) -> Module:
    """Operators on values of random sizes before them, of their own size each."""
    sizes = [random.choice((4, 30, 300, 3000)) for _ in range(2)]
    values = [("x", sizes[0])]
    nodes: list[Node] = []
    read: set[str] = set()
    for number in range(random.randint(1, 9)):
        same = random.choice(values)
        others = [name for name, size in values if size == same[1]]
        operation = random.choice((Sub(), Sub(), Identity()))
        inputs = (same[0], random.choice(others)) if isinstance(operation, Sub) else (same[0],)
        read.update(inputs)
        nodes.append(Node(operation, inputs, (Value(f"v{number}", i32(same[1])),), NOWHERE))
        values.append((f"v{number}", same[1]))
    results = tuple(name for name, _ in values[1:] if name not in read)
    return Module("m", (Function("main", (Value("x", i32(sizes[0])),), tuple(nodes), results),))


def reckoned(module: Module, devices: Mapping[str, str], common: bool, fast_cost: int) -> int:
    """What a choice costs: work, hand-overs, and copies, one for a value and a device that needs it."""
    per_step = {"cpu": 10, "fast": fast_cost}
    nodes = module.graph.nodes
    total = sum(node.outputs[0].type.num_elements * per_step[devices[node.outputs[0].name]] for node in nodes)
    total += HAND_OVER * sum(devices[node.outputs[0].name] == "fast" for node in nodes)
    if common:
        return total
    (parameter,) = module.graph.parameters
    sizes = {v.name: v.type.size_bytes for v in (parameter, *(node.outputs[0] for node in nodes))}
    where = {parameter.name: "cpu", **devices}
    needs = {(name, devices[node.outputs[0].name]) for node in nodes for name in node.inputs}
    needs |= {(name, "cpu") for name in module.graph.results}
    return total + sum(
        sizes[name] * (TO_FAR if device == "fast" else TO_NEAR)
        for name, device in needs
        if where[name] != device
    )


def regions_of(module: Module) -> list[set[str]]:
    """The connected subtractions, by the values that they compute."""
    regions: list[set[str]] = []
    for node in module.graph.nodes:
        if isinstance(node.operation, Sub):
            touched = [region for region in regions if region & set(node.inputs)]
            regions = [region for region in regions if region not in touched]
            regions.append({node.outputs[0].name}.union(*touched))
    return regions


@given(st.integers(0, 1 << 32), st.booleans(), st.sampled_from((1, 8, 9, 12)))
def test_no_choice_is_worse_than_none(seed: int, common: bool, fast_cost: int) -> None:
    module = random_module(Random(seed))
    found = devices_of(plan_devices(module, target(common=common, fast_cost=fast_cost), io=Io.WORKSPACE))
    stayed = dict.fromkeys(found, "cpu")
    assert reckoned(module, found, common, fast_cost) <= reckoned(module, stayed, common, fast_cost)


@given(st.integers(0, 1 << 32), st.booleans(), st.sampled_from((1, 8, 9, 12)))
def test_no_choice_of_whole_regions_is_better_where_none_share_what_they_read(
    seed: int, common: bool, fast_cost: int
) -> None:
    """Against all choices of regions, one after the other."""
    module = random_module(Random(seed))
    regions = regions_of(module)
    read = [
        {name for node in module.graph.nodes if node.outputs[0].name in region for name in node.inputs}
        - region
        for region in regions
    ]
    assume(not any(a & b for number, a in enumerate(read) for b in read[:number]))
    found = devices_of(plan_devices(module, target(common=common, fast_cost=fast_cost), io=Io.WORKSPACE))
    costs = [
        reckoned(
            module,
            {
                name: "fast" if any(name in r for r, m in zip(regions, moves, strict=True) if m) else "cpu"
                for name in found
            },
            common,
            fast_cost,
        )
        for moves in product((False, True), repeat=len(regions))
    ]
    assert reckoned(module, found, common, fast_cost) == min(costs)
