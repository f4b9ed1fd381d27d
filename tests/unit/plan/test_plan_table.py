from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bytewright.cli.main import load_command
from bytewright.diagnostics import CompileError
from bytewright.plan.problem import Pool, Problem
from bytewright.plan.table import read_buffers
from support.pages import Page

PLAN = load_command("plan")

GOOD = "id,lower,upper,size\na,0,2,10\nb,1,3,20\n\nc,2,4,10\n"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("id,lower,size\na,0,1\n", ":1, column 4", "column 'upper' is missing"),
        ("id,lower,upper,size,aligment\n", ":1, column 5", "there is no column 'aligment'"),
        ("id,lower,upper,size,size\n", ":1, column 5", "column 'size' appears twice"),
        ("id,lower,upper,size\na,0,1,4\nb,0,1,ten\n", ":3, column 4", "'size' is 'ten', not an integer"),
        ("id,lower,upper,size\na,0,1,4.0\n", ":2, column 4", "'size' is '4.0', not an integer"),
        (
            "id,lower,upper,size\na,0,1,4\nb,0,1,4\na,5,6,4\n",
            ":4, column 1",
            "id 'a' stands in line 2 already",
        ),
        ("id,lower,upper,size\n,0,1,4\n", ":2, column 1", "the id is empty"),
        ("id,lower,upper,size\na,3,3,4\n", ":2, column 3", "'upper' is 3, not above 'lower', which is 3"),
        ("id,upper,lower,size\na,1,2,4\n", ":2, column 2", "'upper' is 1, not above 'lower', which is 2"),
        ("id,lower,upper,size\na,0,1,-4\n", ":2, column 4", "'size' is -4, not in 0 .. 2^62 - 1"),
        (f"id,lower,upper,size\na,0,1,{1 << 62}\n", ":2, column 4", "not in 0 .. 2^62 - 1"),
        (
            f"id,lower,upper,size\na,0,{'9' * 5000},1\n",
            ":2, column 3",
            "not in -2^62 + 1 .. 2^62 - 1",
        ),
        (
            "id,lower,upper,size,alignment\na,0,1,4,6\n",
            ":2, column 5",
            "'alignment' is 6, not a power of two",
        ),
        ("id,lower,upper,size,offset\na,0,1,4,-8\n", ":2, column 5", "'offset' is -8"),
        ("id,lower,upper,size\na,0,1\n", ":2, column 4", "the line has 3 values"),
        ("", "buffers.csv", "the file is empty"),
        ('id,lower,upper,size\n"a,0,1,4\n', ":2", "unexpected end of data"),
    ],
)
def test_each_fault_has_line_and_column_and_leaves_no_file(tmp_path, text, where, message):
    source = tmp_path / "buffers.csv"
    source.write_text(text)
    result = CliRunner().invoke(
        PLAN, [str(source), "-o", str(tmp_path / "o.csv"), "--svg", str(tmp_path / "o.svg")]
    )
    assert isinstance(result.exception, CompileError)
    assert result.exception.exit_code == 1
    diagnostics = result.exception.diagnostics
    assert {diagnostic.code for diagnostic in diagnostics} == {"BW602"}
    assert any(message in d.message and (d.where or "").endswith(where) for d in diagnostics), str(
        result.exception
    )
    assert [path.name for path in tmp_path.iterdir()] == ["buffers.csv"]


def test_all_faults_of_a_file_are_reported(tmp_path):
    source = tmp_path / "b.csv"
    source.write_text("id,lower,upper,size\na,x,1,-4\nb,0,0,1\n")
    with pytest.raises(CompileError) as caught:
        read_buffers(source)
    assert [d.where.split(":")[-1] for d in caught.value.diagnostics] == [
        "2, column 2",
        "2, column 4",
        "3, column 3",
    ]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CompileError) as caught:
        read_buffers(tmp_path / "none.csv")
    assert caught.value.diagnostics[0].code == "BW601"


def test_offsets_come_back_beside_the_same_columns(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(GOOD)
    result = CliRunner().invoke(PLAN, [str(source), "-o", str(output)], catch_exceptions=False)
    assert result.output == "3 buffers, 30 B: optimal (0 nodes)\n"
    lines = output.read_text().splitlines()
    assert lines[0] == "id,lower,upper,size,offset"
    again = read_buffers(output)
    assert all(buffer.fixed_offset is not None for buffer in again.buffers)
    assert len(Problem(again.buffers, (Pool("p", 30),)).buffers) == 3


def test_json_alone_on_standard_output(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(GOOD)
    answer = json.loads(CliRunner().invoke(PLAN, [str(source), "--json"], catch_exceptions=False).stdout)
    assert (answer["status"], answer["top_bytes"], answer["lower_bound_bytes"]) == ("optimal", 30, 30)
    assert set(answer["offsets"]) == {"a", "b", "c"}


def test_what_does_not_fit_is_exit_3_and_json_says_which(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(GOOD)
    arguments = [str(source), "--capacity", "29", "--json", "-o", str(tmp_path / "o.csv")]
    result = CliRunner().invoke(PLAN, arguments)
    assert isinstance(result.exception, CompileError)
    assert result.exception.exit_code == 3
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["infeasible_set"], answer["needed_bytes"]) == (
        "infeasible",
        ["a", "b"],
        30,
    )
    assert not (tmp_path / "o.csv").exists()


def test_capacity_decides(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("id,lower,upper,size,alignment\na,0,1,3,1\nb,0,1,4,8\n")
    result = CliRunner().invoke(PLAN, [str(source), "--capacity", "12"], catch_exceptions=False)
    assert result.output.startswith("2 buffers, ")
    assert CliRunner().invoke(PLAN, [str(source), "--capacity", "-1"]).exit_code == 2


def test_an_unknown_solver_lists_the_known_ones(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(GOOD)
    result = CliRunner().invoke(PLAN, [str(source), "--solver", "best"])
    assert isinstance(result.exception, CompileError)
    assert "known: auto, exact, first_fit, hill_climb" in str(result.exception)


def test_the_drawing_has_a_rectangle_with_hover_text_for_each_buffer(tmp_path):
    source, drawing = tmp_path / "in.csv", tmp_path / "plan.svg"
    source.write_text(GOOD.replace("c,", "<c>,"))
    CliRunner().invoke(PLAN, [str(source), "--svg", str(drawing)], catch_exceptions=False)
    root = ElementTree.parse(drawing).getroot()
    name = "{http://www.w3.org/2000/svg}"
    rectangles = {
        rect.find(f"{name}title").text.split("\n")[0]: rect for rect in root.iter(f"{name}rect") if len(rect)
    }
    assert set(rectangles) == {"a", "b", "<c>"}
    summary = rectangles["<c>"].find(f"{name}title").text.split("\n")[1]
    assert summary.startswith("10 B at ")
    assert summary.endswith("ticks 2 to 4")
    assert (
        float(rectangles["a"].get("x")) < float(rectangles["b"].get("x")) < float(rectangles["<c>"].get("x"))
    )
    assert float(rectangles["b"].get("height")) == pytest.approx(
        2 * float(rectangles["a"].get("height")), abs=0.1
    )


def test_the_page_has_the_peak_and_each_life(tmp_path):
    source, page = tmp_path / "in.csv", tmp_path / "plan.html"
    # b is alive beside a, and beside c; the most is alive while b and c are.
    source.write_text("id,lower,upper,size\na,0,2,64\nb,1,4,32\nc,2,1000000000,80\n")
    CliRunner().invoke(PLAN, [str(source), "--html", str(page)], catch_exceptions=False)
    read = Page(page.read_text("utf-8"))
    known = {row[0]: row[1] for row in read.known()[0]}
    assert set(known) == {"a", "b", "c"}
    assert known["c"].endswith("ticks 2 to 1000000000")
    (caption,) = [text for text in read.texts if text.startswith("memory: ")]
    assert caption == "memory: 112 B used, optimal; 112 B alive at the peak (tick 2)"
    (summary,) = [text for text in read.texts if text.startswith("Alive at the peak")]
    assert summary == "Alive at the peak: 2 blocks"


def test_nothing_to_place_is_a_page_without_pictures(tmp_path):
    source, page = tmp_path / "in.csv", tmp_path / "plan.html"
    source.write_text("id,lower,upper,size\n")
    CliRunner().invoke(PLAN, [str(source), "--html", str(page)], catch_exceptions=False)
    read = Page(page.read_text("utf-8"))
    assert "0 buffers, ticks 0 to 1" in read.texts
    assert read.known() == []


def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(GOOD)
    arguments = [str(source), "-o", str(tmp_path / "o.csv"), "--svg", str(tmp_path / "none" / "o.svg")]
    result = CliRunner().invoke(PLAN, arguments)
    assert isinstance(result.exception, CompileError)
    assert result.exception.diagnostics[0].code == "BW206"
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
