"""Requirements on pools and the application interface, each checked by a C program that uses a bundle."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.c_program import run_c
from support.kws_program import (
    ALIGN,
    NOT_SET,
    NULL,
    OK,
    OVERLAP,
    RANGE,
    RUN,
    SIZE,
    expected_output,
    output_of,
    two_workspaces,
)
from support.shared_models import BOARD, HOST, KWS, bundle, compiled, target_with

pytestmark = pytest.mark.run


def test_the_expected_output_is_not_trivial() -> None:
    assert len(set(expected_output())) > 1


def test_p5_sizes_alignments_and_bytes_of_pools_are_macros() -> None:
    """One size and one alignment macro for each pool, as plan.json states them; none for a pool that is empty."""
    for target in (load_target(HOST), load_target(BOARD), two_workspaces()):
        result = compiled(KWS, target)
        header = result.files["include/kws_ref_model.h"].decode()
        macros = dict(re.findall(r"#define (\w+) (\d+)$", header, re.MULTILINE))
        for pool in result.document["pools"]:
            stem = f"KWS_REF_MODEL_{pool['c_name'].upper()}_{pool['role'].upper()}"
            if not pool["used_bytes"]:
                source = result.files["src/kws_ref_model.c"].decode()
                # But for the addresses of the memory of that name, in which an input may lie.
                of_pool = rf"_{pool['c_name']}(?!_(?:BASE|ALIAS_\d)\b)"
                assert re.search(of_pool, source, re.IGNORECASE) is None
                assert stem not in header
                continue
            assert int(macros[f"{stem}_SIZE"]) == pool["used_bytes"]
            assert int(macros[f"{stem}_ALIGN"]) == pool["alignment"]


def test_p5_the_application_declares_the_arrays_in_sections_of_its_choice(tmp_path: Path) -> None:
    """Workspace and parameters are the application's arrays; the parameters' bytes come from the initialiser."""
    source = """
#define IN(name) __attribute__((section(name)))
extern const char __start_my_workspace[], __stop_my_workspace[], __start_my_parameters[], __stop_my_parameters[];

static uint8_t arena[@M@_RAM_WORKSPACE_SIZE] @M@_ALIGNED(@M@_RAM_WORKSPACE_ALIGN) IN("my_workspace");
static const uint8_t weights[] @M@_ALIGNED(@M@_RODATA_PARAMETERS_ALIGN) IN("my_parameters") = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
};

int main(void)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {{arena, sizeof arena}};
    const @m@_parameters parameters = {weights};

    SHOW("arena in section", (const char *)arena >= __start_my_workspace && (const char *)arena < __stop_my_workspace);
    SHOW("weights in section",
         (const char *)weights >= __start_my_parameters && (const char *)weights < __stop_my_parameters);
    SHOW("size of weights", sizeof weights == @M@_RODATA_PARAMETERS_SIZE);
    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    SHOW("set parameters", @m@_set_parameters(&context, &parameters));
    SHOW("verify", @m@_verify_parameters(&context));
    SHOW("run", run(&context));
    show_output();
    return 0;
}
"""
    folder = bundle(KWS, target_with(HOST, "rodata=caller"))
    shown = run_c(folder, RUN + source, tmp_path)
    assert (shown["arena in section"], shown["weights in section"], shown["size of weights"]) == (1, 1, 1)
    assert (shown["set workspaces"], shown["set parameters"], shown["verify"]) == (OK, OK, OK)
    assert shown["run"] == OK
    assert output_of(shown) == expected_output()


def test_p5_or_the_generated_c_declares_them(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};

    SHOW("run", run(&context));
    show_output();
    return 0;
}
"""
    folder = bundle(KWS, target_with(HOST, "ram=generated"))
    shown = run_c(folder, RUN + source, tmp_path)
    assert shown["run"] == OK
    assert output_of(shown) == expected_output()
    header = (folder / "include" / "kws_ref_model.h").read_text()
    assert "set_workspaces" not in header
    assert "one run at a time" in header


def test_p9_an_arena_of_exactly_the_size_works_and_one_byte_less_is_refused(tmp_path: Path) -> None:
    """The sanitizers hold the blocks to their sizes; both pools are tried."""
    source = """
int main(void)
{
    @m@_context context = {0};
    @m@_workspaces workspaces = {
        {block(@M@_FAST_WORKSPACE_ALIGN, @M@_FAST_WORKSPACE_SIZE), @M@_FAST_WORKSPACE_SIZE},
        {block(@M@_SLOW_WORKSPACE_ALIGN, @M@_SLOW_WORKSPACE_SIZE), @M@_SLOW_WORKSPACE_SIZE}};

    SHOW("fast size", workspaces.fast.size_bytes);
    SHOW("slow size", workspaces.slow.size_bytes);
    workspaces.fast.size_bytes -= 1;
    SHOW("fast short", @m@_set_workspaces(&context, &workspaces));
    workspaces.fast.size_bytes += 1;
    workspaces.slow.size_bytes -= 1;
    SHOW("slow short", @m@_set_workspaces(&context, &workspaces));
    SHOW("run after refusal", run(&context));
    workspaces.slow.size_bytes += 1;
    SHOW("exact", @m@_set_workspaces(&context, &workspaces));
    SHOW("run", run(&context));
    show_output();
    free(workspaces.fast.base);
    free(workspaces.slow.base);
    return 0;
}
"""
    target = two_workspaces()
    shown = run_c(bundle(KWS, target), RUN + source, tmp_path)
    pools = {pool["name"]: pool for pool in compiled(KWS, target).document["pools"]}
    assert shown["fast size"] == pools["fast"]["used_bytes"] == 8000
    assert shown["slow size"] == pools["slow"]["used_bytes"] == 8000
    assert (shown["fast short"], shown["slow short"]) == (SIZE, SIZE)
    assert shown["run after refusal"] == NOT_SET
    assert (shown["exact"], shown["run"]) == (OK, OK)
    assert output_of(shown) == expected_output()


def test_p9_every_byte_of_the_arena_is_needed() -> None:
    """The reported size is the end of the last buffer, and the planner proved that there is no smaller plan."""
    document = compiled(KWS, two_workspaces()).document
    for pool in document["pools"]:
        if pool["role"] == "workspace":
            ends = [
                buffer["place"]["offset"] + buffer["size_bytes"]
                for buffer in document["buffers"]
                if buffer["place"]["kind"] == "planned" and buffer["place"]["name"] == pool["name"]
            ]
            assert pool["used_bytes"] == max(ends)
            assert pool["optimal"]


def test_p10_bad_arenas_are_refused_at_set_time_each_with_its_own_code(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(64, 32768);
    const @m@_workspaces good = {{arena, 8000}, {arena + 8000, 8000}};
    @m@_workspaces bad;

    bad = good;
    bad.fast.base = NULL;
    SHOW("missing", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.slow.base = NULL;
    SHOW("second missing", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.fast.size_bytes = 0;
    SHOW("too small", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.slow.base = arena + 16001;
    SHOW("odd", @m@_set_workspaces(&context, &bad));
    bad.slow.base = arena + 16008;
    SHOW("aligned to 8 only", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.slow.base = arena;
    SHOW("same", @m@_set_workspaces(&context, &bad));
    bad.slow.base = arena + 7984;
    SHOW("sixteen bytes shared", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.fast.size_bytes = 8001;
    SHOW("one byte shared", @m@_set_workspaces(&context, &bad));
    bad = good;
    bad.fast.base = arena + 8000;
    bad.slow.base = arena + 24000 - 16016;
    SHOW("shared from behind", @m@_set_workspaces(&context, &bad));
    SHOW("nothing was set", run(&context));
    SHOW("good", @m@_set_workspaces(&context, &good));
    SHOW("run", run(&context));
    show_output();
    free(arena);
    return 0;
}
"""
    shown = run_c(bundle(KWS, two_workspaces()), RUN + source, tmp_path)
    assert output_of(shown) == expected_output()
    assert {name: code for name, code in shown.items() if not name.startswith("output")} == {
        "missing": NULL,
        "second missing": NULL,
        "too small": SIZE,
        "odd": ALIGN,
        "aligned to 8 only": ALIGN,
        "same": OVERLAP,
        "sixteen bytes shared": OVERLAP,
        "one byte shared": OVERLAP,
        "shared from behind": OVERLAP,
        "nothing was set": NOT_SET,
        "good": OK,
        "run": OK,
    }


def test_p10_arenas_outside_of_the_targets_memory_are_refused(tmp_path: Path) -> None:
    """Addresses of the board, checked on the host: nothing is read or written at set time."""
    source = """
static int32_t set(uintptr_t dtcm, uintptr_t isram)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {{(void *)dtcm, @M@_DTCM_WORKSPACE_SIZE},
                                       {(void *)isram, @M@_ISRAM_WORKSPACE_SIZE}};
    return @m@_set_workspaces(&context, &workspaces);
}

int main(void)
{
    SHOW("base", set(0x20000000u, 0x21000000u));
    SHOW("alias", set(0x30000000u, 0x31000000u));
    SHOW("swapped", set(0x21000000u, 0x20000000u));
    SHOW("end", set(0x20080000u - @M@_DTCM_WORKSPACE_SIZE, 0x21400000u - @M@_ISRAM_WORKSPACE_SIZE));
    SHOW("past the end", set(0x20080010u - @M@_DTCM_WORKSPACE_SIZE, 0x21000000u));
    SHOW("second past the end", set(0x20000000u, 0x21400010u - @M@_ISRAM_WORKSPACE_SIZE));
    SHOW("before", set(0x1FFFFFF0u, 0x21000000u));
    SHOW("end of all addresses", set((uintptr_t)-16, 0x21000000u));
    return 0;
}
"""
    pools = (parse_pool_option("dtcm=8000"), parse_pool_option("isram"))
    target = apply_overrides(load_target(BOARD), Overrides(workspace=pools))
    flags = ("-O1", "-fsanitize=address,undefined", "-DKWS_REF_MODEL_CHECK_RANGE=1")
    shown = run_c(bundle(KWS, target), source, tmp_path, flags)
    assert shown == {
        "base": OK,
        "alias": OK,
        "swapped": RANGE,
        "end": OK,
        "past the end": RANGE,
        "second past the end": RANGE,
        "before": RANGE,
        "end of all addresses": RANGE,
    }


def test_p11_run_before_the_set_calls_is_an_error(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    uint8_t *const weights = block(@M@_RODATA_PARAMETERS_ALIGN, @M@_RODATA_PARAMETERS_SIZE);
    static const uint8_t bytes[] = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
    };
    const @m@_workspaces workspaces = {.ram = {arena, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_parameters parameters = {.rodata = weights};

    memcpy(weights, bytes, sizeof bytes);
    SHOW("verify nothing", @m@_verify_parameters(&context));
    SHOW("nothing set", run(&context));
    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    SHOW("no parameters", run(&context));
    memset(&context, 0, sizeof context);
    SHOW("set parameters", @m@_set_parameters(&context, &parameters));
    SHOW("no workspaces", run(&context));
    SHOW("set workspaces again", @m@_set_workspaces(&context, &workspaces));
    SHOW("run", run(&context));
    show_output();
    free(arena);
    free(weights);
    return 0;
}
"""
    shown = run_c(bundle(KWS, target_with(HOST, "rodata=caller")), RUN + source, tmp_path)
    assert output_of(shown) == expected_output()
    assert {name: code for name, code in shown.items() if not name.startswith("output")} == {
        "verify nothing": NOT_SET,
        "nothing set": NOT_SET,
        "set workspaces": OK,
        "no parameters": NOT_SET,
        "set parameters": OK,
        "no workspaces": NOT_SET,
        "set workspaces again": OK,
        "run": OK,
    }


@pytest.mark.parametrize("target", [HOST, BOARD, "two", "blob"])
def test_p11_structs_have_one_named_member_each(target: str) -> None:
    chosen = {"two": two_workspaces(), "blob": target_with(HOST, "rodata=caller")}
    result = compiled(KWS, chosen.get(target) or load_target(target))
    header = result.files["include/kws_ref_model.h"].decode()
    structs = {
        name: re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", body))
        for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", header, re.DOTALL)
    }
    pools = [pool for pool in result.document["pools"] if pool["used_bytes"]]
    workspaces = [pool["c_name"] for pool in pools if pool["role"] == "workspace"]
    blobs = [p["c_name"] for p in pools if (p["role"], p["provider"]) == ("parameters", "caller")]
    assert structs["kws_ref_model_inputs"] == [port["c_name"] for port in result.document["inputs"]]
    assert structs["kws_ref_model_outputs"] == [port["c_name"] for port in result.document["outputs"]]
    assert structs["kws_ref_model_workspaces"] == workspaces
    assert structs.get("kws_ref_model_parameters", []) == blobs
    assert structs["kws_ref_model_context"] == [*workspaces, *blobs]


def test_two_workspaces_give_the_references_output_at_o3(tmp_path: Path) -> None:
    """Bytes of both pools are reused with other element types."""
    source = """
int main(void)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {{block(16, 8000), 8000}, {block(16, 8000), 8000}};

    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("run", run(&context));
    show_output();
    return 0;
}
"""
    shown = run_c(bundle(KWS, two_workspaces()), RUN + source, tmp_path, ("-O3", "-march=native"))
    assert (shown["set"], shown["run"]) == (OK, OK)
    np.testing.assert_array_equal(output_of(shown), expected_output())
