"""Other definitions in the place of those there are: uses and views follow, and no scope gets wider."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.definitions import decided, redefined
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import UNDECIDED
from bytewright.ir.text.print_prim import print_primfunc
from bytewright.ir.walk import allocations
from support.ir_programs import CONSTANT, parsed, text_of
from support.parsing import parse_primfunc

KERNEL = """kernel k(
    x : buffer<8xi8, "global", align=1> rw activation
) on cpu {
  allocate a : buffer<8xi8, "SCOPE", align=1> {mine=1}
  view part : buffer<4xi8, "SCOPE", align=1> = &a[4]
  view inner : buffer<2xi8, "SCOPE", align=1> = &part[1]
  for i : i32 in 0 .. 4 {
    a[i] = x[i]
    x[i] = part[i]
  }
  call_extern f(&a[2], &inner, &x)
}"""


def test_uses_and_views_have_what_the_definition_says() -> None:
    kernel = parse_primfunc(KERNEL.replace("SCOPE", "global"))
    (a,) = allocations(kernel)
    narrowed = decided(a, WORKSPACE, a.storage)
    after = redefined(kernel, {"a": narrowed, "x": narrowed})
    assert print_primfunc(after) == KERNEL.replace("SCOPE", "global.workspace")
    assert redefined(kernel, {}) == kernel


def test_uses_of_constants_follow_too() -> None:
    module = parsed(text_of("call_extern m_halve(&w, &y)", constants=CONSTANT))
    (constant,) = module.constant_buffers
    placed = decided(constant, pool_scope("flash"), constant.storage.narrowed("why", offset=8))
    (call,) = redefined(module.main, {"w": placed}).body.statements
    assert placed.storage.offset == 8
    assert call == replace(
        call, arguments=(replace(call.arguments[0], buffer=placed.buffer), call.arguments[1])
    )


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE, STACK, LOCAL, pool_scope("other")])
def test_no_scope_gets_wider(scope: Scope | None) -> None:
    (a,) = allocations(parse_primfunc(KERNEL.replace("SCOPE", "global.ram")))
    with pytest.raises(
        InternalError, match=r"'a' of scope 'global.ram' cannot get .*: a pass may only narrow"
    ):
        decided(a, scope, UNDECIDED)
    assert decided(a, pool_scope("ram"), a.storage) == a
