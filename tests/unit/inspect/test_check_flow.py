"""`check_bundle` of the entry's loops and branches, the numbers of its jobs, what is lent: each change is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.c_nodes import expression, form_of
from bytewright.inspect.c_numbers import Numbers
from bytewright.inspect.check import check_bundle
from bytewright.ir.analyses.affine import Form
from bytewright.options import Options
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.digits_bundle import change_file, write_document
from support.flow_program import FIRST, FLOW, JUDGE, NARROW, SECOND
from support.ir_program import read_module
from support.random_entries import random_entry
from support.two_devices import bundle

SOURCE = "src/pair.c"
WITH = "PAIR_SPAN_READ | PAIR_SPAN_WRITE"


# Numbers that are narrower than what they are made of, wider, and without a sign.
TYPES = """\
module types

input %x : tensor<4x8xf32>
output %y : tensor<4x8xf32>

kernel scale(
    x : buffer<8xf32> r activation,
    y : buffer<8xf32> w activation,
    a : i8,
    b : u32,
    d : i32,
    e : u8
) on cpu {
  let own : f32 = f32(a) + f32(b) + f32(d) + f32(e)
  for k : i32 in 0 .. 8 {
    y[k] = x[k] * own
  }
}

entry main(x : buffer<4x8xf32> r activation, y : buffer<4x8xf32> w activation) on cpu {
  for i : i64 in i64(0) .. i64(4) {
    let small : i8 = i8(i * i64(100))
    let natural : u32 = u32(i)
    let own : i32 = i32(i) + i32(small)
    let wide : i64 = i + i64(3)
    call_extern scale(&x[i, 0], &y[i, 0], small, natural, i32(wide) - own, u8(i))
  }
  for j : i32 in 0 .. 4 {
    let more : i64 = i64(j) + i64(3)
    call_extern scale(&x[j, 0], &y[j, 0], i8(j * 100), u32(j), i32(more), u8(200))
    let five : i8 = i8(5)
    call_extern scale(&x[j, 0], &y[j, 0], five, u32(2147483647), j * 3 + 1, u8(200))
  }
}
"""


def document_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "plan.json").read_text())


def refusal(folder: Path, code: str) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    found = {diagnostic.code: "\n".join(diagnostic.notes) for diagnostic in caught.value.diagnostics}
    return found[code]


def test_the_plan_says_what_the_entry_does(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    check_bundle(folder)
    document = document_of(folder)
    (loop,) = document["loops"]
    assert (loop["steps"], loop["variable"], loop["begin"], loop["end"]) == ([2, 8], "turn", 0, 2)
    assert document["branches"] == [
        {"buffer": "flag", "compared": None, "then": [3, 5], "otherwise": [5, 7], "num_loops": 1},
        {"buffer": None, "compared": "turn < 1", "then": [7, 8], "otherwise": [8, 8], "num_loops": 1},
    ]
    steps = document["steps"]
    numbers = [steps[index].get("scalars") for index in (1, JUDGE, FIRST, SECOND, NARROW)]
    assert numbers == [None, ["32*turn - 40"], ["3*turn + 7", 1], [5, 0], None]
    assert [span["offset"] for span in steps[NARROW]["spans"]] == ["128*turn", 0]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param("turn < 2;", "turn < 3;", "runs from 0 to 3, in the plan from 0 to 2", id="turns"),
        pytest.param("turn = 0;", "turn = 1;", "runs from 1 to 2, in the plan from 0 to 2", id="begin"),
        pytest.param(
            "; ++turn)", "; turn += 2)", "the loop of steps 2 to 8 runs from what changes", id="step"
        ),
        pytest.param(
            "    for (int32_t turn = 0; turn < 2; ++turn) {",
            "    const int32_t turn = 0;\n    {",
            "has loops of steps none; in the plan 2 to 8",
            id="no-loop",
        ),
        pytest.param(
            "(shared_base + PAIR_AT_SHARED_FLAG) != 0",
            "(shared_base + PAIR_AT_SHARED_LENT) != 0",
            "the branch on flag is on '*(const uint8_t *)(shared_base + PAIR_AT_SHARED_LENT) != 0'",
            id="other-buffer",
        ),
        pytest.param("_FLAG) != 0", "_FLAG) == 0", "the branch on flag is on '*(const", id="turned"),
        pytest.param(
            "if (turn < 1)", "if (turn < 2)", "the branch on (turn < 1) is on 'turn < 2'", id="number"
        ),
        pytest.param("        if (turn < 1) {", "        {", "has 1 branches, the plan 2", id="no-branch"),
        pytest.param(
            "        } else {\n",
            "        }\n        {\n",
            "the branch on flag has the arms 3..4 and none, in the plan the arms 3..4 and 5..6",
            id="no-else",
        ),
        pytest.param(
            "const int32_t part = turn * 32;",
            "const int32_t part = turn * 16;",
            "step 2: the job's numbers are {16*turn - 40",
            id="name",
        ),
        pytest.param(
            "{(turn * 3) + 7, 1}",
            "{(turn * 3) + 8, 1}",
            "step 3: the job's numbers are {3*turn + 8, 1}, in the plan {3*turn + 7, 1}",
            id="sum",
        ),
        pytest.param(
            "{(turn * 3) + 7, 1}",
            "{(turn * 3) + 7, 0}",
            "step 3: the job's numbers are {3*turn + 7, 0}",
            id="truth",
        ),
        pytest.param(
            "{5, 0}", "{6, 0}", "step 5: the job's numbers are {6, 0}, in the plan {5, 0}", id="constant"
        ),
        pytest.param(
            "call = {1u, {0, 0}}", "call = {1u, {0, 9}}", "step 8: the job's numbers are {0, 9}", id="unused"
        ),
        pytest.param(
            "_SHIFTED) + (turn * 32), 128u",
            "_SHIFTED) + (turn * 16), 128u",
            "step 8: span 0, of 'shifted': it begins 64*turn B into it, in the plan 128*turn B",
            id="offset",
        ),
    ],
)
def test_what_the_entry_does_otherwise_is_found(tmp_path: Path, old: str, new: str, text: str) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    change_file(folder, SOURCE, old, new)
    assert text in refusal(folder, "BW402")


def test_an_arm_that_holds_another_step_is_found(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    source = (folder / SOURCE).read_text()
    begin = source.index("        if (turn < 1) {")
    end = source.index("        PAIR_STEP(8,")
    arm = source[begin:end]
    change_file(folder, SOURCE, arm, arm.replace("        if (turn < 1) {\n", "").replace("        }\n", ""))
    moved = (folder / SOURCE).read_text().replace("        } else {\n", "        } else if (turn < 1) {\n")
    change_file(folder, SOURCE, (folder / SOURCE).read_text(), moved)
    text = refusal(folder, "BW402")
    assert "the branch on flag has the arms 3..4 and 5..6" not in text
    assert "the branch on (turn < 1) has the arms 5..6 and none, in the plan the arms 7..7 and none" in text


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *front, last = path
        place: Any = document
        for key in front:
            place = place[key]
        assert place[last] != to
        place[last] = to

    return change


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (_set("loops", 0, "end", to=3), "BW402", "runs from 0 to 2, in the plan from 0 to 3"),
        (_set("loops", 0, "begin", to="turn"), "BW402", "runs from 0 to 2, in the plan from turn to 2"),
        (_set("loops", 0, "steps", to=[2, 7]), "BW402", "has loops of steps 2 to 8; in the plan 2 to 7"),
        (_set("branches", 0, "then", to=[3, 6]), "BW401", "has the arms 3..5 and 5..6, which do not follow"),
        (
            _set("branches", 1, "otherwise", to=[8, 99]),
            "BW401",
            "(turn < 1) has the arms 7..7 and 8..98, which",
        ),
        (
            _set("branches", 0, "otherwise", to=[5, 8]),
            "BW402",
            "the arms 3..4 and 5..6, in the plan the arms 3..4 and 5..7",
        ),
        (_set("branches", 0, "buffer", to="y"), "BW401", "1 branches are on buffers, and they are not the 1"),
        (
            _set("branches", 0, "buffer", to=None),
            "BW401",
            "0 branches are on buffers, and they are not the 1 conditions",
        ),
        (_set("conditions", to=[]), "BW401", "1 branches are on buffers, and they are not the 0 conditions"),
        (
            _set("branches", 1, "compared", to="turn <= 1"),
            "BW402",
            "the branch on (turn <= 1) is on 'turn < 1'",
        ),
        (_set("branches", 1, "compared", to=None), "BW402", "the branch on (numbers) is on 'turn < 1'"),
        (_set("branches", 1, "num_loops", to=0), "BW402", "is in 1 loops, in the plan in 0"),
        (_set("branches", to=[]), "BW402", "has 2 branches, the plan 0"),
        (
            _set("steps", FIRST, "scalars", to=["3*turn + 7", 0]),
            "BW402",
            "{3*turn + 7, 1}, in the plan {3*turn + 7, 0}",
        ),
        (_set("steps", FIRST, "scalars", to=[]), "BW402", "{3*turn + 7, 1}, in the plan {0, 0}"),
        (_set("steps", FIRST, "scalars", to=["turn", 1]), "BW402", "{3*turn + 7, 1}, in the plan {turn, 1}"),
        (
            _set("steps", NARROW, "spans", 0, "offset", to="64*turn"),
            "BW402",
            "128*turn B into it, in the plan 64*turn B",
        ),
        (
            _set("steps", NARROW, "spans", 1, "offset", to=-4),
            "BW401",
            "the job of step 8 runs over the end of 'narrow'",
        ),
    ],
)
def test_what_the_plan_says_otherwise_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], code: str, text: str
) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    document = document_of(folder)
    change(document)
    write_document(folder, document)
    assert text in refusal(folder, code)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param(
            "        lend(pair_flash_parameters, 8u, PAIR_SPAN_READ),\n    };\n    const device_use",
            "    };\n    const device_use",
            "does not lend device 'core1' 8 B at 'pair_flash_parameters' as 'PAIR_SPAN_READ'",
            id="one-less",
        ),
        pytest.param(
            "lend(pair_flash_parameters, 8u, PAIR_SPAN_READ)",
            f"lend(pair_flash_parameters, 8u, {WITH})",
            f"lends device 'core1' 8 B at 'pair_flash_parameters' as '{WITH}', which the plan does not",
            id="access",
        ),
        pytest.param(
            "lend(pair_flash_parameters, 8u",
            "lend(pair_flash_parameters, 4u",
            "lends device 'core1' 4 B at 'pair_flash_parameters'",
            id="size",
        ),
        pytest.param(
            "lend(context->near, 64u",
            "lend(context->shared, 64u",
            f"does not lend device 'dma' 64 B at 'context->near' as '{WITH}'",
            id="base",
        ),
        pytest.param(
            "lend(context->near, 64u",
            "lend(context->near + 8, 64u",
            "lends device 'dma' 64 B at 'context->near + 8'",
            id="offset",
        ),
        pytest.param(
            "const pair_span dma_memories[] = {\n",
            "const pair_span dma_memories[] = {\n        all_of(context),\n",
            "lends device 'dma' some B at 'all_of(context)' as ''",
            id="other",
        ),
        pytest.param(
            "const pair_span dma_memories[]",
            "const pair_span npu_memories[] = {\n    };\n    const pair_span dma_memories[]",
            "has the table npu_memories, which is of no device of the plan",
            id="table",
        ),
        pytest.param("dma_memories, 2u}", "dma_memories, 1u}", "does not take the devices", id="count"),
        pytest.param("dma_memories, 2u}", "core1_memories, 2u}", "does not take the devices", id="exchanged"),
        pytest.param(
            "begin_devices(uses, 2u)", "begin_devices(uses, 1u)", "does not begin and end", id="begin"
        ),
        pytest.param("(uses, 2u, 2u)", "(uses, 1u, 2u)", "does not begin and end the use of all 2", id="end"),
    ],
)
def test_what_is_lent_otherwise_is_found(tmp_path: Path, old: str, new: str, text: str) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    change_file(folder, SOURCE, old, new)
    assert text in refusal(folder, "BW402")


def test_memories_in_another_order_are_found(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    source = (folder / SOURCE).read_text()
    lines = source[source.index("dma_memories[] = {\n") :].splitlines(keepends=True)[1:3]
    change_file(folder, SOURCE, "".join(lines), "".join(lines[::-1]))
    assert "lends device 'dma' its memories in another order than the plan" in refusal(folder, "BW402")


def test_a_device_that_is_given_what_it_does_not_touch_is_found(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", FLOW)
    document = document_of(folder)
    (filtered,) = (b for b in document["buffers"] if b["name"] == "filtered")
    filtered["devices"].remove("core1")
    write_document(folder, document)
    assert f"step {FIRST} gives 'filtered' to 'core1', which does not touch it" in refusal(folder, "BW401")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("requests", [False, True])
def test_the_flow_of_random_entries_is_read_back(tmp_path: Path, seed: int, requests: bool) -> None:
    host = load_target("host")
    target = apply_overrides(host, Overrides(use_backend_alloc_workspace=True)) if requests else host
    compiled = compile_model(read_module(random_entry(seed)[0]), target, Options())
    write_bundle(compiled.files, tmp_path / "r")
    check_bundle(tmp_path / "r")
    assert compiled.plan.loops
    document = document_of(tmp_path / "r")
    document["loops"][0]["end"] += 1
    write_document(tmp_path / "r", document)
    assert "in the plan from" in refusal(tmp_path / "r", "BW402")


def test_numbers_of_all_types_are_read_back(tmp_path: Path) -> None:
    """Those that a type may make others of stand there with it, in the plan and in the C."""
    compiled = compile_model(read_module(TYPES), load_target("host"), Options())
    write_bundle(compiled.files, tmp_path / "types")
    check_bundle(tmp_path / "types")
    assert [step.scalars for step in compiled.plan.steps] == [
        ("i8(i8(100*i))", "u32(u32(i))", "(i32(i + 3) - (i32(i) + i8(i8(100*i))))", "u8(i)"),
        ("i8(100*j)", "u32(j)", "i32(j + 3)", 200),
        (5, 2**31 - 1, "3*j + 1", 200),
    ]


def test_a_plan_of_before_says_nothing_of_turns(tmp_path: Path) -> None:
    compiled = compile_model(read_module(random_entry(0)[0]), load_target("host"), Options())
    write_bundle(compiled.files, tmp_path / "r")
    document = document_of(tmp_path / "r")
    for loop in document["loops"]:
        del loop["variable"], loop["begin"], loop["end"]
    write_document(tmp_path / "r", document)
    assert "loop" not in refusal(tmp_path / "r", "BW402")  # but that the hash is another


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("7u", None),
        ("7LL", None),
        ("x + 7u", None),
        ("INT64_C(7)", 7),
        ("INT32_C(7)", None),
        ("UINT32_C(7)", None),
        ("(int8_t)7", 7),
        ("(int8_t)128", None),
        ("(int8_t)(x + 256) - 256", None),
        ("(uint32_t)x", None),
        ("(int64_t)x + 1", "x + 1"),
        ("(int32_t)INT64_C(7)", 7),
        ("(int32_t)(x + INT64_C(4294967296)) - INT64_C(4294967296)", None),
        ("(int32_t)(x + 4294967296) - 4294967296", None),
        ("(x * 65536 * 65536) + y - (x * INT64_C(4294967296))", None),
        ("-(x - 3)", "-1*x + 3"),
        ("INT32_MIN", -(2**31)),
        ("(x * 3) + (int32_t)(2 * named)", "3*x + 4*y + 2"),
        ("2 * (x + 1) - x - x", 2),
        ("x * y", None),
        ("x / 2", None),
        ("min_i32(x, 3)", None),
        ("a[3]", None),
        ("x * 0", 0),
    ],
)
def test_numbers_of_c_are_read_as_sums(text: str, number: int | str | None) -> None:
    form = form_of(expression(text), {"named": Form(1, (("y", 2),))})
    assert (None if form is None else form.written) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("min_i32(x * 4, 3) + 1", "(min_i32(4*x, 3) + 1)"),
        ("(float)(x + 1) * 0.10f", "(f32(x + 1) * 0.1f)"),
        ("(x + 1) / 2 % 3", "(((x + 1) / 2) % 3)"),
        ("(x > 3) ? half : -1.5", "((x > 3) ? (x / 2) : (-1.5))"),
        ("half - x", "((x / 2) - x)"),
        ("(uint32_t)(x + 1)", "u32(x + 1)"),
        ("(bool)(x < 2)", "(x < 2)"),
        ("(bool)x", None),
        ("(x + 7u) / 2", None),
        ("a[x] / 2", None),
        ("7LL / x", None),
        ("NAN + -0.0f", "(nan + (-0.0f))"),
        ("-INFINITY", "-inf"),
        ("(int8_t *)x", None),
    ],
)
def test_what_is_no_sum_is_read_as_c_computes_it(text: str, number: int | str | None) -> None:
    assert Numbers({}, {"half": expression("x / 2")}).text(expression(text)) == number


def test_comparisons_of_c_are_read() -> None:
    numbers = Numbers({})
    assert numbers.compared(expression("(x + 1) <= (4 * y)")) == "x + 1 <= 4*y"
    assert numbers.compared(expression("min_i32(x, 1) < 4")) == "min_i32(x, 1) < 4"
    assert numbers.compared(expression("x")) == "x"
    assert numbers.compared(expression("a[x] < 4")) is None
