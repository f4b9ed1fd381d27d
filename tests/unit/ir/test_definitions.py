"""Other definitions in the place of those there are: uses and views name them, and no scope gets wider."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.definitions import redefined
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.primfuncs import print_primfunc
from bytewright.ir.walk import allocations
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


def test_views_are_where_the_definition_says() -> None:
    kernel = parse_primfunc(KERNEL.replace("SCOPE", "global"))
    (a,) = allocations(kernel)
    narrowed = a.storage.narrowed(scope=WORKSPACE)
    after = redefined(kernel, {"a": narrowed, "x": narrowed})
    assert print_primfunc(after) == KERNEL.replace("SCOPE", "global.workspace")
    assert redefined(kernel, {}) == kernel


@pytest.mark.parametrize("scope", [GLOBAL, WORKSPACE, STACK, LOCAL, pool_scope("other")])
def test_no_scope_gets_wider(scope: Scope) -> None:
    ram = Storage(pool_scope("ram"))
    with pytest.raises(
        InternalError, match=f"scope 'global.ram' cannot become '{scope}': a pass may only narrow"
    ):
        ram.narrowed(scope=scope)
    assert ram.narrowed(scope=pool_scope("ram")) == ram
