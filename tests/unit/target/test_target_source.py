"""The line of every key, in TOML and in JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.target.source import parse_source

TOML = '''# a comment with [brackets] and "quotes"
name = "x" # [not.a.table]
text = """
[still.text]
key = 1
"""

[memory.dtcm]
size = 1
"quoted \\u006bey" = 2
'literal' = 1979-05-27 07:32:00
[a]
b.c = 1
b.d = [ # a comment, with a comma
  "first",
  { inner = [1,
     2], other = \'\'\'x
y\'\'\' },
]

[[pool]]
size = 1
[pool.sub]
key = 1
[[pool]]
size = 2
after = 0.5
'''


def test_lines_of_toml() -> None:
    lines = parse_source(TOML, "x.toml").lines
    assert lines == {
        ("name",): 2,
        ("text",): 3,
        ("memory", "dtcm"): 8,
        ("memory", "dtcm", "size"): 9,
        ("memory", "dtcm", "quoted key"): 10,
        ("memory", "dtcm", "literal"): 11,
        ("a",): 12,
        ("a", "b"): 13,
        ("a", "b", "c"): 13,
        ("a", "b", "d"): 14,
        ("a", "b", "d", 0): 15,
        ("a", "b", "d", 1): 16,
        ("a", "b", "d", 1, "inner"): 16,
        ("a", "b", "d", 1, "inner", 0): 16,
        ("a", "b", "d", 1, "inner", 1): 17,
        ("a", "b", "d", 1, "other"): 17,
        ("pool",): 21,
        ("pool", 0): 21,
        ("pool", 0, "size"): 22,
        ("pool", 0, "sub"): 23,
        ("pool", 0, "sub", "key"): 24,
        ("pool", 1): 25,
        ("pool", 1, "size"): 26,
        ("pool", 1, "after"): 27,
    }


def test_windows_line_ends_count_once() -> None:
    assert parse_source("a = 1\r\n\r\nb = 2\r\n", "x").lines == {("a",): 1, ("b",): 3}


def test_lines_of_json() -> None:
    text = '{\n "a\\/b": {"c": null,\n  "d": [1,\n   {"e": "x\\"}"}]},\n "f": true\n}'
    assert parse_source(text, "x.json").lines == {
        ("a/b",): 2,
        ("a/b", "c"): 2,
        ("a/b", "d"): 3,
        ("a/b", "d", 0): 3,
        ("a/b", "d", 1): 4,
        ("a/b", "d", 1, "e"): 4,
        ("f",): 5,
    }


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        items = []
    return [found for key, item in items for found in ((*path, key), *_paths(item, (*path, key)))]


@given(st.dictionaries(st.text(), _VALUES, max_size=4), st.sampled_from([None, 1]))
def test_every_key_of_any_json_has_a_line_in_order(values: dict[str, object], indent: int | None) -> None:
    source = parse_source(json.dumps(values, indent=indent), "x.json")
    assert source.values == values
    assert list(source.lines) == _paths(values)
    assert list(source.lines.values()) == sorted(source.lines.values())
    if indent is None:
        assert set(source.lines.values()) <= {1}


def test_a_path_without_a_line_is_shown_at_its_nearest_ancestor() -> None:
    source = parse_source("[memory.a]\n", "x.toml")
    assert source.where(("memory", "a", "size")) == "x.toml:1, key memory.a.size"
    assert source.where(("workspace", 0, "name")) == "x.toml, key workspace[0].name"
    assert source.where(()) == "x.toml"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("a = 1\nb = \n", "x:2", "not valid TOML"),
        ("a = 1\na = 2\n", "x:2", "not valid TOML"),
        ('a = 1\nb = "x', "x:2", "not valid TOML"),
        ('{"a": 1,\n"b" 2}', "x:2", "not valid JSON"),
        ('{"a": 1, "a": 2}', "x", "the key 'a' stands twice"),
        ('{"a": ' + "[" * 100_000, "x", "nested too deeply"),
        ("a = " + "[" * 100_000, "x", "nested too deeply"),
    ],
)
def test_malformed_text_is_an_error_with_its_line(text: str, where: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_source(text, "x")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW202"
    assert diagnostic.where == where
    assert message in diagnostic.message
