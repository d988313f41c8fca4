"""The content of a nightly report by part, which text, Markdown and HTML share."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from profsvc.analysis.changes.nightly import OPEN_STATES
from profsvc.analysis.changes.outcomes import NO_CHANGE, REGRESSION, kernel_outcomes
from profsvc.errors import counted
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, visible

Row = Mapping[str, Any]
MAX_DETAILS, MAX_ROWS = 10, 30
MAX_NAME_CHARS = 60
DIRECTIONS = {1: "worse", 0: "better", None: ""}
SCALES = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "byte": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
ACCURATE_FACTOR = 1.1
"""A prediction is accurate if the achieved speedup is within this factor."""


class Finding(NamedTuple):
    """One change: its title, its evidence and the next commands."""

    head: str
    why: Sequence[str]
    commands: Sequence[str]
    picture: str | None


class Part(NamedTuple):
    """A part of a report: a title, a table, notes, and details of ``findings``."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    words: Sequence[str] = ()
    findings: Sequence[Finding] = ()


def first_run(finding: Row) -> str:
    """Return the first run of a finding in words.

    >>> first_run({"run": "night 7"}), first_run({"run": None})
    ('run night 7', 'a run that was deleted')
    """
    return f"run {short(finding['run'])}" if finding["run"] else "a run that was deleted"


def short(text: Any, longest: int = MAX_NAME_CHARS) -> str:
    """Return a name of limited length with escaped control characters, shortened in its middle.

    >>> short("a" * 9 + "b", 5)
    'aa\u2026ab'
    """
    whole = visible("" if text is None else str(text))
    left = longest // 2
    return whole if len(whole) <= longest else f"{whole[:left]}\u2026{whole[len(whole) - (longest - left - 1) :]}"


def amount(value: float | None, unit: str) -> str:
    """Return a value with a suitable unit.

    >>> amount(125_000.0, "ns"), amount(0.25, "1"), amount(None, "W")
    ('125 us', '0.25', 'unknown')
    """
    if value is None:
        return "unknown"
    for size, name in SCALES.get(unit, ()):
        if abs(value) >= size:
            return f"{cell(float(value) / size)} {name}"
    shown = unit.replace("degC", "\u00b0C")
    return cell(float(value)) + (f" {shown}" if unit != "1" else "")


def percent(row: Row, before: str = "before", after: str = "after") -> str:
    """Return a change in percent; of criteria and temperatures the difference."""
    old, new = row[before], row[after]
    if old is None or new is None:
        return ""
    if row["kind"] in ("criterion", "temperature", "data_quality") or old == 0:
        return f"{'+' * (new >= old)}{amount(new - old, row['unit'])}"
    return f"{100 * (new - old) / abs(old):+.1f} %"


def named(row: Row) -> str:
    """Return the subject of a finding."""
    about = [short(row.get("label") or row["subject"]), str(row["quantity"]).replace("_", " ")]
    where = [short(row[name], 40) for name in ("sensor", "device") if row.get(name)]
    return " ".join(about) + (f" ({', '.join(where)})" if where else "")


def judged(row: Row) -> str:
    """Return whether a change is worse or better, or its later state.

    >>> judged({"worse": 1}), judged({"worse": 1, "state": "accepted"}), judged({"worse": None, "state": "new"})
    ('worse', 'accepted', '')
    """
    state = row.get("state", OPEN_STATES[0])
    return DIRECTIONS[row["worse"]] if state in OPEN_STATES else str(state)


def parts(document: Row) -> list[Part]:
    """Return the nonempty parts of a report, worst first."""
    made = (
        _found(document), _kernels(document), _moved(document), _reruns(document), _open(document),
        _explained(document), _told(document), _uploads(document), _predictions(document), _uncorrected(document),
        _older_analysis(document), _runs(document),
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
    together = [f"one event: {event['text']}" for event in document.get("events", ())[:MAX_ROWS]]
    return Part("Changes", heads, cells, together + _more(rows, MAX_ROWS, "findings"), details)


def _measured(row: Row) -> str:
    if row.get("raw_before") is None:
        return ""
    both = f"{amount(row['raw_before'], row['unit'])} -> {amount(row['raw_after'], row['unit'])}"
    return f"{both} ({percent(row, 'raw_before', 'raw_after')})"


def _more(rows: Sequence[Any], shown: int, what: str) -> list[str]:
    return [f"and {len(rows) - shown} more {what}: profsvc findings list"] if len(rows) > shown else []


def _kernels(document: Row) -> Part:
    rows = document.get("kernels", ())
    cells = [
        (short(row.get("label") or row["subject"]), str(row["text"]), short(row["device"], 40))
        for row in rows[:MAX_ROWS]
    ]
    words = [f"and {len(rows) - MAX_ROWS} more kernels"] if len(rows) > MAX_ROWS else []
    if any(row["change"] == "launched" for row in rows):
        words.append("launched differently: no change of the time is significant")
    if any(row["change"] == "renamed" for row in rows):
        words.append("renamed: the history begins again, so that no later night compares with the times before")
    return Part("Kernels new, vanished, renamed or launched differently", ("kernel", "change", "device"), cells, words)


def _moved(document: Row) -> Part:
    rows = [
        (str(row["finding_id"]), named(row), percent(row), f"{row['was']} -> {row['state']}", str(row["because"]))
        for row in document["moved"]
    ]
    return Part("Status of earlier findings", ("#", "subject", "change", "state", "reason"), rows)


def _reruns(document: Row) -> Part:
    rows = [
        (
            named(row), amount(row["expected"], row["unit"]), amount(row["value"], row["unit"]),
            percent(row, "expected", "value"), cell(row["p"]), short(row["run"]),
        )
        for row in document["reruns"][:MAX_ROWS]
    ]  # fmt: skip
    words = ["not significant yet: two or three more runs distinguish a change from an outlier"] if rows else []
    words += list(dict.fromkeys(visible(str(row["command"])) for row in document["reruns"][:MAX_DETAILS]))
    heads = ("subject", "expected", "latest", "change", "p", "run")
    return Part("Re-runs requested", heads, rows, words + _more(document["reruns"], MAX_ROWS, "series"))


def _open(document: Row) -> Part:
    rows = [
        (str(row["finding_id"]), named(row), percent(row), str(row["state"]), str(row["changed_at"])[:10])
        for row in document["open"][:MAX_ROWS]
    ]
    words = _more(document["open"], MAX_ROWS, "findings")
    return Part("Open findings", ("#", "subject", "change", "state", "since"), rows, words)


def _explained(document: Row) -> Part:
    rows = [
        (named(row), _measured(row), f"{amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])}")
        for row in document["explained"][:MAX_ROWS]
    ]
    words = ["the uncorrected values changed, but not those at one temperature: no alarm"] if rows else []
    return Part("Explained by temperature", ("subject", "uncorrected", "corrected"), rows, words)


TOLD = {
    "drift": "drifts",
    "levels": "goes to this level and comes back",
    "too dependent": "successive runs resemble each other too much",
}


def _told(document: Row) -> Part:
    rows = sorted(document.get("told", ()), key=lambda row: str(row["shape"]) != "drift")
    cells = [
        (
            named(row), amount(row["before"], row["unit"]), amount(row["after"], row["unit"]), percent(row),
            TOLD.get(str(row["shape"]), str(row["shape"])), str(row["since"])[:10],
        )
        for row in rows[:MAX_DETAILS]
    ]  # fmt: skip
    words = [f"and {len(rows) - MAX_DETAILS} more: -o json"] if len(rows) > MAX_DETAILS else []
    left_out = document["series"].get("left_out") or {}
    if left_out.get("nights"):
        words.append(
            f"{counted(left_out['nights'], 'night')} left out of {left_out['series']} series: all kernels say that the "
            f"board was not in its usual state, and {left_out['tonight']} series have no other run tonight"
        )
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
    return Part("Power not corrected", words=words)


def _older_analysis(document: Row) -> Part:
    runs = document.get("older_analysis", 0)  # reports of before lack it
    words = [
        f"{counted(runs, 'run')} of before: an older version of the analysis computed the criteria and the potential, "
        "which are not compared; compute them again with: profsvc analyze --all"
    ]
    return Part("Computed by an older version", words=words if runs else [])


def _runs(document: Row) -> Part:
    shown = document["runs"][-MAX_ROWS:]
    # Runs of a report that an older version stored have no branch.
    branched = any(one.get("branch") for one in shown)
    rows = [
        (short(one["name"]), short(one["project"]), short(one["device"]))
        + ((short(one.get("branch")),) if branched else ())
        + (str(one["at"]), short(one["build"], 20))
        for one in shown
    ]
    more = len(document["runs"]) - len(rows)
    words = [f"and {more} older runs"] if more > 0 else []
    names = ("run", "project", "device", *(("branch",) if branched else ()), "at (UTC)", "binary")
    return Part("Runs", names, rows, words)


def head(document: Row) -> list[str]:
    """Return the lines above the parts: the summary, and the period of the report."""
    since = document["since"]
    scope = f"project {short(document['project'])}" if document["project"] else "all projects"
    end = _end_text(document)
    if since:
        period = f"uploads since report {since['report_id']} of {since['night']}, until {end}"
    else:
        period = f"first report: covers all uploads until {end}"
    return [
        visible(str(document["one_line"])),
        f"{document['night']}, {scope}; {period}",
    ]


def _end_text(document: Row) -> str:
    """Return the end of the period of a report as text with its zone."""
    try:
        return f"{datetime.fromisoformat(str(document['ends'])):%-d %b %Y %H:%M} {document['zone']}"
    except ValueError:
        return f"{document['ends']} {document['zone']}"


def foot(document: Row) -> list[str]:
    """Return the lines below the parts: the number of series, and the thresholds of findings."""
    series = document["series"]
    short_ones = f"; too few runs: {series['short']} (the next needs {series['needed']} more)"
    return [
        f"{series['looked_at']} series checked, {series['tested']} tested{short_ones if series['short'] else ''}; "
        f"{series['corrected']} corrected to one temperature.",
        "A finding needs p <= 0.01, a false-discovery rate <= 5 % per night, and a change above the reporting "
        "threshold. "
        "Noise is estimated from the history of each series.",
    ]


def lines(part: Part) -> Iterable[str]:
    """Yield the lines of the findings of a part."""
    for finding in part.findings:
        yield finding.head
        yield from (f"  {words}" for words in finding.why)
        yield from (f"  $ {command}" for command in finding.commands)
