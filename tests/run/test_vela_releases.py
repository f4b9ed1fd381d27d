"""Files of several releases of Vela and of both its cores: what `compile` takes `check` proves, and `run` is exact.

The tiny network's files are in tests/data/vela, written by tools/vela_files.py, so that only the pinned release is
needed. BYTEWRIGHT_TESTS=thorough compiles the four int8 models by each release for each accelerator and memory mode.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from support.ethos_u import (
    ADD_ON_CPU,
    DEDICATED,
    SEPARATE,
    SHARED,
    U55,
    U65,
    needs_vela,
    npu_bundle,
    vela,
    vela_operators,
)
from support.reference import TfLiteMicro
from support.shared_models import INT8, RESNET8, model_content, random_inputs
from support.tiers import THOROUGH
from vela_files import COMPILERS, FILES, Compiler, file_name, modes_of, tiny_network
from vela_files import U55 as ALL_U55
from vela_files import U65 as ALL_U65

DATA = Path(__file__).resolve().parents[1] / "data" / "vela"
CASES = [(compiler, *file) for compiler in COMPILERS for file in FILES]
Images = list[list[NDArray[np.int8]]]

pytestmark = needs_vela


def content_of(compiler: Compiler, accelerator: str, mode: str) -> bytes:
    return (DATA / file_name(compiler, accelerator, mode)).read_bytes()


def tiny_inputs(count: int) -> Images:
    """Narrow ones first, for which a softmax is not saturated."""
    generator = np.random.default_rng(3)
    spans = [8, 40, 128] * count
    return [[generator.integers(-span, span, (1, 6, 5, 2), dtype=np.int8)] for span in spans[:count]]


def assert_all_agree(directory: Path, original: bytes, inputs: Images) -> None:
    check_bundle(directory)
    reference = TfLiteMicro(original)
    expected = [reference.run(*arrays)[0].ravel() for arrays in inputs]
    found = run_batch(directory, inputs).outputs
    for (output,), right in zip(found, expected, strict=True):
        assert np.array_equal(output.ravel(), right)


@pytest.mark.parametrize(("compiler", "accelerator", "mode"), CASES, ids=str)
def test_the_functional_model_equals_tflm_on_each_releases_streams(
    compiler: Compiler, accelerator: str, mode: str
) -> None:
    (operator,) = vela_operators(content_of(compiler, accelerator, mode))
    reference, outputs = TfLiteMicro(tiny_network()), set[bytes]()
    for number, (x,) in enumerate(tiny_inputs(12)):
        (found,) = operator.run(x, seed=number)
        assert np.array_equal(found.ravel(), reference.run(x)[0].ravel())
        outputs.add(found.tobytes())
    assert len(outputs) == 12


@pytest.mark.parametrize(
    ("compiler", "accelerator", "mode"), [CASES[0], CASES[3], CASES[5], CASES[7]], ids=str
)
def test_a_bundle_of_each_releases_file_verifies_and_equals_tflm(
    compiler: Compiler, accelerator: str, mode: str, tmp_path: Path
) -> None:
    content = content_of(compiler, accelerator, mode)
    assert_all_agree(npu_bundle(tmp_path, content, accelerator), tiny_network(), tiny_inputs(4))


@pytest.mark.parametrize(
    ("accelerator", "mode", "io"), [(U55, SHARED, Io.CALLER), (U65, DEDICATED, Io.WORKSPACE)]
)
def test_a_bundle_of_separate_regions_verifies(accelerator: str, mode: str, io: Io, tmp_path: Path) -> None:
    """`check` said of the scratch, which is the job's own, that no step had written what the job reads there."""
    directory = npu_bundle(tmp_path, vela(tiny_network(), accelerator, mode, *SEPARATE), accelerator, io)
    assert_all_agree(directory, tiny_network(), tiny_inputs(4))
    (step,) = (step for step in check_bundle(directory).plan.steps if step.device == "npu")
    assert step.scratch
    assert not set(step.scratch) & {*step.reads, *step.writes}
    header = (directory / "include" / "m.h").read_text()
    assert ("in memory sram or isram" in header) is (
        io is Io.CALLER
    )  # where the NPU reaches what the CPU does


@pytest.mark.parametrize("accelerator", [U55])
def test_the_files_are_what_the_script_writes(accelerator: str) -> None:
    """Of the release that is pinned; the others are not there to be asked."""
    for compiler in COMPILERS[2:]:
        assert content_of(compiler, accelerator, SHARED) == compiler.compile(
            tiny_network(), accelerator, SHARED
        )


# Thorough


@pytest.mark.parametrize(
    ("compiler", "accelerator", "mode", "name"),
    [
        (compiler, accelerator, mode, name)
        for compiler in COMPILERS
        for accelerator in (*ALL_U55, *ALL_U65)
        for mode in modes_of(accelerator)
        for name in INT8
        if THOROUGH
    ],
    ids=str,
)
def test_each_release_for_each_accelerator_in_each_mode(
    compiler: Compiler, accelerator: str, mode: str, name: str, tmp_path: Path
) -> None:
    assert compiler.is_installed, "scripts/velas.sh installs it"
    original = model_content(name)
    content = compiler.compile(original, accelerator, mode)
    directory = npu_bundle(tmp_path, content, accelerator)
    assert_all_agree(directory, original, random_inputs(name, 4, seed=17))


@pytest.mark.parametrize(
    ("accelerator", "mode", "options"),
    [
        (accelerator, mode, options)
        for accelerator in (U55, U65)
        for mode in modes_of(accelerator)
        for options in ((), ADD_ON_CPU)
        if THOROUGH
    ],
)
def test_separate_regions_in_each_mode(
    accelerator: str, mode: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    original = model_content(RESNET8)
    content = vela(original, accelerator, mode, *SEPARATE, *options)
    directory = npu_bundle(tmp_path, content, accelerator, Io.WORKSPACE)
    assert_all_agree(directory, original, random_inputs(RESNET8, 4, seed=17))
