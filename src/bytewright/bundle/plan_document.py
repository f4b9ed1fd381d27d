"""plan.json: every buffer with its place and the evidence for it (schema 1, DESIGN section 8)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from bytewright.codegen.interface import PoolInterface
from bytewright.ir.address import size_bytes
from bytewright.ir.analyses.clock import LiveBuffer, Step, Timeline
from bytewright.ir.analyses.stack import StackUse
from bytewright.ir.analyses.touch import constant_touches
from bytewright.ir.border import Border, Io, border_ports
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    ParameterRole,
    PrimFunc,
    Region,
)
from bytewright.ir.symbols import scalar_symbols
from bytewright.ir.types import Symbol
from bytewright.ir.walk import walk_statements
from bytewright.plan.solution import Solution
from bytewright.plan_file import SCHEMA, hash_document
from bytewright.target.dump import dump
from bytewright.target.model import Pool, Target

BUILD_FLAGS = ("-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A planned module with everything that proves the plan.

    Attributes:
        module: At stage PLANNED.
        version: Of Bytewright.
        numerics: The named kernel set.
        io: Where inputs and outputs are.
        stack: Of every context, that of the entry first.
        parameter_pools: With their bytes.
    """

    module: Module
    target: Target
    numerics: str
    io: Io
    version: str
    timeline: Timeline
    workspace: Solution
    parameters: Solution
    stack: tuple[StackUse, ...]
    parameter_pools: tuple[PoolInterface, ...]


def plan_document(planned: PlannedModel) -> dict[str, Any]:
    """The document, its own hash included."""
    module, target = planned.module, planned.target
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": module.name,
        "target": target.name,
        "numerics": planned.numerics,
        "io": planned.io.value,
        "build": {"bytewright": planned.version, "flags": list(BUILD_FLAGS)},
        "inputs": _ports(module, Border.INPUT),
        "outputs": _ports(module, Border.OUTPUT),
        "symbols": [
            {"name": symbol.name, "lower": symbol.lower, "upper": symbol.upper}
            for _, symbol in scalar_symbols(module.main)
            if symbol is not None
        ],
        "pools": [
            *(_pool(pool, planned.workspace, target) for pool in target.workspace_pools),
            *(
                _pool(pool.pool, planned.parameters, target, hashlib.sha256(pool.content).hexdigest())
                | {"load": pool.pool.load.value, "load_memory": pool.pool.load_memory}
                for pool in planned.parameter_pools
            ),
        ],
        "buffers": [*_tensor_buffers(planned), *_stack_buffers(module, target), *_constant_buffers(planned)],
        "stack": {
            use.context: {
                "planned_bytes": use.planned_bytes,
                "size_bytes": use.size_bytes,
                "limit_bytes": use.limit_bytes,
                "path": list(use.path),
            }
            for use in planned.stack
        },
        "steps": _steps(planned),
        "loops": [
            {"steps": list(loop.steps), "inside": list(loop.inside)} for loop in planned.timeline.loops
        ],
        "target_description": dump(target),
    }
    externals = [kernel.name for kernel in module.kernels if kernel.external is not None]
    if externals:
        document["externals"] = externals
    document["plan_hash"] = hash_document(document)
    return document


def _ports(module: Module, border: Border) -> list[dict[str, Any]]:
    return [_port(port, name) for name, (side, port) in border_ports(module).items() if side is border]


def _port(port: Port, buffer: str) -> dict[str, Any]:
    quantization = port.quantization
    return {
        "name": port.name,
        "c_name": port.name,
        "buffer": buffer,
        "dtype": port.type.dtype.value,
        "shape": list(port.type.fixed_shape),
        "extents": [extent.name if isinstance(extent, Symbol) else extent for extent in port.type.shape],
        "size_bytes": port.type.size_bytes,
        "scale": quantization.scale if quantization else None,
        "zero_point": quantization.zero_point if quantization else None,
    }


def _pool(pool: Pool, solution: Solution, target: Target, sha256: str | None = None) -> dict[str, Any]:
    use = solution.use_of[pool.name]
    return {
        "name": pool.name,
        "c_name": pool.identifier,
        "memory": pool.memory,
        "role": pool.role.value,
        "provider": pool.provider.value,
        "capacity_bytes": pool.size_bytes,
        "used_bytes": use.top_bytes,
        "lower_bound_bytes": use.lower_bound_bytes,
        "optimal": use.optimal,
        "alignment": max(pool.alignment, use.alignment),
        "section": target.section_of(pool),
        "sha256": sha256,
    }


def _tensor_buffers(planned: PlannedModel) -> list[dict[str, Any]]:
    timeline = planned.timeline
    offsets = {
        s.buffer.name: (s.buffer, s.storage.offset)
        for s in walk_statements(planned.module.main.body)
        if isinstance(s, Allocate)
    }
    ports = border_ports(planned.module)
    arenas = set(_arena_of(timeline).values())
    scratch = _scratch(planned)
    documents: list[dict[str, Any]] = []
    touching = timeline.steps_touching()
    for live in timeline.buffers:
        steps = touching.get(live.buffer.name) or timeline.steps_alive(live.buffer.name)
        if live.allocation is None:
            border, port = ports[live.buffer.name]
            place = {"kind": "caller", "name": port.name, "offset": None}
            documents.append(_buffer(live, border.value, place, steps, ()))
            continue
        placed, offset = offsets[live.buffer.name]
        scope = placed.scope
        kind = "planned" if live.allocation.storage.arena is None else "arena"
        place = {"kind": kind, "name": scope.pool if scope else None, "offset": offset}
        names = live.allocation.storage.candidates or ()
        if live.buffer.name in ports:
            role = ports[live.buffer.name][0].value
        elif live.buffer.name in arenas:
            role = "arena"
        else:
            role = "scratch" if live.buffer.name in scratch else "tensor"
        documents.append(_buffer(live, role, place, steps, names) | {"scope": str(scope)})
    return documents


def _arena_of(timeline: Timeline) -> dict[str, str]:
    """What is requested at run time, and the arena of each."""
    return {
        live.buffer.name: live.allocation.storage.arena
        for live in timeline.buffers
        if live.allocation is not None and live.allocation.storage.arena is not None
    }


def _scratch(planned: PlannedModel) -> set[str]:
    """Buffers that are given to kernels as scratch, and as nothing else."""
    steps = _steps(planned)
    others = {name for step in steps for kind in ("reads", "writes") for name in step[kind]}
    return {name for step in steps for name in step["scratch"]} - others


def _buffer(
    live: LiveBuffer,
    role: str,
    place: dict[str, Any],
    steps: tuple[int, int],
    candidates: tuple[str, ...],
) -> dict[str, Any]:
    if live.allocation is None:
        reason = "input or output of the model: the caller provides it"
    else:
        reason = "; ".join((*live.allocation.storage.provenance, f"plan: {place['name']}"))
    return {
        "name": live.buffer.name,
        "role": role,
        "size_bytes": size_bytes(live.buffer),
        "alignment": live.buffer.alignment,
        "place": place,
        "live": [live.lower, live.upper],
        "first_step": steps[0],
        "last_step": steps[1],
        "scope": str(live.buffer.scope) if live.buffer.scope else None,
        "candidates": list(candidates),
        "devices": list(live.devices),
        "reason": reason,
    }


def _stack_buffers(module: Module, target: Target) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    for kernel in module.kernels:
        contexts = target.device(kernel.device).contexts
        for statement in walk_statements(kernel.body):
            if not isinstance(statement, Allocate) or not statement.buffer.shape:
                continue
            buffer = statement.buffer
            documents.append(
                {
                    "name": f"{kernel.name}/{buffer.name}",
                    "role": "scratch",
                    "size_bytes": size_bytes(buffer),
                    "alignment": buffer.alignment,
                    "place": {
                        "kind": "stack",
                        "name": contexts[0].name if contexts else kernel.device,
                        "offset": None,
                    },
                    "live": None,
                    "first_step": None,
                    "last_step": None,
                    "scope": str(buffer.scope),
                    "candidates": [],
                    "devices": [kernel.device],
                    "reason": "; ".join(statement.storage.provenance),
                }
            )
    return documents


def _constant_buffers(planned: PlannedModel) -> list[dict[str, Any]]:
    steps = planned.timeline.steps_touching()
    touches = constant_touches(planned.module, planned.target)
    documents: list[dict[str, Any]] = []
    for constant in planned.module.constant_buffers:
        touching = steps[constant.buffer.name]
        scope = constant.buffer.scope
        documents.append(
            {
                "name": constant.buffer.name,
                "role": "parameter",
                "size_bytes": len(constant.data.content),
                "alignment": constant.buffer.alignment,
                "place": {
                    "kind": "constant",
                    "name": scope.pool if scope else None,
                    "offset": constant.storage.offset,
                },
                "live": [0, planned.timeline.num_ticks],
                "first_step": touching[0],
                "last_step": touching[1],
                "scope": str(scope),
                "candidates": list(constant.storage.candidates or ()),
                "devices": sorted(touch.device for touch in touches[constant.buffer.name]),
                "reason": "; ".join(("constant of the model", *constant.storage.provenance)),
            }
        )
    return documents


def _steps(planned: PlannedModel) -> list[dict[str, Any]]:
    kernels = {kernel.name: kernel for kernel in planned.module.kernels}
    arena_of = _arena_of(planned.timeline)
    return [
        {
            "index": step.index,
            "ticks": list(step.ticks),
            "kernel": step.call.callee,
            "device": step.device,
            "operators": list(step.call.operators),
            **_accesses(step, kernels[step.call.callee], arena_of),
            "alive": {name: list(interval) for name, interval in step.needed},
        }
        for step in planned.timeline.steps
    ]


def _accesses(step: Step, kernel: PrimFunc, arena_of: dict[str, str]) -> dict[str, list[str]]:
    """Which buffers the step reads, writes, and uses as scratch, arenas included: what the lifetimes follow from."""
    accesses: dict[str, list[str]] = {"reads": [], "writes": [], "scratch": []}
    for argument, parameter in zip(step.call.arguments, kernel.parameters, strict=True):
        if not isinstance(argument, Region) or not isinstance(parameter, BufferParameter):
            continue
        name = argument.buffer.name
        if parameter.role is ParameterRole.SCRATCH:
            accesses["scratch"] += [name, arena_of[name]] if name in arena_of else [name]
            continue
        if parameter.access is not Access.WRITE:
            accesses["reads"].append(name)
        if parameter.access is not Access.READ:
            accesses["writes"].append(name)
    return {kind: list(dict.fromkeys(names)) for kind, names in accesses.items()}
