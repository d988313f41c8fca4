"""The meaning, formula and source of columns of views and of numbers on pages."""

import dataclasses
from typing import Any

from profsvc import specs, store

COLUMN = "column"
NUMBER = "number"
FIGURES = "device"
KINDS = {COLUMN, NUMBER}
"""Kinds of explanations that are not derived from counters."""


def quantity(name: str) -> dict[str, Any] | None:
    """Return the meaning of ``view.column`` or of a number of a page; None for other names."""
    view, _, column = name.partition(".")
    meanings, known = store.VIEWS.get(view, ("", {}))[1], specs.computed()
    one = known.get(name) or known.get(view)
    if column in meanings:
        found: dict[str, Any] = {"name": name, "kind": COLUMN, "meaning": meanings[column], "counters": []}
    elif one is not None and one.meaning and (name in known or column in _figures()):
        of = f", {column.replace('_', ' ')}" if view == FIGURES else ""
        found = {"name": name, "kind": NUMBER, "meaning": one.meaning + of, "counters": []}
    else:
        return None
    if one is not None:
        found |= {key: value for key in ("formula", "read", "unit") if (value := getattr(one, key))}
        if one.reference:
            found["source"] = cited(one.reference, one.section)
    return found


def _figures() -> set[str]:
    return {field.name for field in dataclasses.fields(specs.Device)}


def cited(reference: str, section: str) -> str:
    """Return the citation of a formula.

    >>> cited("Amdahl1967", "the law")[:18]
    'Gene M. Amdahl: Va'
    """
    source = specs.references()[reference]
    return f"{', '.join(source.authors)}: {source.title} ({source.year}), section {section}"
