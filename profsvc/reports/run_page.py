"""A run as one HTML file: no scripts, no requests, light and dark; all strings are escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from profsvc.analysis.causes.sentence import brief
from profsvc.errors import counted
from profsvc.reports.html_style import STYLE
from profsvc.reports.kernel_names import labelled
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell
from profsvc.reports.text.cells import bounded
from profsvc.reports.text.runs.run import KERNELS, cut


def _text(value: Any) -> str:
    """Return a value as HTML for an element or a quoted attribute; empty for null."""
    return escape(cell(value))


def _bar(value: float | None, label: str) -> str:
    if value is None:
        return ""
    width = 100 * max(0.0, min(1.0, value))
    return f'<span class="bar" role="img" aria-label="{_text(label)}"><i style="width:{width:.1f}%"></i></span>'


def _table(heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML cells; ``heads`` are (title, class)."""
    head = "".join(f'<th class="{kind}" scope="col">{_text(title)}</th>' for title, kind in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{value}</td>' for value, (_, kind) in zip(row, heads, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    heads = [("#", "n"), ("kernel", ""), ("us", "n"), ("compute", ""), ("memory", ""), ("limited by", ""),
             ("potential", "n"), ("ceiling", "n"), ("what to do first", "")]  # fmt: skip

    def share(value: float | None) -> str:
        return "" if value is None else f"{_bar(value / 100, f'{value} percent')} {value:.0f} %"

    return _table(
        heads,
        (
            [
                f'<a href="#launch-{r["launch_id"]}">{r["launch"]}</a>',
                f'<span title="{_text(r["kernel_full"])}">{_text(r["kernel"])}</span>',
                cell(r["duration_us"]),
                share(r["compute_pct"]),
                share(r["memory_pct"]),
                _text(r["bound"] or r["reason"]),
                bounded(r["potential"], r["flags"]),
                bounded(r["ceiling"], r["ceiling_flags"]),
                _text(brief(r["causes"]) if r["causes"] else r["first"]),
            ]
            for r in labelled(rows)
        ),
    )


def _kernels(view: Mapping[str, Any]) -> str:
    """Return the totals by kernel, if not all launches have a row."""
    if not view["truncated"]:
        return ""
    heads = [(title, "" if name == "kernel_short" else "n") for name, title in KERNELS.items()]
    named = labelled(view["kernels"], "kernel_short", "kernel")
    table = _table(heads, ([_text(row[name]) for name in KERNELS] for row in named))
    return f"{table}<p><strong>{'<br>'.join(_text(line) for line in cut(view) if line)}</strong></p>"


def _launch(one: Mapping[str, Any]) -> str:
    launch, bound = one["launch"], one["potential"] or {}
    potential = bounded(bound.get("speedup"), bound.get("flags")) or "unknown"
    facts = f"{cell(launch['duration_ns']) or 'unknown'} ns, potential {potential}"
    return (
        f'<section id="launch-{launch["launch_id"]}"><h2>#{launch["launch_index"]} <code>{_text(launch["kernel"])}'
        f"</code></h2><p>{_text(facts)}</p>{_criteria(one['criteria'])}<ol>{_hints(one['advice'])}</ol>"
        f"{_vendor(one['rules'])}</section>"
    )


def _criteria(rows: Iterable[Mapping[str, Any]]) -> str:
    heads = [
        ("criterion", ""),
        ("", ""),
        ("value", "n"),
        ("share", "n"),
        ("speedup", "n"),
        ("published", "n"),
        ("", ""),
    ]
    return _table(
        heads,
        (
            [
                _text(r["title"]),
                _bar(r["value"], cell(r["value"])),
                cell(r["value"]),
                cell(r["share"]),
                times(r["speedup"]),
                cell(r["value_as_published"]),
                f'<span class="muted">{_text(r["reason"] or r["flags"])}</span>',
            ]
            for r in rows
        ),
    )


def _vendor(rules: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        [_text(r["rule"]), _text(r["kind"]), f"{100 * saving:.1f} %", times(r["estimated_speedup"])]
        for r in rules
        if (saving := r["estimated_saving_fraction"]) is not None
    ]
    heads = [("Nsight rule", ""), ("kind", ""), ("estimate", "n"), ("speedup", "n")]
    return _table(heads, rows) if rows else ""


def _hints(advice: Iterable[Mapping[str, Any]]) -> str:
    out = []
    for hint in advice:
        saved = hint["kind"]
        if saved == "saving":
            saved = f"up to {100 * hint['saving_fraction']:.0f} % less {hint['budget']}"
        elif saved == "unexplained":
            saved = f"{100 * hint['saving_fraction']:.0f} % of the time"
        told = "".join(piece["text"] for piece in hint["evidence"])
        title = f"{hint['title']}{f' ({told})' if told else ''}"
        out.append(f"<li><b>{saved}</b> {_text(title)}: {_text(hint['hint'])}</li>")
    return "".join(out)


def run(view: Mapping[str, Any], launches: Iterable[Mapping[str, Any]]) -> str:
    """Return the page of a run; ``launches`` are the details of its launches."""
    info, whole = view["run"], view["potential"] or {}
    title = _text(f"{info['name']} on {info['device'] or 'an unknown device'}")
    ms = cell((whole.get("duration_ns") or 0) / 1e6)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{counted(view['total_launches'], 'launch')}, {ms} ms; potential of the run "
        f"{bounded(whole.get('speedup'), whole.get('flags')) or 'unknown'}</p>"
        f"{_kernels(view)}{_summary(view['launches'])}"
        f"{''.join(_launch(one) for one in launches)}"
        '<p class="muted">potential: all waste removed, same algorithm; '
        "ceiling: limit if only DRAM traffic and arithmetic were left."
        "</p></body></html>\n"
    )
