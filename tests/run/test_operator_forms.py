"""Every form of an operator that a reference runs either compiles and equals each that does, or is refused by name.

The forms are a fixed list (`support.forms`); a day's run takes a part of them, the thorough tier all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.against import tflm
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.against_reference import assert_equals_reference
from support.forms.all_forms import Form, all_forms, witnesses
from support.kernel_cells import WITH_VECTORS
from support.tiers import THOROUGH, share, some

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
_PARTS = 6
_REFUSED = {"BW104", "BW105", "BW107", "BW110"}


def _numerics(form: Form) -> Numerics:
    """The set of the named witness: LiteRT where it runs the form."""
    return Numerics.LITERT_REF if "L" in witnesses()[form.name] else Numerics.TFLM


def _compiles(form: Form, numerics: Numerics | None = None) -> bool:
    """Whether a form is imported; what is not is refused by a code that says why."""
    codes: set[str] = set()
    try:
        import_content(form.model.content, "form.tflite", numerics=numerics or _numerics(form))
    except CompileError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
    assert codes <= _REFUSED, f"{form.name}: {codes}"
    return not codes


FORMS = tuple(form for form in all_forms() if form.name in witnesses())
# Neighbours resemble each other, so parts are made of every so many-th one.
TODAY = FORMS if THOROUGH else share(FORMS, 4 * _PARTS)


def _equal_their_witness(forms: Sequence[Form], folder: Path, target: str = "host") -> None:
    for numerics, letter in ((Numerics.LITERT_REF, "L"), (Numerics.TFLM, "M")):
        run = [form for form in forms if letter in witnesses()[form.name]]
        own = [form.model for form in run if _compiles(form, numerics)]
        if own:
            assert_equals_reference(
                own, folder / numerics.value, target=target, numerics=numerics, num_inputs=4
            )


@pytest.mark.parametrize("part", range(_PARTS))
def test_forms_equal_their_witness(part: int, tmp_path: Path) -> None:
    _equal_their_witness(TODAY[part::_PARTS], tmp_path)


@pytest.mark.parametrize("target", WITH_VECTORS)
@pytest.mark.parametrize("part", some(range(_PARTS), every=_PARTS))
def test_forms_equal_their_witness_with_vectors(part: int, target: str, tmp_path: Path) -> None:
    """By the C that stands beside each instruction."""
    _equal_their_witness(TODAY[part::_PARTS], tmp_path, target)


def test_the_document_says_how_many_forms_compile() -> None:
    (text,) = re.findall(r"Of (\d+) forms .*?, (\d+)\s+compile", DOCUMENT.read_text(), re.DOTALL)
    listed, compiled = map(int, text)
    assert listed == len(FORMS)
    assert compiled <= sum(map(_compiles, FORMS))


def test_the_list_of_tflm_is_what_it_runs() -> None:
    """Types that it ran a form on are listed, and none beside those that there are forms of."""
    found: dict[str, set[str]] = {}
    formed: dict[str, set[str]] = {}
    for form in FORMS:
        formed.setdefault(form.kind, set()).add(form.dtype)
        if "M" in witnesses()[form.name]:
            found.setdefault(form.kind, set()).add(form.dtype)
    listed = {
        each.name: {*each.types} & formed[each.name] for each in tflm().operators if each.name in formed
    }
    assert {kind: types for kind, types in found.items() if kind in listed} == listed
