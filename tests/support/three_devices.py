"""A target of three devices whose memories overlap only in parts, and random annotations of graphs for it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bytewright.ir.graph import ControlOperation, Function, Node, Value
from bytewright.ir.module import Module
from bytewright.ir.scope import pool_scope
from bytewright.ir.types import VirtualDevice
from bytewright.ir.where import NOWHERE
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.target import Target, load_text

# near: cpu alone; shared: cpu and dsp; wide: all; far: npu alone; side: dsp and npu, which dma copies too.
TEXT = """
name = "three"
default-device = "cpu"
[memory.near]
size = "64KiB"
[memory.shared]
size = "64KiB"
write-cost = 2
[memory.wide]
size = "64KiB"
read-cost = 3
[memory.side]
size = "64KiB"
[memory.far]
size = "64KiB"
[memory.flash]
size = "4MiB"
access = "r"
[device.cpu]
isa = "cortex-m55"
reach = ["near", "shared", "wide", "flash"]
stack = "near"
max-stack-size = "8KiB"
[device.dsp]
isa = "cortex-m33"
reach = ["shared", "wide", "side", "flash"]
stack = "side"
max-stack-size = "8KiB"
cost-per-mac = 1
[device.npu]
isa = "cortex-m33"
reach = ["wide", "side", "far", "flash"]
stack = "far"
max-stack-size = "8KiB"
"""
# It runs no C, and copies whatever there is.
MOVER = """
[device.mover]
isa = "cortex-m33"
reach = ["near", "shared", "wide", "side", "far", "flash"]
"""
POOLS = """
[[workspace]]
name = "near"
memory = "near"
[[workspace]]
name = "shared"
memory = "shared"
[[workspace]]
name = "side"
memory = "side"
[[workspace]]
name = "far"
memory = "far"
[[parameters]]
name = "flash"
memory = "flash"
"""
WIDE = """
[[workspace]]
name = "wide"
memory = "wide"
"""
DEVICES = ("cpu", "dsp", "npu")
POOLS_OF = {"cpu": ("near", "shared"), "dsp": ("shared", "side"), "npu": ("side", "far")}


def three_devices(*, wide: bool = False, mover: bool = True, joined: bool = True) -> Target:
    """The target: cpu and npu share no pool, unless there is a wide one, which all reach.

    What they copy to each other goes through the memory of the dsp, or, where nothing joins them, not at all.
    """
    text = TEXT + (MOVER if mover else "") + POOLS + (WIDE if wide else "")
    apart = text.replace('reach = ["wide", "side", "far", "flash"]', 'reach = ["far", "flash"]')
    return load_text(text if joined else apart, "three.toml")


def annotated(
    module: Module, random: Random, *, often: float = 0.3, copies: bool = False, scopes: bool = True
) -> Module:
    """The module with annotations of values that operators give and functions take.

    Without `copies` there are no explicit ones, and without `scopes` no copy is asked for by a pool.
    """
    names = {value.name for function in module.functions for value in function.parameters}
    computed = {
        value.name
        for function in module.functions
        for node in function.nodes
        if not isinstance(node.operation, ControlOperation)
        for value in node.outputs
    }
    names |= {value.name for f in module.functions for node in f.nodes for value in node.outputs}
    constants = {constant.name for constant in module.constants}
    count = 0

    def fresh(name: str) -> str:
        nonlocal count
        count += 1
        return f"{name}.at{count}"

    def annotate(value: Value) -> Node | None:
        if random.random() >= often:
            return None
        device = random.choice((*DEVICES, None))
        pool = (
            random.choice((*POOLS_OF[device], None)) if device is not None and random.random() < 0.4 else None
        )
        if not scopes and value.name not in computed:
            pool = None
        output = Value(fresh(value.name), value.type)
        if copies and device is not None and random.random() < 0.2:
            scope = None if pool is None or not scopes else pool_scope(pool)
            return Node(
                DeviceCopy(destination=VirtualDevice(device, None, scope)), (value.name,), (output,), NOWHERE
            )
        scope = None if pool is None else f"global.{pool}"
        free, fixed = random.random() < 0.3, device is not None and random.random() < 0.1
        return Node(OnDevice(device, scope, fixed and not free, free), (value.name,), (output,), NOWHERE)

    def function(before: Function) -> Function:
        renamed: dict[str, str] = {}
        nodes: list[Node] = []

        def use(name: str) -> str:
            return renamed[name] if name in renamed and random.random() < 0.8 else name

        def define(value: Value) -> None:
            for _ in range(2 if random.random() < 0.1 else 1):
                current = replace(value, name=renamed.get(value.name, value.name))
                node = annotate(current)
                if node is not None:
                    nodes.append(node)
                    renamed[value.name] = node.outputs[0].name

        for value in before.parameters:
            define(value)
        for node in before.nodes:
            nodes.append(replace(node, inputs=tuple(map(use, node.inputs))))
            for value in node.outputs:
                define(value)
        return replace(before, nodes=tuple(nodes), results=tuple(map(use, before.results)))

    assert not names & constants
    return replace(module, functions=tuple(map(function, module.functions)))
