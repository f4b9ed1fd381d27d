"""The writer of C text: lines, blocks, comments, and what becomes of what is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.codegen.writer import WIDTH, Writer


def test_blocks_indent_what_is_inside() -> None:
    writer = Writer()
    with writer.block("if (x)"):
        writer.line("y = 1;")
        writer.line()
        with writer.block("", "};"):
            writer.lines("a;\nb;")
    assert writer.text() == "if (x) {\n    y = 1;\n\n    {\n        a;\n        b;\n    };\n}\n"


def test_a_long_statement_is_broken_at_spaces() -> None:
    writer = Writer()
    with writer.block("f()"):
        writer.wrapped("total = " + " + ".join(f"a_long_name_{n}" for n in range(20)) + ";")
    lines = writer.text().splitlines()[1:-1]
    assert len(lines) > 2
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.startswith("        ") for line in lines[1:])
    assert " ".join(line.strip() for line in lines).count("a_long_name_") == 20


def test_a_value_has_a_line_of_its_own_where_one_does_not_hold_it() -> None:
    writer = Writer()
    target, value = "a" * 60, f"f({'b' * 30}, {'c' * 30})"
    for operator, each in (("=", value), ("+=", value), ("=", "0"), ("=", " + ".join([value] * 2))):
        writer.assigned(target, each, operator)
    lines = writer.text().splitlines()
    assert lines[:5] == [f"{target} =", f"    {value};", f"{target} +=", f"    {value};", f"{target} = 0;"]
    assert len(lines) > 6
    assert all(len(line) <= WIDTH for line in lines)


def test_a_type_and_its_name_stay_together() -> None:
    writer = Writer()
    name = "a_long_name_of_a_model"
    head = f"int32_t {name}_set_workspaces({name}_context *context, const {name}_workspaces *workspaces);"
    writer.wrapped(head)
    lines = writer.text().splitlines()
    assert lines[1] == f"    const {name}_workspaces *workspaces);"
    assert " ".join(line.strip() for line in lines) == head


@given(st.lists(st.sampled_from(["alpha", "beta_1", "INT64_C(-5)", "x * y"]), max_size=40))
def test_calls_keep_all_their_arguments(items: list[str]) -> None:
    writer = Writer()
    writer.listed("call", items, ";")
    text = writer.text()
    assert "".join(text.split()) == "".join(f"call({','.join(items)});".split())
    assert all(len(line) <= WIDTH for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "/* short */\n"),
        ("a */ b /* c", "/* a * / b / * c */\n"),
        ("one\ntwo", "/* one\n * two */\n"),
        ("one\n\ntwo", "/* one\n *\n * two */\n"),
        ("one\n  two", "/* one\n *   two */\n"),
    ],
)
def test_comments(text: str, expected: str) -> None:
    writer = Writer()
    writer.comment(text)
    assert writer.text() == expected


@given(st.text(alphabet="ab */\n", min_size=1, max_size=300))
def test_no_comment_ends_early_or_is_too_wide(text: str) -> None:
    writer = Writer()
    writer.comment(text)
    written = writer.text()
    assert written.startswith("/*")
    assert written.count("*/") == 1
    assert written.endswith("*/\n")
    assert written.count("/*") == 1
    assert all(len(line) <= WIDTH for line in written.splitlines())
