"""The explanation of a number as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from profsvc.reports.rows import cell
from profsvc.reports.text.cells import page_of

Row = Mapping[str, Any]


def explanation(view: Mapping[str, Any]) -> str:
    """Return the meaning and derivation of a number as text."""
    lines = [f"{view['name']}: {view['meaning']}"]
    lines += [f"  {word:9} {view[word]}" for word in ("formula", "read", "source", "unit", "hint") if view.get(word)]
    if view["definitions"] and not view["trace"]:
        lines.append("  counters")
        for counter in view["definitions"]:
            lines.append(f"    {counter['name']} [{counter['unit']}]: {counter['meaning']}")
            lines += [f"      {tool:7} {text}" for tool, text in counter["expressions"].items()]
    lines += [line for figure in view.get("figures", ()) for line in _figure(figure)]
    more = ["TRUNCATED: showing the longest launches. Select a kernel with --kernel"]
    return page_of([*lines, *map(_step, view["trace"]), *(more if view.get("truncated") else [])])


def _figure(row: Row) -> list[str]:
    head = f"  {row['reproduced']:6}  {row['figure']}: {row['printed'] or 'nothing'} {row['unit']} printed".rstrip()
    found = f", {row['computed']} by {row['formula'] or 'counting'}" if row["computed"] else ""
    why = [f"          {row['why']}"] if row["why"] else []
    return [f"{head}{found}   [{row['source']}] {row['place']}", *why]


def _step(row: Row) -> str:
    if row.get("metric"):
        return f"        {row['metric']} = {row['raw_text']}   ({row['file']} line {row['line']})"
    value = cell(row.get("value")) or "unknown"
    unit = "" if value == "unknown" or row.get("unit") in (None, "", "1") else f" {row['unit']}"
    whose = "run" if row["launch"] is None else f"#{row['launch']}"
    return f"  {whose} {row['name']} = {value}{unit}   {row['from']}"
