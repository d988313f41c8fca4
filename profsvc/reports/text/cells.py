"""Cells of text output: shortened names, bars, and speedups that may be bounds."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.errors import first_of
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, render, visible

BAR_WIDTH = 10
HASH_DIGITS = 12
_HASH = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
MIN_CELL_WIDTH = 10
# Sign before a potential that is only a bound.
SIGNS = {(): "", ("LOWER_BOUND",): "≥ ", ("UPPER_BOUND",): "≤ ", ("LOWER_BOUND", "UPPER_BOUND"): "~ "}
NOT_ALL = "≥ at least, ≤ at most, ~ either: the export lacks counters; show --kernel lists what to collect"


def middle(text: str, width: int) -> str:
    """Shorten a long name in its middle, where names differ least; a commit to its first digits, by which git finds it.

    >>> middle("reduce_v1_divergent", 11)
    'reduc…rgent'
    >>> middle("3f2c1ab900d417e6a5b8c2d9f0e1a2b3c4d5e6f7", 20)
    '3f2c1ab900d4'
    """
    if len(text) <= width:
        return text
    if _HASH.fullmatch(text):
        return text[: min(width, HASH_DIGITS)]
    left = width // 2
    return text[:left] + "…" + text[len(text) - (width - left - 1) :]


def wrapped(text: str, width: int, further: str = "") -> list[str]:
    """Break a long text into lines, those after the first behind ``further``; a command to copy stays on one line.

    >>> wrapped("not computed yet; run: profsvc analyze id:1", 24)
    ['not computed yet; run:', 'profsvc analyze id:1']
    """
    whole = re.sub(r"(?<=: )(?:profsvc|ncu|nsys|nvprof) [^;]+", lambda command: command[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(whole, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def several(names: Sequence[str], most: int) -> str:
    """Return the first of several names, which may contain commas.

    >>> several(["mem, 1 SM", "mem, 2 SMs", "idle"], 2)
    'mem, 1 SM; mem, 2 SMs and 1 more'
    """
    return first_of((middle(name, 32) for name in names), most, "; ")


def bar(value: float | None) -> str:
    """Draw a value of [0, 1].

    >>> bar(0.3)
    '███·······'
    """
    if value is None:
        return " " * BAR_WIDTH
    full = round(max(0.0, min(1.0, value)) * BAR_WIDTH)
    return "█" * full + "·" * (BAR_WIDTH - full)


def bounded(speedup: float | None, flags: str | None) -> str:
    """Return a potential, with a sign if it is only a bound.

    >>> bounded(1.5, None), bounded(1.5, "LOWER_BOUND"), bounded(1.5, "UPPER_BOUND LOWER_BOUND"), bounded(None, None)
    ('1.50x', '≥ 1.50x', '~ 1.50x', '')
    """
    return f"{sign_of(flags)}{times(speedup)}" if speedup is not None else ""


def sign_of(flags: str | None) -> str:
    """Return the sign before a potential with these flags.

    >>> sign_of("LOWER_BOUND"), sign_of(None)
    ('≥ ', '')
    """
    return SIGNS[tuple(sorted(set((flags or "").split()) & {"LOWER_BOUND", "UPPER_BOUND"}))]


def page_of(lines: Iterable[str]) -> str:
    """Join lines into a page; control characters are escaped."""
    return "\n".join(visible(line) for line in lines) + "\n"


def fitted_table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int | None, optional: Sequence[str] = ()
) -> list[str]:
    """Return the lines of a table in which no row wraps.

    If the width is too small, ``optional`` columns are dropped in order, and long texts are shortened.

    >>> fitted_table(["#", "kernel", "us"], [{"#": 1, "kernel": "reduce_v1_divergent", "us": 2.5}], 18, ["us"])
    ['#  kernel', '1  reduce_…vergent', 'not shown at this width: us']
    """
    columns, left_out = list(columns), []
    sizes = {name: max(len(name), *(len(cell(row.get(name))) for row in rows)) for name in columns}
    for name in (one for one in optional if one in columns):
        if width is None or sum(sizes[one] + 2 for one in columns) - 2 <= width:
            break
        columns.remove(name)
        left_out.append(name)
    texts = [name for name in columns if any(isinstance(row.get(name), str) for row in rows)]
    while width is not None and texts and sum(sizes[one] + 2 for one in columns) - 2 > width:
        longest = max(texts, key=lambda name: sizes[name] - len(name) if sizes[name] <= len(name) else sizes[name])
        if sizes[longest] <= max(MIN_CELL_WIDTH, len(longest)):
            break
        sizes[longest] -= 1
    short = [{**row, **{name: middle(cell(row.get(name)), sizes[name]) for name in texts}} for row in rows]
    lines = str(render(columns, short, "table", width=max(width or 0, 1000))).splitlines()
    return lines + ([f"not shown at this width: {', '.join(left_out)}"] if left_out else [])
