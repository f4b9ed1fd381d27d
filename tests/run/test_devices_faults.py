"""Every call of a driver that may fail fails once, in a run with two devices: everything is released, in reverse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright as command_line
from support.c_program import build_program, run_c, run_command
from support.kws_program import NULL, OK, OVERLAP
from support.two_devices import APPLICATION, DRIVERS, INPUT, PROGRAM, bundle, evaluated

# In order: both activated, both opened; fetch, filter, narrow, return; closed and deactivated in reverse.
WHOLE = "Ad Ac Od Oc Ld Wd Lc Wc Lc Wc Ld Wd Cc Cd Dc Dd"

FAULTS = r"""
int main(void)
{
    prepare();
    restart(0);
    SHOW("whole", run());
    SHOW("fallible", num_calls);
    const int fallible = num_calls;
    for (int call = 1; call <= fallible; ++call) {
        restart(call);
        const int32_t status = run();
        printf("failed.%d.status %d\n", call, (int)status);
        printf("failed.%d.refusals %d\n", call, refusals);
        printf("failed.%d.held %d\n", call, (int)num_held);
        printf("failed.%d.in_flight %d\n", call, core1_driver.in_flight + dma_driver.in_flight);
        printf("failed.%d.in_use %d\n", call, core1_driver.is_active + dma_driver.is_active +
            core1_driver.is_open + dma_driver.is_open);
        fprintf(stderr, "%d %s\n", call, events);
        restart(0);
        printf("failed.%d.afterwards %d\n", call, (int)run());
        printf("failed.%d.sum %d\n", call, y[3] + y[31] * 3);
    }
    finish();
    return 0;
}
"""

EVENTS = r"""
int main(void)
{
    prepare();
    for (int call = 0; call <= 12; ++call) {
        restart(call);
        (void)run();
        for (size_t i = 0; i < num_events; i += 2) {
            printf("%s%c%c", i ? " " : "", events[i], events[i + 1]);
        }
        printf("\n");
    }
    finish();
    return 0;
}
"""

REFUSED = r"""
int main(void)
{
    prepare();
    restart(0);
    const @m@_inputs inputs = {x};
    const @m@_outputs over = {(int16_t *)(void *)&devices};
    const @m@_outputs last = {(int16_t *)(void *)((char *)(&devices + 1) - sizeof(int16_t))};
    const @m@_outputs apart = {y};
    SHOW("over the drivers", @m@_run(&context, &inputs, &over, &devices));
    SHOW("over their last bytes", @m@_run(&context, &inputs, &last, &devices));
    SHOW("no drivers", @m@_run(&context, &inputs, &apart, NULL));
    SHOW("calls", num_calls);
    SHOW("apart", run());
    finish();
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the program."""
    return bundle(tmp_path_factory.mktemp("devices") / "bundle")


def test_each_failure_releases_everything_and_the_next_run_is_right(folder: Path, tmp_path: Path) -> None:
    shown = run_c(folder, DRIVERS + APPLICATION + FAULTS, tmp_path)
    assert (shown["whole"], shown["fallible"]) == (0, 12)
    header = (folder / "include" / "pair.h").read_text()
    device_error = int(re.search(r"PAIR_ERROR_DEVICE = (-\d+)", header)[1])  # type: ignore[index]
    expected = evaluated(PROGRAM, {"x": INPUT})["y"]
    for call in range(1, 13):
        of_call = {
            name: shown[f"failed.{call}.{name}"] for name in ("status", "refusals", "held", "in_flight")
        }
        assert of_call == {"status": device_error, "refusals": 1, "held": 0, "in_flight": 0}
        assert shown[f"failed.{call}.in_use"] == 0
        assert shown[f"failed.{call}.afterwards"] == 0
        assert shown[f"failed.{call}.sum"] == int(expected[3]) + 3 * int(expected[31])


def test_what_was_acquired_is_released_in_reverse(folder: Path, tmp_path: Path) -> None:
    program = build_program(folder, DRIVERS + APPLICATION + EVENTS, tmp_path)
    runs = run_command([program], tmp_path).splitlines()
    assert runs[0] == WHOLE
    begun = WHOLE.split()[:12]
    released = {1: "", 2: "Dd", 3: "Dc Dd", 4: "Cd Dc Dd"} | dict.fromkeys(range(5, 13), "Cc Cd Dc Dd")
    for call in range(1, 13):
        assert runs[call] == " ".join([*begun[:call], *released[call].split()])


def test_a_run_that_would_write_over_the_drivers_calls_none(folder: Path, tmp_path: Path) -> None:
    assert run_c(folder, DRIVERS + APPLICATION + REFUSED, tmp_path) == {
        "over the drivers": OVERLAP,
        "over their last bytes": OVERLAP,
        "no drivers": NULL,
        "calls": 0,
        "apart": OK,
    }


def test_the_bundle_and_all_of_its_stacks_verify_by_command(folder: Path) -> None:
    result = CliRunner().invoke(command_line, ["check", str(folder), "--stack"])
    assert result.exit_code == 0, result.output
    assert "7 steps: the C touches what the plan says" in result.output
    assert re.findall(r"stack of (\w+): .* as compiled, \d+ B promised", result.output) == ["cpu", "core1"]
