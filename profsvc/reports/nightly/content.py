"""What the parts of a nightly report are made of: values, changes and names as text, its head and its foot."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.analysis.changes.series.night_values import night_dates
from profsvc.reports.rows import cell, visible
from profsvc.reports.text.cells import middle

Row = Mapping[str, Any]
MAX_DETAILS, MAX_ROWS = 10, 30
MAX_NAME_CHARS = 60
DEVICE_UNKNOWN = "device unknown"
"""Stands where the files of a run name no device; its series are apart from those of a known one."""
DIRECTIONS = {1: "worse", 0: "better", None: ""}
SCALES = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "byte": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


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
    return middle(visible("" if text is None else str(text)), longest)


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
    where += [DEVICE_UNKNOWN] if "device" in row and row["device"] is None else []
    return " ".join(about) + (f" ({', '.join(where)})" if where else "")


def judged(row: Row) -> str:
    """Return whether a change is worse or better, or its later state.

    >>> judged({"worse": 1}), judged({"worse": 1, "state": "accepted"}), judged({"worse": None, "state": "new"})
    ('worse', 'accepted', '')
    """
    state = row.get("state", OPEN_STATES[0])
    return DIRECTIONS[row["worse"]] if state in OPEN_STATES else str(state)


def tone(document: Row) -> str:
    """Return what a report is about: "worse", "changed", "calm", or "not judged" where no series could be.

    >>> nothing = {"findings": [], "moved": [], "open": [], "reruns": [], "kernels": [], "series": {"tested": 3}}
    >>> tone(nothing), tone(nothing | {"series": {"tested": 0}}), tone(nothing | {"open": [{"worse": 1}]})
    ('calm', 'not judged', 'worse')
    """
    if any(judged(row) == "worse" for part in ("findings", "open") for row in document[part]):
        return "worse"
    if any(document[part] for part in ("findings", "moved", "open", "reruns")) or document.get("kernels"):
        return "changed"
    return "calm" if document["series"]["tested"] else "not judged"


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


def night_of(document: Row, at: Any) -> str:
    """Return the night of a time: its date in the time zone of the report.

    >>> night_of({"zone": "Europe/Berlin"}, "2026-01-31T23:30:00Z")
    '2026-02-01'
    """
    return str(night_dates([at], str(document.get("zone") or "UTC"))[0])


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
