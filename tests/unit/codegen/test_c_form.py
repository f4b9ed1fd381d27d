"""The form of kernels that is printed: names by scope, no loop of one turn, names for positions and conditions."""

from __future__ import annotations

import re
from dataclasses import replace

from bytewright import ir
from bytewright.codegen.c_form import c_form
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.rewrite import Rewriting, rewrite_function
from bytewright.lower.isa.vector_unit import memory_parameter, variable_parameter
from support.parsing import parse_module

TEXT = """
module m

kernel m_k(
    x : buffer<4x5x8xi32, "global", align=4> r,
    fill : buffer<8xi32, "global", align=4> r,
    n : i32,
    y : buffer<4x5x8xi32, "global", align=4> w
) on cpu {{
{body}
}}

entry main(
    x : buffer<4x5x8xi32, "global", align=4> r,
    fill : buffer<8xi32, "global", align=4> r,
    y : buffer<4x5x8xi32, "global", align=4> w
) on cpu {{
  call_extern m_k(&x, &fill, 4, &y)
}}
"""


def text_of(body: str) -> str:
    (kernel,) = parse_module(TEXT.format(body=body), {}, {}).kernels
    writer = Writer()
    StatementWriter(writer).sequence(c_form(kernel).body)
    return re.sub(r"\s+", " ", writer.text()).strip()


def test_a_name_is_free_again_where_its_scope_ends() -> None:
    inner = "for i{0} : i32 in 0 .. 8 {{ y[0, {1}, i{0}] = x[0, 0, i{0}] }}"
    text = text_of("\n".join([inner.format("", 0), inner.format("_1", 1), inner.format("_2", 2)]))
    assert text.count("for (int32_t i = 0; i < 8; ++i)") == 3


def test_a_name_inside_the_scope_of_another_keeps_apart() -> None:
    text = text_of(
        "for i : i32 in 0 .. 5 { for i_1 : i32 in 0 .. 8 { y[0, i, i_1] = i } }\nlet i_2 : i32 = n\ny[3, 4, 7] = i_2"
    )
    assert "for (int32_t i_1 = 0; i_1 < 8; ++i_1)" in text
    assert "const int32_t i = n; y[159] = i;" in text


def test_a_number_that_belongs_to_a_name_stays() -> None:
    assert "const int32_t acc_1 = n;" in text_of("let acc_1 : i32 = n\ny[0, 0, 0] = acc_1")


def test_loops_of_one_turn_and_needless_braces_go() -> None:
    text = text_of(
        'for i : i32 in 3 .. 4 { allocate s : buffer<i32, "local">\ns[] = n + i\ny[0, 0, i] = s[] }'
    )
    assert text == "int32_t s = n + 3; y[3] = s;"


def test_positions_and_conditions_have_names() -> None:
    text = text_of(
        "for r : i32 in 0 .. n { for c : i32 in 0 .. 5 {\n"
        'view tap : buffer<8xi32, "global", align=4> = &x[r - 1, c, 0] if r >= 1 && c < 4 else &fill\n'
        "for k : i32 in 0 .. 8 { y[r, c, k] = tap[k] } } }"
    )
    assert "const int32_t pixel = ((r * 5) + c) * 8; const bool inside = (r >= 1) && (c < 4);" in text
    assert "inside ? &x[(((r - 1) * 5) + c) * 8] : fill;" in text
    assert "y[pixel + k] = tap[k];" in text


def test_what_only_a_branch_needs_has_its_name_there() -> None:
    """Not before the block that alone needs it: a compiler would have to keep it while the block is carried out."""
    text = text_of(
        "for r : i32 in 0 .. n { for c : i32 in 0 .. 5 { if r < 2 {\n"
        "for k : i32 in 0 .. 4 { y[r, c, k * 2] = n\ny[r, c, k] = 1 }\n} else {\n"
        "y[0, 0, 0] = n\ny[r, c, 0] = 2\ny[r, c, 2] = 3 } } }"
    )
    pixel = "const int32_t pixel = ((r * 5) + c) * 8; "
    assert f"k < 4; ++k) {{ {pixel}y[pixel + (k * 2)] = n; y[pixel + k] = 1; }}" in text
    assert f"else {{ y[0] = n; {pixel}y[pixel] = 2; y[pixel + 2] = 3; }}" in text


def test_a_name_in_a_branch_is_not_used_before_it_stands_there() -> None:
    text = text_of(
        "for r : i32 in 0 .. n { for c : i32 in 0 .. 5 { if r < 2 {\n"
        "y[0, 0, 0] = select(n < 3, y[r, c, 1], 2)\ny[r, c, 0] = 2\ny[r, c, 2] = 3 } } }"
    )
    uncertain = "y[0] = (n < 3) ? y[(((r * 5) + c) * 8) + 1] : 2;"
    assert f"{uncertain} const int32_t pixel = ((r * 5) + c) * 8; y[pixel] = 2;" in text


def test_what_a_condition_guards_is_not_computed_before_it() -> None:
    text = text_of(
        "for r : i32 in 0 .. n { for c : i32 in 0 .. 5 {\n"
        "if r < 2 { for k : i32 in 0 .. 8 { y[r, c, k] = 1 } }\n"
        "y[0, 0, c] = select(r < 2, x[r, c, 1], select(r < 2, x[r, c, 0], 3)) } }"
    )
    assert (
        "c < 5; ++c) { if (r < 2) { for (int32_t k = 0; k < 8; ++k) { y[(((r * 5) + c) * 8) + k] = 1; } }"
        in text
    )


def test_what_is_stored_side_by_side_has_a_pointer() -> None:
    lanes = "y[i, 0, {0}] = x[i, 0, {0}] + fill[{1}]"
    pairs = (("j", "j"), ("j + 1", "j + 1"), ("j + 2", "j + 2"))
    body = "\n".join(lanes.format(*pair) for pair in pairs)
    text = text_of(f"for i : i32 in 0 .. 4 {{ for j : i32 in 0 .. 6 {{ {body} }} }}")
    assert "const int32_t *const x_block = &x[(i * 40) + j];" in text
    assert "; int32_t *const y_block = &y[(i * 40) + j];" in text
    assert "y_block[0] = x_block[0] + fill[j];" in text
    assert "y_block[2] = x_block[2] + fill[j + 2];" in text


def test_what_is_read_in_some_cases_alone_has_no_pointer() -> None:
    lanes = "y[i, 0, j{0}] = select(j < n, x[i, 0, j{0}], 0)"
    text = text_of(
        f"for i : i32 in 0 .. 4 {{ for j : i32 in 0 .. 7 {{ {lanes.format('')}\n{lanes.format(' + 1')} }} }}"
    )
    assert "y_block[1] = " in text
    assert "x_block" not in text


def test_what_is_not_stored_side_by_side_has_no_pointer() -> None:
    apart = "for i : i32 in 0 .. 4 { y[i, 0, 0] = i\ny[i, 0, 2] = i }"
    later = "for k : i32 in 0 .. 4 { y[k, 0, 1] = k\ny[k, 0, 2] = k }"
    fixed = "y[0, 0, 0] = 1\ny[0, 0, 1] = 2"
    assert "block" not in text_of(f"{apart}\n{later}\n{fixed}")


def test_what_lies_where_memory_says_has_neither_pointer_nor_position() -> None:
    """Between two uses another statement may say otherwise."""
    stores = 'allocate at : buffer<i32, "local"> at[] = 0\n' + "".join(
        f"y[i, 0, at[]] = {k}\ny[i, 0, at[] + 1] = i\ny[select(i < 2, i, at[]) + i, 0, {k}] = i\nat[] = at[] + 2\n"
        for k in range(2)
    )
    text = text_of(f"for i : i32 in 0 .. 4 {{ {stores} }}")
    assert "block" not in text
    assert text.count("? i : at") == 2


def test_in_a_ring_of_one_row_no_row_is_looked_for() -> None:
    body = "for k : i32 in 0 .. 3 { let row : i32 = k + n\nlet again : i32 = row * 2\ny[0, 0, k] = x[0, again, k] }"
    assert "again" in text_of(body)
    assert ring_of_one_text(body) == "for (int32_t k = 0; k < 3; ++k) { y[k] = x[k]; }"


def ring_of_one_text(body: str) -> str:
    """The text of a kernel whose input is a ring of one row."""
    (kernel,) = parse_module(TEXT.format(body=body), {}, {}).kernels

    def ringed(buffer: ir.Buffer) -> ir.Buffer:
        return replace(buffer, rows=ir.RingRows(1, 1)) if buffer.name == "x" else buffer

    writer = Writer()
    StatementWriter(writer).sequence(c_form(rewrite_function(kernel, Rewriting(buffer=ringed))).body)
    return re.sub(r"\s+", " ", writer.text()).strip()


def test_what_an_instruction_means_lends_no_name_to_a_branch() -> None:
    """Two calls of one instruction in a branch have positions in common, of the loop that is in what it means."""
    name = "sum_of_odd"
    total = variable_parameter("total", ir.DType.I32, ir.Access.READ_WRITE)
    words = memory_parameter("words", 16, ir.DType.I32)
    meaning = BodyBuilder(("total", "words"))
    with meaning.for_(f"{name}.i", 0, 3) as i:
        meaning.add_to(total.buffer, (), load(words.buffer, (i * 2 + 1) * 2 + 1))
    instruction = ir.Instruction(name, (total, words), meaning.finish(), "", ir.Feature("none", "0"), "Adds.")
    x = ir.Buffer("x", (64,), ir.DType.I32, 4)
    y = ir.Buffer("y", (2,), ir.DType.I32, 4)
    n = ir.Var("n", ir.DType.I32)
    body = BodyBuilder(("x", "y", "n"))
    with body.if_(n < 2):
        for place in range(2):
            sums = body.scalar(f"sum{place}", ir.DType.I32, 0)
            body.execute(instruction, sums, region(x, place * 16))
            body.store(y, place, load(sums))
    parameters = (
        ir.BufferParameter(x, ir.Access.READ, scope=ir.GLOBAL),
        ir.BufferParameter(y, ir.Access.WRITE, scope=ir.GLOBAL),
        ir.ScalarParameter(n),
    )
    writer = Writer()
    StatementWriter(writer).sequence(c_form(ir.PrimFunc("m_k", parameters, body.finish())).body)
    assert f"{name}.i" not in writer.text()
