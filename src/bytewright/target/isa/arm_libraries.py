"""Stack that functions of the C library and of the compiler's own need on Arm's microcontroller cores.

Read from the code of newlib 3.3 and libgcc 12.2 as Debian has them: every push and every `sub sp` on the worst path of
calls. `newlib` is for the cores that gcc 12.2 knows, without floating-point unit, and rounded up over each group of
functions, so that a neighbouring version fits too; `newlib-3.3` is exact, for cores with that unit. A target file that
has other libraries declares its own.
"""

from bytewright.target.isa.isa import LibraryStacks


def _aeabi(names: str) -> tuple[str, ...]:
    return tuple(f"__aeabi_{name}" for name in names.split())


_MEMORY = ("memcpy", "memmove", "memset", "memcmp")
_MATH = ("expf", "tanhf", "sqrtf", "roundf", "floorf")
_ROUNDING = ("ceilf", "rintf", "fabsf")
_FUNCTIONS = ("logf", "expm1f", "erfcf", "powf", "fmaf", "fmodf", "exp", "atan2f")
_TRIGONOMETRY = ("sinf", "cosf")  # with arrays for arguments of thousands of turns
_AEABI_MEMORY = _aeabi(
    "memcpy memcpy4 memcpy8 memmove memmove4 memmove8 memset memset4 memset8 memclr memclr4 memclr8"
)
_AEABI_INTEGERS = _aeabi("ldivmod uldivmod lmul llsl llsr lasr lcmp ulcmp idiv uidiv idivmod uidivmod")
_AEABI_FLOATS = _aeabi(
    "fadd fsub frsub fmul fdiv fcmpeq fcmplt fcmple fcmpge fcmpgt fcmpun f2iz f2uiz f2lz f2ulz i2f ui2f l2f ul2f f2d "
    "dadd dsub drsub dmul ddiv dcmpeq dcmplt dcmple dcmpge dcmpgt dcmpun d2f d2iz d2uiz d2lz d2ulz i2d ui2d l2d ul2d"
)
_SWITCHES = tuple(f"__gnu_thumb1_case_{kind}" for kind in ("sqi", "uqi", "shi", "uhi", "si"))
_GROUPS = (
    *(_MEMORY, _AEABI_MEMORY, _AEABI_INTEGERS, _AEABI_FLOATS, _MATH, _SWITCHES),
    *(_ROUNDING, _FUNCTIONS, _TRIGONOMETRY),
)


def _rounded(*sizes: int) -> LibraryStacks:
    """One size for each group."""
    by_name = tuple((name, size) for group, size in zip(_GROUPS, sizes, strict=True) for name in group)
    return LibraryStacks("newlib", "newlib 3.3 and libgcc 12.2", by_name)


# Armv6-M and Armv8-M baseline have few registers and no division, the others are alike.
BASELINE = _rounded(40, 40, 112, 112, 128, 24, 96, 192, 640)
MAINLINE = _rounded(32, 32, 64, 64, 96, 24, 96, 160, 640)
WITH_FLOATS = LibraryStacks(
    "newlib-3.3",
    "newlib 3.3 and libgcc 12.2",
    tuple(
        zip(
            (
                *(*_MEMORY, *_AEABI_MEMORY, *_AEABI_INTEGERS[:2], *_MATH),
                *(*_ROUNDING, *_FUNCTIONS, *_TRIGONOMETRY),
            ),
            # clang calls the second group where gcc calls the first.
            (
                *(*(0, 16, 16, 16), *(*(0, 0, 0), *(16,) * 9), *(52, 52, 24, 32, 16, 0, 0)),
                *(*(0, 8, 0), *(28, 16, 56, 88, 40, 40, 88, 32), *(480, 480)),
            ),
            strict=True,
        )
    ),
)
