"""Rows of programs: what a compile refuses with its place, what it takes, and that `check` says the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.watch_rows import watched_rows
from bytewright.inspect.check import check_bundle
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.ir_program import read_module
from support.ring_program import CLAMPED, GUARDED, INLINE, TURNS, ring_program

HOST = load_target("host")


def compiled(text: str, folder: Path, options: Options | None = None) -> Compiled:
    path = folder / "m.bw"
    path.write_text(text, encoding="utf-8")
    return compile_model(path, HOST, options or Options())


def refusal(text: str, folder: Path) -> tuple[str, str, str, str | None]:
    """Code, place, message and help of the first thing that is wrong."""
    with pytest.raises(CompileError) as caught:
        compiled(text, folder)
    found = caught.value.diagnostics[0]
    return found.code, str(found.where), found.message, found.help


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


RIGHT = {
    "bounds under names": ring_program(),
    "bounds in the loops": ring_program(sweep=INLINE),
    "rows kept within numbers": ring_program(body=CLAMPED, sweep=INLINE),
    "rows kept within numbers under a name": ring_program(
        body="let q : i32 = min(max(r - 1, 0), 7) y[r, c] = i8(i32(t[q, c]) + i32(t[min(r + 1, 7), c]))"
    ),
    "a ring of all rows": ring_program(ring=", ring=0:8"),
    "no ring": ring_program(ring=""),
    "no bounds, and calls that keep to the rows": ring_program(
        sweep="for r : i32 in row_begin .. row_end",
        body="y[r, c] = t[r, c]",
        ring=", ring=0:1",
        turns=TURNS.replace("0 .. 9", "0 .. 8").replace("turn - 1, turn)", "turn, turn + 1)"),
    ),
    "bounds twice over": ring_program(
        sweep="for r : i32 in max(max(row_begin, -3), 0) .. min(min(row_end, 9), 8)"
    ),
    "several rows a call": ring_program(
        ring=", ring=0:4",
        turns=TURNS.replace("0 .. 9", "0 .. 5")
        .replace("turn, turn + 1)", "2 * turn, 2 * turn + 2)")
        .replace("turn - 1, turn)", "2 * turn - 1, 2 * turn + 1)"),
    ),
    "a loop that runs twice": ring_program(turns=f"for again : i32 in 0 .. 2 {{ {TURNS} }}"),
    "all calls by hand": ring_program(
        ring=", ring=0:4",
        turns="call_extern m_row(&x, &t, 0, 4) call_extern m_win(&t, &y, 0, 3) call_extern m_row(&x, &t, 4, 6) "
        "call_extern m_win(&t, &y, 3, 5) call_extern m_row(&x, &t, 6, 8) call_extern m_win(&t, &y, 5, 8)",
    ),
    "sides of a branch on numbers": ring_program(
        turns=TURNS.replace(
            "call_extern m_win(&t, &y, turn - 1, turn)",
            "if turn >= 1 { call_extern m_win(&t, &y, turn - 1, turn) }",
        )
    ),
    "sides that do the same": ring_program(
        turns=TURNS.replace(
            "call_extern m_win(&t, &y, turn - 1, turn)",
            "if odd[] { call_extern m_win(&t, &y, turn - 1, turn) } else { call_extern m_win(&t, &y, turn - 1, turn) }",
        ).replace("for turn", "allocate odd : buffer<bool> call_extern m_odd(&x, &odd) for turn", 1),
        more="kernel m_odd(x : buffer<8x4xi8> r, odd : buffer<bool> w) on cpu { odd[] = x[0, 0] < 3:i8 }".replace(
            "x[0, 0] < 3:i8", "i32(x[0, 0]) < 3"
        ),
    ),
    "a row that nobody needs": ring_program(
        ring=", ring=0:1",
        body="y[r, c] = t[r / 2 * 0 + r, c]",
        turns="for turn : i32 in 0 .. 8 { call_extern m_row(&x, &t, turn, turn + 1) "
        "call_extern m_win(&t, &y, turn, turn + 1) }",
    ).replace("r / 2 * 0 + r", "r"),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.MAX])
def test_right_programs_compile_verify_and_can_be_watched(tmp_path: Path, name: str, rows: Rows) -> None:
    found = compiled(RIGHT[name], tmp_path, Options(rows=rows))
    write_bundle(found.files, tmp_path / "b")
    assert check_bundle(tmp_path / "b").num_steps == len(found.plan.steps)
    list(watched_rows(found.plan, [pool.name for pool in found.plan.workspaces]))
    # The ring gives what the tensor gives as a whole.
    x = np.random.default_rng(1).integers(-20, 20, (8, 4)).astype(np.int8)
    whole = Evaluator(read_module(RIGHT[name].replace(", ring=0:", ", align=").replace("align=3", "align=4")))
    ring = Evaluator(read_module(RIGHT[name]))
    assert np.array_equal(ring.run("main", {"x": x})["y"], whole.run("main", {"x": x})["y"])


WRONG = {
    "a ring that is a row too small": (
        ring_program(ring=", ring=0:2"),
        "call_extern m_win",
        "'m_win' reads row 0 of 't', whose slot of 2 has row 2 by then, the 3rd time that it is called",
        "keep 3 rows of 't', or all",
    ),
    "the same, with rows kept within numbers": (
        ring_program(ring=", ring=0:2", body=CLAMPED),
        "call_extern m_win",
        "'m_win' reads row 0 of 't', whose slot of 2 has row 2 by then, the 3rd time that it is called",
        "keep 3 rows of 't', or all",
    ),
    "a row that is read before it is made": (
        ring_program(ring="", turns=TURNS.replace("turn - 1, turn)", "turn, turn + 1)")),
        "call_extern m_win",
        "'m_win' reads row 1 of 't', which is not made yet, the 1st time that it is called",
        "make the rows of 't' before they are read",
    ),
    "an output row that no turn writes": (
        ring_program(ring="", turns=TURNS.replace("0 .. 9", "0 .. 8")),
        "call_extern m_win",
        "'m_win' never makes row 7 of 'y'",
        "as many turns as make all rows of 'y'",
    ),
    "more rows at once than are kept": (
        ring_program(turns="call_extern m_row(&x, &t, 0, 8) call_extern m_win(&t, &y, 0, 8)"),
        "call_extern m_row",
        "'m_row' makes 8 rows of 't', which keeps 3, the 1st time that it is called",
        "keep 8 rows of 't', or all",
    ),
    "a side that makes no row": (
        ring_program(
            turns=TURNS.replace(
                "call_extern m_row(&x, &t, turn, turn + 1)",
                "if odd[] { call_extern m_row(&x, &t, turn, turn + 1) }",
            ).replace("for turn", "allocate odd : buffer<bool> call_extern m_odd(&x, &odd) for turn", 1),
            more="kernel m_odd(x : buffer<8x4xi8> r, odd : buffer<bool> w) on cpu { odd[] = i32(x[0, 0]) < 3 }",
        ),
        "call_extern m_win",
        "'m_win' reads row 0 of 't', which is not made yet, the 2nd time that it is called",
        "make the rows of 't' before they are read",
    ),
    "rows by data": (
        ring_program(turns=TURNS.replace("turn - 1, turn)", "turn * turn, turn)")),
        "for turn",
        "which rows the calls from 'm_row' on make cannot be followed",
        None,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_refused_where_they_stand(tmp_path: Path, name: str) -> None:
    text, at, message, help_text = WRONG[name]
    code, where, found, help_found = refusal(text, tmp_path)
    line = line_of(text, at) + (at == "for turn")
    assert (code, found) == ("BW115", message)
    assert where.startswith(f"m.bw:{line}:")
    assert help_text is None or help_found == help_text


def test_a_ring_of_the_size_that_the_help_says_is_taken(tmp_path: Path) -> None:
    text = ring_program(ring=", ring=0:2", body=CLAMPED)
    assert refusal(text, tmp_path)[3] == "keep 3 rows of 't', or all"
    assert compiled(text.replace("ring=0:2", "ring=0:3"), tmp_path).files
    assert compiled(text.replace(", ring=0:2", ""), tmp_path).files


NO_PROGRAM = {
    "no such axis": (ring_program(ring=", ring=2:3"), "'t' has a ring of 3 rows on axis 2 of 2 axes"),
    "no rows": (ring_program(ring=", ring=0:0"), "'t' has a ring of 0 rows on axis 0, which has 8"),
    "more rows than there are": (
        ring_program(ring=", ring=0:9"),
        "'t' has a ring of 9 rows on axis 0, which has 8",
    ),
    "rows in parts": (
        ring_program(ring=", ring=1:3"),
        "'t' has a ring of 3 rows on axis 1, but its rows do not lie one behind the other: its shape is 8x4",
    ),
    "a port": (
        ring_program(wanted=", ring=0:3"),
        "'y' of 'main' is a ring, whose rows the application counts",
    ),
    "a ring that is read as a whole": (
        ring_program(
            turns=f"{TURNS} call_extern m_all(&t, &y)",
            more="kernel m_all(t : buffer<8x4xi8, ring=0:3> r, y : buffer<8x4xi8> w) on cpu "
            "{ for r : i32 in 0 .. 8 { for c : i32 in 0 .. 4 { y[r, c] = t[r, c] } } }",
        ),
        "ring 't' is passed to 't' of 'm_all', which does not go through it row by row",
    ),
    "a ring for what knows of none": (
        ring_program(given=""),
        "'t' is passed to 't' of 'm_row': 12 elements, 32 expected",
    ),
    "another ring": (
        ring_program(ring=", ring=0:4"),
        "'t' is passed to 't' of 'm_row': a ring of 4 rows, a ring of 3 rows is asked for",
    ),
    "a whole tensor for a ring": (
        ring_program(ring=""),
        "'t' is passed to 't' of 'm_row': no ring, a ring of 3 rows is asked for",
    ),
    "scratch that is a ring": (
        ring_program(body=f"allocate u : buffer<4xi8, ring=0:2> u[0] = 1:i8 {GUARDED}"),
        "'u' is a ring, which kernel 'm_win' has for itself",
    ),
    "a view that is a ring": (
        ring_program(body=f"view u : buffer<1x4xi8, ring=0:1> = &t[r, 0] {GUARDED}"),
        "view 'u' is a ring",
    ),
    "a row that is chosen by a condition": (
        ring_program(body="y[r, c] = t[select(r > 0, r - 1, 0), c]"),
        "ring 't' is passed to 't' of 'm_win', which does not go through it row by row",
    ),
    "a row before the first": (
        ring_program(body="y[r, c] = t[r - 1, c]"),
        "row -1 of 't' does not exist; it has 8",
    ),
}
NO_PROGRAM["another ring"] = (
    ring_program(ring=", ring=0:4", given=", ring=0:3"),
    NO_PROGRAM["another ring"][1],
)
NO_PROGRAM["a whole tensor for a ring"] = (
    ring_program(ring="", given=", ring=0:3"),
    NO_PROGRAM["a whole tensor for a ring"][1],
)


@pytest.mark.parametrize("name", NO_PROGRAM)
def test_rings_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    text, message = NO_PROGRAM[name]
    with pytest.raises(CompileError) as caught:
        compiled(text, tmp_path)
    codes = {found.code for found in caught.value.diagnostics}
    assert codes == {"BW113"}
    assert message in [found.message for found in caught.value.diagnostics]
    assert all(str(found.where).startswith("m.bw:") for found in caught.value.diagnostics)
