"""What tells the steps of an image apart: lines of the entry's C, and what the counter wrote."""

from __future__ import annotations

from pathlib import Path

from bytewright.execute.boards.counts import AddressRange, parse_work
from bytewright.execute.boards.entry_lines import Where, steps_of_lines
from bytewright.execute.description import read_bundle
from bytewright.execute.profile.of_board import profile_of_board
from bytewright.execute.result import BatchResult, DeviceWork, StepWork
from support.digits_bundle import write_digits

SOURCE = """\
static int32_t helper(int x) {
    return x;
}

int32_t digits_run(digits_context *context,
        const digits_inputs *inputs) {
    check();
    DIGITS_STEP(0, dtcm);
    first(
        1);
    if (flag) {
        DIGITS_STEP(1, dtcm);
        second();
    }
    DIGITS_STEP(7, dtcm);
    return DIGITS_OK;
}
"""


def test_lines_of_steps(tmp_path: Path) -> None:
    bundle = read_bundle(write_digits(tmp_path))
    assert len(bundle.plan.steps) == 7
    keep, none = int(Where.WHEREVER_ITS_CALLER_IS), int(Where.IN_NO_STEP)
    found = steps_of_lines(SOURCE, bundle)[1:]
    assert found == [keep] * 4 + [none] * 3 + [0] * 4 + [1] * 3 + [none] * 3


def test_the_last_inference_is_read() -> None:
    ranges = [AddressRange("fast", 0, 9), AddressRange("slow", 10, 19), AddressRange("fast", 20, 29)]
    text = (
        "call 0 64 5 100 8 0 0 0 0 0 0 0\ninference 200\nsecond 9\n"
        "ring\njob -1 32 2 4 0 0 0 0 0 0 0 0\nreply\n"
        "call 1 64 7 90 8 4 16 0 8 0 0 2\ninference 190\nsecond 4\n"
        "bytes 0 8 4 0 0\nbytes 1 20 0 0 0\nbytes 2 8 0 1 0\nbytes 3 0 2 0 0\n"
    )
    own, other = parse_work(text, ranges)
    assert own.calls == (StepWork(1, 64, 7, 90, {"fast": 16, "slow": 16}, {"fast": 4, "(elsewhere)": 2}),)
    assert (own.loaded_bytes, own.stored_bytes) == ({"fast": 16, "slow": 20}, {"fast": 4, "(elsewhere)": 2})
    assert other.calls == (StepWork(None, 32, 2, 4, {}, {}),)
    assert other.loaded_bytes == {"fast": 1}


def test_lanes_do_not_overlap_where_another_device_works_longer(tmp_path: Path) -> None:
    """The entry's device executes 10 instructions while it waits for 1000."""
    plan = read_bundle(write_digits(tmp_path)).plan
    calls = (StepWork(0, 4, 5, 10, {}, {}), StepWork(1, 8, 20, 30, {}, {}))
    jobs = (StepWork(0, 2, 9, 1000, {"shared": 4}, {}),)
    work = (
        DeviceWork("cpu", 60, {"fast": 3}, {}, calls),
        DeviceWork("core1", 1007, {"shared": 6}, {}, jobs),
    )
    result = BatchResult((), "qemu", "t", 0, instructions=(60,), work=work)
    profile = profile_of_board(plan, result)
    times = [(e.device, e.step, e.began_at, e.cost.amount) for e in profile.events]
    assert times == [
        ("cpu", None, 0, 5),
        ("cpu", 0, 5, 10),
        ("cpu", None, 1009, 5),
        ("cpu", 1, 1014, 30),
        ("cpu", None, 1044, 10),
        ("core1", 0, 9, 1000),
    ]
    assert [(d.device, d.entry.amount, dict(d.entry.read_bytes)) for d in profile.devices] == [
        ("cpu", 20, {"fast": 3}),
        ("core1", 7, {"shared": 2}),
    ]
