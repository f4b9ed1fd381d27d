"""docs/operators.md says what the table of converters says, and so do the limits named in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bytewright.frontends.registry import SupportedOperator
from bytewright.frontends.tflite.of_vela import ETHOS_U
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.frontends.tflite.table import OPERATORS, SUPPORTED
from bytewright.ops.registry import OPERATIONS
from support.random_models import CASES, ONLY_IN_TFLM

REGISTERED = Path(__file__).resolve().parents[2] / "data" / "litert_operators.txt"
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "operators.md"


def table_row(operator: SupportedOperator) -> str:
    return f"| {operator.name} | {', '.join(operator.types)} | {operator.limits or '-'} |"


def test_the_document_has_the_table() -> None:
    table, _, _ = DOCUMENT.read_text().partition("\nFor all of them:")
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    tflite_rows = [row for row in rows if row[2:].split()[0].isupper()]
    assert tflite_rows == [table_row(operator) for operator in SUPPORTED]


def test_the_document_lists_what_is_computed_at_import() -> None:
    (text,) = re.findall(r"come to them:\n\n(.*?); and of the table above", DOCUMENT.read_text(), re.DOTALL)
    assert re.findall(r"\w+", text) == list(FOLDED) == sorted(FOLDED)


def test_what_litert_registers_is_compiled_or_refused_with_a_reason() -> None:
    registered = {line for line in REGISTERED.read_text().splitlines() if line and not line.startswith("#")}
    (table,) = re.findall(r"refused with BW104:\n\n(.*?)\n\n", DOCUMENT.read_text(), re.DOTALL)
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    refused = [name for names, _ in rows for name in names.strip().split(", ")]
    # The operators of its subgraph stand in the place of a composite.
    assert sorted(refused) == sorted(registered - {*OPERATORS, *FOLDED, "STABLEHLO_COMPOSITE"})
    assert all(reason.strip() for _, reason in rows)


def test_every_converter_is_listed_and_tested() -> None:
    assert [operator.name for operator in SUPPORTED] == list(OPERATORS) == sorted(OPERATORS)
    # What Vela made is tested with the files that it makes, state with networks that keep it (`test_streams.py`,
    # `test_recurrent.py`, `test_svdf.py`, `test_signal.py`), spectra in `test_spectrum.py`, what runs subgraphs with
    # some (`test_control_flow.py`), complex numbers in `test_complex_numbers.py`, detections in `test_detection.py`,
    # what is sparse in `test_tflite_sparse.py`, sizes that the data decides in `test_sizes_of_data.py`.
    elsewhere = {
        ETHOS_U,
        "CUSTOM 'CIRCULAR_BUFFER'",
        "CUSTOM 'Convolution2DTransposeBias'",
        "CUSTOM 'SignalDelay'",
        "CUSTOM 'SignalEnergy'",
        "CUSTOM 'SignalFftAutoScale'",
        "CUSTOM 'SignalFilterBank'",
        "CUSTOM 'SignalFilterBankLog'",
        "CUSTOM 'SignalFilterBankSpectralSubtraction'",
        "CUSTOM 'SignalFilterBankSquareRoot'",
        "CUSTOM 'SignalFramer'",
        "CUSTOM 'SignalIrfft'",
        "CUSTOM 'SignalOverlapAdd'",
        "CUSTOM 'SignalPCAN'",
        "CUSTOM 'SignalRfft'",
        "CUSTOM 'SignalStacker'",
        "CUSTOM 'SignalWindow'",
        "CUSTOM 'TFLite_Detection_PostProcess'",
        "ASSIGN_VARIABLE",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "CALL_ONCE",
        "COMPLEX_ABS",
        "DENSIFY",
        "IF",
        "IMAG",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "READ_VARIABLE",
        "REAL",
        "RFFT2D",
        "STABLEHLO_CASE",
        "SVDF",
        "RANGE",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UNIQUE",
        "VAR_HANDLE",
        "WHERE",
        "WHILE",
    }
    assert {kind for kind, _ in CASES} == set(OPERATORS) - elsewhere
    for operator in SUPPORTED:
        if operator.name in elsewhere:
            continue
        drawn = {dtype for kind, dtype in (*CASES, *ONLY_IN_TFLM) if kind == operator.name}
        assert drawn == {*operator.types} - {"complex64"}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_the_document_explains_every_graph_operator(name: str) -> None:
    assert f"`{name}`" in DOCUMENT.read_text()
