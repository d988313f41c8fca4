"""The pages of the formats that are read: ``formats.toml``."""

import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.table_files import text_of

FILE = "files/formats.toml"
MEMORY_TRACE, PHASE_MARKS, TIMESERIES = "memory-trace", "marks", "timeseries"
"""Formats that are known by their names beyond their readers."""


def read_format_pages(text: str | None = None) -> Mapping[str, str]:
    """Read ``formats.toml``: the page of each format by its name."""
    found: dict[str, str] = {}
    for entry in tomllib.loads(text_of(FILE) if text is None else text)["format"]:
        if set(entry) != {"name", "page"} or not entry["page"].strip():
            raise DomainError(f"{FILE} format {entry.get('name')!r}: needs exactly a name and a page")
        if entry["name"] in found:
            raise DomainError(f"{FILE} format {entry['name']!r}: a name stands once")
        found[entry["name"]] = entry["page"]
    return MappingProxyType(found)


@cache
def format_pages() -> Mapping[str, str]:
    """Return the page of each format by its name, in the order in which they are listed.

    >>> list(format_pages())[:3]
    ['ncu-raw', 'ncu-details', 'ncu-text']
    """
    return read_format_pages()
