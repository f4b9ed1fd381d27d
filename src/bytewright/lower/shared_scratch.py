"""One scratch for all calls of an NPU, with what the CPU computes between them at its place there.

Vela gives all calls of a file one scratch, in which each tensor has its place. Where the decoded accesses prove that
what lies there stays as long as it is read, the calls share a block, and the CPU writes where the NPU reads: nothing is
copied between them, and the block is as large as the largest call needs. Else each call has a block for its own time.

That it never takes more: all that the CPU computes between the first call and the last is in the block, so there is
never more than the largest call needs, beside what the application gets.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bytewright import ir
from bytewright.lower.group import Group
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.ethos_u import NUM_CONSTANT_OPERANDS, SCRATCH, EthosU


@dataclass(frozen=True, slots=True)
class SharedScratch:
    """What the calls share.

    Attributes:
        size_bytes: As much as the call needs that needs most.
        offsets: Where in it tensors lie that stay there from the one that computes them to those that read them.
    """

    size_bytes: int
    offsets: Mapping[str, int]


def share_scratch(
    groups: Sequence[Group],
    types: Mapping[str, ir.TensorType],
    constants: Mapping[str, ir.Constant],
    wanted: Collection[str],
    root: Callable[[str], str],
) -> SharedScratch | None:
    """What the calls of a graph share, if there are several and it is proved that they can.

    Args:
        groups: In the order in which they run.
        types: Of all values.
        constants: Of the module.
        wanted: Tensors that the application has; they are no part of a block.
        root: The tensor whose memory a name denotes.
    """
    return _Sharing(groups, types, constants, wanted, root).found()


@dataclass(frozen=True, slots=True)
class _Lying:
    """A tensor in the scratch: its bytes, and the groups that write it and read it last."""

    first: int
    end: int
    written: int
    read: int

    def meets(self, first: int, end: int) -> bool:
        return self.first < end and first < self.end


@dataclass(frozen=True)
class _Sharing:
    groups: Sequence[Group]
    types: Mapping[str, ir.TensorType]
    constants: Mapping[str, ir.Constant]
    wanted: Collection[str]
    root: Callable[[str], str]

    @cached_property
    def calls(self) -> dict[int, tuple[ir.Node, EthosU]]:
        """The calls, by the numbers of their groups."""
        firsts = [(number, group.nodes[0]) for number, group in enumerate(self.groups)]
        return {n: (node, node.operation) for n, node in firsts if isinstance(node.operation, EthosU)}

    def found(self) -> SharedScratch | None:
        if len(self.calls) < 2 or any(operation.is_separate for _, operation in self.calls.values()):
            return None
        if any(isinstance(group.nodes[0].operation, CondIf | Loop) for group in self.groups):
            return None
        offsets = self._offsets()
        if offsets is None or not self._has_all_between(offsets):
            return None
        lying = [self._lying(name, offset) for name, offset in offsets.items()]
        if not self._are_apart(lying) or not all(
            self._keeps(number, lying, offsets) for number in self.calls
        ):
            return None
        size_bytes = max(operation.needed_bytes(SCRATCH) for _, operation in self.calls.values())
        return SharedScratch(size_bytes, offsets)

    @cached_property
    def _written(self) -> dict[str, int]:
        """The group that computes each tensor."""
        results = {number: node.outputs for number, (node, _) in self.calls.items()}
        return {
            self.root(value.name): number
            for number, group in enumerate(self.groups)
            for value in results.get(number, group.outputs)
        }

    def _inputs(self, number: int) -> Iterator[tuple[str, int]]:
        node, operation = self.calls[number]
        given = (self.root(name) for name in node.inputs[NUM_CONSTANT_OPERANDS:])
        return zip(given, operation.input_offsets, strict=True)

    def _offsets(self) -> dict[str, int] | None:
        """Where tensors lie; None if one is to lie at two places."""
        offsets: dict[str, int] = {}
        for number, (node, operation) in self.calls.items():
            results = zip((value.name for value in node.outputs), operation.output_offsets, strict=True)
            for name, offset in (*results, *self._inputs(number)):
                stays = name not in self.wanted and self._written.get(name, -1) >= min(self.calls)
                if stays and offsets.setdefault(name, offset) != offset:
                    return None
        return offsets

    def _has_all_between(self, offsets: Mapping[str, int]) -> bool:
        """Whether all that is computed between the first call and the last is in the block, or the application's."""
        first, last = min(self.calls), max(self.calls)
        between = [value.name for group in self.groups[first:last] for value in group.outputs]
        return all(self.root(name) in offsets or name in self.wanted for name in between)

    def _lying(self, name: str, offset: int) -> _Lying:
        written = self._written[name]
        reading = [
            number
            for number, group in enumerate(self.groups)
            if any(self.root(operand) == name for node in group.nodes for operand in node.inputs)
        ]
        return _Lying(offset, offset + self.types[name].num_elements, written, max(reading, default=written))

    def _keeps(self, number: int, lying: Sequence[_Lying], offsets: Mapping[str, int]) -> bool:
        """Whether a call, and the copies before it, leave what is read by later groups, or by the call."""
        from bytewright.ethos_u.accesses import accesses
        from bytewright.ethos_u.decode import decode
        from bytewright.ethos_u.payload import parse_payload

        node, _ = self.calls[number]
        copied = [
            (at, at + self.types[name].num_elements)
            for name, at in self._inputs(number)
            if name not in offsets
        ]
        payload = parse_payload(self.constants[node.inputs[0]].data.content)
        found = accesses(decode(payload.code, payload.accelerator))
        changed = [(each.first, each.last + 1) for each in found if each.writes and each.region == SCRATCH]
        return not any(
            (each.written < number <= each.read and any(each.meets(*part) for part in copied))
            or (each.written < number < each.read and any(each.meets(*part) for part in changed))
            for each in lying
        )

    def _are_apart(self, lying: Sequence[_Lying]) -> bool:
        """Whether no tensor is written over one that is still read; a call may write over what it alone still reads."""
        for one in lying:
            last = one.read - 1 if one.read in self.calls else one.read
            while_read = [each for each in lying if one.written <= each.written <= max(last, one.written)]
            if any(each is not one and each.meets(one.first, one.end) for each in while_read):
                return False
        return True
