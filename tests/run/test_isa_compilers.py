"""What `target/isa` says of a core is what gcc and clang say of it: flags that they take, features that they define."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import bytewright
from bytewright.target.isa.find import ISAS
from bytewright.target.isa.isa import Isa
from support.random_networks import random_convolution

pytestmark = pytest.mark.run

# By triple, of each feature: the macro, and a bit of its value. Arm's are those of its C Language Extensions; every
# processor of 64 bits has floats there.
MACROS = {
    "arm-none-eabi": {
        "dsp": ("__ARM_FEATURE_DSP", 1),
        "fp32": ("__ARM_FP", 4),
        "fp64": ("__ARM_FP", 8),
        "mve": ("__ARM_FEATURE_MVE", 1),
        "mve-float": ("__ARM_FEATURE_MVE", 2),
    },
    "aarch64-linux-gnu": {"neon": ("__ARM_NEON", 1), "neon-dotprod": ("__ARM_FEATURE_DOTPROD", 1)},
    "x86_64-linux-gnu": {
        "sse2": ("__SSE2__", 1),
        "ssse3": ("__SSSE3__", 1),
        "sse4.1": ("__SSE4_1__", 1),
        "avx": ("__AVX__", 1),
        "avx2": ("__AVX2__", 1),
        "fma": ("__FMA__", 1),
        "avx512f": ("__AVX512F__", 1),
        "avx512bw": ("__AVX512BW__", 1),
        "avx512dq": ("__AVX512DQ__", 1),
        "avx512vl": ("__AVX512VL__", 1),
        "avx512vnni": ("__AVX512VNNI__", 1),
    },
}
NEWER_THAN_THE_COMPILERS = (
    "cortex-m52",
    "cortex-m85",
)
CORES = [isa for isa in ISAS.values() if isa.triple and isa.flags]


def features(triple: str, *command: str) -> set[str] | None:
    """The features that a compiler defines; None if it does not know the core."""
    command = (*command, "-dM", "-E", "-x", "c", "/dev/null")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        unknown = r"unrecognized -mcpu target|does not support '-mcpu|unknown value .* for '?.?-mcpu"
        assert re.search(unknown, done.stderr), done.stderr
        return None
    values = dict(re.findall(r"^#define (\w+) (\w+)$", done.stdout, re.MULTILINE))
    return {name for name, (macro, bit) in MACROS[triple].items() if int(values.get(macro, "0"), 0) & bit}


@pytest.mark.parametrize("isa", CORES, ids=lambda isa: isa.name)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_flags_give_the_features(compiler: str, isa: Isa) -> None:
    command = [f"{isa.triple}-gcc"] if compiler == "gcc" else ["clang", f"--target={isa.triple}"]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    found = features(isa.triple or "", *command, *isa.flags)
    if found is None:
        assert isa.name in NEWER_THAN_THE_COMPILERS
    else:
        assert found == set(isa.features)


@pytest.mark.parametrize("isa", [isa for isa in CORES if isa.processor], ids=lambda isa: isa.name)
def test_what_a_kernel_may_use_the_machine_must_have(isa: Isa) -> None:
    """Linux's names for the features, where they are others than the compilers'."""
    names = {"neon": "asimd", "neon-dotprod": "asimddp", "sse4.1": "sse4_1", "avx512vnni": "avx512_vnni"}
    wanted = {names.get(feature, feature) for feature in isa.features} - {
        "sse2"
    }  # which is of the architecture
    assert wanted <= set(isa.processor_flags)


@pytest.mark.parametrize(
    "command",
    [
        ("aarch64-linux-gnu-gcc",),
        ("clang", "--target=aarch64-linux-gnu"),
        ("arm-none-eabi-gcc", "-mcpu=cortex-a15", "-mfpu=neon-vfpv4", "-mfloat-abi=hard", "-marm"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(("dtype", "template"), [("float32", "fpu.conv2d_f32"), ("int8", "dsp.conv2d")])
def test_other_cores_take_the_plain_c(
    command: tuple[str, ...], dtype: str, template: str, tmp_path: Path
) -> None:
    """Arm's other cores have these instructions, or macros that say so, but not all of their operands."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = tmp_path / "m.tflite"
    path.write_bytes(random_convolution(3, dtype).content)
    compiled = bytewright.compile(path, target="mps2-an386")
    assert [step.template for step in compiled.plan.steps] == [template]
    folder = compiled.write(tmp_path / "b")
    options = ("-std=c99", "-O2", "-ffreestanding", f"-I{folder / 'include'}", "-c")
    for source in sorted(folder.rglob("*.c")):
        done = subprocess.run(
            [*command, *options, source, "-o", tmp_path / "o"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
