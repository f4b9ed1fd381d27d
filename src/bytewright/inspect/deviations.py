"""Deviations of the generated C from MISRA C:2012, as records in the form of MISRA Compliance:2020.

docs/misra.md has the same records, and the counts that tests hold.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """One record.

    Attributes:
        identifier: It does not change.
        guideline: A rule or a directive.
        category: As MISRA C:2012 has it.
        scope: Where the generated C deviates.
        reason: Why.
        evidence: What shows that it does no harm.
        is_of_assembler: Whether it is of statements of assembler alone, which a bundle may be without.
    """

    identifier: str
    guideline: str
    category: str
    scope: str
    reason: str
    evidence: str
    is_of_assembler: bool = False


_PLAN = (
    "bytewright check: the plan, and that the C touches what it says, proved without the code that made it"
)
_SET = "checks of the set functions and of the run, each with an error of its own"
_EXACT = "outputs equal the reference's bit for bit (bytewright validate)"
_SAME = "the same file has the meaning in C99; both are compared on every operand that is tested"

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "BW-D4.2",
        "Dir 4.2",
        "Advisory",
        "kernels of instruction sets, with --kernels auto; parameters by --embed incbin",
        "statements of assembler keep in registers what compilers spill",
        "each is described beside its function, with the same in C99; none with --kernels portable",
        is_of_assembler=True,
    ),
    Deviation(
        "BW-D4.3",
        "Dir 4.3",
        "Required",
        "the same",
        "a statement of assembler stands in a static inline function that holds nothing else",
        _SAME,
        is_of_assembler=True,
    ),
    Deviation(
        "BW-1.2",
        "Rule 1.2",
        "Advisory",
        "attributes for alignment and sections; functions of the compiler for instructions; assembler",
        "C99 has none; attributes are macros that the application may define",
        "compiled without a warning by gcc and clang; none of the others with --kernels portable",
    ),
    Deviation(
        "BW-2.2",
        "Rule 2.2",
        "Required",
        "0 - x, which the analysis takes for an operation without effect",
        "negation by subtraction",
        _EXACT,
    ),
    Deviation(
        "BW-2.4",
        "Rules 2.4, 2.5",
        "Advisory",
        "tags and macros of the header",
        "they are for the application, which the analysis does not see",
        "each is described in the header",
    ),
    Deviation(
        "BW-5.7",
        "Rules 5.7, 5.9",
        "Required, Advisory",
        "with another device: enumerations without a tag, and static inline helpers in the file of each processor",
        "they are the same in each",
        "the C compiler",
    ),
    Deviation(
        "BW-8.14",
        "Rule 8.14",
        "Required",
        "parameters of kernels",
        "restrict stands only where bytes are disjoint at every call",
        _PLAN,
    ),
    Deviation(
        "BW-9.3",
        "Rule 9.3",
        "Required",
        "vectors that functions return; arrays whose length is that of their initialiser",
        "the analysis takes them for arrays that are initialised in part",
        "the C compiler",
    ),
    Deviation(
        "BW-10.1",
        "Rules 10.1, 10.4, 10.6, 10.8",
        "Required",
        "arithmetic of kernels, and bytes of an open batch",
        "right shifts of negative numbers and casts of sums are the rounding of the reference",
        f"ranges are proved when the model is compiled; {_EXACT}",
    ),
    Deviation(
        "BW-11.4",
        "Rules 11.4, 11.5, 11.6, 11.8",
        "Advisory, Required",
        "typed pointers into pools; addresses that are compared as numbers",
        "a pool is bytes that tensors of other types use again; the build has -fno-strict-aliasing",
        f"{_PLAN}; {_SET}",
    ),
    Deviation(
        "BW-12.3",
        "Rules 12.3, 17.7",
        "Advisory, Required",
        "statements of assembler",
        "the analysis takes them for expressions and calls",
        "none with --kernels portable",
        is_of_assembler=True,
    ),
    Deviation(
        "BW-15.5",
        "Rule 15.5",
        "Advisory",
        "checks at the beginning of functions",
        "they return at once, so that nothing is changed before all have passed",
        _SET,
    ),
    Deviation(
        "BW-16.3",
        "Rule 16.3",
        "Required",
        "lookups",
        "each case returns",
        "the C compiler",
    ),
    Deviation(
        "BW-18.4",
        "Rule 18.4",
        "Advisory",
        "addresses of tensors",
        "the base is a pool, the offset a constant of the plan inside it",
        _PLAN,
    ),
    Deviation(
        "BW-19.2",
        "Rule 19.2",
        "Advisory",
        "arguments of packed forms",
        "they are a union, as runtimes pass it",
        "what is packed is compared with what is read (bytewright check)",
    ),
    Deviation(
        "BW-20.1",
        "Rules 20.1, 20.9",
        "Advisory, Required",
        "headers of the compiler after #if, and its macros that need not exist",
        "only so can one file be compiled for a core with the instructions and for one without",
        "bytewright check: no directive is there that is not generated",
    ),
)
