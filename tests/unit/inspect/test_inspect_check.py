"""`check_bundle`: it accepts what was compiled, and finds each kind of change, one test a kind."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.c_source import CSource, read_bytes
from bytewright.inspect.check import check_bundle
from bytewright.inspect.read_entry import read_entry
from bytewright.record.names import Names
from bytewright.record.plan_file import (
    SCHEMA,
    UNHASHED_KEYS,
    UNHASHED_KEYS_OF_BUFFERS,
    UNHASHED_KEYS_OF_STEPS,
    read_plan,
)
from bytewright.target import load_target
from support.digits_bundle import change_file, digits_document, two_by_two, write_digits, write_document
from support.random_networks import random_network
from support.tiers import some

Document = dict[str, Any]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_digits(tmp_path / "digits")


def faults(directory: Path) -> dict[str, str]:
    """Code -> all its notes, of a check that must fail."""
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    assert caught.value.exit_code == 4
    return {d.code: "\n".join(d.notes) for d in caught.value.diagnostics}


def plan_faults(directory: Path, change: Callable[[Document], None]) -> str:
    """What is said of a plan that was changed and hashed again."""
    document = digits_document()
    change(document)
    write_document(directory, document)
    return faults(directory)["BW401"]


def buffer(document: Document, name: str) -> Document:
    return next(b for b in document["buffers"] if b["name"] == name)


@pytest.mark.parametrize("target", ["host", "generic-cortex-m", "mps2-an386", "mps2-an500", "mps3-an547"])
@pytest.mark.parametrize("caller_parameters", [False, True])
def test_every_bundle_as_compiled_verifies(tmp_path: Path, target: str, caller_parameters: bool) -> None:
    verdict = check_bundle(write_digits(tmp_path / "digits", target, caller_parameters))
    document = digits_document(target, caller_parameters)
    assert verdict.num_steps == len(document["steps"])
    assert verdict.num_files == len(document["files"])
    assert verdict.num_buffers == sum(
        b["place"]["kind"] in ("planned", "constant") for b in document["buffers"]
    )


def test_a_model_without_workspace_and_parameters_verifies(tmp_path: Path) -> None:
    (tmp_path / "two.tflite").write_bytes(two_by_two())
    compiled = compile_model(tmp_path / "two.tflite", load_target("host"))
    write_bundle(compiled.files, tmp_path / "two")
    assert check_bundle(tmp_path / "two").num_buffers == 0


def test_an_instruction_that_asks_for_doubles_verifies(tmp_path: Path) -> None:
    """A layer of int16 for MVE, rounded in double precision where the core has it."""
    path = tmp_path / "words.tflite"
    path.write_bytes(random_network(13, "int16").content)
    compiled = compile_model(path, load_target("mps3-an547"))
    assert b"#if defined(__ARM_FP) && (__ARM_FP & 8)" in compiled.files["src/words_kernels.c"]
    write_bundle(compiled.files, tmp_path / "words")
    assert check_bundle(tmp_path / "words").num_steps == len(compiled.plan.steps)


# --- the plan


def test_overlapping_buffers_are_found(bundle: Path) -> None:
    def overlap(document: Document) -> None:
        for b in document["buffers"]:
            if b["place"]["kind"] == "planned":
                b["place"]["offset"] = 0

    assert "two coexisting buffers share bytes" in plan_faults(bundle, overlap)


def test_parameters_that_are_loaded_otherwise_than_the_target_says_are_found(bundle: Path) -> None:
    def change(document: Document) -> None:
        pool = next(p for p in document["pools"] if p["role"] == "parameters")
        pool |= {"load": "copy", "load_memory": "ram"}

    message = "is loaded by 'copy' from ram in the plan, by 'linker' from None in the target"
    assert message in plan_faults(bundle, change)


def test_a_plan_that_says_nothing_of_loading_leaves_it_to_the_linker(bundle: Path) -> None:
    document = digits_document()
    for pool in document["pools"]:
        if pool["role"] == "parameters":
            del pool["load"], pool["load_memory"]
    write_document(bundle, document)
    loads = {(pool.load, pool.load_memory) for pool in read_plan(bundle).pools.values()}
    assert loads == {("linker", None)}


def test_a_capacity_below_the_use_is_found(bundle: Path) -> None:
    def shrink(document: Document) -> None:
        document["pools"][0]["capacity_bytes"] = 1024
        document["target_description"]["workspace"][0]["size"] = 1024

    assert "past the pool's capacity" in plan_faults(bundle, shrink)


def test_a_misaligned_offset_is_found(bundle: Path) -> None:
    def move(document: Document) -> None:
        name = max(
            (b for b in document["buffers"] if b["place"]["kind"] == "planned"),
            key=lambda b: b["place"]["offset"],
        )["name"]
        buffer(document, name)["place"]["offset"] += 1

    assert "not a multiple of the alignment" in plan_faults(bundle, move)


def test_a_short_lifetime_is_found(bundle: Path) -> None:
    def shorten(document: Document) -> None:
        lower, upper = buffer(document, "conv2d_0/out")["live"]
        buffer(document, "conv2d_0/out")["live"] = [lower, upper - 1]

    assert "touches 'conv2d_0/out', which lives from" in plan_faults(bundle, shorten)


def test_an_empty_lifetime_is_found(bundle: Path) -> None:
    def empty(document: Document) -> None:
        buffer(document, "conv2d_0/out")["live"] = [2, 2]

    assert "conv2d_0/out" in plan_faults(bundle, empty)


def test_a_lifetime_past_the_clock_is_found(bundle: Path) -> None:
    def lengthen(document: Document) -> None:
        buffer(document, "conv2d_0/out")["live"][1] = 10**6

    assert "the clock ends at" in plan_faults(bundle, lengthen)


def test_reading_before_writing_is_found(bundle: Path) -> None:
    def unwrite(document: Document) -> None:
        step = document["steps"][0]
        for name in step["writes"]:
            del step["alive"][name]
        step["writes"] = []

    assert "which no step before it has written" in plan_faults(bundle, unwrite)


def test_an_output_that_no_step_writes_is_found(bundle: Path) -> None:
    def unwrite(document: Document) -> None:
        step = document["steps"][-1]
        for name in step["writes"]:
            del step["alive"][name]
        step["writes"] = []

    assert "is written by no step" in plan_faults(bundle, unwrite)


def test_what_a_loop_uses_lives_for_all_of_its_turns(bundle: Path) -> None:
    """The same steps, said to come again: what is handed from one to the next dies too early then."""

    def turn(document: Document) -> None:
        document["loops"] = [{"steps": [0, len(document["steps"]) - 1], "inside": []}]

    assert "'conv2d_0/out' lives from" in plan_faults(bundle, turn)


def test_what_is_born_in_a_loop_is_used_there_alone(bundle: Path) -> None:
    def turn(document: Document) -> None:
        document["loops"] = [{"steps": [0, 0], "inside": ["conv2d_0/out"]}]

    faults = plan_faults(bundle, turn)
    assert "'conv2d_0/out' is born in the loop of steps 0 to 0, and touched outside of it" in faults


def test_a_loop_of_steps_that_do_not_exist_is_found(bundle: Path) -> None:
    def turn(document: Document) -> None:
        document["loops"] = [{"steps": [5, 900], "inside": []}]

    assert "a loop has the steps 5 to 900, which do not exist" in plan_faults(bundle, turn)


def test_a_place_outside_of_the_candidates_is_found(bundle: Path) -> None:
    def forbid(document: Document) -> None:
        buffer(document, "conv2d_0/out")["candidates"] = ["isram"]

    assert "is in pool 'dtcm', which is not one of its candidates" in plan_faults(bundle, forbid)


def test_a_scope_that_is_not_the_place_is_found(bundle: Path) -> None:
    def rename(document: Document) -> None:
        buffer(document, "conv2d_0/out")["scope"] = "global.isram"

    assert "its scope is 'global.isram'" in plan_faults(bundle, rename)


def test_a_kind_of_place_that_the_role_does_not_have_is_found(bundle: Path) -> None:
    def to_stack(document: Document) -> None:
        buffer(document, "conv2d_0/out")["place"] = {"kind": "stack", "name": "cpu", "offset": None}

    assert "tensor 'conv2d_0/out' has a place of kind 'stack'" in plan_faults(bundle, to_stack)


def test_a_pool_of_another_role_is_found(bundle: Path) -> None:
    def to_flash(document: Document) -> None:
        buffer(document, "conv2d_0/out")["place"]["name"] = "flash"

    assert "has no offset in a workspace pool" in plan_faults(bundle, to_flash)


def test_a_device_that_may_not_use_the_pool_is_found(bundle: Path) -> None:
    def bar(document: Document) -> None:
        description = document["target_description"]
        description["device"]["npu"] = {"isa": "npu", "reach": ["dtcm", "flash"]}
        description["workspace"][0]["devices"] = ["npu"]

    text = plan_faults(bundle, bar)
    assert "device 'cpu' touches 'conv2d_0/out' but may not use pool 'dtcm'" in text


def test_a_pool_that_the_target_does_not_have_is_found(bundle: Path) -> None:
    def rename(document: Document) -> None:
        document["pools"][1]["name"] = "elsewhere"

    assert "the target has no pool 'elsewhere'" in plan_faults(bundle, rename)


def test_a_limit_that_is_not_the_targets_is_found(bundle: Path) -> None:
    def widen(document: Document) -> None:
        document["pools"][0]["capacity_bytes"] *= 2

    assert "in the target" in plan_faults(bundle, widen)


def test_a_top_that_is_not_the_buffers_is_found(bundle: Path) -> None:
    def lower(document: Document) -> None:
        document["pools"][0]["used_bytes"] -= 16

    assert "its buffers end at" in plan_faults(bundle, lower)


def test_an_impossible_bound_and_a_false_claim_are_found(bundle: Path) -> None:
    def claim(document: Document) -> None:
        document["pools"][0]["lower_bound_bytes"] //= 2

    text = plan_faults(bundle, claim)
    assert "are alive at once" in text
    assert "claims to be optimal" in text


def test_a_pool_with_less_alignment_than_a_buffer_is_found(bundle: Path) -> None:
    def align(document: Document) -> None:
        buffer(document, "conv2d_0/out")["alignment"] = 32

    assert "is aligned to 16, a buffer in it to 32" in plan_faults(bundle, align)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("limit_bytes", 10**6, "is not the target's"),
        ("size_bytes", 10**6, "its limit is"),
        ("planned_bytes", 500, "the arrays of its path have"),
    ],
)
def test_a_wrong_stack_is_found(bundle: Path, key: str, value: int, text: str) -> None:
    def change(document: Document) -> None:
        document["stack"]["cpu"][key] = value

    assert text in plan_faults(bundle, change)


def test_steps_out_of_order_are_found(bundle: Path) -> None:
    def swap(document: Document) -> None:
        document["steps"][0], document["steps"][1] = document["steps"][1], document["steps"][0]

    assert "step 1 has the ticks" in plan_faults(bundle, swap)


def test_a_step_on_an_unknown_device_or_buffer_is_found(bundle: Path) -> None:
    def change(document: Document) -> None:
        document["steps"][0]["device"] = "gpu"
        document["steps"][1]["reads"].append("nothing")

    text = plan_faults(bundle, change)
    assert "runs on 'gpu', which the target does not have" in text
    assert "names 'nothing', which is no buffer of the plan" in text


def test_an_output_that_dies_early_is_found(bundle: Path) -> None:
    def kill(document: Document) -> None:
        (output,) = [b for b in document["buffers"] if b["role"] == "output"]
        output["live"][1] -= 1

    assert "does not live to the end" in plan_faults(bundle, kill)


def test_a_caller_tensor_that_does_not_exist_is_found(bundle: Path) -> None:
    def rename(document: Document) -> None:
        document["inputs"][0]["c_name"] = "picture"

    assert "is the caller's 'image', which is no input of its size" in plan_faults(bundle, rename)


def test_parameters_over_the_header_of_a_blob_are_found(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits", caller_parameters=True)
    document = digits_document(caller_parameters=True)
    first = min(
        (b for b in document["buffers"] if b["role"] == "parameter"), key=lambda b: b["place"]["offset"]
    )
    assert first["place"]["offset"] == 32
    first["place"]["offset"] = 16
    write_document(folder, document)
    assert "share bytes" in faults(folder)["BW401"]


# --- the files


def test_a_changed_plan_file_is_found_by_its_hash(bundle: Path) -> None:
    document = digits_document()
    document["buffers"][0]["reason"] = "because I say so"
    write_document(bundle, document, rehash=False)
    assert "plan.json was changed" in faults(bundle)["BW402"]


def test_a_changed_file_is_found_by_its_digest(bundle: Path) -> None:
    path = bundle / "src" / "digits_kernels.c"
    path.write_text(path.read_text() + "\n")
    assert faults(bundle) == {"BW402": "src/digits_kernels.c was changed"}


def test_a_missing_file_is_found(bundle: Path) -> None:
    (bundle / "src" / "digits_kernels.c").unlink()
    assert "src/digits_kernels.c cannot be read" in faults(bundle)["BW402"]


def test_files_of_other_compiles_are_found(bundle: Path) -> None:
    (bundle / "src" / "other.c").write_text("int other;\n")
    assert faults(bundle) == {"BW402": "src/other.c is not a file of this bundle"}


FOREIGN = [
    "runtime/evil.c",
    "include/string.h",
    "src/more.h",
    "src/deep/x.c",
    "notes.txt",
    ".hidden",
    "include/a.inc",
]


@pytest.mark.parametrize("path", FOREIGN)
def test_every_file_of_the_folder_must_be_listed(bundle: Path, path: str) -> None:
    (bundle / path).parent.mkdir(exist_ok=True)
    (bundle / path).write_text("")
    new_folder = {"runtime/evil.c": "runtime/", "src/deep/x.c": "src/deep/"}.get(path)
    assert faults(bundle) == {"BW402": f"{new_folder or path} is not a file of this bundle"}


def test_links_are_no_files_of_a_bundle(bundle: Path, tmp_path: Path) -> None:
    (bundle / "include" / "sys").symlink_to(tmp_path)
    (bundle / "src" / "digits.c").rename(tmp_path / "digits.c")
    (bundle / "src" / "digits.c").symlink_to(tmp_path / "digits.c")
    assert set(faults(bundle)["BW402"].split("\n")) == {
        "include/sys is not a file of this bundle",
        "src/digits.c is not a file of this bundle",
        "src/digits.c cannot be read: it is no regular file",
    }


def test_a_pipe_in_place_of_a_source_is_not_waited_for(bundle: Path) -> None:
    (bundle / "src" / "digits.c").unlink()
    os.mkfifo(bundle / "src" / "digits.c")
    assert "src/digits.c cannot be read: it is no regular file" in faults(bundle)["BW402"]


def test_a_file_that_is_struck_off_the_list_is_missed(bundle: Path) -> None:
    """Its edits were to be hidden by it."""
    document = digits_document()
    del document["files"]["src/digits_kernels.c"]
    (bundle / "src" / "digits_kernels.c").write_text("/* edited */")
    (bundle / "plan.json").write_text(json.dumps(document))
    assert faults(bundle)["BW402"].split("\n") == [
        "plan.json was changed: its list of files, or where it comes from, is not what 'files_hash' is of",
        "src/digits_kernels.c is not a file of this bundle",
    ]


def test_a_list_without_a_digest_of_its_own_is_refused(bundle: Path) -> None:
    document = digits_document()
    del document["files_hash"]
    (bundle / "plan.json").write_text(json.dumps(document))
    assert "its list of files, or where it comes from, is not what" in faults(bundle)["BW402"]


def test_a_path_that_leaves_the_bundle_is_refused(bundle: Path) -> None:
    document = digits_document()
    document["files"]["../secret"] = "0" * 64
    write_document(bundle, document)
    assert "../secret is not a path inside the bundle" in faults(bundle)["BW402"]


def test_the_plan_of_another_compile_is_found(bundle: Path, tmp_path: Path) -> None:
    other = write_digits(tmp_path / "other", "mps2-an386")
    (bundle / "plan.json").write_bytes((other / "plan.json").read_bytes())
    text = faults(bundle)["BW402"]
    assert "include/digits.h does not belong to this plan" in text
    assert "src/digits.c does not belong to this plan" in text


@pytest.mark.parametrize(
    ("path", "old", "new", "text"),
    [
        (
            "include/digits.h",
            "WORKSPACE_SIZE {used}",
            "WORKSPACE_SIZE {less}",
            "_WORKSPACE_SIZE {less}, the plan {used}",
        ),
        ("include/digits.h", "WORKSPACE_ALIGN 16", "WORKSPACE_ALIGN 8", "_WORKSPACE_ALIGN 8, the plan 16"),
        (
            "include/digits.h",
            "#define DIGITS_STACK_SIZE",
            "#define DIGITS_STACK_SISE",
            "does not state DIGITS_STACK",
        ),
        ("src/digits.c", "CONV2D_0__OUT = {at},", "CONV2D_0__OUT = 16,", "CONV2D_0__OUT 16, the plan {at}"),
        (
            "src/digits.c",
            "enum {\n",
            "enum {\n    DIGITS_AT_DTCM_X = 1,\n",
            "has the offset DIGITS_AT_DTCM_X",
        ),
        ("src/digits.c", "outputs->probabilities),\n", "(dtcm + DIGITS_AT_DTCM_CONV2D_0__OUT)),\n", None),
        ("src/digits.c", "    digits_conv2d_0(", "    digits_conv2d_9(", "calls"),
    ],
)
def test_c_that_says_something_else_is_found(
    bundle: Path, path: str, old: str, new: str, text: str | None
) -> None:
    if text is None:  # the last call writes elsewhere
        old = "        outputs->probabilities"
        new = "        (int8_t *)(dtcm + DIGITS_AT_DTCM_CONV2D_0__OUT)"
        text = "plan and call differ in DIGITS_AT_DTCM_CONV2D_0__OUT, outputs->probabilities"
    document = digits_document()
    used = document["pools"][0]["used_bytes"]
    values = {"used": used, "less": used - 1, "at": buffer(document, "conv2d_0/out")["place"]["offset"]}
    for name, value in values.items():
        old, new, text = (part.replace(f"{{{name}}}", str(value)) for part in (old, new, text))
    change_file(bundle, path, old, new)
    assert text in faults(bundle)["BW402"]


def test_changed_parameters_are_found(bundle: Path) -> None:
    path = "include/digits_flash_parameters.inc"
    first = (bundle / path).read_text().partition(",")[0]
    change_file(bundle, path, f"{first},", f"{(int(first) + 1) % 256},")
    assert "holds other bytes than the plan's pool 'flash'" in faults(bundle)["BW402"]
    change_file(bundle, path, ",", ",0,")
    assert "pool 'flash' uses" in faults(bundle)["BW402"]
    change_file(bundle, path, ",", ",x,")
    assert "does not hold numbers" in faults(bundle)["BW402"]


def test_a_changed_blob_is_found(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits", caller_parameters=True)
    blob = folder / "parameters" / "flash.bin"
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x77")
    text = faults(folder)["BW402"]
    assert "parameters/flash.bin was changed" in text
    assert "parameters/flash.bin holds other bytes" in text


def test_many_faults_are_cut_short(bundle: Path) -> None:
    def move(document: Document) -> None:
        for b in document["buffers"]:
            if b["place"]["kind"] == "constant":
                b["place"]["offset"] = 0

    assert plan_faults(bundle, move).splitlines()[-1].startswith("and ")


# --- what is no bundle


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("[" * 100000, "cannot be read"),
        ("[1]", "is not an object"),
        ('{"schema": 0}', "it has schema 0"),
        (json.dumps({"schema": SCHEMA}), "has no"),
    ],
)
def test_a_plan_file_that_is_none_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(CompileError) as caught:
        check_bundle(tmp_path)
    assert caught.value.diagnostics[0].code == "BW207"
    assert reason in caught.value.diagnostics[0].message


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every value, the first two entries of each list standing for all."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value[:2]))
    return [path, *(p for key, inner in entries for p in _paths(inner, (*path, key)))][0 if path else 1 :]


@pytest.mark.parametrize("wrong", some([None, -1, "x", [], {}, [-1, "x"], True, 1.5], every=2))
def test_a_value_of_the_wrong_type_is_refused_and_never_a_bug(bundle: Path, wrong: Any) -> None:
    original = digits_document()
    for path in _paths(original):
        document = json.loads(json.dumps(original))
        place = document
        for key in path[:-1]:
            place = place[key]
        if path in (("plan_hash",), ("files_hash",)) or place[path[-1]] == wrong:
            continue  # the hashes are made anew below
        place[path[-1]] = wrong
        write_document(bundle, document)
        if (
            path[0] in UNHASHED_KEYS
            or path[-1] in UNHASHED_KEYS_OF_BUFFERS
            or {*UNHASHED_KEYS_OF_STEPS}.intersection(path)
        ):  # where the plan comes from may be anything
            document["files_hash"] = original["files_hash"]
            (bundle / "plan.json").write_text(json.dumps(document))
        with pytest.raises(CompileError) as caught:
            check_bundle(bundle)
        codes = {d.code for d in caught.value.diagnostics}
        assert codes <= {"BW207", "BW401", "BW402"}, (path, codes)


def test_calls_are_read_with_their_arguments() -> None:
    source = """
int32_t m_run(m_context *context, const m_inputs *inputs, const m_outputs *outputs) {
    if (share_bytes(inputs->a, 4, outputs->b, 4)) {
        return M_ERROR_OVERLAP;
    }
    m_first(
        inputs->a,
        (int8_t *)(ram + M_AT_RAM_X),
        0);
    m_second((const int8_t *)(ram + M_AT_RAM_X), outputs->b);
    return M_OK;
}
"""
    calls = read_entry(CSource(source), Names("m")).calls
    assert [call.kernel for call in calls] == ["m_first", "m_second"]
    assert calls[0].names == {"inputs->a", "M_AT_RAM_X"}
    assert calls[1].names == {"M_AT_RAM_X", "outputs->b"}


def test_bytes_are_read_from_an_initialiser() -> None:
    assert read_bytes("1,2,\n255,\n") == b"\x01\x02\xff"
    assert read_bytes("") == b""
    for text in ("1,2", "1,256,", "a,"):
        with pytest.raises(ValueError, match=r".+"):
            read_bytes(text)
