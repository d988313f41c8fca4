"""A nightly report for build servers: JUnit XML, and the annotations of GitHub's workflow commands."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from profsvc.analysis.changes.nightly import OPEN_STATES
from profsvc.reports.nightly.content import amount, named, percent
from profsvc.reports.nightly.open_findings import began, open_groups
from profsvc.reports.rows import visible

Row = Mapping[str, Any]
ERROR, WARNING, NOTICE = "error", "warning", "notice"
SUITE = "profsvc nightly"
MAX_ANNOTATIONS = 10
"""Annotations of each level that GitHub shows of one step; it drops those after them."""

MAX_NUMBERS = 20
"""Numbers of findings that a check of open findings names."""


def _checks(document: Row) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield level, subject, message and further lines of what a report says: regressions, others, suspicions."""
    for row in document["findings"]:
        if row["state"] in OPEN_STATES:
            since = f" since {str(row['build'])[:12]}" if row.get("build") else ""
            level = {1: ERROR, 0: NOTICE, None: WARNING}[row["worse"]]
            yield level, named(row), f"{_change(row)}{since}", [*map(str, row["why"]), str(row["compare"])]
    for group in document.get("open_groups") or open_groups(document["open"]):
        level = WARNING if group["regressions"] else NOTICE
        numbers = ", ".join(f"#{number}" for number in group["findings"][:MAX_NUMBERS])
        more = len(group["findings"]) - MAX_NUMBERS
        numbers += f" and {more} more" if more > 0 else ""
        since = f"open since {str(group['since'])[:10]}: {numbers}"
        yield level, f"still open since {began(group)}", group["text"], [since]
    for row in document["reruns"]:
        change = percent(row, "expected", "value")
        yield WARNING, named(row), f"suspected, not significant yet: {change}; run it again", [str(row["command"])]


def _change(row: Row) -> str:
    return f"{amount(row['before'], row['unit'])} to {amount(row['after'], row['unit'])} ({percent(row)})"


def junit(document: Row) -> str:
    """Return a report as JUnit XML: a failure for each new regression, a skipped test for what is only suspected.

    The first test stands for the whole night.
    """
    checks = list(_checks(document))
    cases: list[tuple[str, str, str, str, list[str]]] = [("all series", "", NOTICE, document["one_line"], [])]
    cases += [(name, document["night"], level, said, more) for level, name, said, more in checks]
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
    checks = list(_checks(document))
    worst = next((level for level in (ERROR, WARNING) if any(one[0] == level for one in checks)), NOTICE)
    title = f"{SUITE} {document['night']}"
    made = [(worst, _command(worst, title, [str(document["one_line"])]))]
    made += [(level, _command(level, name, [said, *more])) for level, name, said, more in checks]
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
