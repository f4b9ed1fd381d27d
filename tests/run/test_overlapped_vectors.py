"""gcc makes vectors of kernels whose output lies over an input as it does of those where the two are apart."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from bytewright.compiler import store
from bytewright.compiler.pipeline import compile_model
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support import shared_models as models
from support.tiers import some

FLAGS = ("-O3", "-march=x86-64-v4", "-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")


def shares(name: str, folder: Path) -> dict[str, float]:
    """The share of each kernel's instructions that work on vectors, whichever way it runs."""
    files = compile_model(models.model_path(name), load_target("host"), Options(rows=Rows.OFF)).files
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (source,) = (path for path in files if path.endswith("_kernels.c"))
    command = ["gcc", *FLAGS, f"-I{folder / 'include'}", "-S", str(folder / source), "-o", "-"]
    on_vectors, all_of_them = Counter[str](), Counter[str]()
    function = ""
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        label = re.match(r"([a-z]\w+):", line)
        function = label[1].removesuffix("_down") if label else function
        if re.match(r"\t[a-z]", line):
            all_of_them[function] += 1
            on_vectors[function] += "%xmm" in line or "%ymm" in line or "%zmm" in line
    return {name: on_vectors[name] / count for name, count in all_of_them.items()}


@pytest.mark.run
@pytest.mark.parametrize("name", some([models.KWS, models.VWW, models.RESNET8], every=2, always=[models.KWS]))
def test_kernels_that_overlap_have_vectors(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlapped = shares(name, tmp_path / "overlapped")
    monkeypatch.setattr(store, "find_overlaps", lambda *_: ())
    apart = shares(name, tmp_path / "apart")
    assert overlapped.keys() == apart.keys()
    assert sum(share > 0.5 for share in apart.values()) >= 3
    less = {
        kernel: (overlapped[kernel], share)
        for kernel, share in apart.items()
        if overlapped[kernel] < 0.6 * share
    }
    assert not less
