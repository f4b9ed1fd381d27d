"""What the C of a bundle takes as the target's compiler makes it: each source compiled once, and kept by content."""

from collections.abc import Sequence
from pathlib import Path

from bytewright.elf.sizes import SectionSizes, section_sizes
from bytewright.execute.build import LANGUAGE_FLAGS, include_flags, staged
from bytewright.execute.description import Bundle
from bytewright.execute.objects import compile_object
from bytewright.execute.tools import build_folder, cores_of, find_compiler
from bytewright.record.devices import DeviceKind
from bytewright.target.isa.isa import Isa


def code_size(bundle: Bundle, flags: Sequence[str] = ("-O2",), compiler: str | None = None) -> SectionSizes:
    """The sizes of all sources that have functions, without the arrays that pools are, and without the self-test.

    Args:
        bundle: Its devices choose compilers and cores; of an ISA that stands for several, the first.
        flags: After those that every build of a bundle has.
        compiler: `gcc`, `clang`, or a compiler's command; `None` for the usual one.

    Raises:
        CompileError: BW204 if no compiler is known for a device, BW501 or BW502 for the compiler.
    """
    names = bundle.names
    others = {names.parameters_source, names.self_test_source}
    arrays = {name(pool) for pool in bundle.plan.pools.values() for name in (names.array, names.load_array)}
    found = SectionSizes()
    with build_folder() as folder:
        bundle = staged(bundle, folder)
        includes = include_flags(bundle, folder)
        for source in bundle.sources:
            if source.relative_to(bundle.directory).as_posix() in others:
                continue
            command = [*find_compiler(_isa_of(source, bundle), compiler), *LANGUAGE_FLAGS, *flags, *includes]
            product, what = f"{source.stem}.o", f"'{command[0]}' ({source.name})"
            compile_object([*command, "-c"], source, product, folder=folder, what=what)
            found += section_sizes(folder / product, arrays)
    return found


def compiler_of(bundle: Bundle, chosen: str | None = None) -> list[str]:
    """The command of the compiler for the entry's device.

    Raises:
        CompileError: BW204 or BW501.
    """
    return find_compiler(cores_of(bundle.plan.device.isa)[0], chosen)


def _isa_of(source: Path, bundle: Bundle) -> Isa:
    """The core that a source is compiled for."""
    plan, names = bundle.plan, bundle.names
    of_devices = {
        Path(names.device_source(device)).name: plan.hardware.device(device.name).isa
        for device in plan.devices.values()
        if device.kind is DeviceKind.C
    }
    return cores_of(of_devices.get(source.name, plan.device.isa))[0]
