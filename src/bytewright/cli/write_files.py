"""Files that a command writes where the user says: all of them or none, and never over what it has read.

Each is complete beside its destination before the first one is moved there, so an interrupt leaves each file as it was
or as it is to be. A link is followed; what is no regular file (a device, a pipe) is refused, because moving a file
there would replace it.
"""

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import Collector, Diagnostic, compile_error


@dataclass(frozen=True, slots=True)
class _Ready:
    """A file that is complete beside its destination."""

    fresh: Path
    old: Path
    destination: Path


def make_folder(folder: Path) -> None:
    """Makes a folder for files, with those around it, unless it is there.

    Raises:
        CompileError: BW206.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise compile_error("BW206", f"cannot write '{folder}': {error.strerror or error}") from error


def write_files(contents: Sequence[tuple[Path, bytes | str]], read: Iterable[Path] = ()) -> None:
    """Writes files.

    Args:
        contents: Where to, and what.
        read: The command's inputs.

    Raises:
        CompileError: BW206 for each file that cannot be written; then none is.
    """
    problems = Collector()
    ready: list[_Ready] = []
    inputs = [path.resolve() for path in read if path.exists()]
    with ExitStack() as stack:
        for path, content in contents:
            try:
                destination = _destination(path, inputs, [entry.destination for entry in ready])
                folder = Path(tempfile.mkdtemp(prefix=".bytewright-", dir=destination.parent))
                stack.callback(_remove, folder)
                entry = _Ready(folder / "new", folder / "old", destination)
                entry.fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
                if destination.exists():
                    shutil.copymode(destination, entry.fresh)
                    _keep(destination, entry.old)
                ready.append(entry)
            except (OSError, ValueError) as error:
                problems.add(_refusal(path, error))
        problems.stop_if_any()
        try:
            for entry in ready:
                os.replace(entry.fresh, entry.destination)
        except BaseException as error:
            _put_back(ready)
            if isinstance(error, OSError):
                problems.add(_refusal(Path(error.filename2 or error.filename), error))
                problems.stop_if_any()
            raise


def _destination(path: Path, inputs: Sequence[Path], others: Sequence[Path]) -> Path:
    """The file itself, links followed.

    Raises:
        OSError: It is nothing that may be replaced.
    """
    destination = Path(os.path.realpath(path))
    if destination.is_symlink():  # in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if destination in inputs:
        raise OSError(errno.EINVAL, "it is also an input of this command")
    if destination in others:
        raise OSError(errno.EINVAL, "it is named twice")
    if destination.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if destination.exists() and not destination.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    if destination.exists() and not os.access(destination, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return destination


def _keep(destination: Path, old: Path) -> None:
    try:
        os.link(destination, old)
    except OSError:
        shutil.copy2(destination, old)


def _remove(folder: Path) -> None:
    with suppress(OSError):  # what was to be written is, or is refused already
        shutil.rmtree(folder, ignore_errors=True)


def _put_back(ready: Sequence[_Ready]) -> None:
    for entry in ready:
        if entry.fresh.exists():
            continue  # not moved
        with suppress(OSError):
            if entry.old.exists():
                os.replace(entry.old, entry.destination)
            else:
                entry.destination.unlink()


def _refusal(path: Path, error: OSError | ValueError) -> Diagnostic:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    there = next(above for above in path.absolute().parents if os.path.lexists(above))
    is_alone = there != path.absolute().parent and there.is_dir() and os.access(there, os.W_OK)
    help_text = f"mkdir -p {shlex.quote(str(path.parent))}" if is_alone else None
    return Diagnostic("BW206", f"cannot write '{path}': {reason}", help=help_text)
