"""The configurations that no other one beats, and the view that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import le

from bytewright.show.view import Fact, Facts, Field, Table, View, data, table_of
from bytewright.sweeps.evaluate import Result

OBJECTIVES = ("ram_bytes", "parameter_bytes", "instructions")
_HEADINGS = {"ram_bytes": "RAM", "parameter_bytes": "parameters", "instructions": "instructions"}


def pareto(results: Iterable[Result], objectives: Sequence[str] = OBJECTIVES) -> tuple[Result, ...]:
    """The results that fit, of which no other one of the same model is as good in every objective and better in one.

    Of equals the first one stays. An objective that a result does not have counts for none of its model.
    """
    fitting = [result for result in results if result["fits"]]
    by_model: dict[str, list[int]] = {}
    for number, result in enumerate(fitting):
        by_model.setdefault(result["model"], []).append(number)
    best = {number for numbers in by_model.values() for number in _unbeaten(fitting, numbers, objectives)}
    return tuple(result for number, result in enumerate(fitting) if number in best)


def _unbeaten(results: Sequence[Result], numbers: Sequence[int], objectives: Sequence[str]) -> list[int]:
    """Those that nothing before them in the order of their figures is as good as: what comes later beats none."""
    known = [n for n in objectives if all(results[number].get(n) is not None for number in numbers)]
    figures = {number: tuple(results[number][name] for name in known) for number in numbers}
    found: list[int] = []
    for number in sorted(numbers, key=lambda number: (figures[number], number)):
        # Of up to two figures the last one found has the least second: what it does not beat, none does.
        beside = found[-1:] if len(known) <= 2 else found
        if not any(all(map(le, figures[other], figures[number])) for other in beside):
            found.append(number)
    return found


def sweep_view(results: Sequence[Result]) -> View:
    """What fits and what does not, and the table of those that nothing beats; programs are given all results."""
    fitting = [result for result in results if result["fits"]]
    best = pareto(results)
    noun = "configuration" if len(results) == 1 else "configurations"
    head = f"{len(results)} {noun}: {len(fitting)} fit, {len(results) - len(fitting)} do not"
    refused = tuple(Fact((line,)) for line in _refused(results))
    sections = (
        _table("none beats these", "pareto", best),
        *([Facts(refused, title="what does not fit")] if refused else []),
        Facts((data({"results": [dict(result) for result in results]}),)),
    )
    return View(head, sections)


def _table(title: str, key: str, results: Sequence[Result]) -> Table:
    figures = [name for name in OBJECTIVES if any(result.get(name) is not None for result in results)]
    return table_of(
        title,
        key,
        results,
        Field("model", "model", lambda result: result["model"]),
        Field("target", "target", lambda result: result["target"]),
        Field("options", "options", lambda result: result["options"], joint=" "),
        *(_figure(name) for name in figures),
        none="",
    )


def _figure(name: str) -> Field[Result]:
    return Field(_HEADINGS[name], name, lambda result: result.get(name), is_number=True)


def _refused(results: Iterable[Result]) -> list[str]:
    """How many were refused for what, the most frequent first."""
    counts: dict[str, int] = {}
    for result in results:
        for refusal in result.get("refusals", ())[:1]:
            counts[refusal["code"]] = counts.get(refusal["code"], 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{code}: {count}" for code, count in ordered]
