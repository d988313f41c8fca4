"""What else changed where a series changed, as text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.kernel_names import short_kernel_name
from profsvc.reports.nightly.content import amount, short
from profsvc.reports.rows import cell

Row = Mapping[str, Any]
MAX_TOLD = 6
SHARES = ("_fraction", "_utilization", "throttled")
COUNTED = ("inst", "sector")
"""Units of which the change says more than the numbers."""
EVENT, CAUSES, KERNELS = "event", "causes", "kernels"


def difference_text(row: Row) -> str:
    """Return one difference in a few words.

    >>> row = {"fact": "registers_per_thread", "part": "resources", "title": "registers", "unit": "1",
    ...        "before": 40.0, "after": 72.0, "before_text": None, "after_text": None, "change": 0.8}
    >>> difference_text(row)
    'registers 40 to 72'
    >>> difference_text(row | {"fact": "achieved_occupancy_fraction", "title": "achieved occupancy", "before": 0.92,
    ...                        "after": 0.48})
    'achieved occupancy 92 to 48 %'
    """
    title, old, new = short(row["title"]), row["before"], row["after"]
    if row["part"] == EVENT:
        return f"{title}: {row['after_text']}"
    if row["part"] == KERNELS:
        return f"{title} {short(short_kernel_name(str(row['kernel'])))} ({amount(old if new is None else new, 'ns')})"
    if row["part"] == CAUSES:
        return f"{title} {100 * (row['change'] or 0.0):+.2g} %"
    if row["before_text"] is not None:
        return f"{title} {short(row['before_text'])} to {short(row['after_text'])}"
    if row["fact"].endswith(SHARES):
        return f"{title} {100 * old:.3g} to {100 * new:.3g} %"
    change = "" if row["change"] is None else f"{100 * row['change']:+.3g} %"
    if row["unit"] in COUNTED and change:
        return f"{title} {change}"
    if row["unit"] in ("1", "launch", "block"):
        return f"{title} {cell(old)} to {cell(new)}"
    both = f"{title} {amount(old, row['unit'])} to {amount(new, row['unit'])}"
    return f"{both} ({change})" if change and row["unit"] != "degC" else both


def told_differences(rows: Iterable[Row]) -> list[Row]:
    """Return the differences that a line tells: what runs and kernels were, not the parts of time nor other kernels."""
    return [row for row in rows if row["part"] not in (EVENT, CAUSES, KERNELS)]


def cause_line(rows: Sequence[Row]) -> str:
    """Return what else changed as one line; empty without differences."""
    told = told_differences(rows)
    said = ", ".join(difference_text(row) for row in told[:MAX_TOLD])
    return said + (f", and {len(told) - MAX_TOLD} more" if len(told) > MAX_TOLD else "")


def power_line(finding: Row) -> str:
    """Return that a kernel became faster by more power, or slower by less, with its energy; empty if it did not.

    >>> power = {"fact": "power_w", "before": 300.0, "after": 330.0, "change": 0.1}
    >>> power_line({"kind": "duration", "before": 100.0, "after": 92.0, "differences": [power]})
    'faster by drawing more power: 300 W to 330 W (+10 %), so its energy per launch changed by +1.2 %'
    >>> power_line({"kind": "duration", "before": 100.0, "after": 108.0, "differences": [power]})
    ''
    """
    powers = [row for row in finding["differences"] if row["fact"] == "power_w"]
    if finding["kind"] != "duration" or not powers or not finding["before"]:
        return ""
    time = finding["after"] / finding["before"] - 1
    old, new, change = (powers[0][name] for name in ("before", "after", "change"))
    if not change or time * change >= 0:
        return ""
    how = "faster by drawing more power" if time < 0 else "slower with less power"
    energy = 100 * ((1 + time) * (1 + change) - 1)
    both = f"{amount(old, 'W')} to {amount(new, 'W')} ({100 * change:+.3g} %)"
    return f"{how}: {both}, so its energy per launch changed by {energy:+.1f} %"


def difference_lines(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a finding on what else changed in its runs."""
    lines = [difference_text(row) for row in rows if row["part"] == EVENT]
    if line := cause_line(rows):
        lines.append(f"changed with it: {line}")
    kernels = [row for row in rows if row["part"] == KERNELS]
    if kernels:
        more = f", and {counted(len(kernels) - MAX_TOLD, 'other')}" if len(kernels) > MAX_TOLD else ""
        lines.append(", ".join(map(difference_text, kernels[:MAX_TOLD])) + more)
    return lines
