"""Asks a compiled maker of pages about random rows and compares what it answers with plain Python.

``python -m tests.robustness.sanitized pages --minutes 60`` compiles it with the sanitizers of addresses and of
undefined behaviour and runs this file under them; the process ends where one finds something. Only the standard library
is used, so that this runs in an interpreter under sanitizers.
"""

import importlib.machinery
import importlib.util
import math
import random
import struct
import sys
import time
from array import array
from typing import Any, NamedTuple

PAGE, HEAD, SPILL = 4096, 8, 8
MAX_COLUMNS, MAX_RECORD, MAX_ROW_ID = 64, 0x7F, (1 << 56) - 1
REALS = (0.0, -0.0, 0.5, 5e-324, -5e-324, math.inf, -math.inf, math.nan, 2.0**47, -(2.0**47), 2.0**47 - 1, 1e300)


class Question(NamedTuple):
    """Rows of a table, and the room for their pages; a column is whether it has doubles, values, missing or None."""

    first_row: int
    rows: int
    columns: tuple[tuple[bool, Any, Any], ...]
    bytes_of_pages: int
    last_rows: int


def question(draw: random.Random) -> Question:
    """Return rows of any kind, mostly with enough room."""
    rows = draw.choice((0, 1, 2, 3, 40, 700, draw.randrange(2500)))
    width = draw.choice((*range(20), draw.randrange(MAX_COLUMNS + 2)))
    bits = draw.choice((1, 8, 20, 48, 63))
    columns = []
    for _ in range(width):
        real, held = draw.random() < 0.3, rows + draw.choice((0, 0, 0, 0, 0, 1, -1 if draw.random() < 0.1 else 0))
        held = max(held, 0)
        values: Any = array("d" if real else "q", (_real(draw) if real else _whole(draw, bits) for _ in range(held)))
        part = draw.choice((0.0, 0.1, 0.9, 1.0))
        missing = draw.choice((None, bytes(draw.choice((1, 7, 255)) * (draw.random() < part) for _ in range(held))))
        columns.append((real, values, missing))
    first = draw.choice((1, 127, 128, 10**9, 1 << draw.randrange(57), MAX_ROW_ID - rows, draw.choice((0, -1, 1 << 62))))
    enough = rows // 20 + 2
    pages = draw.choice((enough, enough, enough, draw.randrange(enough)))
    spare = draw.choice((SPILL, SPILL, SPILL, 0, 7))
    return Question(first, rows, tuple(columns), pages * PAGE + spare, draw.choice((enough, enough, pages, pages // 2)))


def _whole(draw: random.Random, bits: int) -> int:
    size = draw.randrange(bits + 1)
    value = draw.choice(((1 << size) - draw.randrange(2), draw.getrandbits(size))) * draw.choice((1, -1))
    return max(-(1 << 63), min(value, (1 << 63) - 1))


def _real(draw: random.Random) -> float:
    bits = struct.unpack("<d", draw.randbytes(8))[0]
    return float(draw.choice((draw.choice(REALS), float(draw.randrange(-(1 << 50), 1 << 50)), bits)))


def _value(real: bool, value: Any, is_missing: Any) -> tuple[int, bytes]:
    """Return the type of a value in a record of SQLite, and its bytes."""
    if is_missing or value != value:
        return 0, b""
    if real:
        if not -(2.0**47) < value < 2.0**47 or value != int(value) or str(value) == "-0.0":
            return 7, struct.pack(">d", value)
        value = int(value)
    if value in (0, 1):
        return 8 + value, b""
    for kind, size in enumerate((1, 2, 3, 4, 6, 8), 1):
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
            return kind, value.to_bytes(size, "big", signed=True)
    raise AssertionError(value)


def _varint(number: int) -> bytes:
    found = [number & 0x7F]
    while number := number >> 7:
        found.insert(0, 0x80 | number & 0x7F)
    return bytes(found)


def answer(asked: Question) -> tuple[bytes, list[int]] | str:
    """Return the pages and the last row of each, or why there are none."""
    first, rows = asked.first_row, asked.rows
    if len(asked.columns) > MAX_COLUMNS or not 1 <= first <= MAX_ROW_ID - rows:
        return "too many columns or rows"
    if any(len(values) < rows or (gone is not None and len(gone) < rows) for _, values, gone in asked.columns):
        return "a column is shorter than the number of rows"
    room = min(max(asked.bytes_of_pages - SPILL, 0) // PAGE, asked.last_rows)
    pages, lasts, row = [], [], 0
    while row < rows:
        cells: list[bytes] = []
        used = HEAD
        for number in range(row, rows):
            made = [_value(real, values[number], gone and gone[number]) for real, values, gone in asked.columns]
            record = bytes((2 + len(made), 0, *(kind for kind, _ in made))) + b"".join(data for _, data in made)
            if len(record) > MAX_RECORD:
                return "a record is too long"
            cell = bytes((len(record),)) + _varint(first + number) + record
            if used + len(cell) + 2 > PAGE:
                break
            used += len(cell) + 2
            cells.append(cell)
        if len(pages) == room:
            return "there is no room for the pages"
        row += len(cells)
        content = b"".join(cells)
        begin = PAGE - len(content)
        place, pointers = begin, b""
        for cell in cells:
            pointers += struct.pack(">H", place)
            place += len(cell)
        head = struct.pack(">BHHHB", 13, 0, len(cells), begin, 0) + pointers
        pages.append(head.ljust(begin, b"\0") + content)
        lasts.append(first + row - 1)
    return b"".join(pages), lasts


def differences(module: Any, asked: Question) -> str:
    """Return what the module answers differently, or nothing."""
    expected = answer(asked)
    # Buffers of their own, so that a read or a write behind one is seen.
    pages, lasts = bytearray(b"\x07" * asked.bytes_of_pages), array("q", [-7]) * asked.last_rows
    try:
        count = module.leaves(asked.first_row, asked.rows, asked.columns, pages, lasts)
    except ValueError as error:
        return "" if str(error) == expected else f"refused with {error}, not {str(expected)[:80]}"
    if isinstance(expected, str):
        return f"not refused with {expected}"
    same = bytes(pages[: count * PAGE]) == expected[0] and list(lasts[:count]) == expected[1]
    return "" if same else "other pages"


def main(path: str, seconds: float, seed: int) -> int:
    loader = importlib.machinery.ExtensionFileLoader("_pages", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_pages", loader))
    loader.exec_module(module)
    end, asked, rows = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        one = question(random.Random(f"{seed} {asked}"))
        if wrong := differences(module, one):
            sys.stdout.write(f"seed {seed}, question {asked}: {wrong}\n{one}\n")
            return 1
        asked, rows = asked + 1, rows + one.rows
    sys.stdout.write(f"{asked} blocks of {rows} rows: no difference\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
