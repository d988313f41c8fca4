"""Names as they are typed: a title, an identifier, a flag or its text, in any case, for what `explain` explains."""

import re
from collections.abc import Iterator
from functools import cache

from profsvc import specs, store
from profsvc.analysis.causes.sentence import unit_at_limit
from profsvc.analysis.launches import memory_traces
from profsvc.specs.advice.causes import causes
from profsvc.views.catalog import titles_and_hints
from profsvc.views.models.index import model_rows

# Headings of screens -> the name that they show.
HEADINGS = {
    "comp %": "sol_sm_fraction",
    "mem %": "sol_memory_fraction",
    "us": "duration_ns",
    "takes": "duration_ns",
    "can save": "v1_potential.ideal_ns",
    "potential speedup": "potential",
    "overall potential speedup": "potential",
    "limited by": "bound",
    "what to do first": "advice.saving",
    "first step": "advice.saving",
}


def canonical(name: str) -> str:
    """Return the identifier of a name; an unknown name is returned as it is.

    >>> canonical("DIVERGENCE"), canonical("Shared memory efficiency (bank conflicts)")
    ('divergence', 'shared_efficiency')
    >>> canonical("upper_bound"), canonical("xyzzy")
    ('UPPER_BOUND', 'xyzzy')
    """
    # To list all names takes longer than to explain one of those that people ask for most.
    if name in titles_and_hints() or name in specs.counters():
        return name
    known, by_text = _known()
    return name if name in known else by_text.get(_key(name), name)


@cache
def _known() -> tuple[frozenset[str], dict[str, str]]:
    """Return all identifiers, and the identifier of each title and spelling; earlier ones win."""
    identifiers, by_text = list(_identifiers()), dict[str, str]()
    for name in identifiers:
        by_text.setdefault(_key(name), name)
    for title, name in _titles():
        by_text.setdefault(_key(title), name)
    return frozenset(identifiers), by_text


def _identifiers() -> Iterator[str]:
    yield from titles_and_hints()
    yield from (f"model.{row['name']}" for row in model_rows())
    yield from ("potential", memory_traces.MODEL, *causes())
    for names in (specs.models(), specs.counters(), specs.model_inputs(), specs.terms()):
        yield from names
    yield from specs.patterns()
    yield from (name for name in specs.computed() if name not in store.VIEWS)
    for view, (_, columns) in store.VIEWS.items():
        yield from (f"{view}.{column}" for column in columns)
    for expression in specs.metrics("ncu", "9.0").values():
        yield from expression.names


def _titles() -> Iterator[tuple[str, str]]:
    yield from HEADINGS.items()
    for name, entry in titles_and_hints().items():
        yield entry["title"], name
    for name, model in specs.models().items():
        yield model.title, name
    for name, cause in causes().items():
        yield cause.title, name
        yield unit_at_limit(cause.title), name
    for name, pattern in specs.patterns().items():
        yield pattern.title, name
    for name, meanings in specs.terms().items():
        yield from ((meaning, name) for meaning in meanings.values())
    for one in specs.criteria()["characterization"]:
        yield one["name"], one["name"]


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.casefold()).strip(" .:,")
