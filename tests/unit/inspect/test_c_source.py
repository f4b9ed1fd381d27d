"""C as `check` reads it: comments, macros, attributes, types and scopes, whatever the layout."""

from __future__ import annotations

import pytest
from pycparser import c_ast
from pycparser.c_parser import ParseError

from bytewright.inspect.c_nodes import expression, most_bytes, names_in, spell
from bytewright.inspect.c_source import CSource, descend


def names_of_variables(source: str) -> list[str]:
    function = CSource(source).function("f")
    assert function is not None
    return [node.name for node in descend(function.body) if isinstance(node, c_ast.Decl)]


def test_comments_are_kept_apart_and_texts_in_quotes_are_none() -> None:
    source = CSource('/* one\n * two */ const char *a = "/* none */"; // three\nint b; /* four')
    assert source.comments == ["/* one\n * two */", "// three"]
    assert source.words[:8] == ["const", "char", "*", "a", "=", '"/* none */"', ";", "int"]


def test_macros_are_read_over_lines_and_spaces() -> None:
    source = CSource(
        "#define A 12 /* of\n them */\n  #  define B \\\n   {1, \\\n 2}\n#define C(x) x\n#if A\nint d;\n#endif\n"
    )
    assert source.macros == {"A": "12", "B": "{1,  2}", "C()": "x"}
    assert source.words == ["int", "d", ";"]


def test_lines_are_joined_before_comments_end_and_keep_their_numbers() -> None:
    source = CSource("// one \\\nint a;\nint b\\\nc; /* *\\\n/ int d;\n#define E\\\nF 1\nint g\\\n", "m.c")
    assert source.words == ["int", "bc", ";", "int", "d", ";", "int", "g"]
    assert (source.macros, [each.line for each in source.directives]) == ({"EF": "1"}, [6])
    with pytest.raises(ParseError, match=r"m\.c:8: what begins with 'int' does not end"):
        source.function("f")


@pytest.mark.parametrize(
    ("text", "ambiguities"),
    [
        ("int a; // b\rint c;", ["a carriage return"]),
        ("// a \\ \nint b;", ["a line that may go on in the next"]),
        ("// a ??/\nint b;", ["a line that may go on in the next"]),
        ('char *a = "??/";', ["a trigraph"]),
        ("??=if 0", ["a trigraph"]),
        ("%:if 0", ["a digraph"]),
        ("void f(void) <% %>", ["a digraph"]),
        ('char *a = "<%"; /* ??= %: */ int b = c % d; // \\n', []),
    ],
)
def test_what_compilers_do_not_read_alike_is_known(text: str, ambiguities: list[str]) -> None:
    assert CSource(text).ambiguities == ambiguities


def test_the_function_around_a_line_is_found() -> None:
    source = CSource("int a;\nvoid f(void)\n{\n#if 1\n    g();\n#endif\n}\n#if 1\n#endif\nint b;")
    assert [source.around(line)[:2] for line in (1, 4, 6, 8)] == [(), ["void", "f"], ["void", "f"], ()]


@pytest.mark.parametrize(
    "statement",
    [
        "vector x = load(p);",
        "const vector *const x = (const vector *)p;",
        "vector *x = (vector *)p;",
        'int8_t x[4] __attribute__((aligned(16), section("(")));',
        "for (vector x = 0; x < 4; ++x) { }",
    ],
)
def test_types_that_are_declared_elsewhere_are_known_by_where_they_stand(statement: str) -> None:
    assert names_of_variables(
        f"static wide f(const vector *p, size n)\n{{ n = (n) * (n); {statement} }}"
    ) == ["x"]


def test_products_are_no_declarations() -> None:
    function = CSource("void f(int a, int b) { g(a * b); if (a * b > 2) { b = a * (b * a); } }").function("f")
    assert function is not None
    assert sum(isinstance(node, c_ast.BinaryOp) and node.op == "*" for node in descend(function.body)) == 4


def test_variables_of_one_name_are_told_apart() -> None:
    source = """void f(int y) {
        for (int x = 0; x < y; ++x) { const int z = x; g(z, s.x, s->z); }
        for (int x = 1; x < y; ++x) { const int z = x; { int y = z; g(y); } g(y); }
    }"""
    assert names_of_variables(source) == ["x", "z", "x@1", "z@1", "y@1"]
    function = CSource(source).function("f")
    assert function is not None
    calls = [node for node in descend(function.body) if isinstance(node, c_ast.FuncCall)]
    assert [sorted(names_in(call.args)) for call in calls] == [["s", "x", "z"], ["y@1"], ["y"]]
    assert [spell(call) for call in calls] == ["g(z, s.x, s->z)", "g(y)", "g(y)"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("void f(void) { } }\n", r"m\.c:1: '}' closes nothing"),
        ("int a;\nvoid f(void) { {\n", r"m\.c:2: what begins with 'void' does not end"),
        ("void f(void) { }\n\nvoid f(void) { }\n", r"m\.c: f is defined 2 times"),
        ("int a;\nvoid f(void) {\n a = ; }\n", r"m\.c: Invalid expression, in what begins in line 2"),
        ("int a;\nvoid f(void) {\n int a b; }\n", r"m\.c:3:8: .*, in what begins in line 2"),
        ("int a __attribute__((", r"an __attribute__ does not end"),
    ],
)
def test_what_is_no_c_is_refused_with_its_line(source: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        CSource(source, "m.c").function("f")


def test_enumerators_are_those_with_numbers() -> None:
    assert CSource("enum { A = 3, B, C = 1 + 1,\n D = 070 - 1 };\nenum e { E = 9 };").enumerators == {
        "A": 3,
        "E": 9,
    }


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("128u", 128),
        ("(uint32_t)n * 4", 28),
        ("(uint64_t)(n) * (uint64_t)n * 2", 98),
        ("n * 4", None),
        ("(uint8_t)n * 4", None),
        ("(uint32_t)m * 4", None),
        ("(uint32_t)n + 4", None),
        ("(uint32_t)(n / 2) * 4", 12),
        ("(uint32_t)(n / 0) * 4", None),
    ],
)
def test_sizes_are_products_of_extents_in_wide_numbers(text: str, size_bytes: int | None) -> None:
    assert most_bytes(expression(text), {"n": 7}) == size_bytes
