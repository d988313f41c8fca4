"""Records of a text file: one or more physical lines each, with their kind and their cells.

Every physical line belongs to exactly one record, so the line counts of an upload add up.
"""

import csv
import threading
from typing import NamedTuple

SKIP, HEADER, UNITS, ROW, REJECT = "skip", "header", "units", "row", "reject"
MAX_TEXT_CHARS = 2000
"""Characters of a rejected line that are stored."""
MAX_CELL_CHARS = 1 << 20
MAX_RECORD_CHARS = 4 << 20
MAX_PENDING_LINES = 1000
"""Lines that may wait until it is known whether they interrupt a table or follow it."""

_CSV_LIMIT_LOCK = threading.Lock()


class Record(NamedTuple):
    """One record: what it is, where it begins, how many physical lines it spans, its cells and its text."""

    kind: str
    line: int
    lines: int
    text: str
    cells: list[str]
    reason: str = ""


def split_cells(text: str, separator: str = ",") -> list[str]:
    """Split the text of one CSV record into its cells.

    >>> split_cells('"0","f<int, 2>",')
    ['0', 'f<int, 2>', '']
    """
    text = text.rstrip("\r\n")
    if separator != ",":
        return _split_any(text, separator) if '"' in text else text.split(separator)
    if text.startswith('"'):
        # Most rows quote every cell and hold no other quote: then splitting on the quotes is exact, and 5 times faster.
        body, tail = (text[:-1], [""]) if text.endswith('",') else (text, [])
        cells = body[1:-1].split('","')
        if body.endswith('"') and body.count('"') == 2 * len(cells):
            return cells + tail
    return _split_any(text)


def _split_any(text: str, separator: str = ",") -> list[str]:
    # csv keeps its limit on the length of a cell for the whole process; kernel names can be longer than the default.
    with _CSV_LIMIT_LOCK:
        limit = csv.field_size_limit(MAX_CELL_CHARS)
        try:
            return next(csv.reader([text], delimiter=separator), [])
        except csv.Error:
            return []
        finally:
            csv.field_size_limit(limit)
