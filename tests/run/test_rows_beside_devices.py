"""The C of an input by rows beside a device: drivers come with the last call, and whatever fails there is undone."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.options import Options, parse_on_option
from support.c_program import run_c
from support.digits_bundle import DIGITS
from support.reference import LiteRt
from support.two_devices import DRIVERS, bench

INPUT = np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
PROGRAM = r"""
static @m@_context context;
static @m@_workspaces workspaces;
static @m@_devices devices;
static const int8_t image[] = {@image@};
static int8_t probabilities[10];

static int32_t push_all(void)
{
    const @m@_outputs outputs = {probabilities};
    const int32_t status = @m@_begin(&context, &outputs);
    return status != @M@_OK ? status : @m@_push_rows(&context, image, 8);
}

int main(void)
{
    (void)dma_driver;
    workspaces.near.base = block(@M@_NEAR_WORKSPACE_ALIGN, @M@_NEAR_WORKSPACE_SIZE);
    workspaces.near.size_bytes = @M@_NEAR_WORKSPACE_SIZE;
    workspaces.shared.base = block(@M@_SHARED_WORKSPACE_ALIGN, @M@_SHARED_WORKSPACE_SIZE);
    workspaces.shared.size_bytes = @M@_SHARED_WORKSPACE_SIZE;
    devices.core1 = device_of(&core1_driver);
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    restart(0);
    SHOW("pushed", push_all());
    SHOW("hooks before the end", num_calls);
    SHOW("no drivers", @m@_finish(&context, NULL));
    SHOW("in a workspace", @m@_finish(&context, (const @m@_devices *)workspaces.shared.base));
    SHOW("in the outputs", @m@_finish(&context, (const @m@_devices *)(const void *)probabilities));
    devices.core1.launch = NULL;
    SHOW("no hook", @m@_finish(&context, &devices));
    devices.core1 = device_of(&core1_driver);
    SHOW("finished", @m@_finish(&context, &devices));
    SHOW("fallible", num_calls);
    const int fallible = num_calls;
    for (int call = 1; call <= fallible; ++call) {
        restart(call);
        (void)push_all();
        printf("failed.%d.status %d\n", call, (int)@m@_finish(&context, &devices));
        printf("failed.%d.again %d\n", call, (int)@m@_finish(&context, &devices));
        printf("failed.%d.held %d\n", call, (int)num_held + core1_driver.in_flight + core1_driver.is_active);
    }
    restart(0);
    memset(probabilities, 0, sizeof probabilities);
    (void)push_all();
    SHOW("afterwards", @m@_finish(&context, &devices));
    for (int i = 0; i < 10; ++i) {
        printf("y.%d %d\n", i, probabilities[i]);
    }
    free(workspaces.near.base);
    free(workspaces.shared.base);
    return 0;
}
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What the program prints."""
    folder = tmp_path_factory.mktemp("rows")
    on = (parse_on_option("CONV_2D=core1"), parse_on_option("0 (CONV_2D)=cpu"))
    write_bundle(compile_model(DIGITS, bench(), Options(io=Io.ROWS, on=on)).files, folder / "b")
    program = PROGRAM.replace("@image@", ", ".join(map(str, INPUT.ravel())))
    return run_c(folder / "b", DRIVERS + program, folder)


def test_the_last_call_is_given_the_drivers(shown: dict[str, int]) -> None:
    null, overlap = -1, -4
    assert {name: shown[name] for name in ("set", "pushed", "hooks before the end", "finished")} == {
        "set": 0,
        "pushed": 0,
        "hooks before the end": 0,
        "finished": 0,
    }
    assert (shown["no drivers"], shown["no hook"]) == (null, null)
    assert (shown["in a workspace"], shown["in the outputs"]) == (overlap, overlap)


def test_what_fails_there_ends_the_inference_and_releases_everything(shown: dict[str, int]) -> None:
    device, not_begun = -8, -14
    assert shown["fallible"] > 4
    for call in range(1, shown["fallible"] + 1):
        found = [shown[f"failed.{call}.{what}"] for what in ("status", "again", "held")]
        assert found == [device, not_begun, 0]
    assert shown["afterwards"] == 0
    assert [shown[f"y.{index}"] for index in range(10)] == LiteRt(DIGITS).run(INPUT)[0].ravel().tolist()
