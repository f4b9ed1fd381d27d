"""Requirement P10 where a memory has several addresses: what shares a byte through an alias is refused too.

On the host one file is mapped at both addresses that the mps3-an547 has for a memory, so the bytes are the same there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute import build
from bytewright.execute.run import run_bundle
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option, parse_provider_option
from bytewright.target.registry import load_target
from support.c_program import run_c
from support.kws_program import OK, OVERLAP, RANGE, RUN, expected_output, output_of
from support.loaded_parameters import Loader, board_target, loaded_bundle
from support.shared_models import BOARD, KWS, bundle, ramp

pytestmark = pytest.mark.run

CHECKED = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-DKWS_REF_MODEL_CHECK_RANGE=1",
)
MAPPED = """
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { DTCM = 0x20000000, ISRAM = 0x21000000, FLASH = 0x28000000, ALIAS = 0x10000000, MAPPED_BYTES = 131072 };

static uint8_t *at(uintptr_t address)
{
    return (uint8_t *)address;
}

/* The first bytes of a memory, through its base and through its alias. */
static void map(uintptr_t base)
{
    FILE *const file = tmpfile();

    if (file == NULL || ftruncate(fileno(file), MAPPED_BYTES) != 0) {
        abort();
    }
    for (uintptr_t first = base; first <= base + ALIAS; first += ALIAS) {
        void *const wanted = at(first);

        if (mmap(wanted, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0) != wanted) {
            abort();
        }
    }
    at(base)[1] = 77;
    if (at(base + ALIAS)[1] != 77) {
        abort();
    }
}
"""


def two_in_dtcm() -> Target:
    """Two workspaces in DTCM, and parameters in flash that the application lends."""
    pools = (parse_pool_option("first=8KiB@dtcm"), parse_pool_option("second=64KiB@dtcm"))
    providers = (parse_provider_option("flash=caller"),)
    return apply_overrides(load_target(BOARD), Overrides(workspace=pools, provider=providers))


SET_AND_RUN = """
static const uint8_t bytes[] = {
#include @M@_FLASH_PARAMETERS_INITIALIZER
};

static int32_t set(@m@_context *context, uintptr_t first, uintptr_t second)
{
    const @m@_workspaces workspaces = {.first = {at(first), @M@_FIRST_WORKSPACE_SIZE},
                                       .second = {at(second), @M@_SECOND_WORKSPACE_SIZE}};

    return @m@_set_workspaces(context, &workspaces);
}

static int32_t lend(@m@_context *context, uintptr_t flash)
{
    const @m@_parameters parameters = {.flash = at(flash)};

    return @m@_set_parameters(context, &parameters);
}

static int32_t attempt(@m@_context *context, uintptr_t in, uintptr_t out)
{
    const @m@_inputs inputs = {(const int8_t *)at(in)};
    const @m@_outputs outputs = {(int8_t *)at(out)};

    return @m@_run(context, &inputs, &outputs);
}

int main(void)
{
    enum { SECOND = DTCM + 9216, FREE = DTCM + 65536, SIZE = @M@_FIRST_WORKSPACE_SIZE };
    @m@_context context = {0};

    map(DTCM);
    map(FLASH);
    memcpy(at(FLASH), bytes, sizeof bytes);
    SHOW("same bytes", set(&context, DTCM, DTCM + ALIAS));
    SHOW("same bytes, other way", set(&context, DTCM + ALIAS, DTCM));
    SHOW("the last sixteen", set(&context, DTCM, DTCM + ALIAS + SIZE - 16));
    SHOW("next to each other", set(&context, DTCM, DTCM + ALIAS + SIZE));
    SHOW("set", set(&context, DTCM, SECOND));
    SHOW("parameters in DTCM", lend(&context, FREE));
    SHOW("parameters past the end", lend(&context, FLASH + 0x800000 - 16));
    SHOW("parameters", lend(&context, FLASH));
    SHOW("parameters at the alias", lend(&context, FLASH + ALIAS));
    SHOW("output in input", attempt(&context, FREE, FREE + ALIAS + 489));
    SHOW("output in input, other way", attempt(&context, FREE + ALIAS, FREE));
    SHOW("output in workspace", attempt(&context, FREE, SECOND + ALIAS + 100));
    SHOW("input in workspace", attempt(&context, DTCM + ALIAS, FREE));
    SHOW("output in parameters", attempt(&context, FREE, FLASH + 100));
    SHOW("in a memory without workspaces", attempt(&context, ISRAM, ISRAM + ALIAS));
    SHOW("input in parameters", attempt(&context, FLASH + 100, FREE));
    run(&context);
    memcpy(at(FREE), input, sizeof input);
    SHOW("set at the alias", set(&context, DTCM + ALIAS, SECOND + ALIAS));
    SHOW("run", attempt(&context, FREE + ALIAS, FREE + ALIAS + 490));
    memcpy(output, at(FREE + 490), sizeof output);
    show_output();
    return 0;
}
"""
REFUSED = (
    *("same bytes", "same bytes, other way", "the last sixteen"),
    *("output in input", "output in input, other way", "output in workspace", "input in workspace"),
    *("output in parameters", "in a memory without workspaces"),
)


def test_p10_what_shares_bytes_through_an_alias_is_refused(tmp_path: Path) -> None:
    shown = run_c(bundle(KWS, two_in_dtcm()), RUN + MAPPED + SET_AND_RUN, tmp_path, CHECKED)
    assert output_of(shown) == expected_output()
    assert {name: shown[name] for name in REFUSED} == dict.fromkeys(REFUSED, OVERLAP)
    outside = ("parameters in DTCM", "parameters past the end")
    assert [shown[name] for name in outside] == [RANGE, RANGE]
    others = {name for name in shown if not name.startswith("output ")} - {*REFUSED, *outside}
    assert {shown[name] for name in others} == {OK}
    assert len(others) == 7


PARAMETERS_IN_DTCM = """
static const uint8_t fast_bytes[] = {
#include @M@_FAST_PARAMETERS_INITIALIZER
};
static const uint8_t middle_bytes[] = {
#include @M@_MIDDLE_PARAMETERS_INITIALIZER
};

/* The workspace first, then the parameters: those in DTCM where they are asked for. */
static int32_t set(uintptr_t workspace, uintptr_t fast)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {.dtcm = {at(workspace), @M@_DTCM_WORKSPACE_SIZE}};
#if IS_COPIED
    const @m@_parameters parameters = {.fast = {fast_bytes, {at(fast), sizeof fast_bytes}},
                                       .middle = {middle_bytes, {at(ISRAM), sizeof middle_bytes}}};
#else
    const @m@_parameters parameters = {.fast = at(fast), .middle = at(ISRAM)};

    memcpy(at(fast), fast_bytes, sizeof fast_bytes);
    memcpy(at(ISRAM), middle_bytes, sizeof middle_bytes);
#endif
    return @m@_set_workspaces(&context, &workspaces) == @M@_OK ? @m@_set_parameters(&context, &parameters) : 1;
}

int main(void)
{
    enum { AWAY = DTCM + 65536 };

    map(DTCM);
    map(ISRAM);
    map(FLASH);
    SHOW("away", set(DTCM, AWAY));
    SHOW("away at the alias", set(DTCM, AWAY + ALIAS));
    SHOW("same", set(DTCM, DTCM + ALIAS));
    SHOW("same, other way", set(DTCM + ALIAS, DTCM));
    SHOW("from behind", set(AWAY + ALIAS, AWAY - 32));
    SHOW("in flash", set(DTCM, FLASH));
    return 0;
}
"""


@pytest.mark.parametrize("load", ["linker", "copy"])
def test_p10_parameters_in_memory_that_can_be_written_count_too(load: Loader, tmp_path: Path) -> None:
    flags = (*CHECKED, f"-DIS_COPIED={int(load == 'copy')}")
    folder = loaded_bundle(board_target(load, "caller"))
    assert run_c(folder, MAPPED + PARAMETERS_IN_DTCM, tmp_path, flags) == {
        "away": OK,
        "away at the alias": OK,
        "same": OVERLAP,
        "same, other way": OVERLAP,
        "from behind": OVERLAP,
        "in flash": RANGE,
    }


@pytest.mark.board
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
def test_p10_on_the_board_an_alias_is_looked_through_without_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The harness gives the second workspace the bytes of the first, through the alias of DTCM."""
    read = build.harness_source
    last = "HARNESS_WORKSPACES(SET_WORKSPACE)"
    same = f"{last}\n        memories.second.base = (char *)memories.first.base + 0x10000000;"

    def at_the_alias(*parts: str) -> str:
        text = read(*parts)
        assert parts[-1] != "adapter.c" or text.count(last) == 1
        return text.replace(last, same)

    inputs = [ramp((1, 49, 10, 1))]
    (output,) = run_bundle(bundle(KWS, two_in_dtcm()), inputs, on="qemu").outputs
    np.testing.assert_array_equal(output.ravel(), expected_output())
    monkeypatch.setattr(build, "harness_source", at_the_alias)
    with pytest.raises(CompileError, match="ERROR_OVERLAP"):
        run_bundle(bundle(KWS, two_in_dtcm()), inputs, on="qemu")
