"""What else changed in the runs of a change: launch shapes, counters, copies, clocks, tools, build."""

from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from profsvc import specs

Row = dict[str, Any]
_Fact = tuple[int, float | str | None]
"""A run and what it has: a number, a text or, where it is not known, nothing."""
_Pair = tuple[Any, Any]


def differences(
    facts: pd.DataFrame, before: Collection[int], since: Collection[int], unmoved: Collection[int] = ()
) -> list[Row]:
    """Return the facts that differ between the runs before a change and those since, in the order of their table.

    ``facts`` are rows of one kernel and of whole runs: run_id, kernel, fact, basis, value, text. A number differs if
    its values on both sides do not overlap and their medians differ by more than the limits of the fact. A text
    differs if no run since has one of before. Each row has fact, part, title, unit, kernel, before, after,
    before_text, after_text and change (relative; None for a text or from 0).

    A fact of whole runs that one of the ``unmoved`` runs had too, but for less than its limits, is left out: they are
    earlier, and the series was at the level before the change in them. So a clock that goes and comes back is no cause
    of what came once.

    >>> facts = pd.DataFrame(
    ...     [[1, "k", "registers_per_thread", "", 40.0, None], [2, "k", "registers_per_thread", "", 72.0, None]],
    ...     columns=["run_id", "kernel", "fact", "basis", "value", "text"])
    >>> [(row["title"], row["before"], row["after"], row["change"]) for row in differences(facts, {1}, {2})]
    [('registers', 40.0, 72.0, 0.8)]
    """
    found = []
    sides = frozenset(before), frozenset(since), frozenset(unmoved)
    groups: dict[tuple[str, str, str], list[_Fact]] = {}
    columns = (facts[name].tolist() for name in ("run_id", "kernel", "fact", "basis", "value", "text"))
    for run_id, kernel, name, basis, value, text in zip(*columns, strict=True):
        known = text if isinstance(text, str) else None if pd.isna(value) else float(value)
        groups.setdefault((kernel if isinstance(kernel, str) else "", name, basis), []).append((run_id, known))
    for (kernel, name, _), rows in groups.items():
        fact = specs.change_fact(name)
        old, new, earlier = ([row for row in rows if row[0] in runs] for runs in sides)
        if fact is None or not old or not new:
            continue
        numbers = not any(isinstance(value, str) for _, value in rows)
        pair = _number_pair(fact, old, new) if numbers else _text_pair(old, new)
        if pair is not None and not (kernel == "" and _was_so_before(fact, earlier, new, pair)):
            found.append(_difference(fact, kernel or None, pair))
    place = {part: number for number, part in enumerate(specs.FACT_PARTS)}
    order = {name: number for number, name in enumerate(specs.change_facts())}
    return sorted(found, key=lambda row: (place[row["part"]], order.get(row["fact"], len(order)), row["title"]))


def _number_pair(fact: specs.ChangeFact, before: Sequence[_Fact], since: Sequence[_Fact]) -> tuple[float, float] | None:
    olds, news = _numbers(before), _numbers(since)
    if not olds or not news:
        return None
    apart = max(olds) < min(news) or max(news) < min(olds)
    old, new = median(olds), median(news)
    told = abs(new - old) > fact.absolute and abs(new - old) > fact.relative * abs(old)
    return (old, new) if apart and told else None


def _was_so_before(fact: specs.ChangeFact, earlier: Sequence[_Fact], since: Sequence[_Fact], pair: _Pair) -> bool:
    if isinstance(pair[0], str):
        return not set(_texts(earlier)).isdisjoint(_texts(since))
    sign = 1.0 if pair[1] > pair[0] else -1.0
    olds, news = ([sign * value for value in _numbers(side)] for side in (earlier, since))
    least = max(fact.absolute, fact.relative * abs(pair[0]))
    return bool(olds and max(olds) + least >= min(news))


def _text_pair(before: Sequence[_Fact], since: Sequence[_Fact]) -> tuple[str, str] | None:
    olds, news = _texts(before), _texts(since)
    if not olds or not news or not set(olds).isdisjoint(news):
        return None
    return olds[-1], news[0]


def _numbers(side: Sequence[_Fact]) -> list[float]:
    return [value for _, value in side if isinstance(value, float)]


def _texts(side: Sequence[_Fact]) -> list[str]:
    return [value for _, value in side if isinstance(value, str)]


def _difference(fact: specs.ChangeFact, kernel: str | None, pair: _Pair) -> Row:
    row: Row = {name: getattr(fact, name) for name in ("fact", "part", "title", "unit")}
    row |= dict.fromkeys(("before", "after", "before_text", "after_text", "change")) | {"kernel": kernel}
    old, new = pair
    if isinstance(old, str):
        return row | {"before_text": old, "after_text": new}
    return row | {"before": old, "after": new, "change": (new - old) / abs(old) if old else None}


def cause_differences(parts: Sequence[Mapping[str, Any]], kernel: str | None) -> list[Row]:
    """Return the parts of a change of time by cause (`profsvc.analysis.changes.cause_changes`) as differences."""
    return [
        {
            "fact": f"cause:{part['cause']}", "part": "causes", "title": part["title"], "unit": "ns", "kernel": kernel,
            "before": part["before_ns"], "after": part["after_ns"], "before_text": None, "after_text": None,
            "change": part["change_fraction"],
        }
        for part in parts
    ]  # fmt: skip
