"""Damaged ELF files: read or refused with BW208, in bounded time, whatever was done to them."""

from __future__ import annotations

import random
import struct
import subprocess
import time
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.elf.image import read_image
from support.tiers import THOROUGH

NUM_IMAGES = 3000 if THOROUGH else 150


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("image")
    source = folder / "app.c"
    source.write_text("int x = 5; static char y[100]; int main(void) { return x + y[0]; }\n")
    subprocess.run(["gcc", "-o", str(folder / "app"), str(source)], check=True, timeout=60)
    content = (folder / "app").read_bytes()
    assert any(symbol.name == "x" for symbol in read_image(folder / "app").symbols)
    return content


def _refused(content: bytes, path: Path) -> bool:
    path.write_bytes(content)
    start = time.process_time()
    refusal: CompileError | None = None
    try:
        read_image(path)
    except CompileError as error:
        refusal = error
    assert time.process_time() - start < 5
    if refusal is None:
        return False
    assert {diagnostic.code for diagnostic in refusal.diagnostics} == {"BW208"}
    assert len(str(refusal)) < 1000
    return True


def test_mutated_images_are_read_or_refused(image: bytes, tmp_path: Path) -> None:
    rng = random.Random(8)
    num_refused = 0
    for _ in range(NUM_IMAGES):
        content = bytearray(image)
        for _ in range(rng.randint(1, 6)):
            first, end = rng.choice([(0, 64), (len(content) - 1200, len(content)), (0, len(content))])
            content[rng.randrange(first, end)] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        if rng.random() < 0.15:
            del content[rng.randrange(len(content)) :]
        num_refused += _refused(bytes(content), tmp_path / "app")
    assert 0 < num_refused < NUM_IMAGES


def _with_field(image: bytes, offset: int, form: str, value: int) -> bytes:
    content = bytearray(image)
    struct.pack_into(form, content, offset, value)
    return bytes(content)


def test_impossible_counts_and_sizes_are_refused(image: bytes, tmp_path: Path) -> None:
    path = tmp_path / "app"
    (section_table,) = struct.unpack_from("<Q", image, 0x28)
    for number in range(1, 12):  # sh_size of a section: 8 EiB
        content = _with_field(image, section_table + 64 * number + 0x20, "<Q", 1 << 62)
        assert _refused(content, path), number
    no_count = _with_field(_with_field(image, 0x3C, "<H", 0), section_table + 0x20, "<Q", 1 << 40)
    assert _refused(no_count, path)  # as many sections as the first one says
    assert _refused(_with_field(image, 0x3A, "<H", 0), path)  # sections of 0 B
    assert _refused(_with_field(image, 0x38, "<H", 60_000), path)  # segments
    assert _refused(b"\x7fELF", path)
    assert _refused(b"", path)


@pytest.mark.parametrize("end", [b"a", b"\0"])
def test_names_without_an_end_are_read_in_bounded_time(end: bytes, tmp_path: Path) -> None:
    """A table of 50,000 symbols, whose names all begin in one run of 2 MB; with an end mark they are one name."""
    names = b"\0" + b"a" * 2_000_000 + end
    table = struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 0, 4) * 50_000
    section_names = b"\0" if end == b"\0" else b""  # it would be the end otherwise
    assert _refused(_linked(names, table, section_names), tmp_path / "symbols")


def test_names_of_sections_without_an_end_are_read_in_bounded_time(tmp_path: Path) -> None:
    assert _refused(_linked(b"\0", b"", b"a" * 2_000_000, num_more=9000), tmp_path / "sections")


def _linked(names: bytes, table: bytes, section_names: bytes, num_more: int = 0) -> bytes:
    """A linked image of 64 bits with these tables alone, the names at its end."""
    tables = ((2, table, 24), (3, names, 0), (3, section_names, 0))
    headers, content = [bytes(64)], b""
    begin = 64 + 64 * (1 + len(tables) + num_more)
    for kind, data, entry_bytes in tables:
        where = (begin + len(content), len(data))
        headers.append(struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, *where, 2, 0, 1, entry_bytes))
        content += data
    headers += [struct.pack("<IIQQQQIIQQ", 0, 8, 0, 0, 0, 0, 0, 0, 1, 0)] * num_more
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, len(headers), 3)
    return ident + head + b"".join(headers) + content
