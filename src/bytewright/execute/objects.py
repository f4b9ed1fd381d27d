"""Compiles sources to objects, and keeps what compilers made by the content of all that it was made from.

The key of an entry is the SHA-256 of the compiler's identity (path, size, time, version), its flags, the source, and
every file that the source includes, the system's headers among them. Which files a source includes is known from an
earlier compilation of the same source with the same flags: their names are kept, and what they hold now is hashed. So
a header that changed leads to another key. A header that was added could hide one that was included before: the names
of all headers in the include folders are part of the key too.

Commands that may read or write files which are not known here (`-fprofile-use`, `-save-temps`, `@file`, a compiler
behind another program) are not cached, nor is what depends on this processor (`-march=native`), a source into which the
assembler includes a file (`.incbin`), or what a compiler makes that is not known to name all that it includes.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from bytewright.base.programs import execute
from bytewright.diagnostics import CompileError
from bytewright.execute.object_cache import ObjectCache, chosen_cache
from bytewright.execute.tools import compile_c

_MOST_LISTS = 16  # of included files, kept for one source with one set of flags
_DEPENDENCIES = "dependencies.d"
# Variables that change what a compiler includes, or what it is.
_ENVIRONMENT = (
    "CPATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "CCC_OVERRIDE_OPTIONS",
    "SDKROOT",
    "SOURCE_DATE_EPOCH",
)
# Those that name all files that they include; tcc leaves out the system's, and is as quick as the cache.
_KNOWN_COMPILERS = re.compile(r"Free Software Foundation|clang version")
_WITH_FILES = "profile|coverage|plugin|dump|list|file|opt-info|save|trace|module|record|split|graph|usage"
_PLAIN_FLAG = re.compile(
    rf"-(?:[OU]\w*|D.+|g\d?|c|S|std=[\w:]+|pedantic(?:-errors)?|W(?![alp],)\S+|m(?!\S*native)\S+"
    rf"|f(?!\S*(?:{_WITH_FILES}))\S+|I(?!/).+|-target=\S+|-sysroot=\S+|static)"
)


def compile_object(
    command: Sequence[str],
    source: str | Path,
    product: str,
    *,
    folder: Path,
    what: str,
    beside_flags: Sequence[str] = (),
    besides: Sequence[str] = (),
) -> None:
    """Compiles one source in a build folder, or takes from the cache what an equal compilation made.

    Args:
        command: The compiler and its flags, `-c` or `-S` among them. Paths in the build folder become relative to it,
            so that objects do not depend on where it is.
        source: A file of the build folder.
        product: The name in the folder of what is written.
        folder: The build folder.
        what: What the compiler is, for messages.
        beside_flags: Flags for which the command writes other files.
        besides: The names of these in the folder.

    Raises:
        CompileError: BW501 or BW502, of the compiler.
    """
    flags, (name,) = _relative(command, folder), _relative([str(source)], folder)
    words, products = [*flags, *beside_flags, name], (product, *besides)
    cache = chosen_cache() if _is_plain(flags[1:]) else None
    key = None if cache is None else _key_of_command(words, folder, name, len(products))
    if cache is None or key is None:
        compile_c([*words, "-o", product], directory=folder, what=what)
    elif not _take(cache, key, folder, products):
        began = time.time_ns()
        compile_c([*words, "-MD", "-MF", _DEPENDENCIES, "-o", product], directory=folder, what=what)
        with suppress(OSError, ValueError):
            _keep(cache, key, folder, products, _included(folder, name, began))


def build_from_sources(
    command: Sequence[str],
    sources: Sequence[Path],
    product: Path,
    *,
    folder: Path,
    link: Sequence[str] = (),
    applications: Sequence[Path] = (),
) -> None:
    """Compiles sources of a build folder, each to an object there, and links them.

    Args:
        command: The compiler and its flags, which it is given for linking too.
        sources: Files of the build folder.
        product: What is linked.
        folder: The build folder.
        link: Further flags for linking.
        applications: C files from elsewhere. They may include anything that lies beside them, and are always compiled.

    Raises:
        CompileError: BW501 or BW502, of the compiler.
    """
    what = f"the C compiler '{Path(command[0]).name}'"
    objects = [f"{product.name}_{index}.o" for index, _ in enumerate(sources)]
    for source, compiled in zip(sources, objects, strict=True):
        compile_object([*command, "-c"], source, compiled, folder=folder, what=what)
    linking = [*command, *link, *map(str, applications), *objects]
    compile_c([*linking, "-o", str(product), "-lm"], directory=folder, what=what)


def _relative(words: Iterable[str], folder: Path) -> list[str]:
    """Words of a command with paths in the build folder relative to it."""
    found: list[str] = []
    for word in words:
        front = "-I" if word.startswith("-I") else ""
        path = Path(word.removeprefix(front))
        own = next((own for own in (folder.resolve(), folder.absolute()) if path.is_relative_to(own)), None)
        found.append(word if own is None else f"{front}{path.relative_to(own)}")
    return found


def _is_plain(flags: Sequence[str]) -> bool:
    """Whether a command reads its source and what that includes, writes its products, and nothing else."""
    rest = list(flags)
    while "-include" in rest:  # a file, which is then among those that are included
        at = rest.index("-include")
        del rest[at : at + 2]
    return all(_PLAIN_FLAG.fullmatch(flag) for flag in rest)


def _key_of_command(words: Sequence[str], folder: Path, source: str, num_products: int) -> str | None:
    """The key of what is known without the included files; None for a compiler that does not name them."""
    path = shutil.which(words[0])
    if path is None or not (folder / source).is_file():
        return None
    status = Path(path).stat()
    identity = _identity(path, os.path.realpath(path), status.st_size, status.st_mtime_ns)
    if identity is None:
        return None
    roots = [folder / word.removeprefix("-I") for word in words if word.startswith("-I")]
    headers = [sorted(str(path.relative_to(root)) for path in root.rglob("*.h")) for root in roots]
    environment = [os.environ.get(name) for name in _ENVIRONMENT]
    content = _hash_of((folder / source).read_bytes())
    return _hash_of(json.dumps([identity, words, num_products, environment, headers, content]).encode())


@lru_cache(maxsize=64)
def _identity(
    path: str, real_path: str, size_bytes: int, changed: int
) -> tuple[str, str, int, int, str] | None:
    """Which compiler it is; None if it is none that is known."""
    try:
        version = execute([path, "--version"], timeout_seconds=60, what=f"'{path}'").stdout
    except CompileError:
        return None
    if _KNOWN_COMPILERS.search(version) is None:
        return None
    return path, real_path, size_bytes, changed, version


def _hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=4096)
def _hash_of_system_file(path: str, size_bytes: int, changed: int, node: int) -> str:
    """The hash of a file outside of the build folder, read once for each state that it is seen in."""
    del size_bytes, changed, node
    return _hash_of(Path(path).read_bytes())


def _hash_of_file(folder: Path, name: str) -> str:
    path = folder / name
    if not Path(name).is_absolute():
        return _hash_of(path.read_bytes())
    status = path.stat()
    return _hash_of_system_file(name, status.st_size, status.st_mtime_ns, status.st_ino)


def _key_of_object(key: str, folder: Path, included: Sequence[str]) -> str:
    """The key of an entry: of the command, and of each included file with what it holds now."""
    known = [key, [(name, _hash_of_file(folder, name)) for name in included]]
    return _hash_of(json.dumps(known).encode())


def _included(folder: Path, source: str, began: int) -> list[str]:
    """The files that a compilation included, from the rule for `make` that it wrote.

    Raises:
        ValueError: The rule is not understood, a file was changed meanwhile, or one includes what compilers do not see.
    """
    rule = (folder / _DEPENDENCIES).read_text(encoding="utf-8").replace("\\\n", " ")
    _, colon, names = rule.partition(": ")
    words = [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in re.findall(r"(?:\\.|\S)+", names)]
    if not colon or source not in words:
        raise ValueError(f"no rule for {source}")
    if any((folder / name).stat().st_mtime_ns >= began for name in words):
        raise ValueError(f"a file was changed while {source} was compiled")
    own = [word for word in words if not Path(word).is_absolute()]
    if any(b"incbin" in (folder / name).read_bytes() for name in own):
        raise ValueError(f"the assembler includes a file that no rule names into {source}")
    return [word for word in dict.fromkeys(words) if word != source]


def _lists(cache: ObjectCache, key: str) -> list[list[str]]:
    """The lists of included files that were met for a command, the last one first."""
    content = cache.read(key)
    return [] if content is None else json.loads(content)


def _take(cache: ObjectCache, key: str, folder: Path, products: Sequence[str]) -> bool:
    """Writes the products of an entry into a build folder, if there is one."""
    for included in _lists(cache, key):
        try:
            content = cache.read(_key_of_object(key, folder, included))
        except OSError:  # one of the files is not there
            continue
        if content is not None:
            for product, own in zip(products, _unpacked(content), strict=True):
                (folder / product).write_bytes(own)
            return True
    return False


def _keep(cache: ObjectCache, key: str, folder: Path, products: Sequence[str], included: list[str]) -> None:
    """Stores the products of a compilation, and which files it included."""
    contents = [(folder / product).read_bytes() for product in products]
    cache.write(_key_of_object(key, folder, included), _packed(contents))
    others = [names for names in _lists(cache, key) if names != included]
    cache.write(key, json.dumps([included, *others[: _MOST_LISTS - 1]]).encode())


def _packed(contents: Sequence[bytes]) -> bytes:
    """A line with the sizes, then the contents."""
    sizes = json.dumps([len(content) for content in contents]).encode()
    return b"\n".join([sizes, b"".join(contents)])


def _unpacked(entry: bytes) -> list[bytes]:
    head, _, whole = entry.partition(b"\n")
    contents: list[bytes] = []
    for size_bytes in json.loads(head):
        contents.append(whole[:size_bytes])
        whole = whole[size_bytes:]
    return contents
