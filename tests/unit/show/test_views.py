"""Views: what has a heading is shown to people, what has a key is given to programs, and no name is markup."""

from __future__ import annotations

import json
import pickle

import pytest

from bytewright.report.report_view import report_view
from bytewright.show.as_json import document_of
from bytewright.show.formats import FORMATS
from bytewright.show.view import (
    ABSENT,
    Chart,
    Fact,
    Facts,
    Field,
    Table,
    View,
    body_of,
    freeze,
    keys,
    table_of,
)
from support.digits_bundle import digits_plan
from support.views import text_of

HOSTILE = "[bold]a[/bold] :smile: </td>|`*_"


def seen(*sections: Table | Facts, is_listing: bool = False) -> tuple[list[str], dict[str, object]]:
    view = View("a title", sections, is_listing)
    return [line.rstrip() for line in text_of(view).splitlines()], document_of(view)


def test_columns_are_for_people_for_programs_or_for_both() -> None:
    table = table_of(
        "Letters",
        "letters",
        ("a", "b"),
        Field("both", "both", str.upper),
        Field("people", None, lambda letter: f"{letter}!"),
        Field(None, "programs", lambda letter: [letter]),
        Field(None, "sometimes", lambda letter: None if letter == "a" else ABSENT),
        Field("none", None, lambda _: None),
    )
    lines, document = seen(table)
    assert [line.split() for line in lines if "!" in line] == [["A", "a!", "none"], ["B", "b!", "none"]]
    assert document == {
        "letters": [{"both": "A", "programs": ["a"], "sometimes": None}, {"both": "B", "programs": ["b"]}]
    }


def test_an_object_of_rows_and_rows_that_people_are_not_shown() -> None:
    cells = (Field("name", "name", str), *keys(("real",)))
    table = table_of(
        "Numbers", "numbers", (1, 2, 3), *cells, by_first=True, most_rows=1, hidden="and {} more"
    )
    lines, document = seen(table)
    assert document == {"numbers": {"1": {"real": 1}, "2": {"real": 2}, "3": {"real": 3}}}
    assert "and 2 more" in lines
    assert [line for line in lines if line.strip() in ("2", "3")] == []


def test_a_listing_sets_its_last_body_apart() -> None:
    cells: list[Field[int]] = [Field("n", None, int, is_number=True), Field("text", None, str)]
    bodies = (body_of("some", (1, 22), cells), body_of("total", (23,), cells))
    lines, document = seen(Table("Sum", tuple(cell.column for cell in cells), bodies), is_listing=True)
    assert lines == ["a title", "", " n  text", " 1  1", "22  22", "--------", "23  23", ""]
    assert document == {"some": [{}, {}], "total": [{}]}


def test_a_group_with_a_key_is_a_list_and_one_without_has_members() -> None:
    group = Facts((Fact(("one", "of it"), "head", 1), Fact(("two",))), "Title", "found", 2, 4, 6)
    lines, document = seen(group, Facts((Fact(data=freeze({"a": [1]})), Fact(data=freeze({"b": None})))))
    assert lines == ["a title", "Title", "  head  one", "            of it", "        two"]
    assert document == {"found": [1], "a": [1], "b": None}


def test_a_table_without_rows_is_shown_to_programs_alone() -> None:
    lines, document = seen(table_of("Nothing", "nothing", (), Field("a", "a", str)))
    assert (lines, document) == (["a title"], {"nothing": []})


def test_a_name_is_no_markup_and_no_order_to_the_terminal() -> None:
    """Nor does it begin a line of its own; programs are given it as it is."""
    name = f"{HOSTILE}\x1b[31m\x9b\r\n\ufff9\uffff\u3164\U000e0041"
    spelled = f"{HOSTILE}\\u001b[31m\\u009b\\u000d\\u000a\\ufff9\\uffff\\u3164\\U000e0041"
    lines, document = seen(
        table_of("Names", "names", (name,), Field("name", "name", str)), Facts((Fact((name,)),))
    )
    assert [line.strip() for line in lines].count(spelled) == 2
    assert document == {"names": [{"name": name}]}


def test_a_view_can_be_neither_changed_nor_lost_on_the_way_to_another_process() -> None:
    view = report_view(digits_plan())
    with pytest.raises(AttributeError):
        view.title = "another"  # pyright: ignore[reportAttributeAccessIssue]
    again = pickle.loads(pickle.dumps(view))
    assert document_of(again) == document_of(view)
    assert text_of(again) == text_of(view)


def test_json_is_a_format_like_the_others() -> None:
    writers = {form.name: form.write for form in FORMATS}
    view = report_view(digits_plan())
    assert json.loads(writers["json"](view)) == document_of(view)


def test_markdown_has_tables_lists_and_drawings_and_no_markup_of_names() -> None:
    write = {form.name: form.write for form in FORMATS}["markdown"]
    table = table_of(
        "Names",
        None,
        (HOSTILE, "a\nb"),
        Field("name", None, str),
        Field("length", None, len, is_number=True),
        most_rows=2,
    )
    group = Facts((Fact((HOSTILE, "below"), "head"),), "Facts")
    chart = Chart("ram", "ram: 8 B", (8, 4), None)
    assert write(View("x_y", (table, group, chart))).splitlines()[:13] == [
        r"## x\_y",
        "",
        "**Names**",
        "",
        "| name | length |",
        "|---|---:|",
        r"| \[bold\]a\[/bold\] :smile: \</td\>\|\`\*\_ | 32 |",
        r"| a\\u000ab | 3 |",
        "",
        "**Facts**",
        "",
        r"- head: \[bold\]a\[/bold\] :smile: \</td\>\|\`\*\_",
        "  - below",
    ]
    assert "    ram: 8 B" in write(View(None, (chart,)))
    assert "| conv2d" in write(report_view(digits_plan())).replace("\\_", "_")
