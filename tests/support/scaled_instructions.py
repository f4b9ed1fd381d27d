"""Operands of instructions that scale: rows of biases, multipliers and negative shifts in one parameter."""

from __future__ import annotations

import numpy as np

from bytewright import ir
from support.instruction_program import NUM_CASES, InstructionProgram

LANES = 4
SMALL, LARGE = 2**12, 2**31 - 2**24  # of biases, beside sums of products that stay below 2^24


class ScaledProgram(InstructionProgram):
    """Instructions whose parameter `scales` is [groups, 3, 4]; `low` and `high` enclose a part of a byte.

    Args:
        instructions: Those to run.
        most_weight: Of weights.
        least_shift: Of all shifts.
        seed: Of the operands.
    """

    def __init__(
        self,
        instructions: list[ir.Instruction],
        *,
        most_weight: int = 127,
        least_shift: int = 0,
        seed: int = 1,
    ) -> None:
        self.least_shift = least_shift
        ranges = {(each.name, "weights"): (-most_weight, most_weight) for each in instructions}
        super().__init__(instructions, ranges, seed)

    def _operands(self, instruction: ir.Instruction, parameter: str, dtype: ir.DType, num: int) -> np.ndarray:
        random = self.random
        if parameter == "scales" and instruction.name.endswith("_uniform"):
            bias = random.integers(-SMALL, SMALL, (NUM_CASES, num - 2), endpoint=True)
            multiplier = random.integers(2**30, 2**31, (NUM_CASES, 1))
            shift = random.integers(self.least_shift, 32, (NUM_CASES, 1))
            return np.concatenate([multiplier, -shift, bias], axis=1).astype(dtype.numpy)
        if parameter == "scales":
            rows = np.empty((NUM_CASES, num // 12, 3, LANES), np.int64)
            bound = np.where(np.arange(NUM_CASES) % 3 == 0, LARGE, SMALL)[:, None, None]
            rows[:, :, 0] = random.integers(-bound, bound, rows[:, :, 0].shape, endpoint=True)
            rows[:, :, 1] = random.integers(2**30, 2**31, rows[:, :, 1].shape)
            rows[:4, :, 1] = [[0, 2**31 - 1, 2**30, 1]]
            rows[:, :, 2] = -random.integers(self.least_shift, 12, rows[:, :, 2].shape)
            rows[::5, :, 2] = -random.integers(self.least_shift, 32, rows[::5, :, 2].shape)
            return rows.reshape(NUM_CASES, num).astype(dtype.numpy)
        if parameter == "zero_point":
            values = random.integers(-128, 128, (NUM_CASES, 1))
        elif parameter == "low":
            values = random.integers(-128, -20, (NUM_CASES, 1))
        elif parameter == "high":
            values = random.integers(20, 128, (NUM_CASES, 1))
        else:
            return super()._operands(instruction, parameter, dtype, num)
        return values.astype(dtype.numpy)
