"""Random programs of kernels by hand that make rows, for the passes that let them run row by row.

A step reads one or two tensors through windows of rows with strides and dilations, or reads all of one, or one with
its axes exchanged, and some of it is what no segment may do: tensors made twice, parts of tensors, rows that several
calls make, branches and loops in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bytewright import ir
from bytewright.ir.module import Module
from support.evaluate.evaluate import Evaluator
from support.ir_program import read_module

CHANNELS = 3


@dataclass
class RowText:
    """A program under construction: its kernels, and the statements of the entry.

    Attributes:
        rows: Of each tensor, by name.
    """

    kernels: list[str] = field(default_factory=list[str])
    statements: list[str] = field(default_factory=list[str])
    rows: dict[str, int] = field(default_factory=dict[str, int])
    parameters: list[str] = field(default_factory=list[str])

    def parameter(self, name: str, rows: int, access: str) -> None:
        """A tensor that the entry is given."""
        self.parameters.append(f"{name} : buffer<1x{rows}x{CHANNELS}xi32> {access}")
        self.rows[name] = rows

    def allocate(self, name: str, rows: int) -> None:
        """A tensor of its own."""
        self.statements.append(f"allocate {name} : buffer<1x{rows}x{CHANNELS}xi32>")
        self.rows[name] = rows

    def kernel(self, sources: Sequence[str], result: str, reads: Sequence[str]) -> str:
        """A kernel whose rows are sums of what `reads` say of `in0`, `in1`, ...: row `y`, channel `c`."""
        name = f"k{len(self.kernels)}"
        given = "".join(
            f"in{i} : buffer<1x{self.rows[source]}x{CHANNELS}xi32> r, " for i, source in enumerate(sources)
        )
        self.kernels.append(
            f"kernel {name}({given}output : buffer<1x{self.rows[result]}x{CHANNELS}xi32> w, row_begin : i32, "
            "row_end : i32) on cpu { for y : i32 in row_begin .. row_end { allocate sum : buffer<i32> "
            f"for c : i32 in 0 .. {CHANNELS} {{ sum[] = c + {len(self.kernels)} {' '.join(reads)} "
            "output[0, y, c] = sum[] } } }"
        )
        return name

    def call(
        self, name: str, sources: Sequence[str], result: str, rows: tuple[int, int] | None = None
    ) -> str:
        """The call of a kernel: of all rows, or of some."""
        begin, end = rows or (0, self.rows[result])
        return f"call_extern {name}({''.join(f'&{source}, ' for source in sources)}&{result}, {begin}, {end})"

    def window(self, source: str, operand: int, stride: int, taps: int, dilation: int, first: int) -> str:
        """That a row needs a window: rows `stride * y + first` and so on, as far as they exist."""
        k, r = f"k{operand}", f"r{operand}"
        return (
            f"for {k} : i32 in 0 .. {taps} {{ let {r} : i32 = y * {stride} + {k} * {dilation} + {first} "
            f"if 0 <= {r} && {r} < {self.rows[source]} {{ {_add(f'in{operand}[0, {r}, c]')} }} }}"
        )

    def risen(self, source: str, operand: int, divisor: int, taps: int, first: int, *, kept: bool) -> str:
        """That `divisor` rows need the same window; where it is kept inside, the border stands for what is beyond."""
        k, r, last = f"k{operand}", f"r{operand}", self.rows[source] - 1
        if kept:
            row, inside = f"min(max(y + {k} * {divisor} + {first}, 0) / {divisor}, {last})", ""
        else:
            row, inside = f"(y + {first + 3}) / {divisor} + {k} - 1", f"if 0 <= {r} && {r} <= {last} "
        added = _add(f"in{operand}[0, {r}, c]")
        added = f"{{ {added} }}" if inside else added
        return f"for {k} : i32 in 0 .. {taps} {{ let {r} : i32 = {row} {inside}{added} }}"

    def whole(self, source: str, operand: int) -> str:
        """That every row needs all of it."""
        return (
            f"for w{operand} : i32 in 0 .. {self.rows[source]} {{ {_add(f'in{operand}[0, w{operand}, c]')} }}"
        )

    @property
    def text(self) -> str:
        """The module."""
        body = "\n  ".join(self.statements)
        return (
            "module m\n"
            + "\n".join(self.kernels)
            + f"\nentry main({', '.join(self.parameters)}) on cpu {{\n  {body}\n}}\n"
        )

    @property
    def module(self) -> Module:
        """The same, read."""
        return read_module(self.text)


def _add(term: str) -> str:
    return f"sum[] = (sum[] * 3 + {term}) % 1009"


def row_program(seed: int, num_steps: int = 6, *, odd: bool = True, rises: bool = False) -> RowText:
    """A program drawn from a seed; without `odd` things, every step reads windows of rows.

    Where it `rises`, some steps make two or three rows where they read one.
    """
    generator = np.random.default_rng(seed)

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    def chance(probability: float) -> bool:
        return bool(generator.random() < probability)

    program = RowText()
    program.parameter("x", between(1, 14), "r")
    tensors = ["x"]
    calls: list[str] = []
    for number in range(num_steps):
        last = number == num_steps - 1
        sources = [tensors[-1] if chance(0.75) else tensors[between(0, len(tensors) - 1)]]
        if chance(0.4):
            sources.append(tensors[between(0, len(tensors) - 1)])
        stride = 1 if chance(0.7) else between(2, 3)
        rising = between(2, 3) if rises and chance(0.4) and program.rows[sources[0]] < 15 else 1
        stride = 1 if rising > 1 else stride
        rows = max(1, -(-program.rows[sources[0]] // stride) + (between(-1, 1) if chance(0.3) else 0))
        rows = max(1, rows * rising + between(-1, 1)) if rising > 1 else rows
        name = f"t{number}"
        if not last and odd and chance(0.06) and len(tensors) > 1:  # once more, over what others read before
            name = tensors[between(1, len(tensors) - 1)]
            sources = [source for source in sources if source != name] or ["x"]
        elif last or chance(0.1):
            program.parameter(name, rows, "w")
        else:
            program.allocate(name, rows)
        reads: list[str] = []
        for operand, source in enumerate(sources):
            if odd and chance(0.1):
                reads.append(program.whole(source, operand))
            else:
                if rising > 1 and (operand == 0 or chance(0.4)):
                    reads.append(
                        program.risen(
                            source, operand, rising, between(1, 3), between(-3, 2), kept=chance(0.5)
                        )
                    )
                    continue
                pace = stride if operand == 0 or chance(0.7) else 1
                dilation, taps = between(1, 2), between(1, 3)
                reads.append(program.window(source, operand, pace, taps, dilation, between(-2, 1)))
        kernel = program.kernel(sources, name, reads)
        calls = [program.call(kernel, sources, name)]
        if odd and chance(0.06) and program.rows[name] > 1:
            cut = between(1, program.rows[name] - 1)
            calls = [
                program.call(kernel, sources, name, (0, cut)),
                program.call(kernel, sources, name, (cut, program.rows[name])),
            ]
        elif odd and chance(0.05):
            calls = [f"for again{number} : i32 in 0 .. 2 {{ {calls[0]} }}"]
        program.statements += calls
        tensors.append(name)
    return program


def results(module: ir.Module, seed: int = 0) -> list[bytes]:
    """What the entry makes of random inputs, in an evaluator that refuses to read what was not written."""
    generator = np.random.default_rng(seed)
    inputs = {
        p.name: generator.integers(0, 1000, [ir.upper_bound(e) for e in p.buffer.shape]).astype(np.int32)
        for p in module.main.buffer_parameters
        if p.access is ir.Access.READ
    }
    return [array.tobytes() for array in Evaluator(module).run("main", inputs).values()]
