"""Which buffers of an entry could lie in others: by hand; and random programs, which mean the same without copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bytewright.ir.module import Module
from bytewright.ir.prim import Access
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import calls
from bytewright.options import Pin
from bytewright.storage.find_parts import Part, find_parts
from bytewright.storage.own_names import own_names
from bytewright.storage.take_parts import take_parts
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.ir_program import read_module
from support.tiers import some

HOST = load_target("host")


def copy(name: str, given: int, made: int, *blocks: tuple[int, int, int], align: int = 4) -> str:
    """A kernel that copies blocks: first element of the input, of the output, and how many."""
    body = " ".join(
        f"for i{n} : i32 in 0 .. {count} {{ output[i{n} + {to}] = input[i{n} + {first}] }}"
        for n, (first, to, count) in enumerate(blocks)
    )
    return (
        f'kernel {name}(input : buffer<{given}xi32, "global", align={align}> r, '
        f'output : buffer<{made}xi32, "global", align=4> w) on cpu {{ {body} }}'
    )


def join(name: str, *counts: int) -> str:
    """A kernel that puts its inputs together."""
    parameters = "".join(f'in{n} : buffer<{count}xi32, "global"> r, ' for n, count in enumerate(counts))
    loops = " ".join(
        f"for i{n} : i32 in 0 .. {count} {{ output[i{n} + {sum(counts[:n])}] = in{n}[i{n}] }}"
        for n, count in enumerate(counts)
    )
    return f'kernel {name}({parameters} output : buffer<{sum(counts)}xi32, "global"> w) on cpu {{ {loops} }}'


def compute(name: str, given: int, made: int, align: int = 4) -> str:
    """A kernel that computes."""
    return (
        f'kernel {name}(input : buffer<{given}xi32, "global", align={align}> r, '
        f'output : buffer<{made}xi32, "global", align=4> w) on cpu '
        f"{{ for i : i32 in 0 .. {made} {{ output[i] = input[i % {given}] % 1009 * 3 + i }} }}"
    )


def program(kernels: list[str], body: str) -> Module:
    entry = 'entry main(x : buffer<8xi32, "global"> r, y : buffer<8xi32, "global"> w) on cpu { ' + body + " }"
    return read_module("\n".join(["module m", *kernels, entry]))


def own(name: str, count: int = 8) -> str:
    return f'allocate {name} : buffer<{count}xi32, "global.workspace", align=16> '


SPLIT = [compute("f", 8, 8), copy("half", 8, 4, (4, 0, 4)), compute("g", 4, 8)]
SPLIT_BODY = f"{own('a')} call_extern f(&x, &a) {own('b', 4)} call_extern half(&a, &b) call_extern g(&b, &y)"
JOIN = [compute("f", 8, 5), compute("g", 8, 3), join("both", 5, 3), compute("h", 8, 8)]
JOIN_BODY = (
    f"{own('a', 5)} call_extern f(&x, &a) {own('b', 3)} call_extern g(&x, &b) "
    f"{own('c')} call_extern both(&a, &b, &c) call_extern h(&c, &y)"
)
FOUND: dict[str, tuple[list[str], str, set[Part]]] = {
    "a slice": (SPLIT, SPLIT_BODY, {Part("b", "a", 4, 1)}),
    "a slice of the input": (
        SPLIT,
        f"{own('b', 4)} call_extern half(&x, &b) call_extern g(&b, &y)",
        {Part("b", "x", 4, 0)},
    ),
    "operands": (JOIN, JOIN_BODY, {Part("a", "c", 0, 2), Part("b", "c", 5, 2)}),
    "operands of a result": (
        JOIN,
        f"{own('a', 5)} call_extern f(&x, &a) {own('b', 3)} call_extern g(&x, &b) call_extern both(&a, &b, &y)",
        {Part("a", "y", 0, 2), Part("b", "y", 5, 2)},
    ),
    "an input beside an operand": (
        [compute("f", 8, 3), join("both", 8, 3), compute("h", 11, 8)],
        f"{own('a', 3)} call_extern f(&x, &a) {own('c', 11)} call_extern both(&x, &a, &c) call_extern h(&c, &y)",
        {Part("a", "c", 8, 1)},
    ),
    "one operand twice": (
        [compute("f", 8, 4), join("both", 4, 4)],
        f"{own('a', 4)} call_extern f(&x, &a) call_extern both(&a, &a, &y)",
        set(),
    ),
    "an operand that is written again": (
        JOIN,
        JOIN_BODY.replace("call_extern h(&c, &y)", "call_extern f(&c, &a) call_extern h(&c, &y)"),
        {Part("b", "c", 5, 2)},
    ),
    "a slice of what is written again": (
        SPLIT,
        SPLIT_BODY.replace("call_extern g(&b, &y)", "call_extern f(&x, &a) call_extern g(&b, &y)"),
        set(),
    ),
    "a slice that is written again": (
        [*SPLIT, compute("again", 8, 4)],
        SPLIT_BODY.replace(
            "call_extern g(&b, &y)", "call_extern g(&b, &y) call_extern again(&x, &b) call_extern g(&b, &y)"
        ),
        set(),
    ),
    "a whole that is written again": (
        [*JOIN, compute("again", 8, 8)],
        JOIN_BODY.replace(
            "call_extern h(&c, &y)", "call_extern h(&c, &y) call_extern again(&x, &c) call_extern h(&c, &y)"
        ),
        set(),
    ),
    "a slice in a loop": (
        SPLIT,
        f"{own('a')} call_extern f(&x, &a) {own('b', 4)} "
        "for t : i32 in 0 .. 2 { call_extern half(&a, &b) call_extern g(&b, &y) }",
        set(),
    ),
    "a slice that a loop reads": (
        SPLIT,
        SPLIT_BODY.replace("call_extern g(&b, &y)", "for t : i32 in 0 .. 2 { call_extern g(&b, &y) }"),
        {Part("b", "a", 4, 1)},
    ),
    "a slice where a kernel cannot read it": (
        [SPLIT[0], copy("half", 8, 4, (3, 0, 4)), compute("g", 4, 8, align=8)],
        SPLIT_BODY,
        set(),
    ),
    "a slice where a kernel can read it": (
        [SPLIT[0], copy("half", 8, 4, (2, 0, 4)), compute("g", 4, 8, align=8)],
        SPLIT_BODY,
        {Part("b", "a", 2, 1)},
    ),
    "what is put together of blocks in another order": (
        [compute("f", 8, 8), copy("turned", 8, 8, (4, 0, 4), (0, 4, 4)), compute("h", 8, 8)],
        f"{own('a')} call_extern f(&x, &a) {own('c')} call_extern turned(&a, &c) call_extern h(&c, &y)",
        set(),
    ),
    "an operand that something else is written over": (
        [
            compute("f", 8, 4),
            copy("over", 4, 8, (0, 0, 4)).replace("] } }", "] } for j : i32 in 3 .. 8 { output[j] = 7 } }"),
        ],
        f"{own('a', 4)} call_extern f(&x, &a) call_extern over(&a, &y)",
        set(),
    ),
    "an operand beside something else": (
        [
            compute("f", 8, 4),
            copy("beside", 4, 8, (0, 0, 4)).replace("] } }", "] } for j : i32 in 4 .. 8 { output[j] = 7 } }"),
        ],
        f"{own('a', 4)} call_extern f(&x, &a) call_extern beside(&a, &y)",
        {Part("a", "y", 0, 1)},
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_parts(name: str) -> None:
    kernels, body, expected = FOUND[name]
    module = program(kernels, body)
    parts = find_parts(module, HOST)
    assert set(parts) == expected
    assert_means_the_same(module, parts)


def assert_means_the_same(module: Module, parts: tuple[Part, ...]) -> Module:
    taken = take_parts(module, parts)
    verify(taken, Stage.LOWERED)
    x = np.arange(100, 108, dtype=np.int32)
    for before, after in zip(module.entries, taken.entries, strict=True):
        given = {p.name: x if p.access is Access.READ else 0 * x for p in before.buffer_parameters}
        results = [Evaluator(m).run(e.name, given) for m, e in ((module, before), (taken, after))]
        assert np.array_equal(*(list(result.values()) for result in results))
    return taken


def test_what_is_pinned_stays_by_itself() -> None:
    module = program(JOIN, JOIN_BODY)
    assert {part.name for part in find_parts(module, HOST, (Pin("b", "ram"),))} == {"a"}
    assert find_parts(module, HOST, (Pin("c", "ram"),)) == ()


def test_what_is_not_in_place_is_copied() -> None:
    kernels = [compute("f", 8, 3), join("both", 8, 3), compute("h", 11, 8)]
    module = program(
        kernels,
        f"{own('a', 3)} call_extern f(&x, &a) {own('c', 11)} call_extern both(&x, &a, &c) call_extern h(&c, &y)",
    )
    taken = assert_means_the_same(module, find_parts(module, HOST))
    (rest,) = (kernel for kernel in taken.kernels if kernel.name == "both_rest")
    assert [parameter.name for parameter in rest.parameters] == ["in0", "output"]
    assert "both" not in {kernel.name for kernel in taken.kernels}


def test_a_buffer_says_what_lies_in_it() -> None:
    module = program(JOIN, JOIN_BODY)
    taken = take_parts(module, find_parts(module, HOST))
    (allocation,) = (s for s in taken.main.body.statements if hasattr(s, "storage"))
    assert "take_parts: 'b' is a part of it, from byte 20 on" in allocation.storage.provenance


def random_program(seed: int) -> Module:
    """Blocks that are copied, put together and computed with, also in loops, some of them more than once."""
    generator = np.random.default_rng(seed)

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    kernels: list[str] = []
    sizes = {"x": 8}
    body = ""
    for number in range(between(3, 9)):
        names = list(sizes)
        source = names[between(max(0, len(names) - 4), len(names) - 1)]
        kind, name = between(0, 5), f"k{number}"
        if kind == 0:
            target, count = f"b{number}", between(2, 9)
            kernels.append(compute(name, sizes[source], count))
            call = f"call_extern {name}(&{source}, &{target})"
        elif kind in (1, 2):
            target, first = f"b{number}", between(0, sizes[source] - 1)
            count = between(1, sizes[source] - first)
            kernels.append(copy(name, sizes[source], count, (first, 0, count)))
            call = f"call_extern {name}(&{source}, &{target})"
        elif kind in (3, 4):
            sources = [source, *(names[between(0, len(names) - 1)] for _ in range(between(0, 2)))]
            target, count = f"b{number}", sum(sizes[one] for one in sources)
            kernels.append(join(name, *(sizes[one] for one in sources)))
            call = f"call_extern {name}({''.join(f'&{one}, ' for one in sources)}&{target})"
        else:  # once more
            target = names[between(0, len(names) - 1)]
            if target in (source, "x"):
                continue
            kernels.append(compute(name, sizes[source], sizes[target]))
            call = f"call_extern {name}(&{source}, &{target})"
        if target not in sizes:
            body += own(target, count)
            sizes[target] = count
        body += call if between(0, 4) else f"for t{number} : i32 in 0 .. 2 {{ {call} }} "
    last = list(sizes)[-1]
    kernels += [compute("last", sizes[last], 8), "".join(())]
    readers = list(dict.fromkeys([last, *list(sizes)[-3:]]))
    for n, one in enumerate(readers):  # all of what is left counts
        kernels.append(
            f'kernel sum{n}(input : buffer<{sizes[one]}xi32, "global"> r, output : buffer<8xi32, "global"> rw) on cpu '
            f"{{ for i : i32 in 0 .. {sizes[one]} {{ output[i % 8] = output[i % 8] % 1009 * 5 + input[i] }} }}"
        )
    body += f"call_extern last(&{last}, &y) " + " ".join(
        f"call_extern sum{n}(&{one}, &y)" for n, one in enumerate(readers)
    )
    return program([kernel for kernel in kernels if kernel], body)


def twice(module: Module) -> Module:
    """The module with its entry once more, as `again`."""
    again = replace(module.main, name="again")
    both = replace(module, entries=(module.main, again), inputs=module.inputs * 2, outputs=module.outputs * 2)
    return own_names(both)


def test_random_programs_stay_what_they_are() -> None:
    """With all parts, and with each alone; of two entries that call the same kernels each has its own."""
    num_parts = 0
    seeds = some(range(400), every=6)
    for seed in seeds:
        module = random_program(seed)
        parts = find_parts(module, HOST)
        num_parts += len(parts)
        for taken in (parts, *((part,) for part in parts)):
            assert_means_the_same(module, taken)
        both = twice(module)
        found = find_parts(both, HOST)
        shifted = [(f"again/{p.name}", f"again/{p.within}", p.step + len(calls(module.main))) for p in parts]
        assert [(p.name, p.within, p.step) for p in found[len(parts) :]] == shifted
        assert [(p.name, p.within, p.step) for p in found[: len(parts)]] == [
            (f"main/{p.name}", f"main/{p.within}", p.step) for p in parts
        ]
        for taken in (found, found[len(parts) :]):
            assert_means_the_same(both, taken)
    assert num_parts > len(seeds)
