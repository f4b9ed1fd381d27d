"""C identifiers from the names of files and tensors, and short names for the graph's values."""

from __future__ import annotations

import re

from bytewright.diagnostics import CompileError, Diagnostic

# Words that a C or C++ compiler does not take as a member's name; headers are read by both.
_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast restrict return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union
    unsigned using virtual void volatile wchar_t while xor xor_eq errno main
    """.split()  # noqa: SIM905
)
MAX_IDENTIFIER_LENGTH = 63


def c_identifier(text: str, fallback: str) -> str:
    """`text` as a C identifier: other characters become `_`, digits in front and reserved words are avoided."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")[:MAX_IDENTIFIER_LENGTH].rstrip("_")
    if not name:
        return fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"[:MAX_IDENTIFIER_LENGTH]
    return f"{name}_" if name in _RESERVED else name


def port_names(tensors: tuple[tuple[int, str], ...], role: str) -> tuple[str, ...]:
    """Members of the generated structure of inputs or outputs.

    Args:
        tensors: Index and name of each; a tensor that is stated again gets a number.
        role: For the error, and for names without a usable character.

    Raises:
        CompileError: BW109, two tensors become the same identifier.
    """
    owners: dict[str, tuple[int, str]] = {}
    times_stated: dict[int, int] = {}
    for position, (index, tensor_name) in enumerate(tensors):
        stem = c_identifier(tensor_name.lower(), f"{role}_{position}")
        name, number = stem, times_stated.get(index, 0)
        while name in owners and number:
            name, number = f"{stem}_{number}", number + 1
        times_stated[index] = max(number, 1)
        if name in owners:
            raise CompileError(
                Diagnostic(
                    "BW109",
                    f"the {role}s '{owners[name][1]}' and '{tensor_name}' both become '{name}' in C",
                    help=f"rename one of the two {role} tensors in the model",
                )
            )
        owners[name] = (index, tensor_name)
    return tuple(owners)


def operator_prefix(kind: str, index: int) -> str:
    """What the names of an operator's values start with: `conv2d_3` for the CONV_2D at index 3."""
    return f"{kind.lower().replace('_2d', '2d')}_{index}"
