"""place_io: inputs and outputs become allocations of the entry, and the clock keeps them for the application."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.border import Border, border_buffers, border_of, border_ports
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import Access, Allocate, BufferParameter
from bytewright.ir.scope import GLOBAL, WORKSPACE, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.modules import print_module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import walk_statements
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.place_io import place_io
from bytewright.target.registry import load_target
from support.hand_built import chain, reverse_kernel, tensor
from support.parsing import parse_module

SIZE = 8
HOST = load_target("host")
KERNEL = reverse_kernel("k", SIZE, num_scratch=0)


def allocations(module: Module) -> list[Allocate]:
    return [s for s in walk_statements(module.main.body) if isinstance(s, Allocate)]


def with_unread(module: Module, name: str) -> Module:
    """The module with a further input that no step touches."""
    first, *rest = module.main.parameters
    unread = BufferParameter(tensor(name, SIZE), Access.READ, scope=GLOBAL)
    entry = replace(module.main, parameters=(first, unread, *rest))
    port = Port(name, TensorType((SIZE,), DType.I8))
    return replace(module, entries=(entry,), inputs=(*module.inputs, port))


def test_parameters_become_marked_allocations_in_the_models_order() -> None:
    before = with_unread(chain("m", [KERNEL] * 2, SIZE), "u")
    after = place_io(before)
    verify(after, Stage.LOWERED, load_target("host"), before, "place_io")
    assert after.main.parameters == ()
    marked = [(s.buffer.name, s.storage.border) for s in allocations(after)]
    assert marked == [
        ("x", Border.INPUT),
        ("u", Border.INPUT),
        ("y", Border.OUTPUT),
        ("t0/out", None),
    ]
    assert [s.scope for s in allocations(after)[:3]] == [WORKSPACE] * 3
    assert all(s.storage.provenance[0].startswith("place_io: ") for s in allocations(after)[:3])
    assert parse_module(print_module(after), {}, {}) == after


def test_it_changes_nothing_the_second_time() -> None:
    once = place_io(chain("m", [KERNEL], SIZE))
    assert place_io(once) == once


def test_a_scope_that_placement_gave_stays() -> None:
    module = chain("m", [KERNEL], SIZE)
    source, result = module.main.buffer_parameters
    pinned = replace(source.buffer, alignment=32)
    body = BodyBuilder(("x", "y"))
    body.call("k", region(pinned), region(result.buffer))
    parameters = (replace(source, buffer=pinned, scope=pool_scope("dtcm")), result)
    entry = replace(module.main, parameters=parameters, body=body.finish())
    after = place_io(replace(module, entries=(entry,)))
    assert [(s.scope, s.buffer.alignment) for s in allocations(after)] == [
        (pool_scope("dtcm"), 32),
        (WORKSPACE, 16),
    ]


def test_inputs_live_from_the_start_and_outputs_to_the_end() -> None:
    """`late` is read by the last call; `early` is written by the first, and read no more."""
    late, early, middle = (tensor(name, SIZE) for name in ("late", "early", "middle"))
    module = chain("m", [KERNEL] * 3, SIZE)
    source, result = module.main.buffer_parameters
    body = BodyBuilder(("x", "late", "early", "y"))
    body.call("k", region(source.buffer), region(early))
    inner = body.allocate(middle, Storage(WORKSPACE))
    body.call("k", region(source.buffer), region(inner))
    body.call("k", region(late), region(result.buffer))
    parameters = (
        source,
        BufferParameter(late, Access.READ, scope=GLOBAL),
        BufferParameter(early, Access.WRITE, scope=GLOBAL),
        result,
    )
    entry = replace(module.main, parameters=parameters, body=body.finish())
    ports = [Port(name, TensorType((SIZE,), DType.I8)) for name in ("x", "late", "early", "y")]
    module = replace(module, entries=(entry,), inputs=tuple(ports[:2]), outputs=tuple(ports[2:]))
    expected = {"x": (0, 5), "late": (0, 8), "early": (1, 9), "y": (7, 9), "middle": (4, 5)}
    for seen in (module, place_io(module)):
        assert {b.buffer.name: (b.lower, b.upper) for b in read_clock(seen, HOST).buffers} == expected


def test_an_input_that_no_step_touches_has_bytes_of_its_own_at_the_start() -> None:
    """The application writes it, in whatever order; with the caller's memory it is not the plan's business."""
    module = with_unread(chain("m", [KERNEL] * 2, SIZE), "u")
    assert "u" not in {live.buffer.name for live in read_clock(module, HOST).buffers}
    timeline = read_clock(place_io(module), HOST)
    unread = next(live for live in timeline.buffers if live.buffer.name == "u")
    assert (unread.lower, unread.upper, unread.devices) == (0, 1, ("cpu",))
    assert "u" not in timeline.steps_touching()
    assert timeline.steps_alive("u") == (0, 0)


def test_the_application_touches_inputs_and_outputs_on_the_entrys_device() -> None:
    """So a pool that the entry's device does not use is no candidate, whatever device the kernels run on."""
    target = load_target("mps3-an547")
    module = place_io(chain("m", [reverse_kernel("k", SIZE, num_scratch=0, device="npu")], SIZE))
    assert {live.devices for live in read_clock(module, HOST).buffers} == {("cpu", "npu")}
    alone = place_io(chain("m", [KERNEL], SIZE))
    candidates = [s.storage.candidates for s in allocations(attach_candidates(alone, target))]
    assert candidates == [("dtcm", "isram")] * 2


def test_buffers_and_ports_belong_together() -> None:
    module = with_unread(chain("m", [KERNEL] * 2, SIZE), "u")
    for seen in (module, place_io(module)):
        assert [b.name for b in border_buffers(seen.main, Border.INPUT)] == ["x", "u"]
        assert [b.name for b in border_buffers(seen.main, Border.OUTPUT)] == ["y"]
        assert {name: (side.value, port.name) for name, (side, port) in border_ports(seen).items()} == {
            "x": ("input", "x"),
            "u": ("input", "u"),
            "y": ("output", "y"),
        }
    with pytest.raises(InternalError, match="the entry has 2 inputs, the model 1"):
        border_ports(replace(module, inputs=module.inputs[:1]))
    assert border_of(Allocate(tensor("t", SIZE))) is None
