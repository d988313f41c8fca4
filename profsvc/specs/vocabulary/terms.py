"""Words in rows of the views other than counters, criteria and inputs: flags, quantities, kinds."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from profsvc.specs.table_files import rows_of
from profsvc.specs.traces.wall_time import wall_time_categories

FILE = "vocabulary/terms.csv"
CATEGORY = "category of the wall time"
WILDCARD = "*"


def read_terms(text: str | None = None) -> dict[str, dict[str, str]]:
    """Read ``terms.csv``: each word with what it means, by what it is one of."""
    found: dict[str, dict[str, str]] = {}
    for row in rows_of(FILE, ("term", "of", "meaning"), text):
        if not all((row["term"], row["of"], row["meaning"])):
            raise row.wrong("term, of and meaning must all be there")
        if row["of"] in found.setdefault(row["term"], {}):
            raise row.wrong(f"{row['term']!r} is already known as {row['of']}")
        found[row["term"]][row["of"]] = row["meaning"]
    return found


@cache
def terms() -> Mapping[str, Mapping[str, str]]:
    """Return what each word means, by what it is one of; a word that ends in ``*`` stands for any end."""
    categories = {name: {CATEGORY: one.meaning} for name, one in wall_time_categories().items()}
    return MappingProxyType(read_terms() | categories)


def term(name: str) -> Mapping[str, str]:
    """Return what a word means, by what it is one of; nothing for an unknown one.

    >>> term("hot_spot"), term("per_joule_on_16_sms"), term("luck")
    ({'quantity of power': 'highest temperature on the die'}, {'quantity of power': 'work per joule on this number \
of SMs'}, {})
    """
    known = terms()
    begun = [one for one in known if one.endswith(WILDCARD) and len(one) <= len(name) and name.startswith(one[:-1])]
    return known.get(name) or (known[max(begun, key=len)] if begun and not name.endswith(WILDCARD) else {})
