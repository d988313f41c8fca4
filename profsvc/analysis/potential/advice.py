"""What to do first where no cause is known: the criteria ranked by the time that repairing each would save."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.formulas.numerics.flags import Flag

KERNEL_TIME, WALL_TIME = "kernel time", "wall time"
MEMORY_UNITS, LATENCY = ("dram", "l2", "l1"), "latency"  # of what bounds a launch
MIN_SAVING = 0.01  # a hint for less than one per cent of the time is noise
UNCOUNTED_HINT = (
    "The export lacks counters of useful work, so all work counts as useful; the real potential may be higher."
)


def advice(
    criteria: Sequence[Mapping[str, Any]],
    potential: Mapping[str, Any],
    texts: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return hints for one launch, or for a whole run, most time saved first.

    A saving is a share of the time in ``budget``: kernel time, or the wall time from the first start to the last end,
    which includes idle time. Savings are alternatives: never add or multiply them. The overall potential limits savings
    of kernel time. The last hint names the unit that limits the ideal version; if its useful work was not
    counted, the hint says so and has the kind ``uncounted``.

    ``criteria`` are rows with ``criterion, value, speedup``; ``potential`` has ``ideal_bound, speedup, duration_ns,
    flags``; ``texts`` maps a name to its ``title`` and ``hint``, and a criterion of a whole run to the ``level`` run.
    """
    overall, duration = potential.get("speedup"), potential.get("duration_ns")
    most = {KERNEL_TIME: 1.0 if overall is None else 1.0 - 1.0 / overall, WALL_TIME: 1.0}
    claims = [(row["criterion"], 1 - 1 / row["speedup"]) for row in criteria if (row.get("speedup") or 0) > 1]
    busy, lasted = _busy_share_and_wall_time(criteria, duration, texts)
    shares, hints = {KERNEL_TIME: busy, WALL_TIME: 1.0}, []
    for name, claimed in claims:
        budget = _budget(texts[name])
        saving = min(claimed, most[budget])
        if saving >= MIN_SAVING:
            takes = duration if budget == KERNEL_TIME else lasted
            hints.append(_hint("saving", name, texts[name], saving, takes, claimed > most[budget], budget))
    hints.sort(key=lambda h: (-h["saving_fraction"] * shares[h["budget"]], h["name"]))
    bound = potential.get("ideal_bound")
    if bound is not None and Flag.LOWER_BOUND.name in (potential.get("flags") or ""):
        said = potential.get("reason") or UNCOUNTED_HINT
        hints.append(_hint("uncounted", bound, {**texts[bound], "hint": f"{said[0].upper()}{said[1:]}"}, 0.0, duration))
    elif bound is not None:
        hints.append(_hint("limit", bound, texts[bound], 0.0, duration))
    return hints


def _budget(text: Mapping[str, Any]) -> str:
    return WALL_TIME if text.get("level") == "run" else KERNEL_TIME


def _busy_share_and_wall_time(
    criteria: Sequence[Mapping[str, Any]], duration: float | None, texts: Mapping[str, Mapping[str, Any]]
) -> tuple[float, float | None]:
    """Return the share of the wall time in which a kernel runs, 1 if unknown, and the wall time, None if unknown."""
    for row in criteria:
        if _budget(texts[row["criterion"]]) == WALL_TIME and row["value"]:
            overlap = Flag.OVERLAP.name in (row.get("flags") or "")
            return row["value"], None if duration is None or overlap else duration / row["value"]
    return 1.0, None


def _hint(
    kind: str,
    name: str,
    text: Mapping[str, Any],
    saving: float,
    duration: float | None,
    capped: bool = False,
    budget: str = KERNEL_TIME,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "title": text["title"],
        "saving_fraction": saving,
        "saving_ns": None if duration is None else saving * duration,
        "budget": budget,
        "capped": capped,
        "hint": text["hint"],
        "evidence": [],
    }
