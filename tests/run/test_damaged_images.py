"""Damaged ELF files: read or refused with BW208, in bounded time, whatever was done to them."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.inspect.read_elf import read_image

pytest.importorskip("elftools")
NUM_IMAGES = 3000 if os.environ.get("BYTEWRIGHT_TESTS") == "thorough" else 150


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
