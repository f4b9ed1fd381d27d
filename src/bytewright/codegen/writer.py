"""The one writer of C text: lines, blocks, comments."""

import re
import textwrap
from collections.abc import Generator, Sequence
from contextlib import contextmanager

# The space between a type and what it is the type of; and a character of no C text, which holds its place.
_IN_DECLARATION = re.compile(r"(?<=\w) (?=\*?\w)")
_JOINED = "\0"
INDENT = "    "
WIDTH = 110
# The licence of what is generated, in every file of a bundle that has comments; README.md says it in full.
OWNERSHIP = "Generated code: whoever generated it may use, change and pass it on without conditions."


class Writer:
    """Collects lines with indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """One line; empty lines carry no indentation."""
        self._lines.append(f"{INDENT * self._depth}{text}" if text else "")

    def lines(self, text: str) -> None:
        """Several lines at the current depth, but for directives."""
        for line in text.splitlines():
            if line.startswith("#"):
                self.directive(line)
            else:
                self.line(line)

    def directive(self, text: str) -> None:
        """A line for the preprocessor, which stands at the margin."""
        self._lines.append(text)

    def wrapped(self, text: str, hanging: str = INDENT) -> None:
        """One statement, broken at spaces where it is too long, but not between a type and its name."""
        width = WIDTH - len(INDENT) * self._depth
        joined = _IN_DECLARATION.sub(_JOINED, text)
        pieces = textwrap.wrap(
            joined, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
        )
        for piece in pieces:
            self.line(piece.replace(_JOINED, " "))

    def assigned(self, target: str, value: str, operator: str = "=") -> None:
        """A statement that gives a value, which has a line of its own where one does not hold both."""
        width = WIDTH - len(INDENT) * self._depth
        statement = f"{target} {operator} {value};"
        if len(statement) > width >= len(f"{INDENT}{value};"):
            self.lines(f"{target} {operator}\n{INDENT}{value};")
        else:
            self.wrapped(statement)

    def listed(self, head: str, items: list[str], tail: str) -> None:
        """`head(items)tail`, one item a line where one line does not hold them."""
        line = f"{head}({', '.join(items)}){tail}"
        if len(line) + len(INDENT) * self._depth <= WIDTH:
            self.line(line)
            return
        self.line(f"{head}(")
        with self.indented():
            for item in items[:-1]:
                self.line(f"{item},")
            self.line(f"{items[-1]}){tail}")

    def comment(self, text: str) -> None:
        """A comment; long text becomes a comment of several lines."""
        safe = text.replace("*/", "* /").replace("/*", "/ *")
        width = WIDTH - len(INDENT) * self._depth - 6
        pieces = [piece for line in safe.splitlines() for piece in textwrap.wrap(line, width) or [""]]
        if len(pieces) == 1:
            self.line(f"/* {pieces[0]} */")
            return
        for index, piece in enumerate(pieces):
            opening = "/* " if index == 0 else " * "
            closing = " */" if index == len(pieces) - 1 else ""
            self.line(f"{opening}{piece}{closing}".rstrip())

    def title(self, text: str) -> None:
        """What a file is, and whose; each begins with it."""
        self.comment(f"{text}\n{OWNERSHIP}")

    def heading(self, text: str) -> None:
        """The title of a group of what follows."""
        self.line(f"/* {f'---- {text} '.ljust(WIDTH - 6, '-')} */")
        self.line()

    def prototype(self, contract: str, head: str) -> None:
        """A declaration under its contract."""
        self.comment(contract)
        self.wrapped(f"{head};")
        self.line()

    def default(self, macro: str, value: str, parameters: str = "") -> None:
        """A macro, unless it is defined before."""
        self.lines(f"#ifndef {macro}\n#define {macro}{parameters} {value}\n#endif")

    def refuse(self, condition: str, result: str) -> None:
        """Returns a result, such as an error, if a condition holds."""
        with self.block(f"if ({condition})"):
            self.line(f"return {result};")

    def enumeration(self, members: Sequence[str]) -> None:
        """Enumerators, as `NAME = 1`, with a comment behind or not."""
        with self.block("enum", "};"):
            for index, member in enumerate(members):
                name, space, comment = member.partition(" /*")
                self.line(f"{name}{',' if index + 1 < len(members) else ''}{space}{comment}")

    def array(self, head: str, rows: Sequence[str]) -> None:
        """`head[] = {rows};`, one a line."""
        with self.block(f"{head}[] =", "};"):
            for row in rows:
                self.line(f"{row},")

    def structure(self, name: str, members: Sequence[str]) -> None:
        """A type with these members."""
        self.line("typedef struct {")
        with self.indented():
            for member in members or ("uint8_t unused; /* C has no empty structs */",):
                self.lines(member)
        self.line(f"}} {name};")
        self.line()

    @contextmanager
    def guarded(
        self, guard: str, includes: Sequence[str], own: Sequence[str] = (), *, is_for_cpp: bool = False
    ) -> Generator[None, None, None]:
        """A header: its guard, what it includes of the C library and of the bundle, and then `extern "C"` for C++.

        Nothing is included behind that: what a header of C++ declares has no C linkage.
        """
        self.lines(f"#ifndef {guard}\n#define {guard}")
        self.line()
        for include in includes:
            self.line(f"#include <{include}>")
        self.line()
        for include in own:
            self.line(f'#include "{include}"')
        if own:
            self.line()
        if is_for_cpp:
            self.lines('#ifdef __cplusplus\nextern "C" {\n#endif')
            self.line()
        yield
        if is_for_cpp:
            self.lines("#ifdef __cplusplus\n}\n#endif")
            self.line()
        self.line(f"#endif /* {guard} */")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[None, None, None]:
        """`head {`, the lines inside one step deeper, and the closing brace."""
        self.wrapped(f"{head} {{" if head else "{", INDENT * 2)
        with self.indented():
            yield
        self.line(tail)

    @contextmanager
    def block_of(self, head: str, items: list[str], tail: str = "") -> Generator[None, None, None]:
        """A block behind `head(items)tail`, such as a function: as `listed`, so one item a line where it is long."""
        self.listed(head, items, f"{tail} {{")
        with self.indented():
            yield
        self.line("}")

    @contextmanager
    def indented(self) -> Generator[None, None, None]:
        """Lines one step deeper."""
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """Everything written, with a final newline."""
        return "\n".join(self._lines) + "\n"
