"""The causes of lost time: of launches, of kernels with averages, and those of a run that cost most."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.causes.sentence import (
    answer,
    counter_text,
    evidence_of,
    evidence_pieces,
    first_step,
    largest_together,
    unit_at_limit,
)
from profsvc.analysis.potential.advice import KERNEL_TIME, MIN_SAVING
from profsvc.specs.advice.causes import ALTERNATIVE, COUNTER, causes, rules

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
FIELDS = (
    "cause", "title", "kind", "saving_ns", "saving_fraction", "low", "high", "evidence", "first_step",
)  # fmt: skip
LOCAL = "a local estimate is a share of the inefficiency of one unit, not of the time"
MORE = "the estimate assumes that the whole launch speeds up as one unit does; here only the waits for it are counted"
LESS = "the estimate covers one unit; here all waits and work of the cause are counted"
# Savings that differ by less are the same for who decides what to do.
SAME = 0.05
# A rule that speaks of no single cause is explained from this share of the time on.
MIN_EXPLAINED = 0.1
HINT_KINDS = {"flaw": "saving", "limit": "limit", "unexplained": "unexplained", ALTERNATIVE: ALTERNATIVE}


def causes_of_launches(engine: "Engine", run_id: int, launch_ids: Sequence[int]) -> dict[int, list[Row]]:
    """Return the causes of these launches, the answer first; a launch without counts of stalls has none."""
    found: dict[int, list[Row]] = {}
    rows = store.launch_rows(engine, "v1_causes", run_id, launch_ids)
    for row in store.parse_json_columns("v1_causes", rows):
        found.setdefault(row["launch_id"], []).append({name: row[name] for name in FIELDS})
    return found


def causes_of_kernel(rows: Iterable[Mapping[str, Any]], counters: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return the causes of a kernel with averages from its rows of ``v1_causes`` and its counters."""
    values = {name: one["value"] for name, one in counters.items()}
    return [{name: row[name] for name in FIELDS} | {"evidence": evidence_of(row["cause"], values)} for row in rows]


def first(found: Sequence[Row], duration_ns: float | None) -> str:
    """Return the answer as a sentence; empty without causes."""
    return answer(found, duration_ns) if found else ""


def hints(found: Sequence[Row]) -> list[Row]:
    """Return causes in the form of `profsvc.analysis.potential.advice.advice`, with their evidence.

    The answer, what else it may mean, and by size what saves at least `MIN_SAVING` of the time; a unit at its limit
    only as the answer, and behind causes that cost much together.
    """
    others = sorted(found[1:], key=lambda one: (one["kind"] == "unexplained", -(one["saving_fraction"] or 0.0)))
    others = [one for one in others if one["kind"] != "limit" and (one["saving_fraction"] or 0.0) >= MIN_SAVING]
    leading = [*found[:1], *(one for one in found[1:] if one["kind"] == ALTERNATIVE)]
    return [
        {
            "kind": HINT_KINDS[one["kind"]],
            "name": one["cause"],
            "title": unit_at_limit(one["title"]) if one["kind"] == "limit" else one["title"],
            "saving_fraction": one["saving_fraction"],
            "saving_ns": one["saving_ns"],
            "budget": KERNEL_TIME,
            "capped": False,
            "hint": first_step(one),
            "evidence": [
                {"text": text, "counter": counter or None}
                for text, counter in evidence_pieces(one["cause"], one["evidence"])
            ],
        }
        for one in ([*others, *leading] if found and largest_together(found) else [*leading, *others])
    ]


def beside(
    estimates: Iterable[Mapping[str, Any]], found: Sequence[Row], values: Mapping[str, Any] | None = None
) -> list[Row]:
    """Return rules of Nsight Compute with the causes that they speak of, and why the two estimates differ.

    ``cause_saving_fraction`` is what those causes save here, ``difference`` is empty where the estimate is between
    their limits or close by, and where there is nothing to compare. It says what the estimate assumes, and what the
    counters of the launch, ``values``, say of that. A rule that speaks of no single cause is explained where it
    promises much.
    """
    return [{**rule, **_beside(rule, found, values or {})} for rule in estimates]


def _beside(rule: Mapping[str, Any], found: Sequence[Row], values: Mapping[str, Any]) -> Row:
    named = [cause.name for cause in causes().values() if cause.kind == "flaw" and rule["rule"] in cause.rules]
    own = [one for one in found if one["cause"] in named and one["kind"] != ALTERNATIVE]
    estimate, share = rule["estimated_saving_fraction"], sum(one["saving_fraction"] for one in own)
    low, high = (sum(one[name] or 0.0 for one in own) for name in ("low", "high"))
    if not found or estimate is None or (own and (low <= estimate <= high or abs(estimate - share) <= SAME)):
        why = ""
    elif not named:
        why = _assumed(rule, values) if rule["kind"] == "global" and estimate >= MIN_EXPLAINED else ""
    elif rule["kind"] != "global":
        why = LOCAL
    elif not own:
        why = f"no wait or work of this cause was counted; the time goes to: {found[0]['title']}"
        why = "; ".join(filter(None, (_assumed(rule, values), why)))
    else:
        why = (estimate > high and _assumed(rule, values)) or (MORE if estimate > high else LESS)
    titles = ", ".join(one["title"] for one in own)
    return {"cause": titles, "cause_saving_fraction": share if own else None, "difference": why}


def _assumed(rule: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return what the estimate of a rule assumes, and the counters that show whether it holds; empty if not known."""
    known = rules().get(rule["rule"])
    if known is None:
        return ""
    parts = [part for part in known.shown if all(values.get(name) is not None for name in COUNTER.findall(part))]
    shown = [COUNTER.sub(lambda match: counter_text(match[1], values[match[1]]), part) for part in parts]
    return f"the estimate assumes that {known.assumes}" + (f"; counted: {', '.join(shown)}" if shown else "")


def causes_of_run(engine: "Engine", run_id: int, limit: int, means: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return what costs a run most time: kernel and cause, with the saving over all launches, largest first.

    ``means`` are the kernels of which only averages are known.
    """
    averages = [
        {"kernel_id": None, "kernel": row["kernel_full"], "kernel_short": row["kernel"], "cause": one["cause"],
         "title": one["title"], "first_step": one["first_step"], "launches": row["launches"],
         "saving_ns": (row["launches"] or 1) * one["saving_ns"]}
        for row in means
        for one in row["causes"]
        if one["kind"] == "flaw" and one["saving_ns"] is not None
    ]  # fmt: skip
    every = [*store.costly_causes(engine, run_id, limit), *averages]
    return sorted(every, key=lambda row: -(row["saving_ns"] or 0.0))[:limit]
