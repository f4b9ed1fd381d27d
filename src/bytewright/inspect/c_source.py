"""C text by its tokens, macros and functions, whatever its layout: `check` reads the C of a bundle through here.

No compiler's settings are taken: what stands under any `#if` counts, as if each condition held. Macros are not
expanded: those that generated C uses are written, and read, as calls. That a compiler reads the same is for
`check_directives` to say. Of a file only the functions that are asked for are parsed.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, cast

from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from bytewright.base.c_names import KEYWORDS_OF_C

# C's own lexical rules, and nothing of how a file is laid out.
_QUOTED = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_COMMENT = re.compile(rf"/\*.*?\*/|//[^\n]*|{_QUOTED}", re.DOTALL)
_TOKEN = re.compile(rf"[A-Za-z_]\w*|\.?\d[\w.]*|->|{_QUOTED}|[^\s\w]", re.ASCII)
# Types of the headers that generated C includes. Others are known by where they stand.
_TYPES = frozenset(
    {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"bool", "size_t", "uintptr_t", "intptr_t", "ptrdiff_t"}
)
# Before a type and a star, where a product cannot stand, and behind them.
_BEFORE_TYPE, _BEHIND_TYPE = (
    frozenset({"const", "static", "{", "}", ";"}),
    frozenset({"const", "restrict", ")"}),
)
# What some compilers take for something else, and others not.
_JOINS = re.compile(r"\\[ \t]+\n|\?\?/[ \t]*\n")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_DIGRAPH = re.compile(r"<%|%>|<:|:>|%:")
_ATTRIBUTE = "__attribute__"  # and what is in parentheses behind it: nothing that is read depends on it


class Directive(NamedTuple):
    """A line for the preprocessor.

    Attributes:
        text: The line without the `#` and comments.
        line: Its number, from 1.
        code: What stands behind it, up to the next directive.
    """

    text: str
    line: int
    code: str

    @property
    def name(self) -> str:
        """`include`; empty for a line that has none."""
        return (words_of(self.text) or [""])[0]

    @property
    def words(self) -> list[str]:
        """The tokens of the code."""
        return words_of(self.code)


class Item(NamedTuple):
    """A line for the preprocessor, or what is declared or defined, at the level of a file, with the lines in it.

    Attributes:
        tokens: Its words, each with its line: those of a line for the preprocessor begin with `#` and end with an
            empty one.
        function: The name of the function that it defines; empty for anything else.
    """

    tokens: Sequence[tuple[str, int]]
    function: str

    @property
    def words(self) -> list[str]:
        """Its words alone."""
        return [word for word, _ in self.tokens]


class _Definition(NamedTuple):
    """A declaration or definition at the level of a file: its words, and where in the text it begins and ends."""

    words: Sequence[str]
    begin: int
    end: int


class CSource:
    """One file of C. All that is behind its comments and macros is read when it is first asked for.

    Attributes:
        path: What messages call it.
        comments: The texts of its comments.
        definitions: The names of its macros in their order, with `()` behind those that have parameters, and what each
            stands for.
        front: Its code before the first directive.
        directives: All its lines for the preprocessor.
    """

    def __init__(self, text: str, path: str = "") -> None:
        self.path = path
        self.comments: list[str] = []
        self._raw, self._uncommented = text, _COMMENT.sub(self._blank, _spliced(text))
        self._code, self.front, self.directives = _without_directives(self._uncommented)
        self.definitions = [_macro(line.text) for line in self.directives if line.name == "define"]
        self._parsed: dict[str, c_ast.FuncDef | None] = {}

    def _blank(self, found: re.Match[str]) -> str:
        """What stands in the place of a comment: its line breaks. Texts in quotes stay."""
        if not found[0].startswith("/"):
            return found[0]
        self.comments.append(found[0])
        return " " + "\n" * found[0].count("\n")

    @property
    def macros(self) -> dict[str, str]:
        """What its macros stand for, as text: of one that is defined twice, as it is last."""
        return dict(self.definitions)

    @property
    def ambiguities(self) -> list[str]:
        """What of its text is read otherwise by some compiler, such as trigraphs."""
        unquoted = re.sub(_QUOTED, '""', self._uncommented)
        found = {
            "a carriage return": "\r" in self._raw,
            "a line that may go on in the next": _JOINS.search(self._raw),
            "a trigraph": _TRIGRAPH.search(self._uncommented),
            "a digraph": _DIGRAPH.search(unquoted),
        }
        return [what for what, is_there in found.items() if is_there]

    @property
    def without_directives(self) -> str:
        """The text without comments and directives."""
        return self._code

    @cached_property
    def tokens(self) -> list[tuple[str, int]]:
        """All words but those of comments, each with its line, as `Item` has them."""
        found: list[tuple[str, int]] = []
        for number, line in enumerate(self._uncommented.split("\n"), start=1):
            is_directive = line.lstrip().startswith("#")
            found += [(word, number) for word in words_of(line)]
            found += [("", number)] if is_directive else []
        return found

    @cached_property
    def items(self) -> list[Item]:
        """What the file consists of, in order; what closes nothing, or does not end, is an item too."""
        found: list[Item] = []
        own: list[tuple[str, int]] = []
        words: list[str] = []  # of those that are no line for the preprocessor's
        depth, directive = 0, False
        for token in self.tokens:
            word = token[0]
            directive = directive or word == "#"
            own.append(token)
            if directive:
                directive, is_end = word != "", word == "" and not words
            else:
                words.append(word)
                depth += (word in "([{") - (word in ")]}")
                is_body = word == "}" and _opens_body(words)
                is_end = depth <= 0 and (word == ";" or is_body)
            if is_end:
                found.append(Item(own, _function_of(words)))
                own, words, depth = [], [], 0
        return [*found, *([Item(own, "")] if own else [])]

    @cached_property
    def _text(self) -> str:
        """All but comments, directives and attributes, which have white space in their places."""
        return _without_attributes(self._code)

    @cached_property
    def words(self) -> list[str]:
        """Its tokens without those of attributes and directives.

        Raises:
            ParseError: An attribute does not end.
        """
        return words_of(self._text)

    @cached_property
    def _definitions(self) -> list[_Definition]:
        found: list[_Definition] = []
        words: list[str] = []
        depth, begin, is_function = 0, 0, False
        for token in _TOKEN.finditer(self._text):
            word = token[0]
            if not words:
                begin, is_function = token.start(), False
            if word in "([{":
                is_function = is_function or (depth == 0 and word == "{" and words[-1:] == [")"])
                depth += 1
            words.append(word)
            depth -= word in ")]}"
            if depth < 0:
                raise ParseError(f"{self._place(token.start())}: '{word}' closes nothing")
            if depth == 0 and (word == ";" or (word == "}" and is_function)):
                found.append(_Definition(words, begin, token.end()))
                words = []
        if words:
            raise ParseError(f"{self._place(begin)}: what begins with '{words[0]}' does not end")
        return found

    def _place(self, position: int) -> str:
        return f"{self.path}:{self._text.count(chr(10), 0, position) + 1}"

    @cached_property
    def _functions(self) -> dict[str, list[_Definition]]:
        found: dict[str, list[_Definition]] = {}
        for definition in self._definitions:
            words = definition.words
            if words[-1] == "}" and "(" in words:
                found.setdefault(words[words.index("(") - 1], []).append(definition)
        return found

    def around(self, line: int) -> Sequence[str]:
        """The words of the declaration or definition that a line stands in; none for a line between them.

        Raises:
            ParseError: Where those are is not clear.
        """
        at = self._begins[line - 1]
        return next((one.words for one in self._definitions if one.begin < at < one.end), ())

    @cached_property
    def _begins(self) -> list[int]:
        """Where the lines begin."""
        return [0, *(found.end() for found in re.finditer("\n", self._text))]

    def function(self, name: str) -> c_ast.FuncDef | None:
        """A function, its variables told apart; None if there is none.

        Raises:
            ParseError: It is no C, or there are several of that name.
        """
        if name not in self._parsed:
            defined = self._functions.get(name, [])
            if len(defined) > 1:
                raise ParseError(f"{self.path}: {name} is defined {len(defined)} times")
            functions = [
                node for one in defined for node in self._parse(one) if isinstance(node, c_ast.FuncDef)
            ]
            for function in functions:
                _tell_apart(function)
            self._parsed[name] = functions[0] if functions else None
        return self._parsed[name]

    def _parse(self, definition: _Definition) -> list[c_ast.Node]:
        """The nodes that a definition is.

        Raises:
            ParseError: It is no C.
        """
        words, begin, end = definition
        types = sorted(_types(words))
        known = "".join(f"typedef int {name};" for name in types)
        line = self._text.count("\n", 0, begin) + 1
        text = f'{known}\n#line {line} "{self.path}"\n{self._text[begin:end]}'
        try:
            return CParser().parse(text).ext[len(types) :]
        except ParseError as error:
            raise ParseError(f"{error}, in what begins in line {line}") from None

    @cached_property
    def enumerators(self) -> dict[str, int]:
        """The enumerators of the file that are given numbers.

        Raises:
            ParseError: An enumeration is no C.
        """
        enumerations = (self._parse(one) for one in self._definitions if one.words[0] == "enum")
        nodes = (inner for enumeration in enumerations for node in enumeration for inner in descend(node))
        found: dict[str, int] = {}
        for node in nodes:
            match node:
                case c_ast.Enumerator(name=name, value=c_ast.Constant(value=value)) if value.isdecimal():
                    found[name] = int(value)
                case _:
                    pass
        return found

    def num_named(self, word: str, functions: Collection[str]) -> int:
        """How often a word stands in some functions of the file."""
        inside = (definition for name in functions for definition in self._functions.get(name, ()))
        return sum(definition.words.count(word) for definition in inside)

    @cached_property
    def inline_functions(self) -> frozenset[str]:
        """The names of functions that are `static inline`."""
        return frozenset(
            name
            for name, (definition, *_) in self._functions.items()
            if definition.words[:2] == ["static", "inline"]
        )


def _opens_body(words: Sequence[str]) -> bool:
    """Whether the first brace among words is that of a function."""
    return "{" in words and words[words.index("{") - 1 : words.index("{")] == [")"]


def _function_of(words: Sequence[str]) -> str:
    """The name of the function that is defined; empty for anything else."""
    is_function = words[-1:] == ["}"] and _opens_body(words) and "(" in words[1:]
    return words[words.index("(") - 1] if is_function else ""


def children(node: c_ast.Node) -> tuple[c_ast.Node, ...]:
    """The nodes of which a node is made."""
    return tuple(cast("Iterable[c_ast.Node]", node))


def descend(node: c_ast.Node) -> Iterator[c_ast.Node]:
    """A node, and all that is in it, in the order of the text."""
    left = [node]
    while left:
        inner = left.pop()
        yield inner
        left += reversed(children(inner))


def words_of(text: str) -> list[str]:
    """The tokens of a text without comments."""
    return _TOKEN.findall(text)


def read_bytes(initialiser: str) -> bytes:
    """The bytes of an initialiser that is numbers and commas.

    Raises:
        ValueError: It is something else.
    """
    numbers = initialiser.split(",")
    if numbers[-1].strip():
        raise ValueError("the last number has no comma")
    return bytes(map(int, numbers[:-1]))


def _spliced(text: str) -> str:
    """The text with each line that ends in a backslash joined to the next one, and empty lines for those."""
    if "\\\n" not in text:
        return text
    lines: list[str] = []
    joined: list[str] = []
    for line in text.split("\n"):
        joined.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            lines += ["".join(joined), *[""] * (len(joined) - 1)]
            joined = []
    return "\n".join([*lines, "".join(joined)] if joined else lines)


def _without_directives(text: str) -> tuple[str, str, list[Directive]]:
    """The text with an empty line for each of the preprocessor's; what is before the first of these; and them."""
    lines = text.split("\n")
    found = [number for number, line in enumerate(lines) if line.lstrip().startswith("#")]
    directives = [
        Directive(lines[number].lstrip()[1:].strip(), number + 1, "\n".join(lines[number + 1 : end]))
        for number, end in pairwise([*found, len(lines)])
    ]
    front = "\n".join(lines[: found[0]] if found else lines)
    for number in found:
        lines[number] = ""
    return "\n".join(lines), front, directives


def _macro(directive: str) -> tuple[str, str]:
    """The name of a macro, with `()` behind it if it has parameters, and what it stands for."""
    _, head, value, *_ = [*directive.split(None, 2), "", ""]
    name, opening, _ = head.partition("(")
    return f"{name}()" if opening else name, value


def _without_attributes(text: str) -> str:
    """The text with spaces for attributes."""
    while (begin := text.find(_ATTRIBUTE)) >= 0:
        depth = 0
        for token in _TOKEN.finditer(text, begin + len(_ATTRIBUTE)):
            depth += (token[0] == "(") - (token[0] == ")")
            if depth <= 0:
                break
        else:
            raise ParseError(f"an {_ATTRIBUTE} does not end")
        blank = re.sub(r"[^\n]", " ", text[begin : token.end()])
        text = f"{text[:begin]}{blank}{text[token.end() :]}"
    return text


def _is_name(word: str) -> bool:
    return (word[0].isalpha() or word[0] == "_") and (word in _TYPES or word not in KEYWORDS_OF_C)


def _types(words: Sequence[str]) -> frozenset[str]:
    """The names that are types where they stand: before another name, or before a star where no product can stand."""
    body = words.index("{") if "{" in words else len(words)
    found: set[str] = set()
    for position, (word, following, behind) in enumerate(zip(words, words[1:], words[2:], strict=False)):
        if not _is_name(word):
            continue
        is_pointed = following == "*" and (
            position < body or behind in _BEHIND_TYPE or words[position - 1] in _BEFORE_TYPE
        )
        if word in _TYPES or _is_name(following) or is_pointed:
            found.add(word)
    return frozenset(found)


def _tell_apart(function: c_ast.FuncDef) -> None:
    """Marks each variable that has the name of another one: `x`, `x@1`. What it is called in C is before the `@`."""
    scopes: list[dict[str, str]] = [{}]
    taken: set[str] = set()

    def declare(node: c_ast.Decl) -> None:
        name, number = node.name, 0
        while node.name in taken:
            number += 1
            node.name = f"{name}@{number}"
        taken.add(node.name)
        scopes[-1][name] = node.name

    def visit(node: c_ast.Node) -> None:
        match node:
            case c_ast.Compound() | c_ast.For():
                scopes.append({})
                for child in children(node):
                    visit(child)
                scopes.pop()
                return
            case c_ast.StructRef():
                visit(node.name)  # members are in a space of their own
                return
            case c_ast.ID():
                node.name = next((s[node.name] for s in reversed(scopes) if node.name in s), node.name)
            case c_ast.Decl(name=str()):
                declare(node)
            case _:
                pass
        for child in children(node):
            visit(child)

    visit(function)
