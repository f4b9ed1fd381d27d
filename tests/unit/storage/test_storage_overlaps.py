"""Which pairs may overlap, which way each step then runs, and that the values survive at the very distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check_overlaps import faults_of_overlaps
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.overlap import Distances
from bytewright.ir.border import Io
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, cast, maximum, minimum
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, External, PrimFunc
from bytewright.ir.scope import GLOBAL, WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from bytewright.options import Options, Pin
from bytewright.plan.problem import Contract
from bytewright.storage.find_overlaps import MOST_SOURCES, Direction, Overlap, find_overlaps
from bytewright.storage.place_io import place_io
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.hand_built import WHERE, module_of
from support.ir_program import read_module

SIZE, BACK, AHEAD = 48, 3, 5
HOST = load_target("host")
X = np.random.default_rng(1).integers(-100, 100, SIZE).astype(np.int8)


def blur(
    name: str, back: int = BACK, ahead: int = AHEAD, dtypes: Sequence[DType] = (DType.I8, DType.I8)
) -> PrimFunc:
    """Half of what lies so far behind an element, and half of what lies so far ahead of it."""
    source, result = (
        Buffer(n, (SIZE,), t, t.size_bytes) for n, t in zip(("source", "result"), dtypes, strict=True)
    )
    body = BodyBuilder(("source", "result"))
    with body.for_("i", 0, SIZE) as i:
        ends = (maximum(i - back, 0), minimum(i + ahead, SIZE - 1))
        first, second = (cast(load(source, end), DType.I32) for end in ends)
        body.store(result, i, cast((first >> 1) + (second >> 1), dtypes[1]))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc(name, parameters, body.finish(), where=WHERE)


def blurred(values: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        i = np.arange(SIZE)
        wide = values.astype(np.int32)
        values = ((wide[np.maximum(i - BACK, 0)] >> 1) + (wide[np.minimum(i + AHEAD, SIZE - 1)] >> 1)).astype(
            np.int8
        )
    return values


def chain(kernel: PrimFunc, length: int) -> Module:
    """An entry that calls a kernel so many times; tensors between the calls may lie at any byte."""
    body = BodyBuilder(("x", "y"))
    first, last = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("x", "y"))
    before = first
    for index in range(length):
        is_last = index + 1 == length
        between = Buffer(f"t{index}", (SIZE,), DType.I8, 1)
        after = last if is_last else body.allocate(between, Storage(WORKSPACE))
        body.call(kernel.name, region(before), region(after), where=WHERE)
        before = after
    return module_of("m", [kernel], body.finish(), first, last)


def overlaps_of(module: Module) -> list[Overlap]:
    return list(find_overlaps(module, read_clock(module, HOST), HOST))


def pinned(*offsets: int) -> Options:
    return Options(pins=tuple(Pin(f"t{i}", "ram", offset=offset) for i, offset in enumerate(offsets)))


def test_a_step_whose_input_dies_has_both_ways() -> None:
    (found,) = overlaps_of(chain(blur("k"), 3))
    assert (found.step, found.source, found.output) == (1, "t0", "t1")
    assert found.distances == {Direction.UP: Distances(BACK, SIZE), Direction.DOWN: Distances(SIZE, AHEAD)}
    assert found.contract == Contract("t0", "t1", BACK, AHEAD)


def test_an_input_that_lives_on_stays_apart() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("x", "y"))
    a, b, c = (body.allocate(Buffer(n, (SIZE,), DType.I8, 1), Storage(WORKSPACE)) for n in "abc")
    for source, result in ((first, a), (a, b), (a, c), (b, a), (c, last)):
        body.call("k", region(source), region(result), where=WHERE)
    assert overlaps_of(module_of("m", [blur("k")], body.finish(), first, last)) == []


def test_what_a_loop_did_not_make_stays_apart() -> None:
    """The loop is one step, and reads its input again in each turn."""
    body = BodyBuilder(("x", "y"))
    first, last = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("x", "y"))
    a, b = (body.allocate(Buffer(n, (SIZE,), DType.I8, 1), Storage(WORKSPACE)) for n in "ab")
    body.call("k", region(first), region(a), where=WHERE)
    with body.for_("turn", 0, 3):
        body.call("k", region(a), region(b), where=WHERE)
    body.call("k", region(b), region(last), where=WHERE)
    assert overlaps_of(module_of("m", [blur("k")], body.finish(), first, last)) == []


def test_what_the_application_touches_stays_apart() -> None:
    """The last step reads an output of the model, which is needed after it; both lie in the workspace."""
    shape = f"buffer<{SIZE}xi8>"
    kernel = (
        f"kernel k(s : {shape} r, d : {shape} w) on cpu {{ for i : i32 in 0 .. {SIZE} {{ d[i] = s[i] }} }}"
    )
    entry = f"entry main(x : {shape} r, a : {shape} w, y : {shape} w) on cpu"
    calls = f"allocate t : {shape} call_extern k(&x, &t) call_extern k(&t, &a) call_extern k(&a, &y)"
    ports = f"input %x : tensor<{SIZE}xi8> output %a : tensor<{SIZE}xi8> output %y : tensor<{SIZE}xi8>"
    module = read_module(f"module m {ports} {kernel} {entry} {{ {calls} }}")
    stored = place_io(module)
    assert [(o.source, o.output) for o in overlaps_of(stored)] == [("x", "t"), ("t", "a")]
    plan = plan_model(module, HOST, Options(io=Io.WORKSPACE)).plan
    (pair,) = plan.steps[1].overlaps
    wrong = replace(plan.steps[2], overlaps=(replace(pair, source="a", output="y"),))
    steps = (*plan.steps[:2], wrong)
    assert [*faults_of_overlaps(plan)] == []
    assert [*faults_of_overlaps(replace(plan, steps=steps))] == [
        "step 2 lets 'y' overlap 'a', and they coexist in other steps too"
    ]
    elsewhere = tuple(replace(step, device="elsewhere") for step in plan.steps)
    assert [*faults_of_overlaps(replace(plan, steps=elsewhere))] == [
        f"step {n} lets buffers overlap on 'elsewhere', whose order nothing is known of" for n in (0, 1)
    ]


@pytest.mark.parametrize("what", ["opaque", "types"])
def test_what_nothing_is_known_of_stays_apart(what: str) -> None:
    kernel, module = blur("k"), chain(blur("k"), 3)
    match what:
        case "opaque":
            kernel = replace(kernel, external=External())
            module = replace(module, kernels=(kernel,))
        case _:
            apart = blur("k", dtypes=(DType.I32, DType.I16))
            module = replace(module, kernels=(apart,))
    assert overlaps_of(module) == []


def test_lines_of_one_device_are_no_reason_to_stay_apart() -> None:
    module = chain(blur("k"), 3)
    lined = tuple(
        replace(s, buffer=replace(s.buffer, line_bytes=32)) if hasattr(s, "storage") else s
        for s in module.main.body.statements
    )
    entry = replace(module.main, body=replace(module.main.body, statements=lined))
    assert len(overlaps_of(replace(module, entries=(entry,)))) == len(overlaps_of(module)) > 0


@pytest.mark.parametrize(
    ("offsets", "names"),
    [
        ((BACK, 0), {"k"}),
        ((0, AHEAD), {"k", "k_down"}),
        ((0, AHEAD, AHEAD - BACK), {"k", "k_down"}),
        ((0, AHEAD, 2 * AHEAD), {"k", "k_down"}),
        ((SIZE, 0), {"k"}),
        ((AHEAD, AHEAD - BACK, AHEAD - BACK + AHEAD), {"k", "k_down"}),
    ],
)
def test_each_step_runs_the_way_that_its_distance_needs(offsets: tuple[int, ...], names: set[str]) -> None:
    length = len(offsets) + 1
    planned = plan_model(chain(blur("m_k"), length), HOST, pinned(*offsets))
    assert {kernel.name.removeprefix("m_") for kernel in planned.module.kernels} == names
    found = Evaluator(planned.module).run("main", {"x": X})["y"]
    assert (found == blurred(X, length)).all()
    down = [step.runs_down for step in planned.plan.steps]
    assert any(down) == ("k_down" in names)
    assert [p.text for step in planned.plan.steps for p in step.overlaps]


@pytest.mark.parametrize("offsets", [(BACK - 1, 0), (0, AHEAD - 1), (0, 0)])
def test_one_byte_nearer_is_refused(offsets: tuple[int, int]) -> None:
    with pytest.raises(CompileError) as caught:
        plan_model(chain(blur("m_k"), 3), HOST, pinned(*offsets))
    assert caught.value.diagnostics[0].code == "BW204"


def difference_of_two() -> Module:
    """An entry with half of the input and half of it from the end; then one less the other, which both die there."""
    vector = f"buffer<{SIZE}xi8>"

    def kernel(name: str, sources: str, value: str) -> str:
        parameters = "".join(f"{source} : {vector} r, " for source in sources)
        body = f"for i : i32 in 0 .. {SIZE} {{ d[i] = {value} }}"
        return f"kernel {name}({parameters}d : {vector} w) on cpu {{ {body} }}"

    kernels = [
        kernel("half", "s", "i8(i32(s[i]) >> 1)"),
        kernel("end", "s", f"i8(i32(s[{SIZE - 1} - i]) >> 1)"),
        kernel("less", "pq", "i8(i32(p[i]) - i32(q[i]))"),
        kernel("copy", "s", "s[i]"),
    ]
    tensors = " ".join(f"allocate {name} : {vector}" for name in "abc")
    steps = "half(&x, &a)", "end(&x, &b)", "less(&a, &b, &c)", "copy(&c, &y)"
    calls = " ".join(f"call_extern {step}" for step in steps)
    entry = f"entry main(x : {vector} r, y : {vector} w) on cpu {{ {tensors} {calls} }}"
    ports = f"input %x : tensor<{SIZE}xi8> output %y : tensor<{SIZE}xi8>"
    return read_module(f"module m {ports} {' '.join(kernels)} {entry}")


@pytest.mark.parametrize(
    ("offsets", "runs_down"),
    [
        ((64, 128, 48), False),
        ((64, 128, 80), True),  # only downwards
        ((64, 128, 144), True),  # beside `b`, which is read there too
        ((64, 32, 48), None),  # above the one and below the other: no way
        ((64, 128, 200), False),
        ((16, 16, 48), None),
    ],
)
def test_pins_decide_the_way_of_a_step_with_two_inputs(
    offsets: tuple[int, ...], runs_down: bool | None
) -> None:
    pins = tuple(Pin(name, "ram", offset=at) for name, at in zip("abc", offsets, strict=True))
    if runs_down is None:
        with pytest.raises(CompileError) as caught:
            plan_model(difference_of_two(), HOST, Options(pins=pins))
        assert {d.code for d in caught.value.diagnostics} == {"BW204"}
        return
    planned = plan_model(difference_of_two(), HOST, Options(pins=pins))
    assert [step.runs_down for step in planned.plan.steps] == [False, False, runs_down, False]
    expected = (X >> 1) - (X[::-1] >> 1)
    assert (Evaluator(planned.module).run("main", {"x": X})["y"] == expected).all()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("offsets", [(BACK, 0), (0, AHEAD)])
def test_compiled_c_keeps_the_order(tmp_path, compiler: str, offsets: tuple[int, int]) -> None:
    """Vectors of 16 and more elements would run ahead of what is written 3 or 5 bytes behind."""
    compiled = compile_model(chain(blur("m_k"), 3), HOST, pinned(*offsets))
    write_bundle(compiled.files, tmp_path / "m")
    options = BuildOptions(("-O3", "-march=native"), compiler=compiler)
    (found,) = run_bundle(tmp_path / "m", [X], options=options).outputs
    assert (found == blurred(X, 3)).all()
    kernels = (tmp_path / "m" / "src" / "m_kernels.c").read_text(encoding="utf-8")
    assert "restrict" not in kernels or "m_k_down" in kernels


def test_of_very_many_inputs_the_largest_may_be_overlapped() -> None:
    sizes = [SIZE if number % 3 else 2 * SIZE for number in range(3 * MOST_SOURCES)]
    tensors = [Buffer(f"t{number}", (size,), DType.I8, 1) for number, size in enumerate(sizes)]
    joined, result = (Buffer(name, (len(sizes),), DType.I8, 1) for name in ("joined", "result"))
    fills: dict[int, PrimFunc] = {}
    entry, join = BodyBuilder(("x", "y")), BodyBuilder((*(t.name for t in tensors), "result"))
    for number, tensor in enumerate(tensors):
        fill = BodyBuilder(("result",))
        with fill.for_("i", 0, tensor.shape[0]) as i:
            fill.store(replace(tensor, name="result"), i, cast(i, DType.I8))
        parameter = BufferParameter(replace(tensor, name="result"), Access.WRITE, scope=GLOBAL)
        name = f"fill_{tensor.shape[0]}"
        fills[tensor.shape[0]] = PrimFunc(name, (parameter,), fill.finish(), where=WHERE)
        entry.call(name, region(entry.allocate(tensor, Storage(WORKSPACE))), where=WHERE)
        join.store(result, number, load(tensor, 0))
    parameters = [BufferParameter(tensor, Access.READ, scope=GLOBAL) for tensor in tensors]
    written = BufferParameter(result, Access.WRITE, scope=GLOBAL)
    kernel = PrimFunc("join", (*parameters, written), join.finish(), where=WHERE)
    entry.allocate(joined, Storage(WORKSPACE))
    entry.call("join", *map(region, (*tensors, joined)), where=WHERE)
    x, y = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("x", "y"))
    entry.call("k", region(x), region(y), where=WHERE)
    module = module_of("m", [*fills.values(), kernel, blur("k")], entry.finish(), x, y)
    found = overlaps_of(module)
    assert [o.source for o in found] == [f"t{n}" for n, size in enumerate(sizes) if size > SIZE]
