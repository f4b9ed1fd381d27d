"""Random programs whose memory is known without a compiler: nested calls, blocks, loops, conditions, partial writes.

A program is a tree of the few steps below. It is printed as IR, and it is run here, step by step, only to note which
buffer is touched when: each time a block is entered its buffers are new ones, and two buffers may share bytes if no
two of theirs ever are in use at once, from the first touch of each to the last. The least top is then found by trying
every order. Nothing of Bytewright takes part in either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

DTYPE_BYTES = {"i8": 1, "i16": 2, "i32": 4}
SCRATCH_ALIGNMENT = 16  # what every buffer of the workspace has at least
TURNS = 2


@dataclass(frozen=True, slots=True)
class Data:
    """A buffer, by its name in the function where it stands."""

    name: str
    length: int
    dtype: str
    alignment: int = 1

    @property
    def size_bytes(self) -> int:
        return self.length * DTYPE_BYTES[self.dtype]

    def type(self, scope: str = "global") -> str:
        return f'buffer<{self.length}x{self.dtype}, "{scope}", align={self.alignment}>'


@dataclass(frozen=True, slots=True)
class Fill:
    """Writes `to`, the first elements or all, from elements of others; of itself too where it was written before."""

    to: Data
    sources: tuple[Data, ...]
    num_elements: int


@dataclass(frozen=True, slots=True)
class Block:
    """Steps with buffers of their own: in braces, in a loop of two turns, or in the branches of a condition."""

    kind: str  # "block", "loop", "if"
    scratch: tuple[Data, ...]
    steps: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """A call of an earlier kernel."""

    kernel: Kernel
    arguments: tuple[Data, ...]


Step = Fill | Block | Use


@dataclass(frozen=True, slots=True)
class Kernel:
    """Reads its parameters but the last, and writes that one whole."""

    name: str
    parameters: tuple[Data, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Program:
    """An entry of calls in a row, whose buffers are the body's scratch; the first and last are the model's."""

    kernels: tuple[Kernel, ...]
    source: Data
    result: Data
    body: Block


def _sources(steps: Sequence[Step]) -> Iterator[str]:
    """Names of what is read to make something else."""
    for step in steps:
        match step:
            case Fill(to, sources, _):
                yield from (source.name for source in sources if source.name != to.name)
            case Use(_, arguments):
                yield from (argument.name for argument in arguments)
            case Block(_, _, inner, otherwise):
                yield from _sources((*inner, *otherwise))


class _Maker:
    def __init__(self, random: Random, num_buffers: int) -> None:
        self.random, self.left = random, num_buffers
        self.numbers = count()
        self.result = Data("y", 1, "i8")  # of the kernel that is being made

    def data(self, stem: str) -> Data:
        random = self.random
        dtype = random.choice(("i8", "i8", "i16", "i32"))
        return Data(
            f"{stem}{next(self.numbers)}",
            random.choice((1, 3, 8, 17, 40)),
            dtype,
            max(DTYPE_BYTES[dtype], random.choice((1, 1, 8, 32))),
        )

    def scratch(self) -> tuple[Data, ...]:
        number = min(self.random.choice((0, 1, 1, 2)), self.left)
        self.left -= number
        return tuple(self.data("s") for _ in range(number))

    def body(self, known: list[Data], open_: list[Data], kernels: list[Kernel], depth: int) -> list[Step]:
        """Steps that may read what is known, and must write what is open, which is known afterwards."""
        random, steps = self.random, list[Step]()
        todo = [("write", data) for data in open_]
        todo += [("other", None)] * random.choice((0, 1, 1, 2))
        random.shuffle(todo)
        for kind, data in todo:
            if kind == "write" and data is not None:
                steps.append(self.write(data, known, kernels))
                known.append(data)
            elif depth:
                steps.append(self.block(known, kernels, depth - 1))
            else:
                steps.append(self.update(known))
        return steps

    def write(self, to: Data, known: list[Data], kernels: list[Kernel]) -> Step:
        random = self.random
        fitting = [
            (kernel, arguments)
            for kernel in kernels
            if (arguments := self.arguments(kernel, to, known)) is not None
        ]
        if fitting and random.random() < 0.7:
            return Use(*random.choice(fitting))
        sources = random.sample(known, min(len(known), random.choice((1, 1, 2))))
        return Fill(to, tuple(sources), to.length)

    def arguments(self, kernel: Kernel, to: Data, known: list[Data]) -> tuple[Data, ...] | None:
        *reads, last = kernel.parameters
        chosen: list[Data] = []
        for wanted in reads:
            options = [d for d in known if (d.length, d.dtype) == (wanted.length, wanted.dtype)]
            if not options:
                return None
            chosen.append(self.random.choice(options))
        return (*chosen, to) if (to.length, to.dtype) == (last.length, last.dtype) else None

    def update(self, known: list[Data]) -> Step:
        """A partial write of what is known, and may be written."""
        own = [data for data in known if data.name.startswith("s")]
        if not own:
            return Block("block", (), ())
        to = self.random.choice(own)
        return Fill(to, (to, self.random.choice(known)), self.random.randint(1, to.length))

    def block(self, known: list[Data], kernels: list[Kernel], depth: int) -> Block:
        kind = self.random.choice(("block", "loop", "loop", "if"))
        scratch = self.scratch()
        inside = [*known]
        own = [data for data in known if data.name.startswith("s")]
        # What nobody reads is dropped when a program is compiled, so each buffer is read in the end.
        read = [Fill(self.random.choice([*own, self.result]), (data,), 1) for data in scratch]
        if kind == "if":
            then = self.body([*known], [], kernels, 0)
            steps = (*self.written(scratch, inside, kernels), *then, *read)
            return Block(kind, scratch, steps, (self.update(known),))
        steps = self.body(inside, list(scratch), kernels, depth)
        return Block(kind, scratch, (*steps, self.update([*inside]), *read))

    def written(self, scratch: tuple[Data, ...], known: list[Data], kernels: list[Kernel]) -> list[Step]:
        steps = list[Step]()
        for data in scratch:
            steps.append(self.write(data, known, kernels))
            known.append(data)
        return steps


def random_program(seed: int, num_buffers: int = 6) -> Program:
    """A program with about so many buffers in the workspace, often fewer."""
    random = Random(seed)
    maker = _Maker(random, num_buffers)
    shape = maker.data("p")
    kernels: list[Kernel] = []
    for number in range(random.choice((1, 2, 3))):
        x, y = (Data(name, shape.length, shape.dtype, 1) for name in ("x", "y"))
        maker.result = y
        scratch = maker.scratch()
        known = [x]
        steps = maker.body(known, list(scratch), kernels, 2)
        last = Fill(
            y, tuple(dict.fromkeys((x, *scratch))) if random.random() < 0.4 else (*scratch, x)[:1], y.length
        )
        early = [Fill(y, (x,), y.length)] if random.random() < 0.3 else []
        kernels.append(Kernel(f"m_k{number}", (x, y), Block("block", scratch, (*early, *steps, last))))
    source, result = (Data(name, shape.length, shape.dtype, 16) for name in ("source", "result"))
    tensors = [
        Data(f"t{i}", shape.length, shape.dtype, shape.alignment) for i in range(random.choice((0, 1, 2)))
    ]
    steps = list[Step]()
    before = [source]
    for tensor in (*tensors, result):
        steps.append(Use(random.choice(kernels), (random.choice(before), tensor)))
        before.append(tensor)
    return Program(tuple(kernels), source, result, Block("block", tuple(tensors), tuple(steps)))


# Text


def ir_text(program: Program) -> str:
    """The program as a module."""
    source, result = program.source, program.result
    lines = ["module m"]
    for word, data in (("input", source), ("output", result)):
        lines.append(f"{word} %{data.name} : tensor<{data.length}x{data.dtype}>")
    for kernel in program.kernels:
        *reads, last = kernel.parameters
        parameters = ", ".join(
            [
                *(f"{p.name} : {p.type()} r activation" for p in reads),
                f"{last.name} : {last.type()} w activation",
            ]
        )
        lines.append(f"kernel {kernel.name}({parameters}) on cpu {{")
        lines += [*_block_lines(kernel.body, "global", count()), "}"]
    lines.append(
        f"entry main({source.name} : {source.type()} r activation, {result.name} : {result.type()} w activation) "
        "on cpu {"
    )
    return "\n".join([*lines, *_block_lines(program.body, "global.workspace", count()), "}", ""])


def _block_lines(block: Block, scope: str, numbers: Iterator[int]) -> Iterator[str]:
    for data in block.scratch:
        yield f"allocate {data.name} : {data.type(scope)}"
    yield from _step_lines(block.steps, scope, numbers)


def _step_lines(steps: tuple[Step, ...], scope: str, numbers: Iterator[int]) -> Iterator[str]:
    for step in steps:
        match step:
            case Fill(to, sources, num_elements):
                i = f"v{next(numbers)}"
                values = [f"i32({s.name}[({i} * 5 + {k}) % {s.length}])" for k, s in enumerate(sources)]
                yield f"for {i} : i32 in 0 .. {num_elements} {{"
                yield f"{to.name}[{i}] = {to.dtype}(({' + '.join(values)} + {i}) % 100)"
                yield "}"
            case Use(kernel, arguments):
                yield f"call_extern {kernel.name}({', '.join(f'&{a.name}' for a in arguments)})"
            case Block(kind, _, _, otherwise):
                n = next(numbers)
                heads = {"block": "{", "loop": f"for n{n} : i32 in 0 .. {TURNS} {{"}
                if kind == "if":
                    yield f"for n{n} : i32 in 0 .. {TURNS} {{"
                    yield f"if n{n} < 1 {{"
                else:
                    yield heads[kind]
                yield from _block_lines(step, scope, numbers)
                if kind == "if":
                    yield "} else {"
                    yield from _step_lines(otherwise, scope, numbers)
                    yield "}"
                yield "}"


# Time


@dataclass(slots=True)
class _Life:
    first: int
    last: int


@dataclass(slots=True)
class _Watcher:
    """Runs a program, with each loop turned twice and both branches of each condition taken."""

    now: int = 0
    lives: dict[tuple[object, ...], list[_Life]] = field(default_factory=dict)
    data: dict[tuple[object, ...], Data] = field(default_factory=dict)

    def enter(self, block: Block, path: tuple[object, ...], known: dict[str, _Life]) -> None:
        inside = dict(known)
        for data in block.scratch:
            place = (*path, data.name)
            self.data[place] = data
            inside[data.name] = _Life(-1, -1)
            self.lives.setdefault(place, []).append(inside[data.name])
        self.run(block.steps, path, inside)

    def run(self, steps: tuple[Step, ...], path: tuple[object, ...], known: dict[str, _Life]) -> None:
        for index, step in enumerate(steps):
            here = (*path, index)
            match step:
                case Fill(to, sources, _):
                    for data in (to, *sources):
                        self.touch(known[data.name])
                    self.now += 1
                case Use(kernel, arguments):
                    passed = {
                        p.name: known[a.name] for p, a in zip(kernel.parameters, arguments, strict=True)
                    }
                    self.enter(kernel.body, (*here, "call"), passed)
                case Block(kind, _, _, otherwise):
                    for _ in range(1 if kind == "block" else TURNS):
                        self.enter(step, here, known)
                        self.run(otherwise, (*here, "else"), known)

    def touch(self, life: _Life) -> None:
        life.first = self.now if life.first < 0 else life.first
        life.last = self.now


def least_workspace(
    program: Program, io_in_workspace: bool, num_planned: int | None = None, most_buffers: int = 7
) -> int | None:
    """Bytes of the smallest workspace; None if there are more buffers than all orders of which can be tried.

    None also if not as many are planned: buffers that read nothing but each other have been dropped then.
    """
    watcher = _Watcher()
    known = {data.name: _Life(-1, -1) for data in (program.source, program.result)}
    known["source"] = _Life(0, 0)
    watcher.now = 1
    watcher.enter(program.body, (), known)
    known["result"].last = watcher.now
    lives = {place: own for place, own in watcher.lives.items() if any(life.first >= 0 for life in own)}
    sizes = {place: watcher.data[place] for place in lives}
    if io_in_workspace:
        for data in (program.source, program.result):
            lives[data.name,], sizes[data.name,] = [known[data.name]], data
    places = list(lives)
    if len(places) > most_buffers or num_planned not in (None, len(places)):
        return None
    together = {
        (a, b): any(
            i.first >= 0 and j.first >= 0 and i.first <= j.last and j.first <= i.last
            for i in lives[places[a]]
            for j in lives[places[b]]
        )
        for a in range(len(places))
        for b in range(len(places))
    }
    boxes = [(sizes[p].size_bytes, max(sizes[p].alignment, _floor(sizes[p]))) for p in places]
    return _least_top(boxes, lambda a, b: together[a, b])


def _floor(data: Data) -> int:
    """Scratch is aligned to 16 when it is given to a kernel; tensors of the entry are as they say."""
    return SCRATCH_ALIGNMENT if data.name.startswith("s") and data.name != "source" else 1


def _least_top(boxes: list[tuple[int, int]], together: Callable[[int, int], bool]) -> int:
    """The least top of all: some order exists in which each box is put as low as those before it let it."""
    best = sum(size + alignment for size, alignment in boxes)

    def place(placed: dict[int, int], top: int) -> None:
        nonlocal best
        if top >= best:
            return
        if len(placed) == len(boxes):
            best = top
            return
        lowest = max(placed.values(), default=0)  # orders by offset suffice
        for box in range(len(boxes)):
            if box in placed:
                continue
            size, alignment = boxes[box]
            offset = 0
            for other, begin in sorted(placed.items(), key=lambda item: item[1]):
                if together(box, other) and begin < offset + size and offset < begin + boxes[other][0]:
                    offset = -(-(begin + boxes[other][0]) // alignment) * alignment
            if offset >= lowest:
                place({**placed, box: offset}, max(top, offset + size))

    place({}, 0)
    return best
