"""Scopes whose tag the target does not know are refused, with what it knows."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import CompileError
from bytewright.ir.scope import GLOBAL, WORKSPACE, pool_scope
from bytewright.scopes.check_scopes import check_scopes, undeclared_tags
from bytewright.target.registry import load_target
from support.hand_built import chain, reverse_kernel

HOST = load_target("host")


def test_tags_that_the_target_has_are_fine() -> None:
    for scope in (None, GLOBAL, WORKSPACE, pool_scope("ram")):
        check_scopes(chain("m", [reverse_kernel("k", 8, scope)] * 2, 8), HOST)


def test_each_unknown_tag_is_named_with_its_buffers_and_the_tags_that_exist() -> None:
    kernels = [reverse_kernel("k", 8, pool_scope("rom"), num_scratch=2), reverse_kernel("far", 8)]
    module = chain("m", kernels, 8, scope=pool_scope("moon"))
    assert list(undeclared_tags(module, HOST)) == ["rom", "moon"]
    with pytest.raises(CompileError) as caught:
        check_scopes(module, HOST)
    rom, moon = caught.value.diagnostics
    assert rom.code == moon.code == "BW209"
    assert rom.message == "scope 'global.rom' names neither a pool nor a tag of target 'host'"
    assert rom.notes == (
        "it is the scope of 'scratch0' of kernel 'k', 'scratch1' of kernel 'k'",
        "tags: workspace, stack, ram, rodata",
    )
    assert rom.help == "did you mean 'ram'?"
    assert moon.notes[0] == "it is the scope of 't0/out' of the entry"
    assert moon.help is None
