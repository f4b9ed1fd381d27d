"""Jobs inside of loops and in both arms of a branch, and with memory that is requested: exact, and released on failure.

The condition is computed on the other device. References are numpy's.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.packed import Form
from bytewright.options import Options
from support.c_program import SANITIZED, WARNINGS, run_c
from support.compilers import host_build
from support.flow_program import EXTENTS, FLOW, REQUESTING, flow_output
from support.two_devices import APPLICATION, DRIVERS, TARGET, bundle

pytestmark = pytest.mark.run

# What the branch sees first: below its limits of both turns, of the second alone, of neither.
FIRST_VALUES = (-9000, -20, 140)
PLAIN, PACKED = Options(), Options(calling_form=Form.PACKED)

RUNS = r"""
static void given(int first)
{
    for (int i = 0; i < 32; ++i) {
        x[i] = (int16_t)(i * 997 - 9000);
    }
    x[0] = (int16_t)first;
}

int main(void)
{
    static const int firsts[3] = {-9000, -20, 140};
    prepare();
    for (int k = 0; k < 3; ++k) {
        given(firsts[k]);
        restart(0);
        printf("%d.status %d\n", k, (int)run());
        printf("%d.calls %d\n", k, num_calls);
        for (int i = 0; i < 32; ++i) {
            printf("%d.y.%d %d\n", k, i, y[i]);
        }
    }
    finish();
    return 0;
}
"""
FAULTS = r"""
int main(void)
{
    prepare();
    restart(0);
    SHOW("whole", run());
    const int fallible = num_calls;
    SHOW("fallible", fallible);
    for (int call = 1; call <= fallible; ++call) {
        restart(call);
        const int32_t status = run();
        printf("%d.status %d\n", call, (int)status);
        printf("%d.refusals %d\n", call, refusals);
        printf("%d.held %d\n", call, (int)num_held + core1_driver.in_flight + dma_driver.in_flight);
        restart(0);
        printf("%d.afterwards %d\n", call, (int)run());
        printf("%d.last %d\n", call, y[31]);
    }
    finish();
    return 0;
}
"""


def given(first: int) -> NDArray[np.int16]:
    x = (np.arange(32) * 997 - 9000).astype(np.int16)
    x[0] = first
    return x


BUILDS = {
    "sanitized": ("gcc", SANITIZED),
    "clang": ("clang", SANITIZED),
    "optimised": ("gcc", ("-O3",)),
    "32 bits": ("gcc", ("-m32", "-O2", "-msse2", "-mfpmath=sse")),
}


@pytest.mark.parametrize("options", [PLAIN, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("build", BUILDS)
def test_jobs_in_both_arms_and_in_a_loop_compute_what_numpy_does(
    tmp_path: Path, build: str, options: Options
) -> None:
    folder = bundle(tmp_path / "bundle", FLOW, options=options)
    assert check_bundle(folder).num_steps == 11
    compiler, flags = BUILDS[build]
    shown = run_c(folder, DRIVERS + APPLICATION + RUNS, tmp_path, flags, compiler)
    for number, first in enumerate(FIRST_VALUES):
        assert shown[f"{number}.status"] == 0
        # activate and open of two, launch and wait of two copies, and of three jobs in each turn
        assert shown[f"{number}.calls"] == 4 + 2 * (2 + 2 * 3)
        assert [shown[f"{number}.y.{i}"] for i in range(32)] == flow_output(given(first)).tolist()


@pytest.mark.parametrize("first", [-9000, 140])
def test_a_failure_in_an_arm_and_in_a_turn_releases_everything(tmp_path: Path, first: int) -> None:
    folder = bundle(tmp_path / "bundle", FLOW)
    application = APPLICATION.replace("i * 997 - 9000", f"i == 0 ? {first} : i * 997 - 9000")
    shown = run_c(folder, DRIVERS + application + FAULTS, tmp_path)
    assert (shown["whole"], shown["fallible"]) == (0, 20)
    header = (folder / "include" / "pair.h").read_text()
    device_error = int(re.search(r"PAIR_ERROR_DEVICE = (-\d+)", header)[1])  # type: ignore[index]
    last = int(flow_output(given(first))[31])
    for call in range(1, 21):
        found = [shown[f"{call}.{name}"] for name in ("status", "refusals", "held", "afterwards", "last")]
        assert found == [device_error, 1, 0, 0, last]


@pytest.mark.parametrize("sanitize", [False, True])
def test_the_worker_of_a_device_runs_the_arm_that_is_taken(tmp_path: Path, sanitize: bool) -> None:
    folder = bundle(tmp_path / "bundle", FLOW)
    xs = [given(first) for first in FIRST_VALUES]
    options = host_build(flags=WARNINGS, sanitize=sanitize)
    result = run_batch(folder, [[x] for x in xs], options=options)
    for x, outputs in zip(xs, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], flow_output(x))


@pytest.mark.parametrize("options", [PLAIN, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("target", [TARGET, REQUESTING], ids=["planned", "requested"])
def test_scratch_of_an_open_extent_in_arms_and_turns(tmp_path: Path, target: str, options: Options) -> None:
    folder = bundle(tmp_path / "bundle", EXTENTS, target, options)
    check_bundle(folder)
    source = (folder / "src" / "pair.c").read_text()
    assert ("pair_backend_alloc_workspace(" in source) == (target == REQUESTING)
    assert "(uint32_t)(turn + 2) * 70u" in source
    xs = [given(first) for first in FIRST_VALUES]
    result = run_batch(folder, [[x] for x in xs], options=host_build(flags=WARNINGS, sanitize=True))
    for x, outputs in zip(xs, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], flow_output(x))
