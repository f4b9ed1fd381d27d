import errno
import re
import resource
import sys
import tempfile
from pathlib import Path

import pytest

from bytewright.base.programs import execute
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.tools import (
    build_folder,
    compile_c,
    find_cross_compiler,
    find_cross_linker,
    find_host_compiler,
    find_tool,
)
from bytewright.target.isa.find import require_isa


def diagnostic_of(caught: pytest.ExceptionInfo[CompileError]) -> Diagnostic:
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_a_missing_tool_names_its_package() -> None:
    with pytest.raises(CompileError) as caught:
        find_tool("no-such-tool-here", "no-such-package")
    assert diagnostic_of(caught).code == "BW501"
    assert "'no-such-tool-here' is not installed" in diagnostic_of(caught).message
    assert "apt-get install no-such-package" in (diagnostic_of(caught).help or "")


def test_the_environment_chooses_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{sys.executable} -O1")
    assert find_host_compiler() == [sys.executable, "-O1"]


def test_a_missing_compiler_of_the_environment_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    with pytest.raises(CompileError) as caught:
        find_host_compiler()
    assert diagnostic_of(caught).code == "BW501"
    assert "the environment's CC, 'no-such-compiler -O1'" in diagnostic_of(caught).message


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError) as caught:
        find_host_compiler()
    assert diagnostic_of(caught).code == "BW501"
    assert "apt-get install gcc" in (diagnostic_of(caught).help or "")


def test_a_failing_tool_shows_its_first_lines(tmp_path: Path) -> None:
    program = "import sys; [print('line', n, file=sys.stderr) for n in range(40)]; sys.exit(3)"
    with pytest.raises(CompileError) as caught:
        compile_c([sys.executable, "-c", program], directory=tmp_path, what="the compiler")
    diagnostic = diagnostic_of(caught)
    assert (diagnostic.code, diagnostic.message) == ("BW502", "the compiler failed with exit status 3")
    assert diagnostic.notes[0] == "line 0"
    assert diagnostic.notes[-1] == "... and 28 more lines"


def test_a_tool_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        execute(
            [sys.executable, "-c", "import time; time.sleep(30)"],
            directory=tmp_path,
            timeout_seconds=0.2,
            what="the run",
        )
    assert diagnostic_of(caught).message == "the run did not end within 0.2 s and was stopped"


def test_a_tool_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        execute([str(tmp_path)], directory=tmp_path, timeout_seconds=1, what="the run")
    assert diagnostic_of(caught).code == "BW502"


def test_a_cross_compiler_by_its_short_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs of these names, of which gcc says where its C library is."""
    for name in ("arm-none-eabi-gcc", "clang", "my-gcc"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho /usr/share/arm/lib/libc.a\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    isa = require_isa("cortex-m4")
    gcc, clang, own = (str(tmp_path / name) for name in ("arm-none-eabi-gcc", "clang", "my-gcc"))
    assert find_cross_compiler(isa) == find_cross_compiler(isa, "gcc") == [gcc, *isa.flags]
    assert find_cross_compiler(isa, own) == find_cross_linker(isa, own) == [own, *isa.flags]
    assert find_cross_compiler(isa, "clang") == [
        clang,
        "--target=arm-none-eabi",
        "--sysroot=/usr/share/arm",
        *isa.flags,
    ]
    assert find_cross_linker(isa, "clang") == [gcc, *isa.flags]


@pytest.mark.parametrize(
    ("present", "chosen", "package"),
    [
        ((), "gcc", "gcc-arm-none-eabi"),
        ((), "clang", "clang"),
        (("clang",), "clang", "gcc-arm-none-eabi"),
        (("clang", "arm-none-eabi-gcc"), "clang", "libnewlib-arm-none-eabi"),
    ],
)
def test_what_is_missing_for_a_board(
    present: tuple[str, ...], chosen: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in present:
        (tmp_path / name).write_text(
            "#!/bin/sh\necho libc.a\n"
        )  # what gcc says of a file that it does not have
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError) as caught:
        find_cross_compiler(require_isa("cortex-m4"), chosen)
    assert diagnostic_of(caught).code == "BW501"
    assert f"apt-get install {package} " in (diagnostic_of(caught).help or "")


def test_a_folder_to_build_in_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with (
        pytest.raises(CompileError, match=r"BW502.*the folder to build in cannot be written"),
        build_folder(),
    ):
        pass


def test_a_folder_to_build_in_that_is_full() -> None:
    """What is written there is refused, by the system, without a word on which file it is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(CompileError, match=r"BW502.*File too large"), build_folder() as folder:
            (folder / "program").write_bytes(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(CompileError, match="BW502"), build_folder() as folder:
        (folder / "missing" / "program").write_bytes(b"")


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        OSError(errno.ENOSPC, "No space left on device"),
        PermissionError(errno.EACCES, "Permission denied", "results.npy"),
    ],
)
def test_what_fails_elsewhere_is_no_matter_of_the_folder_to_build_in(error: OSError) -> None:
    with pytest.raises(OSError, match=re.escape(str(error))) as caught, build_folder():
        raise error
    assert caught.value is error
