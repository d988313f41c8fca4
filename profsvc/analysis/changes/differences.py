"""What else changed in the runs of a change: launch shapes, counters, copies, clocks, tools, build."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc import specs

Row = dict[str, Any]


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
    whole_run = facts.assign(kernel=facts["kernel"].where(facts["kernel"].notna(), ""))
    for (kernel, name, _), rows in whole_run.groupby(["kernel", "fact", "basis"], sort=False):
        fact = specs.change_fact(str(name))
        sides = [rows[rows["run_id"].isin(list(runs))] for runs in (before, since)]
        if fact is None or any(side.empty for side in sides):
            continue
        numbers = rows["text"].isna().all()
        pair = _number_pair(fact, *sides) if numbers else _text_pair(*sides)
        earlier = rows[rows["run_id"].isin(list(unmoved))]
        if pair is not None and not (kernel == "" and _was_so_before(fact, earlier, sides[1], pair)):
            found.append(_difference(fact, str(kernel) or None, pair))
    place = {part: number for number, part in enumerate(specs.FACT_PARTS)}
    order = {name: number for number, name in enumerate(specs.change_facts())}
    return sorted(found, key=lambda row: (place[row["part"]], order.get(row["fact"], len(order)), row["title"]))


def _number_pair(fact: specs.ChangeFact, before: pd.DataFrame, since: pd.DataFrame) -> tuple[float, float] | None:
    sides = [side["value"].dropna().to_numpy(np.float64) for side in (before, since)]
    if not all(map(len, sides)):
        return None
    apart = sides[0].max() < sides[1].min() or sides[1].max() < sides[0].min()
    old, new = (float(np.median(side)) for side in sides)
    told = abs(new - old) > fact.absolute and abs(new - old) > fact.relative * abs(old)
    return (old, new) if apart and told else None


def _was_so_before(fact: specs.ChangeFact, earlier: pd.DataFrame, since: pd.DataFrame, pair: tuple[Any, Any]) -> bool:
    if isinstance(pair[0], str):
        return bool(set(earlier["text"].dropna()) & set(since["text"].dropna()))
    sign = 1.0 if pair[1] > pair[0] else -1.0
    old, new = (sign * side["value"].dropna().to_numpy(np.float64) for side in (earlier, since))
    least = max(fact.absolute, fact.relative * abs(pair[0]))
    return bool(len(old) and old.max() + least >= new.min())


def _text_pair(before: pd.DataFrame, since: pd.DataFrame) -> tuple[str, str] | None:
    olds, news = (list(side["text"].dropna()) for side in (before, since))
    if not olds or not news or set(olds) & set(news):
        return None
    return str(olds[-1]), str(news[0])


def _difference(fact: specs.ChangeFact, kernel: str | None, pair: tuple[Any, Any]) -> Row:
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
