from bytewright.elf.image import ElfSymbol
from bytewright.execute.boards.counts import (
    AddressRange,
    CoreCounts,
    Counts,
    function_at,
    parse_counts,
)
from bytewright.execute.boards.fault import describe_address, fault_error
from bytewright.execute.program import parse_report
from bytewright.execute.result import FunctionCount, RegionTraffic

SYMBOLS = (
    ElfSymbol("harness_vectors", 0x10000000),
    ElfSymbol("first", 0x10000100, is_code=True),
    ElfSymbol("second", 0x10000200, is_code=True),
    ElfSymbol("table", 0x10000300),
    ElfSymbol("__harness_code_end", 0x10000400),
)
NOTHING = (1 << 64) - 1


def test_a_report_that_was_cut_off_keeps_whole_lines() -> None:
    assert parse_report("stack 96\nstatus -7\nfault_b") == {"stack": 96, "status": -7}


def test_blocks_belong_to_the_function_before_them() -> None:
    text = f"inference 40\ninference 60\nblock {0x10000100} 10\nblock {0x100001FE} 5\nblock {0x10000200} 45\n"
    assert parse_counts(text, SYMBOLS, []) == Counts(
        CoreCounts((40, 60), (FunctionCount("second", 45), FunctionCount("first", 15))), CoreCounts(), ()
    )


def test_traffic_of_a_memory_is_the_sum_over_its_ranges() -> None:
    ranges = [
        AddressRange("pool", 0, 9),
        AddressRange("memory ram", 0, 99),
        AddressRange("memory ram", 1000, 1099),
    ]
    lines = [
        f"range 0 0 0 0 0 {NOTHING} 0",
        "range 1 1 2 3 4 50 60",
        "range 2 10 20 30 40 1005 1006",
        f"range 3 7 0 28 0 {NOTHING} 0",
    ]
    assert parse_counts("\n".join(lines), SYMBOLS, ranges).traffic == (
        RegionTraffic("pool", 0, 0, 0, 0, None, None),
        RegionTraffic("memory ram", 11, 22, 33, 44, 50, 1006),
        RegionTraffic("elsewhere", 7, 0, 28, 0, None, None),
    )


def test_a_function_is_found_only_inside_the_code() -> None:
    assert function_at(SYMBOLS, 0x10000202) == "second"
    assert function_at(SYMBOLS, 0x20000000) is None
    assert function_at(SYMBOLS, 0x100) is None


def test_a_bus_fault_in_words() -> None:
    facts = {
        "fault_cfsr": 0x8200,
        "fault_hfsr": 0x40000000,
        "fault_bfar": 0x50000000,
        "fault_pc": 16,
        "fault_lr": 32,
    }
    (diagnostic,) = fault_error("mps3-an547", "tiny", facts, "tiny_add", 8192).diagnostics
    assert diagnostic.message == "model 'tiny' faulted on mps3-an547: precise bus error"
    assert diagnostic.notes == (
        "address 0x50000000 (BFAR)",
        "at 0x00000010 (PC) in tiny_add, called from 0x00000020 (LR)",
        "CFSR 0x00008200, HFSR 0x40000000, SFSR 0x00000000, ICSR 0x00000000",
    )


def test_an_address_in_words() -> None:
    arrays = [
        AddressRange("workspace dtcm", 0x20000000, 0x200000FF),
        AddressRange("stack", 0x20000100, 0x200002FF),
    ]
    memories = [
        AddressRange("memory dtcm", 0x20000000, 0x2007FFFF),
        AddressRange("memory ddr", 0x60000000, 0x60FFFFFF),
    ]
    assert [
        describe_address(address, arrays, memories)
        for address in (0x20000110, 0x20000300, 0x1FFFFFFF, 0x60000000, 0x50000000)
    ] == [
        "byte 16 of stack",
        "in memory dtcm, 1 B past the last byte of stack",
        "in no memory of the target, 1 B before the first byte of workspace dtcm",
        "in memory ddr",
        "in no memory of the target",
    ]


def test_a_forbidden_access_in_words() -> None:
    facts = {"fault_cfsr": 0x82, "fault_mmfar": 0x20000300}
    (diagnostic,) = fault_error("board", "tiny", facts, None, 8192, "past the stack").diagnostics
    assert diagnostic.message.endswith("a data access that the memory protection unit forbids")
    assert diagnostic.notes[0] == "address 0x20000300 (MMFAR): past the stack"


def test_a_stack_overflow_in_words() -> None:
    for facts in ({"fault_cfsr": 1 << 20}, {"fault_cfsr": 1 << 17, "fault_below_stack": 1}):
        (diagnostic,) = fault_error("board", "tiny", facts, None, 8192).diagnostics
        assert "stack overflow" in diagnostic.message
        assert "the model has a stack of 8192 B, as the target says" in diagnostic.notes


def test_the_second_core_is_counted_for_itself() -> None:
    text = f"inference 40\nsecond 7\nblock {0x10000100} 40\nsecond_block {0x10000100} 3\nsecond_block {0x10000200} 4\n"
    assert parse_counts(text, SYMBOLS, []) == Counts(
        CoreCounts((40,), (FunctionCount("first", 40),)),
        CoreCounts((7,), (FunctionCount("second", 4), FunctionCount("first", 3))),
        (),
    )
