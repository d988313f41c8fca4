"""Template filters that format values. A missing value is a dash, never 0."""

from datetime import datetime
from typing import Any

from markupsafe import Markup

from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, plain, visible
from profsvc.reports.text.cells import middle, sign_of

MISSING = "\u2013"
ALLOWED_CONTROLS = "\n\t\u202f\u2009\xa0"
MAX_CELL_CHARS = 300
NO_LIMIT = 1 << 62
COLUMN_WIDTHS = ((12, "short"), (16, ""), (40, "some"), (NO_LIMIT, "long"))
MAX_TEXT_CHARS = 50_000
MIN_GROUPED, MAX_GROUPED = 1e4, 1e15
"""Range of numbers that are written with all digits."""
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"), (1.0, "ns"))
_SI_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
UNSCALED_UNITS = {"bit", "op/cycle"}
"""Units that are not scaled by prefixes."""
_BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def escape_unsafe(given: Any) -> Any:
    r"""Return a value for a page, with control characters and bidirectional marks of texts as escapes.

    A text of more than `MAX_TEXT_CHARS` characters is shortened in its middle.

    All values of all templates pass through here; line ends and narrow spaces are kept.

    >>> print(escape_unsafe("a\u202eb\x1b\n1\u202f000"))
    a\u202eb\x1b
    1\u202f000
    """
    if not isinstance(given, str) or isinstance(given, Markup):
        return given
    if len(given) > MAX_TEXT_CHARS:
        given = middle(given, MAX_TEXT_CHARS)
    if given.isprintable():
        return given
    return "".join(c if c.isprintable() or c in ALLOWED_CONTROLS else visible(c) for c in given)


def value(given: Any) -> str:
    """Return any value as text, long texts shortened in the middle.

    >>> value(0.123456), value(None), value("x"), value(12345678), value(12345678.9)
    ('0.1235', '\u2013', 'x', '12\u202f345\u202f678', '12\u202f345\u202f679')
    >>> value(value(1024)) == value(1024)
    True
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return count(given)
    if isinstance(given, float) and MIN_GROUPED <= abs(given) < MAX_GROUPED:
        return count(round(given))
    # A formatted number keeps the spaces between its thousands.
    shown = escape_unsafe(given) if isinstance(given, str) and not set(given) & set("\n\t") else cell(given)
    return middle(shown, MAX_CELL_CHARS) or MISSING


def count(given: int | None) -> str:
    """Return a whole number with narrow spaces between thousands.

    >>> count(1234567), count(None)
    ('1\u202f234\u202f567', '\u2013')
    """
    return MISSING if given is None else f"{given:,}".replace(",", "\u202f")


def duration(given_ns: float | None) -> str:
    """Return a time in the unit that fits it.

    >>> duration(12345.6), duration(2.5e9), duration(0), duration(None)
    ('12.35 \u00b5s', '2.5 s', '0 ns', '\u2013')
    """
    given_ns = plain(given_ns)
    if given_ns is None:
        return MISSING
    size, unit = next((pair for pair in _TIME_UNITS if abs(given_ns) >= pair[0]), _TIME_UNITS[-1])
    return f"{cell(float(given_ns / size))} {unit}"


def size(given_bytes: float | None) -> str:
    """Return a number of bytes in the unit that fits it.

    >>> size(2048), size(17), size(None)
    ('2 KiB', '17 B', '\u2013')
    """
    if given_bytes is None:
        return MISSING
    unit = next((pair for pair in _BYTE_UNITS if abs(given_bytes) >= pair[0]), (1, "B"))
    return f"{cell(given_bytes / unit[0])} {unit[1]}"


def si(given: float | None, unit: str = "") -> str:
    """Return a number with its unit, by thousands.

    Bytes are scaled by powers of 2, rates by powers of 10.

    >>> si(262144, "byte"), si(62914560, "byte"), si(1024, "op/cycle"), si(384, "bit")
    ('256 KiB', '60 MiB', '1\u202f024 op/cycle', '384 bit')
    >>> si(1.98e9, "Hz"), si(128, ""), si(4.8143e12, "byte/s"), si(None, "W"), si(0.5, "W")
    ('1.98 GHz', '128', '4.814 TB/s', '\u2013', '0.5 W')
    """
    given = plain(given)
    if given is None:
        return MISSING
    if not unit:
        return value(given)
    if unit == "byte":
        return size(given)
    if unit in UNSCALED_UNITS:
        return f"{value(given)} {unit}"
    unit = unit.replace("byte", "B")
    scale, letter = next((pair for pair in _SI_PREFIXES if abs(given) >= pair[0]), (1.0, ""))
    return f"{cell(float(given / scale))} {letter}{unit}"


def percent(given: float | None, digits: int = 1) -> str:
    """Return a share as percent.

    >>> percent(0.1234), percent(None), percent(1.0)
    ('12.3 %', '\u2013', '100 %')
    """
    given = plain(given)
    if given is None:
        return MISSING
    return f"{100 * given:.{digits}f}".removesuffix(f".{'0' * digits}") + " %"


def signed_percent(given: float | None) -> str:
    """Return a change as percent with its sign.

    >>> signed_percent(0.0523), signed_percent(-0.5), signed_percent(0.0), signed_percent(None)
    ('+5.2 %', '\u221250.0 %', '0.0 %', '\u2013')
    """
    given = plain(given)
    return MISSING if given is None else f"{_sign(round(given, 3))}{abs(100 * given):.1f} %"


def signed_duration(given_ns: float | None) -> str:
    """Return a difference of times with its sign.

    >>> signed_duration(12345.6), signed_duration(-2.5e9), signed_duration(0), signed_duration(None)
    ('+12.35 \u00b5s', '\u22122.5 s', '0 ns', '\u2013')
    """
    given_ns = plain(given_ns)
    return MISSING if given_ns is None else f"{_sign(given_ns)}{duration(abs(given_ns))}"


def _sign(given: float) -> str:
    return "+" if given > 0 else "\u2212" if given < 0 else ""


def bound_sign(flags: object) -> str:
    """Return the sign before a potential that is a bound.

    >>> bound_sign("UPPER_BOUND"), bound_sign(None)
    ('≤ ', '')
    """
    return sign_of(flags) if isinstance(flags, str) else ""


def speedup(given: float | None) -> str:
    """Return a speedup.

    >>> speedup(1.234), speedup(None)
    ('1.23\xd7', '\u2013')
    """
    return times(plain(given)).replace("x", "\u00d7") or MISSING


def when(given: str | None) -> str:
    """Return an ISO 8601 time as date and time in UTC.

    >>> when("2026-11-21T04:00:07Z"), when(None), when("yesterday")
    ('2026-11-21 04:00', '\u2013', 'yesterday')
    """
    if not given:
        return MISSING
    try:
        return datetime.fromisoformat(given).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(given)


def name(given: str | None, width: int = 48) -> str:
    """Return a name of limited length, shortened in its middle, where names differ least.

    >>> name("reduce_v1_divergent", 11)
    'reduc\u2026rgent'
    """
    return MISSING if given is None or given == "" else middle(visible(str(given)), width)


def column_width(given: Any) -> str:
    """Return the CSS class for the width of a cell: short texts stay on one line, longer ones get a minimum width.

    >>> [column_width(text) for text in ("2026-11-21", "L1 and shared memory pipe", "x" * 41)]
    ['short', 'some', 'long']
    """
    if not isinstance(given, str) or not given:
        return ""
    return next(name for most, name in COLUMN_WIDTHS if len(given) <= most)


def exported(given: Any, side: str) -> Markup:
    """Return the attribute of a cell with its number as it is, which an export takes instead of the text.

    >>> exported(1234.5, "n"), exported("1", "n"), exported(1, "")
    (Markup(' data-v="1234.5"'), Markup(''), Markup(''))
    """
    given = plain(given)
    is_number = side == "n" and isinstance(given, int | float) and not isinstance(given, bool)
    return Markup(f' data-v="{given}"') if is_number else Markup("")  # a number has nothing to escape


def unit(given: str | None) -> str:
    """Return a unit as people write it; a share has none.

    >>> unit("degC"), unit("1"), unit("W/degC"), unit(None)
    ('\xb0C', '\u2013', 'W/\xb0C', '\u2013')
    """
    return MISSING if given in (None, "", "1", "unknown") else str(given).replace("degC", "\u00b0C")


def quantity(given: float | None, of_unit: str | None) -> str:
    """Return a number with the unit that fits it.

    >>> quantity(3.201e9, "Hz"), quantity(39.487, "degC"), quantity(0.5419, "1"), quantity(None, "W")
    ('3.201 GHz', '39.49 \xb0C', '0.5419', '\u2013')
    """
    return si(given, unit(of_unit).removeprefix(MISSING))


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> plural(1, "launch", "launches"), plural(2, "run"), plural(0, "run")
    ('1 launch', '2 runs', '0 runs')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


FILTERS = {
    "unit": unit,
    "value": value,
    "count": count,
    "duration": duration,
    "size": size,
    "percent": percent,
    "speedup": speedup,
    "bound_sign": bound_sign,
    "signed_percent": signed_percent,
    "signed_duration": signed_duration,
    "si": si,
    "when": when,
    "name": name,
    "plural": plural,
    "exported": exported,
    "column_width": column_width,
}
