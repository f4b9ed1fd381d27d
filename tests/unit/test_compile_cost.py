"""What compiling costs: function calls in proportion to the model, at a depth that does not grow with it.

Counts do not depend on the machine. `BYTEWRIGHT_TESTS=thorough` goes on to sizes that matter, with a clock.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from cProfile import Profile
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.frontends.tflite.limits import MAX_COST_MS, MAX_OPERANDS
from bytewright.ir.analyses.depth import MAX_DEPTH, depth_of
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import Access, BufferParameter, PrimFunc
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType, TensorType
from bytewright.lower.fuse import MAX_ELEMENTWISE, fuse
from bytewright.target.registry import load_target
from support.costly_models import FAMILIES, additions_of_input, doublings, elementwise_chain, shared_weights
from support.ir_program import read_module
from support.nested_calls import called_in_two_loops, called_twice, in_turn
from support.shared_models import AD01, KWS, VWW, model_path
from support.tiers import THOROUGH
from tflite_writer import OPTIONAL, ModelBuilder

# The smallest of three sizes, each the double of the one before.
SIZES = {
    "layers": 8,
    "residual": 16,
    "pools": 24,  # below that, segments are shorter than they may be
    "additions of the input": 45,
    "doublings": 150,
    "element-wise chain": 150,
    "one output stated often": 16,
}


@dataclass(frozen=True)
class Cost:
    """Function calls, and the deepest of them."""

    num_calls: int
    depth: int


# What compiling for the instructions of a core may cost, in function calls, beside compiling for none.
MOST_FOR_INSTRUCTIONS = 1.5


def compiled(content: bytes) -> Compiled:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.tflite"
        path.write_bytes(content)
        return compile_model(path, load_target("host"))


def cost_of(compile_something: Callable[[], object]) -> Cost:
    num_calls = depth = deepest = 0

    def watch(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal num_calls, depth, deepest
        if event == "call":
            num_calls += 1
            depth += 1
            if depth > deepest:  # noqa: PLR1730  # for each of millions of calls
                deepest = depth
        elif event == "return":
            depth -= 1
        elif event == "c_call":
            num_calls += 1

    sys.setprofile(watch)
    try:
        compile_something()
    finally:
        sys.setprofile(None)
    return Cost(num_calls, deepest)


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(f, marks=pytest.mark.slow) if f in ("additions of the input", "doublings") else f
        for f in SIZES
    ],
)
def test_calls_grow_with_the_model_and_their_depth_does_not(family: str) -> None:
    contents = [FAMILIES[family](SIZES[family] * factor) for factor in (1, 2, 4)]
    compiled(contents[0])  # modules are loaded, tables made
    small, middle, large = (cost_of(lambda c=content: compiled(c)) for content in contents)
    # A linear cost grows by twice as much at the second doubling, a quadratic one by four times as much.
    assert large.num_calls - middle.num_calls <= 2.4 * (middle.num_calls - small.num_calls)
    assert large.depth == middle.depth


@pytest.mark.skipif(not THOROUGH, reason="minutes: BYTEWRIGHT_TESTS=thorough")
@pytest.mark.parametrize("family", ["layers", "residual"])
def test_calls_grow_with_large_models(family: str) -> None:
    """What looks through all steps at each of them is a few calls in small models, and most of them in large ones."""
    contents = [FAMILIES[family](count) for count in (256, 512, 1024)]
    small, middle, large = (cost_of(lambda c=content: compiled(c)).num_calls for content in contents)
    assert large - middle <= 2.2 * (middle - small)


def num_calls_for(model: str, target: str) -> int:
    """Function calls of compiling a model; what processes do once has been done for another model."""
    compile_model(model_path(AD01), load_target(target))
    profile = Profile()
    profile.runcall(compile_model, model_path(model), load_target(target))
    return sum(entry.callcount + entry.reccallcount for entry in profile.getstats())


@pytest.mark.parametrize(
    "model", [KWS, pytest.param(VWW, marks=pytest.mark.skipif(not THOROUGH, reason="half a minute"))]
)
def test_instructions_cost_at_most_half_as_much_again(model: str) -> None:
    """A tile is hundreds of calls of instructions, each of which is one statement to those who walk through it."""
    plain, *others = (num_calls_for(model, target) for target in ("host", "x86-64-v3", "x86-64-v4-vnni"))
    assert max(others) <= MOST_FOR_INSTRUCTIONS * plain


def calls_in_calls(count: int) -> Module:
    """Kernels of which each calls the one before, and an entry that calls the last."""
    kernels: list[PrimFunc] = []
    for number in range(count):
        source, result = (Buffer(name, (8,), DType.I32, 4) for name in ("source", "result"))
        body = BodyBuilder(("source", "result"))
        if number:
            body.call(f"m_{number - 1}", region(source), region(result))
        else:
            with body.for_("i", 0, 8) as i:
                body.store(result, i, load(source, i) + 1)
        parameters = (
            BufferParameter(source, Access.READ, scope=GLOBAL),
            BufferParameter(result, Access.WRITE, scope=GLOBAL),
        )
        kernels.append(PrimFunc(f"m_{number}", parameters, body.finish()))
    x, y = (Buffer(name, (8,), DType.I32, 4) for name in "xy")
    body = BodyBuilder("xy")
    body.call(kernels[-1].name, region(x), region(y))
    ports = (BufferParameter(x, Access.READ, scope=GLOBAL), BufferParameter(y, Access.WRITE, scope=GLOBAL))
    entry = PrimFunc("main", ports, body.finish())
    type_ = TensorType((8,), DType.I32)
    return Module(
        "m",
        kernels=tuple(kernels),
        entries=(entry,),
        inputs=(Port("x", type_),),
        outputs=(Port("y", type_),),
    )


@pytest.mark.slow
def test_calls_inside_calls_cost_no_depth() -> None:
    target = load_target("host")
    compile_model(calls_in_calls(20), target)
    small, middle, large = (
        cost_of(lambda n=n: compile_model(calls_in_calls(n), target)) for n in (20, 40, 80)
    )
    assert large.num_calls - middle.num_calls <= 2.4 * (middle.num_calls - small.num_calls)
    assert large.depth == middle.depth
    assert compile_model(calls_in_calls(1200), target).files


@pytest.mark.parametrize(
    ("program", "smallest"),
    [
        pytest.param(called_twice, 6, marks=pytest.mark.slow),
        pytest.param(called_in_two_loops, 7, marks=pytest.mark.slow),
        pytest.param(in_turn, 40, marks=pytest.mark.slow),
    ],
)
def test_scratch_of_calls_inside_calls_costs_the_same_at_each_level(
    program: Callable[[int], str], smallest: int
) -> None:
    target = load_target("host")
    first, *modules = (read_module(program(smallest * factor)) for factor in (1, 1, 2, 4))
    compile_model(first, target)
    small, middle, large = (cost_of(lambda m=m: compile_model(m, target)) for m in modules)
    assert large.num_calls - middle.num_calls <= 2.4 * (middle.num_calls - small.num_calls)
    assert large.depth == middle.depth


def test_a_long_chain_becomes_kernels_of_limited_size() -> None:
    """Also one of int8 operators, each of which is several in the graph."""
    for content, narrow in ((elementwise_chain(1000), 1), (additions_of_input(200), 2)):
        graph = import_content(content, "m.tflite").graph
        groups = fuse(graph).groups
        assert sorted(value.name for group in groups for node in group.nodes for value in node.outputs) == (
            sorted(value.name for node in graph.nodes for value in node.outputs)
        )
        assert max(len(group.nodes) for group in groups) <= narrow * MAX_ELEMENTWISE
        assert len(groups) <= 2 + 2 * len(graph.nodes) // MAX_ELEMENTWISE


def test_cuts_are_where_the_tensor_is_narrow() -> None:
    groups = fuse(import_content(additions_of_input(200), "m.tflite").graph).groups
    assert len(groups) > 1
    assert {group.output.type.dtype.value for group in groups} == {"i8"}


def test_text_does_not_double_where_an_operand_is_used_twice() -> None:
    sizes = [len(compiled(doublings(count)).files["src/m_kernels.c"]) for count in (10, 20, 40)]
    assert sizes[2] - sizes[1] <= 2.5 * (sizes[1] - sizes[0])


def test_expressions_stay_shallow_in_a_long_chain() -> None:
    for content in (elementwise_chain(120), additions_of_input(120)):
        depths = [depth_of(kernel) for kernel in compiled(content).module.kernels]
        assert max(depths) <= 60 < MAX_DEPTH  # C99 grants 63 levels of parentheses


def test_layers_that_share_weights_share_their_bytes() -> None:
    one, many = (compiled(FAMILIES["shared weights"](count)) for count in (1, 20))
    sizes = [sum(len(constant.data.content) for constant in c.module.constant_buffers) for c in (one, many)]
    assert sizes[1] <= sizes[0] + 20 * 64
    contents = [id(c.data.content) for c in many.module.constant_buffers if len(c.data.content) >= 1 << 20]
    assert len(contents) == 1


def test_no_pass_holds_something_of_the_size_of_the_weights_for_each_layer() -> None:
    content = shared_weights(48, 256)  # 64 KiB, of 48 layers
    compiled(content)  # modules are loaded, tables made
    tracemalloc.start()
    try:
        compiled(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 3_000_000, peak  # 2,130,000; with a mask of the weights of each layer at once 4,640,000


def concatenation(count: int) -> bytes:
    builder = ModelBuilder()
    x, y = builder.tensor("x", [1, 1], "float32"), builder.tensor("y", [1, count], "float32")
    builder.operator("CONCATENATION", [x] * count, [y], axis=1)
    return builder.build([x], [y])


def many_scales(count: int) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 1], "int8", scale=0.5)
    y = builder.tensor("y", [1, count], "int8", scale=0.5)
    scales = np.linspace(0.001, 0.002, count, dtype=np.float32)
    weights = builder.constant("w", np.ones((count, 1), np.int8), scale=scales)
    builder.operator("FULLY_CONNECTED", [x, weights, OPTIONAL], [y])
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (concatenation(MAX_OPERANDS + 1), f"CONCATENATION has {MAX_OPERANDS + 1} operands"),
        (FAMILIES["absent operands"](60_000), "ADD has 60002 operands"),
        (FAMILIES["pools"](MAX_COST_MS // 2 + 1), f"compiling {MAX_COST_MS // 2 + 1} operators"),
        (many_scales(20_000), "compiling 1 operators"),
        (FAMILIES["one output stated often"](100_000), "with 100001 inputs and outputs"),
    ],
    ids=["operands", "absent", "operators", "scales", "outputs"],
)
def test_a_small_file_that_asks_for_much_is_refused_at_once(content: bytes, message: str) -> None:
    assert len(content) < 1 << 20
    with pytest.raises(CompileError) as refusal:
        import_content(content, "m.tflite")
    assert [diagnostic.code for diagnostic in refusal.value.diagnostics] == ["BW114"]
    assert message in str(refusal.value)


def test_what_is_at_the_limit_is_compiled() -> None:
    assert compiled(concatenation(MAX_OPERANDS)).files
    import_content(FAMILIES["pools"](MAX_COST_MS // 2 - 1), "m.tflite")


@pytest.mark.skipif(not THOROUGH, reason="minutes: BYTEWRIGHT_TESTS=thorough")
@pytest.mark.parametrize(
    ("family", "size", "limit_seconds"),
    [
        ("element-wise chain", 100_000, 60),
        ("additions of the input", 5_000, 30),
        ("doublings", 20_000, 30),
        ("layers", 4000, 60),
        ("residual", 4000, 75),
        ("pools", 4000, 30),
        ("one output stated often", 2000, 10),
        ("constant pad", 33_000_000, 10),
        ("shared weights", 500, 20),
        ("heavy", 100_000_000, 10),
    ],
)
def test_sizes_that_matter_end_in_time(family: str, size: int, limit_seconds: float) -> None:
    content = FAMILIES[family](size)
    begin = time.process_time()
    assert compiled(content).files
    assert time.process_time() - begin <= limit_seconds
