"""Faults made on purpose, each of which tests of the default tier must find: `make faults`.

Each one is put into a copy of the sources in a temporary folder, and the tests that are named beside it run with that
copy. A fault that none of them sees is a hole in the suite: strengthen a test, and name it here.

    python tools/faults.py [NAME...]    those whose names contain one of the words; else all
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "bytewright"
NUM_JOBS = 2
MOST_SECONDS = 900
_FAILED = 1  # pytest's exit status where a test failed; 0: all passed, others: there was nothing to find out


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake.

    Attributes:
        name: What is wrong.
        file: Where, in the package.
        text: What stands there, once.
        replacement: What stands there instead.
        tests: Arguments for pytest: tests of the default tier, one of which must fail.
    """

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]

    def apply(self, package: Path) -> None:
        """Puts the fault into a copy of the package.

        Raises:
            ValueError: The text does not stand in the file exactly once.
        """
        path = package / self.file
        content = path.read_text(encoding="utf-8")
        if content.count(self.text) != 1:
            raise ValueError(f"{self.name}: {content.count(self.text)} times in {self.file}: {self.text!r}")
        path.write_text(content.replace(self.text, self.replacement), encoding="utf-8")


def _operators(*kinds: str) -> tuple[str, ...]:
    """The random models of some operators in int8."""
    return tuple(f"tests/run/test_random_operators.py::test_operator[{kind}-int8]" for kind in kinds)


FAULTS = (
    Fault(
        "a window begins one element too late",
        "lower/kernels/window.py",
        "return position * self.stride + (offset * self.dilation - self.pad_before)",
        "return position * self.stride + (offset * self.dilation - self.pad_before + 1)",
        ("tests/unit/lower/test_window.py", *_operators("MAX_POOL_2D", "DEPTHWISE_CONV_2D")),
    ),
    Fault(
        "one output too many counts as inside the image",
        "lower/kernels/window.py",
        "last = (self.size - 1 - reach + self.pad_before) // self.stride + 1",
        "last = (self.size - 1 - reach + self.pad_before) // self.stride + 2",
        ("tests/unit/lower/test_window.py", *_operators("CONV_2D", "DEPTHWISE_CONV_2D")),
    ),
    Fault(
        "the odd row of padding is at the top",
        "ops/window.py",
        "return total // 2, total - total // 2",
        "return total - total // 2, total // 2",
        _operators("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"),
    ),
    Fault(
        "scales of weights and output swapped in a multiplier",
        "ops/arithmetic/multiplier.py",
        "product = single(input_scale) * single(weight_scale)",
        "weight_scale, output_scale = output_scale, weight_scale; product = single(input_scale) * single(weight_scale)",
        ("tests/unit/ops_arithmetic/test_arithmetic_rescale.py", *_operators("CONV_2D", "FULLY_CONNECTED")),
    ),
    Fault(
        "a product is rounded down",
        "ir/scalar_functions.py",
        "return cast((product + 2**31) >> 32, I32)",
        "return cast(product >> 32, I32)",
        ("tests/unit/lower/test_rescale.py",),
    ),
    Fault(
        "the input's zero point is off by one",
        "lower/kernels/accumulator.py",
        "folded = bias - (zero_point + offset) * (positive + negative)",
        "folded = bias - (zero_point + offset + 1) * (positive + negative)",
        ("tests/unit/lower/test_accumulator.py", *_operators("CONV_2D", "FULLY_CONNECTED")),
    ),
    Fault(
        "the bias of the last channel is one too large",
        "lower/kernels/accumulator.py",
        "    first, last = (bound + offset for bound in held.bounds)\n",
        "    folded = folded + (np.arange(len(folded)) == len(folded) - 1)\n"
        "    first, last = (bound + offset for bound in held.bounds)\n",
        _operators("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
    ),
    Fault(
        "a fused activation clamps one too high",
        "ops/arithmetic/multiplier.py",
        "max(quantized(low), bounds[0]) if math.isfinite(low)",
        "max(quantized(low) + 1, bounds[0]) if math.isfinite(low)",
        (
            "tests/unit/ops_arithmetic/test_arithmetic_rescale.py",
            *_operators("CONV_2D", "ADD", "MAX_POOL_2D"),
        ),
    ),
    Fault(
        "an operand of a concatenation is read one element too far",
        "lower/kernels/data.py",
        "indices = (*outer.values(), own - ir.extent_expr(first), *inner.values())",
        "indices = (*outer.values(), own - ir.maximum(ir.extent_expr(first) - 1, 0), *inner.values())",
        _operators("CONCATENATION"),
    ),
    Fault(
        "what is used last is not kept until then",
        "ir/analyses/body_clock.py",
        "self[name] = (min(known[0], interval[0]), max(known[1], interval[1]))",
        "self[name] = (min(known[0], interval[0]), known[1])",
        ("tests/unit/storage/test_storage_clock.py", "tests/unit/storage/test_storage_body_clock.py"),
    ),
    Fault(
        "outputs die before the application has read them",
        "ir/analyses/clock.py",
        "self.lifetimes.touch(name, (self.tick - 1, self.tick))",
        "self.lifetimes.touch(name, (0, 1))",
        ("tests/unit/storage/test_storage_clock.py", "tests/unit/storage/test_storage_place_io.py"),
    ),
    Fault(
        "a ring has a row too few",
        "storage/rows/schedule.py",
        "rings[link.producer] = max(rings[link.producer], rows)",
        "rings[link.producer] = max(rings[link.producer], rows - 1)",
        ("tests/unit/storage/test_rows_schedule.py",),
    ),
    Fault(
        "an output may come one byte too near its input",
        "ir/analyses/overlap.py",
        "(0 if most is None else max(int(most.max()), 0) for most in (span.below, span.above))",
        "(0 if most is None else max(int(most.max()) - 1, 0) for most in (span.below, span.above))",
        ("tests/unit/ir/test_overlap.py", "tests/unit/storage/test_storage_overlaps.py"),
    ),
    Fault(
        "buffers that overlap are said to be apart",
        "storage/apply_solution.py",
        "return pool != other_pool or end <= other_begin or other_end <= begin",
        "return pool != other_pool or end <= other_begin + 1 or other_end <= begin + 1",
        ("tests/unit/storage/test_storage_problem.py",),
    ),
    Fault(
        "the alignment that a device asks for is ignored",
        "storage/join_alignments.py",
        "asked_for = max(alignment, touch_alignment(lent, self.table.target))",
        "asked_for = alignment",
        ("tests/unit/storage/test_storage_own_lines.py", "tests/unit/storage/test_storage_touch.py"),
    ),
    Fault(
        "a function's frame is not counted",
        "ir/analyses/stack.py",
        "own + _padding_bytes(function) + allowance + deepest.total_bytes,",
        "own + _padding_bytes(function) + deepest.total_bytes,",
        ("tests/unit/storage/test_storage_account_stack.py",),
    ),
    Fault(
        "the validator looks where a buffer begins, and not where it ends",
        "plan/validate.py",
        "if pool.capacity_bytes is not None and offset + buffer.size_bytes > pool.capacity_bytes:",
        "if pool.capacity_bytes is not None and offset > pool.capacity_bytes:",
        ("tests/unit/plan/test_plan_validate.py",),
    ),
    Fault(
        "contracts hold one byte too few",
        "plan/validate.py",
        "if -contract.below_bytes < distance < contract.above_bytes and _meet(",
        "if -contract.below_bytes < distance < contract.above_bytes - 1 and _meet(",
        ("tests/unit/plan/test_plan_validate.py", "tests/unit/plan/test_plan_mutations.py"),
    ),
    Fault(
        "offsets in the C are not those of the plan",
        "codegen/entry.py",
        "offset, described = buffer.place.offset or 0,",
        "offset, described = (buffer.place.offset or 0) // 32 * 32,",
        ("tests/golden", "tests/unit/codegen", "tests/run/test_digits.py"),
    ),
    Fault(
        "the tail of a parameter pool is not filled",
        "record/parameter_bytes.py",
        "pieces.append(bytes(used_bytes - top))",
        'pieces.append(b"")',
        ("tests/unit/storage/test_storage_own_lines.py",),
    ),
    Fault(
        "a blob's size counts its header",
        "record/parameter_bytes.py",
        'return MAGIC + size_bytes.to_bytes(8, "little")',
        'return MAGIC + (size_bytes + PARAMETER_HEADER_BYTES).to_bytes(8, "little")',
        ("tests/unit/record/test_parameter_bytes.py", "tests/run/test_loaded_parameters.py"),
    ),
    Fault(
        "a search remembers a pass by its module alone",
        "compiler/run_passes.py",
        "partial(run_pass, module, *rest, **named), run_pass, module, *rest, *named.items()",
        "partial(run_pass, module, *rest, **named), run_pass, module",
        ("tests/unit/storage/test_storage_remedy.py", "tests/unit/cli/test_help_of_pins_and_io.py"),
    ),
    Fault(
        "taps of a transposed convolution meet elements in the other order",
        "lower/kernels/spread.py",
        "return [phase + number * self.stride for number in reversed(range(num_taps))]",
        "return [phase + number * self.stride for number in range(num_taps)]",
        ("tests/unit/lower/test_spread.py",),
    ),
    Fault(
        "an output that ends within a cell has all of its phases",
        "lower/kernels/spread.py",
        "num_cells = self.num_cells - first_cell - int(first > last)",
        "num_cells = self.num_cells - first_cell",
        ("tests/unit/lower/test_spread.py",),
    ),
    Fault(
        "the weights of a pair of taps change places",
        "lower/isa/dsp/taps.py",
        "return low_half(word), high_half(word)",
        "return high_half(word), low_half(word)",
        ("tests/board/test_instructions_board.py::test_each_instruction_on_its_board[dsp-gcc--O2]",),
    ),
    Fault(
        "an open extent is rounded up",
        "ir/types.py",
        "return (self.scale * extent_at(self.of, value) + self.offset) // self.divisor",
        "return -(-(self.scale * value + self.offset) // self.divisor)",
        ("tests/unit/ir/test_quotient.py",),
    ),
    Fault(
        "kept inputs are weighed by the frames in reverse",
        "frontends/tflite/svdf.py",
        "for number, taps in enumerate(layer.time[num_frames:, np.newaxis]):",
        "for number, taps in enumerate(layer.time[num_frames:, np.newaxis][::-1]):",
        ("tests/run/test_svdf.py",),
    ),
    Fault(
        "a run by rows does not know that it was begun",
        "naming/entry_forms.py",
        'begun="is_begun",',
        'begun="num_rows",',
        ("tests/run/test_io_rows_interface.py",),
    ),
    Fault(
        "numbers that calls are given are not compared with the plan's",
        "inspect/check_parts.py",
        "if known.passed(node) != number and known",
        "if known.passed(node) is None and known",
        ("tests/unit/inspect/test_check_plan_fields.py",),
    ),
    Fault(
        "C's division of an extent is taken for one that rounds down",
        "ir/analyses/open_extents.py",
        'case "/", _, int() if right >= 1 and ir.lower_bound(left) >= 0:',
        'case "/", _, int() if right >= 1:',
        ("tests/unit/inspect/test_check_open_extents.py",),
    ),
    Fault(
        "a part of a buffer may be passed from anywhere on",
        "inspect/check_parts.py",
        "if (0 if place.index is None else known.text(place.index)) != start:",
        "if (0 if place.index is None else known.text(place.index)) is None:",
        ("tests/unit/inspect/test_check_parts.py",),
    ),
    Fault(
        "the type that a number is computed in is not compared",
        "inspect/c_numbers.py",
        'return f"{to}({found})"',
        "return found",
        ("tests/unit/inspect/test_check_flow.py",),
    ),
    Fault(
        "a kernel's bound of what the data decides may be greater",
        "inspect/check_sizes.py",
        "integer_of(high)) == (self._size, 0, self._most)",
        "self._most) == (self._size, 0, self._most)",
        ("tests/unit/inspect/test_check_sizes.py",),
    ),
    Fault(
        "a kernel may count beyond the bound",
        "inspect/check_sizes.py",
        "if integer_of(right) == most:",
        "if most:",
        ("tests/unit/inspect/test_check_sizes.py",),
    ),
    Fault(
        "a kernel may reach one element beyond what it is given",
        "inspect/c_reach.py",
        "(high > size.low - size_bytes)",
        "(high > size.low)",
        ("tests/unit/inspect/test_check_reach.py",),
    ),
    Fault(
        "what is known of a number is kept where it changes",
        "inspect/c_ranges.py",
        "if name in self.changing:",
        "if name not in self.changing:",
        ("tests/unit/inspect/test_check_reach.py",),
    ),
    Fault(
        "minima and limits of kernels may be others",
        "inspect/check_written.py",
        'if actual is None or expected is None or spell(actual) != spell(expected):\n            yield f"{path}:',
        'if actual is None or expected is None:\n            yield f"{path}:',
        ("tests/unit/inspect/test_check_sizes.py",),
    ),
    Fault(
        "memory of the application has the scale of what it is a view of",
        "lower/lower_graph.py",
        "for name in self.main.function.results[: len(self.module.outputs)]:",
        "for name in ():",
        ("tests/unit/inspect/test_check_sizes.py",),
    ),
    Fault(
        "outputs are as large as the data decides in the header alone",
        "inspect/check_written.py",
        "if path == names.header:",
        "if not path:",
        ("tests/run/test_sizes_of_data.py",),
    ),
    Fault(
        "pools that nobody uses are not the target's",
        "inspect/check_described.py",
        "if list(plan.pools) != expected:",
        "if list(plan.pools) != expected[: len(plan.pools)]:",
        ("tests/unit/inspect/test_check_plan_fields.py",),
    ),
)


def sound(faults: Sequence[Fault]) -> Fault:
    """No fault, and all the tests of some: with a copy of the sources as they are, none may fail."""
    file, tests = "__init__.py", dict.fromkeys(test for fault in faults for test in fault.tests)
    content = (PACKAGE / file).read_text(encoding="utf-8")
    return Fault("no fault at all", file, content, content, tuple(tests))


def finds(fault: Fault) -> tuple[bool, float]:
    """Whether the tests that are named for a fault fail with it, and the seconds that they took.

    Raises:
        RuntimeError: They could not run.
    """
    with tempfile.TemporaryDirectory(prefix="bytewright-fault-") as name:
        package = Path(name) / "bytewright"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        fault.apply(package)
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider", *fault.tests]
        environment = {**os.environ, "PYTHONPATH": name, "PYTHONDONTWRITEBYTECODE": "1"}
        begin = time.monotonic()
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
        )
        if done.returncode not in (0, _FAILED):
            raise RuntimeError(f"{fault.name}: {' '.join(command)}\n{done.stdout[-3000:]}{done.stderr}")
        return done.returncode == _FAILED, time.monotonic() - begin


def main(words: Sequence[str]) -> int:
    """Reports on each fault; 1 if one is not found."""
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    num_found = 0
    with ThreadPoolExecutor(NUM_JOBS) as pool:
        control = pool.submit(finds, sound(chosen))
        for fault, (is_found, seconds) in zip(chosen, pool.map(finds, chosen), strict=True):
            num_found += is_found
            print(f"{'found' if is_found else 'NOT FOUND':>9}  {seconds:5.1f} s  {fault.name}", flush=True)
        is_sound = not control.result()[0]
    print(f"{num_found} of {len(chosen)} faults found")
    if not is_sound:
        print("the same tests fail without a fault, so this says nothing")
    return 0 if is_sound and num_found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
