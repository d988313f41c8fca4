"""Model results as text: values with interval and unit, or the reason why they are missing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import cell

Row = Mapping[str, Any]
MAX_SHOWN = 5
# Order of the models in the text; the other formats have all results.
MODELS = (
    "idle", "thermal", "active_sms", "performance_per_watt", "components", "join", "sensor",
)  # fmt: skip


def interval(row: Row, value: str, low: str, high: str) -> str:
    """Return a value with its interval.

    >>> interval({"w": 302.96, "a": 301.2, "b": 304.7}, "w", "a", "b"), interval({"w": None}, "w", "a", "b")
    ('303.0 [301.2, 304.7]', '')
    >>> interval({"j": 12345.6, "a": 12300.0, "b": 12400.0}, "j", "a", "b")
    '12346 [12300, 12400]'
    """
    if row[value] is None:
        return ""
    if row[low] is None or row[high] is None:
        return cell(float(row[value]))
    return f"{_digits(row[value])} [{_digits(row[low])}, {_digits(row[high])}]"


def _digits(given: float) -> str:
    return f"{given:.0f}" if 1000 <= abs(given) < 1e12 else f"{given:#.4g}"


def models(rows: Sequence[Row]) -> Iterable[str]:
    """Yield the results of each model that have an interval or are few, and count the others."""
    place = {model: number for number, model in enumerate(MODELS)}
    names = sorted({str(row["model"]) for row in rows}, key=lambda model: (place.get(model, len(MODELS)), model))
    for model in names:
        own = [row for row in rows if row["model"] == model]
        shown = [row for row in own if row["low"] is not None or row["value"] is None] or own[:MAX_SHOWN]
        more = f" (and {counted(len(own) - len(shown), 'more value')}: -o json)" if len(own) > len(shown) else ""
        yield f"  {model.replace('_', ' ')}{more}"
        yield from map(figure, shown)


def figure(row: Row) -> str:
    """Return one quantity of a model with its notes."""
    label = f"{row['window']}: " if row["window"] else ""
    known = f"{interval(row, 'value', 'low', 'high')} {_unit(row['unit'])}".rstrip()
    value = known if row["value"] is not None else row["reason"] or "unknown"
    notes = ", ".join(filter(None, (row["form"], row["flags"] and row["flags"].replace(" ", ", "))))
    return f"    {label}{row['quantity']} {value}{f'  ({notes})' if notes else ''}"


def _unit(unit: str | None) -> str:
    return "" if unit in (None, "1") else str(unit).replace("degC", "\u00b0C")
