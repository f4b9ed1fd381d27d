"""set_parameters where it copies: what is refused, with which code, and what it leaves as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bytewright.execute.host import HostModel
from bytewright.ir.border import Io
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from support.c_program import build_program, run_c
from support.kws_program import (
    ALIGN,
    HASH,
    NOT_SET,
    NULL,
    OK,
    OVERLAP,
    RANGE,
    RUN,
    SIZE,
    expected_output,
    output_of,
)
from support.loaded_parameters import (
    COMBINATIONS,
    Loader,
    Provider,
    board_target,
    host_target,
    loaded_bundle,
    several_copies,
)
from support.shared_models import ramp

MODEL_HEADER = "include/kws_ref_model.h"


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_the_interface_has_what_a_combination_needs_and_nothing_else(
    load: Loader, provider: Provider
) -> None:
    header = (loaded_bundle(host_target(load, provider)) / MODEL_HEADER).read_text()
    signature = {
        ("linker", "generated"): "",
        ("linker", "caller"): "} kws_ref_model_parameters;",
        ("copy", "generated"): "kws_ref_model_set_parameters(kws_ref_model_context *context);",
        ("copy", "caller"): "kws_ref_model_copy fast;",
    }[load, provider]
    assert signature in header
    assert ("_set_parameters(" in header) == ((load, provider) != ("linker", "generated"))
    assert ("kws_ref_model_copy" in header) == ((load, provider) == ("copy", "caller"))
    arrays = {
        ("linker", "generated"): "extern const uint8_t kws_ref_model_fast_parameters[",
        ("copy", "generated"): "extern const uint8_t kws_ref_model_fast_parameters_load[",
    }
    assert [key for key, text in arrays.items() if text in header] == [
        key for key in arrays if key == (load, provider)
    ]
    shares = "an array of the generated code, which all contexts share" in header
    assert shares == ((load, provider) == ("copy", "generated"))
    assert ("Nothing is global and mutable" in header) == (not shares)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_no_combination_has_a_warning(
    load: Loader, provider: Provider, compiler: str, tmp_path: Path
) -> None:
    """Nor where inputs and outputs leave a helper without a call."""
    for target in (host_target(load, provider), board_target(load, provider)):
        for io in (Io.CALLER, Io.WORKSPACE):
            folder = loaded_bundle(target, io=io)
            build_program(
                folder,
                "int main(void) { free(block(16, 16)); return 0; }",
                tmp_path / f"{target.name}_{io.value}",
                ("-O2",),
                compiler,
            )


BAD = """
static const uint8_t fast_bytes[] = {
#include @M@_FAST_PARAMETERS_INITIALIZER
};
static const uint8_t more_bytes[] = {
#include @M@_MORE_PARAMETERS_INITIALIZER
};
static const uint8_t rest[] @M@_ALIGNED(@M@_RODATA_PARAMETERS_ALIGN) = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
};

static uint8_t *arena;

/* Whether all of the arena is as it was filled. */
static long is_untouched(void)
{
    return arena[0] == 0x5A && memcmp(arena, arena + 1, 32767) == 0;
}

int main(void)
{
    @m@_context context = {0};
    uint8_t *const blob = block(32, sizeof fast_bytes);
    @m@_parameters good;
    @m@_parameters bad;
    @m@_workspaces workspaces;

    arena = block(64, 32768);
    memcpy(blob, fast_bytes, sizeof fast_bytes);
    workspaces.ram.base = block(32, @M@_RAM_WORKSPACE_SIZE);
    workspaces.ram.size_bytes = @M@_RAM_WORKSPACE_SIZE;
    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    good.fast.from = blob;
    good.fast.to.base = arena;
    good.fast.to.size_bytes = sizeof fast_bytes;
    good.more.from = more_bytes;
    good.more.to.base = arena + 10240;
    good.more.to.size_bytes = sizeof more_bytes;
    good.rodata = rest;

    SHOW("NULL context", @m@_set_parameters(NULL, &good));
    SHOW("NULL parameters", @m@_set_parameters(&context, NULL));
    bad = good;
    bad.fast.from = NULL;
    SHOW("NULL blob", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.to.base = NULL;
    SHOW("NULL memory", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.rodata = NULL;
    SHOW("NULL lent", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.fast.to.size_bytes -= 1;
    SHOW("SIZE fast", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.to.size_bytes -= 1;
    SHOW("SIZE more", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.fast.to.base = arena + 16;
    SHOW("ALIGN memory", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.rodata = rest + 1;
    SHOW("ALIGN lent", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.from = fast_bytes;
    SHOW("HASH of the other", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.rodata = arena;
    SHOW("HASH lent", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.to.base = arena + 9344;
    SHOW("OVERLAP memories", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.to.base = arena;
    bad.fast.to.base = arena + sizeof more_bytes - 32;
    SHOW("OVERLAP memories, other order", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.fast.to.base = blob;
    SHOW("OVERLAP own blob", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.more.to.base = blob + sizeof fast_bytes / 64 * 32;
    SHOW("OVERLAP other blob", @m@_set_parameters(&context, &bad));
    bad = good;
    bad.fast.to.base = workspaces.ram.base;
    SHOW("OVERLAP workspace", @m@_set_parameters(&context, &bad));
    SHOW("untouched", is_untouched());
    SHOW("NOT_SET run", run(&context));
    SHOW("good", @m@_set_parameters(&context, &good));
    SHOW("run", run(&context));
    SHOW("again", @m@_set_parameters(&context, &good));
    SHOW("run again", run(&context));
    bad = good;
    bad.fast.to.size_bytes -= 1;
    SHOW("SIZE after good", @m@_set_parameters(&context, &bad));
    SHOW("run after a refusal", run(&context));
    SHOW("verify", @m@_verify_parameters(&context));
    show_output();
    free(arena);
    free(blob);
    free(workspaces.ram.base);
    return 0;
}
"""


def test_each_mistake_has_its_own_code_and_copies_nothing(tmp_path: Path) -> None:
    shown = run_c(loaded_bundle(several_copies()), RUN + BAD, tmp_path)
    codes = {"NULL": NULL, "SIZE": SIZE, "ALIGN": ALIGN, "HASH": HASH, "OVERLAP": OVERLAP, "NOT_SET": NOT_SET}
    refused = {name: code for name, code in shown.items() if name.split()[0] in codes}
    assert refused == {name: codes[name.split()[0]] for name in refused}
    assert len(refused) == 18
    assert shown["untouched"] == 1
    good = ("set workspaces", "good", "run", "again", "run again", "run after a refusal", "verify")
    assert [shown[name] for name in good] == [OK] * len(good)
    assert output_of(shown) == expected_output()


RANGES = """
static const uint8_t zeros[@M@_FAST_PARAMETERS_SIZE + @M@_MIDDLE_PARAMETERS_SIZE];

/* A blob with a wrong header: what is past the checks of the memory ends there, before anything is copied. */
static int32_t set(uintptr_t dtcm, uintptr_t isram)
{
    @m@_context context = {0};
    const @m@_parameters parameters = {.fast = {zeros, {(void *)dtcm, @M@_FAST_PARAMETERS_SIZE}},
                                       .middle = {zeros, {(void *)isram, @M@_MIDDLE_PARAMETERS_SIZE}}};

    return @m@_set_parameters(&context, &parameters);
}

int main(void)
{
    SHOW("base", set(0x20000000u, 0x21000000u));
    SHOW("alias", set(0x30000000u, 0x31000000u));
    SHOW("in flash", set(0x28000000u, 0x21000000u));
    SHOW("before", set(0x1FFFFFE0u, 0x21000000u));
    SHOW("past the end", set(0x20080020u - @M@_FAST_PARAMETERS_SIZE, 0x21000000u));
    return 0;
}
"""


def test_memory_outside_of_the_targets_is_refused(tmp_path: Path) -> None:
    """Addresses of the board, checked on the host."""
    flags = ("-O1", "-fsanitize=address,undefined", "-DKWS_REF_MODEL_CHECK_RANGE=1")
    shown = run_c(loaded_bundle(board_target("copy", "caller")), RANGES, tmp_path, flags)
    outside = dict.fromkeys(("in flash", "before", "past the end"), RANGE)
    assert shown == {"base": HASH, "alias": HASH, **outside}


@pytest.mark.parametrize("workspace", ["fast_header", "kws_ref_model_fast_header", "context_base"])
def test_a_pool_may_be_called_like_what_the_c_has_for_another(workspace: str, tmp_path: Path) -> None:
    """Without a warning about a name that hides another."""
    description: dict[str, Any] = dump(host_target("copy", "generated"))
    (pool,) = description["workspace"]
    pools = [{"name": "context", "memory": pool["memory"], "size": "9KiB"}, pool | {"name": workspace}]
    folder = loaded_bundle(load_description(description | {"workspace": pools}))
    assert run_c(folder, 'int main(void) { SHOW("block", block == NULL); return 0; }', tmp_path) == {
        "block": 0
    }


def test_two_contexts_share_an_array_of_the_c() -> None:
    """Opening the second copies once more, between two runs of the first."""
    model = HostModel.build(loaded_bundle(host_target("copy", "generated")))
    inputs = [ramp((1, 49, 10, 1))]
    first = model.open()
    before = first.run(inputs)[0]
    second = model.open()
    outputs = [before, first.run(inputs)[0], second.run(inputs)[0]]
    assert [output[0].ravel().tolist() for output in outputs] == [expected_output()] * 3
