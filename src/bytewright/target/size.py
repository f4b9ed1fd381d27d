"""Sizes as people write them, and back: exact, in binary units, never negative.

A size is an integer number of bytes or a string such as "64KiB", or "64K" and "0x10000" as in linker scripts. Decimal
units (kB, MB) are refused because data sheets use them for both meanings, and fractions because they hide a rounding.
"""

import re

_UNITS: dict[str, int] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LINKER_UNITS: dict[str, int] = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PATTERN = re.compile(r"([0-9]+) ?(B|KiB|MiB|GiB|[KMGkmg])?", re.ASCII)
_HEXADECIMAL = re.compile(r"0[xX]0*([0-9a-fA-F]+)")
_LARGEST_SIZE_BYTES = (1 << 63) - 1  # size arithmetic in the generated C is 64-bit
_MOST_DIGITS = 20


class SizeError(ValueError):
    """A value is not a size; the text says why."""


def parse_size(value: object, *, zero_allowed: bool = False) -> int:
    """The number of bytes that an integer or a string such as "64KiB", "64K", "512 B", "0x200" or "100" means.

    Raises:
        SizeError: Not a size, negative, zero without `zero_allowed`, or beyond 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SizeError(f'{_shown(value)} is not a size; write an integer or a string such as "64KiB"')
    size_bytes = value if isinstance(value, int) else _parse_text(value)
    if size_bytes < 0:
        raise SizeError(f"a size cannot be negative: {str(value)[:40]}")
    if size_bytes == 0 and not zero_allowed:
        raise SizeError("a size of zero is not allowed here")
    if size_bytes > _LARGEST_SIZE_BYTES:
        raise SizeError(f"{str(value)[:40]} is larger than 64 bits can count")
    return size_bytes


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _parse_text(text: str) -> int:
    hexadecimal = _HEXADECIMAL.fullmatch(text.strip())
    if hexadecimal is not None:
        return int(hexadecimal[1], 16)
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        if text.strip().startswith("-"):
            raise SizeError(f"a size cannot be negative: {text.strip()[:40]}")
        raise SizeError(
            f"{_shown(text)} is not a size; write digits and, if you like, B, KiB, MiB or GiB, or K, M or G, or 0x10000"
        )
    digits, unit = match.group(1), match.group(2) or "B"
    if len(digits.lstrip("0")) > _MOST_DIGITS:  # Python refuses to convert very long digit strings
        raise SizeError(f"{text[:40]!r} is larger than 64 bits can count")
    return int(digits) * (_UNITS.get(unit) or _LINKER_UNITS[unit.upper()])


def format_size(size_bytes: int) -> str:
    """The size in the largest unit that divides it: "64KiB", "100B"; `parse_size` gives it back."""
    for unit in ("GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _UNITS[unit] == 0:
            return f"{size_bytes // _UNITS[unit]}{unit}"
    return f"{size_bytes}B"
