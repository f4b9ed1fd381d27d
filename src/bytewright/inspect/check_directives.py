"""Whether a compiler reads the C of a bundle as `check` does, whatever its settings: what the preprocessor is told.

Macros are named after the model and stand for one thing each; files are those of the bundle and of the compiler. Code
stands under a condition only where either way is right, or where it refuses what it is given: the conditions that are
generated are listed here, each with what may be under it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from bytewright.base.c_names import KEYWORDS_OF_C
from bytewright.inspect.c_source import CSource, Directive, words_of
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.options import KernelCode, Options
from bytewright.record.names import GLUE_FOLDER, Names
from bytewright.record.plan import Plan

_C_LIBRARY = frozenset({"math.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"})
_ETHOS_U_DRIVER = "ethosu_driver.h"
_OF_A_COMPILER = re.compile(r"<(?!/)(?!.*\.\.)[\w./-]+>")
# Words that tell a compiler what no reader of plain C sees.
_BEHIND_C = frozenset({"_Pragma", "__pragma", "__declspec"})
_ASSEMBLER = frozenset({"asm", "__asm", "__asm__"})
_ATTRIBUTES = frozenset({"__attribute", "__attribute__"})
# What portable kernels call of others: the C library, and macros for numbers.
_CALLED = frozenset({*FUNCTIONS, "memcpy", "memmove", "memset", "INT32_C", "UINT32_C", "INT64_C", "UINT64_C"})
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONDITIONS = frozenset({"if", "ifdef", "ifndef"})
# What an instruction may ask of the core besides its feature: a floating-point unit for doubles.
_WITHIN_INSTRUCTION = "if defined ( __ARM_FP ) & & ( __ARM_FP & 8 )"


def faults_of_directives(
    plan: Plan, names: Names, files: Mapping[str, CSource], options: Options
) -> Iterator[str]:
    """Every way in which a compiler may see something else, one sentence each.

    Args:
        plan: Of the bundle.
        names: Of the plan.
        files: All C files, by path.
        options: What the user asked for, which says what may stand in the C of kernels.

    Raises:
        ParseError: Where functions are is not clear.
    """
    yield from _faults_of_macros(names, files)
    for path, source in files.items():
        yield from (f"{path} has {what}, which not all compilers read alike" for what in source.ambiguities)
        yield from _File(plan, names, path, source, options).faults()


def _faults_of_macros(names: Names, files: Mapping[str, CSource]) -> Iterator[str]:
    """Macros that could stand for something else in what is read of the C."""
    declared = frozenset(_declared(files))
    values: dict[str, str] = {}
    for path, source in files.items():
        for name, value in source.definitions:
            if not name.startswith(f"{names.prefix}_"):
                yield f"{path} defines {name}, which is no macro of the model"
            elif name in declared:
                yield f"{path} defines {name}, which the C has as something else too"
            elif words_of(values.setdefault(name, value)) != words_of(value) and not _is_of_feature(
                names, name
            ):
                yield f"{path} defines {name} once more, as something else"


def _declared(files: Mapping[str, CSource]) -> Iterator[str]:
    """Names that are called, or that are given a value: no macros without parameters."""
    for source in files.values():
        words = words_of(source.without_directives)
        yield from (word for word, following in pairwise(words) if following in {"(", "="})


def _is_of_feature(names: Names, macro: str) -> bool:
    """Whether it says that a compiler generates code for a feature: 1 or 0, as is found out where it is defined."""
    return macro.startswith(f"{names.prefix}_HAS_")


class _File:
    """One file: its directives in order, but for those that keep a header from being included twice."""

    def __init__(self, plan: Plan, names: Names, path: str, source: CSource, options: Options) -> None:
        self.plan, self.names, self.path, self.source = plan, names, path, source
        self.code = options.kernel_code
        self.has_kernels = path in {names.kernels_source, *map(names.device_source, plan.devices.values())}
        self.has_parameters = path == names.parameters_source
        # What an application may define before, and else is this.
        self.defaults = {
            f"{names.step}(...)": "((void)0)",
            names.check_range: "(UINTPTR_MAX <= 0xFFFFFFFFu)",
            names.check_sections: "(UINTPTR_MAX <= 0xFFFFFFFFu)",
            **{
                names.memory_base(memory.name, alias): f"0x{first:08X}u"
                for memory in plan.hardware.memories
                for alias, (first, _) in enumerate(memory.address_ranges())
            },
            f"{names.aligned}(bytes)": "__attribute__((aligned(bytes)))",
            f"{names.section}(name)": "__attribute__((section(name)))",
        }

    def faults(self) -> Iterator[str]:
        """Every directive, and every word to a compiler, that is none of those that are generated."""
        words = {*words_of(self.source.without_directives)}
        for word in sorted(words & self._hidden_words()):
            yield f"{self.path} has '{word}', which tells the compiler what C does not say"
        if self.has_kernels:
            yield from self._faults_of_kernels(words)
        directives, position = self._inside_of_guard(), 0
        while position < len(directives):
            group = _group(directives[position:])
            if not self._is_generated(group):
                yield f"{self.path}:{group[0].line}: '#{group[0].text}' is nothing that is generated"
            position += len(group)

    def _hidden_words(self) -> frozenset[str]:
        """The words that this file has not: what tells a compiler what C does not say."""
        if self.has_parameters:
            return _BEHIND_C  # of which each word follows from the plan
        if not self.has_kernels or self.code is KernelCode.PORTABLE:
            return _BEHIND_C | _ASSEMBLER | _ATTRIBUTES
        return _BEHIND_C | (frozenset[str]() if self.code is KernelCode.AUTO else _ASSEMBLER)

    def _faults_of_kernels(self, words: Collection[str]) -> Iterator[str]:
        """Statements of assembler beside functions of their own, and, in portable kernels, names of the compiler's."""
        for item in self.source.items:
            is_own = item.words[:2] == ["static", "inline"] and "#" in item.words
            for word in sorted(_ASSEMBLER & {*item.words}) if not is_own else ():
                yield f"{self.path}:{item.tokens[0][1]} has '{word}' outside of a function for an instruction"
        if self.code is not KernelCode.PORTABLE:
            return
        for word in sorted(word for word in words if word.startswith("__") and word not in _ATTRIBUTES):
            yield f"{self.path} has '{word}', and its kernels are portable"
        called = {
            name
            for name, following in pairwise(words_of(self.source.without_directives))
            if following == "(" and _NAME.fullmatch(name) and name not in KEYWORDS_OF_C
        }
        defined = {item.function for item in self.source.items}
        for name in sorted(called - defined - _CALLED - {*self.plan.externals}):
            yield f"{self.path} calls '{name}', which is no function of the bundle's or of the C library's"

    def _inside_of_guard(self) -> Sequence[Directive]:
        """All directives but those around all of a header."""
        directives = self.source.directives
        is_glue = self.path == self.names.ethos_u_header
        guard = self.names.ethos_u_guard if is_glue else self.names.guard(self.path)
        outside = [" ".join(each.text.split()) for each in (*directives[:2], *directives[-1:])]
        if outside != [f"ifndef {guard}", f"define {guard}", "endif"]:
            return directives
        is_around_all = not words_of(self.source.front) and not directives[-1].words
        return directives[2:-1] if is_around_all else directives

    def _is_generated(self, group: Sequence[Directive]) -> bool:
        """Whether a directive by itself, or all from a condition to its end, are among those of generated C."""
        names, condition = self.names, " ".join(words_of(group[0].text))
        codes = [directive.words for directive in group[:-1]]
        match [directive.name for directive in group]:
            case ["include"]:
                return self._is_included(group[0], is_for_feature=False) and not self._around(group)
            case ["define"]:
                return not self._around(group)
            case ["if", "error", "endif"]:
                return not any(codes)
            case ["ifdef", "endif"]:
                return condition == "ifdef __cplusplus" and codes[0] in (["extern", '"C"', "{"], ["}"])
            case ["ifndef", "define", "endif"]:
                return not any(codes) and self._is_default(condition, group[1])
            case ["if", *includes, "define", "else", "define", "endif"] if set(includes) <= {"include"}:
                return self._has_features and not any(codes) and self._is_feature(group[1:-1])
            case ["if", "else", "endif"]:
                return self._is_instruction(condition, group)
            case ["if", "if", "else", "endif", "else", "endif"]:
                is_inside = not group[0].words and bool(self._around(group))
                return is_inside and self._is_instruction(condition, group)
            case ["if", "endif"] if condition == f"if {names.check_range}":
                return _is_refusal(codes[0]) or codes[0][:4] == ["static", "bool", "lies_within", "("]
            case ["if", "endif"] if condition == f"if {names.check_sections}":
                return _is_refusal(codes[0])
            case ["if", "endif"]:  # what only the plain C of instructions calls
                macros = [word for word in words_of(group[0].text)[1:] if word not in {"!", "|"}]
                return self._are_features(macros) and codes[0][:2] == ["static", "inline"]
            case ["if", "else", "error", "endif"]:
                return self.has_parameters and codes[0][:2] == ["__asm__", "("] and not any(codes[1:])
            case ["ifndef", "endif"]:
                is_all = not words_of(self.source.front) and not group[-1].words
                return (
                    condition == f"ifndef {names.own_backend}"
                    and self.path == names.backend_source
                    and is_all
                )
            case _:
                return False

    def _around(self, group: Sequence[Directive]) -> Sequence[str]:
        """The words of the function that a directive stands in; a header and a file of numbers have none."""
        has_functions = self.path.endswith(".c") and not self.has_parameters
        return self.source.around(group[0].line) if has_functions else ()

    def _is_included(self, directive: Directive, *, is_for_feature: bool) -> bool:
        """Whether a file is the bundle's, or comes with every compiler, or with one that has a feature."""
        name = directive.text.removeprefix("include").strip()
        if name.startswith("<"):
            known = _C_LIBRARY | (
                {_ETHOS_U_DRIVER} if self.path.startswith(GLUE_FOLDER) else frozenset[str]()
            )
            return name[1:-1] in known or (is_for_feature and _OF_A_COMPILER.fullmatch(name) is not None)
        ends = (".h", ".inc") if self.has_parameters else (".h",)
        own = {f'"{self.names.included(path)}"' for path in self.plan.files if path.endswith(ends)}
        own |= {
            f'"../{path}"' for path in self.plan.files if path.startswith("include/")
        }  # of an Arduino library
        return name in own

    def _is_default(self, condition: str, definition: Directive) -> bool:
        """Whether a macro is one that the application may define, and what it else stands for is as generated."""
        words = words_of(definition.text)[1:]
        return any(
            condition == f"ifndef {words[0]}" and words == words_of(f"{head} {value}")
            for head, value in self.defaults.items()
        )

    def _is_feature(self, group: Sequence[Directive]) -> bool:
        """Whether a macro says 1 under a condition, with what the compiler declares for it, and else 0."""
        *includes, first, _, second = group
        one, zero = words_of(first.text)[1:], words_of(second.text)[1:]
        return (
            all(self._is_included(each, is_for_feature=True) for each in includes)
            and _is_of_feature(self.names, one[0])
            and (one[1:], zero) == (["1"], [one[0], "0"])
        )

    @property
    def _has_features(self) -> bool:
        """Whether the file may ask for features of the core."""
        return self.has_kernels and self.code is not KernelCode.PORTABLE

    def _are_features(self, macros: Sequence[str]) -> bool:
        return self._has_features and all(_is_of_feature(self.names, macro) for macro in macros)

    def _is_instruction(self, condition: str, group: Sequence[Directive]) -> bool:
        """Whether both arms are types of registers, or what an instruction is: no kernel has a condition in it."""
        if not self._are_features([condition.removeprefix("if ")]):
            return False
        around = self._around(group)
        if around:
            name = around[around.index("(") - 1] if "(" in around else ""
            return around[:2] == ["static", "inline"] and name not in {
                step.kernel for step in self.plan.steps
            }
        arms = [directive.words for directive in group[:-1]]
        return all(arm[:1] == ["typedef"] and not {"(", "="} & {*arm} for arm in arms)


def _group(directives: Sequence[Directive]) -> Sequence[Directive]:
    """The first directive; if it is a condition, all up to its end, or to the next one that is no instruction's."""
    if directives[0].name not in _CONDITIONS:
        return directives[:1]
    depth = 1
    for position, directive in enumerate(directives[1:], start=1):
        if directive.name == "endif":
            depth -= 1
            if depth == 0:
                return directives[: position + 1]
        elif directive.name in _CONDITIONS:
            if " ".join(words_of(directive.text)) != _WITHIN_INSTRUCTION:
                return directives[:position]
            depth += 1
    return directives


def _is_refusal(words: Sequence[str]) -> bool:
    """Whether code is made of `if (...) { return ...; }` alone, and calls nothing but `lies_within`."""
    called = {word for word, following in pairwise(words) if following == "(" and _NAME.fullmatch(word)}
    position = 0
    while position < len(words):
        if words[position : position + 2] != ["if", "("]:
            return False
        end = _closing(words, position + 1)
        if words[end + 1 : end + 3] != ["{", "return"] or ";" not in words[end:]:
            return False
        semicolon = words.index(";", end)
        if words[semicolon + 1 : semicolon + 2] != ["}"]:
            return False
        position = semicolon + 2
    return called <= {"if", "return", "lies_within"}


def _closing(words: Sequence[str], opening: int) -> int:
    """Where the parenthesis is closed that is opened there; the end of the words if it is not."""
    depth = 0
    for position in range(opening, len(words)):
        depth += (words[position] == "(") - (words[position] == ")")
        if depth == 0:
            return position
    return len(words)
