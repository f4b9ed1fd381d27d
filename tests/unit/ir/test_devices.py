"""Kernels of several devices in the IR: jobs, contexts, and who may call whom."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.copy import copy_kernel, is_whole_copy
from bytewright.ir.expr import Buffer
from bytewright.ir.prim import ContextArgument, Job
from bytewright.ir.rewrite import Rewriting, rewrite_function
from bytewright.ir.text.modules import print_module
from bytewright.ir.text.primfuncs import print_primfunc
from bytewright.ir.text.reader import ParseError
from bytewright.ir.types import DType, Symbol
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.verify.verify_program import program_violations
from bytewright.ir.verify.written import unwritten
from bytewright.target import Target, load_text
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module, parse_primfunc

TARGET = load_text(
    """
name = "trio"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[device.cpu]
isa = "cortex-m33"
reach = ["ram"]
stack = "ram"
[device.core1]
isa = "cortex-m33"
reach = ["ram"]
stack = "ram"
[device.npu]
isa = "ethos-u55"
reach = ["ram"]
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "weights"
memory = "ram"
size = "1KiB"
""",
    "trio.toml",
)

STREAM = """
kernel run(code : buffer<4xu8> r parameter, x : buffer<8xi8> r, y : buffer<8xi8> w) on npu job(stream) {}
"""
COPY = """
kernel fetch(source : buffer<8xi8> r, destination : buffer<8xi8> w) on npu job(copy) {
  for i : i32 in 0 .. 8 {
    destination[i] = source[i]
  }
}
"""
TWICE = """
kernel twice(x : buffer<8xi8> r, y : buffer<8xi8> w) on core1 {
  for i : i32 in 0 .. 8 {
    y[i] = i8(i32(x[i]) * 2)
  }
}
"""
DRIVE = "extern drive(x : buffer<8xi8> r, y : buffer<8xi8> w, npu : context<npu>) on cpu stack=64 {}\n"
PASS_ON = """
kernel pass_on(x : buffer<8xi8> r, y : buffer<8xi8> w, device : context<npu>) on cpu {
  call_extern drive(&x, &y, context_of(npu))
}
"""
CONSTANT = "constant commands : buffer<4xu8> = data<4xu8> [3, 1, 4, 1]\n"


def entry(*calls: str) -> str:
    """An entry from `x` to `y` by way of `a`, `b`, `c`."""
    lines = "\n".join(calls)
    names = "".join(f"allocate {name} : buffer<8xi8>\n" for name in "abc" if f"&{name}" in lines)
    return f"entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {{\n{names}{lines}\n}}\n"


def module(*parts: str):
    """A module of these parts, its constant first."""
    return parse_module("module m\n" + CONSTANT + "".join(parts), {}, {})


def faults(*parts: str, target: Target | None = TARGET) -> list[str]:
    """What is wrong with a lowered module of these parts."""
    return [violation.text for violation in find_violations(module(*parts), Stage.LOWERED, target)]


ALL = (
    STREAM,
    COPY,
    TWICE,
    DRIVE,
    PASS_ON,
    entry(
        "call_extern fetch(&x, &a)",
        "call_extern run(&commands, &a, &b)",
        "call_extern twice(&b, &c)",
        'call_extern pass_on(&c, &y, context_of(npu)) {operators=("0 (ADD)",)}',
    ),
)


def test_jobs_and_contexts_print_and_parse():
    found = module(*ALL)
    assert faults(*ALL) == []
    assert [kernel.job for kernel in found.kernels] == [Job.STREAM, Job.COPY, None, None, None]
    text = print_module(found)
    assert "on npu job(stream) {" in text
    assert "device : context<npu>" in text
    assert "call_extern pass_on(&c, &y, context_of(npu))" in text
    data = {constant.data.digest: constant.data for constant in found.constant_buffers}
    assert parse_module(text, data, {}) == found


def test_a_scalar_may_be_called_context():
    text = "kernel k(x : buffer<8xi8> w, context : i32) on cpu {\n  x[select(context < 3, 0, 1)] = 0:i8\n}"
    assert parse_primfunc(print_primfunc(parse_primfunc(text))) == parse_primfunc(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [("job(jump) {}", "expected a job \\(stream, copy\\)"), ("job stream {}", "expected '\\('")],
)
def test_unknown_jobs_are_refused(text: str, message: str):
    with pytest.raises(ParseError, match=message):
        parse_primfunc(f"kernel k(x : buffer<8xi8> w) on npu {text}")


def test_rewriting_keeps_jobs_and_contexts():
    for kernel in (*module(*ALL).kernels, module(*ALL).main):
        assert rewrite_function(kernel, Rewriting()) == kernel


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            STREAM.replace("{}", "{ allocate a : buffer<8xi8> }"),
            "'run' is a command stream, so it has no body",
        ),
        (STREAM.replace(") on", ", n : i32) on"), "'run' is a command stream, so 'n' must be a buffer"),
        (STREAM.replace(" parameter", ""), "its first parameter holds the commands"),
        (STREAM.replace("4xu8> r", "4xu8> rw"), "its first parameter holds the commands"),
        (STREAM.replace("npu", "core1"), "'run' is a command stream, but device 'core1' runs C"),
        (STREAM.replace("x : buffer<8x", "x : buffer<N[1..8]x"), "so its buffers have constant sizes"),
        (COPY.replace("= source[i]", "= source[7 - i]"), "copies each element of the first to its place"),
        (COPY.replace("0 .. 8", "1 .. 8"), "copies each element of the first to its place"),
        (COPY.replace("> w)", "> rw)"), "two buffers of one shape and type"),
        (COPY.replace("n : buffer<8xi8>", "n : buffer<9xi8>"), "two buffers of one shape and type"),
        (COPY.replace("npu", "cpu").replace("copy", "stream"), "command stream"),
        (DRIVE.replace("<npu>", "<gpu>"), "target 'trio' has no device 'gpu'"),
        (DRIVE.replace("<npu>", "<cpu>"), "context of device 'cpu', which runs it"),
        (
            DRIVE.replace(") on", ", b : context<npu>) on"),
            "context of device 'npu', and so is another parameter",
        ),
        (DRIVE.replace("on cpu", "on core1"), "stays with the entry on device 'cpu', not on 'core1'"),
    ],
)
def test_what_a_kernel_may_not_be_to_a_device(text: str, message: str):
    main = entry("call_extern twice(&x, &y)")
    assert any(message in fault for fault in faults(text, TWICE, main)), faults(text, TWICE, main)


def test_the_entry_is_no_job_and_has_no_context():
    main = entry("call_extern twice(&x, &y)")
    assert any(
        "is the entry, and no job" in f for f in faults(TWICE, main.replace("on cpu", "on cpu job(copy)"))
    )
    given = module(TWICE, main.replace("w) on", "w, npu : context<npu>) on"))
    assert any("'npu' of the entry is a context" in fault.text for fault in program_violations(given, TARGET))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("drive(&x, &y, context_of(core1))", "is the context of device 'npu', the argument that of 'core1'"),
        ("drive(&x, &y, context_of(gpu))", "has no device 'gpu'"),
        ("drive(&x, &y, 3)", "an argument of 'drive' is not a context"),
        ("twice(&x, context_of(npu))", "an argument of 'twice' is not a buffer"),
    ],
)
def test_contexts_are_passed_for_contexts_of_their_device(call: str, message: str):
    assert any(message in fault for fault in faults(TWICE, DRIVE, entry(f"call_extern {call}")))


def test_a_kernel_passes_on_only_the_context_that_it_was_given():
    without = PASS_ON.replace(", device : context<npu>", "")
    assert faults(DRIVE, without, entry("call_extern pass_on(&x, &y)")) == [
        "'pass_on' passes on a context of device 'npu', but is given none"
    ]


def test_a_fault_of_one_entry_is_not_remembered_for_another():
    """The verdict on a kernel depends on the device of the entry."""
    main = entry("call_extern twice(&x, &y)")
    given = module(DRIVE, TWICE, main)
    assert not find_violations(given, Stage.LOWERED, TARGET)
    moved = module(TWICE, main.replace("on cpu", "on core1"))
    moved = type(moved)("m", kernels=given.kernels, entries=moved.entries)
    found = find_violations(moved, Stage.LOWERED, TARGET)
    assert any("stays with the entry on device 'core1'" in fault.text for fault in found)


def test_a_stream_counts_as_writing_what_it_may():
    main = entry("call_extern run(&commands, &x, &y)")
    assert not unwritten(module(STREAM, main))
    read = entry("call_extern run(&commands, &a, &y)")
    assert [fault.text for fault in unwritten(module(STREAM, read))]


def test_streams_are_executed_by_what_the_evaluator_is_given():
    found = module(*ALL)

    def execute(code: bytes, regions: list[np.ndarray]) -> None:
        x, y = regions
        assert (code, x.flags.writeable, y.flags.writeable) == (bytes([3, 1, 4, 1]), False, True)
        y[:] = x + code[0]

    def drive(x: np.ndarray, y: np.ndarray) -> None:
        y[:] = x + 1

    evaluator = Evaluator(found, stand_ins={"drive": drive}, executors={"npu": execute})
    x = np.arange(8, dtype=np.int8)
    assert (evaluator.run("main", {"x": x})["y"] == (x + 3) * 2 + 1).all()
    with pytest.raises(InternalError, match="nothing executes those of device 'npu'"):
        Evaluator(found, stand_ins={"drive": drive}).run("main", {"x": x})


def test_steps_and_stacks_are_those_of_the_kernels_devices():
    main = entry(
        "call_extern fetch(&x, &a)", "call_extern run(&commands, &a, &b)", "call_extern twice(&b, &y)"
    )
    found = module(STREAM, COPY, TWICE, main)
    timeline = read_clock(found, TARGET)
    assert [step.device for step in timeline.steps] == ["npu", "npu", "core1"]
    devices = {live.buffer.name: live.devices for live in timeline.buffers}
    assert devices == {"x": ("cpu", "npu"), "y": ("core1", "cpu"), "a": ("npu",), "b": ("core1", "npu")}
    assert [(use.context, use.path) for use in stack_uses(found, TARGET)] == [
        ("cpu", ("main",)),
        ("core1", ("m_core1_execute", "twice")),
    ]


@pytest.mark.parametrize("shape", [(), (8,), (2, 3, 4), (Symbol("i0", 1, 8), 3)])
def test_copy_kernels_copy(shape: tuple[int | Symbol, ...]):
    kernel = copy_kernel("m_copy", Buffer("b", shape, DType.I16, 16), "npu", job=Job.COPY)
    assert is_whole_copy(kernel)
    assert parse_primfunc(print_primfunc(kernel)) == kernel
    extents = [5 if isinstance(extent, Symbol) else extent for extent in shape]
    values = np.arange(int(np.prod(extents)), dtype=np.int16).reshape(extents)
    symbols = {extent.name: 5 for extent in shape if isinstance(extent, Symbol)}
    given = parse_module("module m\n" + print_primfunc(kernel), {}, {})
    assert not find_violations(given, Stage.LOWERED, TARGET)
    assert (Evaluator(given).run("m_copy", {"source": values, **symbols})["destination"] == values).all()


def test_arguments_compare_by_device():
    assert ContextArgument("npu") != ContextArgument("core1")
