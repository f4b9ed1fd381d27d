"""Names that the generated files agree on, and the refusal of what has no place (S17)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bytewright.codegen.check_places import check_places
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import InternalError
from bytewright.ir.border import Io
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, PrimFunc, Seq
from bytewright.ir.scope import GLOBAL, LOCAL, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from bytewright.options import Options
from bytewright.record.names import Names
from bytewright.target.registry import load_target
from support.ir_program import read_module
from support.random_networks import random_convolution
from tflite_writer import ModelBuilder

# Of a module that places nothing.
PLAN = compile_model(read_module("module m entry main() on cpu {}"), load_target("host")).plan


def test_names_of_offsets() -> None:
    assert Names("kws").offset("dtcm", "conv2d_3/out") == "KWS_AT_DTCM_CONV2D_3__OUT"
    assert Names("m").offset("fast-ram", "a.b c") == "M_AT_FAST_RAM_A_B_C_X8640D2E2"


def test_an_input_that_is_called_like_a_tensor_of_the_graph(tmp_path: Path) -> None:
    builder = ModelBuilder()
    shapes = {"max_pool2d_0_out": [1, 4, 4, 1], "y": [1, 2, 2, 1], "z": [1, 1, 1, 1]}
    x, y, z = (builder.tensor(name, shape, "int8", scale=0.5) for name, shape in shapes.items())
    window = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    builder.operator("MAX_POOL_2D", [x], [y], **window)
    builder.operator("MAX_POOL_2D", [y], [z], **window)
    path = tmp_path / "net.tflite"
    path.write_bytes(builder.build([x], [z]))
    compiled = compile_model(path, load_target("host"), Options(io=Io.WORKSPACE))
    placed = [buffer.name for buffer in compiled.plan.buffers.values() if buffer.has_offset]
    assert {"max_pool2d_0_out", "max_pool2d_0/out"} <= set(placed)
    assert len({Names("net").offset("ram", name) for name in placed}) == len(placed)


def with_allocation(storage: Storage) -> Module:
    buffer = Buffer("tensor", (4,), DType.I8, 1)
    return Module("m", entries=(PrimFunc("main", (), Seq((Allocate(buffer, storage),))),))


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE, LOCAL, pool_scope("ram")], ids=str)
def test_an_allocation_of_the_entry_without_an_offset_is_refused(scope: Scope | None) -> None:
    with pytest.raises(InternalError, match="'tensor' has no offset"):
        check_places(with_allocation(Storage(scope)), PLAN)


def test_constants_without_an_offset_are_refused(tmp_path: Path) -> None:
    """S17: constants without a place are a bug, not C text."""
    path = tmp_path / "net.tflite"
    path.write_bytes(random_convolution(1, "int8").content)
    compiled = compile_model(path, load_target("host"))
    module = compiled.module
    assert module.constant_buffers
    undecided = tuple(replace(constant, storage=Storage()) for constant in module.constant_buffers)
    with pytest.raises(InternalError, match="has no offset"):
        check_places(replace(module, constant_buffers=undecided), compiled.plan)


def test_storage_that_is_not_the_plans_is_refused() -> None:
    """S17: what the C says of a place is the plan's; a module that says something else is a bug."""
    with pytest.raises(InternalError, match=r"storage of 'tensor' .* was not decided"):
        check_places(with_allocation(Storage(pool_scope("ram"), offset=0)), PLAN)
