"""Models for an Ethos-U on the host: the generated C hands the streams to a process that is the NPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ethos_u.accesses import accesses
from bytewright.ethos_u.payload import as_cop1, parse_payload
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.worker import streams
from bytewright.execute.worker.ethos_u import EthosUModel
from bytewright.execute.worker.streams import OutOfReachError, StreamRegion
from bytewright.ir.border import Io
from support.c_program import WARNINGS
from support.compilers import host_build
from support.ethos_u import (
    ADD_ON_CPU,
    SEPARATE,
    SHARED,
    U55,
    U65,
    needs_vela,
    npu_bundle,
    vela,
    vela_operators,
)
from support.reference import TfLiteMicro
from support.shared_models import AD01, KWS, RESNET8, model_path, random_inputs

pytestmark = needs_vela
ENTRY, PLACE = "src/m.c", "isram + M_AT_ISRAM_M_ETHOS_U_0__SCRATCH, "
CONSTANTS = "flash + M_AT_FLASH_ETHOS_U_0__CONSTANTS, "
BOTH = "M_SPAN_READ | M_SPAN_WRITE"


def assert_equals_tflm(directory: Path, name: str, sanitize: bool = False) -> None:
    """Compares outputs on two random inputs."""
    reference = TfLiteMicro(model_path(name))
    inputs = random_inputs(name, 2, seed=11)
    expected = [reference.run(*arrays)[0].ravel() for arrays in inputs]
    assert not np.array_equal(expected[0], expected[1])
    options = host_build(flags=WARNINGS, sanitize=sanitize)
    found = run_batch(directory, inputs, options=options).outputs
    for (y,), right in zip(found, expected, strict=True):
        assert np.array_equal(y.ravel(), right)


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("name", [AD01, KWS])
def test_a_model_on_the_npu_equals_tflm(name: str, sanitize: bool, tmp_path: Path) -> None:
    content = vela(model_path(name).read_bytes(), U55, SHARED)
    assert_equals_tflm(npu_bundle(tmp_path, content), name, sanitize)


@pytest.mark.parametrize(
    ("accelerator", "options", "io"),
    [(U55, (), Io.CALLER), (U65, (), Io.CALLER), (U55, SEPARATE, Io.WORKSPACE)],
)
def test_a_model_of_both_processors_equals_tflm(
    accelerator: str, options: tuple[str, ...], io: Io, tmp_path: Path
) -> None:
    content = vela(model_path(RESNET8).read_bytes(), accelerator, SHARED, *ADD_ON_CPU, *options)
    assert len(vela_operators(content)) == 4
    assert_equals_tflm(npu_bundle(tmp_path, content, accelerator, io), RESNET8)


def refusal(directory: Path, before: str, after: str) -> Diagnostic:
    """The one diagnostic of a run of the bundle with a span of its job changed."""
    path = directory / ENTRY
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    with pytest.raises(CompileError) as caught:
        run_bundle(directory, random_inputs(AD01, 1, seed=3)[0])
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (f"{PLACE}768u", f"{PLACE}767u", "byte 767 of 'm_ethos_u_0/scratch' in pool 'isram', of which"),
        (f"{PLACE}768u, {BOTH}", f"{PLACE}768u, M_SPAN_READ", "it wrote byte 0 of 'm_ethos_u_0/scratch'"),
        (
            f"{CONSTANTS}201184u",
            f"{CONSTANTS}201183u",
            "byte 201183 of 'ethos_u_0/constants' in pool 'flash'",
        ),
    ],
)
def test_a_stream_that_touches_what_it_was_not_lent(
    before: str, after: str, note: str, tmp_path: Path
) -> None:
    error = refusal(npu_bundle(tmp_path, vela(model_path(AD01).read_bytes())), before, after)
    assert error.code == "BW730"
    assert error.message.startswith("device 'npu' touched what it was not lent in job 1 (kernel 'm_ethos_u_0")
    assert note in error.notes[0]


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_stream_of_another_accelerator_is_refused_with_the_reason(sanitize: bool, tmp_path: Path) -> None:
    directory = npu_bundle(tmp_path, vela(model_path(AD01).read_bytes(), U65), U65)
    plan = directory / "plan.json"
    plan.write_text(plan.read_text().replace(U65, U55))
    with pytest.raises(CompileError, match="BW731") as caught:
        run_bundle(directory, random_inputs(AD01, 1, seed=3)[0], options=host_build(sanitize=sanitize))
    assert caught.value.diagnostics[0].notes == (
        "the model of 'ethos-u55-128' cannot carry out the stream",
        f"the stream is for {U65}, and this is {U55}",
    )


def test_damaged_weights_end_the_run_with_the_reason(tmp_path: Path) -> None:
    """Vela's decoder ends its process then; neither this one nor the NPU's goes with it."""
    content = vela(model_path(AD01).read_bytes())
    (operator,) = vela_operators(content)
    constants = operator.read_only.data or b""
    directory = npu_bundle(
        tmp_path, content.replace(constants, np.random.default_rng(1).bytes(len(constants)))
    )
    with pytest.raises(CompileError, match="BW731") as caught:
        run_bundle(directory, random_inputs(AD01, 1, seed=3)[0])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message.startswith("device 'npu' refused job 1")
    assert diagnostic.notes[0] == "the model of 'ethos-u55-128' cannot carry out the stream"
    assert diagnostic.notes[1].startswith("BW740: a weight stream of ")
    assert "cannot be decoded: Vela's decoder ended with status 1" in diagnostic.notes[1]


def test_without_velas_decoder_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = npu_bundle(tmp_path, vela(model_path(AD01).read_bytes()))
    monkeypatch.setitem(sys.modules, "ethosu.mlw_codec", None)
    with pytest.raises(CompileError, match=r"BW501.*ethos-u-vela"):
        run_bundle(directory, random_inputs(AD01, 1, seed=3)[0])


# The model alone


def _regions(content: bytes, scratch_bytes: int) -> tuple[bytes, list[StreamRegion]]:
    (operator,) = vela_operators(content)
    constants = np.frombuffer(operator.read_only.data or b"", np.uint8)
    scratch = np.zeros(scratch_bytes, np.uint8)
    stream = as_cop1(parse_payload(operator.payload))
    return stream, [StreamRegion(constants, True, False), StreamRegion(scratch, True, True)]


def test_nothing_is_changed_by_a_stream_that_goes_beyond() -> None:
    stream, regions = _regions(vela(model_path(AD01).read_bytes()), 767)
    model = streams.find_stream_model(U55)
    assert isinstance(model, EthosUModel)
    with pytest.raises(OutOfReachError) as caught:
        model.execute(stream, regions)
    assert (caught.value.region, caught.value.offset) == (1, 767)
    assert not regions[1].data.any()


def test_a_stream_with_too_few_regions_and_a_damaged_one_are_refused() -> None:
    stream, regions = _regions(vela(model_path(AD01).read_bytes()), 768)
    with pytest.raises(ValueError, match="names region 1, and the job has 1"):
        EthosUModel(U55).execute(stream, regions[:1])
    with pytest.raises(ValueError, match="BW740"):
        EthosUModel(U55).execute(stream[:-4], regions)
    assert not regions[1].data.any()


def test_what_may_only_be_written_is_read_where_the_stream_has_written() -> None:
    content = vela(model_path(RESNET8).read_bytes(), U55, SHARED, *ADD_ON_CPU, *SEPARATE)
    operator = vela_operators(content)[0]
    sizes = operator.region_sizes
    names = range(max(sizes) + 1)
    memories = [np.zeros(sizes.get(region, 0), np.uint8) for region in names]
    memories[0][:] = np.frombuffer(operator.read_only.data or b"", np.uint8)
    given = [StreamRegion(memories[region], region != 4, region in {1, 2, 4}) for region in names]
    assert any(access.region == 4 and not access.writes for access in accesses(operator.operations))
    stream = as_cop1(parse_payload(operator.payload))
    EthosUModel(U55).execute(stream, given)
    (right, *_), found = operator.run(np.zeros(sizes[3], np.int8)), operator.outputs[0]
    assert memories[4][found.offset : found.offset + found.size_bytes].tobytes() == right.tobytes()
    given[1] = StreamRegion(memories[1], False, True)
    given[3] = StreamRegion(memories[3], False, False)
    with pytest.raises(OutOfReachError) as caught:
        EthosUModel(U55).execute(stream, given)
    assert (caught.value.region, caught.value.is_write) == (3, False)
