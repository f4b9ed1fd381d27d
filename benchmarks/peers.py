"""Other runtimes on this machine: LiteRT's kernels and XNNPACK, the latter also as on a processor without AVX-512."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

RESOLVERS = {
    "LiteRT ref": OpResolverType.BUILTIN_REF,
    "LiteRT opt": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}
SOURCE = Path(__file__).with_name("hide_avx512.c")


def inference(path: Path, resolver: OpResolverType, sample: np.ndarray[Any, Any]) -> Callable[[], float]:
    """One inference of LiteRT on one thread, in microseconds."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)

    def run() -> float:
        began = time.perf_counter_ns()
        interpreter.invoke()
        return (time.perf_counter_ns() - began) / 1e3

    return run


def library_that_hides(folder: Path) -> Path:
    """`hide_avx512.c` as a library for LD_PRELOAD."""
    library = folder / "hide_avx512.so"
    command = ["gcc", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, str(SOURCE), "-o", str(library)], check=True)
    return library


@contextmanager
def without_avx512(
    path: Path, sample: np.ndarray[Any, Any], folder: Path
) -> Iterator[Callable[[], float] | None]:
    """One inference of XNNPACK by its kernels for AVX2, in microseconds; None where AVX-512 cannot be hidden.

    It runs in a process of its own, and only while it is called, so that it can take its turn with others.
    """
    np.save(folder / "sample.npy", sample)
    worker = subprocess.Popen(
        [sys.executable, __file__, str(path), str(folder / "sample.npy")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LD_PRELOAD": str(library_that_hides(folder))},
        text=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    requests, answers = worker.stdin, worker.stdout

    def run() -> float:
        requests.write("run\n")
        requests.flush()
        return float(answers.readline())

    try:
        yield run if answers.readline() == "ready\n" else None
    finally:
        if worker.poll() is None:
            requests.close()
        worker.wait()
        answers.close()


def serve(path: Path, sample: np.ndarray[Any, Any]) -> None:
    """The worker: runs an inference for each line that comes, and prints its microseconds."""
    run = inference(path, RESOLVERS["XNNPACK"], sample)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(run(), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), np.load(sys.argv[2]))
