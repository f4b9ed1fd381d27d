"""The second core as a device of a plan: where it sees memory, when a board cannot be it, and its errors in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

import bytewright
from bytewright.diagnostics import CompileError, Diagnostic, ExitCode
from bytewright.elf.image import ElfSymbol
from bytewright.execute.boards.counts import AddressRange, unanswered_ring
from bytewright.execute.boards.device_fault import Surroundings, device_error, hang_error
from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.second_core import SecondCore, Window, second_core_of
from bytewright.execute.jobs import Failure, FailureRecord
from bytewright.record.plan import Plan
from bytewright.target.model import Reach, Target
from bytewright.target.registry import load_target
from support.pair_program import BOARD, PAIR

BOARD_FACTS = BOARDS[BOARD]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    source = tmp_path_factory.mktemp("pair") / "pair.bw"
    source.write_text(PAIR)
    return bytewright.compile(source, target=BOARD).plan


def second_of(plan: Plan) -> SecondCore:
    second = second_core_of(plan, BOARD_FACTS)
    assert second is not None
    return second


def with_device(target: Target, **changes: object) -> Target:
    devices = (replace(d, **changes) if d.name == "core1" else d for d in target.devices)
    return replace(target, devices=tuple(devices))


def obstacle(plan: Plan, board: str = BOARD) -> str:
    with pytest.raises(CompileError) as caught:
        second_core_of(plan, BOARDS[board])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    assert diagnostic.message == f"board {board} cannot execute what model 'pair' has on device 'core1'"
    return diagnostic.notes[0]


def test_a_plan_of_one_device_needs_no_second_core(plan: Plan) -> None:
    assert second_core_of(replace(plan, devices={}), BOARD_FACTS) is None


def test_memory_that_the_core_is_to_obtain_is_none_that_the_board_has(plan: Plan) -> None:
    pools = {**plan.pools, "shared": replace(plan.pools["shared"], obtained_by="core1")}
    expected = "'core1' is to obtain pool 'shared', and the harness's driver obtains no memory"
    assert obstacle(replace(plan, pools=pools)) == expected


def test_windows_hold_every_address_of_core_0(plan: Plan) -> None:
    second = second_of(plan)
    assert set(second.windows) == {
        *(Window("ssram1", at, 4 << 20, 0x10000000) for at in (0x10000000, 0, 0x400000, 0x10400000)),
        *(Window("shared", at, 64 << 10, 0x20010000) for at in (0x30010000, 0x20010000)),
        *(Window("ssram3", at, 2 << 20, 0x28200000) for at in (0x38200000, 0x28200000)),
    }
    assert (second.stack_bytes, second.harness_view, second.stack_view) == (8192, -0x10000000, -0x10000000)
    assert second.seen_by_core_1(0x3001FFFF) == 0x2001FFFF
    assert second.seen_by_core_1(0x30020000) is None
    assert second.seen_by_core_1(0x30000000) is None
    assert second.seen_by_core_0(0x20010004) == ("shared", 0x30010004)
    assert second.seen_by_core_0(0x20000000) is None


def test_arrays_are_counted_where_core_1_sees_them(plan: Plan) -> None:
    ranges = [
        AddressRange("workspace shared", 0x30010000, 0x3001007F),
        AddressRange("stack", 0x30001000, 0x30002FFF),
    ]
    symbols = (
        ElfSymbol("second_core_mailbox", 0x38201000, 64, is_object=True),
        ElfSymbol("main", 0x38202000, 8, is_code=True),
    )
    found = second_of(plan).further_ranges(ranges, symbols)
    assert found[:2] == [
        AddressRange("workspace shared as core1 sees it", 0x20010000, 0x2001007F),
        AddressRange("driver of core1", 0x38201000, 0x3820103F),
    ]


def test_a_board_with_one_core(plan: Plan) -> None:
    assert obstacle(plan, "mps3-an547") == "it has one core, which is 'cpu'"


def test_a_device_that_the_second_core_is_not(plan: Plan) -> None:
    other = load_target("mps3-an547").default_device.isa
    there = replace(plan, hardware=with_device(plan.hardware, isa=other))
    assert obstacle(there) == "its second core is a cortex-m33 that runs C, 'core1' is a cortex-m55"


def test_a_memory_that_the_board_does_not_have_there(plan: Plan) -> None:
    reach = (Reach("shared", 0x20000000),)
    note = "device 'core1' sees memory 'shared' at 0x20000000, where the board does not have it"
    assert obstacle(replace(plan, hardware=with_device(plan.hardware, reach=reach))) == note
    # The same bytes under the address that core 0 uses would do.
    assert second_of(
        replace(plan, hardware=with_device(plan.hardware, reach=(Reach("shared"), Reach("ssram3"))))
    ).seen_by_core_1(0x20010000) == (0x30010000)


def surroundings(plan: Plan) -> Surroundings:
    arrays = [
        AddressRange("workspace sram", 0x30000000, 0x3000003F),
        AddressRange("workspace shared", 0x30010000, 0x3001007F),
    ]
    memories = [
        AddressRange("memory sram", 0x30000000, 0x3000FFFF),
        AddressRange("memory shared", 0x30010000, 0x3001FFFF),
    ]
    return Surroundings(plan, BOARD, second_of(plan), arrays, memories)


def said(plan: Plan, record: FailureRecord, **facts: int) -> Diagnostic:
    (diagnostic,) = device_error(surroundings(plan), record, facts, "pair_core1_execute").diagnostics
    assert diagnostic.exit_code is ExitCode.NOT_VERIFIED
    return diagnostic


def record(failure: Failure, **more: int) -> FailureRecord:
    return FailureRecord(kind=failure, job=2, has_code=1, code_word=1, **more)


def fault(address: int) -> dict[str, int]:
    return {"fault_cfsr": 0x82, "fault_mmfar": address, "fault_pc": 0x10000800, "fault_lr": 0x10000900}


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0x30000004, "byte 4 of workspace sram, which device 'core1' does not reach"),
        (0x30010004, "byte 4 of workspace shared, which device 'core1' sees at 0x20010004"),
        (
            0x20010080,
            "in memory shared, 1 B past the last byte of workspace shared, 0x30010080 for device 'cpu'; it was not "
            "lent this",
        ),
        (0x50000000, "in no memory of the target, which device 'core1' does not reach"),
    ],
)
def test_a_stray_access(plan: Plan, address: int, place: str) -> None:
    diagnostic = said(plan, record(Failure.FAULTED), **fault(address))
    assert (diagnostic.code, diagnostic.message) == (
        "BW730",
        "device 'core1' touched what it was not lent in job 2 (kernel 'pair_turn', step 3) of model 'pair' on "
        "mps2-an521",
    )
    assert diagnostic.notes[0] == f"address {address:#010x} (MMFAR): {place}"
    assert diagnostic.notes[1] == "at 0x10000800 (PC) in pair_core1_execute, called from 0x10000900 (LR)"


def test_a_fault_without_an_address(plan: Plan) -> None:
    diagnostic = said(plan, record(Failure.FAULTED), **fault(0) | {"fault_cfsr": 1 << 20})
    assert diagnostic.code == "BW731"
    assert diagnostic.message.endswith(f"on {BOARD}: stack overflow")
    assert "the model has a stack of 8192 B, as the target says" in diagnostic.notes


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (Failure.UNREACHED, "BW732", "device 'core1' does not reach it"),
        (Failure.TOO_MANY_SPANS, "BW732", "needs 70 spans for job 2"),
        (Failure.TOO_MANY_REGIONS, "BW732", "needs 70 regions of memory protection for job 2"),
        (Failure.NOT_LENT, "BW732", "it was not opened"),
        (Failure.REFUSED, "BW731", "device 'core1' refused job 2"),
        (Failure.OUT_OF_TURN, "BW731", "out of turn"),
    ],
)
def test_every_failure_of_the_driver_has_words(plan: Plan, failure: Failure, code: str, text: str) -> None:
    diagnostic = said(plan, record(failure, span=70, address=0x30000000, status=-5))
    assert diagnostic.code == code
    assert text in diagnostic.message


@pytest.mark.parametrize(
    ("number", "kernel", "job"),
    [
        (0, None, "what it is lent"),
        (1, 0, "job 1 (kernel 'pair_sum', step 2)"),
        # What comes again has no step of its number, and neither has a job that no step knows.
        (2, 0, "job 2 (kernel 'pair_sum')"),
        (9, 1, "job 9 (kernel 'pair_turn')"),
        (9, 7, "job 9"),
        (2, None, "job 2 (kernel 'pair_turn', step 3)"),
    ],
)
def test_jobs_are_named(plan: Plan, number: int, kernel: int | None, job: str) -> None:
    assert surroundings(plan).job(number, kernel) == job


@pytest.mark.parametrize(
    ("text", "ring"),
    [
        ("", None),
        ("ring\nreply\n", None),
        ("ring\nreply\nring\n", 2),
        ("ring\nreply\ninference 5\nsecond 6\nring\nreply\nring\nreply\nring\n", 3),
    ],
)
def test_the_ring_without_a_reply(text: str, ring: int | None) -> None:
    assert unanswered_ring(text) == ring


def test_a_hang_in_words(plan: Plan) -> None:
    (diagnostic,) = hang_error(surroundings(plan), 3, 1.5).diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "BW733",
        "device 'core1' did not finish job 1 (kernel 'pair_sum', step 2) of model 'pair' on mps2-an521 within 1.5 s",
    )


def test_every_failure_of_the_protocol_has_a_name() -> None:
    """The enumerators of jobs.h, in order, are those of the errors here."""
    from bytewright.execute.build import harness_source

    text = harness_source("harness", "jobs.h").partition("enum job_failure_kind {")[2].partition("}")[0]
    words = [line.strip().partition(" ")[0].partition(",")[0] for line in text.strip().splitlines()]
    assert words == [f"JOB_{failure.name}" for failure in Failure]
    assert [failure.value for failure in Failure] == list(range(len(Failure)))
