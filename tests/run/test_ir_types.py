"""Programs written as IR: every scalar type as a parameter, truth values in memory, scratch without axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.ir_program import assert_c_is_the_module

# Adds a scalar of each type to what it reads, and shows a loop that counts in 64 bits.
SCALAR = """
module m
input %x : tensor<4xT>
output %y : tensor<4xT>
kernel m_shift(
    source : buffer<4xT, "global", align=8> r activation,
    result : buffer<4xT, "global", align=8> w activation,
    amount : T, twice : bool, last : i64
) on cpu {
  for i : i64 in 0:i64 .. last {
    let doubled : bool = twice && i < 3:i64
    result[i] = source[i] + select(doubled, amount * 2:T, amount)
  }
}
entry main(
    x : buffer<4xT, "global", align=8> r activation,
    y : buffer<4xT, "global", align=8> w activation
) on cpu {
  call_extern m_shift(&x, &y, AMOUNT:T, true, 4:i64) {operators=("0 (SHIFT)",)}
}
"""


@pytest.mark.parametrize(
    ("dtype", "amount", "numpy_type"),
    [
        ("f32", "0.3", np.float32),
        ("f64", "0.1", np.float64),
        ("f64", "-1e+300", np.float64),
        ("f32", "-inf", np.float32),
        ("f64", "inf", np.float64),
        ("i64", "5000000000", np.int64),
        ("i32", "-70000", np.int32),
        ("i16", "300", np.int16),
    ],
)
def test_scalars_arrive_with_their_type(
    dtype: str, amount: str, numpy_type: type[np.generic], tmp_path: Path
) -> None:
    x = np.array([1, -2, 30, 7]).astype(numpy_type)
    text = SCALAR.replace("AMOUNT", amount)
    for word in ("xT", ":T", " T"):
        text = text.replace(f"{word}", word.replace("T", dtype))
    (y,) = assert_c_is_the_module(text.replace(": T", f": {dtype}"), tmp_path, [x])
    value = np.array(float(amount) if dtype[0] == "f" else int(amount)).astype(numpy_type)
    np.testing.assert_array_equal(y, x + np.array([2, 2, 2, 1]).astype(numpy_type) * value)


WIDE_INDICES = """
module m
input %x : tensor<3x4xi8>
output %y : tensor<4x3xi8>
kernel m_transpose(
    x : buffer<3x4xi8, "global", align=1> r activation,
    y : buffer<4x3xi8, "global", align=1> w activation
) on cpu {
  for i : i64 in 0:i64 .. 3:i64 {
    for j : i32 in 0 .. 4 {
      y[j, i] = x[i, j]
    }
  }
}
entry main(
    x : buffer<3x4xi8, "global", align=1> r activation,
    y : buffer<4x3xi8, "global", align=1> w activation
) on cpu {
  call_extern m_transpose(&x, &y)
}
"""


def test_indices_of_both_widths_meet(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.int8).reshape(3, 4)
    (y,) = assert_c_is_the_module(WIDE_INDICES, tmp_path, [x])
    np.testing.assert_array_equal(y, x.T)


TRUTHS = """
module m
input %x : tensor<6xbool>
input %v : tensor<6xi32>
output %y : tensor<6xbool>
output %z : tensor<6xi32>
kernel m_between(
    x : buffer<6xbool, "global", align=1> r activation,
    v : buffer<6xi32, "global", align=4> r activation,
    y : buffer<6xbool, "global", align=1> w activation,
    flip : bool
) on cpu {
  allocate kept : buffer<6xbool, "local", align=1>
  allocate last : buffer<bool, "local", align=1>
  last[] = false
  for i : i32 in 0 .. 6 {
    kept[i] = x[i] == (v[i] > 2)
    last[] = kept[i] || last[]
  }
  for i_1 : i32 in 0 .. 6 {
    let both : bool = kept[i_1] && last[]
    y[i_1] = select(flip, both == false, both)
  }
}
kernel m_count(
    y : buffer<6xbool, "global", align=1> r activation,
    z : buffer<6xi32, "global", align=4> w activation
) on cpu {
  for i : i32 in 0 .. 6 {
    z[i] = i32(y[i]) * 10 + i
  }
}
entry main(
    x : buffer<6xbool, "global", align=1> r activation,
    v : buffer<6xi32, "global", align=4> r activation,
    y : buffer<6xbool, "global", align=1> w activation,
    z : buffer<6xi32, "global", align=4> w activation
) on cpu {
  allocate t : buffer<6xbool, "global.workspace", align=1>
  call_extern m_between(&x, &v, &t, false)
  call_extern m_between(&t, &v, &y, true)
  call_extern m_count(&y, &z)
}
"""


def test_truth_values_take_a_byte_each(tmp_path: Path) -> None:
    x = np.array([True, False, True, False, True, True])
    v = np.array([1, 2, 3, 4, 5, -6], np.int32)
    y, z = assert_c_is_the_module(TRUTHS, tmp_path, [x, v])
    first = x == (v > 2)
    expected = ~(first == (v > 2))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, expected * 10 + np.arange(6))


# A scalar of each kind: a variable, one on the stack, one that is shown, one that is passed on, one in a workspace.
WITHOUT_AXES = """
module m
input %x : tensor<5xi8>
output %y : tensor<i32>
kernel m_add(
    value : buffer<i32, "global", align=4> r activation,
    sum : buffer<i32, "global", align=4> rw activation
) on cpu {
  sum[] = sum[] + value[]
}
kernel m_sum(
    x : buffer<5xi8, "global", align=1> r activation,
    y : buffer<i32, "global", align=4> w activation
) on cpu {
  allocate acc : buffer<i32, SCOPE, align=4>
  allocate seen : buffer<i32, "local", align=4>
  allocate plain : buffer<i32, "global.stack", align=4>
  allocate passed : buffer<i32, "global.stack", align=4>
  acc[] = 7
  passed[] = 0
  for i : i32 in 0 .. 5 {
    seen[] = i32(x[i])
    plain[] = i
    view shown : buffer<i32, "local", align=4> = &seen
    view either : buffer<i32, "local", align=4> = &shown if i < 3 else &seen
    acc[] = acc[] + shown[] * either[]
    passed[] = plain[] + 1
    call_extern m_add(&passed, &acc)
  }
  y[] = acc[]
}
entry main(
    x : buffer<5xi8, "global", align=1> r activation,
    y : buffer<i32, "global", align=4> w activation
) on cpu {
  call_extern m_sum(&x, &y)
}
"""


@pytest.mark.parametrize("scope", ['"global.stack"', '"global"', '"global.workspace"'])
def test_scratch_without_axes(scope: str, tmp_path: Path) -> None:
    x = np.array([3, -4, 5, 1, 2], np.int8)
    (y,) = assert_c_is_the_module(WITHOUT_AXES.replace("SCOPE", scope), tmp_path, [x])
    assert int(y) == 7 + 55 + 15
