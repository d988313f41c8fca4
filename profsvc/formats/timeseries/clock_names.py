"""Names of columns that are clocks: dates, times of day, timestamps and counts, in several languages."""

import itertools
import re
import unicodedata

from profsvc.formats.timeseries.dates import DATE_ORDERS
from profsvc.formats.timeseries.labels import split_label

DATE_NAMES = {"date", "datum"}
TIME_OF_DAY_NAMES = {"time", "zeit", "uhrzeit", "timeofday"}
TIMESTAMP_NAMES = {"timestamp", "timestamps", "datetime", "dateandtime", "zeitstempel", "datumzeit", "datumuhrzeit"}
TIMESTAMP_NAMES |= {
    "datetimeutc",
    "timeutc",
    "utc",
    "utctime",
    "utcdatetime",
    "localtime",
    "timestamputc",
    "datetimestamp",
}
TIMESTAMP_NAMES |= {
    "epoch",
    "unixtime",
    "unixtimestamp",
    "epochtime",
    "logtime",
    "sampletime",
    "elapsed",
    "elapsedtime",
}
TIMESTAMP_NAMES |= {"systemtime", "timerelative", "relativetime", "runtime", "wallclocktime", "wallclocktimeutc"}
# The same in other languages, without accents; Chinese, Japanese, Russian and Korean.
TIMESTAMP_NAMES |= {"horodatage", "heure", "dateheure", "dateetheure", "tiempo", "fechahora", "fechayhora", "tempo"}
TIMESTAMP_NAMES |= {"dataora", "dataeora", "datahora", "dataehora", "czas", "tijd", "datumtijd", "zeitpunkt"}
TIMESTAMP_NAMES |= {"\u65f6\u95f4", "\u65e5\u671f\u65f6\u95f4", "\u65f6\u95f4\u6233"}
TIMESTAMP_NAMES |= {"\u6642\u9593", "\u6642\u523b", "\u65e5\u6642"}
TIMESTAMP_NAMES |= {"\u0432\u0440\u0435\u043c\u044f", "\u0434\u0430\u0442\u0430\u0432\u0440\u0435\u043c\u044f"}
TIMESTAMP_NAMES |= {"\uc2dc\uac04"}
# Words that are a date and a time beside each other, but may be anything alone; "eas" is the Czech and Slovak Cas with
# its caron in Windows-1250, read as Latin-1.
CLOCK_PAIRS = {("data", "ora"), ("data", "hora"), ("data", "godzina"), ("data", "czas"), ("fecha", "hora")}
CLOCK_PAIRS |= {("date", "heure"), ("datum", "tijd"), ("datum", "cas"), ("datum", "eas"), ("datum", "tid")}
CLOCK_PAIRS |= {("dato", "tid"), ("tarih", "saat")}
CLOCK_PAIRS |= {("\u65e5\u671f", "\u65f6\u95f4"), ("\u65e5\u4ed8", "\u6642\u523b"), ("\u65e5\u4ed8", "\u6642\u9593")}
CLOCK_PAIRS |= {("\u0434\u0430\u0442\u0430", "\u0432\u0440\u0435\u043c\u044f")}
COUNT_NAMES = {
    "t",
    "seconds",
    "elapsedseconds",
    "timeseconds",
    "timeinseconds",
    "timeofdayseconds",
    "millis",
    "ms",
    "milliseconds",
    "elapsedmilliseconds",
    # Weights & Biases counts seconds since the start of the run.
    "relativetimeprocess",
    "relativetimewall",
}
ORDINAL_NAMES = {"no", "nr", "index", "record", "recordno", "sample", "sampleno", "row", "scan", "scanno", "n", "id"}
ORDINAL_NAMES |= {"count", "number", "sweep", "sweepno"}
# Of Home Assistant, which prints them last.
LAST_NAMES = {"lastchanged", "lastupdated"}
FRACTION_DIGITS = {"millisecond": 3, "milliseconds": 3}
# Beside the clock of a logger that numbers its rows; elsewhere such a column counts since the start.
NUMBERED_FRACTION_DIGITS = {"ms": 3, "us": 6}
ZONE = re.compile(r"(?<![A-Za-z])(?:UTC|GMT) ?(?:([-+]) ?([0-9]{1,2})(?::?([0-9]{2}))?)?(?![A-Za-z0-9])", re.IGNORECASE)

# The order of a date in brackets, as in Time(DD/MM/YYYY h:mm:ss A), and zones by letters, which do not tell an offset.
_ORDER = re.compile(r"[(\[]\s*([YyMDd])\1{0,3}[-/. ]([YyMDd])\2{0,3}[-/. ]([YyMDd])\3{0,3}\b[^()\[\]]*[)\]]")
_ZONE_LETTERS = re.compile(r"[(\[](?:[CEW]ES?T|BST|IST|MSK|[ECMP][SD]T|JST|KST|HKT|SGT|AE[SD]T|LOCAL|local)[)\]]")


def date_order(*labels: str) -> str | None:
    """Return the order of the fields of dates that one of the labels names; None if none does.

    >>> date_order("Time(DD/MM/YYYY h:mm:ss A)"), date_order("Date [yyyy-MM-dd]"), date_order("Time (s)")
    ('dmy', 'ymd', None)
    """
    for label in labels:
        if (match := _ORDER.search(label)) and len(order := "".join(match.groups()).lower()) == len(set(order)):
            return order if order in DATE_ORDERS else None
    return None


def letters_of(name: str) -> str:
    """Return the letters of a name, small and without accents.

    >>> letters_of("Date_Time"), letters_of("\u010cas [1]")
    ('datetime', 'cas')
    """
    if name.isascii():
        return "".join(filter(str.isalpha, name.lower()))
    letters = "".join(filter(str.isalpha, unicodedata.normalize("NFKD", name.lower())))
    return unicodedata.normalize("NFC", letters)  # Korean letters are composed again


def clock_words(cells: list[str]) -> list[str]:
    """Return the word of each label; a date and a time in another language as those in English.

    >>> clock_words(["D\u00e1tum", "\u010cas (UTC)", "data", "P (W)", "Time %", "Time (CEST)", "Date [D.M.YYYY]"])
    ['date', 'time', 'data', 'p', '', 'time', 'date']
    """
    # A percentage of the time is not a clock.
    words = [letters_of(_bare(split_label(cell)[0])) if "%" not in cell else "" for cell in cells]
    for place, pair in enumerate(itertools.pairwise(words)):
        if pair in CLOCK_PAIRS:
            words[place : place + 2] = "date", "time"
    return words


def _bare(name: str) -> str:
    """Return a name without the zone and the order of a date."""
    return _ZONE_LETTERS.sub("", _ORDER.sub("", ZONE.sub("", name)))
