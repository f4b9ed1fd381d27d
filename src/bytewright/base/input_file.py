"""Reading what the user names: regular files alone, so that nothing waits for a pipe or reads a device for ever."""

import errno
import os
import stat
from pathlib import Path

# Descriptors that a shell has opened already: `plan <(make-buffers)` works.
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def read_input(path: Path) -> bytes:
    """The content of a file.

    Raises:
        OSError: It cannot be read, or is no regular file; `strerror` says so in either case.
    """
    require_regular(path)
    return path.read_bytes()


def require_regular(path: Path) -> None:
    """Nothing, if this is a file that can be read to its end.

    Raises:
        OSError: There is none, or it is a folder, a device, or a pipe that nobody may ever write to.
    """
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # a null byte in the path
        raise OSError(errno.EINVAL, str(error)) from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and str(path).startswith(_OPEN_ALREADY)):
        raise OSError(errno.EINVAL, "it is not a regular file")
