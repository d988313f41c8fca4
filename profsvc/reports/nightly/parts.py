"""The parts of a nightly report, which text, Markdown and HTML share."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.outcomes import NO_CHANGE, REGRESSION, kernel_outcomes
from profsvc.errors import counted
from profsvc.reports.nightly.content import (
    DEVICE_UNKNOWN,
    MAX_DETAILS,
    MAX_ROWS,
    Finding,
    Part,
    amount,
    judged,
    named,
    night_of,
    percent,
    short,
)
from profsvc.reports.nightly.events import ended_early
from profsvc.reports.nightly.open_findings import began, cost, directions, list_command, open_groups
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, visible

Row = Mapping[str, Any]
LIST, JSON = "profsvc findings list", "-o json"  # what lists all rows of a part
MAX_OPEN_GROUPS = 5
"""Changes with open findings that are shown, beside the oldest one."""
ACCURATE_FACTOR = 1.1
"""A prediction is accurate if the achieved speedup is within this factor."""


def parts(document: Row) -> list[Part]:
    """Return the nonempty parts of a report, worst first."""
    made = (
        _found(document), _kernels(document), _moved(document), _reruns(document), _open(document),
        _explained(document), _told(document), _uploads(document), _predictions(document), _uncorrected(document),
        _older_analysis(document), _repeated(document), _out_of_order(document), _without_device(document),
        _runs(document),
    )  # fmt: skip
    return [part for part in made if part.rows or part.words or part.findings]


def _found(document: Row) -> Part:
    heads = ("#", "subject", "before", "after", "change", "uncorrected", "state", "first run")
    rows = document["findings"]
    cells = [
        (
            "" if row["finding_id"] is None else str(row["finding_id"]), named(row), amount(row["before"], row["unit"]),
            amount(row["after"], row["unit"]), percent(row), _measured(row), judged(row), short(row["run"]),
        )
        for row in rows[:MAX_ROWS]
    ]  # fmt: skip
    details = [
        Finding(
            f"{named(row)}: {amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])} "
            f"({', '.join(filter(None, (percent(row), judged(row))))})",
            [visible(str(words)) for words in row["why"]],
            [command for command in (row["compare"], row.get("bisect"), row["accept"]) if command],
            f"finding-{number}" if row.get("history") else None,
        )
        for number, row in enumerate(rows[:MAX_DETAILS])
    ]
    events = document.get("events", ())
    together = [f"one event: {event['text']}" for event in events[:MAX_ROWS]] + _more(events, MAX_ROWS, "event", JSON)
    return Part("Changes", heads, cells, together + _more(rows, MAX_ROWS, "finding", LIST), details)


def _measured(row: Row) -> str:
    if row.get("raw_before") is None:
        return ""
    both = f"{amount(row['raw_before'], row['unit'])} -> {amount(row['raw_after'], row['unit'])}"
    return f"{both} ({percent(row, 'raw_before', 'raw_after')})"


def _more(rows: Sequence[Any], shown: int, what: str, where: str) -> list[str]:
    """Return how many rows are not shown, and where they are."""
    return [f"and {counted(len(rows) - shown, f'more {what}')}: {where}"] if len(rows) > shown else []


def _kernels(document: Row) -> Part:
    rows = document.get("kernels", ())
    cells = [
        (short(row.get("label") or row["subject"]), str(row["text"]), short(row["device"], 40))
        for row in rows[:MAX_ROWS]
    ]
    words = _more(rows, MAX_ROWS, "kernel", JSON)
    if any(row["change"] == "launched" for row in rows):
        words.append("launched differently: no change of the time is significant")
    words += [
        f"{missing} of {row['of']} kernels that ran each night are missing in project {short(row['project'])} on "
        f"{short(row['device'], 40) or DEVICE_UNKNOWN}: if the run ended early, delete it: profsvc delete RUN --all"
        for row, missing in ended_early(rows)
    ]
    return Part(
        "Kernels new, vanished, back, renamed or launched differently", ("kernel", "change", "device"), cells, words
    )


def _moved(document: Row) -> Part:
    rows = [
        (str(row["finding_id"]), named(row), percent(row), f"{row['was']} -> {row['state']}", str(row["because"]))
        for row in document["moved"][:MAX_ROWS]
    ]
    words = _more(document["moved"], MAX_ROWS, "finding", LIST)
    return Part("Status of earlier findings", ("#", "subject", "change", "state", "reason"), rows, words)


def _reruns(document: Row) -> Part:
    rows = [
        (
            named(row), amount(row["expected"], row["unit"]), amount(row["value"], row["unit"]),
            percent(row, "expected", "value"), cell(row["p"]), short(row["run"]), str(row.get("cause") or ""),
        )
        for row in document["reruns"][:MAX_ROWS]
    ]  # fmt: skip
    words = ["not significant yet: two or three more runs distinguish a change from an outlier"] if rows else []
    words += list(dict.fromkeys(visible(str(row["command"])) for row in document["reruns"][:MAX_DETAILS]))
    heads = ("subject", "expected", "latest", "change", "p", "run", "changed with it")
    return Part("Re-runs requested", heads, rows, words + _more(document["reruns"], MAX_ROWS, "change", JSON))


def _open(document: Row) -> Part:
    rows = document["open"]
    groups = document.get("open_groups") or open_groups(rows)  # reports of before lack them
    oldest = min(groups, key=lambda group: str(group["since"]), default=None)
    shown = groups[:MAX_OPEN_GROUPS]
    shown += [oldest] if oldest is not None and oldest not in shown else []
    cells = [
        (
            str(group["costliest"]), began(group), directions(group), group["costliest_text"], cost(group),
            night_of(document, group["since"]) + " (oldest)" * (group is oldest and len(groups) > 1), group["cause"],
        )
        for group in shown
    ]  # fmt: skip
    rest = groups[MAX_OPEN_GROUPS:]
    rest = [group for group in rest if group is not oldest]
    words = []
    if rest:
        count = sum(len(group["findings"]) for group in rest)
        words.append(f"and {counted(len(rest), 'more change')} with {counted(count, 'finding')}")
    if len(rows) > 1:
        words.append(f"all {len(rows)}: {list_command(rows)}")
    heads = ("#", "since", "open", "costliest", "per run", "open since", "changed with it")
    return Part("Open findings", heads, cells, words)


def _explained(document: Row) -> Part:
    rows = [
        (named(row), _measured(row), f"{amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])}")
        for row in document["explained"][:MAX_ROWS]
    ]
    words = ["the uncorrected values changed, but not those at one temperature: no alarm"] if rows else []
    words += _more(document["explained"], MAX_ROWS, "change", JSON)
    return Part("Explained by temperature", ("subject", "uncorrected", "corrected"), rows, words)


TOLD = {
    "drift": "drifts",
    "levels": "goes to this level and comes back",
    "shared": "all series have such nights in common",
    "too dependent": "successive runs resemble each other too much",
}


def _told(document: Row) -> Part:
    rows = sorted(document.get("told", ()), key=lambda row: str(row["shape"]) != "drift")
    cells = [
        (
            named(row), amount(row["before"], row["unit"]), amount(row["after"], row["unit"]), percent(row),
            TOLD.get(str(row["shape"]), str(row["shape"])), night_of(document, row["since"]),
        )
        for row in rows[:MAX_DETAILS]
    ]  # fmt: skip
    words = _more(rows, MAX_DETAILS, "change", JSON)
    left_out = document["series"].get("left_out") or {}
    if left_out.get("nights"):
        words.append(
            f"{counted(left_out['nights'], 'night')} left out of {left_out['series']} series: all kernels say that the "
            "board was not in its usual state (at its power limit, or another board or host under the same name), and "
            f"{left_out['tonight']} series have no other run tonight"
        )
    if left_out.get("weekly"):
        words.append(f"{left_out['weekly']} series follow the day of the week: they are compared without that part")
    heads = ("subject", "before", "after", "change", "explanation", "since")
    return Part("Drift, and steps with another explanation", heads, cells, words)


def _uploads(document: Row) -> Part:
    uploads = document["uploads"]
    rows = [(short(one["file_name"]), short(one["run"]), f"rejected: {short(one['message'], 200)}")
            for one in uploads["refused"][:MAX_ROWS]]  # fmt: skip
    rows += [
        (short(one["file_name"]), short(one["run"]), f"{one['lines_rejected']} of {one['lines']} lines rejected")
        for one in uploads["partial"][:MAX_ROWS]
    ]
    more = len(uploads["refused"]) + len(uploads["partial"]) - len(rows)
    words = [f"and {more} more: see v1_refusals and v1_rejects"] if more > 0 else []
    return Part("Files that failed", ("file", "run", "reason"), rows, words)


def _predictions(document: Row) -> Part:
    scored = [one for one in document["predictions"] if one.get("scored", 1)]
    known = [one for one in scored if one["predicted"] and one["achieved"]]
    rows = [
        (
            short(one["kernel_after"]), str(one["source"]), str(one["criterion"]).replace("_", " "),
            times(one["predicted"]), times(one["achieved"]), prediction_outcome(one),
        )
        for one in sorted(known, key=lambda one: -abs(one["achieved"] - 1))[:MAX_DETAILS]
    ]  # fmt: skip
    words = [f"and {len(known) - MAX_DETAILS} more: profsvc report accuracy"] if len(known) > MAX_DETAILS else []
    heads = ("kernel", "predicted by", "basis", "predicted", "achieved", "outcome")
    return Part("Predictions", heads, rows, words)


def prediction_outcome(row: Row) -> str:
    """Return whether a prediction was accurate.

    >>> pairs = (1.5, 1.45), (1.05, 0.95), (1.05, 1.0), (1.0, 1.3)
    >>> [prediction_outcome({"predicted": predicted, "achieved": achieved}) for predicted, achieved in pairs]
    ['accurate', 'regression', 'no change', 'better than predicted']
    """
    # Reports of old versions lack the times, which the smallest change is relative to.
    before, after = (row.get(name) for name in ("before_ns", "after_ns"))
    if not (before and after):
        before, after = 1e9 * row["achieved"], 1e9
    (made,) = kernel_outcomes([before], [after], [row["predicted"]])
    if made.word == REGRESSION:
        return REGRESSION
    if made.word == NO_CHANGE and made.share is not None:
        return "no change"
    ratio = row["achieved"] / row["predicted"]
    if 1 / ACCURATE_FACTOR <= ratio <= ACCURATE_FACTOR:
        return "accurate"
    return "worse than predicted" if ratio < 1 else "better than predicted"


def _uncorrected(document: Row) -> Part:
    words = [
        f"{counted(row['windows'], 'window')} of power in {counted(row['runs'], 'run')} not corrected: "
        f"{short(row['reason'], 200)}"
        for row in document["uncorrected"][:MAX_DETAILS]
    ]
    words += _more(document["uncorrected"], MAX_DETAILS, "reason", JSON)
    return Part("Power not corrected", words=words)


def _older_analysis(document: Row) -> Part:
    runs = document.get("older_analysis", 0)  # reports of before lack it
    words = [
        f"{counted(runs, 'run')} of before: an older version of the analysis computed the criteria and the potential, "
        "which are not compared; compute them again with: profsvc analyze --all"
    ]
    return Part("Computed by an older version", words=words if runs else [])


def _repeated(document: Row) -> Part:
    repeated = document.get("repeated", [])  # reports of before lack it
    rows = [tuple(short(one[name]) for name in ("run", "project", "repeats", "build")) for one in repeated[:MAX_ROWS]]
    words = [
        "each of these runs only has the bytes of files of another run: nothing was measured, but it counts as a "
        "measurement; check that the job writes new files, and delete the run with: profsvc delete RUN --all"
    ]
    words += _more(repeated, MAX_ROWS, "run", JSON)
    return Part("Repeated files", ("run", "project", "has the files of", "build"), rows, words if rows else [])


def _out_of_order(document: Row) -> Part:
    late = document.get("out_of_order", [])  # reports of before lack it
    rows = [tuple(short(one[name]) for name in ("run", "project", "at", "newest")) for one in late[:MAX_ROWS]]
    words = [
        "each of these runs stands where it was measured, before runs of earlier reports: a change since then is not "
        "judged as one of the newest nights; if the clock of the host was wrong, delete the run and upload its files "
        "again with: profsvc upload --at TIME"
    ]
    words += _more(late, MAX_ROWS, "run", JSON)
    return Part("Runs out of order", ("run", "project", "at (UTC)", "newest night before"), rows, words if rows else [])


def _without_device(document: Row) -> Part:
    unknown = sum(one["device"] is None for one in document["runs"])
    words = [
        f"the files of {unknown} of {counted(len(document['runs']), 'run')} name no device: they have series of their "
        "own, in which boards of different kinds may be mixed; name it with: profsvc upload --device NAME"
    ]
    return Part("Device unknown", words=words if unknown else [])


def _runs(document: Row) -> Part:
    shown = document["runs"][-MAX_ROWS:]
    # Runs of a report that an older version stored have no branch.
    branched = any(one.get("branch") for one in shown)
    rows = [
        (short(one["name"]), short(one["project"]), short(one["device"] or DEVICE_UNKNOWN))
        + ((short(one.get("branch")),) if branched else ())
        + (str(one["at"]), short(one["build"], 20))
        for one in shown
    ]
    more = len(document["runs"]) - len(rows)
    words = [f"and {counted(more, 'older run')}"] if more > 0 else []
    names = ("run", "project", "device", *(("branch",) if branched else ()), "at (UTC)", "build")
    return Part("Runs", names, rows, words)
