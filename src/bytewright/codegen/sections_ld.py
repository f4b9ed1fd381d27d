"""`<model>_sections.ld`, which the linker script INCLUDEs in SECTIONS: arrays lie where the plan has them.

It defines a symbol that the C compares with a number of the plan. Without the file the symbol is undefined, so the link
fails; with the file of another plan the run is refused.
"""

from bytewright.codegen.writer import OWNERSHIP, Writer
from bytewright.record.names import Names
from bytewright.record.placed_sections import PlacedSection, placed_sections
from bytewright.record.plan import Plan


def plan_number(plan: Plan) -> str:
    """The first 32 bits of the plan's hash, which fit an address."""
    return f"0x{plan.plan_hash[:8].upper()}"


def sections_text(plan: Plan, names: Names) -> str:
    """The file."""
    writer = Writer()
    writer.comment(
        f"Sections of model '{plan.model}' for target '{plan.target}'. Plan {plan.plan_hash}. In SECTIONS of the "
        f"linker script: INCLUDE {names.sections_file}, found with -L and the bundle's folder.\n{OWNERSHIP}"
    )
    for section in placed_sections(plan):
        writer.line()
        _write_section(writer, names, section)
    writer.line()
    writer.comment("What the C asks for, so that no link goes without this file.")
    writer.line(f"{names.sections_symbol} = ABSOLUTE({plan_number(plan)});")
    return writer.text()


def _write_section(writer: Writer, names: Names, section: PlacedSection) -> None:
    memory = section.memory
    kind = "" if section.has_bytes else " (NOLOAD)"
    pools = ", ".join(f"{array.pool.role} '{array.pool.name}'" for array in section.arrays)
    writer.comment(f"{pools}, in memory '{memory.name}'")
    writer.line(f"{section.name}{kind} : ALIGN({section.alignment})")
    symbol = f"{names.model}_{section.arrays[0].pool.c_name}"
    contents = [f"*({section.name})"]
    place = f"> {memory.region}"
    if section.load_memory is not None:
        contents = [f"{symbol}_begin = .;", *contents, ". = ALIGN(4);", f"{symbol}_end = .;"]
        place += f" AT> {section.load_memory.region}"
    writer.line("{")
    with writer.indented():
        for line in contents:
            writer.line(line)
    writer.line(f"}} {place}")
    if section.load_memory is not None:
        writer.comment(
            f"Start-up code copies {symbol}_begin .. {symbol}_end from {symbol}_load, as it does .data."
        )
        writer.line(f"{symbol}_load = LOADADDR({section.name});")
    _write_assertions(writer, names, section)


def _write_assertions(writer: Writer, names: Names, section: PlacedSection) -> None:
    memory, name = section.memory, section.name
    front = f"{names.model}: section {name}"
    if memory.base is not None and memory.size_bytes is not None:
        end = memory.base + memory.size_bytes
        inside = f"ADDR({name}) >= {memory.base:#010x} && ADDR({name}) + SIZEOF({name}) <= {end:#x}"
        where = f"{memory.base:#010x} to {end - 1:#010x}"
        writer.line(f'ASSERT({inside}, "{front} is not in memory {memory.name}, {where}")')
    if all(array.is_generated for array in section.arrays):
        enough, hint = f"SIZEOF({name}) >= {section.size_bytes}", "was garbage-collected or lies elsewhere"
    else:
        elsewhere = f"{names.model}_{section.arrays[0].pool.c_name}_is_elsewhere"
        enough = f"SIZEOF({name}) >= {section.size_bytes} || DEFINED({elsewhere})"
        hint = f"is for an array of the application; if that lies elsewhere, define {elsewhere}"
    writer.line(f'ASSERT({enough}, "{front} has less than {section.size_bytes} bytes: it {hint}")')


def write_sections_switch(writer: Writer, plan: Plan, names: Names) -> None:
    """The macro that turns the check off, and the symbol; nothing where no section has to be placed."""
    if not placed_sections(plan):
        return
    writer.comment(
        f"Whether the linker script must INCLUDE {names.sections_file}, which defines the symbol below as a number of "
        "this plan. On a machine with 64 bits, such as a host in a test, nothing is placed."
    )
    writer.default(names.check_sections, "(UINTPTR_MAX <= 0xFFFFFFFFu)")
    writer.line(f"extern const uint8_t {names.sections_symbol}[];")
    writer.line()


def write_sections_check(writer: Writer, plan: Plan, names: Names) -> None:
    """Refuses to run in an image whose sections are those of another plan."""
    if placed_sections(plan):
        writer.line(f"#if {names.check_sections}")
        writer.refuse(f"(uintptr_t){names.sections_symbol} != {plan_number(plan)}u", names.error("RANGE"))
        writer.line("#endif")
