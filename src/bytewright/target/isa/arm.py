"""Arm's cores. A core inherits what the one in front of it has; features and flags are those of gcc and clang."""

from dataclasses import replace

from bytewright.target.isa.arm_libraries import BASELINE, MAINLINE, WITH_FLOATS
from bytewright.target.isa.isa import Emulator, Isa
from bytewright.target.isa.style import SCALAR, SCALAR_WITH_DSP, SCALAR_WITH_MVE, SIGNED_VECTOR

_V6_M = ("armv6-m",)
_V7_M = (*_V6_M, "armv7-m")
_V8_M_BASELINE = (*_V6_M, "armv8-m.base")
_V8_M_MAINLINE = (*_V7_M, "armv8-m.base", "armv8-m.main")
_V8_1_M = (*_V8_M_MAINLINE, "armv8.1-m.main")


def _core(
    base: Isa,
    name: str,
    *features: str,
    flags: tuple[str, ...] = (),
    architectures: tuple[str, ...] | None = None,
) -> Isa:
    """A microcontroller core that has all that another one has, and more."""
    flags = (f"-mcpu={name}", "-mthumb", *flags)
    features = (*base.features, *features)
    base = base if architectures is None else replace(base, architectures=architectures)
    style = SCALAR_WITH_MVE if "mve" in features else SCALAR_WITH_DSP if "dsp" in features else SCALAR
    return replace(base, name=name, features=features, flags=flags, style=style)


_ANY_M = Isa(
    "cortex-m",
    32,
    architectures=_V6_M,
    style=SCALAR,
    is_micro=True,
    triple="arm-none-eabi",
    libraries=(BASELINE,),
)  # scalar to portable C even where it has vectors: gcc 12 uses none
_MAINLINE = replace(_ANY_M, architectures=_V7_M, libraries=(MAINLINE,))
_WITH_FLOATS = replace(_MAINLINE, libraries=(MAINLINE, WITH_FLOATS))
_M4 = _core(_WITH_FLOATS, "cortex-m4", "dsp", "fp32", flags=("-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"))
_M55 = _core(
    *(_M4, "cortex-m55", "fp64", "mve", "mve-float"), flags=("-mfloat-abi=hard",), architectures=_V8_1_M
)

CORTEX_M = (
    # Its cores: one for each architecture, and for each scheduling that gcc tells apart.
    replace(_ANY_M, cores=tuple(f"cortex-{c}" for c in ("m0", "m3", "m4", "m7", "m23", "m33", "m55"))),
    *(_core(_ANY_M, name) for name in ("cortex-m0", "cortex-m0plus", "cortex-m1")),
    _core(_ANY_M, "cortex-m23", architectures=_V8_M_BASELINE),
    _core(_MAINLINE, "cortex-m3"),
    _M4,
    _core(_M4, "cortex-m7", "fp64", flags=("-mfloat-abi=hard", "-mfpu=fpv5-d16")),
    _core(
        _MAINLINE, "cortex-m33+nodsp", architectures=_V8_M_MAINLINE
    ),  # as compilers spell one that was made without the DSP extension
    *(_core(_MAINLINE, name, "dsp", architectures=_V8_M_MAINLINE) for name in ("cortex-m33", "cortex-m35p")),
    _M55,
    replace(_core(_M55, "cortex-m52", flags=("-mfloat-abi=hard",)), libraries=(MAINLINE,)),
    replace(_core(_M55, "cortex-m85", flags=("-mfloat-abi=hard",)), libraries=()),
)
CORTEX_R = tuple(Isa(f"cortex-r{number}", 32, is_micro=True) for number in (4, 5, 7, 8, 52))

# Under Linux; every core of 64 bits has vectors, those of Armv8.2-A with an extension products of four bytes.
_AARCH64 = Isa(
    "aarch64",
    64,
    ("neon",),
    stack_allowance_bytes=512,  # gcc spills more vectors than there are on smaller machines
    triple="aarch64-linux-gnu",
    flags=("-march=armv8-a",),
    processor="aarch64",
    processor_flags=("asimd",),
    emulator=Emulator("qemu-aarch64", "cortex-a72"),
)
_DOT_PRODUCT = replace(
    _AARCH64,
    name="aarch64-dotprod",
    features=("neon", "neon-dotprod"),
    style=SIGNED_VECTOR,
    flags=("-march=armv8.2-a+dotprod",),
    processor_flags=("asimd", "asimddp"),
    emulator=Emulator("qemu-aarch64", "neoverse-n1"),
)
_MAX = Emulator("qemu-aarch64", "max")


def _application_core(base: Isa, name: str) -> Isa:
    """A core of 64 bits: code for it runs wherever there is what the architecture has, but may be scheduled for it."""
    return replace(base, name=name, flags=(f"-mcpu={name}",), emulator=_MAX)


def _recent_core(name: str) -> Isa:
    """One whose name gcc 12 does not know: it takes code for the architecture."""
    return replace(_DOT_PRODUCT, name=name, emulator=_MAX)


CORTEX_A = (
    *(Isa(f"cortex-a{number}", 32) for number in (5, 7, 8, 9, 12, 15, 17, 32)),
    _AARCH64,
    _DOT_PRODUCT,
    *(_application_core(_AARCH64, f"cortex-a{n}") for n in (34, 35, 53, 57, 72, 73)),
    *(_application_core(_DOT_PRODUCT, f"cortex-a{n}") for n in (55, 65, 75, 76, 77, 78, 510, 710)),
    *(_application_core(_DOT_PRODUCT, f"neoverse-{name}") for name in ("n1", "n2", "v1")),
    *(_recent_core(name) for name in ("cortex-a520", "cortex-a715", "cortex-a720", "neoverse-v2")),
)
ARM = (*CORTEX_M, *CORTEX_R, *CORTEX_A)
