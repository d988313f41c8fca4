"""What a change of the duration of a kernel comes from: the change of the time that each cause costs."""

from collections.abc import Mapping
from typing import Any

from profsvc.specs.advice.causes import causes

UNEXPLAINED = "unexplained"


def cause_changes(
    before: Mapping[str, float], after: Mapping[str, float], before_ns: float, after_ns: float
) -> list[dict[str, Any]]:
    """Return the parts of a change of duration, largest first; the rest is unexplained, and comes last.

    ``before`` and ``after`` hold the time per launch that each cause costs [ns]. The parts add up to ``after_ns`` -
    ``before_ns``. ``change_fraction`` is a share of ``before_ns``. Without causes on one side the list is empty.

    >>> [(part["cause"], part["change_ns"]) for part in cause_changes({"barriers": 5.0}, {"barriers": 30.0}, 100, 120)]
    [('barriers', 25.0), ('unexplained', -5.0)]
    >>> cause_changes({}, {"barriers": 30.0}, 100, 120)
    []
    """
    if not before or not after or not before_ns:
        return []
    known = {
        name: (before.get(name, 0.0), after.get(name, 0.0))
        for name in dict.fromkeys([*before, *after])
        if name != UNEXPLAINED
    }
    parts = [(name, old, new, new - old) for name, (old, new) in known.items() if new != old]
    parts.sort(key=lambda part: -abs(part[3]))
    rest = after_ns - before_ns - sum(part[3] for part in parts)
    return [
        {
            "cause": name,
            "title": causes()[name].title if name in causes() else name,
            "before_ns": old,
            "after_ns": new,
            "change_ns": change,
            "change_fraction": change / before_ns,
        }
        for name, old, new, change in [*parts, (UNEXPLAINED, None, None, rest)]
    ]
