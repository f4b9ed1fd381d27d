"""Parameters whose load address lies in another memory than their run address: output sections, and what to copy.

QEMU puts every segment of an image at its load address, as a programmer of flash does, and the start-up code copies
what is to be read elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from bytewright.c_names import c_identifier
from bytewright.execute.build import loaded_blob_section
from bytewright.execute.description import Bundle, PoolUse
from bytewright.target.model import Provider


def loaded_pools(bundle: Bundle) -> list[PoolUse]:
    """Parameter pools that the image brings to another memory than the one where they are read."""
    return [
        pool
        for pool in bundle.pools
        if pool.load_memory is not None and not pool.is_copied and pool.used_bytes
    ]


def load_sections(bundle: Bundle, memory_name: str, region_names: Mapping[str, str]) -> str:
    """The output sections of such pools in a memory; regions of the linker by memory. They come before others."""
    own = [pool for pool in loaded_pools(bundle) if pool.memory == memory_name]
    return "".join(f"{_output_section(bundle, pool, region_names)}\n" for pool in own)


def _output_section(bundle: Bundle, pool: PoolUse, region_names: Mapping[str, str]) -> str:
    """Its bytes are found by the bundle's object file, because arrays without bytes may share the section."""
    if pool.provider is Provider.CALLER:
        content = f"*({loaded_blob_section(pool)})"
    else:
        section = bundle.target.section_of(bundle.target.pool(pool.name))
        inputs = array_section(bundle, pool) if section is None else f"{section} {section}.*"
        content = f"*bundle_{bundle.model}_parameters.o({inputs})"
    place = f"> {region_names[pool.memory]} AT> {region_names[pool.load_memory or pool.memory]}"
    return f"    {_name(pool)} : ALIGN(32) {{ {content} . = ALIGN(4); }} {place}"


def array_section(bundle: Bundle, pool: PoolUse) -> str:
    """The section that the compiler gives the array of a pool if the target names none, with -fdata-sections."""
    return f"{'.bss' if pool.begins_empty else '.rodata'}.{bundle.model}_{pool.c_name}_{pool.role.value}"


def load_array_section(bundle: Bundle, pool: PoolUse) -> str:
    """The same of the array that the pool is copied from."""
    return f".rodata.{bundle.model}_{pool.c_name}_{pool.role.value}_load"


def load_table(bundle: Bundle) -> str:
    """What the start-up code copies: load address, first and end of each section."""
    names = [_name(pool) for pool in loaded_pools(bundle)]
    return "\n".join(
        f"        LONG(LOADADDR({name})) LONG(ADDR({name})) LONG(ADDR({name}) + SIZEOF({name}))"
        for name in names
    )


def _name(pool: PoolUse) -> str:
    return f".memory.{c_identifier(pool.memory)}.load.{pool.c_name}"
