"""Requirements on parameters that are read from memory which can be written, and come from another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.record.plan_file import read_plan
from bytewright.report.by_memory import use_by_memory
from support.c_program import run_c
from support.kws_program import HASH, NOT_SET, OK, RUN, expected_output, output_of
from support.loaded_parameters import (
    BOARD_FAST_BYTES,
    BOARD_SECOND_BYTES,
    COMBINATIONS,
    FAST_BYTES,
    POOL_BYTES,
    Loader,
    Provider,
    board_target,
    host_target,
    loaded_bundle,
)
from support.shared_models import ramp

pytestmark = pytest.mark.run


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_p6_parameters_in_memory_that_can_be_written_give_the_references_output(
    load: Loader, provider: Provider
) -> None:
    """Once in this process, and once under the sanitizers."""
    folder = loaded_bundle(host_target(load, provider))
    plan = check_bundle(folder).plan
    header_bytes = 32 if provider == "caller" else 0
    assert plan.pools["fast"].used_bytes == FAST_BYTES + header_bytes
    assert {b.place.name for b in plan.buffers.values() if b.role == "parameter"} == {"fast", "rodata"}
    for options in (BuildOptions(), BuildOptions(("-O0",), sanitize=True)):
        (output,) = run_bundle(folder, [ramp((1, 49, 10, 1))], options=options).outputs
        np.testing.assert_array_equal(output.ravel(), expected_output())


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_p6_the_memory_that_keeps_them_is_counted_and_has_their_size_less(
    load: Loader, provider: Provider
) -> None:
    """Flash holds the bytes of both fast pools until they are loaded, besides its own."""
    target = board_target(load, provider)
    assert target.pool("flash").size_bytes == (8 << 20) - 2 * POOL_BYTES
    plan = read_plan(loaded_bundle(target))
    used = {name: plan.pools[name].used_bytes for name in ("fast", "middle", "flash")}
    header_bytes = 32 if provider == "caller" else 0
    assert used["fast"] == BOARD_FAST_BYTES + header_bytes
    assert used["middle"] == BOARD_SECOND_BYTES + header_bytes
    by_memory = {use.name: use.parameter_bytes for use in use_by_memory(plan)}
    assert by_memory == {"dtcm": used["fast"], "isram": used["middle"], "flash": sum(used.values())}
    loads = [(plan.pools[name].load, plan.pools[name].load_memory) for name in used]
    assert loads == [(load, "flash"), (load, "flash"), ("linker", None)]


OWN_COPY = """
int main(void)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {
        {block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE), @M@_RAM_WORKSPACE_SIZE}};

    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    SHOW("run before", run(&context));
    SHOW("verify before", @m@_verify_parameters(&context));
    SHOW("set parameters", @m@_set_parameters(&context));
    SHOW("verify", @m@_verify_parameters(&context));
    SHOW("run", run(&context));
    show_output();
    free(workspaces.ram.base);
    return 0;
}
"""


def test_p6_the_c_copies_them_to_an_array_of_its_own(tmp_path: Path) -> None:
    folder = loaded_bundle(host_target("copy", "generated"))
    shown = run_c(folder, RUN + OWN_COPY, tmp_path)
    assert (shown["run before"], shown["verify before"]) == (NOT_SET, NOT_SET)
    assert (shown["set parameters"], shown["verify"], shown["run"]) == (OK, OK, OK)
    assert output_of(shown) == expected_output()


CALLERS_COPY = """
static const uint8_t bytes[] = {
#include @M@_FAST_PARAMETERS_INITIALIZER
};
static const uint8_t rest[] @M@_ALIGNED(@M@_RODATA_PARAMETERS_ALIGN) = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
};

int main(void)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {
        {block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE), @M@_RAM_WORKSPACE_SIZE}};
    uint8_t *const odd = block(1, sizeof bytes + 1);
    uint8_t *const memory = block(@M@_FAST_PARAMETERS_ALIGN, sizeof bytes);
    const @m@_parameters parameters = {.fast = {.from = odd + 1, .to = {memory, sizeof bytes}}, .rodata = rest};
    int num_refused = 0;
    int num_untouched = 0;

    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    for (size_t i = 0; i < 32; ++i) {
        memcpy(odd + 1, bytes, sizeof bytes);
        odd[1 + i] ^= 1;
        num_refused += @m@_set_parameters(&context, &parameters) == @M@_ERROR_HASH;
        num_untouched += memory[0] == 0x5A && memcmp(memory, memory + 1, sizeof bytes - 1) == 0;
    }
    SHOW("refused headers", num_refused);
    SHOW("untouched", num_untouched);
    SHOW("run before", run(&context));
    memcpy(odd + 1, bytes, sizeof bytes);
    SHOW("set parameters", @m@_set_parameters(&context, &parameters));
    memset(odd, 0, sizeof bytes + 1);
    free(odd);
    SHOW("verify", @m@_verify_parameters(&context));
    SHOW("run", run(&context));
    show_output();
    memory[sizeof bytes - 1] ^= 1;
    SHOW("verify what was changed", @m@_verify_parameters(&context));
    free(memory);
    free(workspaces.ram.base);
    return 0;
}
"""


def test_p6_or_to_memory_of_the_application_after_comparing_the_header(tmp_path: Path) -> None:
    """The blob needs no alignment, and may go afterwards; every byte is compared where the model reads it."""
    shown = run_c(loaded_bundle(host_target("copy", "caller", rest="caller")), RUN + CALLERS_COPY, tmp_path)
    assert (shown["refused headers"], shown["untouched"]) == (32, 32)
    assert shown["run before"] == NOT_SET
    assert (shown["set parameters"], shown["verify"], shown["run"]) == (OK, OK, OK)
    assert output_of(shown) == expected_output()
    assert shown["verify what was changed"] == HASH
