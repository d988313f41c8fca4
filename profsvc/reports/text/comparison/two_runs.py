"""The comparison of two runs as text for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.outcomes import FASTER, REGRESSION
from profsvc.errors import counted, first_of
from profsvc.reports.ratios import times
from profsvc.reports.rows import render, visible
from profsvc.reports.text.cells import NOT_ALL, bounded, middle, several
from profsvc.reports.text.models.values import interval

HEADS = {
    "kernel": "kernel", "before": "before us", "after": "after us", "speedup": "speedup", "predicted": "predicted",
    "share": "share of predicted gain", "estimate": "Nsight estimate", "limit": "limited by",
}  # fmt: skip
POWER_HEADS = ("window", "sensor", "W before", "W after", "change", "J before", "J after", "J change", "significant")
# Smaller changes of criteria are only in the other formats.
MIN_CRITERION_CHANGE = 0.05
MAX_LISTED, MAX_REASONS = 15, 5
# A part of a change below this share of the time is left out of the text.
MIN_PART = 0.005
MAX_PARTS = 4
CHANGED = (REGRESSION, FASTER)


def comparison(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return a comparison as text: warnings, one row per kernel, changed criteria, unmatched kernels."""
    lines = _head(view)
    if view["kernels"]:
        rows = [{title: _cell(row, name) for name, title in HEADS.items()} for row in view["kernels"]]
        lines += ["", *str(render(list(HEADS.values()), rows, "table", width=width)).splitlines(), ""]
        lines.append(
            f"{overall_change(view['geometric_mean_speedup'])} overall (geometric mean of "
            f"{counted(len(view['kernels']), 'kernel')})"
        )
        lines.append("predicted, Nsight estimate: speedup estimated from the earlier run")
        lines.append("share of predicted gain: time saved / predicted saving")
        lines += [NOT_ALL] if any(row["predicted_flags"] for row in view["kernels"]) else []
    elif view["only_before"] or view["only_after"] or not view["power"]:
        lines += ["", "the runs have no kernel in common; name renamed kernels with --map OLD=NEW"]
    lines += _changed_launches(view["kernels"])
    lines += _causes(view["kernels"])
    moved = [row for row in view["criteria"] if abs(row["change"]) >= MIN_CRITERION_CHANGE]
    lines += ["", "changed criteria (1.0: nothing to gain)"] if moved else []
    for row in sorted(moved, key=lambda row: row["change"])[:MAX_LISTED]:
        lines.append(f"  {row['criterion']:24}{row['before']:6.3f} -> {row['after']:6.3f}  {row['kernel_after']}")
    lines += [f"  and {len(moved) - MAX_LISTED} more: -o json"] if len(moved) > MAX_LISTED else []
    for key, words in (("only_before", "only before"), ("only_after", "only after")):
        names = [middle(str(one["kernel"]), 40) for one in view[key]]
        lines += [f"{words}: {first_of(names, MAX_LISTED)}"] if names else []
    lines += ["", *_power(view["power"], width)] if view["power"] else []
    lines += _recorded(view.get("predictions"))
    return "\n".join(visible(line) for line in lines) + "\n"


def changed_parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the change of a kernel's mean time and the causes that explain it; empty without them.

    >>> changed_parts([{"title": "Barriers", "change_fraction": 0.09},
    ...                {"title": "Unexplained time", "change_fraction": 0.03}])
    '+12 %: of this, +9 % barriers, +3 % unexplained time'
    """
    told = large_parts(parts)
    if not told:
        return ""
    named = [f"{100 * part['change_fraction']:+.2g} % {_lower(part['title'])}" for part in told]
    return f"{100 * sum(part['change_fraction'] for part in parts):+.2g} %: of this, {', '.join(named)}"


def large_parts(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the largest parts of a kernel's change; what is left of it is the last part, the unexplained."""
    if not parts:
        return []
    told = [dict(part) for part in parts[:-1] if abs(part["change_fraction"]) >= MIN_PART][: MAX_PARTS - 1]
    whole = sum(part["change_fraction"] for part in parts)
    rest = {**parts[-1], "change_fraction": whole - sum(part["change_fraction"] for part in told)}
    return told if abs(rest["change_fraction"]) < MIN_PART else [*told, rest]


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def _changed_launches(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kernels with another number of launches, whose total times the means do not tell."""
    changed = [
        f"  {middle(str(row['kernel_after']), 40)}: {row['launches_before']} -> {row['launches_after']}, in all "
        f"{row['total_before_us']:.4g} -> {row['total_after_us']:.4g} us"
        for row in kernels
        if None not in (row["total_before_us"], row["total_after_us"])
        and row["launches_before"] != row["launches_after"]
    ]
    more = [f"  and {len(changed) - MAX_LISTED} more: -o json"] if len(changed) > MAX_LISTED else []
    return ["", "changed number of launches", *changed[:MAX_LISTED], *more] if changed else []


def _causes(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why the times of kernels changed, those with the largest change first."""
    changed = [row for row in kernels if row["outcome"] in CHANGED and changed_parts(row["causes"])]
    changed.sort(key=lambda row: -abs((row["total_after_us"] or 0) - (row["total_before_us"] or 0)))
    lines = [
        f"  {middle(str(row['kernel_after']), 40)}: {changed_parts(row['causes'])}" for row in changed[:MAX_LISTED]
    ]
    return ["", "why mean times changed", *lines] if lines else []


def overall_change(speedup: float | None) -> str:
    """Return a mean speedup as a change of speed.

    >>> overall_change(0.99), overall_change(1.5), overall_change(1.0001), overall_change(None)
    ('1 % slower', '1.50x faster', 'no change', 'unknown change')
    """
    if speedup is None:
        return "unknown change"
    percent = 100 * (speedup - 1)
    if abs(percent) < 0.05:
        return "no change"
    if abs(percent) > 20:
        return f"{times(max(speedup, 1 / speedup))} {'faster' if speedup > 1 else 'slower'}"
    return f"{abs(percent):.2g} % {'faster' if percent > 0 else 'slower'}"


def achieved(outcome: str | None, share: float | None) -> str:
    """Return the share of the predicted gain that was achieved, or that it is a regression.

    >>> achieved("faster", 0.254), achieved("no change", 0.0), achieved("regression", -0.1), achieved("faster", None)
    ('25 %', '0 %', 'regression', '')
    """
    return REGRESSION if outcome == REGRESSION else "" if share is None else f"{100 * share:.0f} %"


def _recorded(recorded: Mapping[str, Any] | None) -> list[str]:
    """Return how many predictions were saved and scored, and why some were not scored."""
    if not recorded or not recorded["recorded"]:
        return []
    lines = [
        "",
        f"{recorded['recorded']} predictions saved; {recorded['scored'] or 'none'} scored: profsvc report accuracy",
    ]
    reasons = recorded["reasons"]
    lines += [f"  not scored: {reason}" for reason in reasons[:MAX_REASONS]]
    return lines + ([f"  and {len(reasons) - MAX_REASONS} more: -o json"] if len(reasons) > MAX_REASONS else [])


def power_alone(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the comparison of the power of two runs as text."""
    none = ["the runs have no power window in common; see the windows of one run with: profsvc power RUN"]
    lines = [*_head(view), "", *(_power(view["power"], width) if view["power"] else none)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _head(view: Mapping[str, Any]) -> list[str]:
    before, after = view["before"], view["after"]
    names = f"{before['project']}/{before['name']} -> {after['project']}/{after['name']}"
    return [names, *(f"warning: {warning}" for warning in view["warnings"])]


def _power(rows: Sequence[Mapping[str, Any]], width: int | None) -> Iterable[str]:
    """Yield one row per window, the reference temperature, and why windows are not corrected."""
    yield "power"
    cells = [dict(zip(POWER_HEADS, _of_window(row), strict=True)) for row in rows]
    yield from str(render(POWER_HEADS, cells, "table", width=width)).splitlines()
    yield from dict.fromkeys(
        f"  {row['sensor']}: corrected to {row['reference_temperature_c']:.4g} \u00b0C, the reference "
        "temperature of the earlier run; "
        "95 % confidence intervals; significant: they do not overlap"
        for row in rows
        if row["corrected"]
    )
    for reason, labels in reasons_not_corrected(rows):
        yield f"  not corrected, without interval ({labels}): {reason}"


def reasons_not_corrected(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """Yield each reason why windows are not corrected to one temperature, with their labels."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["corrected"]:
            reasons.setdefault(row["reason"], []).append(str(row["window"]))
    yield from ((reason, several(labels, MAX_REASONS)) for reason, labels in reasons.items())


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
