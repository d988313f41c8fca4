"""A nightly report as text, Markdown, HTML and for build servers, and the subject of its mail."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.open_findings import OPEN_STATES
from profsvc.errors import counted
from profsvc.reports.nightly.checks import github, junit
from profsvc.reports.nightly.content import Part, foot, head, lines, named, percent
from profsvc.reports.nightly.html import html, pictures
from profsvc.reports.nightly.open_findings import open_groups
from profsvc.reports.nightly.parts import parts
from profsvc.reports.nightly.sarif import sarif
from profsvc.reports.rows import MARKDOWN, render, visible

__all__ = ["FORMS", "html", "in_form", "markdown", "pictures", "short", "subject", "text"]

CHECKS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {"junit": junit, "github": github, "sarif": sarif}
FORMS = ("text", "md", "html", "json", *CHECKS)
MAX_SUBJECT_CHARS = 180
# Markup, and what GitHub and others turn into mentions, references and links.
SIGNS = {**MARKDOWN, ord("_"): "\\_", ord("~"): "\\~", ord("@"): "&#64;", ord("#"): "&#35;"}
LINKS = re.compile(r"(?i)\b(?:https?|ftp|mailto):|\bwww\.")


def in_form(document: Mapping[str, Any], form: str, width: int | None = None) -> str:
    """Return a report in one of `FORMS`."""
    if form == "json":
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    if form in CHECKS:
        return CHECKS[form](document)
    return text(document, width) if form == "text" else markdown(document) if form == "md" else html(document)


def text(document: Mapping[str, Any], width: int | None = None) -> str:
    """Return a report as text for a terminal."""
    written = head(document)
    for part in parts(document):
        written += ["", part.title]
        if part.rows:
            written += [f"  {line}" for line in _table(part, width)]
        written += [f"  {words}" for words in part.words]
        written += ["", *(f"  {line}" for line in lines(part))] if part.findings else []
    return "\n".join(visible(line) for line in [*written, "", *foot(document)]) + "\n"


def _table(part: Part, width: int | None) -> list[str]:
    rows = [dict(zip(part.heads, row, strict=True)) for row in part.rows]
    return str(render(part.heads, rows, "table", width=width)).splitlines()


def markdown(document: Mapping[str, Any]) -> str:
    """Return a report as Markdown in which uploaded strings cannot act as markup, mentions or links."""
    first, *others = head(document)
    written = [f"**{safe(first)}**", "", *map(safe, others)]
    for part in parts(document):
        written += ["", f"### {part.title}", ""]
        if part.rows:
            written += [_line(part.heads), "|" + "---|" * len(part.heads), *map(_line, part.rows), ""]
        written += [f"- {safe(words)}" for words in part.words]
        for finding in part.findings:
            written += [f"- **{safe(finding.head)}**", *(f"  - {safe(words)}" for words in finding.why)]
            written += [f"  - {_code(command)}" for command in finding.commands]
    return "\n".join([*written, "", *map(safe, foot(document))]) + "\n"


def safe(words: str) -> str:
    r"""Return text as Markdown that shows it unchanged.

    >>> print(safe("<b> *x* @all #1 http://a"))
    &lt;b&gt; \*x\* &#64;all &#35;1 http&#58;//a
    """
    broken = LINKS.sub(lambda found: found[0][:-1] + "\0" + found[0][-1], visible(words))
    signs = broken.translate(SIGNS)
    return signs.replace("\0:", "&#58;").replace("\0.", "&#46;")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(safe, cells)) + " |"


def _code(words: str) -> str:
    return f"`{visible(words).replace('`', chr(39))}`"


def subject(document: Mapping[str, Any]) -> str:
    """Return the subject of a mail: one line of limited length."""
    scope = f" {document['project']}" if document["project"] else ""
    whole = " ".join(visible(f"profsvc{scope} {document['night']}: {document['one_line']}").split())
    return whole if len(whole) <= MAX_SUBJECT_CHARS else whole[: MAX_SUBJECT_CHARS - 1] + "\u2026"


def short(document: Mapping[str, Any], max_findings: int = 5, max_open: int = 3) -> list[str]:
    """Return one line per finding as plain text, worst first, and one per change with open findings, control
    characters escaped."""
    rows = document["findings"]
    summary_lines = [
        f"{named(row)} {percent(row)}{'' if row['state'] in OPEN_STATES else ', ' + row['state']}"
        for row in rows[:max_findings]
    ]
    summary_lines += [f"and {len(rows) - max_findings} more"] if len(rows) > max_findings else []
    groups = document.get("open_groups") or open_groups(document["open"])
    summary_lines += [visible(f"open {group['text']}") for group in groups[:max_open]]
    rest = sum(len(group["findings"]) for group in groups[max_open:])
    return summary_lines + ([f"and {counted(rest, 'more open finding')}"] if rest else [])
