"""The unit in which the values of a history are shown, and the names of its series; without numpy, for its text."""

from collections.abc import Mapping, Sequence
from typing import Any

# Unit of a value -> units of the axis with their sizes, largest first.
SCALES: Mapping[str, Sequence[tuple[str, float]]] = {
    "ns": (("s", 1e9), ("ms", 1e6), ("\u00b5s", 1e3), ("ns", 1.0)),
    "Hz": (("GHz", 1e9), ("MHz", 1e6), ("Hz", 1.0)),
    "J": (("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3)),
    "degC": (("\u00b0C", 1.0),),
    "1": (("", 1.0),),
}


def scale_of(unit: str, values: Sequence[float | None]) -> tuple[str, float]:
    """Return the name and size of a suitable unit.

    >>> scale_of("ns", [2.5e6, 1.2e6]), scale_of("W", [300.0])
    (('ms', 1000000.0), ('W', 1.0))
    """
    known = sorted(abs(value) for value in values if value)
    middle = known[(len(known) - 1) // 2 : len(known) // 2 + 1]
    usual = sum(middle) / len(middle) if middle else 0.0
    steps = SCALES.get(unit, ((unit, 1.0),))
    return next((step for step in steps if usual >= step[1]), steps[-1])


def name_of(one: Mapping[str, Any]) -> str:
    """Return the name of a series: project, device and branch, and for power window and sensor."""
    words = [one["project"] or "no project", one["device"] or "unknown device"]
    words += [f"branch {one['branch']}"] if one.get("branch") else []
    words += [str(one[name]) for name in ("window", "sensor") if one.get(name)]
    return ", ".join(words)
