"""Model files that other tools wrote, as the random models of the other tests: content, and inputs to run with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from support.random_draft import FLOAT_TOLERANCE
from support.shared_models import MODELS

DATA = Path(__file__).resolve().parents[1] / "data"
EXPORTS, ZOO = MODELS / "exports", MODELS / "zoo"


@dataclass(frozen=True)
class ModelFile:
    """A file, which `support.against_reference` takes in place of a random model.

    Attributes:
        path: The file.
        most_token: Integers of an int32 input are below it.
        tolerance: How far floats may be from the reference, as a part of the largest.
    """

    path: Path
    most_token: int = 8
    tolerance: float = FLOAT_TOLERANCE

    @property
    def description(self) -> str:
        """The file's name."""
        return self.path.stem

    @cached_property
    def content(self) -> bytes:
        """The file's bytes."""
        return self.path.read_bytes()

    @cached_property
    def _ports(self) -> Sequence[dict[str, Any]]:
        return Interpreter(model_content=self.content).get_input_details()

    def inputs(self, seed: int) -> list[NDArray[Any]]:
        """Inputs for one run: random for most seeds; all the same extreme of an integer type for the first two."""
        generator = np.random.default_rng(seed)
        return [self._input(generator, port, seed) for port in self._ports]

    def _input(self, generator: np.random.Generator, port: dict[str, Any], seed: int) -> NDArray[Any]:
        shape, dtype = tuple(port["shape"]), np.dtype(port["dtype"])
        if dtype == np.float32:
            return generator.normal(0, 1, shape).astype(np.float32)
        low, high = (
            (0, self.most_token) if dtype == np.int32 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
        )
        if seed in (0, 1):
            return np.full(shape, low if seed == 0 else high - 1, dtype)
        return generator.integers(low, high, shape).astype(dtype)


def model_files(folder: Path, pattern: str = "*") -> list[ModelFile]:
    """The files of a folder, in alphabetical order; none where the folder is missing."""
    return [ModelFile(path) for path in sorted(folder.glob(f"{pattern}.tflite"))]
