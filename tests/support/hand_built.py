"""Modules built by hand, for tests of what comes after lowering: kernels with scratch of any scope, and entries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bytewright.compiler import pipeline
from bytewright.compiler.pipeline import Planned
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.data import TensorData
from bytewright.ir.expr import Buffer, Var, cast
from bytewright.ir.module import ConstantBuffer, Module, Port
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    ParameterRole,
    PrimFunc,
    ScalarParameter,
    Seq,
    Statement,
)
from bytewright.ir.scope import GLOBAL, WORKSPACE, Scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, TensorType
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import walk_statements
from bytewright.ir.where import Where
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.model import Target

WHERE = Where("hand_built.tflite")


def tensor(name: str, size_bytes: int) -> Buffer:
    """An int8 tensor of the entry."""
    return Buffer(name, (size_bytes,), DType.I8, 16)


def reverse_kernel(
    name: str,
    size_bytes: int,
    scope: Scope | None = GLOBAL,
    num_scratch: int = 1,
    device: str = "cpu",
    alignment: int = 1,
) -> PrimFunc:
    """Writes its input backwards, by way of `num_scratch` scratch arrays like it, all of one scope and alignment."""
    source = Buffer("source", (size_bytes,), DType.I8, 1)
    result = Buffer("result", (size_bytes,), DType.I8, 1)
    body = BodyBuilder(("source", "result"))
    stages = [source]
    for index in range(num_scratch):
        scratch = Buffer(f"scratch{index}", (size_bytes,), DType.I8, alignment)
        stages.append(body.allocate(scratch, Storage(scope)))
    for before, after in pairwise(stages):
        with body.for_("i", 0, size_bytes) as i:
            body.store(after, i, load(before, i))
    with body.for_("i", 0, size_bytes) as i:
        body.store(result, i, load(stages[-1], size_bytes - 1 - i))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc(name, parameters, body.finish(), device=device, where=WHERE)


def add_kernel(name: str, size_bytes: int) -> PrimFunc:
    """Averages its input with constants: half of each, rounded down, added."""
    source = Buffer("source", (size_bytes,), DType.I8, 1)
    addend = Buffer("addend", (size_bytes,), DType.I8, 1)
    result = Buffer("result", (size_bytes,), DType.I8, 1)
    body = BodyBuilder(("source", "addend", "result"))
    with body.for_("i", 0, size_bytes) as i:
        halves = (cast(load(source, i), DType.I32) >> 1) + (cast(load(addend, i), DType.I32) >> 1)
        body.store(result, i, cast(halves, DType.I8))
    return PrimFunc(
        name,
        (
            BufferParameter(source, Access.READ, scope=GLOBAL),
            BufferParameter(addend, Access.READ, ParameterRole.PARAMETER, scope=GLOBAL),
            BufferParameter(result, Access.WRITE, scope=GLOBAL),
        ),
        body.finish(),
        where=WHERE,
    )


def chain(
    name: str,
    kernels: Sequence[PrimFunc],
    size_bytes: int,
    scope: Scope | None = WORKSPACE,
    tensor_names: Sequence[str] = (),
) -> Module:
    """An entry that calls kernels of one input and one output in order, with a tensor between each two."""
    names = tuple(tensor_names) or tuple(f"t{index}/out" for index in range(len(kernels) - 1))
    first, last = tensor("x", size_bytes), tensor("y", size_bytes)
    body = BodyBuilder(("x", "y"))
    before = first
    for index, kernel in enumerate(kernels):
        after = (
            last
            if index + 1 == len(kernels)
            else body.allocate(tensor(names[index], size_bytes), Storage(scope))
        )
        body.call(kernel.name, region(before), region(after), operators=(f"{index} (REVERSE)",), where=WHERE)
        before = after
    return module_of(name, kernels, body.finish(), first, last)


def module_of(
    name: str,
    kernels: Sequence[PrimFunc],
    body: Seq,
    first: Buffer,
    last: Buffer,
    constants: Sequence[ConstantBuffer] = (),
    scalars: Sequence[Var] = (),
) -> Module:
    """A lowered module of one input and one output, and scalars that the run is given."""
    parameters = (
        BufferParameter(first, Access.READ, scope=GLOBAL),
        BufferParameter(last, Access.WRITE, scope=GLOBAL),
        *(ScalarParameter(variable) for variable in scalars),
    )
    distinct = {kernel.name: kernel for kernel in kernels}
    return Module(
        name,
        kernels=tuple(distinct.values()),
        entries=(PrimFunc("main", parameters, body, where=WHERE),),
        constant_buffers=tuple(constants),
        inputs=(Port(first.name, TensorType(first.shape, first.dtype)),),
        outputs=(Port(last.name, TensorType(last.shape, last.dtype)),),
    )


def constant(name: str, values: Sequence[int]) -> ConstantBuffer:
    """Int8 constants for a kernel."""
    data = TensorData.from_array(np.array(values, np.int8), DType.I8)
    return ConstantBuffer(Buffer(name, (len(values),), DType.I8, 1), data, Storage(GLOBAL))


def stored(module: Module, target: Target) -> Module:
    """The module after the storage stage; every pass's output is verified."""
    verify(module, Stage.LOWERED, target)
    placed = place_scratch(module, target)
    verify(placed, Stage.LOWERED, target, module, "place_scratch")
    attached = attach_candidates(placed, target)
    verify(attached, Stage.LOWERED, target, placed, "attach_candidates")
    return attached


def planned(module: Module, target: Target) -> Planned:
    """The module planned by the pipeline."""
    verify(module, Stage.LOWERED)
    return pipeline.plan_model(module, target)


def files_of(module: Module, target: Target) -> dict[str, bytes]:
    """The bundle of a module built by hand."""
    verify(module, Stage.LOWERED)
    return pipeline.compile_model(module, target).files


def allocations(statement: Statement) -> list[Allocate]:
    """Allocations in a body, in order; scalars left out."""
    return [s for s in walk_statements(statement) if isinstance(s, Allocate) and s.buffer.shape]
