"""Two runs beside each other as a person reads them in a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.analysis.outcomes import REGRESSION
from profsvc.reports.model_text import interval
from profsvc.reports.ratios import times
from profsvc.reports.rows import render, visible
from profsvc.reports.text import NOT_ALL, bounded, middle, several

HEADS = {
    "kernel": "kernel", "before": "before us", "after": "after us", "speedup": "speedup", "predicted": "predicted",
    "share": "of it achieved", "estimate": "NVIDIA", "limit": "limited by",
}  # fmt: skip
POWER_HEADS = ("window", "sensor", "W before", "W after", "change", "J before", "J after", "J change", "beyond")
# A criterion that moved less is not worth a line here; all of them are in the other forms.
WORTH = 0.05
MOST, FEW = 15, 5


def comparison(view: Mapping[str, Any], width: int | None = None) -> str:
    """Write the page of a comparison: what differs besides, a row a kernel, the criteria that moved, what is alone."""
    lines = _head(view)
    if view["kernels"]:
        rows = [{title: _cell(row, name) for name, title in HEADS.items()} for row in view["kernels"]]
        lines += ["", *str(render(list(HEADS.values()), rows, "table", width=width)).splitlines(), ""]
        lines.append(f"geometric mean of the speedups: {times(view['geometric_mean_speedup']) or 'unknown'}")
        lines.append("predicted and NVIDIA: what all waste removed was to bring, foretold from the run before")
        lines.append(
            "of it achieved: the time saved as a share of the time that was to be saved; 0 % where nothing changed"
        )
        lines += [NOT_ALL] if any(row["predicted_flags"] for row in view["kernels"]) else []
    elif view["only_before"] or view["only_after"] or not view["power"]:
        lines += ["", "the two runs have no kernel in common; say which became which with --map OLD=NEW"]
    moved = [row for row in view["criteria"] if abs(row["change"]) >= WORTH]
    lines += ["", "criteria that moved (1: nothing to gain)"] if moved else []
    for row in sorted(moved, key=lambda row: row["change"])[:MOST]:
        lines.append(f"  {row['criterion']:24}{row['before']:6.3f} -> {row['after']:6.3f}  {row['kernel_after']}")
    lines += [f"  and {len(moved) - MOST} more: -o json"] if len(moved) > MOST else []
    for key, words in (("only_before", "only before"), ("only_after", "only after")):
        names = [middle(str(one["kernel"]), 40) for one in view[key]]
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        lines += [f"{words}: {', '.join(names[:MOST])}{more}"] if names else []
    lines += ["", *_power(view["power"], width)] if view["power"] else []
    lines += _recorded(view.get("predictions"))
    return "\n".join(visible(line) for line in lines) + "\n"


def achieved(outcome: str | None, share: float | None) -> str:
    """Say how much came of what was foretold; a regression is one, whatever was foretold.

    >>> achieved("faster", 0.254), achieved("no change", 0.0), achieved("regression", -0.1), achieved("faster", None)
    ('25 %', '0 %', 'regression', '')
    """
    return REGRESSION if outcome == REGRESSION else "" if share is None else f"{100 * share:.0f} %"


def _recorded(recorded: Mapping[str, Any] | None) -> list[str]:
    """Say how many predictions were kept, and why some of them do not count."""
    if not recorded or not recorded["recorded"]:
        return []
    lines = [
        "",
        f"{recorded['recorded']} predictions recorded, {recorded['scored']} of them count: profsvc report accuracy",
    ]
    reasons = recorded["reasons"]
    lines += [f"  not counted, {reason}" for reason in reasons[:FEW]]
    return lines + ([f"  and {len(reasons) - FEW} more: -o json"] if len(reasons) > FEW else [])


def power_alone(view: Mapping[str, Any], width: int | None = None) -> str:
    """Write the page of the power of two runs."""
    none = ["the two runs have no window of power in common; profsvc power RUN shows those of one"]
    lines = [*_head(view), "", *(_power(view["power"], width) if view["power"] else none)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _head(view: Mapping[str, Any]) -> list[str]:
    before, after = view["before"], view["after"]
    names = f"{before['project']}/{before['name']} -> {after['project']}/{after['name']}"
    return [names, *(f"beware: {warning}" for warning in view["warnings"])]


def _power(rows: Sequence[Mapping[str, Any]], width: int | None) -> Iterable[str]:
    """A row a window; then at which temperature, and what was compared as it was measured, and why."""
    yield "power"
    cells = [dict(zip(POWER_HEADS, _of_window(row), strict=True)) for row in rows]
    yield from str(render(POWER_HEADS, cells, "table", width=width)).splitlines()
    yield from dict.fromkeys(
        f"  {row['sensor']}: corrected to {row['reference_temperature_c']:.4g} \u00b0C, that of the run before; "
        "intervals of 95 %, beyond: they lie apart"
        for row in rows
        if row["corrected"]
    )
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["corrected"]:
            reasons.setdefault(row["reason"], []).append(str(row["window"]))
    for reason, labels in reasons.items():
        yield f"  as measured, without an interval ({several(labels, FEW)}): {reason}"


def _of_window(row: Mapping[str, Any]) -> Iterable[Any]:
    old, new = str(row["window"]), str(row["window_after"])
    yield middle(old, 32) if old == new else f"{middle(old, 24)} -> {middle(new, 24)}"
    yield middle(str(row["sensor"]), 32)
    for what, unit in (("power", "w"), ("energy", "j")):
        for when in ("before", "after"):
            name = f"{what}_{when}"
            yield interval(row, f"{name}_{unit}", f"{name}_low_{unit}", f"{name}_high_{unit}")
        yield _percent(row[f"{what}_change"])
    known = {"power": row["power_beyond"], "energy": row["energy_beyond"]}
    said = [what for what, beyond in known.items() if beyond]
    yield "" if None in known.values() else " and ".join(said) or "no"


def _percent(change: float | None) -> str:
    return "" if change is None else f"{100 * change:+.1f} %"


def _cell(row: Mapping[str, Any], name: str) -> Any:
    old, new = str(row["kernel_before"]), str(row["kernel_after"])
    if name == "kernel":
        return middle(old, 32) if old == new else f"{middle(old, 24)} -> {middle(new, 24)}"
    if name in ("before", "after"):
        return row[f"mean_{name}_us"]
    if name == "share":
        return achieved(row["outcome"], row["achieved_share"])
    if name == "limit":
        old, new = row["limit_before"] or "", row["limit_after"] or ""
        return old if old == new else f"{old or '?'} -> {new or '?'}"
    return bounded(row[name], row["predicted_flags"] if name == "predicted" else None)
