"""What a column of a view means, how it is computed, and whose formula that is."""

from typing import Any

from profsvc import specs, store

COLUMN = "column"
KINDS = {COLUMN}
"""Kinds of meanings that do not lead down to cells of files."""


def quantity(name: str) -> dict[str, Any] | None:
    """Return the meaning of ``view.column``; None for what is no column."""
    view, _, column = name.partition(".")
    meanings = store.VIEWS.get(view, ("", {}))[1]
    if column not in meanings:
        return None
    found: dict[str, Any] = {"name": name, "kind": COLUMN, "meaning": meanings[column], "counters": []}
    if (known := specs.computed().get(name)) is not None:
        found["formula"] = known.formula
        if known.reference:
            found["source"] = cited(known.reference, known.section)
    return found


def cited(reference: str, section: str) -> str:
    """Write where a formula stands.

    >>> cited("Amdahl1967", "the law")[:18]
    'Gene M. Amdahl: Va'
    """
    source = specs.references()[reference]
    return f"{', '.join(source.authors)}: {source.title} ({source.year}), section {section}"
