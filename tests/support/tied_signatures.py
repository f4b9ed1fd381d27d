"""A file of four signatures over two variables, as TensorFlow 2.19 writes it, and what LiteRT's runners give of it.

An encoder and its decoder share a matrix, which a third signature trains in a branch; the fourth runs what the encoder
keeps to rest, in a loop of as many turns as the run says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from support.model_files import DATA

Array = NDArray[Any]
TIED = DATA / "state" / "tied.tflite"
SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "decode": (("code",), ("x",)),
    "encode": (("x",), ("code",)),
    "settle": (("limit",), ("turns", "hidden")),
    "train": (("t", "x"), ("loss",)),
}
"""Inputs and outputs of each."""
MOST_TURNS = 6


def tied_calls(count: int) -> tuple[list[str], list[list[Array]], list[list[Array]]]:
    """Signatures in some order, what they are given, and what they give, one after the other on one interpreter."""
    interpreter: Any = Interpreter(
        model_path=str(TIED),
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    runners: dict[str, Any] = {key: interpreter.get_signature_runner(key) for key in SIGNATURES}
    random = np.random.default_rng(4)
    names = ["encode", "decode", "train", "encode", *random.choice(sorted(SIGNATURES), count - 4)]
    given: list[list[Array]] = []
    wanted: list[list[Array]] = []
    for name in names:
        inputs, outputs = SIGNATURES[name]
        arrays = {
            each: np.float32(0.05) * np.ones((), np.float32)
            if each == "limit"
            else random.standard_normal((1, 8)).astype(np.float32)
            for each in inputs
        }
        found = runners[name](**arrays)
        given.append([arrays[each] for each in inputs])
        wanted.append([np.array(found[each]) for each in outputs])
    return names, given, wanted
