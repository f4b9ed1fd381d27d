"""What `target/isa` says of a core is what gcc and clang say of it: flags that they take, features that they define."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from bytewright.target.isa.find import ISAS
from bytewright.target.isa.isa import Isa

pytestmark = pytest.mark.run

# Of each feature: the macro of the Arm C Language Extensions, and a bit of its value.
ARM_FEATURES = {
    "dsp": ("__ARM_FEATURE_DSP", 1),
    "fp32": ("__ARM_FP", 4),
    "fp64": ("__ARM_FP", 8),
    "mve": ("__ARM_FEATURE_MVE", 1),
    "mve-float": ("__ARM_FEATURE_MVE", 2),
    "neon": ("__ARM_NEON", 1),
    "neon-dotprod": ("__ARM_FEATURE_DOTPROD", 1),
}
NEWER_THAN_THE_COMPILERS = (
    "cortex-m52",
    "cortex-m85",
    "cortex-a520",
    "cortex-a715",
    "cortex-a720",
    "neoverse-v2",
)
CORES = [isa for isa in ISAS.values() if isa.triple and isa.flags]


def features(*command: str) -> set[str] | None:
    """The features that a compiler defines; None if it does not know the core."""
    command = (*command, "-dM", "-E", "-x", "c", "/dev/null")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        assert re.search(r"unrecognized -mcpu target|does not support '-mcpu", done.stderr), done.stderr
        return None
    values = dict(re.findall(r"^#define (\w+) (\w+)$", done.stdout, re.MULTILINE))
    return {name for name, (macro, bit) in ARM_FEATURES.items() if int(values.get(macro, "0"), 0) & bit}


@pytest.mark.parametrize("isa", CORES, ids=lambda isa: isa.name)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_flags_give_the_features(compiler: str, isa: Isa) -> None:
    command = [f"{isa.triple}-gcc"] if compiler == "gcc" else ["clang", f"--target={isa.triple}"]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    found = features(*command, *isa.flags)
    if found is None:
        assert isa.name in NEWER_THAN_THE_COMPILERS
    else:
        assert found == set(isa.features)


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize(
    "isa", [isa for isa in ISAS.values() if "neon" in isa.features], ids=lambda isa: isa.name
)
def test_application_cores_have_the_features(isa: Isa) -> None:
    found = features("clang", "--target=aarch64-none-elf", f"-mcpu={isa.name}")
    if found is None:
        assert isa.name in NEWER_THAN_THE_COMPILERS
    else:
        assert found & {"neon", "neon-dotprod"} == set(isa.features)
