"""Changes of one thing beside sizes, from what changes little to what changes how the model is called.

An option that kernels are made with, or the model is read with, costs another compile to try. Where there are other
ways out it is tried only if what it is likely to spare is as much as what is missing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.compiler.remedy.remedy import Remedy
from bytewright.compiler.remedy.saved import problem_of
from bytewright.compiler.shortfall import largest_shortfall
from bytewright.compiler.trial import Trial
from bytewright.options import KernelCode, Optimize, StreamAxis
from bytewright.plan.problem import Buffer
from bytewright.target.model import Role

_TABLES = 4  # of constants, at most the so manieth part is what kernels have beside the model's own
_STREAM_AXES = (1, 2)  # where networks have time


@dataclass(frozen=True, slots=True)
class SingleChanges:
    """What may help a module that does not fit.

    Attributes:
        failed: What came of it; None if it was refused for another reason, which none of these changes mends.
        is_program: Whether its kernels are what somebody wrote.
    """

    module: ir.Module
    failed: Trial | None
    is_program: bool

    @property
    def roles(self) -> tuple[Role, ...]:
        """Those whose pools are too small."""
        return () if self.failed is None else self.failed.failing_roles

    def kernels(self, found: Sequence[Remedy]) -> Iterator[Remedy]:
        """Kernels that need less to work in, or of tables; where something is found, if they are likely to do."""
        if self.failed is None or self.is_program or not self.roles:
            return
        asked = self.failed.conditions.options
        if (
            self.roles == (Role.PARAMETERS,)
            and asked.optimize is not Optimize.SIZE
            and self._tables_suffice()
        ):
            yield Remedy(optimize=Optimize.SIZE)
        if asked.optimize is not Optimize.SIZE and self._states_suffice():
            yield Remedy(optimize=Optimize.SIZE)
        has_instructions = any(kernel.template for kernel in self.module.kernels)
        is_enough = Role.PARAMETERS not in self.roles or self._tables_suffice()
        if has_instructions and (not found or (is_enough and self._suffices(self._is_kept))):
            yield Remedy(kernel_code=KernelCode.PORTABLE)

    def io(self, others: tuple[ir.Io, ...]) -> Iterator[Remedy]:
        """Inputs and outputs elsewhere."""
        names = ir.border_ports(self.module)
        if Role.PARAMETERS not in self.roles and self._suffices(lambda buffer: buffer.name not in names):
            yield from (Remedy(io=io) for io in others)

    def batch(self) -> Iterator[Remedy]:
        """Fewer samples at a time: as many as there should be room for, then fewer."""
        if self.failed is None or self.roles != (Role.WORKSPACE,):
            return
        most, whole = (
            self.failed.conditions.options.batch_max or 1,
            largest_shortfall(self.failed.stored.workspace),
        )
        if most > 1 and whole is not None:
            fair = most * whole.capacity_bytes // whole.needed_bytes
            numbers = (min(fair + 1, most - 1), fair, fair - 1, fair // 2, 1)
            yield from (Remedy(batch_max=number) for number in dict.fromkeys(numbers) if number > 0)

    def stream(self) -> Iterator[Remedy]:
        """Frames that are new in place of a window of them, along an axis that may count them."""
        if self.failed is None or self.is_program or self.roles != (Role.WORKSPACE,):
            return
        options, inputs = self.failed.conditions.options, self.module.inputs
        if (
            options.stream
            or options.batch_max is not None
            or len(self.module.entries) > 1
            or len(inputs) != 1
        ):
            return
        shape = inputs[0].type.shape
        for axis in _STREAM_AXES:
            if axis < len(shape) and shape[axis] != 1:
                yield Remedy(stream=(StreamAxis(axis),))

    def _is_kept(self, buffer: Buffer) -> bool:
        """Whether it carries something from one step to another; the rest is what kernels work in."""
        assert self.failed is not None
        touched = self.failed.stored.timeline.steps_touching().get(buffer.name)
        return touched is None or touched[0] < touched[1] or buffer.name in ir.border_ports(self.module)

    def _tables_suffice(self) -> bool:
        whole = None if self.failed is None else largest_shortfall(self.failed.stored.parameters)
        return whole is not None and whole.missing_bytes * _TABLES <= whole.needed_bytes

    def _states_suffice(self) -> bool:
        """Whether states have as many bytes as are missing: some layers can keep less, and compute more for it."""
        whole = None if self.failed is None else largest_shortfall(self.failed.stored.workspace)
        kept_bytes = sum(map(ir.size_bytes, ir.state_buffers(self.module)))
        return Role.WORKSPACE in self.roles and whole is not None and whole.missing_bytes <= kept_bytes

    def _suffices(self, is_kept: Callable[[Buffer], bool]) -> bool:
        """Whether a workspace without some of its buffers would have enough bytes."""
        if self.failed is None or Role.WORKSPACE not in self.roles:
            return self.failed is not None
        problem = problem_of(self.failed, Role.WORKSPACE)
        buffers = tuple(filter(is_kept, problem.buffers))
        names = {buffer.name for buffer in buffers}
        contracts = tuple(c for c in problem.contracts if {c.first, c.second} <= names)
        return largest_shortfall(replace(problem, buffers=buffers, contracts=contracts)) is None
