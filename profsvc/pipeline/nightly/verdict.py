"""The line that says what a night brought, so that it is true read alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc import specs
from profsvc.analysis.changes.board_conditions import CONDITIONS
from profsvc.analysis.changes.events import CLOCK, KERNEL, TOGETHER
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.reports.nightly.content import DEVICE_UNKNOWN, amount, short
from profsvc.reports.nightly.events import event_count, kernel_counts
from profsvc.reports.nightly.open_findings import open_words
from profsvc.reports.rows import visible

Row = dict[str, Any]
COMMON = {CLOCK: "change of the clock", TOGETHER: "change of all kernels"}


def one_line(made: Mapping[str, Any]) -> str:
    """Say what a night brought; what is suspected, still open or not judged is in it."""
    runs, series = _several(len(made["runs"]), "run"), made["series"]
    events, alone = _events_of(made)
    sure = event_count(events) + _by_direction(alone, ("regression", "improvement", "other change"))
    states = [row["state"] for row in made["moved"]]
    states += [row["state"] for row in made["findings"] if row["state"] not in OPEN_STATES]
    sure += [f"{states.count(what)} {what}" for what in ("accepted", "fixed", "confirmed") if what in states]
    suspected = [f"{_several(len(made['reruns']), 'suspected change')} (re-run wanted)"] if made["reruns"] else []
    open_ = open_words(made["open_groups"])
    of_them = f", {series['short']} of them too short to judge" if series["short"] else ""
    looked = f"{series['looked_at']} series{of_them}"
    if not made["runs"]:
        since = f" since the report of {made['since']['night']}" if made["since"] else " yet"
        words = [f"nothing new: no runs{since}"]
    elif sure or suspected:
        several = len({row["device"] for row in made["runs"]}) > 1
        worst = ""
        if alone:
            word = "worst" if alone[0]["worse"] == 1 else "largest"
            worst = f"; {word}: {headline(alone[0], device=several)}{since_text(alone[0], _common(alone[0], made))}"
        worst = worst or (f"; {events[0]['text']}" if events else "")
        worst = worst if sure else f": {_suspicion(made['reruns'][0], device=several)}"
        lead = "" if sure else "nothing certain: "
        words = [f"{lead}{', '.join(sure + suspected)} in {runs}{worst}"]
    elif series["short"] and not series["tested"]:
        needed = f", the closest needs {_several(series['needed'], 'more run')}" if series["needed"] else ""
        words = [f"no series could be judged: {runs}, all {series['looked_at']} series are too short{needed}"]
    else:
        what = "no series" if made.get("kernels") else "nothing"
        words = [f"{what} {'new' if open_ and what == 'nothing' else 'changed'}: {runs}, {looked}"]
    if series["short"] and (sure or suspected):
        words.append(f"{series['short']} of {series['looked_at']} series too short to judge")
    if (left_out := series.get("left_out", {}).get("tonight", 0)) and made["runs"]:
        words.append(f"{left_out} of {series['looked_at']} series not compared: the board was not in its usual state")
    words += kernel_counts(made.get("kernels", []))
    return "; ".join([words[0], *open_, *words[1:]]) + _upload_summary(made)


def _events_of(made: Mapping[str, Any]) -> tuple[list[Row], list[Row]]:
    """Return the events that are no regression of one kernel, and the open findings that a verdict counts apart.

    Of several quantities of one kernel the leading one counts.
    """
    rows, events = made["findings"], made.get("events", [])
    hidden = {place for event in events for place in event["members"][event["kind"] == KERNEL :]}
    alone = [row for place, row in enumerate(rows) if row["state"] in OPEN_STATES and place not in hidden]
    return [event for event in events if event["kind"] != KERNEL], alone


def _common(row: Row, made: Mapping[str, Any]) -> str:
    """Return what all kernels of the first run of a finding changed by, where the finding stands beside that."""
    for event in made.get("events", []):
        first = made["findings"][event["members"][0]]
        if event["kind"] in COMMON and all(row[name] == first[name] for name in ("project", "device", "run_id")):
            return COMMON[event["kind"]]
    return ""


def since_text(row: Row, common: str = "") -> str:
    """Return the first commit of a change and what changed with it.

    Where a clock or driver changed too the commit comes last, unless that is a ``common`` change beside this one.
    """
    build = short(row["build"], 20) if row.get("build") else ""
    changed = row.get("build_before") not in (None, row.get("build"))
    if common and row["kind"] == "duration":
        return f" since {build}, beyond the {common}" if changed else f", beyond the {common}"
    if context_changed(row) and changed:
        return f" ({row['cause']}; and the commit: {build})"
    since = f" since {build}" if build else ""
    return since + (f" ({row['cause']})" if row.get("cause") else "")


def context_changed(row: Row) -> bool:
    """Tell whether more than the code differs between the runs before a change and those since."""
    return any(one["part"] == "context" for one in row.get("differences", ()))


def _by_direction(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    counts = [sum(row["worse"] == worse for row in rows) for worse in (1, 0, None)]
    return [_several(count, what) for count, what in zip(counts, names, strict=True) if count]


def _suspicion(row: Row, *, device: bool) -> str:
    before, after = row["expected"], row["value"]
    said = headline(
        row | {"before": before, "after": after, "change": (after - before) / abs(before) if before else None},
        device=device,
    )
    own = row["kind"] in CONDITIONS  # a clock explains itself
    return said + (since_text(row) if context_changed(row) and not own else "")


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _upload_summary(made: Mapping[str, Any]) -> str:
    uploads = made["uploads"]
    counts = {"file refused": len(uploads["refused"]), "file with lines rejected": len(uploads["partial"])}
    plural = {"file refused": "files refused", "file with lines rejected": "files with lines rejected"}
    said = [f"{count} {what if count == 1 else plural[what]}" for what, count in counts.items() if count]
    return "".join(f"; {words}" for words in said)


def headline(row: Mapping[str, Any], *, device: bool = False) -> str:
    """Say a change in a few words, on which ``device`` if asked.

    >>> row = {"subject": "saxpy", "quantity": "duration", "kind": "duration", "before": 100.0, "after": 112.0}
    >>> headline(row | {"change": 0.12})
    'saxpy duration +12.0 %'
    """
    named = f"{short(row.get('label') or row['subject'])} {row['quantity'].replace('_', ' ')}"
    if device:
        named += f" on {visible(str(row['device']))[:40]}" if row["device"] else f", {DEVICE_UNKNOWN},"
    if specs.smallest_change(row["kind"]).relative > 0 and row["change"] is not None:
        return f"{named} {100 * row['change']:+.1f} %"
    return f"{named} {amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])}"
