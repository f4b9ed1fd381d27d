"""The configurations that no other one beats, and the view that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bytewright.show.view import Fact, Facts, Field, Table, View, data, table_of
from bytewright.sweeps.evaluate import Result

OBJECTIVES = ("ram_bytes", "parameter_bytes", "instructions")
_HEADINGS = {"ram_bytes": "RAM", "parameter_bytes": "parameters", "instructions": "instructions"}


def pareto(results: Iterable[Result], objectives: Sequence[str] = OBJECTIVES) -> tuple[Result, ...]:
    """The results that fit, of which no other one of the same model is as good in every objective and better in one.

    Of equals the first one stays. An objective that a result does not have counts for none of its model.
    """
    fitting = [result for result in results if result["fits"]]
    return tuple(
        result
        for number, result in enumerate(fitting)
        if not any(
            _beats(other, result, objectives) or (_is_equal(other, result, objectives) and before < number)
            for before, other in enumerate(fitting)
            if other["model"] == result["model"] and other is not result
        )
    )


def _values(result: Result, objectives: Sequence[str]) -> list[int]:
    return [result[name] for name in objectives if result.get(name) is not None]


def _beats(one: Result, other: Result, objectives: Sequence[str]) -> bool:
    pairs = list(zip(_values(one, objectives), _values(other, objectives), strict=False))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _is_equal(one: Result, other: Result, objectives: Sequence[str]) -> bool:
    return _values(one, objectives) == _values(other, objectives)


def sweep_view(results: Sequence[Result]) -> View:
    """What fits and what does not, and the table of those that nothing beats; programs are given all results."""
    fitting = [result for result in results if result["fits"]]
    best = pareto(results)
    head = f"{len(results)} configurations: {len(fitting)} fit, {len(results) - len(fitting)} do not"
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
