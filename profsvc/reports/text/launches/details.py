"""The details of launches as text for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc import specs
from profsvc.errors import counted
from profsvc.kernel_names import NO_NAME
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell
from profsvc.reports.text.cells import BAR_WIDTH, bar, bounded, page_of
from profsvc.reports.text.models.launch_models import model_lines

Row = Mapping[str, Any]
TITLE_WIDTH = 1 + max(len(one["title"]) for one in specs.criteria()["criterion"])


OTHER_FORMS = {"published": "value_as_published", "conditional": "value_conditional"}


def launches(view: Mapping[str, Any], *, published: bool = False, conditional: bool = False) -> str:
    """Return the details of the launches of one kernel; on request with the values of other forms of the criteria."""
    forms = [name for name, asked in {"published": published, "conditional": conditional}.items() if asked]
    more = ["", "TRUNCATED: showing the longest launches. More: --limit N; all: --all"]
    pages = "\n".join(page_of(_launch(one, forms)) for one in view["launches"])
    return pages + (page_of(more) if view["truncated"] else "")


def _launch(one: Row, forms: Sequence[str]) -> Iterable[str]:
    yield from _heading(one, "published" in forms)
    yield ""
    flags = "  flags" if any(row["flags"] for row in one["criteria"]) else ""
    columns = f"value  share  speedup{''.join(f'  {name}' for name in forms)}{flags}"
    # Without bars the columns of another form fit into 80 characters.
    width = TITLE_WIDTH - 1 if forms else TITLE_WIDTH + BAR_WIDTH
    yield f"   {'criterion':{width}}  {columns}"
    if one["reason"]:
        yield f"   none: {one['reason']}"
    for row in one["criteria"]:
        yield _criterion(row, forms)
    for row in one["of_run"]:
        yield f"{_criterion(row, forms)}  (whole run)"
    took = one["launch"]["duration_ns"]
    for part in (_units(one), model_lines(one["models"], took), _advice(one["advice"]), _estimates(one["rules"])):
        if lines := list(part):
            yield ""
            yield from lines


def _duration(ns: float, digits: int) -> str:
    """Write a time in us, from a second on in s.

    >>> _duration(2_120_610, 6), _duration(6e9, 6)
    ('2120.61 us', '6 s')
    """
    return f"{ns / 1e3:.{digits}g} us" if ns < 1e9 else f"{ns / 1e9:.{digits}g} s"


def _heading(one: Row, published: bool) -> Iterable[str]:
    launch, bound, duration_ns = one["launch"], one["potential"], one["launch"]["duration_ns"]
    shapes = []
    for what in ("grid", "block"):
        sizes = [launch[f"{what}_{axis}"] for axis in "xyz"]
        shapes.append(f"{what} ({', '.join('?' if size is None else str(size) for size in sizes)})")
    took = "no duration" if duration_ns is None else _duration(duration_ns, 6)
    of = "#" + str(launch["launch_index"])
    if launch["launch_index"] is None:
        of = f"mean of {counted(launch['launches'] or '?', 'launch')} of"
    yield f"{of} {launch['kernel'] or NO_NAME}"
    yield f"   {' '.join(shapes)} on {launch['device'] or '?'}; {took}"
    if bound and bound["speedup"] is not None:
        titles = {unit["quantity"]: unit["title"] for unit in one["units"]}
        now, then = (titles.get(bound[name], bound[name]) for name in ("bound", "ideal_bound"))
        ideal = f"ideal {_duration(bound['ideal_ns'], 4)}, limited by {then}"
        low, high = (times(bound.get(name)) for name in ("speedup_low", "speedup_high"))  # not of an older service
        if low != high:
            ideal = f"eight of ten mended kernels: {low} to {high}; {ideal}"
        yield (
            f"   limited by {now}; potential {bounded(bound['speedup'], bound['flags'])} ({ideal}), "
            f"ceiling {bounded(bound['speedup_ceiling'], bound['ceiling_flags']) or 'unknown'}"
            + (f", as published {times(bound['speedup_as_published']) or 'unknown'}" if published else "")
        )
    elif bound:
        yield f"   no potential: {bound['reason']}"
    if one.get("first"):  # an older service does not say it
        yield f"   {one['first']}"


def _units(one: Row) -> Iterable[str]:
    if one["units"]:
        yield "   useful work: share of time that it needs at the peak of each unit"
    duration = one["launch"]["duration_ns"]
    for unit in one["units"]:
        share = None if not duration or unit["value"] is None else unit["value"] / duration
        label = "unknown" if share is None else f"{100 * share:5.1f} %"
        yield f"   {unit['title']:{TITLE_WIDTH}}{bar(share)}  {label}"


def _advice(advice: Sequence[Row]) -> Iterable[str]:
    if advice:
        yield "   what to do first"
    for number, hint in enumerate(advice, 1):
        saved = hint["kind"]
        if saved == "saving":
            saved = f"up to {100 * hint['saving_fraction']:.0f} % less {hint['budget']}"
        elif saved == "unexplained":
            saved = f"{100 * hint['saving_fraction']:.0f} % of the time"
        capped = " (limited by overall potential)" if hint["capped"] else ""
        told = "".join(piece["text"] for piece in hint["evidence"])
        yield f"   {number}. [{saved}{capped}] {hint['title']}{f' ({told})' if told else ''}: {hint['hint']}"


def _estimates(rules: Iterable[Row]) -> Iterable[str]:
    estimates = [rule for rule in rules if rule["estimated_saving_fraction"] is not None]
    if estimates:
        yield "   Nsight estimates (global: share of kernel time; local: share of one unit's inefficiency, not a time)"
    for rule in sorted(estimates, key=lambda r: -r["estimated_saving_fraction"]):
        saved, speedup = f"{100 * rule['estimated_saving_fraction']:.1f} %", times(rule["estimated_speedup"])
        yield f"   {rule['rule']:34}{rule['kind'] or '':8}{saved:>8}  {speedup}".rstrip()
        if rule["cause"]:
            yield f"      here: {rule['cause']}, {100 * rule['cause_saving_fraction']:.1f} % of the time"
        if rule["difference"]:
            yield f"      they differ: {rule['difference']}"


def _criterion(row: Row, forms: Sequence[str]) -> str:
    width = TITLE_WIDTH - 1 if forms else TITLE_WIDTH + BAR_WIDTH
    if row["value"] is None:
        return f"   {row['title']:{width}}  {row['reason']}"
    share = "" if row["share"] is None else f"{row['share']:.2f}"
    others = "".join(f"  {cell(row[OTHER_FORMS[name]]):>{len(name)}}" for name in forms)
    title = f"{row['title']:{width}}" if forms else f"{row['title']:{TITLE_WIDTH}}{bar(row['value'])}"
    return (
        f"   {title}  {row['value']:5.3f}  {share:>5}  {times(row['speedup']):>7}{others}  {row['flags'] or ''}"
    ).rstrip()
