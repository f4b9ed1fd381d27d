"""`--kernels`: what may stand in the C of kernels, with the same output."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.target import Target, load_target
from bytewright.target.isa.arm import CORTEX_M
from support.digits_bundle import DIGITS
from support.heavy_weights import heavy_convolution
from support.reference import LiteRt

CORES = [isa for isa in CORTEX_M if not isa.cores]


def target_of(core: str) -> Target:
    """A microcontroller with this core."""
    (isa,) = (each for each in CORTEX_M if each.name == core)
    target = load_target("generic-cortex-m")
    return replace(target, devices=(replace(target.devices[0], isa=isa),))


def text_of(model: bytewright.CompiledModel) -> str:
    """All C of a bundle, without comments."""
    texts = (content.decode() for path, content in model.files.items() if path.endswith((".c", ".h")))
    return re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)


@pytest.mark.parametrize("core", [isa.name for isa in CORES])
def test_portable_kernels_have_no_assembler_and_the_same_output(core: str) -> None:
    model = bytewright.compile(DIGITS, target=target_of(core), kernel_code="portable")
    text = text_of(model)
    assert not re.search(r"\b__?asm", text)
    assert "arm_mve.h" not in text
    assert "--kernels portable" in model.plan.options
    assert "Kernels are C99 alone." in model.files["include/digits.h"].decode()
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        images = stored["images"][:5]
    reference = LiteRt(DIGITS)
    wanted = np.concatenate([reference.run(image[np.newaxis])[0] for image in images])
    np.testing.assert_array_equal(model.run(images), wanted)


@pytest.mark.parametrize(
    ("core", "has_vectors"), [("cortex-m55", True), ("cortex-m85", True), ("cortex-m4", False)]
)
def test_intrinsics_are_functions_of_the_compiler(core: str, has_vectors: bool) -> None:
    model = bytewright.compile(DIGITS, target=target_of(core), kernel_code="intrinsics")
    text = text_of(model)
    assert not re.search(r"\b__?asm", text)
    assert ("arm_mve.h" in text) is has_vectors
    remarks = [remark for step in model.plan.steps for remark in step.remarks]
    assert any("it is assembler, which --kernels excludes" in remark for remark in remarks)
    assert re.search(r"\b__asm", text_of(bytewright.compile(DIGITS, target=target_of(core))))


@pytest.mark.parametrize(
    ("options", "has_assembler"),
    [
        ({}, True),
        ({"kernel_code": "portable"}, False),
        ({"kernel_code": "portable", "embed": "incbin"}, True),
    ],
)
def test_large_parameters_are_numbers_unless_assembler_is_asked_for(
    options: dict[str, str], has_assembler: bool, tmp_path: Path
) -> None:
    (tmp_path / "large.tflite").write_bytes(heavy_convolution(1, (1, 1, 1024), 1, 1056).content)
    model = bytewright.compile(tmp_path / "large.tflite", **options)  # type: ignore[arg-type]
    assert model.plan.parameter_bytes > 1 << 20
    assert ("__asm__" in model.files["src/large_parameters.c"].decode()) is has_assembler


def test_code_that_keeps_r9_has_no_assembler_that_takes_it(tmp_path: Path) -> None:
    bytewright.compile(DIGITS, target="mps3-an547").write(tmp_path / "digits")
    source = tmp_path / "digits" / "src" / "digits_kernels.c"
    machine = ["-target", "thumbv8.1m.main-none-eabihf", "-mcpu=cortex-m55", "-ffreestanding"]
    command = ["clang", *machine, "-I", str(tmp_path / "digits/include"), "-E", str(source)]
    texts = [
        subprocess.run([*command, *flags], capture_output=True, text=True, check=True).stdout
        for flags in ((), ("-frwpi",))
    ]
    assert ["__asm volatile" in text for text in texts] == [True, False]


def test_cmake_refuses_flags_of_gcc_that_keep_r9(tmp_path: Path) -> None:
    bytewright.compile(DIGITS, target="mps3-an547").write(tmp_path / "auto")
    bytewright.compile(DIGITS, target="mps3-an547", kernel_code="intrinsics").write(tmp_path / "intrinsics")

    def configured(name: str, flags: str) -> subprocess.CompletedProcess[str]:
        settings = ["-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_C_COMPILER_WORKS=1", f"-DCMAKE_C_FLAGS={flags}"]
        command = [
            "cmake",
            "-S",
            str(tmp_path / name),
            "-B",
            str(tmp_path / "build" / name / flags),
            *settings,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = configured("auto", "-ffixed-r9")
    assert refused.returncode != 0
    assert "compile the model with --kernels intrinsics" in " ".join(refused.stderr.split())
    assert configured("auto", "-O2").returncode == 0
    assert configured("intrinsics", "-ffixed-r9").returncode == 0
