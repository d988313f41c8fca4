"""What to do first: the mechanisms of a launch ranked by the time that repairing each would save."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.formulas.flags import Flag

NOTICEABLE = 0.01  # a hint for less than one per cent of the time is noise
UNCOUNTED = (
    "The export does not count how much of its work is useful, so all of it is taken to be, and it may need less time. "
    "Collect all counters, such as with ncu --set full."
)


def advice(
    criteria: Sequence[Mapping[str, Any]],
    waste: Sequence[Mapping[str, Any]],
    potential: Mapping[str, Any],
    texts: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return hints for one launch, most time saved first.

    Savings are alternatives, never to be added or multiplied, and none may promise more than the overall potential of
    the launch: each is capped by it. The last hint names the unit that limits the ideal version; where nobody counted
    what of that unit's work is useful, the hint says so instead, with the kind ``uncounted``.

    ``criteria`` are rows with ``criterion, value, speedup``; ``waste`` rows with ``quantity, value`` (a share of the
    time); ``potential`` has ``ideal_bound, speedup, duration_ns, flags``; ``texts`` maps a name to its ``title`` and
    ``hint``.
    """
    overall, duration = potential.get("speedup"), potential.get("duration_ns")
    most = 1.0 if overall is None else 1.0 - 1.0 / overall
    claims = [(row["criterion"], 1 - 1 / row["speedup"]) for row in criteria if (row.get("speedup") or 0) > 1]
    claims += [(row["quantity"], row["value"]) for row in waste]
    hints = [
        _hint("saving", name, texts[name], min(saving, most), duration, saving > most)
        for name, saving in claims
        if min(saving, most) >= NOTICEABLE
    ]
    hints.sort(key=lambda h: (-h["saving_fraction"], h["name"]))
    bound = potential.get("ideal_bound")
    if bound is not None and Flag.LOWER_BOUND.name in (potential.get("flags") or ""):
        hints.append(_hint("uncounted", bound, {**texts[bound], "hint": UNCOUNTED}, 0.0, duration, False))
    elif bound is not None:
        hints.append(_hint("limit", bound, texts[bound], 0.0, duration, False))
    return hints


def _hint(
    kind: str, name: str, text: Mapping[str, Any], saving: float, duration: float | None, capped: bool
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "title": text["title"],
        "saving_fraction": saving,
        "saving_ns": None if duration is None else saving * duration,
        "capped": capped,
        "hint": text["hint"],
    }
