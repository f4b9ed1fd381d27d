"""`check_bundle` of what the entry hands to other devices: it accepts what was compiled, and finds each change."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bytewright import ir
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.ir.packed import Form
from bytewright.options import Options
from bytewright.target import load_target
from support.digits_bundle import DIGITS, change_file, write_document
from support.two_devices import PROGRAM, STREAM_TARGET, TARGET, bundle, stream_program

SOURCE = "src/pair.c"
FETCH, FILTER, NARROW = 1, 2, 4  # steps

# The second half of a buffer, then a half for each turn of a loop.
PARTS = (
    PROGRAM.replace("allocate shifted : buffer<32xi32>", "allocate shifted : buffer<64xi32>")
    .replace("pair_shift(&filtered, &shifted)", "pair_shift(&filtered, &shifted[32])")
    .replace("pair_narrow(&shifted, &narrow)", "pair_narrow(&shifted[32], &narrow)")
)
TURNS = PARTS.replace(
    "  call_extern pair_shift(&filtered, &shifted[32])\n  call_extern pair_narrow(&shifted[32], &narrow)\n",
    "  for turn : i32 in 0 .. 2 {\n"
    "    call_extern pair_shift(&filtered, &shifted[turn * 32])\n"
    "    call_extern pair_narrow(&shifted[turn * 32], &narrow)\n"
    "  }\n",
)
STREAM = stream_program()


def refusal(directory: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    return "\n".join(diagnostic.notes)


def document_of(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "plan.json").read_text())


@pytest.mark.parametrize(
    ("text", "target"),
    [(PROGRAM, TARGET), (PARTS, TARGET), (TURNS, TARGET), (STREAM, STREAM_TARGET)],
    ids=["plain", "parts", "turns", "stream"],
)
@pytest.mark.parametrize("form", [Form.PLAIN, Form.PACKED])
def test_bundles_with_devices_verify(tmp_path: Path, text: str, target: str, form: Form) -> None:
    folder = bundle(tmp_path / "pair", text, target, Options(calling_form=form))
    assert check_bundle(folder).num_steps == 7
    spans = [len(step.get("spans", ())) for step in document_of(folder)["steps"]]
    assert spans == [0, 2, 3, 0, 3 if text == STREAM else 2, 2, 0]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param("SHARED_SHIFTED = 0,", "SHARED_SHIFTED = 64,", "SHIFTED 64, the plan 0", id="offset"),
        pytest.param(
            "lend(shared_base + PAIR_AT_SHARED_SHIFTED, 128u",
            "lend(shared_base + PAIR_AT_SHARED_FILTERED, 128u",
            "step 4: span 0, of 'shifted': it begins at 'shared_base + PAIR_AT_SHARED_FILTERED', "
            "not at 'shared_base + PAIR_AT_SHARED_SHIFTED'",
            id="buffer",
        ),
        pytest.param(
            "lend(shared_base + PAIR_AT_SHARED_SHIFTED, 128u",
            "lend(shared_base + PAIR_AT_SHARED_SHIFTED + 16, 128u",
            "step 4: span 0, of 'shifted': it begins 16 B into it, in the plan 0 B",
            id="begin",
        ),
        pytest.param(
            "lend(near + PAIR_AT_NEAR_NEAR, 64u",
            "lend(shared_base + PAIR_AT_NEAR_NEAR, 64u",
            "step 1: span 1, of 'near': it begins at 'shared_base + PAIR_AT_NEAR_NEAR'",
            id="base",
        ),
        pytest.param(
            "PAIR_AT_FLASH_TAPS, 8u",
            "PAIR_AT_FLASH_TAPS, 16u",
            "step 2: span 1, of 'taps': it has 16 B, in the plan 8 B",
            id="size",
        ),
        pytest.param(
            "PAIR_AT_FLASH_TAPS, 8u, PAIR_SPAN_READ",
            "PAIR_AT_FLASH_TAPS, 8u, PAIR_SPAN_READ | PAIR_SPAN_WRITE",
            "its access is 'PAIR_SPAN_READ | PAIR_SPAN_WRITE', in the plan 'PAIR_SPAN_READ'",
            id="access",
        ),
        pytest.param(
            "call = {0u, {7, 1}}", "call = {1u, {7, 1}}", "step 2: the job is of kernel 1", id="kernel"
        ),
        pytest.param(
            "&devices->dma, NULL", "&devices->core1, NULL", "handed to 'core1', not to 'dma'", id="to"
        ),
        pytest.param("NULL, 0u, spans, 2u", "NULL, 0u, spans, 1u", "2 spans and says 1u", id="count"),
        pytest.param("NULL, 0u, spans, 2u", "near, 0u, spans, 2u", "the job's code is not that", id="code"),
        pytest.param("(uint32_t)sizeof call", "4u", "the job's code is not that", id="code-bytes"),
        pytest.param(
            "            lend(flash + PAIR_AT_FLASH_TAPS, 8u, PAIR_SPAN_READ),\n",
            "",
            "step 2: the job has 2 spans and says 3u, the plan has 3",
            id="fewer",
        ),
        pytest.param("    pair_shift(\n", "    pair_moved(\n", "calls 7 kernels, not those", id="plain"),
        pytest.param(
            "(const int32_t *)(const void *)(shared_base + PAIR_AT_SHARED_FILTERED)",
            "(const int32_t *)(const void *)(shared_base + PAIR_AT_SHARED_NARROW)",
            "step 3: plan and call differ in PAIR_AT_SHARED_FILTERED, PAIR_AT_SHARED_NARROW",
            id="argument",
        ),
        pytest.param(
            "    PAIR_STEP(7, near, shared_base);\n",
            "    (void)hand_over(&devices->dma, NULL, 0u, NULL, 0u);\n    PAIR_STEP(7, near, shared_base);\n",
            "hands over 5 jobs, 4 of them as they are generated",
            id="further",
        ),
        pytest.param("status = run_steps(", "status = skip_steps(", "runs the steps 0 times", id="no-steps"),
    ],
)
def test_a_job_that_says_something_else_is_found(tmp_path: Path, old: str, new: str, text: str) -> None:
    folder = bundle(tmp_path / "pair")
    change_file(folder, SOURCE, old, new)
    assert text in refusal(folder)


def _step(source: str, index: int) -> str:
    """The text of a step, the macro before it left out."""
    return source.split(f"PAIR_STEP({index}, near, shared_base);\n")[1].split("    PAIR_STEP(", maxsplit=1)[0]


@pytest.mark.parametrize(("first", "second"), [(FILTER, NARROW), (FETCH, 5), (FETCH, FILTER), (0, FETCH)])
def test_steps_in_another_order_are_found(tmp_path: Path, first: int, second: int) -> None:
    folder = bundle(tmp_path / "pair")
    source = (folder / SOURCE).read_text()
    begin, end = source.index("static int32_t run_steps("), len(source)
    one, other = _step(source, first), _step(source, second)
    changed = source[begin:end].replace(one, "@one@").replace(other, one).replace("@one@", other)
    change_file(folder, SOURCE, source[begin:end], changed)
    assert SOURCE in refusal(folder)


def test_a_part_that_begins_elsewhere_is_found(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", PARTS)
    change_file(folder, SOURCE, "_SHIFTED) + 32, 128u", "_SHIFTED) + 31, 128u")
    assert "span 0, of 'shifted': it begins 124 B into it, in the plan 128 B" in refusal(folder)
    folder = bundle(tmp_path / "turns", TURNS)
    assert document_of(folder)["steps"][NARROW]["spans"][0]["offset"] == "128*turn"
    change_file(folder, SOURCE, "_SHIFTED) + (turn * 32), 128u", "_SHIFTED) + 32, 128u")
    assert "it begins 128 B into it, in the plan 128*turn B" in refusal(folder)


def test_a_stream_that_is_another_is_found(tmp_path: Path) -> None:
    for index, (old, new, text) in enumerate(
        [
            (
                "(flash + PAIR_AT_FLASH_ORDERS)",
                "(flash + PAIR_AT_FLASH_TAPS)",
                "span 0, of 'orders': it begins at",
            ),
            (
                "PAIR_AT_FLASH_ORDERS),\n            4u",
                "PAIR_AT_FLASH_ORDERS),\n            8u",
                "it has 8 B, in the plan 4 B",
            ),
        ]
    ):
        folder = bundle(tmp_path / str(index), STREAM, STREAM_TARGET)
        change_file(folder, SOURCE, old, new)
        assert text in refusal(folder)


@pytest.mark.parametrize(
    ("step", "span", "key", "value", "text"),
    [
        (FILTER, 0, "buffer", "narrow", "the job of step 2 is given 'narrow', which the step does not touch"),
        (FILTER, 0, "offset", 2, "the job of step 2 runs over the end of 'lent'"),
        (FILTER, 1, "size_bytes", 9, "the job of step 2 runs over the end of 'taps'"),
        (FETCH, 1, "access", "rw", "the job of step 1 may access 'near' as 'w'"),
    ],
)
def test_a_job_of_a_plan_that_is_not_its_steps_is_found(
    tmp_path: Path, step: int, span: int, key: str, value: str | int, text: str
) -> None:
    folder = bundle(tmp_path / "pair")
    document = document_of(folder)
    document["steps"][step]["spans"][span][key] = value
    write_document(folder, document)
    assert text in _plan_faults(folder)


def test_a_job_without_spans_and_one_of_the_entry_are_found(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair")
    document = document_of(folder)
    document["steps"][0]["spans"] = document["steps"][FETCH].pop("spans")
    write_document(folder, document)
    text = _plan_faults(folder)
    assert "step 0 runs on 'cpu' and has a job" in text
    assert "step 1 touches 'near', which its job is not given" in text


def _plan_faults(folder: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    return "\n".join(note for d in caught.value.diagnostics if d.code == "BW401" for note in d.notes)


def test_jobs_of_an_open_batch_are_compared(tmp_path: Path) -> None:
    """A convolution of the example on the other core, with an extent that each run is given."""
    modules: dict[str, ir.Module] = {}
    target, options = load_target("mps2-an521"), Options(name="pair", batch_max=2)
    compile_model(DIGITS, target, options, after_pass=modules.__setitem__)
    module = modules["share_kernels"]
    kernels = (replace(k, device="core1") if "depthwise" in k.name else k for k in module.kernels)
    compiled = compile_model(replace(module, kernels=tuple(kernels)), target, Options(name="pair"))
    write_bundle(compiled.files, tmp_path / "pair")
    check_bundle(tmp_path / "pair")
    spans = [span for step in compiled.plan.steps for span in step.spans]
    assert spans
    assert all(span.size_bytes is not None for span in spans)
    source = (tmp_path / "pair" / SOURCE).read_text()
    found = re.search(r"lend\(.*, (\(uint32_t\)\S+) \* (\d+)u, ", source)
    assert found is not None
    change_file(tmp_path / "pair", SOURCE, found[0], found[0].replace(f"{found[1]} * ", ""))
    assert f"it has {found[2]} B, in the plan {2 * int(found[2])} B" in refusal(tmp_path / "pair")
