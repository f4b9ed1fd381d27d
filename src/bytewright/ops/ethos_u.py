"""A call of an Ethos-U: what its stream of commands computes of its inputs.

The stream, checked and with every access known, is an operand, as are the constants that it reads. Where the inputs and
outputs lie for the NPU is part of the operator: at fixed offsets of the block that it works in, or, with separate
regions, of two blocks of their own.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.checks import require

CONSTANTS, SCRATCH, FAST_SCRATCH, INPUTS, OUTPUTS = range(5)
"""The regions of a stream, by the numbers of their base pointers."""
NUM_CONSTANT_OPERANDS = 2


@dataclass(frozen=True, slots=True)
class EthosU(ir.Operation):
    """Operands: the stream, its constants, then the inputs, i8; results: i8.

    Attributes:
        accelerator: What the stream was made for, `ethos-u55-128`.
        region_bytes: Of the regions from scratch on, the bytes that are needed; 0 where one is not used.
        input_offsets: Where the inputs lie, in the scratch or in the region of inputs.
        output_offsets: Where the results lie, in the scratch or in the region of outputs.
        shapes: Of the results.
    """

    name: ClassVar[str] = "ethos_u"
    operand_names: ClassVar[tuple[str, ...]] = ("commands", "constants")
    accelerator: str
    region_bytes: tuple[int, ...]
    input_offsets: tuple[int, ...]
    output_offsets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def isa(self) -> str:
        """The accelerator."""
        return self.accelerator

    @property
    def is_separate(self) -> bool:
        """Whether inputs and outputs are regions of their own."""
        return bool(self.needed_bytes(INPUTS) or self.needed_bytes(OUTPUTS))

    @property
    def input_region(self) -> int:
        """The region that the inputs lie in."""
        return INPUTS if self.is_separate else SCRATCH

    @property
    def output_region(self) -> int:
        """The region that the results lie in."""
        return OUTPUTS if self.is_separate else SCRATCH

    def needed_bytes(self, region: int) -> int:
        """Bytes of a region from scratch on."""
        return self.region_bytes[region - SCRATCH] if region <= len(self.region_bytes) else 0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The results, of the shapes that are stated."""
        require(
            len(inputs) == NUM_CONSTANT_OPERANDS + len(self.input_offsets),
            f"{len(inputs)} operands for a stream, its constants and {len(self.input_offsets)} inputs",
        )
        require(bool(self.shapes), "no result")
        require(len(self.shapes) == len(self.output_offsets), "results and their offsets differ in number")
        require(len(self.region_bytes) == OUTPUTS, f"{len(self.region_bytes)} sizes of {OUTPUTS} regions")
        for operand, dtype in zip(inputs, (ir.DType.U8,) * 2 + (ir.DType.I8,) * len(inputs), strict=False):
            require(operand.dtype is dtype, f"an operand is {operand.dtype.value}, not {dtype.value}")
        results = tuple(ir.TensorType(shape, ir.DType.I8) for shape in self.shapes)
        lying = (
            *(
                (offset, type_, self.input_region)
                for offset, type_ in zip(self.input_offsets, inputs[2:], strict=True)
            ),
            *(
                (offset, type_, self.output_region)
                for offset, type_ in zip(self.output_offsets, results, strict=True)
            ),
        )
        for offset, type_, region in lying:
            require(all(isinstance(extent, int) for extent in type_.shape), "an extent is open")
            end, size = offset + type_.num_elements, self.needed_bytes(region)
            require(
                offset >= 0 and end <= size, f"bytes {offset} to {end} lie beyond region {region} of {size}"
            )
        return results

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """The functional model of the NPU, exact."""
        from bytewright.ethos_u.decode import decode
        from bytewright.ethos_u.execute import execute
        from bytewright.ethos_u.payload import parse_payload

        payload = parse_payload(inputs[0].tobytes())
        regions = {
            region: np.zeros(self.needed_bytes(region), np.uint8) for region in range(SCRATCH, OUTPUTS + 1)
        }
        regions[CONSTANTS] = inputs[1].reshape(-1).view(np.uint8).copy()
        for offset, value in zip(self.input_offsets, inputs[NUM_CONSTANT_OPERANDS:], strict=True):
            regions[self.input_region][offset : offset + value.size] = value.reshape(-1).view(np.uint8)
        execute(decode(payload.code, payload.accelerator), regions, payload.accelerator)
        block = regions[self.output_region]
        return tuple(
            block[offset : offset + int(np.prod(shape))].view(np.int8).reshape(shape).copy()
            for offset, shape in zip(self.output_offsets, self.shapes, strict=True)
        )


OPERATIONS = (EthosU,)
