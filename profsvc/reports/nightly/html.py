"""A nightly report as HTML for mails: inline styles, embedded images, no scripts, no requests."""

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from profsvc.reports.nightly import plots as nightly_plots
from profsvc.reports.nightly.content import Finding, Part, foot, head, named, tone
from profsvc.reports.nightly.parts import parts
from profsvc.reports.plots.figure import LIGHT
from profsvc.reports.rows import visible

INK, MUTED, LINE = LIGHT.ink, LIGHT.muted, LIGHT.line
BODY = (
    f"margin:0 auto;padding:16px;max-width:960px;background:#ffffff;color:{INK};"
    "font:15px/1.45 system-ui,-apple-system,'Segoe UI',sans-serif"
)
CELL = f"padding:4px 10px 4px 0;border-bottom:1px solid {LINE};text-align:left;vertical-align:top"
CODE = "font:13px ui-monospace,monospace;background:#f6f8fa;padding:2px 5px;border-radius:3px;overflow-wrap:anywhere"
SHORT = 12
BAD, GOOD, CALM = "#b3261e", "#1a7f37", MUTED
COLOURS = {"worse": BAD, "better": GOOD}


class Picture(NamedTuple):
    """An image of a report: its name, its title and its PNG."""

    name: str
    title: str
    png: bytes


def pictures(document: Mapping[str, Any]) -> list[Picture]:
    """Return the history plots of the worst findings."""
    shown = [(number, row) for number, row in enumerate(document["findings"]) if row.get("history")]
    return [Picture(f"finding-{number}", named(row), nightly_plots.history(row, "png")) for number, row in shown]


def html(document: Mapping[str, Any], source: Callable[[Picture], str] | None = None) -> str:
    """Return the HTML; ``source`` returns the URL of an image (``cid:...`` in a mail), by default embedded."""
    where = source or _inside
    drawn = {one.name: f'src="{escape(where(one))}" alt="{_text(one.title)}"' for one in pictures(document)}
    first, *others = head(document)
    colour = {"worse": BAD, "changed": INK}.get(tone(document), CALM)
    body = [
        f'<h1 style="font-size:20px;margin:0 0 8px;color:{colour}">{_text(first)}</h1>',
        *(_words(words) for words in others),
        *(_part(part, drawn) for part in parts(document)),
        f'<hr style="border:0;border-top:1px solid {LINE};margin:24px 0 8px">',
        *(_words(words) for words in foot(document)),
    ]
    title, whole = _text(f"Nightly report of {document['night']}"), "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light">'
        f'<title>{title}</title></head><body style="{BODY}">\n{whole}\n</body></html>\n'
    )


def _inside(picture: Picture) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"


def _text(words: Any) -> str:
    return escape(visible(str(words)))


def _words(words: str) -> str:
    return f'<p style="margin:4px 0;color:{MUTED}">{_text(words)}</p>'


def _part(part: Part, drawn: Mapping[str, str]) -> str:
    made = [f'<h2 style="font-size:16px;margin:28px 0 8px">{_text(part.title)}</h2>']
    made += [_table(part.heads, part.rows)] if part.rows else []
    made += [_words(words) for words in part.words]
    made += [_finding(finding, drawn) for finding in part.findings]
    return "\n".join(made)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col" style="{CELL};color:{MUTED};font-weight:600">{_text(name)}</th>' for name in heads)
    cells = (
        "".join(f'<td style="{CELL};{_kept(cell)}color:{COLOURS.get(cell, INK)}">{_text(cell)}</td>' for cell in row)
        for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    style = "border-collapse:collapse;width:100%;font-size:14px"
    head_row = f"<thead><tr>{top}</tr></thead>"
    return f'<div style="overflow-x:auto"><table style="{style}">{head_row}<tbody>{body}</tbody></table></div>'


def _kept(cell: str) -> str:
    """Return the style that keeps a number and its unit on one line."""
    return "white-space:nowrap;" if len(cell) <= SHORT else ""


def _finding(finding: Finding, drawn: Mapping[str, str]) -> str:
    why = "".join(f'<li style="margin:2px 0">{_text(words)}</li>' for words in finding.why)
    codes = "".join(f'<p style="margin:4px 0"><code style="{CODE}">{_text(one)}</code></p>' for one in finding.commands)
    shown = drawn.get(finding.picture or "")
    picture = f'<img {shown} width="640" style="max-width:100%;height:auto;margin:6px 0">' if shown else ""
    return (
        f'<div style="margin:18px 0 0"><h3 style="font-size:15px;margin:0;overflow-wrap:anywhere">{_text(finding.head)}'
        f'</h3>{picture}<ul style="margin:6px 0;padding-left:20px;color:{MUTED}">{why}</ul>{codes}</div>'
    )
