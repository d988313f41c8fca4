"""A nightly report as a page that a mail can be: styles in the elements, pictures inside, no script, no request."""

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from profsvc.reports import figures, nightly_figures
from profsvc.reports.nightly_parts import Finding, Part, foot, head, named, parts
from profsvc.reports.rows import visible

INK, SOFT, LINE = (figures.LIGHT[name] for name in ("ink", "soft", "line"))
BODY = (
    f"margin:0 auto;padding:16px;max-width:960px;background:#ffffff;color:{INK};"
    "font:15px/1.45 system-ui,-apple-system,'Segoe UI',sans-serif"
)
CELL = f"padding:4px 10px 4px 0;border-bottom:1px solid {LINE};text-align:left;vertical-align:top"
CODE = "font:13px ui-monospace,monospace;background:#f6f8fa;padding:2px 5px;border-radius:3px;overflow-wrap:anywhere"
SHORT = 12
BAD, GOOD, CALM = "#b3261e", "#1a7f37", SOFT
COLOURS = {"worse": BAD, "better": GOOD}


class Picture(NamedTuple):
    """A picture of a report: the name by which the page shows it, what it shows, and its bytes as PNG."""

    name: str
    title: str
    png: bytes


def pictures(document: Mapping[str, Any]) -> list[Picture]:
    """Draw the history of the worst findings."""
    shown = [(number, row) for number, row in enumerate(document["findings"]) if row.get("history")]
    return [Picture(f"finding-{number}", named(row), nightly_figures.history(row, "png")) for number, row in shown]


def html(document: Mapping[str, Any], source: Callable[[Picture], str] | None = None) -> str:
    """Return the page; ``source`` says where a picture is (``cid:...`` in a mail), by default in the page itself."""
    where = source or _inside
    drawn = {one.name: f'src="{escape(where(one))}" alt="{_text(one.title)}"' for one in pictures(document)}
    first, *others = head(document)
    worse = any(row["worse"] for part in ("findings", "open") for row in document[part])
    calm = not (document["changed"] or document["open"] or document["reruns"])
    colour = BAD if worse else CALM if calm else INK
    body = [
        f'<h1 style="font-size:20px;margin:0 0 8px;color:{colour}">{_text(first)}</h1>',
        *(_words(words) for words in others),
        *(_part(part, drawn) for part in parts(document)),
        f'<hr style="border:0;border-top:1px solid {LINE};margin:24px 0 8px">',
        *(_words(words) for words in foot(document)),
    ]
    title, whole = _text(f"Night of {document['night']}"), "\n".join(body)
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
    return f'<p style="margin:4px 0;color:{SOFT}">{_text(words)}</p>'


def _part(part: Part, drawn: Mapping[str, str]) -> str:
    made = [f'<h2 style="font-size:16px;margin:28px 0 8px">{_text(part.title)}</h2>']
    made += [_table(part.heads, part.rows)] if part.rows else []
    made += [_words(words) for words in part.words]
    made += [_finding(finding, drawn) for finding in part.findings]
    return "\n".join(made)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col" style="{CELL};color:{SOFT};font-weight:600">{_text(name)}</th>' for name in heads)
    cells = (
        "".join(f'<td style="{CELL};{_kept(cell)}color:{COLOURS.get(cell, INK)}">{_text(cell)}</td>' for cell in row)
        for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    style = "border-collapse:collapse;width:100%;font-size:14px"
    head_row = f"<thead><tr>{top}</tr></thead>"
    return f'<div style="overflow-x:auto"><table style="{style}">{head_row}<tbody>{body}</tbody></table></div>'


def _kept(cell: str) -> str:
    """Keep a figure and its unit on one line."""
    return "white-space:nowrap;" if len(cell) <= SHORT else ""


def _finding(finding: Finding, drawn: Mapping[str, str]) -> str:
    why = "".join(f'<li style="margin:2px 0">{_text(words)}</li>' for words in finding.why)
    codes = "".join(f'<p style="margin:4px 0"><code style="{CODE}">{_text(one)}</code></p>' for one in finding.commands)
    shown = drawn.get(finding.picture or "")
    picture = f'<img {shown} width="640" style="max-width:100%;height:auto;margin:6px 0">' if shown else ""
    return (
        f'<div style="margin:18px 0 0"><h3 style="font-size:15px;margin:0;overflow-wrap:anywhere">{_text(finding.head)}'
        f'</h3>{picture}<ul style="margin:6px 0;padding-left:20px;color:{SOFT}">{why}</ul>{codes}</div>'
    )
