"""The bytes of parameter pools in a bundle: as numbers, as they are, and their digest."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from bytewright.codegen.parameters import BYTES_PER_LINE, c_numbers
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.options import MAX_TEXT_BYTES, Embedding, Options
from bytewright.record.fnv1a import OFFSET_BASIS, PRIME, fnv1a_64
from bytewright.target import Overrides, ProviderOption, apply_overrides, load_target
from bytewright.target.model import Provider
from support.costly_models import heavy


def random_bytes(size_bytes: int, seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, size_bytes, dtype=np.uint8).tobytes()


def fnv1a_byte_by_byte(data: bytes, digest: int) -> int:
    for byte in data:
        digest = ((digest ^ byte) * PRIME) % 2**64
    return digest


@pytest.mark.parametrize("size_bytes", [0, 1, 2, 255, 1000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 600_000])
def test_the_digest_is_that_of_the_definition(size_bytes: int) -> None:
    data = random_bytes(size_bytes, size_bytes)
    assert fnv1a_64(data) == fnv1a_byte_by_byte(data, OFFSET_BASIS)
    assert fnv1a_64(b"\xff" * 300, 7) == fnv1a_byte_by_byte(b"\xff" * 300, 7)


def test_the_digest_of_pieces_is_that_of_the_whole() -> None:
    data = random_bytes(1000, 3)
    for cut in (0, 1, 500, 1000):
        assert fnv1a_64(data[cut:], fnv1a_64(data[:cut])) == fnv1a_64(data)


@pytest.mark.parametrize("size_bytes", [0, 1, 15, 16, 17, 4096, (1 << 18) - 1, 1 << 18, (1 << 18) + 5])
def test_numbers_are_those_of_the_bytes_in_lines(size_bytes: int) -> None:
    data = random_bytes(size_bytes, size_bytes)
    rows = [data[i : i + BYTES_PER_LINE] for i in range(0, len(data), BYTES_PER_LINE)]
    assert c_numbers(data).decode() == "".join("".join(f"{byte}," for byte in row) + "\n" for row in rows)


def test_numbers_up_to_a_size_and_the_assembler_beyond() -> None:
    assert Embedding.AUTO.as_numbers(MAX_TEXT_BYTES)
    assert not Embedding.AUTO.as_numbers(MAX_TEXT_BYTES + 1)
    assert Embedding.NUMBERS.as_numbers(MAX_TEXT_BYTES + 1)
    assert Embedding.INCBIN.as_numbers(0)
    assert not Embedding.INCBIN.as_numbers(1)


def compiled(content: bytes, folder: Path, embedding: Embedding, provider: Provider) -> Compiled:
    path = folder / "m.tflite"
    path.write_bytes(content)
    target = apply_overrides(load_target("host"), Overrides(provider=(ProviderOption("rodata", provider),)))
    return compile_model(path, target, Options(embed=embedding))


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize("embedding", list(Embedding))
def test_a_bundle_holds_each_byte_once_in_the_form_that_was_asked_for(
    embedding: Embedding, provider: Provider, tmp_path: Path
) -> None:
    files = compiled(heavy(1 << 14), tmp_path, embedding, provider).files
    numbers, binary, blob = (
        f"{path}"
        for path in (
            "include/m_rodata_parameters.inc",
            "include/m_rodata_parameters.bin",
            "parameters/rodata.bin",
        )
    )
    as_numbers, is_lent = embedding is not Embedding.INCBIN, provider is Provider.CALLER
    assert (numbers in files) == as_numbers
    assert (binary in files) == (not as_numbers and not is_lent)
    assert (blob in files) == is_lent
    assert (b".incbin" in files["src/m_parameters.c"]) == (binary in files)
    assert (b"-fno-lto" in files["CMakeLists.txt"]) == (binary in files)
    assert (b"RODATA_PARAMETERS_INITIALIZER" in files["include/m.h"]) == as_numbers
    contents = [files[path] for path in (binary, blob) if path in files]
    if as_numbers:
        contents.append(bytes(int(number) for number in files[numbers].split(b",")[:-1]))
    assert len(set(contents)) == 1


def test_memory_is_a_small_multiple_of_the_weights(tmp_path: Path) -> None:
    """The file, the constants of the graph, and the pool; what else there is does not grow with them."""
    peaks: list[int] = []
    sizes = (4 << 20, 12 << 20)
    for size_bytes in sizes:
        content = heavy(size_bytes)
        path = tmp_path / "m.tflite"
        path.write_bytes(content)
        del content
        tracemalloc.start()
        try:
            compile_model(path, load_target("host"))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    growth = (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
    assert growth <= 3.5, peaks
