"""A nightly report for build servers: JUnit XML, and the annotations of GitHub's workflow commands."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from profsvc.analysis.changes.events import CLOCK, KERNEL, SHIFT, TOGETHER
from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.reports.nightly.content import amount, named, night_of, percent, short
from profsvc.reports.nightly.open_findings import began, open_groups
from profsvc.reports.rows import visible

Row = Mapping[str, Any]
ERROR, WARNING, NOTICE = "error", "warning", "notice"
DIRECTIONS = {1: "regression", 0: "improvement", None: "change"}
LEVELS = {1: ERROR, 0: NOTICE, None: WARNING}
EVENTS = {CLOCK: "clock-change", TOGETHER: "change-of-all-kernels", SHIFT: "time-shift"}
OPEN, SUSPECTED = "open-findings", "suspected-change"
NEW, UNCHANGED = "new", "unchanged"
SUITE = "profsvc nightly"
MAX_ANNOTATIONS = 10
"""Annotations of each level that GitHub shows of one step; it drops those after them."""

MAX_NUMBERS = 20
"""Numbers of findings that a check of open findings names."""


class Check(NamedTuple):
    """One thing that a report says: how bad it is, of which sort, about what, and in which words."""

    level: str
    sort: str
    subject: str
    message: str
    more: Sequence[str]
    rows: Sequence[Row]
    """Findings that it is about."""
    state: str


def checks(document: Row) -> Iterator[Check]:
    """Yield what a report says: changes, open findings, suspicions.

    Findings that a clock, a driver or the like explains are one check, which is no failure: the code is not to blame
    for them before that. Of several quantities of one kernel the leading one counts.
    """
    findings, hidden = document["findings"], set[int]()
    for event in document.get("events", ()):
        rows = [findings[place] for place in event["members"] if findings[place]["state"] in OPEN_STATES]
        if event["kind"] == KERNEL:
            hidden |= set(event["members"][1:])
        elif rows:
            hidden |= set(event["members"])
            more = [str(rows[0]["compare"])]
            yield Check(_event_level(event), EVENTS[event["kind"]], event["kind"], event["text"], more, rows, NEW)
    for place, row in enumerate(findings):
        if row["state"] in OPEN_STATES and place not in hidden:
            since = f" since {short(row['build'], 20)}" if row.get("build") else ""
            more = [*map(str, row["why"]), str(row["compare"])]
            yield Check(LEVELS[row["worse"]], sort_of(row), named(row), f"{_change(row)}{since}", more, [row], NEW)
    for group in document.get("open_groups") or open_groups(document["open"]):
        own = set(group["findings"])
        rows = [row for row in document["open"] if row["finding_id"] in own]
        numbers = ", ".join(f"#{number}" for number in group["findings"][:MAX_NUMBERS])
        rest = len(group["findings"]) - MAX_NUMBERS
        numbers += f" and {rest} more" if rest > 0 else ""
        since = f"open since {night_of(document, group['since'])}: {numbers}"
        level = WARNING if group["regressions"] else NOTICE
        yield Check(level, OPEN, f"still open since {began(group)}", group["text"], [since], rows, UNCHANGED)
    for row in document["reruns"]:
        more = [f"changed with it: {row['cause']}"] if row.get("cause") else []
        said = f"suspected, not significant yet: {percent(row, 'expected', 'value')}; run it again"
        yield Check(WARNING, SUSPECTED, named(row), said, [*more, str(row["command"])], [row], NEW)


def _event_level(event: Row) -> str:
    if event["kind"] == TOGETHER and not event.get("settings"):
        return ERROR if event.get("slower") else NOTICE
    return WARNING if event.get("slower") or event["kind"] == SHIFT else NOTICE


def sort_of(row: Row) -> str:
    """Return the sort of a finding.

    >>> sort_of({"kind": "duration", "worse": 1}), sort_of({"kind": "data_quality", "worse": None})
    ('duration-regression', 'data-quality-change')
    """
    return f"{row['kind'].replace('_', '-')}-{DIRECTIONS[row['worse']]}"


def _change(row: Row) -> str:
    return f"{amount(row['before'], row['unit'])} to {amount(row['after'], row['unit'])} ({percent(row)})"


def junit(document: Row) -> str:
    """Return a report as JUnit XML: a failure for each new regression, a skipped test for what is only suspected.

    The first test stands for the whole night.
    """
    cases: list[tuple[str, str, str, str, list[str]]] = [("all series", "", NOTICE, document["one_line"], [])]
    cases += [(one.subject, document["night"], one.level, one.message, list(one.more)) for one in checks(document)]
    failed = sum(level == ERROR for _, _, level, _, _ in cases)
    skipped = sum(level == WARNING for _, _, level, _, _ in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    # The schema that Jenkins checks files against has no skipped tests here.
    root = ElementTree.Element("testsuites", {name: counts[name] for name in ("tests", "failures", "errors")})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": f"{SUITE} {document['night']}", "timestamp": document["begins"], **counts}
    )
    for name, _, level, said, more in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": SUITE, "name": visible(str(name)), "time": "0"})
        words = visible(str(said))
        if level == NOTICE:
            ElementTree.SubElement(case, "system-out").text = "\n".join([words, *map(visible, more)])
        else:
            part = ElementTree.SubElement(case, "failure" if level == ERROR else "skipped", {"message": words})
            part.text = "\n".join(map(visible, more))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def github(document: Row) -> str:
    """Return a report as annotations of a GitHub workflow, the verdict first: print it in a step.

    New regressions are errors; what is only suspected, and what is still open, are warnings. Where there are more of a
    level than GitHub shows of one step, the last of them counts the rest.
    """
    found = list(checks(document))
    worst = next((level for level in (ERROR, WARNING) if any(one.level == level for one in found)), NOTICE)
    title = f"{SUITE} {document['night']}"
    made = [(worst, _command(worst, title, [str(document["one_line"])]))]
    made += [(one.level, _command(one.level, one.subject, [one.message, *one.more])) for one in found]
    of_level, lines, seen = Counter(level for level, _ in made), list[str](), Counter[str]()
    for level, line in made:
        seen[level] += 1
        if of_level[level] <= MAX_ANNOTATIONS or seen[level] < MAX_ANNOTATIONS:
            lines.append(line)
        elif seen[level] == MAX_ANNOTATIONS:
            rest = of_level[level] - MAX_ANNOTATIONS + 1
            lines.append(_command(level, title, [f"and {rest} more: profsvc findings list"]))
    return "\n".join(lines) + "\n"


def _command(level: str, title: str, lines: list[str]) -> str:
    """Return a workflow command; no text ends it or begins another.

    >>> _command("error", "a,b: 5 %", ["slow", "er"])
    '::error title=a%2Cb%3A 5 %25::slow%0Aer'
    """
    signs: dict[str, str | int | None] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
    both = str.maketrans(signs | {":": "%3A", ",": "%2C"})
    message = "\n".join(map(visible, lines)).translate(str.maketrans(signs))
    return f"::{level} title={visible(title).translate(both)}::{message}"
