"""Runs many compiled models in one program: one process start and one sanitizer run-time for all of them.

Each model gets a translation unit of its own, which includes the bundle's C files. Every input, output and
workspace is an allocation of its own of exactly the size that the header states, so that the address sanitizer
sees a byte too far; outputs and workspaces hold garbage before the run. What a model leaves in its inputs is
compared with what was put there. Inferences of a model with state go on from each other, each in memory of its own: the
state is saved after a run, and restored before the next one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ir.types import DType
from support.tiers import MOST_WAITING_SECONDS

Array = NDArray[Any]

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
LANGUAGE = ("-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_LENT = ("workspace", "state")
_NUMPY = {dtype.value: dtype.numpy for dtype in DType}

_MAIN_HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int posix_memalign(void **memory, size_t alignment, size_t bytes);
__attribute__((unused)) static void *fresh(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 256, bytes) != 0) { abort(); }
    memset(memory, 0xA5, bytes);
    return memory;
}
__attribute__((unused)) static void *loaded(FILE *file, size_t bytes) {
    void *memory = fresh(bytes);
    if (fread(memory, 1, bytes, file) != bytes) { abort(); }
    return memory;
}
"""


@dataclass(frozen=True)
class Job:
    """A compiled model and the inputs of its inferences.

    Attributes:
        files: The bundle, path -> content.
        document: plan.json.
        batch: Inputs of each inference.
    """

    files: dict[str, bytes]
    document: dict[str, Any]
    batch: Sequence[Sequence[Array]]

    @property
    def model(self) -> str:
        """The model's name, different for each job of a program."""
        return self.document["model"]


@dataclass(frozen=True)
class Program:
    """An executable of many models."""

    path: Path
    jobs: Sequence[Job]

    def run(self, timeout_seconds: float = MOST_WAITING_SECONDS) -> list[list[list[Array]]]:
        """Outputs by job, inference and output.

        Raises:
            RuntimeError: The program stopped; the text names the model and holds what it said.
        """
        parts = [np.ascontiguousarray(a).tobytes() for job in self.jobs for x in job.batch for a in x]
        done = subprocess.run(
            [self.path], check=False, input=b"".join(parts), capture_output=True, timeout=timeout_seconds
        )
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace")
            running = [line for line in text.splitlines() if line.startswith("running ")]
            raise RuntimeError(f"{running[-1] if running else 'not started'}: {text[-3000:]}")
        return _split(self.jobs, done.stdout)


def build(
    jobs: Sequence[Job],
    folder: Path,
    flags: Sequence[str] = ("-O1",),
    *,
    compiler: str = "gcc",
    num_parallel: int = 2,
) -> Program:
    """Compiles every job, without warnings, and links them into one program."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [compiler, *LANGUAGE, *WARNINGS, *flags]

    def compile_one(job: Job) -> Path:
        for path, content in job.files.items():
            target = folder / job.model / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        source = folder / f"{job.model}_all.c"
        source.write_text(_unit(job), encoding="utf-8")
        product = source.with_suffix(".o")
        include = f"-I{folder / job.model / 'include'}"
        _execute([*command, include, "-c", str(source), "-o", str(product)])
        return product

    with ThreadPoolExecutor(num_parallel) as pool:
        objects = list(pool.map(compile_one, jobs))
    main = folder / "main.c"
    main.write_text(_main(jobs), encoding="utf-8")
    program = folder / "program"
    _execute([*command, str(main), *map(str, objects), "-lm", "-o", str(program)])
    return Program(program, jobs)


def compiler_is_there(name: str) -> bool:
    """Whether a compiler can be called by this name."""
    return shutil.which(name) is not None


def _execute(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=MOST_WAITING_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[:4000]}")


def _unit(job: Job) -> str:
    """The translation unit of one model, with a function that runs all its inferences."""
    model, upper = job.model, job.model.upper()
    lent = [p for p in job.document["pools"] if p["role"] in _LENT and p["provider"] == "caller"]
    pools = [pool for pool in lent if pool["used_bytes"]]  # of the others the C knows nothing
    states = [pool for pool in pools if pool["role"] == "state"]
    kernels, entry, parameters = (f"{model}/src/{model}{part}.c" for part in ("_kernels", "", "_parameters"))
    lines = [f'#include "{path}"' for path in (kernels, entry, parameters)]
    lines += [_MAIN_HEAD, f"int run_{model}(int count);", f"int run_{model}(int count) {{"]
    lines += [f"    static unsigned char saved_{pool['c_name']}[{pool['used_bytes']}];" for pool in states]
    lines.append("    for (int turn = 0; turn < count; ++turn) {")
    lines.append(f"        {model}_context context;")
    lines.append("        memset(&context, 0, sizeof context);")
    if pools:
        lines.append(f"        {model}_workspaces workspaces;")
    for pool in pools:
        name, size = pool["c_name"], f"{upper}_{pool['c_name'].upper()}_{pool['role'].upper()}_SIZE"
        lines.append(f"        workspaces.{name}.base = fresh({size});")
        lines.append(f"        workspaces.{name}.size_bytes = {size};")
    if pools:
        lines.append(f"        if ({model}_set_workspaces(&context, &workspaces) != 0) {{ return 1; }}")
    if states:
        lines.append(f"        if ({model}_reset(&context) != 0) {{ return 8; }}")
    for pool in states:
        kept = f"workspaces.{pool['c_name']}.base", f"saved_{pool['c_name']}", f"{pool['used_bytes']}"
        lines.append(f"        if (turn > 0) {{ memcpy({', '.join(kept)}); }}")
    ports = {"caller": _lent_ports, "workspace": _ports_in_workspace, "rows": _pushed_rows}
    lines += ports[job.document["io"]](job)
    for pool in states:
        kept = f"saved_{pool['c_name']}", f"workspaces.{pool['c_name']}.base", f"{pool['used_bytes']}"
        lines.append(f"        memcpy({', '.join(kept)});")
    lines += [f"        free(workspaces.{pool['c_name']}.base);" for pool in pools]
    return "\n".join([*lines, "    }", "    return 0;", "}", ""])


def _lent_ports(job: Job) -> list[str]:
    """A run on arrays of the application; what is left in the inputs must be what was put there."""
    model, lines = job.model, [f"        {job.model}_inputs inputs;", f"        {job.model}_outputs outputs;"]
    inputs, outputs = job.document["inputs"], job.document["outputs"]
    for index, port in enumerate(inputs):
        size = port["size_bytes"]
        lines.append(f"        void *in_{index} = loaded(stdin, {size});")
        lines.append(f"        void *kept_{index} = fresh({size});")
        lines.append(f"        memcpy(kept_{index}, in_{index}, {size});")
        lines.append(f"        inputs.{port['c_name']} = in_{index};")
    for index, port in enumerate(outputs):
        lines.append(f"        void *out_{index} = fresh({port['size_bytes']});")
        lines.append(f"        outputs.{port['c_name']} = out_{index};")
    lines.append(f"        if ({model}_run(&context, &inputs, &outputs) != 0) {{ return 2; }}")
    for index, port in enumerate(inputs):
        same = f"memcmp(kept_{index}, in_{index}, {port['size_bytes']}) == 0"
        lines.append(f"        if (!({same})) {{ return 3; }}")
        lines.append(f"        free(in_{index});")
        lines.append(f"        free(kept_{index});")
    for index, port in enumerate(outputs):
        lines.append(
            f"        if (fwrite(out_{index}, 1, {port['size_bytes']}, stdout) == 0) {{ return 4; }}"
        )
        lines.append(f"        free(out_{index});")
    return lines


def _pushed_rows(job: Job) -> list[str]:
    """A run that is given the input in pieces, each gone when it was taken: all of it, row by row, and in numbers that
    change.
    """
    model, lines = job.model, [f"        {job.model}_outputs outputs;"]
    (image,), outputs = job.document["inputs"], job.document["outputs"]
    for index, port in enumerate(outputs):
        lines.append(f"        void *out_{index} = fresh({port['size_bytes']});")
        lines.append(f"        outputs.{port['c_name']} = out_{index};")
    num_rows, row_bytes = image["num_rows"], image["size_bytes"] // image["num_rows"]
    lines += [
        f"        if ({model}_begin(&context, &outputs) != 0) {{ return 2; }}",
        f"        for (int first = 0, number; first < {num_rows}; first += number) {{",
        f"            number = turn == 0 ? {num_rows} : turn == 1 ? 1 : 1 + (first * 7 + turn) % 5;",
        f"            number = number < {num_rows} - first ? number : {num_rows} - first;",
        f"            void *rows = loaded(stdin, (size_t)number * {row_bytes});",
        f"            if ({model}_push_rows(&context, rows, number) != 0) {{ return 6; }}",
        "            free(rows);",
        "        }",
        f"        if ({model}_finish(&context) != 0) {{ return 7; }}",
    ]
    for index, port in enumerate(outputs):
        lines.append(
            f"        if (fwrite(out_{index}, 1, {port['size_bytes']}, stdout) == 0) {{ return 4; }}"
        )
        lines.append(f"        free(out_{index});")
    return lines


def _ports_in_workspace(job: Job) -> list[str]:
    """A run on inputs and outputs at the addresses that functions return."""
    model, lines = job.model, list[str]()
    for port in job.document["inputs"]:
        address, size = f"{model}_input_{port['c_name']}(&context)", port["size_bytes"]
        lines.append(f"        if (fread({address}, 1, {size}, stdin) != {size}) {{ return 5; }}")
    lines.append(f"        if ({model}_run(&context) != 0) {{ return 2; }}")
    for port in job.document["outputs"]:
        address, size = f"{model}_output_{port['c_name']}(&context)", port["size_bytes"]
        lines.append(f"        if (fwrite({address}, 1, {size}, stdout) == 0) {{ return 4; }}")
    return lines


def _main(jobs: Sequence[Job]) -> str:
    lines = ["#include <stdio.h>", *(f"int run_{job.model}(int count);" for job in jobs)]
    lines += ["int main(void) {", "    int status = 0;"]
    for job in jobs:
        lines.append(f'    fprintf(stderr, "running {job.model}\\n");')
        lines.append(f"    status = run_{job.model}({len(job.batch)});")
        lines.append('    if (status != 0) { fprintf(stderr, "status %d\\n", status); return status; }')
    return "\n".join([*lines, "    return 0;", "}", ""])


def _split(jobs: Sequence[Job], content: bytes) -> list[list[list[Array]]]:
    position = 0
    results: list[list[list[Array]]] = []
    for job in jobs:
        runs: list[list[Array]] = []
        for _ in job.batch:
            arrays: list[Array] = []
            for port in job.document["outputs"]:
                piece = content[position : position + port["size_bytes"]]
                arrays.append(np.frombuffer(piece, _NUMPY[port["dtype"]]).reshape(port["shape"]))
                position += port["size_bytes"]
            runs.append(arrays)
        results.append(runs)
    if position != len(content):
        raise RuntimeError(f"{len(content)} bytes of output where {position} were expected")
    return results
