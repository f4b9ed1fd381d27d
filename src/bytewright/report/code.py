"""What the C of a bundle takes, as somebody compiled it: a line of the report."""

from dataclasses import dataclass

from bytewright.elf.sizes import SectionSizes
from bytewright.show.view import Fact, Facts, freeze


@dataclass(frozen=True, slots=True)
class Code:
    """The sizes of a bundle's C without its parameters; or why they are not known.

    Attributes:
        sizes: None where it could not be compiled.
        by: The compiler and what it was told.
        missing: Why it could not.
    """

    sizes: SectionSizes | None
    by: str
    missing: str = ""


def code_facts(code: Code | None) -> tuple[Facts, ...]:
    """The line; none where nobody asked."""
    if code is None:
        return ()
    if code.sizes is None:
        said = freeze({"code": {"missing": code.missing}})
        return (Facts((Fact((f"code: not known, {code.missing}",), data=said),)),)
    sizes = code.sizes
    members = {"text_bytes": sizes.text_bytes, "rodata_bytes": sizes.rodata_bytes}
    members |= {"data_bytes": sizes.data_bytes, "bss_bytes": sizes.bss_bytes}
    kinds = zip(("text", "rodata", "data", "bss"), members.values(), strict=True)
    parts = ", ".join(f"{kind} {size} B" for kind, size in kinds if size or kind == "text")
    line = f"code {sizes.all_bytes} B: {parts}, by {code.by}; parameters are not among it"
    return (Facts((Fact((line,), data=freeze({"code": {**members, "by": code.by}})),)),)
