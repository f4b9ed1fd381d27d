"""The harness's own C is as free of warnings as the C that it goes round."""

from pathlib import Path

import pytest

from bytewright.execute.boards.layout import board_table, lay_out
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import StepHarness, write_harness
from bytewright.execute.description import read_bundle
from bytewright.execute.tools import compile_c
from support.tiny_bundle import write_tiny_bundle

FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-I../include"]
HOST_SOURCES = ["adapter.c", "main.c", "port_host.c", "host_library.c", "step_clock.c", "counter.c"]


def harness_folder(directory: Path, kind: str) -> Path:
    write_tiny_bundle(directory, blob=kind == "blob", generated_workspace=kind == "generated_workspace")
    bundle = read_bundle(directory)
    folder = directory / "harness"
    folder.mkdir()
    own = [("harness", name) for name in ("main.c", "port_host.c", "host_library.c")]
    boards = [("boards", "port_board.c"), ("boards", "counter.c")]
    layout = lay_out(place_on_board(bundle.plan))
    write_harness(bundle, folder, [*own, *boards], board_table(layout, bundle.plan), steps=StepHarness.CLOCK)
    return folder


@pytest.mark.run
@pytest.mark.parametrize("kind", ["caller", "blob", "generated_workspace"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warnings_on_the_host(tmp_path: Path, compiler: str, kind: str) -> None:
    folder = harness_folder(tmp_path, kind)
    for source in [*HOST_SOURCES, *(str(path) for path in sorted((tmp_path / "src").glob("*.c")))]:
        compile_c([compiler, *FLAGS, "-fPIC", "-c", source, "-o", "out.o"], directory=folder, what=source)
    assert (folder / "out.o").is_file()


@pytest.mark.board
@pytest.mark.parametrize("kind", ["caller", "blob", "generated_workspace"])
@pytest.mark.parametrize("core", ["cortex-m55", "cortex-m4"])
def test_no_warnings_on_the_board(tmp_path: Path, core: str, kind: str) -> None:
    folder = harness_folder(tmp_path, kind)
    flags = [*FLAGS, f"-mcpu={core}", "-mthumb", "-mfloat-abi=hard"]
    for source in ("adapter.c", "main.c", "port_board.c"):
        compile_c(["arm-none-eabi-gcc", *flags, "-c", source, "-o", "out.o"], directory=folder, what=source)
    assert (folder / "out.o").is_file()
