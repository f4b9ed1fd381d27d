"""A text of two kernels with a tensor of 8 rows between them, of which a ring keeps some: what tests change."""

from __future__ import annotations

SWEEP = (
    "let first_row : i32 = max(row_begin, 0) let last_row : i32 = min(row_end, 8) "
    "for r : i32 in first_row .. last_row"
)
INLINE = "for r : i32 in max(row_begin, 0) .. min(row_end, 8)"
GUARDED = """allocate s : buffer<i32, "local"> s[] = i32(t[r, c]) * 2
      for d : i32 in 0 .. 2 { let q : i32 = r + (d * 2 - 1) if q >= 0 && q < 8 { s[] = s[] + i32(t[q, c]) } }
      y[r, c] = i8(s[])"""
CLAMPED = "y[r, c] = i8(i32(t[max(r - 1, 0), c]) + i32(t[r, c]) * 2 + i32(t[min(r + 1, 7), c]))"
TURNS = """for turn : i32 in 0 .. 9 {
    call_extern m_row(&x, &t, turn, turn + 1)
    call_extern m_win(&t, &y, turn - 1, turn)
  }"""


def ring_program(
    ring: str = ", ring=0:3",
    *,
    sweep: str = SWEEP,
    body: str = GUARDED,
    turns: str = TURNS,
    given: str | None = None,
    wanted: str = "",
    more: str = "",
) -> str:
    """A text with a tensor of 8 rows between two kernels."""
    given = ring if given is None else given
    return f"""module m
kernel m_row(x : buffer<8x4xi8> r, t : buffer<8x4xi8{given}> w, row_begin : i32, row_end : i32) on cpu {{
  {sweep} {{ for c : i32 in 0 .. 4 {{ t[r, c] = i8(i32(x[r, c]) + 1) }} }}
}}
kernel m_win(t : buffer<8x4xi8{given}> r, y : buffer<8x4xi8{wanted}> w, row_begin : i32, row_end : i32) on cpu {{
  {sweep} {{ for c : i32 in 0 .. 4 {{
      {body}
  }} }}
}}
{more}
entry main(x : buffer<8x4xi8> r, y : buffer<8x4xi8{wanted}> w) on cpu {{
  allocate t : buffer<8x4xi8{ring}>
  {turns}
}}
"""
