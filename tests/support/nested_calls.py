"""Kernels with scratch that call each other to some depth, as IR."""

from __future__ import annotations

from collections.abc import Callable

LENGTH = 8
_TYPE = f'buffer<{LENGTH}xi32, "global", align=4>'
_PORTS = f"x : {_TYPE} r activation, y : {_TYPE} w activation"
_FIRST = f"for i : i32 in 0 .. {LENGTH} {{ y[i] = x[i] + 1 }}\n"


def _scratch(length: int = LENGTH) -> str:
    return f'allocate s : buffer<{length}xi32, "global.workspace", align=4>\n'


def _copy(frm: str, to: str, i: str, more: str = "") -> str:
    return f"for {i} : i32 in 0 .. {LENGTH} {{ {to}[{i}] = {frm}[{i}]{more} }}\n"


def _program(levels: int, body: Callable[[int], str]) -> str:
    kernels = "".join(
        f"kernel m_{level}({_PORTS}) on cpu {{\n{body(level) if level else _FIRST}}}\n"
        for level in range(levels)
    )
    ports = f"input %x : tensor<{LENGTH}xi32>\noutput %y : tensor<{LENGTH}xi32>\n"
    return (
        f"module m\n{ports}{kernels}entry main({_PORTS}) on cpu {{\ncall_extern m_{levels - 1}(&x, &y)\n}}\n"
    )


def called_twice(levels: int) -> str:
    """Each kernel calls the one before it twice, by way of its scratch."""
    return _program(
        levels,
        lambda level: f"{_scratch()}call_extern m_{level - 1}(&x, &s)\ncall_extern m_{level - 1}(&s, &y)\n",
    )


def called_in_two_loops(levels: int) -> str:
    """Twice, in loops of one turn, which have the scratch anew."""
    return _program(
        levels,
        lambda level: (
            f"for n : i32 in 0 .. 1 {{\n{_scratch()}{_copy('x', 's', 'i')}call_extern m_{level - 1}(&s, &y)\n}}\n"
            f"for o : i32 in 0 .. 1 {{\n{_scratch().replace(' s ', ' t ')}{_copy('y', 't', 'j')}"
            f"call_extern m_{level - 1}(&t, &y)\n}}\n"
        ),
    )


def in_turn(levels: int) -> str:
    """A chain: each kernel's scratch has died when the one after the next has its own."""
    return _program(
        levels,
        lambda level: f"{_scratch()}{_copy('x', 's', 'i', f' + {level}')}call_extern m_{level - 1}(&s, &y)\n",
    )


def at_once(levels: int, scope: str = "global.workspace") -> str:
    """A chain: each kernel needs its scratch when the one that it calls has returned."""
    return _program(
        levels,
        lambda level: (
            f"{_scratch().replace('global.workspace', scope)}{_copy('x', 's', 'i', f' + {level}')}"
            f"call_extern m_{level - 1}(&x, &y)\n{_copy('s', 'y', 'j', ' + y[j]')}"
        ),
    )


def of_many_sizes(levels: int) -> str:
    """A chain in turn, where no scratch is like another."""
    return _program(
        levels,
        lambda level: (
            f"{_scratch(LENGTH + level)}{_copy('x', 's', 'i', f' + {level}')}"
            + f"{_copy('s', 'y', 'k')}call_extern m_{level - 1}(&x, &y)\n"
        ),
    )
