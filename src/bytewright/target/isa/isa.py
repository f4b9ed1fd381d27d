"""The record of an instruction set."""

from dataclasses import dataclass, field

from bytewright.target.isa.accelerator import Accelerator
from bytewright.target.isa.style import VECTOR, KernelStyle


@dataclass(frozen=True, slots=True)
class LibraryStacks:
    """Stack that functions of a C library, and of the compiler's own, need on a core, callees included.

    Attributes:
        name: As `libraries` in target files has it.
        source: Which library, for people.
        sizes: Bytes by function.
    """

    name: str
    source: str
    sizes: tuple[tuple[str, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Emulator:
    """What runs programs of an instruction set on other machines.

    Attributes:
        program: QEMU's for user mode.
        processor: Its name for one that has what the instruction set has.
    """

    program: str
    processor: str


@dataclass(frozen=True, slots=True)
class Isa:
    """An instruction set, or one core of it.

    Attributes:
        name: As target files have it.
        address_bits: The width of an address, unless a device says otherwise.
        features: What kernels may use beyond plain C, as its compilers' macros have it: `dsp`, `mve`, `neon`.
        style: The shape of portable kernels.
        stack_allowance_bytes: What one call level may need beyond its explicit arrays, unless a device says otherwise.
        is_micro: Whether machines with it are microcontrollers, unless a target file says otherwise.
        is_host: Whether it is that of the machine at hand, whose own compiler generates code for it.
        triple: Of its GNU tools, and for clang's `--target`; None if none is known.
        flags: What makes gcc and clang generate code for it.
        processor: What `uname -m` says where it runs as a program of an operating system; None where it runs bare.
        processor_flags: What /proc/cpuinfo must list there, so that code for it runs.
        emulator: What runs its programs elsewhere, if anything does.
        cores: Those that code for it must run on, where it stands for several.
        libraries: Stack needs by library, the one that is assumed first.
        macro: What a compiler that generates code for it defines; None if nobody asks.
        whole_frame_flags: What makes such a compiler count all that leaf functions have on the stack.
        accelerator: Its configuration, where it is driven by command streams.
        is_engine: Whether it only copies: it runs no program.
        architectures: Those whose programs it runs without an operating system, by Arm's names; none if nobody asks.
    """

    name: str
    address_bits: int
    features: tuple[str, ...] = ()
    style: KernelStyle = VECTOR
    stack_allowance_bytes: int = 256
    is_micro: bool = False
    is_host: bool = False
    triple: str | None = None
    flags: tuple[str, ...] = ()
    processor: str | None = None
    processor_flags: tuple[str, ...] = ()
    emulator: Emulator | None = None
    cores: tuple[str, ...] = ()
    libraries: tuple[LibraryStacks, ...] = ()
    macro: str | None = None
    whole_frame_flags: tuple[str, ...] = ()
    accelerator: Accelerator | None = None
    is_engine: bool = False
    architectures: tuple[str, ...] = ()

    @property
    def runs_programs(self) -> bool:
        """Whether C can be compiled for it, so that a device of its kind may have a stack."""
        return self.accelerator is None and not self.is_engine

    def lacks(self, other: "Isa") -> tuple[str, ...] | None:
        """What another one has, and this one not, of what bare programs may use; None if they are of other kinds."""
        if not (self.architectures and other.architectures):
            return None
        mine = {*self.architectures, *self.features}
        return tuple(name for name in (*other.architectures, *other.features) if name not in mine)

    def library(self, name: str) -> LibraryStacks | None:
        """The figures of the library of this name, if there are any."""
        return next((library for library in self.libraries if library.name == name), None)
