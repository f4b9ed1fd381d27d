import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.target.size import SizeError, format_size, parse_size


@given(st.integers(1, 2**63 - 1))
def test_format_and_parse_are_inverse(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes
    assert parse_size(str(size_bytes)) == size_bytes
    assert parse_size(size_bytes) == size_bytes


@given(st.integers(1, 4096), st.sampled_from([("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)]))
def test_units_are_exact(count: int, unit: tuple[str, int]) -> None:
    assert parse_size(f"{count}{unit[0]}") == parse_size(f"{count} {unit[0]}") == count * unit[1]
    assert parse_size(format_size(count * unit[1])) == count * unit[1]


def test_known_sizes() -> None:
    assert parse_size("64KiB") == 65536
    assert parse_size("512 B") == 512
    assert parse_size("007") == 7
    assert (
        parse_size("64K") == parse_size("64k") == parse_size("0x10000") == parse_size("0X00010000") == 65536
    )
    assert (parse_size("2M"), parse_size("1 G")) == (2**21, 2**30)
    assert format_size(65536) == "64KiB"
    assert format_size(1000) == "1000B"
    assert format_size(3 * 2**30) == "3GiB"
    assert format_size(0) == "0B"


def test_zero_is_allowed_only_where_asked_for() -> None:
    assert parse_size("0", zero_allowed=True) == parse_size(0, zero_allowed=True) == 0
    for zero in ("0", "0KiB", 0):
        with pytest.raises(SizeError, match="zero"):
            parse_size(zero)


@pytest.mark.parametrize("value", [-1, "-1", "-4KiB"])
def test_negative_sizes_are_refused_even_where_zero_is_allowed(value: object) -> None:
    with pytest.raises(SizeError, match="negative"):
        parse_size(value, zero_allowed=True)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "KiB",
        "64kB",
        "64 KB",
        "64kib",
        "1.5KiB",
        "1e3",
        "0x",
        "0x10KiB",
        "0x1g",
        "10h",
        "64Ki",
        "1.5K",
        "6 4",
        "64  KiB",
        "٣",
        1.0,
        True,
        None,
        [1],
    ],
)
def test_garbage_is_refused(value: object) -> None:
    with pytest.raises(SizeError, match="is not a size"):
        parse_size(value)


@pytest.mark.parametrize("value", [2**63, "8589934592GiB", "8589934592G", "9" * 5000, "0x" + "f" * 5000])
def test_sizes_beyond_64_bits_are_refused(value: object) -> None:
    with pytest.raises(SizeError, match="64 bits"):
        parse_size(value)
