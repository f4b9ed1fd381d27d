"""Requirements C1 and C5: one function in every calling form, and combinations of forms and devices that are refused.

The program calls kernels of its own and a function of the application, whose C is written once; numpy says what comes
out.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.ir.packed import Form
from bytewright.lower.calling_forms import COMBINATIONS, Combination
from bytewright.options import Options
from support import two_devices
from support.c_program import SANITIZED, WARNINGS, run_c
from support.packed_program import APPLICATION, INPUT, PROGRAM, RUN, bundle, compiled, result

DOCUMENT = Path(__file__).parents[2] / "docs" / "c-interface.md"
FORMS = tuple(Form)
COMPILERS = ("gcc", "clang")


@pytest.mark.parametrize(("calling_form", "entry_form"), list(product(FORMS, FORMS)))
def test_c1_a_driver_is_written_once_for_all_forms(
    tmp_path: Path, calling_form: Form, entry_form: Form
) -> None:
    """The same function of the application, whose C knows nothing of forms, in each of them."""
    folder = bundle(tmp_path, calling_form=calling_form, entry_form=entry_form)
    source = tmp_path / "app.c"
    source.write_text(APPLICATION)
    for compiler in COMPILERS:
        flags = (*WARNINGS, "-O2")
        options = BuildOptions(flags=flags, compiler=compiler, sources=(source,), sanitize=compiler == "gcc")
        assert np.array_equal(run_bundle(folder, [INPUT], options=options).outputs[0], result(INPUT))
    assert check_bundle(folder).num_steps == 3


def test_c1_kernels_are_the_same_bytes_in_every_form() -> None:
    """No kernel is given a resource, or anything else that a form adds."""
    made = [
        compiled(calling_form=calling, entry_form=entry).files for calling, entry in product(FORMS, FORMS)
    ]
    sources = {files["src/mix_kernels.c"] for files in made}
    assert len(sources) == 1
    assert {files["include/mix_externals.h"] for files in made} == {made[0]["include/mix_externals.h"]}
    assert not any(b"packed" in content.lower() for content in made[0].values())
    (source,) = sources
    assert b"resource" not in source


def test_c1_the_resource_is_read_by_nobody(tmp_path: Path) -> None:
    """Every mention of it in the C is that of an argument or of its being left alone; and it may be any address."""
    folder = bundle(tmp_path, calling_form=Form.PACKED, entry_form=Form.PACKED)
    text = (folder / "src" / "mix_packed.c").read_text()
    uses = re.findall(r".*\bresource\b.*", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    assert {re.sub(r".*(\(void\)resource;|void \*resource\).*)", r"\1", use).strip() for use in uses} == {
        "(void)resource;",
        "void *resource) {",
    }
    body = RUN + 'SHOW("anything", run_packed(3, codes, (void *)(uintptr_t)1)); SHOW("y", y[0]); return 0; }'
    shown = run_c(folder, f"{APPLICATION}{body}", tmp_path / "program")
    assert (shown["anything"], shown["y"]) == (0, result(INPUT)[0])


def test_c1_a_packed_form_refuses_other_arguments_than_its_own(tmp_path: Path) -> None:
    folder = bundle(tmp_path, calling_form=Form.PACKED, entry_form=Form.PACKED)
    body = """
    SHOW("right", run_packed(3, codes, NULL));
    SHOW("fewer", run_packed(2, codes, NULL));
    SHOW("more", run_packed(4, codes, NULL));
    SHOW("negative", run_packed(-1, codes, NULL));
    codes[1] = MIX_ARG_INT;
    SHOW("type", run_packed(3, codes, NULL));
    SHOW("no codes", run_packed(3, NULL, NULL));
    SHOW("no arguments", mix_run_packed(NULL, codes, 3, NULL, NULL, NULL));
    mix_argument numbers[6] = {
        {.constant = x}, {.pointer = y}, {.real = 0.5}, {.integer = -3}, {.pointer = work}, {.pointer = more}};
    int32_t kinds[6] = {3, 3, 2, 0, 3, 3}, out_code = 77;
    SHOW("extern", mix_extern_app_reverse_packed(numbers, kinds, 6, NULL, &out_code, NULL));
    SHOW("out code", out_code);
    mix_argument shifted[4] = {{.constant = x}, {.pointer = y}, {.integer = 1}, {.integer = 1}};
    int32_t pointers_and_numbers[4] = {3, 3, 0, 0};
    SHOW("number", mix_shift_packed(shifted, pointers_and_numbers, 4, NULL, NULL, NULL));
    SHOW("shifted", y[1]);
    shifted[2].integer = 32768;
    SHOW("too large", mix_shift_packed(shifted, pointers_and_numbers, 4, NULL, NULL, NULL));
    shifted[2].integer = 1;
    shifted[3].integer = 2;
    out_code = 77;
    SHOW("no truth value", mix_shift_packed(shifted, pointers_and_numbers, 4, NULL, &out_code, NULL));
    SHOW("out code of an error", out_code);
    return 0;
}
"""
    shown = run_c(folder, f"{APPLICATION}{RUN}{body}", tmp_path / "program")
    other, null = -13, -1
    assert shown == {
        "set": 0,
        "right": 0,
        "fewer": other,
        "more": other,
        "negative": other,
        "type": other,
        "no codes": null,
        "no arguments": null,
        "extern": 0,
        "out code": 4,
        "number": 0,
        "shifted": int(INPUT[1]) + 1,
        "too large": other,
        "no truth value": other,
        "out code of an error": 77,
    }


def test_c1_a_call_by_name_needs_a_registry_that_no_run_is_given() -> None:
    """What calls the model by name is the application's: it passes what the packed form takes, and any resource."""
    with pytest.raises(CompileError) as caught:
        compiled(PROGRAM.replace("call_extern mix_twice", "call_packed mix_twice"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW116", "call_cpacked")


# C5: what goes together

WORDS = {"one device": False, "several devices": True}
SEVERAL = two_devices.PROGRAM
TWO_RUNS = r"""
int main(void)
{
    prepare();
    restart(0);
    SHOW("run", run());
    for (int i = 0; i < 32; ++i) {
        printf("y.%d %d\n", i, y[i]);
    }
    finish();
    return 0;
}
"""


def test_c5_the_table_of_the_document_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| (plain|packed) \| (plain|packed) \| (one device|several devices) \| (compiled|BW\d+)\b.*\|$",
        DOCUMENT.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    stated = {
        Combination(Form(calling), Form(entry), WORDS[devices]): None if what == "compiled" else what
        for calling, entry, devices, what in rows
    }
    assert len(rows) == len(stated)
    assert stated == dict(COMBINATIONS)


def test_c5_the_table_has_every_combination() -> None:
    every = {Combination(*cell) for cell in product(FORMS, FORMS, (False, True))}
    assert set(COMBINATIONS) == every


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("cell", [cell for cell, code in COMBINATIONS.items() if code is None], ids=str)
def test_c5_what_goes_together_compiles_and_is_right(
    tmp_path: Path, cell: Combination, compiler: str
) -> None:
    flags = SANITIZED if compiler == "gcc" else ("-O2", "-Wno-unused-function", "-Wno-string-conversion")
    if cell.several_devices:
        options = Options(calling_form=cell.calling_form, entry_form=cell.entry_form)
        folder = two_devices.bundle(tmp_path / "bundle", options=options)
        source = two_devices.DRIVERS + two_devices.APPLICATION + TWO_RUNS
        shown = run_c(folder, source, tmp_path / "program", flags, compiler)
        expected = two_devices.evaluated(SEVERAL, {"x": two_devices.INPUT})["y"]
        assert shown.pop("run") == 0
        assert [shown[f"y.{index}"] for index in range(32)] == expected.tolist()
        entry = (folder / "src" / "pair.c").read_text()
        assert ("pair_shift_packed(" in entry) == (cell.calling_form is Form.PACKED)
        assert "pair_filter_packed" not in entry  # it is handed over
        return
    folder = bundle(tmp_path, calling_form=cell.calling_form, entry_form=cell.entry_form)
    run = "run_packed(3, codes, NULL)" if cell.entry_form is Form.PACKED else "mix_run(&context, &in, &out)"
    prelude = RUN
    if cell.entry_form is Form.PLAIN:  # there is no packed run to call
        prelude = re.sub(r"static int32_t run_packed.*?\n}\n", "", RUN, flags=re.DOTALL)
        prelude = prelude.replace('#include "mix_packed.h"', "")
        prelude = re.sub(
            r" +int32_t codes.*", "    const mix_inputs in = {x};\n    const mix_outputs out = {y};", prelude
        )
    body = "".join(f'SHOW("y.{index}", y[{index}]);' for index in range(8))
    text = f'{APPLICATION}{prelude} SHOW("run", {run}); {body} return 0; }}'
    shown = run_c(folder, text, tmp_path / "program", flags, compiler)
    assert (shown["set"], shown["run"]) == (0, 0)
    assert [shown[f"y.{index}"] for index in range(8)] == result(INPUT).tolist()
    assert (folder / "src" / "mix_packed.c").exists() == (Form.PACKED in (cell.calling_form, cell.entry_form))


@pytest.mark.parametrize("cell", [cell for cell, code in COMBINATIONS.items() if code], ids=str)
def test_c5_what_does_not_go_together_is_an_error_that_names_both(cell: Combination) -> None:
    assert cell.several_devices
    with pytest.raises(CompileError) as caught:
        two_devices.compiled(options=Options(calling_form=cell.calling_form, entry_form=cell.entry_form))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == COMBINATIONS[cell] == "BW728"
    assert "--entry-form packed" in diagnostic.message
    assert "other devices than 'cpu'" in diagnostic.message
    assert diagnostic.message.endswith("'dma', 'core1'")
    assert diagnostic.help == "--entry-form plain"
    helped = two_devices.compiled(options=Options(calling_form=cell.calling_form))
    assert "include/pair.h" in helped.files


def test_c5_a_packed_call_by_hand_of_what_another_device_runs_is_an_error() -> None:
    text = SEVERAL.replace("call_extern pair_filter", "call_cpacked pair_filter")
    with pytest.raises(CompileError) as caught:
        two_devices.compiled(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW729"
    assert "call_cpacked and device 'core1' do not go together" in diagnostic.message
    assert diagnostic.help == "call_extern"
    assert diagnostic.where is not None
    assert "call_cpacked pair_filter(&lent" in diagnostic.where
    # and so is one of a job of another device
    with pytest.raises(CompileError, match="BW729"):
        two_devices.compiled(SEVERAL.replace("call_extern pair_fetch", "call_cpacked pair_fetch"))
