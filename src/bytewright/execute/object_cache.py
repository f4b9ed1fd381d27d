"""Files kept by name in the user's cache folder: what compilers made, which `objects.py` names by content.

The cache is a convenience, never a condition: whatever is wrong with its folder (it cannot be made or written, an entry
is damaged, another process removed one) reads as an entry that is not there. Writes are atomic, so processes share it.
It holds at most `MOST_BYTES`; what was not used for longest goes first.
"""

import hashlib
import os
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BYTEWRIGHT_CACHE"
MOST_BYTES = 512 * 2**20
_NUM_PARTS = 16  # of the folder, each with its share of the bytes: a write looks at one part alone
_FORMAT = 1  # of entries; another one finds none of these
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """A cache in a folder.

    Attributes:
        folder: Need not be there.
        most_bytes: All files together; one that is larger than a part's share is not kept.
    """

    folder: Path
    most_bytes: int = MOST_BYTES

    def read(self, name: str) -> bytes | None:
        """The content of an entry, which counts as used; None if there is none that is whole."""
        path = self._path(name)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        digest, body = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() != digest:
            return None
        with suppress(OSError):
            os.utime(path)
        return zlib.decompress(body)

    def write(self, name: str, content: bytes) -> None:
        """Keeps an entry, if it can."""
        path = self._path(name)
        body = zlib.compress(content, 1)
        if _DIGEST_BYTES + len(body) > self.most_bytes // _NUM_PARTS:
            return
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_atomically(path, hashlib.sha256(body).digest() + body)
            self._make_room(path.parent)

    def _path(self, name: str) -> Path:
        """Where an entry lies; its name is hexadecimal, so that the first digit spreads entries over the parts."""
        return self.folder / f"objects-{_FORMAT}" / name[0] / name

    def _make_room(self, part: Path) -> None:
        """Removes files of a part until it is within its share, the one that was used last excepted."""
        found: list[tuple[int, str, int]] = []
        with os.scandir(part) as entries:
            for entry in entries:
                with suppress(OSError):  # another process removed it
                    status = entry.stat()
                    found.append((status.st_mtime_ns, entry.path, status.st_size))
        excess = sum(size_bytes for _, _, size_bytes in found) - self.most_bytes // _NUM_PARTS
        for _, path, size_bytes in sorted(found):
            if excess <= 0:
                return
            with suppress(OSError):
                os.unlink(path)
            excess -= size_bytes


def _write_atomically(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix="new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def chosen_cache() -> ObjectCache | None:
    """The cache in $BYTEWRIGHT_CACHE, else in $XDG_CACHE_HOME/bytewright, else in ~/.cache/bytewright.

    None where it is turned off (`BYTEWRIGHT_CACHE=off`), or there is no home.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return None if chosen == "off" else ObjectCache(Path(chosen).absolute())
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():  # the standard says that others are to be ignored
        return ObjectCache(Path(base) / "bytewright")
    try:
        return ObjectCache(Path.home() / ".cache" / "bytewright")
    except RuntimeError:
        return None
