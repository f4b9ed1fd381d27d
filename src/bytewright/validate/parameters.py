"""The parameters of a bundle beside those that its model has: outputs alone do not find one wrong weight.

The model's tensors are packed anew, for the target and with the options of the bundle, and every constant that its
files hold is compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bytewright import __version__
from bytewright.compiler.pipeline import plan_model
from bytewright.diagnostics import compile_error
from bytewright.execute.description import Bundle
from bytewright.inspect.check_files import parameter_files
from bytewright.options import options_of_text
from bytewright.record.buffers import BufferRole, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class WrongParameter:
    """A constant in a file of the bundle that is not the model's.

    Attributes:
        path: Of the file.
        buffer: The constant.
        tensor: Of the model's file; None for what is made of several, such as multipliers.
        operators: Of the model, whose kernels read it.
        num_wrong_bytes: How many bytes are others.
        first: The offset of the first of them in the pool.
    """

    path: str
    buffer: str
    tensor: str | None
    operators: tuple[str, ...]
    num_wrong_bytes: int
    first: int

    @property
    def text(self) -> str:
        """What is wrong, for people."""
        of = f"tensor '{self.tensor}'" if self.tensor is not None else "the model's"
        operators = ", ".join(self.operators)
        return (
            f"'{self.buffer}' of {operators} is not what {of} becomes: {self.num_wrong_bytes} B differ in {self.path}, "
            f"the first at offset {self.first}"
        )


@dataclass(frozen=True, slots=True)
class ParameterVerdict:
    """What comparing the parameters showed.

    Attributes:
        num_buffers: Constants that were compared,
        num_bytes: and their bytes.
        wrong: Those that are others.
    """

    num_buffers: int
    num_bytes: int
    wrong: tuple[WrongParameter, ...]


def check_parameters(bundle: Bundle, model: Path) -> ParameterVerdict:
    """Compares the parameters of a bundle with those of its model.

    Args:
        bundle: A bundle.
        model: The file that it was compiled from; files that options name are beside it.

    Raises:
        CompileError: BW402 where the bundle was compiled by another version, or has other constants; and all that
            compiling does.
    """
    plan = bundle.plan
    if plan.build.bytewright != __version__:
        raise compile_error(
            "BW402",
            f"the bundle was compiled by Bytewright {plan.build.bytewright}, whose packed weights {__version__} cannot "
            "compare",
            help="compile the model again",
        )
    options = options_of_text(plan.options, model.parent)
    planned = plan_model(model, plan.hardware, options)
    wanted = {c.buffer.name: c.data.content for c in planned.module.constant_buffers}
    own = plan.buffers_of(BufferRole.PARAMETER)
    sizes = {buffer.name: buffer.size_bytes for buffer in own}
    if sizes != {name: len(content) for name, content in wanted.items()}:
        raise compile_error(
            "BW402",
            f"the bundle's {len(sizes)} constants are not those that '{model.name}' becomes",
            help="compile the model again",
        )
    wrong = tuple(_wrong(bundle, wanted))
    return ParameterVerdict(len(own), sum(sizes.values()), wrong)


def _wrong(bundle: Bundle, wanted: Mapping[str, bytes]) -> Iterator[WrongParameter]:
    plan = bundle.plan
    for pool in plan.used_pools(Role.PARAMETERS):
        for path, content in parameter_files(bundle.directory, plan, bundle.names, pool):
            if content is None or len(content) != pool.used_bytes:
                raise compile_error(
                    "BW402",
                    f"{path} does not hold the {pool.used_bytes} B of pool '{pool.name}'",
                    help="compile the model again",
                )
            for buffer in plan.buffers_in(pool.name):
                yield from _differences(plan, path, buffer, content, wanted[buffer.name])


def _differences(
    plan: Plan, path: str, buffer: PlannedBuffer, content: bytes, wanted: bytes
) -> Iterator[WrongParameter]:
    offset = buffer.place.offset or 0
    own = np.frombuffer(content[offset : offset + len(wanted)], np.uint8)
    (wrong,) = np.nonzero(own != np.frombuffer(wanted, np.uint8))
    if wrong.size:
        operators = [name for step in plan.steps if buffer.name in step.reads for name in step.operators]
        yield WrongParameter(
            path,
            buffer.name,
            buffer.tensor,
            tuple(dict.fromkeys(operators)),
            int(wrong.size),
            offset + int(wrong[0]),
        )
