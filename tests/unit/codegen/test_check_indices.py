"""Index arithmetic that can leave its type is refused: against the evaluator, which counts exactly."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, InternalError
from bytewright.ir.module import Module
from bytewright.ir.verify.check_indices import check_indices
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module

HEAD = """
module m
kernel m_k(
    x : buffer<{extent}xi8, "global", align=1> r activation,
    y : buffer<8xi8, "global", align=1> w activation,
    begin : i32, end : i32
) on cpu {{
{body}
}}
entry main(
    x : buffer<{extent}xi8, "global", align=1> r activation,
    y : buffer<8xi8, "global", align=1> w activation
) on cpu {{
{calls}
}}
"""


def module(body: str, calls: str = "  call_extern m_k(&x, &y, 0, 8)", extent: str = "8") -> Module:
    return parse_module(HEAD.format(body=body, calls=calls, extent=extent), {}, {})


def fault_of(body: str, **others: str) -> str | None:
    try:
        check_indices(module(body, **others))
    except CompileError as error:
        (diagnostic,) = error.diagnostics
        assert diagnostic.code == "BW110"
        return diagnostic.message
    return None


LOOP = "  for i : i32 in begin .. end {{\n    {}\n  }}"
HUGE = 2**31 - 1


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        (f"let t : i32 = i + {HUGE - 7}", None),
        (f"let t : i32 = i + {HUGE - 6}", 2**31),
        (f"let t : i32 = i * {HUGE // 7}", None),
        (f"let t : i32 = i * {HUGE // 7 + 1}", (HUGE // 7 + 1) * 7),
        (f"let t : i32 = 0 - i * {HUGE // 7} - 2", -(HUGE // 7) * 7 - 2 if HUGE // 7 * 7 == HUGE else None),
        ("let t : i32 = (i - 4) << 29", None),
        ("let t : i32 = (i - 3) << 29", 2**31),
        (f"let t : i64 = i64(i) * {HUGE}:i64", None),
        (f"y[i] = x[select(i * {HUGE} < 3, 0, 1)]", 7 * HUGE),
        (f"if i < 2 {{ y[i] = x[i * {HUGE}] }}", None),
        (f"if i < 2 && 0 < i {{ y[i] = x[i * {HUGE}] }}", None),
        (f"if i < 3 {{ y[i] = x[i * {HUGE}] }}", 2 * HUGE),
        (f"if i >= 2 {{ y[i] = x[i] }} else {{ y[i] = x[i * {HUGE}] }}", None),
        (f"if i >= 2 || i < 0 {{ y[i] = x[i] }} else {{ y[i] = x[i * {HUGE}] }}", None),
        (f"if i >= 3 || i < 0 {{ y[i] = x[i] }} else {{ y[i] = x[i * {HUGE}] }}", 2 * HUGE),
        (f"let t : i32 = select(2 > i, i * {HUGE}, 0)", None),
        (f"let t : i32 = select(i > 1, 0, i * {HUGE})", None),
        (f"let t : i32 = select(i > 2, 0, i * {HUGE})", 2 * HUGE),
        (f"let t : i32 = divide_round(i + {HUGE - 8}, 2)", None),
        (f"let t : i32 = divide_round(i + {HUGE - 7}, 2)", 2**31),
        (f"let t : i32 = divide_round(i, 2) * {HUGE // 4}", None),
        (f"let t : i32 = divide_round(i, 2) * {HUGE // 4 + 1}", 2**31),
        (f"let t : bool = i < 2 && i * {HUGE} < 5", None),
        (f"let t : bool = i < 2 || i * {HUGE} < 5", 7 * HUGE),
        (f"let t : bool = i > 1 || i * {HUGE} < 5", None),
        (f"for j : i32 in 8 .. i {{ let t : i32 = j * {HUGE} }}", None),
        (f"for j : i32 in 7 .. i + 1 {{ let t : i32 = j * {HUGE} }}", 7 * HUGE),
        (f"let t : i32 = i32(x[i]) * {HUGE}", None),
    ],
)
def test_ranges_are_proved(statement: str, reached: int | None) -> None:
    message = fault_of(LOOP.format(statement))
    assert (None if message is None else int(message.split(" can be ")[1].split(",")[0])) == reached


def test_a_view_is_narrowed_by_its_condition() -> None:
    text = 'view t : buffer<1xi8, "global", align=1> = &x[i * {0}] if i < {1} else &x[(i - 2) * {0}]'
    assert fault_of(LOOP.format(text.format(HUGE // 6, 6))) is None
    assert fault_of(LOOP.format(text.format(HUGE, 2))) is not None
    assert fault_of(LOOP.format(text.format(HUGE, 3))) is not None


def test_flat_indices_count() -> None:
    body = "  for i : i32 in 0 .. 1 {\n    y[i] = x[begin + 65535, end]\n  }"
    assert fault_of(body, extent="65536x32768") is None
    assert fault_of(body, extent="65536x32769") is not None


def test_scalars_are_what_all_calls_pass() -> None:
    body = f"  let t : i32 = end * {HUGE // 9}"
    calls = "  call_extern m_k(&x, &y, 0, {})\n  call_extern m_k(&x, &y, 0, 3)"
    assert fault_of(body, calls=calls.format(9)) is None
    assert fault_of(body, calls=calls.format(10)) is not None


def random_index(generator: np.random.Generator, depth: int) -> str:
    """An i32 expression over `i`, `j`, `begin` and `end`, with constants of all sizes."""
    kind = int(generator.integers(9)) if depth else int(generator.integers(2))
    if kind == 0:
        return str(generator.choice(["i", "j", "begin", "end"]))
    if kind == 1:
        number = int(generator.choice([0, 1, 3, 7, 2**15, 2**29, 2**30, HUGE]))
        return str(number + int(generator.integers(2)) * (number < HUGE))
    left, right = (random_index(generator, depth - 1) for _ in range(2))
    if kind == 2:
        other = random_index(generator, depth - 1)
        comparison = generator.choice(["<", "<=", ">", ">=", "=="])
        joined = generator.choice(["", f" && i < {left}", f" || j >= {right}"])
        return f"select({other} {comparison} {random_index(generator, 0)}{joined}, {left}, {right})"
    if kind == 3:
        return f"{generator.choice(['min', 'max'])}({left}, {right})"
    return f"({left} {generator.choice(['+', '-', '*'])} {right})"


def is_defined(program: Module) -> bool:
    try:
        Evaluator(program).run("main", {"x": np.zeros(8, np.int8)})
    except InternalError as error:
        return "overflow" not in str(error)
    return True


def test_what_is_accepted_never_overflows() -> None:
    generator = np.random.default_rng(5)
    accepted = overflows = refused = 0
    for _ in range(250):
        index = random_index(generator, 3)
        body = (
            "  for i : i32 in begin .. end {\n    for j : i32 in i - 2 .. i + 2 {\n"
            f"      let t : i32 = {index}\n    }}\n  }}\n"
            "  for k : i32 in 0 .. 8 {\n    y[k] = x[k]\n  }"
        )
        program = module(body)
        is_refused = fault_of(body) is not None
        defined = is_defined(program)
        assert defined or is_refused, index
        accepted += not is_refused
        overflows += not defined
        refused += is_refused
    assert accepted > 60
    assert overflows > 30
    assert overflows > 0.6 * refused  # most of what is refused does overflow
