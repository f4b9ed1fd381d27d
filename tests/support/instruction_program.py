"""A program that runs each instruction of a set alone, with operands of the test's choice, on any machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.text.modules import print_module
from bytewright.lower.isa.instruction_set import Fields, InstructionSet, Operands
from bytewright.lower.isa.vector_unit import lane_wise, memory_parameter
from support.evaluate.evaluate import Evaluator

NUM_CASES = 64
Arrays = dict[str, np.ndarray]
# What operands may be, by the parameter's name, where that is not all of the type; sums must not overflow.
USUAL = {"multiplier": (0, 2**31 - 1), "shift": (1, 31)}
OF_I32 = (-(2**30) + 1, 2**30 - 1)


def _moved(parameter: ir.BufferParameter, feature: ir.Feature, *, is_read: bool) -> ir.Instruction:
    """An instruction that takes a register from memory, or puts it there, whatever its type."""
    buffer = parameter.buffer
    num, dtype = ir.num_elements(buffer), buffer.dtype
    access = ir.Access.READ if is_read else ir.Access.WRITE
    memory = memory_parameter("elements", num, dtype, access)
    register = ir.BufferParameter(
        ir.Buffer("values", buffer.shape, dtype, dtype.size_bytes, register=buffer.register),
        ir.Access.WRITE if is_read else ir.Access.READ,
        scope=ir.LOCAL,
    )
    name = f"{'take' if is_read else 'put'}_{dtype.value}x{num}"
    c_type = f"{dtype.value}x{num}"
    take = f"{c_type} values;\n__builtin_memcpy(&values, elements, sizeof values);\nreturn values;"
    put = "__builtin_memcpy(elements, &values, sizeof values);"
    if re.fullmatch(r"v(int|float)\d+m\d_t", buffer.register):
        # In C these have no size; the emulated processor's have this one.
        take, put = (
            f"return *(const {c_type} *)(const void *)elements;",
            f"*({c_type} *)(void *)elements = values;",
        )
    if is_read:
        return lane_wise(name, num, (register, memory), lambda given: given[0], take, feature)
    return lane_wise(name, num, (memory, register), lambda given: given[0], put, feature)


class InstructionProgram:
    """One kernel and its operands for each instruction; the model's inputs and outputs are `[cases, elements]`.

    Args:
        instructions: Those to run.
        ranges: What operands may be, by instruction and parameter, where `USUAL` does not say it.
        seed: Of the operands; the ends of each range are among them.
    """

    def __init__(
        self,
        instructions: Iterable[ir.Instruction],
        ranges: Mapping[tuple[str, str], Operands],
        seed: int = 1,
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.ranges = ranges
        self.inputs: Arrays = {}
        self.kernels: list[ir.PrimFunc] = []
        self.ports: list[ir.BufferParameter] = []
        body = BodyBuilder()
        for instruction in instructions:
            kernel = self._kernel(instruction)
            self.kernels.append(kernel)
            own = [self._port(kernel, parameter) for parameter in kernel.buffer_parameters]
            self.ports += own
            body.call(kernel.name, *(region(port.buffer) for port in own))
        ports = sorted(self.ports, key=lambda port: port.access is not ir.Access.READ)
        entry = ir.PrimFunc("main", tuple(ports), body.finish())
        self.module = ir.Module("m", kernels=tuple(self.kernels), entries=(entry,))
        self.outputs = [port.name for port in ports if port.access is not ir.Access.READ]

    def write(self, folder: Path) -> Path:
        """The program as a file, for the command line and `bytewright.compile`."""
        path = folder / "m.bw"
        path.write_text(print_module(self.module))
        return path

    def evaluated(self) -> list[np.ndarray]:
        """What the outputs are by the instructions' bodies."""
        found = Evaluator(self.module).run("main", self.inputs)
        return [found[name] for name in self.outputs]

    def _port(self, kernel: ir.PrimFunc, parameter: ir.BufferParameter) -> ir.BufferParameter:
        buffer = parameter.buffer
        name = f"{kernel.name}_{parameter.name}"
        return ir.BufferParameter(
            ir.Buffer(name, buffer.shape, buffer.dtype, 16), parameter.access, parameter.role, ir.WORKSPACE
        )

    def _kernel(self, instruction: ir.Instruction) -> ir.PrimFunc:
        name = f"m_{instruction.name}"
        body = BodyBuilder()
        given: list[ir.BufferParameter] = []
        arguments: list[ir.Buffer | ir.Region | ir.Expr] = []
        after: list[tuple[ir.BufferParameter, ir.Buffer, ir.Buffer]] = []

        def memory(stem: str, dtype: ir.DType, num: int, access: ir.Access) -> ir.Buffer:
            buffer = ir.Buffer(body.unique_name(stem), (NUM_CASES, num), dtype, dtype.size_bytes)
            given.append(ir.BufferParameter(buffer, access, scope=ir.GLOBAL))
            if access is ir.Access.READ:
                self.inputs[f"{name}_{buffer.name}"] = self._operands(instruction, stem, dtype, num)
            return buffer

        with body.for_("case", 0, NUM_CASES) as case:
            for parameter in instruction.parameters:
                if isinstance(parameter, ir.ScalarParameter):
                    values = memory(parameter.name, parameter.variable.dtype, 1, ir.Access.READ)
                    arguments.append(load(values, case, 0))
                    continue
                dtype, num = parameter.buffer.dtype, max(ir.num_elements(parameter.buffer), 1)
                is_read = parameter.access is not ir.Access.WRITE
                is_written = parameter.access is not ir.Access.READ
                source = memory(parameter.name, dtype, num, ir.Access.READ) if is_read else None
                target = memory("result", dtype, num, ir.Access.WRITE) if is_written else None
                if not parameter.is_value:
                    if target is not None and source is not None:
                        with body.for_("copied", 0, num) as i:
                            body.store(target, (case, i), load(source, case, i))
                    chosen = target or source
                    assert chosen is not None
                    arguments.append(region(chosen, case, 0))
                    continue
                value = (
                    body.register("value", num, dtype, parameter.buffer.register)
                    if parameter.buffer.register
                    else body.scalar("value", dtype)
                )
                if source is not None and parameter.buffer.register:
                    body.execute(
                        _moved(parameter, instruction.feature, is_read=True), value, region(source, case, 0)
                    )
                elif source is not None:
                    body.store(value, (), load(source, case, 0))
                arguments.append(value)
                if target is not None:
                    after.append((parameter, value, target))
            body.execute(instruction, *arguments)
            for parameter, value, target in after:
                if parameter.buffer.register:
                    body.execute(
                        _moved(parameter, instruction.feature, is_read=False), region(target, case, 0), value
                    )
                else:
                    body.store(target, (case, 0), load(value))
        return ir.PrimFunc(name, tuple(given), body.finish())

    def _operands(self, instruction: ir.Instruction, parameter: str, dtype: ir.DType, num: int) -> np.ndarray:
        """Random elements, whose first rows are the ends of their range."""
        if not dtype.is_integer:
            return self.random.normal(0, 100, (NUM_CASES, num)).astype(dtype.numpy)
        usual = USUAL.get(parameter, OF_I32 if dtype is ir.DType.I32 else dtype.bounds)
        own = self.ranges.get((instruction.name, parameter), usual)
        if isinstance(own, Fields):
            count = num * 8 * dtype.size_bytes // own.bits
            return self._drawn(own.low, own.high, count).astype(f"<i{own.bits // 8}").view(dtype.numpy)
        return self._drawn(*own, num).astype(dtype.numpy)

    def _drawn(self, low: int, high: int, num: int) -> np.ndarray:
        """Of each case."""
        values = self.random.integers(low, high, (NUM_CASES, num), endpoint=True)
        # Few bits as well as many: sums that stay small are the usual ones.
        values[NUM_CASES // 2 :] //= 2 ** self.random.integers(0, 20, (NUM_CASES - NUM_CASES // 2, 1))
        values = np.clip(values, low, high)
        values[0], values[1] = low, high
        values[2, ::2], values[2, 1::2] = low, high
        return values


LEAST = -(2**15)
_PAIRS_OF_TAPS = re.compile(r"dsp_rows16_2x1x\d+_i16")
_SUMS = (-(2**31), -1)  # so low that two products of the least halves, 2^31, end in 32 bits


def _adds_halves(parameters: Mapping[str, ir.Buffer]) -> bool:
    """Whether products of halves are added to sums, at most two to each."""
    for factors in (("activations", "filters"), ("elements", "weights")):
        if all(name in parameters and parameters[name].dtype is ir.DType.I16 for name in factors):
            return ir.num_elements(parameters[factors[1]]) <= 2 * ir.num_elements(parameters["sums"])
    return False


def greatest_products(instruction_set: InstructionSet) -> InstructionProgram | None:
    """Those that add one or two products of halves, of the least halves: their sum alone leaves 32 bits."""
    ranges: dict[tuple[str, str], Operands] = {}
    chosen: list[ir.Instruction] = []
    for each in instruction_set.instructions:
        names = {p.name: p.buffer for p in each.parameters if isinstance(p, ir.BufferParameter)}
        if not _PAIRS_OF_TAPS.fullmatch(each.name) and not _adds_halves(names):
            continue
        chosen.append(each)
        for name in names:
            ranges[each.name, name] = _SUMS if name.startswith("sum") else Fields(16, LEAST, LEAST)
    return InstructionProgram(chosen, ranges) if chosen else None
