"""As a user installs it: from the sdist a wheel, from the wheel a command; and a vendor's script with one line more."""

from __future__ import annotations

import json
import shutil
import site
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.digits_bundle import DIGITS
from support.shared_models import MODELS
from support.tiers import THOROUGH

pytestmark = pytest.mark.board
ROOT = Path(__file__).resolve().parents[2]
BOARDS = MODELS.parent / "boards"
VENDOR, NRF = BOARDS / "STM32H743ZITX_FLASH.ld", BOARDS / "nrf.ld"
VWW = MODELS / "vww_96_int8.tflite"
NOT_IN_SDIST = {".ci", ".gitignore", ".gitattributes", ".github"}
FLAGS = (
    "-mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard -std=c99 -O2 -ffp-contract=off -fno-strict-aliasing "
    "-ffunction-sections -Wl,--gc-sections -nostartfiles"
)
MAIN = """
#include "vww.h"
static VWW_ALIGNED(VWW_DTCMRAM_WORKSPACE_ALIGN) VWW_SECTION(VWW_DTCMRAM_WORKSPACE_SECTION)
uint8_t vww_dtcmram_workspace[VWW_DTCMRAM_WORKSPACE_SIZE];
static vww_context context;
static int8_t image[VWW_INPUT_INPUT_1_INT8_SIZE], person[VWW_OUTPUT_IDENTITY_INT8_SIZE];
void Reset_Handler(void);
__attribute__((section(".isr_vector"), used)) static void (*const vectors[])(void) = {0, Reset_Handler};
void Reset_Handler(void)
{
    const vww_workspaces memory = {.dtcmram = {vww_dtcmram_workspace, sizeof vww_dtcmram_workspace}};
    const vww_inputs inputs = {.input_1_int8 = image};
    const vww_outputs outputs = {.identity_int8 = person};
    int32_t status = vww_set_workspaces(&context, &memory);
    while (status == VWW_OK) { status = vww_run(&context, &inputs, &outputs); }
    for (;;) { }
}
"""
Shell = Callable[..., subprocess.CompletedProcess[str]]


def run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def must(*words: object, folder: Path) -> str:
    done = run(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as the sdist has them, unpacked."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone, so nobody knows what belongs to it")
    folder = tmp_path_factory.mktemp("sources")
    names = must("git", "ls-files", "-z", folder=ROOT).split("\0")
    for name in filter(None, names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    must(sys.executable, "setup.py", "-q", "sdist", folder=folder)
    with tarfile.open(next((folder / "dist").iterdir())) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


@pytest.fixture(scope="module")
def environment(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with nothing of this tree but the packages that it needs."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    must(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, sdist, folder=folder)
    (wheel,) = folder.glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    must(sys.executable, "-m", "venv", "--without-pip", "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    must(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, folder=folder)
    # A path in such a file is looked up, and files of this kind in it are not: so this tree stays out.
    (installed,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (installed / "needed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return installed


@pytest.fixture
def bytewright(environment: Path, tmp_path: Path) -> Shell:
    """The installed command, in a folder of its own."""
    command = environment.parents[2] / "bin" / "bytewright"
    return lambda *words: run(command, *words, folder=tmp_path)


def test_the_sdist_has_all_that_is_under_version_control(sdist: Path) -> None:
    names = {Path(name) for name in must("git", "ls-files", "-z", folder=ROOT).split("\0") if name}
    wanted = {name for name in names if name.parts[0] not in NOT_IN_SDIST}
    assert [name for name in sorted(wanted) if not (sdist / name).is_file()] == []


def test_without_the_native_core_the_same_is_written(
    bytewright: Shell, environment: Path, tmp_path: Path
) -> None:
    """What is compiled, and the core that it was compiled with, are the wheel's."""
    core = environment / "bytewright" / "plan" / "_native.abi3.so"
    assert bytewright("example", "digits", "-o", ".").returncode == 0
    assert (tmp_path / "digits.tflite").read_bytes() == DIGITS.read_bytes()
    away = core.rename(tmp_path / core.name)
    try:
        done = bytewright("compile", "digits.tflite", "-o", "without", "--target", "mps3-an547")
    finally:
        away.rename(core)
    assert done.returncode == 0, done.stderr
    assert bytewright("compile", "digits.tflite", "-o", "with", "--target", "mps3-an547").returncode == 0
    written = {
        folder: {
            path.relative_to(tmp_path / folder): path.read_bytes()
            for path in (tmp_path / folder).rglob("*")
            if path.is_file()
        }
        for folder in ("with", "without")
    }
    assert written["with"] == written["without"]
    assert bytewright("help", "BW301").stdout.startswith("BW301: ")


@pytest.mark.skipif(not (VENDOR.is_file() and VWW.is_file()), reason="../shared is missing")
def test_a_vendors_linker_script_to_a_profile_in_five_commands(bytewright: Shell, tmp_path: Path) -> None:
    """One file is edited, by one line; without it the program does not link."""
    shutil.copy(VENDOR, tmp_path / "board.ld")
    shutil.copy(VWW, tmp_path / "vww.tflite")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    commands = (
        ("targets", "import", "board.ld", "--isa", "cortex-m7", "-o", "board.toml"),
        ("compile", "vww.tflite", "-o", "vww", "--target", "./board.toml"),
    )
    for words in commands:
        done = bytewright(*words)
        assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1].partition(": ")[2].partition("   ")[0]
    assert line == "INCLUDE vww_sections.ld"
    sources = sorted(path.relative_to(tmp_path) for path in (tmp_path / "vww" / "src").glob("*.c"))
    objects = [path.with_suffix(".o").name for path in sources]
    must("arm-none-eabi-gcc", *FLAGS.split(), "-Ivww/include", "-c", "main.c", *sources, folder=tmp_path)
    link = (
        "arm-none-eabi-gcc",
        *FLAGS.split(),
        "-T",
        "board.ld",
        "-Lvww",
        "main.o",
        *objects,
        "-o",
        "app.elf",
    )
    refused = run(*link, folder=tmp_path)
    assert refused.returncode != 0
    assert "undefined reference to `vww_sections_ld'" in refused.stderr
    script = (tmp_path / "board.ld").read_text("utf-8")
    (tmp_path / "board.ld").write_text(
        script.replace("\n  .bss :", f"\n  {line}\n  .bss :"), encoding="utf-8"
    )
    must(*link, folder=tmp_path)
    checked = bytewright("check", "vww", "--elf", "app.elf")
    assert checked.returncode == 0, checked.stderr
    assert "apart from all else" in checked.stdout
    profiled = bytewright("profile", "vww", "--on", "qemu", "--json")
    assert profiled.returncode == 0, profiled.stderr
    document = json.loads(profiled.stdout)
    assert (document["stand_in"]["board"], document["stand_in"]["core"]) == ("mps2-an500", "cortex-m7")
    assert document["total"][0]["instructions"] > 1_000_000


@pytest.mark.skipif(
    not THOROUGH, reason="test_own_board.py has a script of this shape: BYTEWRIGHT_TESTS=thorough"
)
@pytest.mark.skipif(not NRF.is_file(), reason="../shared/boards is missing")
def test_a_script_with_flash_that_the_plan_does_not_use_runs_as_it_is(
    bytewright: Shell, tmp_path: Path
) -> None:
    for path in NRF.parent.glob("nrf*.ld"):
        shutil.copy(path, tmp_path)
    text = NRF.read_text("utf-8")
    lines = [line for line in text.splitlines(keepends=True) if "EXTFLASH" not in line]
    assert len(lines) == len(text.splitlines()) - 1
    (tmp_path / "without.ld").write_text("".join(lines), encoding="utf-8")
    documents = []
    for name in ("nrf", "without"):
        imported = bytewright(
            "targets", "import", f"{name}.ld", "--isa", "cortex-m4f", "--name", "nrf", "-o", "t.toml"
        )
        assert imported.returncode == 0, imported.stderr
        done = bytewright("run", DIGITS, "--target", "./t.toml", "--on", "qemu", "--json")
        assert done.returncode == 0, done.stderr
        documents.append(json.loads(done.stdout))
    assert documents[0] == documents[1]
    assert documents[0]["instructions"] > 10_000
