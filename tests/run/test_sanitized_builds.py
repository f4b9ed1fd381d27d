"""What a sanitized build costs in gcc: time and memory for the plain C beside vector instructions, the longest of all.

Helpers of 64 lanes whose every access is checked are in such a file once each, not once for each use: kws took gcc 42 s
and 673 MB where each use had a copy of its own and debuggers were told where each variable is.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import bytewright
from bytewright.execute.build import LANGUAGE_FLAGS, SANITIZER_FLAGS
from support.row_models import Layer, chain

MOST_SECONDS = 5.0  # of processor time; about one is needed
MOST_KB = 300_000  # of addresses; gcc needs about 60,000 of memory, and needed 673,000


def test_plain_c_beside_vectors_compiles_with_sanitizers_in_a_moment(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(chain((12, 8, 1), Layer(3, channels=64), Layer(3, channels=64), tail=True).content)
    bytewright.compile(model, target="x86-64-v4-vnni", rows="off").write(tmp_path / "m")
    (source,) = (tmp_path / "m" / "src").glob("*_kernels.c")
    assert source.read_text(encoding="utf-8").count("avx512_dot_bytes(") > 20, "no model that shows it"
    command = [
        "gcc",
        *LANGUAGE_FLAGS,
        "-O1",
        *SANITIZER_FLAGS,
        "-c",
        str(source),
        "-o",
        str(tmp_path / "m.o"),
    ]
    # A limit, because what was used is counted from before the program began, when it was a copy of this process.
    limited = ["sh", "-c", f'ulimit -v {MOST_KB} && exec "$@"', "sh"]
    process = subprocess.Popen([*limited, *command, f"-I{tmp_path / 'm' / 'include'}"])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_utime < MOST_SECONDS
