"""Values as a page writes them: filters of the templates. A value that is missing is a dash, never 0."""

from datetime import datetime
from typing import Any

from markupsafe import Markup

from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, plain, visible
from profsvc.reports.text import middle, sign_of

NONE = "\u2013"
KEPT = "\n\t\u202f\u2009\xa0"
LONGEST = 300
MOST = 1 << 62
ROOMS = ((12, "short"), (16, ""), (40, "some"), (MOST, "long"))
MOST_TEXT = 50_000
GROUPED, LARGEST = 1e4, 1e15
"""From where to where a number is written whole."""
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"), (1.0, "ns"))
_THOUSANDS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
COUNTED = {"bit", "op/cycle"}
"""Units of numbers that are known whole: of lines of a bus, of operations of a unit."""
_BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def harmless(given: Any) -> Any:
    r"""Return what a page writes, a text with control characters and turns of the writing direction as escapes.

    A text of more than `MOST_TEXT` characters is cut in its middle.

    Every value of every template goes through here; lines and narrow spaces stay.

    >>> print(harmless("a\u202eb\x1b\n1\u202f000"))
    a\u202eb\x1b
    1\u202f000
    """
    if not isinstance(given, str) or isinstance(given, Markup):
        return given
    if len(given) > MOST_TEXT:
        given = middle(given, MOST_TEXT)
    if given.isprintable():
        return given
    return "".join(c if c.isprintable() or c in KEPT else visible(c) for c in given)


def value(given: Any) -> str:
    """Return any value, a long text cut in its middle.

    >>> value(0.123456), value(None), value("x"), value(12345678), value(12345678.9)
    ('0.1235', '\u2013', 'x', '12\u202f345\u202f678', '12\u202f345\u202f679')
    >>> value(value(1024)) == value(1024)
    True
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return count(given)
    if isinstance(given, float) and GROUPED <= abs(given) < LARGEST:
        return count(round(given))
    # A number that is written already keeps the spaces between its thousands.
    shown = harmless(given) if isinstance(given, str) and not set(given) & set("\n\t") else cell(given)
    return middle(shown, LONGEST) or NONE


def count(given: int | None) -> str:
    """Return a whole number with narrow spaces between thousands.

    >>> count(1234567), count(None)
    ('1\u202f234\u202f567', '\u2013')
    """
    return NONE if given is None else f"{given:,}".replace(",", "\u202f")


def duration(given_ns: float | None) -> str:
    """Return a time in the unit that fits it.

    >>> duration(12345.6), duration(2.5e9), duration(0), duration(None)
    ('12.35 \u00b5s', '2.5 s', '0 ns', '\u2013')
    """
    given_ns = plain(given_ns)
    if given_ns is None:
        return NONE
    size, unit = next((pair for pair in _TIMES if abs(given_ns) >= pair[0]), _TIMES[-1])
    return f"{cell(float(given_ns / size))} {unit}"


def size(given_bytes: float | None) -> str:
    """Return a number of bytes in the unit that fits it.

    >>> size(2048), size(17), size(None)
    ('2 KiB', '17 B', '\u2013')
    """
    if given_bytes is None:
        return NONE
    unit = next((pair for pair in _BYTES if abs(given_bytes) >= pair[0]), (1, "B"))
    return f"{cell(given_bytes / unit[0])} {unit[1]}"


def si(given: float | None, unit: str = "") -> str:
    """Return a number with its unit, by thousands.

    Bytes are counted in powers of 2, as makers count capacities; rates are not.

    >>> si(262144, "byte"), si(62914560, "byte"), si(1024, "op/cycle"), si(384, "bit")
    ('256 KiB', '60 MiB', '1\u202f024 op/cycle', '384 bit')
    >>> si(1.98e9, "Hz"), si(128, ""), si(4.8143e12, "byte/s"), si(None, "W"), si(0.5, "W")
    ('1.98 GHz', '128', '4.814 TB/s', '\u2013', '0.5 W')
    """
    given = plain(given)
    if given is None:
        return NONE
    if not unit:
        return value(given)
    if unit == "byte":
        return size(given)
    if unit in COUNTED:
        return f"{value(given)} {unit}"
    unit = unit.replace("byte", "B")
    scale, letter = next((pair for pair in _THOUSANDS if abs(given) >= pair[0]), (1.0, ""))
    return f"{cell(float(given / scale))} {letter}{unit}"


def percent(given: float | None, digits: int = 1) -> str:
    """Return a share as percent.

    >>> percent(0.1234), percent(None), percent(1.0)
    ('12.3 %', '\u2013', '100 %')
    """
    given = plain(given)
    if given is None:
        return NONE
    return f"{100 * given:.{digits}f}".removesuffix(f".{'0' * digits}") + " %"


def bound_sign(flags: object) -> str:
    """Return the sign before a potential; none where the row has no flags.

    >>> bound_sign("UPPER_BOUND"), bound_sign(None)
    ('≤ ', '')
    """
    return sign_of(flags) if isinstance(flags, str) else ""


def speedup(given: float | None) -> str:
    """Return a speedup.

    >>> speedup(1.234), speedup(None)
    ('1.23\xd7', '\u2013')
    """
    return times(plain(given)).replace("x", "\u00d7") or NONE


def when(given: str | None) -> str:
    """Return an instant of ISO 8601 as people write it, in UTC.

    >>> when("2026-11-21T04:00:07Z"), when(None), when("yesterday")
    ('2026-11-21 04:00', '\u2013', 'yesterday')
    """
    if not given:
        return NONE
    try:
        return datetime.fromisoformat(given).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(given)


def name(given: str | None, width: int = 48) -> str:
    """Return a name of limited length, cut in its middle, where names differ least.

    >>> name("reduce_v1_divergent", 11)
    'reduc\u2026rgent'
    """
    return NONE if given is None or given == "" else middle(visible(str(given)), width)


def room(given: Any) -> str:
    """Return the class of a cell by what stands in it: a short text stays in one line, longer ones have room.

    >>> room("2026-11-21"), room("L1 and shared memory pipe"), room("wider tiles, and what was said of them, in full")
    ('short', 'some', 'long')
    """
    if not isinstance(given, str) or not given:
        return ""
    return next(name for most, name in ROOMS if len(given) <= most)


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> plural(1, "launch", "launches"), plural(2, "run"), plural(0, "run")
    ('1 launch', '2 runs', '0 runs')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


FILTERS = {
    "value": value, "count": count, "duration": duration, "size": size, "percent": percent, "speedup": speedup,
    "bound_sign": bound_sign, "si": si, "when": when, "name": name, "plural": plural, "room": room,
}  # fmt: skip
