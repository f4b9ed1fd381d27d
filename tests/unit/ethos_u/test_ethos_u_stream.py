"""Streams decoded: which bytes they touch, what is refused, and that no damage does worse than that."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ethos_u.accesses import Access, accesses, element_offsets, region_uses, written_bytes
from bytewright.ethos_u.decode import decode
from bytewright.ethos_u.execute import check_within, execute
from bytewright.ethos_u.operations import (
    DmaCopy,
    Element,
    FeatureMap,
    Pooling,
    PoolingMode,
    Result,
    Rounding,
    Upscale,
    Window,
)
from bytewright.ethos_u.payload import parse_payload
from bytewright.target.isa.ethos_u import ACCELERATORS
from bytewright.target.isa.find import find_isa, require_isa
from support.ethos_u import (
    ADD_ON_CPU,
    DEDICATED,
    ONLY,
    SEPARATE,
    SHARED,
    U55,
    U65,
    VelaOperator,
    needs_vela,
    vela,
    vela_operators,
)
from support.shared_models import INT8, KWS, RESNET8, model_path

U55_128 = next(accelerator for accelerator in ACCELERATORS if accelerator.name == U55)
STOP = 0xFFFF0000


def of_model(name: str, accelerator: str, mode: str, *options: str) -> list[VelaOperator]:
    return vela_operators(vela(model_path(name).read_bytes(), accelerator, mode, *options))


def assert_proved(operator: VelaOperator, slack_bytes: int | None) -> None:
    """Every access lies within its tensor; all of them together fill it, but for `slack_bytes`."""
    found = accesses(operator.operations)
    check_within(found, operator.region_sizes)
    for use in region_uses(found):
        assert use.needed_bytes <= operator.region_sizes[use.region]
        if slack_bytes is not None:
            assert operator.region_sizes[use.region] - use.needed_bytes <= slack_bytes
    written = {access.region for access in found if access.writes}
    assert 0 not in written


@needs_vela
@pytest.mark.parametrize("mode", [SHARED, ONLY])
@pytest.mark.parametrize("accelerator", [U55, U65])
@pytest.mark.parametrize("name", INT8)
def test_the_accesses_of_a_stream_fill_its_tensors_and_no_more(
    name: str, accelerator: str, mode: str
) -> None:
    (operator,) = of_model(name, accelerator, mode)
    assert_proved(operator, 112)


@needs_vela
@pytest.mark.parametrize("accelerator", [U55, U65])
def test_the_accesses_with_separate_regions_fill_their_tensors(accelerator: str) -> None:
    (operator,) = of_model(KWS, accelerator, SHARED, *SEPARATE)
    assert_proved(operator, 112)
    uses = {use.region: use for use in region_uses(accesses(operator.operations))}
    assert (uses[3].reads, uses[3].writes, uses[4].writes) == (True, False, True)


@needs_vela
def test_a_fast_scratch_is_a_region_of_its_own() -> None:
    (operator,) = of_model(KWS, U65, DEDICATED)
    assert_proved(operator, 112)
    assert [use.region for use in region_uses(accesses(operator.operations))] == [0, 1, 2]


@needs_vela
@pytest.mark.parametrize("options", [ADD_ON_CPU, (*ADD_ON_CPU, *SEPARATE)])
def test_operators_that_share_a_scratch_touch_different_parts_of_it(options: tuple[str, ...]) -> None:
    operators = of_model(RESNET8, U55, SHARED, *options)
    assert len(operators) == 4
    for operator in operators:
        assert_proved(operator, None)
    needed = [region_uses(accesses(operator.operations))[1].needed_bytes for operator in operators]
    assert len(set(needed)) == 4
    assert max(needed) == operators[0].scratch.size_bytes


@st.composite
def feature_maps(draw: st.DrawFn) -> FeatureMap:
    """Feature maps in one to four tiles, whose elements do not overlap."""
    height, width, depth = (draw(st.integers(1, limit)) for limit in (5, 5, 40))
    element = draw(st.sampled_from(list(Element)))
    blocked = draw(st.booleans())
    size = element.size_bytes
    row = width * (-(-depth // 16) * 16 if blocked else depth) * size
    stride_c = width * 16 * size if blocked else 0
    stride_y = draw(st.sampled_from([row, row + 32])) * draw(st.sampled_from([1, -1]))
    bases = tuple(draw(st.permutations([0, 1, 2, 3])))
    spacing = (row + 32) * height * 2
    return FeatureMap(
        1,
        tuple(base * spacing + spacing for base in bases),  # pyright: ignore
        draw(st.integers(1, 6)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 6)),
        height,
        width,
        depth,
        stride_y,
        depth * size,
        stride_c,
        element,
        blocked,
        0,
    )


@given(array=feature_maps())
def test_the_hulls_of_tiles_are_of_the_bytes_that_the_model_touches(array: FeatureMap) -> None:
    result = Result(Rounding.DOUBLE, 1, 0, -128, 127, None, False)
    window = Window(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, False)
    operation = Pooling(PoolingMode.MAX, array, array, window, Upscale.NONE, False, result)
    found = [access for access in accesses([operation]) if not access.writes]
    offsets = element_offsets(array).ravel()
    first, last = min(access.first for access in found), max(access.last for access in found)
    assert first == offsets.min()
    # A blocked pixel counts with all of its 16 channels.
    spare = -array.depth % 16 * array.element.size_bytes if array.blocked else 0
    end = int(offsets.max()) + array.element.size_bytes - 1
    assert end <= last <= end + spare
    inside = np.zeros(offsets.size, bool)
    for access in found:
        inside |= (offsets >= access.first) & (offsets + array.element.size_bytes - 1 <= access.last)
    assert inside.all()


@given(array=feature_maps(), elsewhere=st.booleans())
def test_written_bytes_are_those_of_elements_and_not_of_hulls(array: FeatureMap, elsewhere: bool) -> None:
    result = Result(Rounding.DOUBLE, 1, 0, -128, 127, None, False)
    window = Window(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, False)
    operation = Pooling(PoolingMode.MAX, array, array, window, Upscale.NONE, False, result)
    end = max(access.last for access in accesses([operation])) + 1
    wanted = {
        int(offset) + byte
        for offset in element_offsets(array).ravel()
        for byte in range(array.element.size_bytes)
    }
    region = array.region + elsewhere
    written = written_bytes([operation], region, end)
    assert set(np.flatnonzero(written).tolist()) == (set() if elsewhere else wanted)


def test_rows_that_are_copied_are_written_and_what_is_between_them_is_not() -> None:
    copy = DmaCopy(0, 0, 3, 1, 10, 5, row_bytes=3, num_rows=2)
    assert np.flatnonzero(written_bytes([copy], 1, 20)).tolist() == [10, 11, 12, 15, 16, 17]


def refusal(*code: int) -> str:
    with pytest.raises(CompileError) as error:
        decode(code, U55_128)
    return str(error.value).splitlines()[0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ((), "error[BW740]: the stream of 0 words has no end"),
        ((0x4030,), "error[BW740]: the stream ends after 1 words, within a command"),
        ((STOP, STOP), "error[BW740]: the stream stops after 1 words and goes on for 1 more"),
        ((0x00000010, STOP), "error[BW742]: operation 0 (DMA_START) needs the register DMA0_SRC_REGION"),
        ((0x00000007, STOP), "error[BW742]: word 0 of the stream is command 0x0007"),
        ((0x00000001, STOP), "error[BW742]: word 0 of the stream is command 0x0001"),
        ((0x000000FF, STOP), "error[BW742]: word 0 of the stream is command 0x00ff"),
        ((0x000040FF, 0, STOP), "error[BW742]: word 0 of the stream is command 0x40ff"),
        ((0x00008000, STOP), "error[BW742]: word 0 of the stream is command 0x8000"),
        ((0x00030005, STOP), "error[BW742]: operation 0 (POOL) has value 3 in the register POOL"),
        (
            (0x0800_0130, 0x10, STOP),
            "error[BW742]: operation 0 (DMA_START) has the register DMA0_SRC_REGION at 0x800",
        ),
        (
            (0x0400_0130, 0x10, STOP),
            "error[BW742]: operation 0 (DMA_START) copies in more than two dimensions",
        ),
    ],
)
def test_a_stream_that_is_not_understood_is_refused(code: tuple[int, ...], message: str) -> None:
    assert refusal(*code).startswith(message)


@needs_vela
def test_an_activation_within_the_npu_is_refused_by_its_name() -> None:
    (operator,) = of_model(KWS, U55, SHARED)
    code = [
        3 << 16 | 0x125 if word & 0xFFFF == 0x125 else word for word in parse_payload(operator.payload).code
    ]
    assert "has the activation TANH, whose table is within the NPU" in refusal(*code)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (
            Access(3, 1, 0, 100, True),
            "operation 3 of the stream writes bytes 0 to 100 of region 1, which has 100 bytes",
        ),
        (
            Access(0, 1, -1, 5, False),
            "operation 0 of the stream reads bytes -1 to 5 of region 1, which has 100 bytes",
        ),
        (
            Access(0, 2, 0, 0, False),
            "operation 0 of the stream reads bytes 0 to 0 of region 2, which has 0 bytes",
        ),
    ],
)
def test_an_access_beyond_its_region_is_refused(access: Access, message: str) -> None:
    with pytest.raises(CompileError, match="BW743") as error:
        check_within([access], {1: 100})
    assert error.value.diagnostics[0].message == message
    check_within([Access(0, 1, 0, 99, True)], {1: 100})


@needs_vela
def test_a_region_one_byte_too_short_is_refused_before_anything_runs() -> None:
    (operator,) = of_model(KWS, U55, SHARED)
    needed = {use.region: use.needed_bytes for use in region_uses(accesses(operator.operations))}
    for region, size_bytes in needed.items():
        short = {**needed, region: size_bytes - 1}
        regions = {number: np.full(size, 7, np.uint8) for number, size in short.items()}
        with pytest.raises(CompileError, match="BW743"):
            execute(operator.operations, regions, operator.accelerator)
        assert all((data == 7).all() for data in regions.values())


@pytest.fixture(scope="module")
def payloads() -> list[bytes]:
    found = [operator.payload for operator in of_model(KWS, U55, SHARED)]
    found += [operator.payload for operator in of_model(RESNET8, U65, SHARED, *SEPARATE)]
    return found


@needs_vela
@given(data=st.data())
def test_a_damaged_payload_is_read_or_refused(payloads: list[bytes], data: st.DataObject) -> None:
    payload = bytearray(data.draw(st.sampled_from(payloads)))
    for _ in range(data.draw(st.integers(1, 8))):
        index = data.draw(st.integers(0, len(payload) // 4 - 1)) * 4
        word = struct.unpack_from("<I", payload, index)[0]
        change = data.draw(st.sampled_from(["any", "bit", "low", "high"]))
        if change == "bit":
            word ^= 1 << data.draw(st.integers(0, 31))
        elif change == "low":
            word = word & 0xFFFF0000 | data.draw(st.integers(0, 0xFFFF))
        elif change == "high":
            word = word & 0xFFFF | data.draw(st.integers(0, 0xFFFF)) << 16
        else:
            word = data.draw(st.integers(0, 0xFFFFFFFF))
        struct.pack_into("<I", payload, index, word)
    size = data.draw(st.sampled_from([len(payload), data.draw(st.integers(0, len(payload)))]))
    codes = {"BW740"}
    found: tuple[Access, ...] = ()
    try:
        opened = parse_payload(bytes(payload[:size]))
        found = accesses(decode(opened.code, opened.accelerator))
    except CompileError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
    assert codes <= {"BW740", "BW741", "BW742"}
    assert all(access.first <= access.last for access in found)


def test_accelerators_are_found_by_their_names() -> None:
    assert [require_isa(accelerator.name).accelerator for accelerator in ACCELERATORS] == list(ACCELERATORS)
    assert require_isa("ethos-u85").accelerator is None
    assert find_isa("ethos-u85-256") is None
