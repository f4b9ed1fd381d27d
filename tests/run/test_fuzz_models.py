"""Damaged model files through the whole compiler: a verified plan or a CompileError, soon, and in little memory.

The files are networks of random operators and the shipped example, truncated, with bits flipped, with words
replaced by extreme numbers, with pieces moved. They are compiled in a process whose address space is limited.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.random_networks import random_convolution, random_network
from support.tiers import THOROUGH

PROJECT_ROOT = Path(__file__).resolve().parents[2]
SECONDS_A_FILE = 2.0
MEBIBYTES = 512
NUM_FILES = 1500 if THOROUGH else 150
EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x10000, 0x40000000)


def _originals() -> list[bytes]:
    networks = [random_network(number, dtype).content for number in range(4) for dtype in ("int8", "float32")]
    digits = (PROJECT_ROOT / "examples" / "digits" / "digits.tflite").read_bytes()
    return [*networks, random_convolution(3, "int8").content, digits]


def damaged(content: bytes, generator: np.random.Generator) -> bytes:
    """The file, damaged in one of four ways."""
    kind = generator.integers(8)
    if kind == 0:
        return content[: int(generator.integers(len(content)))]
    data = bytearray(content)
    if kind == 1:
        first, second = sorted(int(n) for n in generator.integers(0, len(data), 2))
        target = int(generator.integers(len(data)))
        piece = data[first : min(second, first + 64)]
        data[target : target + len(piece)] = piece
        return bytes(data)
    if kind in (2, 3):
        for _ in range(int(generator.integers(1, 4))):
            position = int(generator.integers(len(data) // 4)) * 4
            data[position : position + 4] = int(generator.choice(EXTREMES)).to_bytes(4, "little")
        return bytes(data)
    for _ in range(int(2 ** generator.integers(0, 5))):
        data[int(generator.integers(len(data)))] ^= 1 << int(generator.integers(8))
    return bytes(data)


def compile_all(folder: Path, target: str, seconds: float = SECONDS_A_FILE) -> dict[str, str]:
    """What came out, by the name of the file."""
    program = PROJECT_ROOT / "tests" / "support" / "compile_damaged.py"
    command = [sys.executable, str(program), str(folder), target, str(seconds), str(MEBIBYTES)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60 + NUM_FILES)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    results = {name: text for name, _, text in lines}
    assert done.returncode == 0, f"ended with {done.returncode} after {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(results) == len(list(folder.iterdir()))
    return results


@pytest.mark.parametrize(("target", "first_seed"), [("host", 1), ("mps3-an547", 2)])
def test_damaged_files(target: str, first_seed: int, tmp_path: Path) -> None:
    originals = _originals()
    generator = np.random.default_rng(first_seed)
    for index in range(NUM_FILES):
        content = damaged(originals[index % len(originals)], generator)
        (tmp_path / f"{index:05}.tflite").write_bytes(content)
    results = compile_all(tmp_path, target)
    bugs = [f"{name}: {text}" for name, text in results.items() if text.startswith("BUG")]
    assert not bugs, "\n".join(bugs[:10])
    num_plans = sum(text == "plan" for text in results.values())
    # Damage to weights and names leaves a model; damage to structure is noticed.
    assert num_plans > NUM_FILES // 20
    assert len(results) - num_plans > NUM_FILES // 5


def test_the_limits_are_noticed(tmp_path: Path) -> None:
    """A file that is fine gives a plan, and a bug where there is no time for it."""
    content = random_network(1, "int8").content
    (tmp_path / "fine.tflite").write_bytes(content)
    (tmp_path / "empty.tflite").write_bytes(b"")
    results = compile_all(tmp_path, "host")
    assert results["fine.tflite"] == "plan"
    assert results["empty.tflite"].startswith("BW10")
    assert compile_all(tmp_path, "host", 1e-4)["fine.tflite"].startswith("BUG more than")
