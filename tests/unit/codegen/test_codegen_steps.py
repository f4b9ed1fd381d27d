"""The comment above each call of the entry: what is read and written, and where that begins."""

from __future__ import annotations

import re

from support import two_devices

PARTS = """
module m
input %x : tensor<32xi16>
output %y : tensor<32xi16>
kernel m_part(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  for i : i32 in 0 .. 8 { y[i] = x[i] }
}
kernel m_negate(y : buffer<16xi16> rw) on core1 {
  for i : i32 in 0 .. 16 { y[i] = i16(0 - i32(y[i])) }
}
entry main(x : buffer<32xi16> r, y : buffer<32xi16> w) on cpu {
  allocate t : buffer<32xi16>
  for i : i32 in 0 .. 4 {
    call_extern m_part(&x[i * 8], &t[i * 8])
  }
  call_extern m_negate(&t[16])
  call_extern m_part(&t[24], &y[24])
  call_extern m_part(&t[16], &y[16])
  call_extern m_part(&t[8], &y[8])
  call_extern m_part(&t, &y)
}
"""


def test_a_part_of_a_buffer_begins_where_the_comment_says() -> None:
    """In bytes, as offsets are; what a loop decides is an element. What is read and written is both."""
    source = two_devices.compiled(PARTS).files["src/m.c"].decode()
    assert re.findall(r"/\* (m_.*: .*) \*/", source) == [
        "m_part: i16[8] @caller[i * 8] -> i16[8] @shared+0[i * 8]",
        "m_negate on core1: i16[16] @shared+32 -> i16[16] @shared+32",
        "m_part: i16[8] @shared+48 -> i16[8] @caller+48",
        "m_part: i16[8] @shared+32 -> i16[8] @caller+32",
        "m_part: i16[8] @shared+16 -> i16[8] @caller+16",
        "m_part: i16[8] @shared+0 -> i16[8] @caller",
    ]
