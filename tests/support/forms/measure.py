"""Measure which reference runs which form of an operator, and write tests/data/operator_forms.json.

    PYTHONPATH=tests:tools python -m support.forms.measure

A reference may end the process, so forms run in children: one that dies is not run by that reference.
"""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection

from support.forms.all_forms import WITNESSES, all_forms
from support.forms.sketch import Form
from support.reference import LiteRt, TfLiteMicro

_PATIENCE_SECONDS = 60


def _runs(form: Form, reference: str) -> bool:
    """Whether a reference takes the file, and runs it."""
    try:
        library = LiteRt(form.model.content) if reference == "L" else TfLiteMicro(form.model.content)
        library.run(*form.model.inputs(5))
    except (RuntimeError, ValueError):
        return False
    return True


def _child(reference: str, first: int, ends: Connection) -> None:
    for number, form in enumerate(all_forms()[first:], first):
        ends.send((number, _runs(form, reference)))
    ends.send(None)


def _measured(reference: str, count: int) -> list[bool]:
    """By form, whether the reference runs it."""
    results: list[bool] = []
    while len(results) < count:
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.Process(target=_child, args=(reference, len(results), theirs))
        child.start()
        theirs.close()
        try:
            while ours.poll(_PATIENCE_SECONDS) and (answer := ours.recv()) is not None:
                results.append(answer[1])
        except EOFError:
            pass
        if len(results) < count:
            results.append(False)  # the one at which it died
        child.terminate()
        child.join()
    return results


def main() -> None:
    """Writes the file, and says how many forms each reference runs."""
    forms = all_forms()
    found = {reference: _measured(reference, len(forms)) for reference in "LM"}
    names = [form.name for form in forms]
    assert len(set(names)) == len(names), "two forms of one name"
    by_name = {
        name: "".join(reference for reference in "LM" if found[reference][number])
        for number, name in enumerate(names)
    }
    WITNESSES.write_text(
        json.dumps({n: w for n, w in by_name.items() if w}, indent=0) + "\n", encoding="utf-8"
    )
    total = sum(bool(each) for each in by_name.values())
    print(f"{len(forms)} forms, {total} run in a reference; L {sum(found['L'])}, M {sum(found['M'])}")


if __name__ == "__main__":
    main()
