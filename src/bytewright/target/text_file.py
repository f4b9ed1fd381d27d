"""Text files of users, read whole but not without end: a device file or a vast one is refused."""

from pathlib import Path

from bytewright.base.input_file import require_regular
from bytewright.diagnostics import CompileError, compile_error
from bytewright.target.size import format_size

LARGEST_BYTES = 4 << 20  # the devicetree of a large board has 0.2 MB


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        CompileError: BW201 if it cannot be read, is larger than `LARGEST_BYTES`, or is not UTF-8.
    """
    try:
        require_regular(path)
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from None
    except ValueError as error:  # a name with a null character
        raise _refused(path, str(error)) from None
    if len(content) > LARGEST_BYTES:
        raise _refused(path, f"it has more than {format_size(LARGEST_BYTES)}, which no such file needs")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refused(path, "it is not UTF-8 text", f"{path}:{line}") from None


def _refused(path: Path, why: str, where: str | None = None) -> CompileError:
    return compile_error("BW201", f"cannot read {str(path)!r}: {why}", where=where)
